package support

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/specs/operations"
)

// The page is what go generate writes.
func TestPageIsFresh(t *testing.T) {
	got, err := os.ReadFile(filepath.Join("..", "..", "docs", "engines.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Page(string(got))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/engines.md is stale: run go generate ./internal/support")
	}
}

// What is above the marker stays, what is below is replaced.
func TestPageNeedsItsMarker(t *testing.T) {
	if _, err := Page("# Engines\n"); err == nil {
		t.Error("a page without a marker is accepted")
	}
	page, err := Page("text\n" + Marker + "stale")
	if err != nil || !strings.HasPrefix(page, "text\n"+Marker) || strings.Contains(page, "stale") {
		t.Errorf("%v\n%s", err, page)
	}
}

// A cell changes with what an engine serves.
func TestCell(t *testing.T) {
	drop, _ := operations.Lookup(operations.Collection, "dropIndexes")
	for _, row := range []struct {
		reason string
		taken  []string
		served bool
		want   string
	}{
		{"not served", nil, false, ""},
		{"served whole", []string{"comment", "maxTimeMS", "rawData", "session", "timeoutMS", "writeConcern"}, true, "yes"},
		{"served in part", []string{"comment", "session", "timeoutMS", "writeConcern"}, true, "without maxTimeMS, rawData"},
	} {
		got := cell(drop, column{arguments: func(operations.Kind, string) ([]string, bool) { return row.taken, row.served }})
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}
