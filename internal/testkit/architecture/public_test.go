package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// outsider is a package that other repositories can import, with its documentation and tests.
type outsider struct {
	ImportPath, Name, Dir, Doc         string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

func outsiders(t *testing.T) (all []outsider) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Dir,Doc,GoFiles,TestGoFiles,XTestGoFiles",
		"../../../...").Output()
	testkit.Check(t, err)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p outsider
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		testkit.Check(t, err)
		if p.Name != "main" && p.Name != "program" && len(p.GoFiles) > 0 && !strings.Contains(p.ImportPath, "/internal/") {
			all = append(all, p)
		}
	}
}

var example = regexp.MustCompile(`(?m)^func Example\w*\(\) \{\n(?:[^}].*\n|\n)*`)

// Each package that other repositories can import has package documentation that begins as Go expects, and an example
// that is executed. utr.Main ends the process, so its example is only compiled.
func TestPublicPackages(t *testing.T) {
	seen := 0
	for _, p := range outsiders(t) {
		seen++
		name := inside(p.ImportPath)
		testkit.Equal(t, name+": the documentation begins with its name",
			strings.HasPrefix(p.Doc, "Package "+p.Name+" "), true)
		has := slices.ContainsFunc(p.XTestGoFiles, func(file string) bool {
			text := example.FindString(testkit.Read(t, filepath.Join(p.Dir, file)))
			return strings.Contains(text, "\t// Output:\n") || text != "" && p.Name == "utr"
		})
		testkit.Equal(t, name+" has an example with output", has, true)
	}
	testkit.Equal(t, "25 packages or more", seen >= 25, true)
}
