package failpoints

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// Command is a command of mongod or mongos by one of its names.
type Command struct {
	Name string
	// Since and Until are the first and the last version with the command; "" means no limit.
	Since, Until string
}

//go:embed commands.txt
var commandList string

var commands = sync.OnceValue(func() map[string]Command {
	all := map[string]Command{}
	for line := range strings.Lines(commandList) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		since, until, _ := strings.Cut(words[0], "-")
		for _, names := range words[1:] {
			for name := range strings.SplitSeq(names, "=") {
				all[name] = Command{name, since, until}
			}
		}
	}
	return all
})

// CommandNamed returns a command by any of its names.
func CommandNamed(name string) (Command, bool) {
	c, known := commands()[name]
	return c, known
}

// CommandNames returns the names of all commands, sorted.
func CommandNames() (names []string) {
	for name := range commands() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
