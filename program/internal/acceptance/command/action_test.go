//go:build unix

package command

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// runnerOf is a stand-in for a runner of GitHub Actions: a temporary folder, and the files with which steps speak to
// it.
type runnerOf struct {
	t   *testing.T
	dir string
	env []string
}

// newRunner returns a runner on which the programs in bin precede the programs of the path.
func newRunner(t *testing.T, bin string, env ...string) *runnerOf {
	r := &runnerOf{t: t, dir: t.TempDir()}
	for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH"} {
		r.env = append(r.env, name+"="+filepath.Join(r.dir, name))
	}
	r.env = append(append(r.env, "GITHUB_ACTIONS=true", "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_TEMP="+r.dir,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH")), env...)
	return r
}

// step returns the command of a step.
func (r *runnerOf) step(name string, env ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(testkit.Root(r.t), ".ci", "action"), name)
	c.Dir, c.Env = r.dir, slices.Concat(r.env, env)
	return c
}

// file returns what steps have written to a file.
func (r *runnerOf) file(name string) string {
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return string(text)
}

// reports returns the folder with the reports.
func (r *runnerOf) reports() string {
	_, dir, _ := strings.Cut(strings.TrimSpace(r.file("GITHUB_OUTPUT")), "reports=")
	return dir
}

// script writes a program in sh, and returns the folder that contains it.
func script(t *testing.T, name, text string) string {
	dir := t.TempDir()
	testkit.Check(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755))
	return dir
}

// archives returns archives of a release with a program, as for Linux and for Windows.
func archives(t *testing.T, program string) (tarball, zipped []byte) {
	var out [2]bytes.Buffer
	compressed := gzip.NewWriter(&out[0])
	files := tar.NewWriter(compressed)
	testkit.Check(t, files.WriteHeader(&tar.Header{Name: "utr", Mode: 0o755, Size: int64(len(program))}))
	_, err := files.Write([]byte(program))
	testkit.Check(t, errors.Join(err, files.Close(), compressed.Close()))
	z := zip.NewWriter(&out[1])
	header := &zip.FileHeader{Name: "utr"}
	header.SetMode(0o755)
	w, err := z.CreateHeader(header)
	testkit.Check(t, err)
	_, err = w.Write([]byte(program))
	testkit.Check(t, errors.Join(err, z.Close()))
	return out[0].Bytes(), out[1].Bytes()
}

// The action installs the release that its inputs name, and only if its checksum is right, or else builds utr.
func TestActionInstalls(t *testing.T) {
	t.Parallel()
	whole, zipped := archives(t, "#!/bin/sh\necho \"this is utr\" \"$@\"\n")
	sum := fmt.Sprintf("%x", sha256.Sum256(whole))
	names := []string{"utr_1.2.3_linux_amd64.tar.gz", "utr_2.0.0_linux_arm64.tar.gz"}
	sums := sum + "  another_1.2.3_linux_amd64.tar.gz\n" + sum + "  " + names[0] + "\n" + sum + "  " + names[1] + "\n"
	sums += fmt.Sprintf("%x  utr_1.2.3_windows_arm64.zip\n", sha256.Sum256(zipped))
	host := http.NewServeMux()
	serve := func(path string, text []byte) {
		host.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
	}
	serve("/download/v1.2.3/"+names[0], whole)
	serve("/download/v1.2.3/utr_1.2.3_windows_arm64.zip", zipped)
	serve("/download/v1.2.3/checksums.txt", []byte(sums))
	serve("/download/v2.0.0/"+names[1], whole)
	serve("/download/v2.0.0/checksums.txt", []byte(sums))
	serve("/download/v3.0.0/utr_3.0.0_linux_amd64.tar.gz", append([]byte("x"), whole...))
	serve("/download/v3.0.0/checksums.txt", []byte(strings.ReplaceAll(sums, "1.2.3", "3.0.0")))
	serve("/download/v4.0.0/utr_4.0.0_linux_amd64.tar.gz", whole)
	serve("/download/v4.0.0/checksums.txt", []byte(sums))
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	builder := script(t, "go", `[ -z "$FAILS" ] && case $* in "build -C $ROOT -buildvcs=false -o $PWD/ ./cmd/utr")
	printf '#!/bin/sh\necho "this is utr" "$@"\n' >utr && chmod +x utr ;;
*) echo "go $*"; exit 1 ;;
esac`)
	for _, r := range []struct {
		reason string
		env    []string
		says   string // nothing is installed unless it begins with "this is utr"
	}{
		{"a version", []string{"INPUT_VERSION=1.2.3"}, "this is utr version"},
		{"a version as it is tagged", []string{"INPUT_VERSION=v1.2.3"}, "this is utr version"},
		{"a release of the action", []string{"INPUT_REF=v1.2.3"}, "this is utr version"},
		{"a version for another release of the action", []string{"INPUT_VERSION=1.2.3", "INPUT_REF=v9.9.9"},
			"this is utr version"},
		{"another processor", []string{"INPUT_VERSION=2.0.0", "RUNNER_ARCH=ARM64"}, "this is utr version"},
		{"a branch of the action, so its commit", []string{"INPUT_REF=main"}, "this is utr version"},
		{"a tag that moves, so its commit", []string{"INPUT_REF=v1"}, "this is utr version"},
		{"a commit that cannot be built", []string{"FAILS=1"}, "cannot build utr"},
		{"a wrong checksum", []string{"INPUT_VERSION=3.0.0"}, "utr_3.0.0_linux_amd64.tar.gz does not have the checksum"},
		{"no checksum", []string{"INPUT_VERSION=4.0.0"},
			"checksums.txt of version 4.0.0 does not list utr_4.0.0_linux_amd64.tar.gz"},
		{"a version that does not exist", []string{"INPUT_VERSION=5"},
			"cannot download " + server.URL + "/download/v5/utr_5_linux_amd64.tar.gz"},
		{"on Windows", []string{"INPUT_VERSION=1.2.3", "RUNNER_OS=Windows", "RUNNER_ARCH=ARM64"}, "this is utr version"},
		{"an unknown processor", []string{"INPUT_VERSION=1.2.3", "RUNNER_ARCH=X86"}, "no release for X86 processors"},
		{"an unknown system", []string{"INPUT_VERSION=1.2.3", "RUNNER_OS=Plan9"}, "no release for Plan9"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			if _, err := exec.LookPath("unzip"); err != nil && slices.Contains(r.env, "RUNNER_OS=Windows") {
				t.Skip("not verified: no unzip")
			}
			runner := newRunner(t, builder, "INPUT_RELEASES="+server.URL, "ROOT="+testkit.Root(t))
			out, err := runner.step("install", r.env...).CombinedOutput()
			installed := strings.HasPrefix(r.says, "this is utr")
			testkit.Equal(t, "it installs utr: "+string(out), err == nil, installed)
			testkit.Contains(t, string(out), r.says)
			testkit.Equal(t, "an annotation", strings.Contains(string(out), "::error title=utr::"), !installed)
			path := strings.TrimSpace(runner.file("GITHUB_PATH"))
			testkit.Equal(t, "the path", path != "", installed)
			if installed {
				out, err := exec.Command(filepath.Join(path, "utr"), "run").Output()
				testkit.Check(t, err)
				testkit.Equal(t, "what is on the path", string(out), "this is utr run\n")
			}
		})
	}
}

// The action expects the names that goreleaser gives files by default, and checksums.txt.
func TestActionExpectsTheNamesOfReleases(t *testing.T) {
	t.Parallel()
	var config struct {
		ProjectName string `yaml:"project_name"`
		Archives    []struct {
			NameTemplate string                        `yaml:"name_template"`
			Wrap         any                           `yaml:"wrap_in_directory"`
			Overrides    []struct{ Goos, Formats any } `yaml:"format_overrides"`
		}
		Checksum struct {
			NameTemplate string `yaml:"name_template"`
		}
	}
	testkit.Check(t, yaml.Unmarshal([]byte(testkit.Read(t, filepath.Join(testkit.Root(t), ".goreleaser.yaml"))), &config))
	first := config.Archives[0]
	testkit.Equal(t, "project", cmp.Or(config.ProjectName, "utr"), "utr") // by default the name of the repository
	testkit.Equal(t, "names and formats", fmt.Sprintf("%q %v %v %s", first.NameTemplate, first.Wrap, first.Overrides,
		config.Checksum.NameTemplate), `"" <nil> [{windows [zip]}] checksums.txt`)
}

// The action calls utr with its inputs.
func TestActionInputs(t *testing.T) {
	t.Parallel()
	utr := script(t, "utr", `case $* in *bad.yml) echo "::error file=bad.yml"; exit 2 ;; esac; for word; do case $word in "$RUNNER_TEMP"/utr-reports.*) break;; --json) ;; *) printf '<%s>' "$word";; esac; done; echo " ${UTR_URI:-}"`)
	for _, r := range []struct {
		reason string
		env    []string
		says   string
	}{
		{"none", nil, "<run><retryable-reads><retryable-writes><client-backpressure> \n"},
		{"several", []string{"INPUT_SUITES=a.yml\nb.yml", "INPUT_ENGINE=exec:a b", "INPUT_KNOWN_FAILING=my list"},
			"<run><--engine><exec:a b><--known-failing><my list><a.yml><b.yml> \n"},
		{"words as in a shell", []string{`INPUT_SUITES='a b.yml'`, `INPUT_ARGUMENTS=--run "a  b" --skip '\.$(x)*'` + "\n-v"},
			`<run><--run><a  b><--skip><\.$(x)*><-v><a b.yml> ` + "\n"},
		{"suites to check", []string{"INPUT_CHECK=mine 'a b.yml'", "INPUT_SUITES=s"},
			"<check><--strict><--format><github><mine><a b.yml> \n<run><s> \n"},
		{"suites with an error", []string{"INPUT_CHECK=bad.yml", "INPUT_SUITES=s"}, "::error file=bad.yml"},
		{"an embedded deployment", []string{"INPUT_SERVER=embedded", "INPUT_SUITES=s"}, "<run><s> \n"},
		{"a topology", []string{"INPUT_SERVER=load-balanced", "INPUT_SUITES=s"}, "<run><--topology><load-balanced><s> \n"},
		{"a connection string", []string{"INPUT_SERVER=mongodb://u:p@h/", "INPUT_SUITES=s"}, "<run><s> mongodb://u:p@h/\n"},
		{"a quotation mark without its counterpart", []string{"INPUT_ARGUMENTS=--run 'a"},
			"::error title=utr::the input arguments has a quotation mark without its counterpart: --run 'a"},
		{"no image", []string{"INPUT_SERVER=mongodb:/h"}, "::error title=utr::cannot start a container of mongodb:/h"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			bin := utr + string(os.PathListSeparator) + script(t, "docker", "exit 125")
			out, err := newRunner(t, bin).step("run", r.env...).CombinedOutput()
			testkit.Contains(t, string(out), r.says)
			testkit.Equal(t, "it succeeds", err == nil, !strings.Contains(r.says, "::error"))
		})
	}
}

// The action writes the reports of a run of utr, adds to the summary of the job, and keeps the report for trends.
func TestActionRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad, nights := filepath.Join(dir, "bad.yml"), filepath.Join(dir, "nights")
	testkit.Check(t, os.WriteFile(bad, []byte(misread), 0o600))
	testkit.Check(t, os.Mkdir(nights, 0o755))
	for i := range 31 {
		testkit.Check(t, os.WriteFile(filepath.Join(nights, fmt.Sprintf("2020-01-%02d.json", i+1)), nil, 0o600))
	}
	runner := newRunner(t, filepath.Dir(utrtest.Command(t)))
	out, err := runner.step("run", "INPUT_SUITES="+bad, "INPUT_EARLIER="+nights,
		"INPUT_ARGUMENTS=--topology single").CombinedOutput()
	testkit.Equal(t, "exit code", err.(*exec.ExitError).ExitCode(), 1)
	testkit.Contains(t, string(out), "\n::error file=", "0 passed, 1 failed")
	testkit.Contains(t, runner.file("GITHUB_STEP_SUMMARY"), "## ✘ utr: 1 failed")
	names, err := filepath.Glob(filepath.Join(runner.reports(), "*"))
	testkit.Check(t, err)
	for i, name := range names {
		names[i] = filepath.Base(name)
	}
	testkit.Equal(t, "reports", fmt.Sprint(names), "[utr.html utr.json utr.md utr.sarif utr.svg utr.xml]")
	kept, err := filepath.Glob(filepath.Join(nights, "*.json"))
	testkit.Check(t, err)
	testkit.Equal(t, "kept reports", len(kept), 30)
	testkit.Same(t, "the report is kept", testkit.Read(t, kept[29]),
		testkit.Read(t, filepath.Join(runner.reports(), "utr.json")))

	merged := newRunner(t, filepath.Dir(utrtest.Command(t)))
	out, err = merged.step("run", "INPUT_MERGE="+runner.reports(), "INPUT_SUITES=ignored",
		"INPUT_EARLIER="+nights).CombinedOutput()
	testkit.Equal(t, "exit code of merge: "+string(out), err.(*exec.ExitError).ExitCode(), 1)
	testkit.Contains(t, testkit.Read(t, filepath.Join(merged.reports(), "utr.md")), "## ✘ utr: 1 failed")
}

// Servers in a container: the action starts a replica set with test commands, and removes it whatever happens.
func TestActionStartsAContainer(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		reason, running, utr string
		interrupt            bool
		says, uri            string
		code                 int
	}{
		{"a run", "true", "exit 0", false, "", "mongodb://localhost:27017/?replicaSet=rs0", 0},
		{"tests failed", "true", "exit 1", false, "", "mongodb://localhost:27017/?replicaSet=rs0", 1},
		{"the server ended", "false", "exit 0", false, "the server in the container of mongo:8.0 does not answer", "", 2},
		{"the job is canceled", "true", "trap 'echo cleaned up; exit 3' TERM; echo ready; while :; do sleep 0.1; done", true,
			"cleaned up", "mongodb://localhost:27017/?replicaSet=rs0", 3},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			// The server answers at the second attempt.
			docker := script(t, "docker", `echo "docker $*" >>"$RUNNER_TEMP/calls"
case $1 in
run) echo c1 ;;
exec) [ -e "$RUNNER_TEMP/tried" ] || { : >"$RUNNER_TEMP/tried"; exit 1; } ;;
inspect) echo `+r.running+` ;;
esac
`)
			utr := script(t, "utr", `echo "utr at $UTR_URI" >>"$RUNNER_TEMP/calls"`+"\n"+r.utr)
			runner := newRunner(t, utr+string(os.PathListSeparator)+docker)
			run := utrtest.NewPlace(t).Launch(runner.step("run", "INPUT_SERVER=mongo:8.0", "INPUT_SUITES=s"))
			if r.interrupt {
				run.Line("ready")
				run.Signal(syscall.SIGINT)
			}
			end := run.End()
			testkit.Equal(t, "exit code: "+end.All(), end.Code, r.code)
			testkit.Contains(t, end.All(), r.says)
			calls := strings.Split(strings.TrimSpace(runner.file("calls")), "\n")
			testkit.Equal(t, "first", calls[0],
				"docker run --detach --publish 127.0.0.1:27017:27017 mongo:8.0 mongod --replSet rs0 --bind_ip_all --setParameter enableTestCommands=1")
			testkit.Equal(t, "last", calls[len(calls)-1], "docker rm --force --volumes c1")
			testkit.Equal(t, "the run", slices.Contains(calls, "utr at "+r.uri), r.uri != "")
			testkit.Contains(t, strings.Join(calls, "\n"), "docker exec c1 sh -c ", `rs.initiate({_id: "rs0"`)
		})
	}
}

// input matches an input that the script reads.
var input = regexp.MustCompile(`INPUT_[A-Z_]+`)

// The script reads the inputs that the action declares, and the action passes all of them to it.
func TestActionDeclaresItsInputs(t *testing.T) {
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				Env, With map[string]string
			}
		}
	}
	root := testkit.Root(t)
	text := testkit.Read(t, filepath.Join(root, "action.yml"))
	testkit.Check(t, yaml.Unmarshal([]byte(text), &action))
	passed := map[string]string{}
	for _, step := range action.Runs.Steps {
		for name, value := range step.Env {
			passed[name] = value
		}
	}
	read := map[string]bool{}
	for _, name := range input.FindAllString(testkit.Read(t, filepath.Join(root, ".ci", "action")), -1) {
		if name != "INPUT_NAME" { // in the comment
			read[name] = true
			testkit.Equal(t, "action.yml passes "+name, passed[name] != "", true)
		}
	}
	for name, value := range passed {
		testkit.Equal(t, ".ci/action reads "+name, read[name], true)
		if name != "INPUT_REF" {
			testkit.Equal(t, name, value, "${{ inputs."+strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "INPUT_")),
				"_", "-")+" }}")
		}
	}
	// Of the inputs, the folder and the artifact are not passed. The reference is passed, but is not an input.
	testkit.Equal(t, "inputs", len(action.Inputs), len(passed)+1)
	page := testkit.Read(t, filepath.Join(root, "docs", "ci.md"))
	for name := range action.Inputs {
		testkit.Contains(t, text, "inputs."+name+" ")
		testkit.Contains(t, page, "| `"+name+"` |")
	}
}
