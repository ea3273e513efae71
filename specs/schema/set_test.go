package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"github.com/unified-test-runner/utr/internal/oracle"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/source"
)

const minimal = "description: a\nschemaVersion: '1.0'\ntests: [{description: t, operations: []}]\n"

func TestVersions(t *testing.T) {
	all := Versions()
	if len(all) != newest+1 || all[0] != "1.0" || all[newest] != Newest {
		t.Errorf("versions are %v", all)
	}
	const notAVersion = `is not a version: two or three numbers joined by dots, such as "1.28"`
	const newer = "is newer than 1.28, the newest that is known"
	const otherMajor = "is of another major version; known are 1.0 to 1.28"
	set := New()
	root := parse(t, minimal)
	for _, r := range []struct {
		reason, version string
		want            string // "" if it can be validated against
		kind            Reason
	}{
		{"the first", "1.0", "", 0},
		{"the newest", Newest, "", 0},
		{"a patch makes no difference", "1.5.1", "", 0},
		{"a patch of the newest that is 0", "1.28.0", "", 0},
		{"a leading zero, which the schema allows", "01.05", "", 0},
		{"a patch of the newest", "1.28.1", newer, TooNew},
		{"newer", "1.29", newer, TooNew},
		{"compared as numbers, not as text", "1.100", newer, TooNew},
		{"larger than an int", "1.99999999999999999999", newer, TooNew},
		{"a later major version", "2.0", otherMajor, OtherMajor},
		{"an earlier major version", "0.1", otherMajor, OtherMajor},
		{"a major version larger than an int", "99999999999999999999.0", otherMajor, OtherMajor},
		{"one component", "1", notAVersion, Malformed},
		{"four components", "1.2.3.4", notAVersion, Malformed},
		{"nothing", "", notAVersion, Malformed},
		{"a sign", "1.-1", notAVersion, Malformed},
		{"a line end", "1.0\n", notAVersion, Malformed},
	} {
		want := ""
		if r.want != "" {
			want = fmt.Sprintf("schemaVersion %q %s", r.version, r.want)
		}
		_, noJSON := set.JSON(r.version)
		for name, err := range map[string]error{"Check": Check(r.version), "Compile": set.Compile(r.version), "JSON": noJSON} {
			var e *VersionError
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %s gives %v", r.reason, name, err)
			case want != "" && (!errors.As(err, &e) || e.Error() != want || e.Reason != r.kind || e.Version != r.version):
				t.Errorf("%s: %s gives %v, want %s", r.reason, name, err, want)
			}
		}
		problems := set.Validate(r.version, root)
		switch {
		case want == "" && len(problems) > 0:
			t.Errorf("%s: %v", r.reason, problems)
		case want != "" && (len(problems) != 1 || problems[0].String() != "suite.yml:2:16: schemaVersion: "+want):
			t.Errorf("%s: %v", r.reason, problems)
		}
	}
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

// On any JSON value, Validate gives the verdict that gojsonschema gives on the
// value that encoding/json reads.
func FuzzValidate(f *testing.F) {
	for i, r := range append(explained(f), tableRows(f)...) {
		if i%23 == 0 {
			text, err := json.Marshal(plain(parse(f, r.file)))
			testkit.Check(f, err)
			f.Add(text, uint8(i))
		}
	}
	f.Add([]byte(`null`), uint8(0))
	f.Add([]byte(`{"tests": 1e400}`), uint8(3))
	set := New()
	f.Fuzz(func(t *testing.T, text []byte, minor uint8) {
		minor %= newest + 1
		raw, err := oracle.ReadJSON(text)
		if err != nil || strings.ContainsAny(string(text), "eE") && hugeNumber(raw) {
			return // no Value has such a number
		}
		root := oracle.Value(raw)
		schema, err := set.compiled[minor]()
		testkit.Check(t, err)
		result, err := schema.Validate(gojsonschema.NewRawLoader(raw))
		testkit.Check(t, err)
		problems, explained := set.Validate(versionString(int(minor)), root), set.explain(int(minor), root)
		if result.Valid() != (len(problems) == 0) || result.Valid() != (len(explained) == 0) {
			t.Errorf("at 1.%d gojsonschema: %v, Validate: %v, the walk: %v", minor, result.Errors(), problems, explained)
		}
		if slices.ContainsFunc(explained, func(p Problem) bool { return p.Message == "" }) {
			t.Errorf("a problem without a message: %+v", explained)
		}
		lowest, _, ok := set.LowestFor(root)
		if ok && len(set.Validate(lowest, root)) > 0 || ok != (len(set.Validate(Newest, root)) == 0) {
			t.Errorf("LowestFor gives %q, %v", lowest, ok)
		}
	})
}

// hugeNumber reports whether float64 does not have one of the numbers.
func hugeNumber(raw any) bool {
	switch raw := raw.(type) {
	case json.Number:
		f, err := raw.Float64()
		return err != nil || f == 0 && strings.Trim(raw.String(), "-0.eE+") != "" || f != 0 && math.Abs(f) < 1e-300 || math.Abs(f) >= 1<<53
	case []any:
		return slices.ContainsFunc(raw, hugeNumber)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(raw)), hugeNumber)
	}
	return false
}
