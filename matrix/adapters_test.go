package matrix

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Each engines file gives the engines that stand below it, or the mistakes in it, each
// at its place.
func TestAdapters(t *testing.T) {
	testkit.Transcript(t, "testdata/adapters.txt", func(t *testing.T, file string) string {
		all, err := ParseAdapters(filepath.Join("drivers", "e.yml"), []byte(file+"\n"), func(name string) string {
			return map[string]string{"PYTHON": "python3.13", "SECRET": "s"}[name]
		}, []string{"reference"})
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		for _, a := range all {
			fmt.Fprintf(&b, "%s: %q in %s with %q", a.Name, a.Command, a.Directory, a.Environment)
			if a.KnownFailing != "" {
				fmt.Fprintf(&b, ", known failures in %s", a.KnownFailing)
			}
			if a.StartTimeout > 0 {
				fmt.Fprintf(&b, ", starts within %s", a.StartTimeout)
			}
			b.WriteByte('\n')
		}
		return b.String()
	})
}
