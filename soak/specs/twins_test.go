// Package specs_test loads every official suite together with its JSON twin.
package specs_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

// No official suite differs from its JSON twin, and every twin that is loaded
// by itself gets the same warnings.
func TestOfficialTwins(t *testing.T) {
	root := testkit.Official(t)
	loaded, err := specs.Load([]string{root}, specs.Options{Twins: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = specs.Load([]string{filepath.Join(root, "unified-test-format/tests/invalid")}, specs.Options{Twins: true})
	var refused *specs.LoadError
	if !errors.As(err, &refused) {
		t.Fatalf("loading the invalid suites gives %v", err)
	}
	for _, e := range refused.Errors {
		if strings.Contains(e.Error(), "JSON twin") {
			t.Errorf("refused: %v", e)
		}
	}
	warnings := func(s *specs.Suite) string {
		var all []string
		for _, w := range s.Warnings {
			all = append(all, w.Path+" "+w.Rule)
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	twins := 0
	for _, s := range loaded.Suites {
		path := strings.TrimSuffix(s.File, filepath.Ext(s.File)) + ".json"
		twin, err := specs.Load([]string{path}, specs.Options{})
		if err != nil || len(twin.Suites) != 1 {
			continue // it has none
		}
		twins++
		if got, want := warnings(twin.Suites[0]), warnings(s); got != want {
			t.Errorf("%s: the warnings are\n%s\nwant\n%s", path, got, want)
		}
	}
	if twins < 400 {
		t.Errorf("only %d twins were loaded", twins)
	}
	t.Logf("%d suites, %d twins", len(loaded.Suites), twins)
}
