// Package architecture compares the project with docs/architecture.md and other pages.
package architecture

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// starts matches code for which tests need the race detector: goroutines and locks, but not a sync.Pool.
var starts = regexp.MustCompile(`(?m)^\s*go (func|\w+[.(])|\.Go\(|\bsync\.[^P]|t\.Parallel\(|"golang\.org/x/sync`)

// The packages that .ci/test runs without the race detector start no goroutines, even in tests.
func TestWithoutTheRaceDetector(t *testing.T) {
	list := regexp.MustCompile(`(?m)^single="(.*)"$`).FindStringSubmatch(read(t, ".ci/test"))
	if list == nil {
		t.Fatal(".ci/test has no list")
	}
	cmd := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, strings.Fields(list[1])...)...)
	cmd.Dir = testkit.Root(t)
	out, err := cmd.Output()
	testkit.Check(t, err)
	seen := 0
	for _, dir := range strings.Fields(string(out)) {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		testkit.Check(t, err)
		seen += len(files)
		for _, name := range files {
			text := testkit.Read(t, name)
			if found := starts.FindString(text); found != "" {
				t.Errorf("%s has %q: .ci/test must run the package with the race detector", name, strings.TrimSpace(found))
			}
		}
	}
	testkit.Equal(t, "50 files or more", seen >= 50, true)
	for _, text := range []string{"\tgo func() {", "\tt.Parallel()", "\tgo serve(c)", "\tgo s.serve(c)",
		"\tworkers.Go(func() {", "\tmu sync.Mutex"} {
		testkit.Equal(t, text+" is found", starts.MatchString(text), true)
	}
	testkit.Equal(t, "a pool is found", starts.MatchString("var steps = sync.Pool{}"), false)
}
