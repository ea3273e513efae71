package operations

import "sync"

// Model is a write model: an element of bulkWrite's requests or of
// clientBulkWrite's models.
type Model struct {
	Name      string
	Arguments []Argument // sorted by name
}

// Argument gives the argument of a name.
func (m Model) Argument(name string) (Argument, bool) {
	return Operation{Arguments: m.Arguments}.Argument(name)
}

// Models gives the argument in which an operation takes write models, and the
// models that there are ("bulkWrite", "clientBulkWrite"); "" if it takes none.
// The slice must not be changed.
func Models(operation string) (argument string, models []Model) {
	switch operation {
	case "bulkWrite":
		return "requests", allModels().collection
	case "clientBulkWrite":
		return "models", allModels().client
	}
	return "", nil
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

// allModels is modelRows parsed, once. Those of clients name a namespace
// besides (Bulk Write, "Write Models").
var allModels = sync.OnceValue(func() (all struct{ collection, client []Model }) {
	for _, r := range modelRows {
		all.collection = append(all.collection, Model{r.name, r.parse()})
		r.arguments += " namespace!"
		all.client = append(all.client, Model{r.name, r.parse()})
	}
	return all
})
