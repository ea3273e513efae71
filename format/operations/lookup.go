package operations

import (
	"cmp"
	"slices"

	"github.com/unified-test-runner/utr/entities"
)

// Lookup returns the row of an operation on a kind of entity. Callers must not modify it.
func Lookup(kind entities.Kind, name string) (Operation, bool) {
	rows := all()
	i, found := slices.BinarySearchFunc(rows, Operation{Kind: kind, Name: name}, compare)
	if !found {
		return Operation{}, false
	}
	return rows[i], true
}

// All returns all rows, sorted by kind and name. Callers may modify the slice but not the rows.
func All() []Operation { return slices.Clone(all()) }

// KindsWith returns the kinds that have an operation.
func KindsWith(name string) []entities.Kind {
	var kinds []entities.Kind
	for _, row := range all() {
		if row.Name == name {
			kinds = append(kinds, row.Kind)
		}
	}
	return kinds
}

// Argument returns an argument by name.
func (o Operation) Argument(name string) (Argument, bool) {
	i, found := slices.BinarySearchFunc(o.Arguments, name, byName)
	if !found {
		return Argument{}, false
	}
	return o.Arguments[i], true
}

// ArgumentNames returns the names of the arguments.
func (o Operation) ArgumentNames() (names []string) {
	for _, a := range o.Arguments {
		names = append(names, a.Name)
	}
	return names
}

func byName(a Argument, name string) int { return cmp.Compare(a.Name, name) }

func compare(a, b Operation) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// Models returns the argument of bulkWrite or clientBulkWrite that contains write models, and the name and arguments
// of each model; "" for other operations. Models of clientBulkWrite have a namespace (Bulk Write, "Write Models").
func Models(operation string) (argument string, models []Operation) {
	switch operation {
	case "bulkWrite":
		return "requests", slices.Clone(read().models)
	case "clientBulkWrite":
		for _, m := range read().models {
			i, _ := slices.BinarySearchFunc(m.Arguments, "namespace", byName)
			m.Arguments = slices.Insert(slices.Clone(m.Arguments), i, Argument{Name: "namespace", Required: true})
			models = append(models, m)
		}
		return "models", models
	}
	return "", nil
}

// Commands returns the commands that operations send, sorted by name. Callers may modify the slice.
func Commands() []Command { return slices.Clone(read().commands) }

// LookupCommand returns a command by its name among Commands.
func LookupCommand(name string) (Command, bool) {
	commands := read().commands
	i, found := slices.BinarySearchFunc(commands, name,
		func(c Command, name string) int { return cmp.Compare(c.Name, name) })
	if !found {
		return Command{}, false
	}
	return commands[i], true
}

// Core returns the name among Commands of what an operation sends, or its own name.
func Core(operation string) string {
	return named(operation, func(o Operation) string { return cmp.Or(o.core, o.command) })
}

// SpanName returns the name of an operation in spans. All drivers use the name of the command, except for some
// operations (OpenTelemetry, "Covered operations").
func SpanName(operation string) string {
	return named(operation, func(o Operation) string {
		if o.ownSpan {
			return ""
		}
		return o.command
	})
}

// Sent returns the commands of the operations that have other names.
func Sent() map[string]string {
	sent := map[string]string{}
	for _, o := range all() {
		if o.command != "" {
			sent[o.Name] = o.command
		}
	}
	return sent
}

// named returns what a function returns for one of the operations with a name, or the name.
func named(operation string, of func(Operation) string) string {
	for _, o := range all() {
		if o.Name == operation && of(o) != "" {
			return of(o)
		}
	}
	return operation
}
