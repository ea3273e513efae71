package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/shared"
)

// rules tell by the end of an official file's name which words its refusal
// has to say; {} stands for the part of the name before.
var rules = []struct{ end, words string }{
	{"-additionalProperties", "unknown key"},
	{"-type", "must be "},
	{"-items", "[0]: must be "},
	{"-required", `must have the key "{}"`},
	{"-minItems", "{}: must have at least one element"},
	{"-minProperties", "must have (exactly|at least) one key"},
	{"-maxProperties", "must have exactly one key, has 2"},
	{"-const", "{}: must be true, is false"},
	{"-pattern", "two or three numbers"},
	{"-invalidName", "unknown key in kmsProviders"},
	{"-events_conflicts_with_cmap_eventType", "unknown key in an expected event of type cmap"},
	{"-events_conflicts_with_default_eventType", "unknown key in an expected event of type command"},
	{"-conflicts_with_expectResult", `"expectError" and "expectResult" exclude each other`},
	{"-conflicts_with_expectError", `"ignoreResultAndError" and "expectError" exclude each other`},
	{"-conflicts_with_saveResultAsEntity", `"ignoreResultAndError" and "saveResultAsEntity" exclude each other`},
}

// otherwise are the files that break another rule than their name says.
var otherwise = map[string]string{
	"entity-stream-":       `unknown key in an entity`,                // there is no such entity in any version
	"expectedTracingSpans": `needs schemaVersion 1.27, this file dec`, // and they declare 1.26
}

// wordsFor gives a pattern of what the refusal of an official file has to say.
func wordsFor(name string) (pattern string, found bool) {
	for start, words := range otherwise {
		if strings.HasPrefix(name, start) {
			return regexp.QuoteMeta(words), true
		}
	}
	for _, r := range rules {
		if stem, ok := strings.CutSuffix(name, r.end); ok {
			part := stem[strings.LastIndex(stem, "-")+1:]
			words := regexp.QuoteMeta(strings.ReplaceAll(r.words, "{}", part))
			return strings.NewReplacer(`\(`, "(", `\|`, "|", `\)`, ")").Replace(words), true
		}
	}
	return "", false
}

// Each official suite that is invalid is refused, by run as by validate, at a
// line and column and by the rule that it is there for.
func TestInvalidSuitesAreRefusedByTheirRule(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Path(t, "specifications", "unified-test-format", "tests", "invalid"), "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yml")
		t.Run(name, func(t *testing.T) {
			words, found := wordsFor(name)
			if !found {
				t.Fatal("no rule is known for it")
			}
			want := regexp.MustCompile(`(?m)` + regexp.QuoteMeta(file) + `:[0-9]+:[0-9]+: error: .*` + words)
			for _, command := range []string{"validate", "run"} {
				b := newBench()
				code := b.Main(context.Background(), []string{command, file})
				if text := b.out.String() + b.err.String(); code != ExitUsage || !want.MatchString(text) {
					t.Errorf("%s: exit code %d; %q is missing in\n%s", command, code, want, text)
				}
				if b.ran != nil {
					t.Error("it ran")
				}
			}
		})
	}
}

// What cannot be a suite is refused in a person's words, at its place.
func TestRefusals(t *testing.T) {
	const tests = "\ntests: [{description: x, operations: []}]\n"
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		was, is := string(rune('0'+i-1)), string(rune('0'+i))
		bomb.WriteString("a" + is + ": &a" + is + " [" + strings.Repeat("*a"+was+", ", 9) + "*a" + was + "]\n")
	}
	for _, r := range []struct{ reason, name, text, want string }{
		{"nothing in it", "s.yml", "", "s.yml:1:1: error: the file is empty"},
		{"comments only", "s.yml", "# a\n# b\n", "s.yml:1:1: error: the file is empty"},
		{"bytes that are no text", "s.yml", "description: \xbb\n", "s.yml:1:14: error: byte 0xBB is not valid UTF-8"},
		{"a binary file", "s.yml", "\x7fELF\x00\x00\x02", "s.yml:1:1: error: malformed YAML: control characters"},
		{"a tab for an indentation", "s.yml", "description: a\n\tschemaVersion: \"1.0\"\n", "s.yml:2:2: error: malformed YAML: found a tab"},
		{"a key twice", "s.yml", "description: a\ndescription: b" + tests, `s.yml:2:1: error: duplicate key "description"; it is first given in line 1`},
		{"a key twice, in JSON", "s.json", `{"tests": [], "tests": []}`, `s.json:1:15: error: duplicate key "tests"`},
		{"aliases that explode", "s.yml", bomb.String() + "schemaVersion: \"1.0\"" + tests, "values once its aliases are expanded"},
		{"JSON cut short", "s.json", `{"tests": `, "error: the JSON document is not complete"},
		{"two documents", "s.yml", "description: a\n---\ndescription: b\n", "s.yml:2:1: error: a second YAML document starts here"},
		{"more than fits", "s.yml", strings.Repeat("# comment\n", 1<<21), "s.yml:1:1: error: the file is larger than the limit of 16777216 bytes"},
		{"no schemaVersion", "s.yml", "description: a" + tests, "s.yml:1:1: error: schemaVersion is missing; the newest that is known is 1.28"},
		{"a schemaVersion of one number", "s.yml", "schemaVersion: \"1\"" + tests, `s.yml:1:16: error: schemaVersion: schemaVersion "1" is not a version`},
		{"a schemaVersion that YAML takes for a number", "s.yml", "schemaVersion: 1.10" + tests, "s.yml:1:16: error: schemaVersion: schemaVersion must be a string"},
		{"another major version", "s.yml", "schemaVersion: \"2.0\"" + tests, "is of another major version; known are 1.0 to 1.28"},
		{"a newer version", "s.yml", "schemaVersion: \"1.29\"" + tests, "is newer than 1.28, the newest that is known"},
		{"a patch of the newest version", "s.yml", "schemaVersion: \"1.28.1\"" + tests, "is newer than 1.28, the newest that is known"},
		{"neither schemaVersion nor tests", "s.yml", "a: 1\n", "s.yml:1:1: error: this is no suite: it has neither schemaVersion nor tests"},
		{"an extension that no suite has", "s.txt", "a: 1\n", "is no suite: the extension must be .yml, .yaml or .json"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), r.name)
			write(t, file, r.text)
			for _, command := range []string{"run", "validate"} {
				b := newBench()
				code := b.Main(context.Background(), []string{command, file})
				if text := b.out.String() + b.err.String(); code != ExitUsage || !strings.Contains(text, r.want) {
					t.Errorf("%s: exit code %d; %q is missing in\n%s", command, code, r.want, text)
				}
			}
			b := newBench()
			b.Stdin = strings.NewReader(r.text)
			if filepath.Ext(r.name) != ".yml" { // standard input has no name, and is read as YAML
				return
			}
			want := strings.TrimPrefix(r.want, r.name)
			if code := b.Main(context.Background(), []string{"run", "-"}); code != ExitUsage || !strings.Contains(b.err.String(), want) {
				t.Errorf("standard input: exit code %d; %q is missing in\n%s", code, want, b.err.String())
			}
		})
	}
	empty := t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(empty, "below", "readme.md"), "no suite")
	b := newBench()
	if code := b.Main(context.Background(), []string{"run", empty}); code != ExitUsage || !strings.Contains(b.err.String(), "no suite found in") {
		t.Errorf("a directory without suites: exit code %d: %s", code, b.err.String())
	}
}
