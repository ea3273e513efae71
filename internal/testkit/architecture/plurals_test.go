package architecture

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Messages count with package plural, because "1 tests" is not English. Numbers after these words are not 1, and the
// messages of the embedded deployment are those of mongod.
func TestPlurals(t *testing.T) {
	counted := regexp.MustCompile(`"[^"]*?([\w/]* ?)%d (?:other )?(?:attempts|behaviors|cells|clusters|commands|connections|documents|` +
		`errors|events|files|hosts|lines|members|messages|mutants|operations|places|ports|problems|reasons|rules|schedules|` +
		`servers|suites|tests|times|tries|warnings)\b`)
	testkit.Check(t, filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
			strings.Contains(file, "embedded/internal/") {
			return err
		}
		for _, m := range counted.FindAllStringSubmatch(testkit.Read(t, file), -1) {
			if before := strings.TrimSpace(m[1]); before != "than" && before != "to" && before != "of" &&
				!strings.HasSuffix(before, "/") && before != "file" {
				t.Errorf("%s: %s…: use plural.Of", file, m[0])
			}
		}
		return nil
	}))
}
