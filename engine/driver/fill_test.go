package driver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

var document = testkit.Extended[bson.Raw, string] // a document in Extended JSON

var raw = testkit.Raw // a document in BSON

// outcome is what the engine lacks according to an error, or the error, or the value.
func outcome(value string, err error) string {
	var lack *result.Error
	switch {
	case errors.As(err, &lack) && lack != nil && lack.Unsupported != "":
		return "lacks " + lack.Unsupported
	case err != nil:
		return "error: " + err.Error()
	}
	return value
}

// Options of the suite are set in the driver's structs.
func TestFill(t *testing.T) {
	yes, n, ms, name := true, int32(2), int64(3), "b"
	find := func() any { return new(options.FindOptions) }
	for _, row := range []struct {
		reason, options string
		into, want      any
	}{
		{"scalars", `{"allowDiskUse": true, "batchSize": 2, "skip": 3.0}`, find(),
			&options.FindOptions{AllowDiskUse: &yes, BatchSize: &n, Skip: &ms}},
		{"a document keeps its order", `{"sort": {"b": 1, "a": -1}}`, find(),
			&options.FindOptions{Sort: document(t, `{"b": 1, "a": -1}`)}},
		{"a hint may be a string", `{"hint": "_id_"}`, find(), &options.FindOptions{Hint: "_id_"}},
		{"a collation", `{"collation": {"locale": "en", "strength": 2, "caseLevel": true}}`, find(),
			&options.FindOptions{Collation: &options.Collation{Locale: "en", Strength: 2, CaseLevel: true}}},
		{"an array of documents", `{"arrayFilters": [{"i": 1}]}`, new(options.UpdateOneOptions),
			&options.UpdateOneOptions{ArrayFilters: []any{document(t, `{"i": 1}`)}}},
		{"a field with another name", `{"size": 3}`, new(options.CreateCollectionOptions),
			&options.CreateCollectionOptions{SizeInBytes: &ms}},
		{"the name of a bucket", `{"bucketName": "b"}`, new(options.BucketOptions), &options.BucketOptions{Name: &name}},
	} {
		testkit.Check(t, fill(row.into, "o", document(t, row.options)))
		if diff := cmp.Diff(row.want, row.into, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("%s: %s", row.reason, diff)
		}
	}
}

var commands = testkit.Commands{
	"uri": func(t *testing.T, a []string) (string, error) {
		var o bson.Raw
		if a[1] != "" {
			o = document(t, a[1])
		}
		got, mode, err := withOptions(a[0], o)
		return outcome(strings.TrimSpace(got+" "+mode), err), nil
	},
	"fill": func(t *testing.T, a []string) (string, error) {
		into := map[string]any{"find": new(options.FindOptions), "collection": new(options.CollectionOptions)}[a[0]]
		return outcome("ok", fill(into, "o", document(t, a[1]))), nil
	},
}

func TestOptions(t *testing.T) { commands.Play(t, "testdata/options.txt") }

// Every row is an operation of the format or of the runner, and its arguments are
// in the format, including all required ones.
func TestTable(t *testing.T) {
	seen := map[enginekit.Key]bool{}
	for _, r := range rows() {
		key := r.Key()
		if seen[key] {
			t.Errorf("%s.%s is in the table twice", r.kind, r.name)
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
				t.Errorf("%s.%s does not accept %s, which is required", r.kind, r.name, a.Name)
			}
		}
		for _, name := range strings.Fields(r.args) {
			if _, has := op.Argument(name); !has {
				t.Errorf("%s.%s accepts %s, which is not an argument in the format", r.kind, r.name, name)
			}
		}
	}
	for _, name := range strings.Fields(indexArguments) {
		f, found := fieldOf(reflect.TypeFor[options.IndexOptions](), name)
		if name != "keys" && (!found || !fillable(f.Type)) {
			t.Errorf("the driver has no index option %s", name)
		}
	}
	types := []reflect.Type{reflect.TypeFor[options.IndexOptions](), reflect.TypeFor[options.TimeSeriesOptions]()}
	for _, r := range rows() {
		if r.options != nil {
			types = append(types, r.options)
		}
	}
	for name := range fieldNames {
		if !slices.ContainsFunc(types, func(t reflect.Type) bool { _, ok := fieldOf(t, name); return ok }) {
			t.Errorf("fieldNames: no options have a field for %q", name)
		}
	}
}

func FuzzFill(f *testing.F) {
	for _, text := range []string{
		`{"sort": {"a": 1}, "batchSize": 2}`, `{"collation": {"locale": "en"}, "hint": "x"}`,
		`{"readConcern": {"level": "local"}, "arrayFilters": [1, {}]}`,
	} {
		f.Add([]byte(document(f, text)))
	}
	f.Fuzz(func(_ *testing.T, doc []byte) {
		if bson.Raw(doc).Validate() != nil {
			return
		}
		for _, into := range []any{new(options.FindOptions), new(options.UpdateOneOptions), new(options.CollectionOptions),
			new(options.IndexOptions)} {
			_ = fill(into, "o", doc)
		}
	})
}

// The transcript shows the conversion of each error.
func TestErrorOf(t *testing.T) {
	reply := raw(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 91}})
	first, second := raw(t, bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}}), raw(t,
		bson.D{{Key: "index", Value: 2}, {Key: "code", Value: 121}})
	concern := &mongo.WriteConcernError{Code: 64, Name: "N", Raw: raw(t, bson.D{{Key: "code", Value: 64}})}
	duplicate := map[int]mongo.WriteError{0: {Code: 11000, Message: "duplicate key"}}
	inner := callbackError{&result.Error{Kind: "server", Code: 1, Labels: []string{"L"}}}
	all := map[string]error{
		"command":              mongo.CommandError{Code: 91, Name: "ShutdownInProgress", Labels: []string{"L"}, Raw: reply},
		"network":              mongo.CommandError{Labels: []string{"NetworkError"}},
		"wrapped":              fmt.Errorf("outer: %w", mongo.CommandError{Code: 91, Raw: reply}),
		"not of package mongo": xdriver.Error{Code: 91, Name: "N", Raw: []byte(reply)},
		"maxTimeMS":            mongo.CommandError{Code: 50, Raw: reply},
		"write": mongo.WriteException{WriteErrors: mongo.WriteErrors{{Index: 0, Code: 11000, Raw: first}},
			Raw: reply},
		"write concern": mongo.WriteException{WriteConcernError: concern},
		"bulk write with a write concern error": mongo.BulkWriteException{WriteConcernError: concern, Labels: []string{"L"},
			WriteErrors: []mongo.BulkWriteError{
				{WriteError: mongo.WriteError{Index: 0, Code: 11000,
					Raw: first}}, {WriteError: mongo.WriteError{Index: 2, Code: 121,
					Raw: second}}}},
		"client bulk write, write concern": mongo.ClientBulkWriteException{WriteConcernErrors: []mongo.WriteConcernError{{Code: 64, Name: "N", Message: "m"}}},
		"client bulk write, write":         mongo.ClientBulkWriteException{WriteErrors: duplicate},
		"client bulk write, top level and write": mongo.ClientBulkWriteException{WriteErrors: duplicate,
			WriteError: &mongo.WriteError{Code: 91, Message: "shutting down", Raw: reply}},
		"client bulk write, top level": mongo.ClientBulkWriteException{WriteError: &mongo.WriteError{Code: 91,
			Raw: reply}},
		"client bulk write, top level without code": mongo.ClientBulkWriteException{WriteError: &mongo.WriteError{Message: "EOF"}},
		"deadline":                 context.DeadlineExceeded,
		"canceled":                 fmt.Errorf("find: %w", context.Canceled),
		"invalid argument":         mongo.ErrNilDocument,
		"other":                    errors.New("x"),
		"callback":                 inner,
		"callback at the deadline": fmt.Errorf("%w: %w", context.DeadlineExceeded, inner),
	}
	testkit.Transcript(t, "testdata/errors.txt", func(t *testing.T, name string) string {
		if all[name] == nil {
			t.Fatalf("error %q does not exist or is in the transcript twice", name)
		}
		defer delete(all, name)
		return fmt.Sprintf("%+v", *errorOf(all[name]))
	})
	testkit.Equal(t, "errors that are not in the transcript", len(all), 0)
}
