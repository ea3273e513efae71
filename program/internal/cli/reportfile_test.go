package cli

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// A link to a report stays a link, and a read-only file is not replaced.
func TestReportsInOddPlaces(t *testing.T) {
	b := newBench(t)
	b.notes = []result.Note{finished("a", result.Passed)}
	write(t, "a.json", "earlier")
	testkit.Check(t, os.Symlink("a.json", "b.json"))
	b.expect(t, "a link", "run --json b.json suite.yml", 0, "")
	to, err := os.Readlink("b.json")
	testkit.Check(t, err)
	testkit.Equal(t, "the link leads to", to, "a.json")
	testkit.Contains(t, testkit.Read(t, "a.json"), `"passed"`)
	if os.Getuid() == 0 {
		return // root may write any file
	}
	testkit.Check(t, os.Chmod("a.json", 0o400))
	b.expect(t, "a read-only file", "run --json a.json suite.yml", ExitBroken, "cannot write a report")
}

// A full disk breaks the run. The run names each incomplete report. The other reports are complete.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for _, k := range reportKinds() {
		for _, brokenTests := range []int{0, 1} {
			b := newBench(t)
			b.notes = []result.Note{finished("a", result.Failed)}
			b.summary = result.Summary{Passed: 2, Broken: brokenTests}
			other, end := "--junit other", "</testsuites>"
			if k.flag == "junit" {
				other, end = "--html other", "</html>"
			}
			last := "2 passed, 0 failed, 0 skipped"
			if brokenTests > 0 {
				last = "2 passed, 0 failed, 1 broken, 0 skipped"
			}
			b.expect(t, k.flag, "run --"+k.flag+" /dev/full "+other+" suite.yml", ExitBroken,
				last+"\n … writing the report to /dev/full: ")
			lacks(t, k.flag+": a device has no earlier report", b.err.String(), "earlier report")
			testkit.Equal(t, k.flag+": the other report is complete",
				strings.HasSuffix(strings.TrimSpace(testkit.Read(t, "other")), end), true)
		}
	}
}

// A run and a matrix that are interrupted while they load their suites replace earlier reports, and name every test.
func TestInterruptedWhileLoading(t *testing.T) {
	for _, line := range []string{"run --topology single --json a.json suite.yml", "matrix night.yml --json a.json"} {
		b := realBench(t)
		write(t, "a.json", "earlier")
		write(t, "night.yml", "clusters: {name: c, embedded: single}\nsuites: [{name: s, paths: [suite.yml]}]\n")
		b.ctx, b.interrupt = context.WithCancel(t.Context())
		b.interrupt()
		b.expect(t, line, line, ExitBroken, "interrupted")
		testkit.Contains(t, testkit.Read(t, "a.json"), `"skipKind":"not-run","reason":"interrupted`, `"breaks":[{`)
	}
}

// A report names the commit that CI tested, and a merged report keeps it.
func TestReportOfCommit(t *testing.T) {
	for _, r := range []struct {
		reason, variable, commit string
	}{
		{"GitHub Actions", "GITHUB_SHA", "1a2b"},
		{"GitLab", "CI_COMMIT_SHA", "3c4d"},
		{"no CI", "HOME", ""},
	} {
		b := newBench(t)
		b.env[r.variable] = r.commit
		b.notes = []result.Note{result.RunStarted{}, finished("a", result.Passed)}
		b.expect(t, r.reason, "run --json a.json suite.yml", 0, "")
		delete(b.env, r.variable)
		b.expect(t, r.reason, "merge --json b.json a.json", 0, "")
		for _, file := range []string{"a.json", "b.json"} {
			run, err := readReport(file)
			testkit.Check(t, err)
			testkit.Equal(t, r.reason+": the commit in "+file, run.Run.Commit, r.commit)
		}
	}
}
