package driver

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func raw(t testing.TB, d any) bson.Raw {
	t.Helper()
	out, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Options arrive in the driver's structs as they were written; what it has no
// field for, and what has the wrong type, is refused.
func TestFill(t *testing.T) {
	yes, n, ms := true, int32(2), int64(3)
	for _, row := range []struct {
		reason  string
		into    any
		options bson.D
		want    any
		refused string // the error contains it
		lacks   string // Unsupported
	}{
		{"plain values", new(options.FindOptions),
			bson.D{{Key: "allowDiskUse", Value: true}, {Key: "batchSize", Value: 2}, {Key: "skip", Value: 3.0}},
			&options.FindOptions{AllowDiskUse: &yes, BatchSize: &n, Skip: &ms}, "", ""},
		{"a document stays as it was written", new(options.FindOptions),
			bson.D{{Key: "sort", Value: bson.D{{Key: "b", Value: 1}, {Key: "a", Value: -1}}}},
			&options.FindOptions{Sort: raw(t, bson.D{{Key: "b", Value: 1}, {Key: "a", Value: -1}})}, "", ""},
		{"a hint may be a string", new(options.FindOptions), bson.D{{Key: "hint", Value: "_id_"}},
			&options.FindOptions{Hint: "_id_"}, "", ""},
		{"a collation's names differ in case from the driver's", new(options.FindOptions),
			bson.D{{Key: "collation", Value: bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}, {Key: "caseLevel", Value: true}}}},
			&options.FindOptions{Collation: &options.Collation{Locale: "en", Strength: 2, CaseLevel: true}}, "", ""},
		{"a list of documents", new(options.UpdateOneOptions), bson.D{{Key: "arrayFilters", Value: bson.A{bson.D{{Key: "i", Value: 1}}}}},
			&options.UpdateOneOptions{ArrayFilters: []any{raw(t, bson.D{{Key: "i", Value: 1}})}}, "", ""},
		{"a name of ours for a field of theirs", new(options.CreateCollectionOptions), bson.D{{Key: "size", Value: 3}},
			&options.CreateCollectionOptions{SizeInBytes: &ms}, "", ""},
		{"a fraction is no number of documents", new(options.FindOptions), bson.D{{Key: "skip", Value: 1.5}}, nil, "skip", ""},
		{"too great for the field", new(options.FindOptions), bson.D{{Key: "batchSize", Value: int64(1) << 40}}, nil, "batchSize", ""},
		{"a wrong type", new(options.FindOptions), bson.D{{Key: "allowDiskUse", Value: "yes"}}, nil, "allowDiskUse", ""},
		{"a word that is none", new(options.FindOptions), bson.D{{Key: "cursorType", Value: "endless"}}, nil, "cursorType", ""},
		{"an option that the driver has not", new(options.FindOptions), bson.D{{Key: "maxTimeMS", Value: 5}}, nil, "", "o.maxTimeMS"},
		{"an option of a collation that nobody has", new(options.FindOptions),
			bson.D{{Key: "collation", Value: bson.D{{Key: "colour", Value: "red"}}}}, nil, "", "collation.colour"},
		{"a write concern's wtimeout", new(options.CollectionOptions),
			bson.D{{Key: "writeConcern", Value: bson.D{{Key: "wtimeoutMS", Value: 5}}}}, nil, "", "writeConcern.wtimeoutMS"},
		{"the driver's own matters are no options", new(options.FindOptions), bson.D{{Key: "internal", Value: true}}, nil, "internal", ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			err := fill(row.into, "o", raw(t, row.options))
			var lack *result.Error
			switch {
			case row.lacks != "":
				if !errors.As(err, &lack) || lack.Unsupported != row.lacks {
					t.Errorf("got %v, want %s to be unsupported", err, row.lacks)
				}
			case row.refused != "":
				if err == nil || !strings.Contains(err.Error(), row.refused) || errors.As(err, &lack) {
					t.Errorf("got %v, want an error that says %q", err, row.refused)
				}
			case err != nil:
				t.Error(err)
			default:
				if diff := cmp.Diff(row.want, row.into, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestTable: every row is an operation of the format, or one of the runner's
// own, and takes arguments that the format has; a required argument is never
// left out.
func TestTable(t *testing.T) {
	seen := map[rowKey]bool{}
	for _, r := range rows() {
		key := rowKey{r.kind, r.name}
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
			if a.Required && a.Name != "callback" && !r.accepts(a.Name) {
				t.Errorf("%s.%s does not take %s, which is required", r.kind, r.name, a.Name)
			}
		}
		for _, name := range strings.Fields(r.takes) {
			if _, has := op.Argument(name); !has {
				t.Errorf("%s.%s takes %s, which the format does not have there", r.kind, r.name, name)
			}
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
		if _, ok := fieldOf(optionsFor[options.IndexOptions](), name); !ok && !found {
			t.Errorf("%q stands for no field of any options", name)
		}
	}
}

// What index options the table promises are those that there are.
func TestIndexArguments(t *testing.T) {
	for _, name := range strings.Fields(indexArguments) {
		f, found := fieldOf(optionsFor[options.IndexOptions](), name)
		if name != "keys" && (!found || !fillable(f.Type)) {
			t.Errorf("the driver has no index option %s", name)
		}
	}
}

func FuzzFill(f *testing.F) {
	for _, d := range []bson.D{
		{{Key: "sort", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "batchSize", Value: 2}},
		{{Key: "collation", Value: bson.D{{Key: "locale", Value: "en"}}}, {Key: "hint", Value: "x"}},
		{{Key: "readConcern", Value: bson.D{{Key: "level", Value: "local"}}}, {Key: "arrayFilters", Value: bson.A{1, bson.D{}}}},
	} {
		f.Add([]byte(raw(f, d)))
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
