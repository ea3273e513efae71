package schema

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs/source"
	"github.com/xeipuuv/gojsonschema"
)

const minimal = "description: a\nschemaVersion: '1.0'\ntests: [{description: t, operations: []}]\n"

func TestVersions(t *testing.T) {
	all := Versions()
	if len(all) != newest+1 || all[0] != "1.0" || all[newest] != Newest {
		t.Errorf("versions are %v", all)
	}
	root := parse(t, minimal)
	testkit.PlayCases(t, "testdata/versions.txt", func(t *testing.T, in string) string {
		version, err := strconv.Unquote(in)
		testkit.Check(t, err)
		problems, err := Validate(version, root)
		_, noJSON := JSON(version)
		testkit.Equal(t, "the error of JSON", noJSON, err)
		switch {
		case len(problems) > 0:
			t.Errorf("Validate returns %v", problems)
		case err != nil:
			return err.Error()
		}
		return "known"
	})
}

func TestValidateOddValues(t *testing.T) {
	number := func(f float64) *source.Value { return &source.Value{Kind: source.Float, Float: f} }
	withEventType := func(v *source.Value) *source.Value {
		root := parse(t, inTest("operations: []\n  expectEvents: [{client: c, eventType: x, events: []}]"))
		root.Get("tests").Items[0].Get("expectEvents").Items[0].Field("eventType").Value = v
		return root
	}
	for reason, root := range map[string]*source.Value{
		"null":                             {},
		"a document without fields":        {Kind: source.Document},
		"a number that JSON does not have": withEventType(number(math.NaN())),
		"an infinite number":               withEventType(number(math.Inf(-1))),
		"a large number":                   withEventType(number(1e300)),
		"text that is not UTF-8":           withEventType(&source.Value{Kind: source.String, String: "cmap\xff"}),
	} {
		if problems := validate(t, "1.10", root); len(problems) == 0 {
			t.Errorf("%s is valid", reason)
		}
	}
	errorCode := parse(t, operation("{name: find, object: c, expectError: {errorCode: 5.0}}"))
	if problems := validate(t, "1.0", errorCode); len(problems) > 0 {
		t.Errorf("a number without a fraction is an integer to JSON Schema: %v", problems)
	}
}

// JSON is deterministic, and a version has nothing of a later one. TestOfficialFacts checks the rest.
func TestJSON(t *testing.T) {
	for _, version := range Versions() {
		text, err := JSON(version)
		testkit.Check(t, err)
		again, _ := JSON(version)
		if string(again) != string(text) || !json.Valid(text) || !strings.HasSuffix(string(text), "}\n") {
			t.Errorf("%s is not deterministic JSON", version)
		}
	}
	for _, test := range []struct{ reason, in, before, text string }{
		{"a definition that only a later version references", "1.27", "1.26", `"span": {`},
		{"a key", "1.26", "1.25", `"awaitMinPoolSizeMS": {`},
		{"a value", "1.20", "1.19", `"topologyOpeningEvent"`},
		{"labelled keys", "1.18", "1.17", `"patternProperties"`},
		{"an alternative", "1.25", "1.24", `"csfleRequirement"`},
		{"a deprecation", "1.24", "1.23", `"deprecated": true`},
		{"a dependency", "1.3", "1.2", `"const": "cmap"`},
		{"an exclusion with a later key", "1.28", "1.27", `"accessToken"`},
	} {
		in, _ := JSON(test.in)
		before, _ := JSON(test.before)
		if !strings.Contains(string(in), test.text) || strings.Contains(string(before), test.text) {
			t.Errorf("%s: %s must be in %s and not in %s", test.reason, test.text, test.in, test.before)
		}
	}
}

// schemas are the derived schemas, each compiled on first use.
var schemas = func() (all [newest + 1]func() (*gojsonschema.Schema, error)) {
	for minor := range all {
		all[minor] = sync.OnceValues(func() (*gojsonschema.Schema, error) {
			text, err := derive(minor)
			if err != nil {
				return nil, err
			}
			return gojsonschema.NewSchema(gojsonschema.NewBytesLoader(text))
		})
	}
	return all
}()

// verdict validates a file with gojsonschema, by the derived schema of a version.
func verdict(t testing.TB, minor int, root *source.Value) bool {
	return accepts(t, schemas[minor], plain(root))
}

// validate is Validate. Its verdict must be that of gojsonschema.
func validate(t testing.TB, version string, root *source.Value) []Problem {
	t.Helper()
	problems, err := Validate(version, root)
	testkit.Check(t, err)
	minor, err := minorOf(version)
	testkit.Check(t, err)
	if verdict(t, minor, root) != (len(problems) == 0) {
		t.Errorf("gojsonschema disagrees: %v", problems)
	}
	return problems
}

// plain converts a value to the types of encoding/json, with json.Number for numbers, for gojsonschema.
func plain(v *source.Value) any {
	if v == nil {
		return nil
	}
	switch v.Kind {
	case source.Bool:
		return v.Bool
	case source.Int:
		return json.Number(strconv.FormatInt(v.Int, 10))
	case source.Float:
		if math.IsNaN(v.Float) || math.IsInf(v.Float, 0) {
			// JSON does not have these. To a schema they are numbers that are not integers.
			return json.Number("0.5")
		}
		return json.Number(strconv.FormatFloat(v.Float, 'g', -1, 64))
	case source.String:
		return v.String
	case source.Array:
		items := make([]any, len(v.Items))
		for i, item := range v.Items {
			items[i] = plain(item)
		}
		return items
	case source.Document:
		fields := make(map[string]any, len(v.Fields))
		for _, f := range v.Fields {
			fields[f.Key] = plain(f.Value)
		}
		return fields
	default:
		return nil
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"id", "client", "clientEncryption", "expectError", "expectEvents", "databaseName"}
	testkit.PlayCases(t, "testdata/nearmiss.txt", func(_ *testing.T, misspelt string) string {
		return cmp.Or(didYouMean(strings.Trim(misspelt, `"`), names), "nothing")
	})
}
