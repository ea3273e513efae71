// Package release tests what users install: the program in an empty folder, and the artifacts of a release.
package release

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

func TestMain(m *testing.M) { utrtest.Main(m) }

// envDist names the folder with the artifacts that goreleaser built. The job release of ci.yml sets it.
const envDist = "UTR_RELEASE"

// dist returns the folder of artifacts, or skips the test.
func dist(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(envDist)
	if dir == "" {
		t.Skip("not verified: the artifacts of a release, which .ci/release builds in minutes")
	}
	return dir
}

// artifacts returns the names of the files that users install, with V in place of the version.
func artifacts(t *testing.T, dir string) (names []string, version string) {
	t.Helper()
	metadata := map[string]any{}
	testkit.Check(t, json.Unmarshal([]byte(testkit.Read(t, filepath.Join(dir, "metadata.json"))), &metadata))
	version, _ = metadata["version"].(string)
	testkit.Check(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if name := e.Name(); err == nil && !e.IsDir() && name != "utr" && name != "utr.exe" {
			names = append(names, strings.ReplaceAll(name, version, "V"))
		}
		return err
	}))
	slices.Sort(names)
	return names, version
}

// A release has archives for all systems, packages and manifests, and its archive contains the pages and completions.
func TestArtifacts(t *testing.T) {
	dir := dist(t)
	names, version := artifacts(t, dir)
	for _, name := range []string{
		"utr_V_linux_amd64.tar.gz", "utr_V_linux_arm64.tar.gz", "utr_V_darwin_amd64.tar.gz", "utr_V_darwin_arm64.tar.gz",
		"utr_V_windows_amd64.zip", "utr_V_windows_arm64.zip", "utr_V_linux_amd64.deb", "utr_V_linux_arm64.deb",
		"utr_V_linux_amd64.rpm", "utr_V_linux_arm64.rpm", "checksums.txt", "utr.rb", "utr.json",
	} {
		testkit.Equal(t, name+" is in "+strings.Join(names, " "), slices.Contains(names, name), true)
	}
	archive := "utr_" + version + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	testkit.Contains(t, testkit.Read(t, filepath.Join(dir, "checksums.txt")), "  "+archive+"\n")
	var content []string
	unpack(t, filepath.Join(dir, archive), func(name string, _ []byte) { content = append(content, name) })
	for _, name := range []string{"utr", "LICENSE", "README.md", "CHANGELOG.md", "man/utr.1", "man/utr-engine-init.1",
		"completion/utr.bash", "completion/utr.zsh", "completion/utr.fish", "completion/utr.powershell"} {
		testkit.Equal(t, name+" is in "+archive, slices.Contains(content, name), true)
	}
	for _, manifest := range []string{"homebrew/Casks/utr.rb", "scoop/utr.json"} {
		testkit.Contains(t, testkit.Read(t, filepath.Join(dir, manifest)),
			"https://github.com/unified-test-runner/utr/releases/download/v")
	}
	if program, err := exec.LookPath("dpkg-deb"); err == nil && runtime.GOARCH == "amd64" {
		out, err := exec.Command(program, "--contents", filepath.Join(dir, "utr_"+version+"_linux_amd64.deb")).Output()
		testkit.Check(t, err)
		testkit.Contains(t, string(out), "/usr/bin/utr\n", "/usr/share/man/man1/utr-run.1",
			"/usr/share/bash-completion/completions/utr\n")
	}
}

// unpack reads the files of an archive.
func unpack(t *testing.T, archive string, file func(name string, data []byte)) {
	t.Helper()
	f, err := os.Open(archive)
	testkit.Check(t, err)
	defer func() { _ = f.Close() }()
	plain, err := gzip.NewReader(f)
	testkit.Check(t, err)
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		testkit.Check(t, err)
		data, err := io.ReadAll(files)
		testkit.Check(t, err)
		file(strings.TrimPrefix(header.Name, "./"), data)
	}
}

// machine is a user's machine: an empty folder, an empty home, and nothing but utr on the path.
type machine struct {
	t   *testing.T
	utr string
	env []string
	dir string
}

// newMachine returns a machine with the program of the archive, or without one, with the program of this checkout.
func newMachine(t *testing.T) *machine {
	t.Helper()
	bin, home := t.TempDir(), t.TempDir()
	m := &machine{t, filepath.Join(bin, "utr"), []string{"PATH=" + bin, "HOME=" + home, "TMPDIR=" + t.TempDir()},
		t.TempDir()}
	data, err := os.ReadFile(utrtest.Command(t))
	testkit.Check(t, err)
	if dir := os.Getenv(envDist); dir != "" {
		_, version := artifacts(t, dir)
		unpack(t, filepath.Join(dir, "utr_"+version+"_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"),
			func(name string, text []byte) {
				if name == "utr" {
					data = text
				}
			})
	}
	testkit.Check(t, os.WriteFile(m.utr, data, 0o755))
	return m
}

// run runs utr and expects an exit code and parts of the output.
func (m *machine) run(code int, args string, says ...string) string {
	m.t.Helper()
	command := exec.CommandContext(testkit.Context(m.t), m.utr, strings.Fields(args)...)
	command.Dir, command.Env = m.dir, m.env
	out, err := command.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		m.t.Fatal(err)
	}
	testkit.Equal(m.t, "exit code of utr "+args+"\n"+string(out), command.ProcessState.ExitCode(), code)
	testkit.Contains(m.t, string(out), says...)
	return string(out)
}

// The commands of the starting pages work in an empty folder.
func TestEmptyFolder(t *testing.T) {
	m := newMachine(t)
	about := map[string]string{}
	testkit.Check(t, json.Unmarshal([]byte(m.run(0, "version --json")), &about))
	testkit.Equal(t, "the system", about["os"]+"/"+about["arch"], runtime.GOOS+"/"+runtime.GOARCH)
	if os.Getenv(envDist) != "" {
		testkit.Equal(t, "digits of the commit", len(about["commit"]), 40)
		testkit.Equal(t, "built from a changed checkout: "+about["version"],
			strings.Contains(about["version"], "dirty"), false)
	}
	m.run(0, "run smoke", "1 passed, 0 failed, 0 skipped")
	m.run(0, "run --topology replicaset --run collection.find.*NotWritablePrimary retryable-reads",
		" passed, 0 failed, 0 skipped")
	m.run(0, "run --engine driver --topology replicaset --run handshake-hello.*collection.find retryable-reads",
		"known-failing")
	m.run(0, "new retryable-reads mine.yml")
	m.run(0, "validate mine.yml", "1 valid")
	m.run(0, "new nightly night.yml")
	m.run(0, "matrix --dry-run night.yml", "_driver_retry")
	m.run(0, "list --run R35 dated/retryable-reads-2024", "tests in ")
	m.run(0, "schema 1.20", `"$schema"`)
	m.run(2, "run official/retryable-reads", "utr specs fetch")
	m.run(0, "completion bash", "__complete")
	m.run(0, "engine init mydriver adapter", "wrote adapter/adapter.py")
}

// The engines with adapters work in an empty folder, and report what is missing.
func TestEnginesInEmptyFolder(t *testing.T) {
	t.Run("nothing is installed", func(t *testing.T) {
		m := newMachine(t)
		for engine, reason := range map[string]string{
			"pymongo": "Python is not installed: there is no program python3",
			"node":    "Node.js is not installed: there is no program node",
			"ruby":    "Ruby is not installed: there is no program ruby",
			"java":    "Java is not installed: there is no program java",
		} {
			m.run(3, "run --engine "+engine+" smoke", reason)
		}
		m.run(3, "run --engine rust smoke", "there is no program rust/bin/adapter", "cargo install")
	})
	t.Run("pymongo", func(t *testing.T) {
		m := newMachine(t)
		m.env = append(m.env, "UTR_PYTHON="+testkit.Python(t, "pymongo", "gridfs"))
		m.run(0, "run --engine pymongo smoke", "1 passed, 0 failed, 0 skipped")
	})
	t.Run("node", func(t *testing.T) {
		m := newMachine(t)
		node, _ := testkit.Node(t)
		m.env = append(m.env, "PATH="+filepath.Dir(node), "UTR_NODE_PATH="+os.Getenv("UTR_NODE_PATH"))
		m.run(0, "run --engine node smoke", "1 passed, 0 failed, 0 skipped")
	})
}

// `go install` of a version refuses modules with such directives.
func TestGoInstall(t *testing.T) {
	for line := range strings.Lines(testkit.Read(t, filepath.Join(testkit.Root(t), "go.mod"))) {
		if strings.HasPrefix(line, "replace ") || strings.HasPrefix(line, "exclude ") {
			t.Errorf("go.mod has %q, so go install …/cmd/utr@latest fails", line)
		}
	}
}
