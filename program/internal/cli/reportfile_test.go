package cli

import (
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
