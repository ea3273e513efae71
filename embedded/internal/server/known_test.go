package server

import (
	"testing"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/failpoints"
	"github.com/unified-test-runner/utr/specs"
)

// utr validate knows the commands of every version of the embedded deployment, and its fail points. It would otherwise
// report a correct suite.
func TestValidationKnows(t *testing.T) {
	for name, row := range Commands(commands.New(commands.Options{}).Rows()) {
		command, known := failpoints.CommandNamed(name)
		testkit.Equal(t, "it knows "+name, known, true)
		for _, v := range versions(t) {
			number := specs.Version{Major: v.Numbers[0], Minor: v.Numbers[1]}
			since, _ := specs.ParseVersion(command.Since)
			until, err := specs.ParseVersion(command.Until)
			in := number.Compare(since) >= 0 && (err != nil || number.Compare(until) <= 0)
			if exists := (version.Range{Since: row.Since, Until: row.Until}).Has(v.Wire); exists && !in {
				t.Errorf("%s exists in %s, and validation knows it from %q to %q", name, v.Name, command.Since, command.Until)
			}
		}
	}
	for _, name := range failpoint.Names() {
		_, known := failpoints.PointNamed(name)
		testkit.Equal(t, "it knows "+name, known, true)
	}
}

func versions(t *testing.T) (all []*version.Version) {
	for _, name := range version.Names() {
		v, err := version.Named(name)
		testkit.Check(t, err)
		all = append(all, v)
	}
	return all
}

// A server of each version has, on a mongod or a mongos, each command that it should have, or refuses it by its name.
func TestCommandsAreKnownOrRefused(t *testing.T) {
	all := Commands(commands.New(commands.Options{}).Rows())
	for _, v := range versions(t) {
		number := specs.Version{Major: v.Numbers[0], Minor: v.Numbers[1]}
		for _, name := range failpoints.CommandNames() {
			command, _ := failpoints.CommandNamed(name)
			since, _ := specs.ParseVersion(command.Since)
			until, err := specs.ParseVersion(command.Until)
			exists := number.Compare(since) >= 0 && (err != nil || number.Compare(until) <= 0)
			row := all[name]
			implemented := row != nil && (row.Exists(v.Wire, commands.Primary) || row.Exists(v.Wire, commands.Mongos))
			refused := false
			for _, kind := range []string{"command", "mongod", "mongos"} {
				refused = refused || fault.Refusal(kind, name, v.Wire) != nil
			}
			if name == "hello" && !v.Has.Hello { // from 4.2.10 on, 4.2 has it: for its clients, it is older
				continue
			}
			if exists != (implemented || refused) || implemented && refused {
				t.Errorf("%s in %s: exists %v, implemented %v, refused %v", name, v.Name, exists, implemented, refused)
			}
		}
	}
}
