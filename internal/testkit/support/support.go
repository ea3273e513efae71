// Package support checks the matrix of docs/driver/engines.md against the tables of operations of the Go engines.
package support

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// marker is a line of the page. Everything after it is generated.
const marker = "<!-- What follows is made by go generate ./reference ./engine/driver. -->\n"

// The columns of the engines.
const (
	Reference = 1
	Driver    = 2
)

// Column checks an engine's column of the matrix.
func Column[R enginekit.Row](t *testing.T, column int, table enginekit.Table[R]) {
	t.Helper()
	name := filepath.Join(testkit.Root(t), "docs", "driver", "engines.md")
	page, matrix, found := strings.Cut(testkit.Read(t, name), marker)
	if !found {
		t.Fatalf("the page has no line %q", marker)
	}
	old := map[string][]string{}
	for l := range strings.Lines(matrix) {
		if cells := strings.Split(l, " |"); len(cells) == 4 {
			old[cells[0]] = cells
		}
	}
	page += marker + "\n| operation | reference | driver |\n|---|---|---|\n"
	for _, o := range operations.All() {
		if o.Kind == entities.TestRunner {
			continue
		}
		name := "| " + string(o.Kind) + "." + o.Name
		cells := old[name]
		if cells == nil {
			cells = []string{name, " ", " ", "\n"}
		}
		cells[column] = " " + cell(o, table)
		page += strings.Join(cells, " |")
	}
	testkit.Golden(t, name, page)
}

// cell returns "yes", "without" the unsupported arguments, or "" for an unsupported operation.
func cell[R enginekit.Row](o operations.Operation, table enginekit.Table[R]) string {
	row, supported := table[enginekit.Key{Kind: o.Kind, Name: o.Name}]
	if !supported {
		return ""
	}
	var missing []string
	for _, a := range o.Arguments {
		if !row.Accepts(a.Name) && a.Name != "callback" {
			missing = append(missing, a.Name)
		}
	}
	if len(missing) == 0 {
		return "yes"
	}
	return "without " + strings.Join(missing, ", ")
}
