// Package support generates the support matrix of docs/engines.md from the operation tables of the engines.
package support

//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestPageIsFresh$ .

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/specs/operations"
)

// Marker is a line of the page. Everything after it is generated.
const Marker = "<!-- What follows is made by go generate ./internal/support. -->\n"

type column struct {
	name string
	// arguments returns the arguments that the engine supports, and false if it does not support the operation.
	arguments func(operations.Kind, string) ([]string, bool)
}

func columns() []column {
	return []column{{"reference", reference.Arguments}, {"driver", driver.Arguments}}
}

// Page returns the page with a new matrix, or an error if it has no marker.
func Page(old string) (string, error) {
	text, _, found := strings.Cut(old, Marker)
	if !found {
		return "", fmt.Errorf("the page has no line %q", strings.TrimSpace(Marker))
	}
	return text + Marker + matrix(columns()), nil
}

// matrix returns a table with a row for each operation except those of the test runner.
func matrix(columns []column) string {
	var b strings.Builder
	b.WriteString("\n| operation |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, o := range operations.All() {
		if o.Kind == operations.TestRunner {
			continue
		}
		fmt.Fprintf(&b, "| %s.%s |", o.Kind, o.Name)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", cell(o, c))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cell returns "yes", "without" the unsupported arguments, or "" for an unsupported operation.
func cell(o operations.Operation, c column) string {
	arguments, supported := c.arguments(o.Kind, o.Name)
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
