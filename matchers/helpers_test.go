package matchers

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// yaml reads an expected value.
func yaml(t testing.TB, s string) *source.Value {
	t.Helper()
	v, err := source.ParseYAML("test.yml", []byte(s))
	testkit.Check(t, err)
	return v
}

// seen reads an actual value from Extended JSON; "" is a missing one.
func seen(t testing.TB, s string) bson.RawValue {
	t.Helper()
	if s == "" {
		return bson.RawValue{}
	}
	var d bson.Raw
	testkit.Check(t, bson.UnmarshalExtJSON([]byte(`{"v":`+s+`}`), false, &d))
	return d.Lookup("v")
}

// raw reads an actual document.
func raw(t testing.TB, s string) bson.Raw { return bson.Raw(seen(t, s).Value) }

func raws(t testing.TB, list ...string) []bson.Raw {
	all := make([]bson.Raw, len(list))
	for i, s := range list {
		all[i] = raw(t, s)
	}
	return all
}

// testEntities are an entity map: values in Extended JSON, and sessions.
type testEntities struct{}

var testValues = map[string]string{
	"id0":      `{"$oid":"0123456789abcdef01234567"}`,
	"int1":     `1`,
	"doc":      `{"x":1}`,
	"nested":   `{"x":{"y":1}}`,
	"list":     `[{"x":1}]`,
	"operator": `{"$$exists":true}`,
}

func (testEntities) BSON(name string) (bson.RawValue, error) {
	s, ok := testValues[name]
	if !ok {
		return bson.RawValue{}, errors.New("entity \"" + name + "\" is not defined or has no BSON value")
	}
	var d bson.Raw
	err := bson.UnmarshalExtJSON([]byte(`{"v":`+s+`}`), false, &d)
	return d.Lookup("v"), err
}

func (testEntities) LSID(name string) (bson.Raw, error) {
	if name != "session0" {
		return nil, errors.New("entity \"" + name + "\" is no session")
	}
	return bson.Marshal(bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}})
}

// show gives mismatches in a few lines, for messages of tests.
func show(list []result.Mismatch) string {
	var b strings.Builder
	for _, m := range list {
		b.WriteString("\n  " + m.Path + " (" + m.Position.String() + "): " + m.Message + "; want " + m.Want + ", got " + m.Got)
	}
	return b.String()
}

// check expects mismatches, each with a position, of which one has a part in its
// path or message; "" expects none.
func check(t *testing.T, what string, got []result.Mismatch, wrong string) {
	t.Helper()
	found := wrong == "" && len(got) == 0
	for _, m := range got {
		found = found || wrong != "" && strings.Contains(m.Path+": "+m.Message, wrong)
		if m.Position.File != "test.yml" || m.Position.Line == 0 {
			t.Errorf("%s: a mismatch lacks its position:%s", what, show(got))
		}
	}
	if !found {
		t.Errorf("%s: want %q, got%s", what, wrong, show(got))
	}
}

func ptr[T any](v T) *T { return &v }
