package architecture

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

var (
	// pin matches what names a version of utr: a reference of the action, a revision of the hook, a tag, an image.
	pin = regexp.MustCompile(`unified-test-runner/utr(?:/[\w./-]+)?@([^\s"` + "`" + `]+)|(?m:^\s*rev: *(\S+))|` +
		`UTR_(?:VERSION|COMMIT)(?:=|: *)"?([^\s",}]+)|unified-test-runner/utr/releases/download/([^\s/]+)|` +
		`unified-test-runner/utr:([\w.]+)`)
	// promise matches a way to install utr that requires a release.
	promise = regexp.MustCompile(`ghcr\.io/unified-test-runner|brew install|scoop install|apt install \./utr|` +
		`dnf install \./utr|utr_VERSION_|unified-test-runner/utr/releases\b|/cmd/utr@|\b(?:utr@|rev: *|utr:)(?:main|latest)\b`)
	release = regexp.MustCompile(`(?m)^## v?(\d+\.\d+\.\d+)\b`)
)

// unreleased returns what a text promises although no release has it: pins of unreleased versions and, before the first
// release, everything outside the section about it. COMMIT stands for a commit, and a template has the commit of the
// program.
func unreleased(text string, releases []string) (faults []string) {
	const section = "\n## From the first release on\n"
	before, after, _ := strings.Cut(text, section)
	if _, next, found := strings.Cut(after, "\n## "); found {
		before += "\n## " + next
	}
	if len(releases) > 0 {
		before = text
	} else {
		faults = promise.FindAllString(before, -1)
	}
	for _, m := range pin.FindAllStringSubmatch(before, -1) {
		version := strings.TrimPrefix(strings.Join(m[1:], ""), "v")
		if !slices.Contains(append([]string{"COMMIT", "{{.Ref}}", "latest"}, releases...), version) ||
			version == "latest" && len(releases) == 0 {
			faults = append(faults, m[0])
		}
	}
	return faults
}

// Pages, examples and files that utr writes do not promise a release that is not in CHANGELOG.
func TestNothingPromisesARelease(t *testing.T) {
	var releases []string
	for _, m := range release.FindAllStringSubmatch(read(t, "CHANGELOG.md"), -1) {
		releases = append(releases, m[1])
	}
	seen, pins := 0, 0
	testkit.Check(t, fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (name == ".git" || name == "build" || name == "specs" || e.Name() == "testdata" ||
			e.Name() == "node_modules"):
			return fs.SkipDir
		case e.IsDir() || name == "CHANGELOG.md" || name == ".goreleaser.yaml" || name == ".github/workflows/release.yml",
			name == "action.yml", // downloads the release that an input names
			!slices.Contains([]string{".md", ".yml", ".yaml"}, filepath.Ext(name)):
			return nil
		}
		seen++
		pins += len(pin.FindAllString(read(t, name), -1))
		testkit.Equal(t, name+" promises", fmt.Sprint(unreleased(read(t, name), releases)), "[]")
		return nil
	}))
	testkit.Equal(t, "60 files or more", seen >= 60, true)
	testkit.Equal(t, "10 pins or more", pins >= 10, true)
}

// Each form of a pin and of a promise is recognized.
func TestUnreleased(t *testing.T) {
	for _, r := range []struct{ reason, text, none, some string }{ // without a release, and with 1.2.3
		{"a commit of the action", "uses: unified-test-runner/utr@COMMIT", "[]", "[]"},
		{"the commit of the program", "uses: unified-test-runner/utr@{{.Ref}}", "[]", "[]"},
		{"a tag of the action", "uses: unified-test-runner/utr@v1.2.3", "[unified-test-runner/utr@v1.2.3]", "[]"},
		{"a tag that does not exist", "uses: unified-test-runner/utr@v1", "[unified-test-runner/utr@v1]",
			"[unified-test-runner/utr@v1]"},
		{"a branch of a workflow", "uses: unified-test-runner/utr/.github/workflows/driver.yml@main",
			"[unified-test-runner/utr/.github/workflows/driver.yml@main]",
			"[unified-test-runner/utr/.github/workflows/driver.yml@main]"},
		{"a revision of the hook", "    rev: main # or a release", "[rev: main     rev: main]", "[    rev: main]"},
		{"a version in a script", `UTR_VERSION: "1.0.0"`, `[UTR_VERSION: "1.0.0]`, `[UTR_VERSION: "1.0.0]`},
		{"a version in a script that exists", `UTR_VERSION="1.2.3"`, `[UTR_VERSION="1.2.3]`, "[]"},
		{"the latest version", "go install github.com/unified-test-runner/utr/cmd/utr@latest",
			"[/cmd/utr@ unified-test-runner/utr/cmd/utr@latest]", "[]"},
		{"an image", "docker run ghcr.io/unified-test-runner/utr:1.2.3 run smoke",
			"[ghcr.io/unified-test-runner unified-test-runner/utr:1.2.3]", "[]"},
		{"a package", "brew install --cask x", "[brew install]", "[]"},
		{"in the section", "a\n## From the first release on\nbrew install x\n## More\nscoop install x", "[scoop install]", "[]"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			testkit.Equal(t, "without a release", fmt.Sprint(unreleased(r.text, nil)), r.none)
			testkit.Equal(t, "with one", fmt.Sprint(unreleased(r.text, []string{"1.2.3"})), r.some)
		})
	}
}
