package clients

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// fileOfPage matches a file in a page: its name, and its text.
var fileOfPage = regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```\\w+\n(.*?)```\n")

// If a framework is not installed, a stand-in executes the session fixture or the root hooks as the framework would.
const (
	likePytest = `import pathlib, sys, tempfile, types
pytest = types.ModuleType("pytest")
pytest.fixture = lambda scope: lambda function: function
sys.modules["pytest"] = pytest
import conftest, test_people
class Factory:
    def mktemp(self, name):
        return pathlib.Path(tempfile.mkdtemp(prefix=name))
fixture = conftest.mongodb_uri(Factory())
try:
    test_people.test_people_are_counted(next(fixture))
    print("1 passed")
finally:
    fixture.close()
`
	likeMocha = `const tests = [];
globalThis.describe = (name, body) => body();
globalThis.it = (name, test) => tests.push(test);
const { beforeAll, afterAll } = require('./mongodb.cjs').mochaHooks;
require('./people.test.cjs');
(async () => {
  await beforeAll();
  try { for (const test of tests) await test(); } finally { await afterAll(); }
  console.log(tests.length + ' passing');
})();
`
)

// The fixture and the hook of docs/application/embedded.md work: the tests there pass, and the server ends with them.
// If utr is missing, the framework reports it.
func TestFrameworks(t *testing.T) {
	files := map[string]string{"standin.py": likePytest, "standin.cjs": likeMocha}
	for _, m := range fileOfPage.FindAllStringSubmatch(testkit.Read(t, "../../../docs/application/embedded.md"), -1) {
		files[m[1]] = m[2]
	}
	for _, framework := range []struct {
		name    string
		command func(*testing.T) (program string, env, args, standin []string)
		passed  string
	}{
		{"pytest", func(t *testing.T) (string, []string, []string, []string) {
			python, err := exec.Command(testkit.Python(t, "pymongo"), "-c", "import sys; print(sys.executable)").Output()
			testkit.Check(t, err)
			return strings.TrimSpace(string(python)), os.Environ(), []string{"-m", "pytest", "-p", "no:cacheprovider"},
				[]string{"standin.py"}
		}, "1 passed"},
		{"mocha", func(t *testing.T) (string, []string, []string, []string) {
			node, env := testkit.Node(t)
			mocha := filepath.Join(os.Getenv("UTR_NODE_PATH"), "mocha", "bin", "mocha.js")
			return node, env, []string{mocha, "--require", "./mongodb.cjs", "people.test.cjs"}, []string{"standin.cjs"}
		}, "1 passing"},
	} {
		t.Run(framework.name, func(t *testing.T) {
			program, env, args, standin := framework.command(t)
			probe := exec.Command(program, append(slices.Clip(args), "--version")...)
			probe.Env = env
			if probe.Run() != nil {
				t.Logf("not verified: %s itself, which is not installed", framework.name)
				args = standin
			}
			for _, r := range []struct {
				reason, path string
				passes       bool
				says         string
			}{
				{"with utr", filepath.Dir(utrtest.Command(t)), true, framework.passed},
				{"without utr", t.TempDir(), false, "utr"},
			} {
				t.Run(r.reason, func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					for name, text := range files {
						testkit.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
					}
					c := exec.CommandContext(testkit.Context(t), program, args...)
					c.Dir, c.Env = dir, append(slices.Clip(env), "PATH="+r.path, "TMPDIR="+t.TempDir(), "PYTHONDONTWRITEBYTECODE=1")
					var out bytes.Buffer
					c.Stdout, c.Stderr = &out, &out
					c.WaitDelay = 10 * time.Second // Run fails if a server that is left over keeps standard error open
					err := c.Run()
					if (err == nil) != r.passes || !strings.Contains(out.String(), r.says) {
						t.Errorf("%v\n%s", err, out.String())
					}
				})
			}
		})
	}
}
