package operations

// modelRows are the models of bulkWrite (CRUD, "Bulk Write Models").
var modelRows = []row{
	{name: "deleteMany", arguments: "filter! collation hint"},
	{name: "deleteOne", arguments: "filter! collation hint"},
	{name: "insertOne", arguments: "document!"},
	{name: "replaceOne", arguments: "filter! replacement! collation hint sort upsert"},
	{name: "updateMany", arguments: "filter! update! arrayFilters collation hint upsert"},
	{name: "updateOne", arguments: "filter! update! arrayFilters collation hint sort upsert"},
}

// Models returns the argument of bulkWrite or clientBulkWrite that contains write models, and the name
// and arguments of each model; "" for other operations. Models of clientBulkWrite have a namespace (Bulk
// Write, "Write Models").
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
