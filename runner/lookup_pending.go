package runner

import (
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/specs/operations"
)

func lookup(kind entities.Kind, name string) (operations.Operation, bool) {
	args := func(names ...string) (a []operations.Argument) {
		for _, n := range names {
			a = append(a, operations.Argument{Name: n, Required: n == "filter" || n == "document"})
		}
		return a
	}
	t := map[string]operations.Operation{
		"collection.find":                    {Arguments: args("filter", "session", "limit"), Result: operations.RootDocuments},
		"collection.distinct":                {Arguments: args("filter", "session", "fieldName"), Result: operations.Value},
		"collection.insertOne":               {Arguments: args("document", "session"), Result: operations.RootDocument},
		"collection.createFindCursor":        {Arguments: args("filter", "session"), Result: operations.NewCursor},
		"cursor.close":                       {},
		"cursor.iterateUntilDocumentOrError": {Result: operations.RootDocument},
		"client.close":                       {},
		"session.withTransaction":            {Arguments: args("callback")},
		"session.startTransaction":           {},
		"database.runCommand":                {Arguments: args("command", "commandName"), Result: operations.RootDocument},
	}
	o, ok := t[string(kind)+"."+name]
	return o, ok
}
