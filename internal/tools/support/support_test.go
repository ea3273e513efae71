// Package support generates the support matrix of docs/driver/engines.md from the operation tables of the engines.
package support

//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestPageIsFresh$ .

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
)

// marker is a line of the page. Everything after it is generated.
const marker = "<!-- What follows is made by go generate ./internal/tools/support. -->\n"

// go generate ./internal/tools/support writes the page.
func TestPageIsFresh(t *testing.T) {
	name := filepath.Join("..", "..", "..", "docs", "driver", "engines.md")
	text, _, found := strings.Cut(testkit.Read(t, name), marker)
	if !found {
		t.Fatalf("the page has no line %q", marker)
	}
	var b strings.Builder
	b.WriteString(text + marker + "\n| operation | reference | driver |\n|---|---|---|\n")
	for _, o := range operations.All() {
		if o.Kind != entities.TestRunner {
			fmt.Fprintf(&b, "| %s.%s | %s | %s |\n", o.Kind, o.Name, cell(o, reference.Arguments), cell(o, driver.Arguments))
		}
	}
	testkit.Golden(t, name, b.String())
}

// cell returns "yes", "without" the unsupported arguments, or "" for an unsupported operation.
func cell(o operations.Operation, of func(entities.Kind, string) ([]string, bool)) string {
	arguments, supported := of(o.Kind, o.Name)
	if !supported {
		return ""
	}
	var missing []string
	for _, a := range o.Arguments {
		if !slices.Contains(arguments, a.Name) {
			missing = append(missing, a.Name)
		}
	}
	if len(missing) == 0 {
		return "yes"
	}
	return "without " + strings.Join(missing, ", ")
}
