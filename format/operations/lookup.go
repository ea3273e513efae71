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
	i, found := slices.BinarySearchFunc(o.Arguments, name,
		func(a Argument, n string) int { return cmp.Compare(a.Name, n) })
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

func compare(a, b Operation) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// modelRows are the models of bulkWrite (CRUD, "Bulk Write Models").
var modelRows = []row{
	{name: "deleteMany", arguments: "filter! collation hint"},
	{name: "deleteOne", arguments: "filter! collation hint"},
	{name: "insertOne", arguments: "document!"},
	{name: "replaceOne", arguments: "filter! replacement! collation hint sort upsert"},
	{name: "updateMany", arguments: "filter! update! arrayFilters collation hint upsert"},
	{name: "updateOne", arguments: "filter! update! arrayFilters collation hint sort upsert"},
}

// Models returns the argument of bulkWrite or clientBulkWrite that contains write models, and the name and arguments
// of each model; "" for other operations. Models of clientBulkWrite have a namespace (Bulk Write, "Write Models").
func Models(operation string) (argument string, models []Operation) {
	more := ""
	switch operation {
	case "bulkWrite":
		argument = "requests"
	case "clientBulkWrite":
		argument, more = "models", " namespace!"
	default:
		return "", nil
	}
	for _, r := range modelRows {
		r.arguments += more
		models = append(models, Operation{Name: r.name, Arguments: r.parse()})
	}
	return argument, models
}
