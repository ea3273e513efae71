package schema

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
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

// verdict reports whether the derived schema of a version accepts a file.
func verdict(t testing.TB, minor int, root *source.Value) bool {
	t.Helper()
	r, err := verdictOf(minor, root)
	if err != nil {
		t.Error(err)
		return false
	}
	return r.Valid()
}

// validate is Validate. The walk must explain a rejected file, and have no objections to an accepted one.
func validate(t testing.TB, version string, root *source.Value) []Problem {
	t.Helper()
	problems, err := Validate(version, root)
	testkit.Check(t, err)
	minor, err := minorOf(version)
	testkit.Check(t, err)
	if walked := explain(walk{declared: minor, granted: minor}, root); !slices.Equal(walked, problems) {
		t.Errorf("the walk finds %v, but the schema %v", walked, problems)
	}
	return problems
}

// If the walk has nothing to say about a file that the schema rejects, the problems have the place and the words of the
// schema. Here the walk allows keys and values of all versions, and the schema allows keys and values of one.
func TestUnexplained(t *testing.T) {
	for _, r := range []struct{ reason, version, file, want string }{
		{"an unknown key", "1.0", operation("{name: find, object: c, ignoreResultAndError: true}"),
			"6:51: tests[0].operations[0].ignoreResultAndError: unknown key"},
		{"an unknown value", "1.2", inTest("operations: []\n  runOnRequirements: [{topologies: [single, load-balanced]}]"),
			"6:45: tests[0].runOnRequirements[0].topologies[1]: is not valid by the JSON schema: "},
	} {
		minor, err := minorOf(r.version)
		testkit.Check(t, err)
		problems, err := judge(minor, walk{declared: newest, granted: newest}, parse(t, r.file))
		testkit.Check(t, err)
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "suite.yml:"+r.want) {
			t.Errorf("%s: %v, want %s", r.reason, problems, r.want)
		}
	}
}

// The schema decides: what it accepts has no problem, even if the walk objects. Here the walk allows only keys of 1.0.
func TestSchemaDecides(t *testing.T) {
	root, old := parse(t, operation("{name: find, object: c, ignoreResultAndError: true}")), walk{declared: 0, granted: 0}
	problems, err := judge(newest, old, root)
	testkit.Check(t, err)
	if len(problems) > 0 || len(explain(old, root)) == 0 {
		t.Errorf("%v", problems)
	}
}

// Errors of the schema lead to the value that the walk objects to, or to one around it.
func TestLocated(t *testing.T) {
	numeric := row{reason: "a key that looks like an index", version: Newest,
		file: inTest("operations: []") +
			"createEntities: [{client: {id: c, autoEncryptOpts: {keyVaultNamespace: n, kmsProviders: {}, schemaMap: {'0': 1}}}}]",
		want: "7:1: createEntities[0].client.autoEncryptOpts.schemaMap.0: must be an object"}
	for _, r := range append(tableRows(t), numeric) {
		minor, err := minorOf(r.version)
		testkit.Check(t, err)
		root := parse(t, r.file)
		verdict, err := verdictOf(minor, root)
		testkit.Check(t, err)
		problems := located(verdict.Errors(), root)
		if !verdict.Valid() && !slices.ContainsFunc(problems, func(p Problem) bool {
			_, path, _ := strings.Cut(r.want, ": ")
			return p.Position.Line > 0 && strings.HasPrefix(path, p.Path)
		}) {
			t.Errorf("%s: %v, want %s", r.reason, problems, r.want)
		}
		if strings.Contains(r.want, "are mutually exclusive") {
			testkit.Contains(t, problems[0].String(), "has keys or values that are mutually exclusive")
		}
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"id", "client", "clientEncryption", "expectError", "expectEvents", "databaseName"}
	testkit.PlayCases(t, "testdata/nearmiss.txt", func(_ *testing.T, misspelt string) string {
		return cmp.Or(didYouMean(strings.Trim(misspelt, `"`), names), "nothing")
	})
}
