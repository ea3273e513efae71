package driver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

var document = testkit.Extended[bson.Raw, string] // a document in Extended JSON

var raw = testkit.Raw // a document in BSON

// said gives what an error says that the engine lacks, or the error, or else what there is.
func said(what string, err error) string {
	var lack *result.Error
	switch {
	case errors.As(err, &lack) && lack != nil && lack.Unsupported != "":
		return "lacks " + lack.Unsupported
	case err != nil:
		return "error: " + err.Error()
	}
	return what
}

// Options arrive in the driver's structs as they were written; what it has no
// field for, and what has the wrong type, is refused.
func TestFill(t *testing.T) {
	yes, n, ms := true, int32(2), int64(3)
	find := func() any { return new(options.FindOptions) }
	for _, row := range []struct {
		reason, options string
		into, want      any
	}{
		{"plain values", `{"allowDiskUse": true, "batchSize": 2, "skip": 3.0}`, find(), &options.FindOptions{AllowDiskUse: &yes, BatchSize: &n, Skip: &ms}},
		{"a document stays as it was written", `{"sort": {"b": 1, "a": -1}}`, find(), &options.FindOptions{Sort: document(t, `{"b": 1, "a": -1}`)}},
		{"a hint may be a string", `{"hint": "_id_"}`, find(), &options.FindOptions{Hint: "_id_"}},
		{"a collation's names differ in case from the driver's", `{"collation": {"locale": "en", "strength": 2, "caseLevel": true}}`, find(),
			&options.FindOptions{Collation: &options.Collation{Locale: "en", Strength: 2, CaseLevel: true}}},
		{"a list of documents", `{"arrayFilters": [{"i": 1}]}`, new(options.UpdateOneOptions),
			&options.UpdateOneOptions{ArrayFilters: []any{document(t, `{"i": 1}`)}}},
		{"a name of ours for a field of theirs", `{"size": 3}`, new(options.CreateCollectionOptions), &options.CreateCollectionOptions{SizeInBytes: &ms}},
	} {
		testkit.Check(t, fill(row.into, "o", document(t, row.options)))
		if diff := cmp.Diff(row.want, row.into, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("%s: %s", row.reason, diff)
		}
	}
}

// commands show how options become those of the driver, or what is wrong with them.
var commands = testkit.Commands{
	"uri": func(t *testing.T, a []string) (string, error) {
		var o bson.Raw
		if a[1] != "" {
			o = document(t, a[1])
		}
		got, mode, err := withOptions(a[0], o)
		return said(strings.TrimSpace(got+" "+mode), err), nil
	},
	"fill": func(t *testing.T, a []string) (string, error) {
		into := map[string]any{"find": new(options.FindOptions), "collection": new(options.CollectionOptions)}[a[0]]
		return said("all of it", fill(into, "o", document(t, a[1]))), nil
	},
}

func TestOptions(t *testing.T) { commands.Play(t, "testdata/options.txt") }

// TestTable: every row is an operation of the format, or one of the runner's
// own, and takes arguments that the format has; a required argument is never
// left out.
func TestTable(t *testing.T) {
	seen := map[enginekit.Key]bool{}
	for _, r := range rows() {
		key := r.Key()
		if seen[key] {
			t.Errorf("%s.%s stands twice in the table", r.kind, r.name)
		}
		seen[key] = true
		if strings.HasPrefix(r.name, "$") {
			continue
		}
		op, known := operations.Lookup(r.kind, r.name)
		if !known {
			t.Errorf("the format has no %s.%s", r.kind, r.name)
			continue
		}
		for _, a := range op.Arguments {
			if a.Required && a.Name != "callback" && !r.Accepts(a.Name) {
				t.Errorf("%s.%s does not take %s, which is required", r.kind, r.name, a.Name)
			}
		}
		for _, name := range strings.Fields(r.takes) {
			if _, has := op.Argument(name); !has {
				t.Errorf("%s.%s takes %s, which the format does not have there", r.kind, r.name, name)
			}
		}
	}
	for _, name := range strings.Fields(indexArguments) {
		f, found := fieldOf(reflect.TypeFor[options.IndexOptions](), name)
		if name != "keys" && (!found || !fillable(f.Type)) {
			t.Errorf("the driver has no index option %s", name)
		}
	}
	for name := range fieldNames {
		found := false
		for _, r := range rows() {
			if r.options != nil {
				if _, ok := fieldOf(r.options, name); ok {
					found = true
				}
			}
		}
		for _, t := range []reflect.Type{reflect.TypeFor[options.IndexOptions](), reflect.TypeFor[options.TimeSeriesOptions]()} {
			if _, ok := fieldOf(t, name); ok {
				found = true
			}
		}
		if !found {
			t.Errorf("%q stands for no field of any options", name)
		}
	}
}

func FuzzFill(f *testing.F) {
	for _, text := range []string{
		`{"sort": {"a": 1}, "batchSize": 2}`, `{"collation": {"locale": "en"}, "hint": "x"}`, `{"readConcern": {"level": "local"}, "arrayFilters": [1, {}]}`,
	} {
		f.Add([]byte(document(f, text)))
	}
	f.Fuzz(func(_ *testing.T, doc []byte) {
		if bson.Raw(doc).Validate() != nil {
			return
		}
		for _, into := range []any{new(options.FindOptions), new(options.UpdateOneOptions), new(options.CollectionOptions), new(options.IndexOptions)} {
			_ = fill(into, "o", doc)
		}
	})
}

// The transcript shows what becomes of each error.
func TestErrorOf(t *testing.T) {
	reply := raw(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 91}})
	first, second := raw(t, bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}}), raw(t, bson.D{{Key: "index", Value: 2}, {Key: "code", Value: 121}})
	concern := &mongo.WriteConcernError{Code: 64, Name: "N", Raw: raw(t, bson.D{{Key: "code", Value: 64}})}
	duplicate := map[int]mongo.WriteError{0: {Code: 11000, Message: "duplicate key"}}
	inner := callbackError{&result.Error{Kind: "server", Code: 1, Labels: []string{"L"}}}
	all := map[string]error{
		"a reply":                  mongo.CommandError{Code: 91, Name: "ShutdownInProgress", Labels: []string{"L"}, Raw: reply},
		"of the network":           mongo.CommandError{Labels: []string{"NetworkError"}},
		"wrapped":                  fmt.Errorf("outer: %w", mongo.CommandError{Code: 91, Raw: reply}),
		"not of package mongo":     xdriver.Error{Code: 91, Name: "N", Raw: []byte(reply)},
		"of maxTimeMS":             mongo.CommandError{Code: 50, Raw: reply},
		"of a write":               mongo.WriteException{WriteErrors: mongo.WriteErrors{{Index: 0, Code: 11000, Raw: first}}, Raw: reply},
		"of a write concern alone": mongo.WriteException{WriteConcernError: concern},
		"of writes and a write concern": mongo.BulkWriteException{WriteConcernError: concern, Labels: []string{"L"}, WriteErrors: []mongo.BulkWriteError{
			{WriteError: mongo.WriteError{Index: 0, Code: 11000, Raw: first}}, {WriteError: mongo.WriteError{Index: 2, Code: 121, Raw: second}}}},
		"of a write concern of a client bulk write": mongo.ClientBulkWriteException{WriteConcernErrors: []mongo.WriteConcernError{{Code: 64, Name: "N", Message: "m"}}},
		"of a write of a client bulk write":         mongo.ClientBulkWriteException{WriteErrors: duplicate},
		"of a write beside a top-level error": mongo.ClientBulkWriteException{WriteErrors: duplicate,
			WriteError: &mongo.WriteError{Code: 91, Message: "shutting down", Raw: reply}},
		"at the top level":          mongo.ClientBulkWriteException{WriteError: &mongo.WriteError{Code: 91, Raw: reply}},
		"at the top level, no code": mongo.ClientBulkWriteException{WriteError: &mongo.WriteError{Message: "EOF"}},
		"time is over":              context.DeadlineExceeded,
		"cancelled":                 fmt.Errorf("find: %w", context.Canceled),
		"a bad argument":            mongo.ErrNilDocument,
		"anything else":             errors.New("x"),
		"of a callback":             inner,
		"of a callback, too late":   fmt.Errorf("%w: %w", context.DeadlineExceeded, inner),
	}
	testkit.Transcript(t, "testdata/errors.txt", func(t *testing.T, name string) string {
		if all[name] == nil {
			t.Fatalf("the error %q does not exist, or was used before", name)
		}
		defer delete(all, name)
		return fmt.Sprintf("%+v", *errorOf(all[name]))
	})
	testkit.Equal(t, "errors that the transcript lacks", len(all), 0)
}
