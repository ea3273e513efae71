//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// many is a suite whose reports need some room.
func many(n int) string {
	var suite strings.Builder
	suite.WriteString("description: \"many\"\nschemaVersion: \"1.10\"\ntests:\n")
	for i := range n {
		fmt.Fprintf(&suite, "  - {description: \"test %d\", operations: []}\n", i)
	}
	return suite.String()
}

// A quota that is used up in the middle of the reports: the run goes on to its
// end, tells each report that it could not write, and keeps the earlier ones.
func TestQuotaForReports(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	earlier, fresh, small := filepath.Join(dir, "earlier.json"), filepath.Join(dir, "fresh.tap"), filepath.Join(dir, "small.svg")
	if err := os.WriteFile(earlier, []byte("earlier"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Nothing that the process writes may be larger than 8 blocks of 512 bytes.
	limited := exec.Command(sh, "-c", `ulimit -f 8 || exit 99; exec "$@"`, "sh", self,
		"run", "--topology", "single", "--json", earlier, "--tap", fresh, "--badge", small, suiteFile(t, many(300)))
	limited.Env = append(os.Environ(), "UTR_TEST_AS_COMMAND=1")
	u := launch(t, limited)
	out := u.all(t)
	if code := u.exit(t); code == 99 {
		t.Skip("this shell cannot limit the size of files")
	} else if code != 3 {
		t.Errorf("exit code %d: %s", code, u.said())
	}
	for _, want := range []string{
		"writing the report to " + earlier + ": write " + earlier + ".partial: file too large; the earlier report there is as it was",
		"writing the report to " + fresh + ": write " + fresh + ".partial: file too large",
	} {
		if !strings.Contains(u.said(), want) {
			t.Errorf("%q is missing in %q", want, u.said())
		}
	}
	if !strings.HasSuffix(out, "300 passed, 0 failed, 0 skipped") {
		t.Errorf("the text is not whole: %q", out)
	}
	if text, err := os.ReadFile(earlier); err != nil || string(text) != "earlier" {
		t.Errorf("the earlier report: %v %q", err, text)
	}
	if text, err := os.ReadFile(small); err != nil || !strings.HasSuffix(strings.TrimSpace(string(text)), "</svg>") {
		t.Errorf("the report that was small enough: %v %q", err, text)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("the folder holds %v", left)
	}
}
