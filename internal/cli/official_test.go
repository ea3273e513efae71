package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// refusals say what the refusal of an official file must match, by the end of
// its name; {} stands for the word before.
var refusals = []struct{ end, words string }{
	{"-additionalProperties", "unknown key"},
	{"operation-expectEvents-type", "unknown key in an operation"}, // it was one in drafts
	{"-type", "must be "},
	{"-enum", "must be one of "},
	{"-property-value", "must be one of "},
	{"-additionalPropertyType", "needs schemaVersion 1.27, this file dec"},
	{"schemaVersion-required", "schemaVersion is missing"},
	{"-items", `\[0\]: must be `},
	{"-required", `must have the key "{}"`},
	{"-minItems", "{}: must have at least one element"},
	{"-minProperties", "must have (exactly|at least) one key"},
	{"-maxProperties", "must have exactly one key, has 2"},
	{"-const", "{}: must be true, is false"},
	{"-pattern", "two or three numbers"},
	{"-invalidName", "unknown key in kmsProviders"},
	{"-events_conflicts_with_cmap_eventType", "unknown key in an expected event of type cmap"},
	{"-events_conflicts_with_default_eventType", "unknown key in an expected event of type command"},
	{"-events_conflicts_with_command_eventType", "unknown key in an expected event of type command"},
	{"-tlsOptions_not_supported", "unknown key in clientEncryptionOpts"},
	{"-conflicts_with_expectResult", `"(expectError|ignoreResultAndError)" and "expectResult" exclude each other`},
	{"-conflicts_with_expectError", `"ignoreResultAndError" and "expectError" exclude each other`},
	{"-conflicts_with_saveResultAsEntity", `"(expectError|ignoreResultAndError)" and "saveResultAsEntity" exclude each other`},
}

// refuses checks that validate and run refuse a file with words that match.
func (b *bench) refuses(t *testing.T, reason, line, want string) {
	t.Helper()
	for _, command := range []string{"validate ", "run "} {
		b.expect(t, reason+": "+command, command+line, ExitUsage, "")
		if text := b.out.String() + b.err.String(); b.ran != nil || !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s: %s: ran %t; nothing matches %q in\n%s", reason, command, b.ran != nil, want, text)
		}
	}
}

// Each official suite that is invalid is refused at a line and column, for the
// reason that its name gives.
func TestInvalidSuitesAreRefusedByTheirRule(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testkit.Official(t, "unified-test-format", "tests", "invalid"), "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	b := newBench(t)
	for _, file := range files {
		name, want := strings.TrimSuffix(filepath.Base(file), ".yml"), ""
		for _, r := range refusals {
			if stem, ok := strings.CutSuffix(name, r.end); ok && want == "" {
				want = strings.ReplaceAll(r.words, "{}", stem[strings.LastIndex(stem, "-")+1:])
			}
		}
		switch {
		case strings.HasPrefix(name, "entity-stream-"): // no version has such an entity
			want = "unknown key in an entity"
		case strings.HasPrefix(name, "expectedTracingSpans"): // they declare 1.26
			want = "needs schemaVersion 1.27, this file dec"
		case want == "":
			t.Errorf("%s: no rule is known for it", name)
		}
		b.refuses(t, name, file, `(?m)`+regexp.QuoteMeta(file)+`:[0-9]+:[0-9]+: error: .*`+want)
	}
}

// A file that cannot be a suite is refused in plain words, at the place of the
// mistake, also on standard input. More reasons are in source and specs.
func TestRefusals(t *testing.T) {
	const tests = "\ntests: [{description: x, operations: []}]\n"
	b := newBench(t)
	for _, r := range []struct{ reason, name, text, want string }{
		{"empty", "s.yml", "", "s.yml:1:1: error: the file is empty"},
		{"comments only", "s.yml", "# a\n# b\n", "s.yml:1:1: error: the file is empty"},
		{"bytes that are not text", "s.yml", "description: \xbb\n", "s.yml:1:14: error: byte 0xBB is not valid UTF-8"},
		{"a binary file", "s.yml", "\x7fELF\x00\x00\x02", "s.yml:1:1: error: malformed YAML: control characters"},
		{"a tab for an indentation", "s.yml", "description: a\n\tschemaVersion: \"1.0\"\n", "s.yml:2:2: error: malformed YAML: found a tab"},
		{"no schemaVersion", "s.yml", "description: a" + tests, "s.yml:1:1: error: schemaVersion is missing; the newest that is known is 1.28"},
		{"not a suite", "s.yml", "a: 1\n", "s.yml:1:1: error: this is not a unified suite: it has no schemaVersion, and the shape of another format"},
		{"an extension that no suite has", "s.txt", "a: 1\n", "is no suite: the extension must be .yml, .yaml or .json"},
	} {
		write(t, r.name, r.text)
		b.refuses(t, r.reason, r.name, regexp.QuoteMeta(r.want))
		if filepath.Ext(r.name) == ".yml" { // standard input is read as YAML
			b.Stdin = strings.NewReader(r.text)
			b.expect(t, r.reason+", on standard input", "run -", ExitUsage, strings.TrimPrefix(r.want, r.name))
		}
	}
	for name, text := range map[string]string{
		"d/of/another.yml": "a: 1\n", "d/of/a/third.json": `{"tests": [{"uri": "mongodb://a"}]}`,
		"d/t/valid-pass/s.yml": "description: a\nschemaVersion: \"1.0\"" + tests, "d/t/invalid/s.yml": "description: a" + tests,
		"b.yml": "description: x\nschemaVersion: \"1.0\"\ntests: 3\n", "a.yml": "description: 1\nschemaVersion: \"1.0\"\ntests: 3\n",
	} {
		write(t, name, text)
	}
	left := "2 files of other formats are left out; 1 invalid suite is refused, as it must be"
	b.expect(t, "a directory with other files", "validate d", 0, "1 valid, 0 invalid: 0 errors, 1 warnings; "+left)
	b.expect(t, "to be run", "run d", 0, "utr: "+left)
	b.expect(t, "in the order of files and places", "validate b.yml a.yml", ExitUsage, "a.yml:1:14: … a.yml:3:8: … b.yml:3:8: … 0 valid, 2 invalid")
	b.expect(t, "as JSON", "validate --json b.yml a.yml", ExitUsage, `"line":1,"column":14 … "severity":"error"`)
	testkit.Equal(t, "lines of JSON", strings.Count(b.out.String(), "\n"), 3)
}
