//go:build unix

package release

import (
	"cmp"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

var (
	blockOfPage = regexp.MustCompile("(?s)(?:<!-- file: (\\S+) -->\n)?```(\\w+)\n(.*?)```\n")
	commandLine = regexp.MustCompile(`(?m)^\$ (.*(?:\\\n.*)*)\n`)
	varies      = regexp.MustCompile(`127\\\.0\\\.0\\\.1:\d+|[\d.\\]+ ?m?s\b`)
	omitted     = regexp.MustCompile(`(^|\n)?…(\n|$)?`)
)

// The commands of README and the starting pages work. The commands of the first two pages run in a fresh clone of this
// checkout. The others run in an empty folder with nothing but utr and, where a page needs them, Python with PyMongo
// and Node.js with its driver. Each prints what the page shows, where … stands for any text. Blocks of shell code are
// not executed, because they install something. UTR_UPDATE=1 rewrites outputs without ….
func TestStartingPages(t *testing.T) {
	for _, row := range []struct {
		page         string
		clone        bool   // whether it begins with a checkout, not with utr
		python, node bool   // whether it needs their drivers
		commands     int    // at least
		uri          string // the connection string for which the embedded deployment stands in
	}{
		{"README", true, false, false, 5, ""},
		{"docs/start", true, false, false, 3, ""},
		{"docs/your-driver", false, true, true, 5, ""},
		{"docs/your-suite", false, false, false, 14, ""},
		{"docs/your-server", false, false, false, 3, "mongodb://localhost:27017"},
		{"docs/your-night", false, false, false, 5, ""},
		{"docs/your-application", false, true, false, 3, ""},
	} {
		t.Run(row.page, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			bin := filepath.Dir(m.utr)
			env := []string{"HOME=" + t.TempDir(), "UTR_URI=", "UTR_PYTHON=", "UTR_NODE_PATH="}
			path := bin + ":/usr/local/bin:/usr/bin:/bin"
			link := func(name, program string) { writeScript(t, bin, name, "exec '"+program+"' \"$@\"\n") }
			if row.clone {
				testkit.Check(t, os.Remove(m.utr))
				var more []string
				m.dir, more = clone(t)
				path, env = filepath.Join(strings.TrimPrefix(env[0], "HOME="), "go", "bin")+":"+path, append(env, more...)
				link("go", filepath.Join(build.Default.GOROOT, "bin", "go"))
				link("gofmt", filepath.Join(build.Default.GOROOT, "bin", "gofmt"))
			}
			if row.python {
				link("python3", testkit.Python(t, "pymongo"))
			}
			if row.node {
				node, _ := testkit.Node(t)
				link("node", node)
				env = append(env, "NODE_PATH="+os.Getenv("UTR_NODE_PATH"))
			}
			file := filepath.Join(testkit.Root(t), filepath.FromSlash(row.page)+".md")
			page := testkit.Read(t, file)
			place := utrtest.NewPlace(t)
			script, commands := "", []string(nil)
			for _, block := range blockOfPage.FindAllStringSubmatch(page, -1) {
				if block[1] != "" {
					testkit.Check(t, os.WriteFile(filepath.Join(m.dir, block[1]), []byte(block[3]), 0o644))
				}
				if block[2] != "console" {
					continue
				}
				for _, c := range commandLine.FindAllStringSubmatch(block[3], -1) {
					commands = append(commands, c[1])
				}
			}
			if len(commands) < row.commands {
				t.Fatalf("%s has only the commands %q", row.page, commands)
			}
			const mark = "==== next ===="
			skipped := map[int]bool{}
			for i, c := range commands {
				switch {
				case row.uri != "":
					c = strings.ReplaceAll(c, row.uri, place.Serve("--topology", "single").URI)
				case c == "make test": // it would execute this test, too: only its script runs, with a stand-in for go
					c = "env -u MAKEFLAGS -u MAKELEVEL CI= GO='" + goStandIn(t) + "' make test" // make may have started this test
				case strings.Contains(c, " --engine pymongo@"):
					python, why := pythonIndex(t)
					if skipped[i] = why != nil; skipped[i] {
						t.Run(c, func(t *testing.T) { testkit.Lacking(t, "index of Python packages", why) })
						c = ":"
						break
					}
					link("python3", python)
					if os.Getenv("UTR_SOAK") == "" { // all tests take a minute and a half of processor time
						c += " --run collection.find.yml"
					}
				}
				script += "echo '" + mark + "'\n"
				if before, background := strings.CutSuffix(c, " &"); background { // its output belongs to this command
					c = before + " >out 2>&1 &\nstarted=$!; until grep 'ready after' out || ! kill -0 $started; do sleep 0.05; done"
				}
				script += c + "\n"
			}
			shell := exec.Command("sh", "-c", "exec 2>&1\n"+script+"\n[ -z \"$started\" ] || { kill $started; wait; }")
			shell.Dir, shell.Env = m.dir, append(env, "PATH="+path)
			shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			t.Cleanup(func() { _ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }) // what a failed test leaves running
			outputs := strings.Split(place.Launch(shell).End().Out+"\n", mark+"\n")[1:]
			at := -1
			played := blockOfPage.ReplaceAllStringFunc(page, func(block string) string {
				if blockOfPage.FindStringSubmatch(block)[2] != "console" {
					return block
				}
				starts := commandLine.FindAllStringIndex(block, -1)
				out := block[:starts[0][0]]
				for i, start := range starts {
					end := len(block) - len("```\n")
					if i+1 < len(starts) {
						end = starts[i+1][0]
					}
					at++
					want, got := block[start[1]:end], outputs[at]
					if out += block[start[0]:start[1]]; skipped[at] || shows(want, got) {
						got = want
					}
					out += got
				}
				return out + "```\n"
			})
			testkit.Golden(t, file, played)
		})
	}
}

// clone clones this checkout with its uncommitted changes and compiles utr there. It returns the folder, and the
// environment in which go reuses the compiled packages.
func clone(t *testing.T) (dir string, env []string) {
	t.Helper()
	root, dir := testkit.Root(t), filepath.Join(t.TempDir(), "utr")
	env = []string{"GOFLAGS=-trimpath"} // so that all clones share the build cache
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} {
		env = append(env, name+"="+output(t, root, "go", "env", name))
	}
	output(t, root, "git", "clone", "--quiet", ".", dir)
	changed := output(t, root, "git", "ls-files", "--modified", "--deleted", "--others", "--exclude-standard")
	for _, name := range strings.Fields(changed) {
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(filepath.Join(dir, name))
			continue
		}
		info, failed := os.Stat(filepath.Join(root, name))
		testkit.Check(t, errors.Join(err, failed, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)))
		testkit.Check(t, os.WriteFile(filepath.Join(dir, name), data, info.Mode()))
	}
	compile := exec.Command("go", "list", "-export", "-deps", "./cmd/utr")
	compile.Dir, compile.Env = dir, append(os.Environ(), env...)
	out, err := compile.CombinedOutput()
	testkit.Equal(t, "go list: "+string(out[max(0, len(out)-1000):]), err, nil)
	return dir, env
}

// output returns the output of a command that must succeed.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		t.Fatal(name, args, err)
	}
	return strings.TrimSpace(string(out))
}

// goStandIn returns a program that succeeds in place of go. The programs that it builds succeed, too.
func goStandIn(t *testing.T) string {
	return writeScript(t, t.TempDir(), "go", `succeeds() { printf '#!/bin/sh\n' >"$1" && chmod +x "$1"; }
case $1 in
tool) # -modfile=FILE -n NAME
	succeeds "${0%/*}/$4" && echo "${0%/*}/$4" ;;
build) # -o FOLDER PACKAGE…
	folder=$3
	shift 3
	for package; do succeeds "$folder/${package##*/}"; done ;;
esac
`)
}

func writeScript(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	testkit.Check(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
	return path
}

// pythonIndex returns a Python that can install packages from an index, or why there is none.
func pythonIndex(t *testing.T) (python string, why error) {
	python, why = exec.LookPath(cmp.Or(os.Getenv("UTR_PYTHON"), "python3"))
	if why == nil {
		var out []byte
		out, why = exec.CommandContext(testkit.Context(t), python, "-m", "pip", "index", "versions", "pymongo").CombinedOutput()
		if why != nil {
			why = fmt.Errorf("%w: %s", why, out)
		}
	}
	return python, why
}

// shows reports whether a page shows an output, apart from durations, ports, and text that … replaces.
func shows(page, output string) bool {
	pattern := varies.ReplaceAllStringFunc(regexp.QuoteMeta(page), func(part string) string {
		if strings.HasPrefix(part, "127") {
			return `127\.0\.0\.1:\d+`
		}
		return `[\d.]+ ?[mµ]?s`
	})
	return regexp.MustCompile(`(?s)^` + omitted.ReplaceAllString(pattern, `.*`) + `\n*$`).MatchString(output)
}
