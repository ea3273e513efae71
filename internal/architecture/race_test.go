package architecture

import (
	"os/exec"
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
	format := "{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}\n{{end}}{{range .TestGoFiles}}{{$dir}}/{{.}}\n{{end}}{{range .XTestGoFiles}}{{$dir}}/{{.}}\n{{end}}"
	cmd := exec.Command("go", append([]string{"list", "-f", format}, strings.Fields(list[1])...)...)
	cmd.Dir = testkit.Root(t)
	out, err := cmd.Output()
	testkit.Check(t, err)
	files := strings.Fields(string(out))
	testkit.Equal(t, "50 files or more are seen", len(files) >= 50, true)
	for _, name := range files {
		text := read(t, strings.TrimPrefix(name, testkit.Root(t)+"/"))
		if found := starts.FindString(text); found != "" {
			t.Errorf("%s has %q: .ci/test must run its package with the race detector", name, strings.TrimSpace(found))
		}
	}
	for _, text := range []string{"\tgo func() {", "\tt.Parallel()", "\tgo serve(c)", "\tgo s.serve(c)", "\tworkers.Go(func() {", "\tmu sync.Mutex"} {
		testkit.Equal(t, text+" is found", starts.MatchString(text), true)
	}
}
