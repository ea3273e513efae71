package server

import (
	"testing"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/internal/failpoints"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

// utr validate knows the commands of every version of the embedded deployment, and its fail points. It would otherwise
// report a correct suite.
func TestValidationKnows(t *testing.T) {
	for name, row := range Commands(commands.New(commands.Options{}).Rows()) {
		command, known := failpoints.CommandNamed(name)
		testkit.Equal(t, "it knows "+name, known, true)
		for _, p := range profiles {
			version := specs.Version{Major: p.Version[0], Minor: p.Version[1]}
			since, _ := specs.ParseVersion(command.Since)
			until, err := specs.ParseVersion(command.Until)
			in := version.Compare(since) >= 0 && (err != nil || version.Compare(until) <= 0)
			if exists := p.Wire >= row.MinWire && (row.MaxWire == 0 || p.Wire <= row.MaxWire); exists && !in {
				t.Errorf("%s exists in %s, and validation knows it from %q to %q", name, p.Name, command.Since, command.Until)
			}
		}
	}
	for _, name := range failpoint.Names() {
		_, known := failpoints.PointNamed(name)
		testkit.Equal(t, "it knows "+name, known, true)
	}
}
