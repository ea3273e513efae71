package testkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake is a test that records its result.
type fake struct {
	testing.TB
	failed, skipped bool
}

func (f *fake) Helper()               {}
func (f *fake) Logf(string, ...any)   {}
func (f *fake) end(how *bool)         { *how = true; panic(f) }
func (f *fake) Errorf(string, ...any) { f.failed = true }
func (f *fake) Fatal(...any)          { f.end(&f.failed) }
func (f *fake) Fatalf(string, ...any) { f.end(&f.failed) }
func (f *fake) Skip(...any)           { f.end(&f.skipped) }
func (f *fake) run(test func(*fake))  { defer func() { _ = recover() }(); test(f) }

func TestHowTestsEnd(t *testing.T) {
	wrong := errors.New("the disk is full")
	noPython := map[string]string{"CI": "", "UTR_PYTHON": "nowhere/python"}
	for _, r := range []struct {
		reason          string
		env             map[string]string
		test            func(*fake)
		failed, skipped bool
	}{
		{"a missing program skips the test on a developer's machine", noPython, func(f *fake) { Python(f, "os") },
			false, true},
		{"a missing program fails in CI", map[string]string{"CI": "true", "UTR_PYTHON": "nowhere/python"},
			func(f *fake) { Python(f, "os") }, true, false},
		{"a program without its module is missing", map[string]string{"CI": "true"},
			func(f *fake) { Python(f, "no_such_module") }, true, false},
		{"the official suites may be absent in CI", map[string]string{"CI": "true", "UTR_SPECIFICATIONS": "nowhere"},
			func(f *fake) { Official(f, "crud") }, false, true},
		{"so may the official schemas", map[string]string{"CI": "true", "UTR_SPECIFICATIONS": "nowhere"},
			func(f *fake) { OfficialSchema(f, "1.0") }, false, true},
		{"a seed that is not a number", map[string]string{"UTR_SEED": "x"}, func(f *fake) { Seed(f) }, true, false},
		{"a seed", map[string]string{"UTR_SEED": "7"}, func(f *fake) { Equal(f, "", Seed(f), 7) }, false, false},
		{"no error", nil, func(f *fake) { Check(f, nil) }, false, false},
		{"an error", nil, func(f *fake) { Check(f, wrong) }, true, false},
		{"equal lists", nil, func(f *fake) { Equal(f, "", []int{1}, []int{1}) }, false, false},
		{"unequal lists", nil, func(f *fake) { Equal(f, "", []int{1}, []int{2}) }, true, false},
		{"a number and its text", nil, func(f *fake) { Equal[any](f, "", 1, "1") }, true, false},
		{"lists of a number and of its text", nil, func(f *fake) { Equal(f, "", []any{1}, []any{"1"}) }, true, false},
		{"all parts", nil, func(f *fake) { ErrorContains(f, wrong, "disk", "full") }, false, false},
		{"a part is missing", nil, func(f *fake) { ErrorContains(f, wrong, "disk", "empty") }, true, false},
		{"no error", nil, func(f *fake) { ErrorContains(f, nil) }, true, false},
		{"an error with the text, or no error without a text", nil,
			func(f *fake) { WantError(f, "", wrong, "full"); WantError(f, "", nil, "") }, false, false},
		{"an error with another text", nil, func(f *fake) { WantError(f, "", wrong, "empty") }, true, false},
		{"an unexpected error", nil, func(f *fake) { WantError(f, "", wrong, "") }, true, false},
		{"a missing error", nil, func(f *fake) { WantError(f, "", nil, "disk") }, true, false},
		{"the same fields", nil, func(f *fake) { Same(f, "", []int{1}, []int{1}) }, false, false},
		{"different fields", nil, func(f *fake) { Same(f, "", []any{1}, []any{"1"}) }, true, false},
		{"a password", nil, func(f *fake) { Contains(f, "it is "+Secret) }, true, false},
		{"no stories", nil, func(f *fake) { Stories(f, "nowhere/*.txt") }, true, false},
		{"the text of the story", nil, func(f *fake) { Stories(f, "testdata/*.txt")[1].compare(f, "> one\n    two\n") },
			false, false},
		{"another text", nil, func(f *fake) { Stories(f, "testdata/*.txt")[1].compare(f, "> one\n") }, true, false},
		{"a story without a title", nil, func(f *fake) { Story{Text: "> one\n"}.mustHaveTitle(f) }, true, false},
	} {
		t.Run(r.reason, func(t *testing.T) {
			for name, value := range r.env {
				t.Setenv(name, value)
			}
			f := &fake{TB: t}
			f.run(r.test)
			if f.failed != r.failed || f.skipped != r.skipped {
				t.Errorf("failed %v, skipped %v", f.failed, f.skipped)
			}
		})
	}
}

func TestOfficialLayouts(t *testing.T) {
	for _, folder := range []string{"unified-test-format", "unified-test-format/schema"} {
		root := t.TempDir()
		file := filepath.Join(root, folder, "schema-1.0.json")
		Check(t, os.MkdirAll(filepath.Dir(file), 0o755))
		Check(t, os.WriteFile(file, nil, 0o644))
		t.Setenv("UTR_SPECIFICATIONS", root)
		Equal(t, folder, OfficialSchema(t, "1.0"), file)
	}
}

func TestTranscriptAgrees(t *testing.T) {
	for _, r := range []struct {
		output, wanted string
		agrees         bool
	}{
		{"a\nb", "a\nb", true},
		{"a\nb", "a", false},
		{"a b c d", "a … c …", true},
		{"a b c d", "… d … c", false},
		{"a b", "b …", false},
	} {
		Equal(t, r.output+" agrees with "+r.wanted, Agrees(r.output, r.wanted), r.agrees)
	}
}

func TestCases(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cases.txt")
	const text = "== a part\n# a reason\na -> b\nc\n\td -> e\n\n# another -> one\nf\n-> g h\n"
	Check(t, os.WriteFile(file, []byte(text), 0o600))
	Equal(t, "the cases", fmt.Sprint(Cases(t, file)),
		"[{a reason a b == a part\n# a reason\na -> } {a reason c d e c\n\td -> } {another -> one f g h \n# another -> one\nf\n-> }]")
	t.Setenv("UTR_UPDATE", "1")
	PlayCases(t, file, func(_ *testing.T, in string) string { return strings.ToUpper(in) })
	Equal(t, "the updated file", Read(t, file),
		"== a part\n# a reason\na -> A\nc\n\td -> C D\n\n# another -> one\nf\n-> F\n")
	f := &fake{TB: t}
	Check(t, os.WriteFile(file, []byte("x -> y\nz\n"), 0o600))
	if f.run(func(f *fake) { Cases(f, file) }); !f.failed {
		t.Error("a case without output is accepted")
	}
}
