package adapters

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// The commands of the engines file, and CI, install the versions of drivers for which the adapters are tested.
func TestVersions(t *testing.T) {
	pymongo := strings.TrimSpace(testkit.Read(t, "pymongo/requirements.txt"))
	var node struct{ Dependencies struct{ MongoDB string } }
	testkit.Check(t, json.Unmarshal([]byte(testkit.Read(t, "node/package.json")), &node))
	testkit.Contains(t, testkit.Read(t, EnginesFile), `"`+pymongo+`"`, " mongodb@"+node.Dependencies.MongoDB+"'")
	_, version, _ := strings.Cut(pymongo, "==")
	_, rust, _ := strings.Cut(testkit.Read(t, "rust/Cargo.toml"), `mongodb = { version = "=`)
	rust, _, _ = strings.Cut(rust, `"`)
	testkit.Contains(t, testkit.Read(t, "rust/Cargo.lock"), "name = \"mongodb\"\nversion = \""+rust+"\"\n")
	testkit.Contains(t, testkit.Read(t, filepath.Join(testkit.Root(t), ".ci", "run")), "pymongo="+version+"\n",
		"node_driver="+node.Dependencies.MongoDB+"\n")
	testkit.Contains(t, testkit.Read(t, filepath.Join(testkit.Root(t), ".github", "workflows", "ci.yml")),
		"pymongo=="+version, "mongodb@"+node.Dependencies.MongoDB)
	_, java, _ := strings.Cut(testkit.Read(t, "java/pom.xml"), "<driver.version>")
	java, _, _ = strings.Cut(java, "<")
	_, golang, _ := strings.Cut(testkit.Read(t, filepath.Join(testkit.Root(t), "go.mod")),
		"go.mongodb.org/mongo-driver/v2 v")
	golang, _, _ = strings.Cut(golang, "\n")
	for _, newest := range []string{golang, version, node.Dependencies.MongoDB, java, rust} {
		testkit.Contains(t, testkit.Read(t, EnginesFile), "  versions: ["+newest+", ")
	}
}

// The version main of a driver identifies the content of its checkout: the commit, and uncommitted changes.
func TestRevision(t *testing.T) {
	checkouts := t.TempDir()
	repository := filepath.Join(checkouts, "driver")
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	write := func(file, text string) { t.Helper(); testkit.Check(t, os.WriteFile(file, []byte(text), 0o600)) }
	revision := func(checkouts string) (string, error) {
		cmd := exec.Command("sh", "revision.sh", "driver")
		cmd.Env = append(os.Environ(), "UTR_CHECKOUTS="+checkouts)
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	testkit.Check(t, os.Mkdir(repository, 0o755))
	file := filepath.Join(repository, "driver.py")
	git("init", "--quiet")
	write(file, "1")
	git("add", ".")
	git("commit", "--quiet", "--message", "one")
	seen := map[string]string{}
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"a commit", func() {}},
		{"a change", func() { write(file, "2") }},
		{"another change", func() { write(file, "3") }},
		{"a change in the index", func() { write(file, "4"); git("add", ".") }},
		{"another commit", func() { git("commit", "--quiet", "--message", "two") }},
	} {
		step.change()
		version, err := revision(checkouts)
		testkit.Check(t, err)
		if !regexp.MustCompile(`^main-[0-9a-f]{10}(-[0-9a-f]{10})?$`).MatchString(version) {
			t.Errorf("%s has the version %q", step.name, version)
		}
		if before, ok := seen[version]; ok {
			t.Errorf("%s and %s both have the version %s", before, step.name, version)
		}
		seen[version] = step.name
		again, err := revision(checkouts)
		testkit.Check(t, err)
		testkit.Equal(t, step.name+" has the same version again", again, version)
	}
	for _, folder := range []string{"", ".", checkouts + "/nowhere"} {
		if version, err := revision(folder); err == nil || version != "" {
			t.Errorf("the checkouts in %q have the version %q", folder, version)
		}
	}
}
