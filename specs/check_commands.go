package specs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/internal/wire/failpoints"
)

// commandHint returns "; did you mean …?" with the command of an operation with this name, with the one that a
// misspelled word most likely means, or with the command of the operation that it means.
func commandHint(name string) string {
	of := operations.Sent()
	of["remove"], of["watch"] = "delete", "aggregate" // methods of the shell
	likely := cmp.Or(of[name], suggest.Word(name, failpoints.CommandNames()),
		of[suggest.Word(name, slices.Sorted(maps.Keys(of)))])
	if likely == "" {
		return ""
	}
	return "; did you mean " + likely + "?"
}

// checkCommandName checks the name of a command that a client sends.
func (i *inspection) checkCommandName(v place) {
	if !v.exists() || v.Kind != source.String || i.sends(v.String) {
		return
	}
	if _, known := failpoints.CommandNamed(v.String); !known {
		i.report("command-name", v, "servers do not have a command %s, and no operation of the file sends it%s", v.String,
			commandHint(v.String))
	}
}

// checkCommandNames checks the command names in expected events, log messages and spans.
func (i *inspection) checkCommandNames(expected place) {
	walk(expected, func(p place) bool {
		i.checkCommandName(p.get("commandName"))
		i.checkCommandName(p.get("db.command.name"))
		return true
	})
}

// sends reports whether an operation of the file runs a command by its name. Tests send commands that do not exist.
func (i *inspection) sends(name string) bool {
	if i.commands == nil {
		i.commands = map[string]bool{}
		walk(i.root("tests"), func(p place) bool {
			if strings.HasSuffix(p.path, ".arguments") {
				i.commands[p.Value.Get("commandName").Text()] = true
				for _, f := range p.get("command").fields() {
					i.commands[f.Key] = true
					break
				}
			}
			return true
		})
	}
	return i.commands[name]
}
