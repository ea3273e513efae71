//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// pre-commit runs each hook of .pre-commit-hooks.yaml on a good suite and on a bad one. Here utr is on the path; for
// users, pre-commit builds it.
func TestHooks(t *testing.T) {
	t.Parallel()
	program, manifest := testkit.PreCommit(t), filepath.Join(testkit.Root(t), ".pre-commit-hooks.yaml")
	dir := t.TempDir()
	command := func(name string, args ...string) (string, error) {
		c := exec.Command(name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "PRE_COMMIT_HOME="+filepath.Join(dir, ".git", "home"), "GIT_CONFIG_GLOBAL=/dev/null",
			"PATH="+filepath.Dir(utrtest.Command(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	must := func(name string, args ...string) {
		t.Helper()
		if out, err := command(name, args...); err != nil {
			t.Fatal(name, args, err, out)
		}
	}
	must(program, "validate-manifest", manifest)
	var hooks []map[string]any
	testkit.Check(t, yaml.Unmarshal([]byte(testkit.Read(t, manifest)), &hooks))
	for _, hook := range hooks {
		testkit.Equal(t, "language", hook["language"], "golang")
		hook["language"], hook["files"] = "system", "^suites/"
	}
	config, err := yaml.Marshal(map[string]any{"repos": []any{map[string]any{"repo": "local", "hooks": hooks}}})
	testkit.Check(t, err)
	write := func(files map[string]string) {
		for name, text := range files {
			path := filepath.Join(dir, name)
			testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
			testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
		}
		must("git", "add", "--all")
	}
	must("git", "init", "--quiet")
	good := "description: a\n\nschemaVersion: \"1.0\"\n\ntests:\n  - description: b\n    operations: []\n"
	write(map[string]string{".pre-commit-config.yaml": string(config), "other.yml": "a: [not, a, suite]\n",
		"suites/a.yml": good})
	must(utrtest.Command(t), "convert", filepath.Join(dir, "suites"))
	must("git", "add", "--all")
	out, err := command(program, "run", "--all-files", "--verbose")
	testkit.Equal(t, "good suites: "+out, err, nil)
	testkit.Equal(t, "hooks that passed", strings.Count(out, "Passed\n"), len(hooks))
	bad := map[string]struct{ reason, text, says string }{
		"utr-validate": {"an unknown key", good + "more: 1\n", "more"},
		"utr-fmt": {"another layout", strings.Replace(good, "\n  - ", "\n-   ", 1),
			"files were modified by this hook"},
		"utr-convert": {"a stale JSON file", strings.Replace(good, "description: b", "description: c", 1),
			"1 JSON files out of date"},
		"utr-schema-version": {"a version that is not needed", strings.Replace(good, "1.0", "1.4", 1),
			`declares "1.4", needs only 1.0`},
	}
	testkit.Equal(t, "hooks", len(hooks), len(bad))
	for id, r := range bad {
		write(map[string]string{"suites/a.yml": r.text})
		out, err := command(program, "run", id, "--all-files")
		testkit.Equal(t, id+" rejects "+r.reason+": "+out, err != nil, true)
		testkit.Contains(t, out, r.says)
	}
}
