package support

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs/operations"
)

// go generate ./internal/support writes the page.
func TestPageIsFresh(t *testing.T) {
	name := filepath.Join("..", "..", "docs", "engines.md")
	page, err := Page(testkit.Read(t, name))
	testkit.Check(t, err)
	testkit.Golden(t, name, page)
}

// Page replaces the text below the marker.
func TestPageNeedsItsMarker(t *testing.T) {
	if _, err := Page("# Engines\n"); err == nil {
		t.Error("a page without a marker is accepted")
	}
	page, err := Page("text\n" + Marker + "stale")
	if err != nil || !strings.HasPrefix(page, "text\n"+Marker) || strings.Contains(page, "stale") {
		t.Errorf("%v\n%s", err, page)
	}
}

func TestCell(t *testing.T) {
	drop, _ := operations.Lookup(operations.Collection, "dropIndexes")
	for _, row := range []struct {
		reason    string
		supported []string
		found     bool
		want      string
	}{
		{"unsupported", nil, false, ""},
		{"supported", []string{"comment", "maxTimeMS", "rawData", "session", "timeoutMS", "writeConcern"}, true, "yes"},
		{"supported in part", []string{"comment", "session", "timeoutMS", "writeConcern"}, true, "without maxTimeMS, rawData"},
	} {
		got := cell(drop, column{arguments: func(operations.Kind, string) ([]string, bool) { return row.supported, row.found }})
		testkit.Equal(t, row.reason, got, row.want)
	}
}
