package runner

import (
	"fmt"
	"math"
	"slices"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// testRunner is the object of special test operations.
const testRunner = "testRunner"

// check compares the arguments of an operation with its row: their names, and
// the types and entities that the row knows.
func (t *testRun) check(path string, op specs.Operation, row operations.Operation) *fault {
	var all []result.Mismatch
	note := func(key string, at source.Position, format string, args ...any) {
		all = append(all, failf(path+".arguments"+key, at, format, args...).mismatches...)
	}
	if op.Arguments != nil {
		for _, f := range op.Arguments.Fields {
			if _, takes := row.Argument(f.Key); !takes {
				note("."+f.Key, f.KeyPosition, "unsupported argument: %s does not take %q", op.Name, f.Key)
			}
		}
	}
	for _, a := range row.Arguments {
		v := op.Arguments.Get(a.Name)
		switch {
		case v == nil && a.Required:
			note("", op.Position, "missing argument: %s requires %q", op.Name, a.Name)
		case v == nil || a.Type == "":
		case a.Type == operations.Count:
			if n, ok := whole(v); !ok || n < 0 {
				note("."+a.Name, v.Position, "%s of %s has to be an integer that is not negative, not %s", a.Name, op.Name, v.JSON())
			}
		case v.Kind.String() != string(a.Type):
			note("."+a.Name, v.Position, "%s of %s has to be of type %s, not %s", a.Name, op.Name, a.Type, v.Kind)
		case a.Entity != "":
			if err := t.entities.Demand(v.String, a.Entity); err != nil {
				note("."+a.Name, v.Position, "%s", err)
			}
		}
	}
	if op.Object != testRunner || op.Name != "createEntities" { // which looks itself
		if f := placeholderIn(path+".arguments", "", op.Arguments); f != nil {
			all = append(all, f.mismatches...)
		}
	}
	return failed(all)
}

// whole gives an integer, written plainly or as Extended JSON.
func whole(v *source.Value) (int64, bool) {
	rv, err := v.BSON()
	if err != nil {
		return 0, false
	}
	if f, ok := rv.DoubleOK(); ok {
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	if rv.Type != bson.TypeInt32 && rv.Type != bson.TypeInt64 {
		return 0, false
	}
	return rv.AsInt64(), true
}

const placeholder = "$$placeholder"

// placeholderPlaces are the options in which a $$placeholder may stand for a value of
// the test runner's own. There are none.
var placeholderPlaces = map[operations.Kind][]string{
	operations.Client:           {"uriOptions", "autoEncryptOpts"},
	operations.ClientEncryption: {"clientEncryptionOpts"},
}

// unfilled is the fault of a placeholder in an entity ("$$placeholder").
func unfilled(path string, kind operations.Kind, v *source.Value) *fault {
	for _, f := range v.Fields {
		name := ""
		if slices.Contains(placeholderPlaces[kind], f.Key) {
			name = f.Key
		}
		if bad := placeholderIn(path+"."+f.Key, name, f.Value); bad != nil {
			return bad
		}
	}
	return nil
}

// placeholderIn is the fault of a placeholder in a value. name is the path by which it
// is known, "" where none may stand.
func placeholderIn(path, name string, v *source.Value) *fault {
	if v == nil {
		return nil
	}
	for i, item := range v.Items {
		if bad := placeholderIn(fmt.Sprintf("%s[%d]", path, i), "", item); bad != nil {
			return bad
		}
	}
	for _, f := range v.Fields {
		switch {
		case f.Key == placeholder && (name == "" || len(v.Fields) > 1):
			return failf(path, f.KeyPosition, "$$placeholder is used where no value can be put in its place")
		case f.Key == placeholder:
			return failf(path, v.Position, "no value is configured for the placeholder of %s", name)
		}
		below := name
		if name != "" {
			below += "." + f.Key
		}
		if bad := placeholderIn(path+"."+f.Key, below, f.Value); bad != nil {
			return bad
		}
	}
	return nil
}
