package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

var lineBreaks = strings.NewReplacer("⏎", "\n", "⇥", "\t", "␍", "\r")

func TestFormat(t *testing.T) {
	testkit.PlayCases(t, "testdata/format.txt", func(t *testing.T, in string) string {
		out, err := Format("f", []byte(lineBreaks.Replace(in)))
		if err != nil {
			return "error: " + err.Error()
		}
		checkFormatted(t, out)
		return strings.ReplaceAll(string(out), "\n", "⏎")
	})
}

// checkFormatted requires that formatting again changes nothing.
func checkFormatted(t *testing.T, formatted []byte) {
	t.Helper()
	again, err := Format("f", formatted)
	testkit.Check(t, err)
	testkit.Equal(t, "formatted again", string(again), string(formatted))
}

// Our suites have the layout already. The official ones can be formatted.
func TestFormatSuites(t *testing.T) {
	for _, root := range []string{"../../specs", "../../program/internal/cli/templates", ""} {
		t.Run(root, func(t *testing.T) {
			folder := root
			if root == "" {
				folder = testkit.Official(t)
			}
			chosen := testkit.Chance(t, 8)
			testkit.Check(t, filepath.WalkDir(folder, func(name string, _ os.DirEntry, err error) error {
				if err != nil || filepath.Ext(name) != ".yml" || strings.Contains(name, "invalid") ||
					strings.Contains(name, "operations.yml") || !chosen() {
					return err
				}
				data, err := os.ReadFile(name)
				testkit.Check(t, err)
				out, err := Format(name, data)
				testkit.Check(t, err)
				if checkFormatted(t, out); root != "" && string(out) != string(data) {
					t.Errorf("utr fmt %s would change this file", name)
				}
				return nil
			}))
		})
	}
}
