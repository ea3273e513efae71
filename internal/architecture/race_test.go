package architecture

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// starts finds what needs the race detector: a goroutine, or a lock that says that there are some.
var starts = regexp.MustCompile(`(?m)^\s*go (func|\w+[.(])|\.Go\(|\bsync\.|t\.Parallel\(|"golang\.org/x/sync`)

// The packages that .ci/test runs without the race detector start no goroutine, in their code or in their tests.
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
			text, err := os.ReadFile(name)
			testkit.Check(t, err)
			if found := starts.Find(text); found != nil {
				t.Errorf("%s has %q: .ci/test must run its package with the race detector", name, bytes.TrimSpace(found))
			}
		}
	}
	testkit.Equal(t, "50 files or more are seen", seen >= 50, true)
	for _, text := range []string{"\tgo func() {", "\tt.Parallel()", "\tgo serve(c)", "\tgo s.serve(c)", "\tworkers.Go(func() {", "\tmu sync.Mutex"} {
		testkit.Equal(t, text+" is found", starts.MatchString(text), true)
	}
}
