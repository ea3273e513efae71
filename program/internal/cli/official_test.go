package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// refusals are patterns of the errors for official invalid files, by the end of the file name after the word {}.
var refusals = []struct{ end, words string }{
	{"-additionalProperties", "unknown key"},
	{"operation-expectEvents-type", "unknown key in an operation"}, // it was one in drafts
	{"-type", "must be "},
	{"-enum", "must be one of "},
	{"-property-value", "must be one of "},
	{"-additionalPropertyType", "requires schemaVersion 1.27; this file dec"},
	{"schemaVersion-required", "schemaVersion is missing"},
	{"-items", `\[0\]: must be `},
	{"-required", `must have the key "{}"`},
	{"-minItems", "{}: must have at least one element"},
	{"-minProperties", "must have (exactly|at least) one key"},
	{"-maxProperties", "must have exactly one key, but has 2"},
	{"-const", "{}: must be true, not false"},
	{"-pattern", "two or three numbers"},
	{"-invalidName", "unknown key in kmsProviders"},
	{"-events_conflicts_with_cmap_eventType", "unknown key in an expected event of type cmap"},
	{"-events_conflicts_with_default_eventType", "unknown key in an expected event of type command"},
	{"-events_conflicts_with_command_eventType", "unknown key in an expected event of type command"},
	{"-tlsOptions_not_supported", "unknown key in clientEncryptionOpts"},
	{"-conflicts_with_expectResult", `"(expectError|ignoreResultAndError)" and "expectResult" are mutually exclusive`},
	{"-conflicts_with_expectError", `"ignoreResultAndError" and "expectError" are mutually exclusive`},
	{"-conflicts_with_saveResultAsEntity",
		`"(expectError|ignoreResultAndError)" and "saveResultAsEntity" are mutually exclusive`},
}

// refuses checks that validate and run reject a file with a matching error.
func (b *bench) refuses(t *testing.T, reason, line, want string) {
	t.Helper()
	for _, command := range []string{"validate ", "run "} {
		b.expect(t, reason+": "+command, command+line, ExitUsage, "")
		if text := b.out.String() + b.err.String(); b.ran != nil || !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s: %s: ran %t; nothing matches %q in\n%s", reason, command, b.ran != nil, want, text)
		}
	}
}

// Each invalid official suite is rejected at a line and column, for the reason in its name.
func TestInvalidOfficialSuites(t *testing.T) {
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
			want = "requires schemaVersion 1.27; this file dec"
		case want == "":
			t.Errorf("%s: no rule is known for it", name)
		}
		b.refuses(t, name, file, `(?m)`+regexp.QuoteMeta(file)+`:[0-9]+:[0-9]+: error: .*`+want)
	}
}
