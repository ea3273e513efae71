package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The programs of a release hand over their words as they are, whatever the
// path of utr is, with the version in the environment.
func TestReleaseScript(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh")
	}
	dir := filepath.Join(t.TempDir(), "it's a \"folder\" $HOME")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(dir, "utr")
	if err := os.WriteFile(self, []byte("#!/bin/sh\necho \"$UTR_SERVER_VERSION\"\nfor w in \"$@\"; do echo \"$w\"; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "mongos")
	if err := os.WriteFile(script, []byte(releaseScript(self, "mongos", "4.4")), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(script, "--configdb", "a b", "*").CombinedOutput()
	if want := "4.4\nmongos\n--configdb\na b\n*\n"; err != nil || string(out) != want {
		t.Errorf("%v: got %q, not %q", err, out, want)
	}
}

func TestRelease(t *testing.T) {
	for _, row := range []struct {
		reason string
		args   []string
		code   int
		want   string // in what is printed
	}{
		{"no folder", []string{"release"}, ExitUsage, "name one folder"},
		{"two folders", []string{"release", "a", "b"}, ExitUsage, "name one folder"},
		{"a version that there is not", []string{"release", "a", "--server-version", "3.6"}, ExitUsage, "it must be one of"},
		{"a folder that cannot be", []string{"release", "/dev/null/x"}, ExitBroken, "cannot make a release"},
	} {
		var out, errs strings.Builder
		p := &Program{Stdout: &out, Stderr: &errs}
		if code := p.Main(t.Context(), row.args); code != row.code || !strings.Contains(errs.String(), row.want) {
			t.Errorf("%s: exit code %d, %s", row.reason, code, errs.String())
		}
	}
	dir := t.TempDir()
	var out strings.Builder
	p := &Program{Stdout: &out, Stderr: os.Stderr}
	if code := p.Main(t.Context(), []string{"release", dir, "--server-version", "7.0"}); code != ExitOK || strings.TrimSpace(out.String()) != filepath.Join(dir, "bin") {
		t.Errorf("exit code %d, %s", code, &out)
	}
	for _, name := range []string{"mongod", "mongos"} {
		info, err := os.Stat(filepath.Join(dir, "bin", name))
		if err != nil || info.Mode()&0o111 != 0o111 {
			t.Errorf("%s can not be run: %v", name, err)
		}
	}
}
