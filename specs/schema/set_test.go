package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/source"
)

const minimal = "description: a\nschemaVersion: '1.0'\ntests: [{description: t, operations: []}]\n"

func TestVersions(t *testing.T) {
	all := Versions()
	if len(all) != newest+1 || all[0] != "1.0" || all[newest] != Newest {
		t.Errorf("versions are %v", all)
	}
	set := New()
	root := parse(t, minimal)
	testkit.PlayCases(t, "testdata/versions.txt", func(t *testing.T, in string) string {
		version, err := strconv.Unquote(in)
		testkit.Check(t, err)
		said, problems := "known", set.Validate(version, root)
		var e *VersionError
		if err := Check(version); errors.As(err, &e) && e.Version == version {
			said = fmt.Sprintf("%v (%s)", err, []string{"malformed", "other major", "too new"}[e.Reason])
		}
		_, noJSON := set.JSON(version)
		testkit.Equal(t, "what Compile and JSON give", []error{set.Compile(version), noJSON}, []error{Check(version), Check(version)})
		if e == nil && len(problems) > 0 || e != nil && fmt.Sprint(problems) != "[suite.yml:2:16: schemaVersion: "+e.Error()+"]" {
			t.Errorf("Validate gives %v", problems)
		}
		return said
	})
}

func TestValidateOddValues(t *testing.T) {
	set := New()
	number := func(f float64) *source.Value { return &source.Value{Kind: source.Float, Float: f} }
	withEventType := func(v *source.Value) *source.Value {
		root := parse(t, inTest("operations: []\n  expectEvents: [{client: c, eventType: x, events: []}]"))
		root.Get("tests").Items[0].Get("expectEvents").Items[0].Field("eventType").Value = v
		return root
	}
	for reason, root := range map[string]*source.Value{
		"no value at all":                  nil,
		"null":                             {},
		"a document without fields":        {Kind: source.Document},
		"a number that JSON does not have": withEventType(number(math.NaN())),
		"an infinite number":               withEventType(number(math.Inf(-1))),
		"a large number":                   withEventType(number(1e300)),
		"text that is not UTF-8":           withEventType(&source.Value{Kind: source.String, String: "cmap\xff"}),
	} {
		if problems, explained := set.Validate("1.10", root), set.explain(10, root); len(problems) == 0 || len(explained) == 0 {
			t.Errorf("%s: %v, explained by %v", reason, problems, explained)
		}
	}
	errorCode := parse(t, operation("{name: find, object: c, expectError: {errorCode: 5.0}}"))
	if problems := set.Validate("1.0", errorCode); len(problems) > 0 {
		t.Errorf("a number without a fraction is an integer to JSON Schema: %v", problems)
	}
}

// What is printed is the same every time, and that of a version has nothing of
// a later one. TestOfficialFacts looks at the rest.
func TestJSON(t *testing.T) {
	set := New()
	for _, version := range Versions() {
		text, err := set.JSON(version)
		testkit.Check(t, err)
		again, _ := New().JSON(version)
		if string(again) != string(text) || !json.Valid(text) || !strings.HasSuffix(string(text), "}\n") {
			t.Errorf("%s is not the same every time", version)
		}
	}
	for _, test := range []struct{ reason, in, before, text string }{
		{"a definition that only a later version reaches", "1.27", "1.26", `"span": {`},
		{"a key", "1.26", "1.25", `"awaitMinPoolSizeMS": {`},
		{"a value", "1.20", "1.19", `"topologyOpeningEvent"`},
		{"labelled keys", "1.18", "1.17", `"patternProperties"`},
		{"an alternative", "1.25", "1.24", `"csfleRequirement"`},
		{"a deprecation", "1.24", "1.23", `"deprecated": true`},
		{"a dependency", "1.3", "1.2", `"const": "cmap"`},
		{"an exclusion with a later key", "1.28", "1.27", `"accessToken"`},
	} {
		in, _ := set.JSON(test.in)
		before, _ := set.JSON(test.before)
		if !strings.Contains(string(in), test.text) || strings.Contains(string(before), test.text) {
			t.Errorf("%s: %s is to be in %s and not in %s", test.reason, test.text, test.in, test.before)
		}
	}
}

func TestNeeds(t *testing.T) {
	var needs []string
	for _, p := range New().Validate("1.2", parse(t, head+oneTest+"runOnRequirements: [{auth: 1}]")) {
		version, ok := p.Needs()
		needs = append(needs, fmt.Sprint(version, ok))
	}
	testkit.Equal(t, "versions", needs, []string{"1.3true", "false"})
}

// A Set can be used by many goroutines while it compiles.
func TestSetAtOnce(t *testing.T) {
	set, good := New(), parse(t, minimal)
	bad := parse(t, strings.Replace(minimal, "operations", "operation", 1))
	var all sync.WaitGroup
	for range 8 {
		for _, version := range Versions() {
			all.Go(func() {
				fine, wrong := set.Validate(version, good), set.Validate(version, bad)
				if v, ok := set.Lowest(good); len(fine) > 0 || len(wrong) != 2 || v != "1.0" || !ok {
					t.Errorf("%s: %v, %v, the lowest is %q", version, fine, wrong, v)
				}
			})
		}
	}
	all.Wait()
}

// The words of gojsonschema are passed on, should the walk ever find nothing:
// the other tests show that it does not happen.
func TestUnexplained(t *testing.T) {
	set, root := New(), parse(t, "[]")
	verdict, err := set.verdict(0, root)
	testkit.Check(t, err)
	if problems := unexplained(verdict, root); len(problems) != 1 || problems[0].Position.Line != 1 {
		t.Errorf("got %v", problems)
	}
}
