package matchers

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// yaml parses an expected value.
func yaml(t testing.TB, s string) *source.Value {
	t.Helper()
	v, err := source.ParseYAML("test.yml", []byte(s))
	testkit.Check(t, err)
	return v
}

// seen parses an actual value in Extended JSON; "" is a missing one.
func seen(t testing.TB, s string) bson.RawValue {
	t.Helper()
	if s == "" {
		return bson.RawValue{}
	}
	var d bson.Raw
	testkit.Check(t, bson.UnmarshalExtJSON([]byte(`{"v":`+s+`}`), false, &d))
	return d.Lookup("v")
}

// raw parses an actual document.
func raw(t testing.TB, s string) bson.Raw { return bson.Raw(seen(t, s).Value) }

func raws(t testing.TB, list ...string) []result.Document {
	all := make([]result.Document, len(list))
	for i, s := range list {
		all[i] = result.Document(raw(t, s))
	}
	return all
}

// testEntities is an entity map of testValues and one session.
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
	if s, ok := testValues[name]; ok {
		var d bson.Raw
		err := bson.UnmarshalExtJSON([]byte(`{"v":`+s+`}`), false, &d)
		return d.Lookup("v"), err
	}
	return bson.RawValue{}, errors.New("entity \"" + name + "\" is not defined or has no BSON value")
}

func (testEntities) LSID(name string) (bson.RawValue, error) {
	if name != "session0" {
		return bson.RawValue{}, errors.New("entity \"" + name + "\" is not a session")
	}
	id, err := bson.Marshal(bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}})
	return document(id), err
}

// show renders mismatches for messages of tests.
func show(list []result.Mismatch) string {
	var b strings.Builder
	for _, m := range list {
		b.WriteString("\n  " + m.Path + " (" + m.Position.String() + "): " + m.Message + "; want " + m.Want +
			", got " + m.Got)
	}
	return b.String()
}

// summary renders mismatches for transcripts and checks their positions.
func summary(t *testing.T, got []result.Mismatch) string {
	t.Helper()
	var all []string
	for _, m := range got {
		all = append(all, strings.TrimPrefix(m.Path+": "+m.Message, ": "))
		if m.Position.File != "test.yml" || m.Position.Line == 0 {
			t.Errorf("a mismatch lacks its position:%s", show(got))
		}
	}
	return cmp.Or(strings.Join(all, "; "), matches)
}

const matches = "a match"

// transcript runs the cases of a file, which have the form "expected against
// actual". "nothing" is a missing value, no event or no message.
func transcript(t *testing.T, file string, compare func(t *testing.T, expected, actual string) []result.Mismatch) {
	t.Helper()
	testkit.PlayCases(t, "testdata/"+file, func(t *testing.T, in string) string {
		expected, actual, _ := strings.Cut(in, " against ")
		return summary(t, compare(t, expected, strings.TrimSuffix(actual, "nothing")))
	})
}
