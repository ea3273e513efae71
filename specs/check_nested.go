package specs

import (
	"encoding/hex"
	"strings"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
	"github.com/unified-test-runner/utr/specs/schema"
)

// The arguments of operations and the options of entities, into which the schema
// does not look.
func checkNested(i *inspection) {
	for _, p := range schema.Nested(i.suite.Root) {
		i.reportAt(p.Position, p.Path, "%s", p.Message)
	}
}

func checkArgumentValues(i *inspection, s step) {
	for _, a := range s.Row.Arguments {
		v := s.get("arguments").get(a.Name)
		if !v.exists() || a.Type == "" {
			continue
		}
		n, whole := v.Whole()
		switch {
		case a.Type == operations.Count && (!whole || n < 0):
			i.report(v, "argument %s must be an integer that is not negative, not %s", a.Name, v.JSON())
		case a.Type != operations.Count && v.Kind.String() != string(a.Type):
			i.report(v, "argument %s must be of type %s, not %s", a.Name, a.Type, v.Kind)
		}
	}
	// findOneAndReplace and findOneAndUpdate: matched case-insensitively.
	if v := s.get("arguments").get("returnDocument"); v.exists() && !strings.EqualFold(v.String, "Before") && !strings.EqualFold(v.String, "After") {
		i.report(v, "argument returnDocument must be one of Before, After")
	}
	// upload and uploadWithId.
	if bytes := s.get("arguments").get("source"); s.Kind == operations.Bucket && bytes.exists() {
		if v := bytes.Value.Get("$$hexBytes"); v == nil || len(bytes.Fields) != 1 || !isHexBytes(v) {
			i.report(bytes, "source must be {$$hexBytes: an even number of hexadecimal digits}")
		}
	}
}

func isHexBytes(v *source.Value) bool {
	_, err := hex.DecodeString(v.String)
	return v.Kind == source.String && err == nil
}
