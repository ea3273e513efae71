//go:build unix

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// pre-commit runs the hook of .pre-commit-hooks.yaml from a clone of a repository, on good and on bad suites. A program
// stands in for go: the hook builds utr, once, and no other program.
func TestHooks(t *testing.T) {
	t.Parallel()
	program, dir, hooks := testkit.PreCommit(t), t.TempDir(), t.TempDir()
	bin := script(t, "go", `echo "$*" >>"$CALLS"; [ "$1" = build ] || exit 0
while [ "$1" != -o ]; do [ "$1" != -C ] || root=$2; shift; done
mkdir -p "$root/build" && cp "$UTR" "$root/$2"`)
	calls := filepath.Join(dir, ".git", "calls")
	command := func(in, name string, args ...string) (string, error) {
		c := exec.Command(name, args...)
		c.Dir = in
		c.Env = append(os.Environ(), "PRE_COMMIT_HOME="+filepath.Join(dir, ".git", "home"), "GIT_CONFIG_GLOBAL=/dev/null",
			"UTR="+utrtest.Command(t), "CALLS="+calls, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	must := func(in, name string, args ...string) string {
		t.Helper()
		out, err := command(in, name, args...)
		if err != nil {
			t.Fatal(name, args, err, out)
		}
		return strings.TrimSpace(out)
	}
	write := func(in string, files map[string]string) {
		for name, text := range files {
			path := filepath.Join(in, name)
			testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
			testkit.Check(t, os.WriteFile(path, []byte(text), 0o755))
		}
		must(in, "git", "add", "--all")
	}
	must(hooks, "git", "init", "--quiet")
	write(hooks, map[string]string{
		".pre-commit-hooks.yaml": testkit.Read(t, filepath.Join(testkit.Root(t), ".pre-commit-hooks.yaml")),
		".ci/hook":               testkit.Read(t, filepath.Join(testkit.Root(t), ".ci", "hook"))})
	must(hooks, "git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "hooks")
	must(hooks, program, "validate-manifest", ".pre-commit-hooks.yaml")
	config := func(args string) string {
		return "repos: [{repo: " + hooks + ", rev: " + must(hooks, "git", "rev-parse", "HEAD") +
			", hooks: [{id: utr-check, files: ^suites/" + args + "}]}]\n"
	}
	const good = `description: a

schemaVersion: "1.0"

createEntities:
  - client: { id: c }

tests:
  - description: b
    operations:
      - { name: listDatabaseNames, object: c }
`
	must(dir, "git", "init", "--quiet")
	write(dir, map[string]string{".pre-commit-config.yaml": config(""), "other.yml": "a: [not, a, suite]\n",
		"suites/a.yml": good})
	must(dir, utrtest.Command(t), "convert", "suites")
	json := testkit.Read(t, filepath.Join(dir, "suites", "a.json"))
	write(dir, nil)
	out, err := command(dir, program, "run", "--all-files", "--verbose")
	testkit.Equal(t, "good suites: "+out, err, nil)
	for _, r := range []struct{ reason, text, says string }{
		{"an unknown key", good + "more: 1\n", "more"},
		{"a warning", strings.Replace(good, "listDatabaseNames", "ping", 1), "(unknown-operation)"},
		{"another layout", strings.Replace(good, "\n  - ", "\n-   ", 1), "is not formatted"},
		{"a stale JSON file", strings.Replace(good, "description: b", "description: c", 1), "is out of date"},
		{"a version that is not needed", strings.Replace(good, `"1.0"`, `"1.4"`, 1), `declares "1.4", needs only 1.0`},
	} {
		write(dir, map[string]string{"suites/a.yml": r.text, "suites/a.json": json})
		out, err := command(dir, program, "run", "utr-check", "--all-files")
		testkit.Equal(t, "it rejects "+r.reason+": "+out, err != nil, true)
		testkit.Contains(t, out, r.says)
	}
	write(dir, map[string]string{".pre-commit-config.yaml": config(", args: [--fix]")})
	out, err = command(dir, program, "run", "--all-files")
	testkit.Equal(t, "it corrects the suite: "+out, err != nil, true)
	testkit.Contains(t, out, "files were modified by this hook")
	testkit.Equal(t, "the suite", testkit.Read(t, filepath.Join(dir, "suites", "a.yml")), good)
	built := strings.Split(strings.TrimSpace(testkit.Read(t, calls)), "\n")
	testkit.Equal(t, "builds", len(built), 1)
	testkit.Contains(t, built[0], " -o build/utr ./cmd/utr")
}
