package runner

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/specs"
)

// wholeDatabase is the collection of a namespace that stands for all collections of a database.
const wholeDatabase = "*"

// Namespaces returns the sorted namespaces ("database.collection") that suites name anywhere: in initial data,
// outcomes, entities and arguments of operations. A run can replace their documents. "database.*" is a database that a
// test drops. Not listed are collections that the server maintains, whose names begin with "system.", and the state
// collections of queryable encryption, whose names begin with "enxcol_.".
func Namespaces(suites []*specs.Suite) []string {
	n := named{}
	for _, s := range suites {
		n.data(s.InitialData)
		for _, t := range s.Tests {
			n.test(t)
		}
	}
	return n.sorted()
}

// unfilled returns the sorted collections that a test names, without the collections of initialData and the server's
// own databases.
func unfilled(t *specs.Test, initial []specs.CollectionData) (all []*collection) {
	n := named{}
	n.test(t)
	for _, d := range initial {
		delete(n, d.DatabaseName+"."+d.CollectionName)
	}
	for _, namespace := range n.sorted() {
		database, name, _ := strings.Cut(namespace, ".")
		if name != wholeDatabase && !slices.Contains([]string{"admin", "config", "local"}, database) {
			all = append(all, &collection{database: database, name: name, absent: true, changed: operations.Reads})
		}
	}
	return all
}

// named is a set of namespaces.
type named map[string]bool

// sorted returns the namespaces whose collections the server does not maintain.
func (n named) sorted() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(n)), func(namespace string) bool {
		_, collection, _ := strings.Cut(namespace, ".")
		return serverOwned(collection)
	})
}

func (n named) add(database, collection string) {
	if database != "" && collection != "" {
		n[database+"."+collection] = true
	}
}

// serverOwned reports whether the server, or queryable encryption, maintains a collection.
func serverOwned(collection string) bool {
	return strings.HasPrefix(collection, "system.") || strings.HasPrefix(collection, "enxcol_.")
}

// full adds the namespace in a value.
func (n named) full(v *source.Value) {
	database, collection, _ := strings.Cut(v.Text(), ".")
	n.add(database, collection)
}

func (n named) data(all []specs.CollectionData) {
	for _, d := range all {
		n.add(d.DatabaseName, d.CollectionName)
	}
}

func (n named) test(t *specs.Test) {
	n.data(t.Outcome)
	databases := n.entities(t.Entities)
	for _, step := range t.Steps {
		n.operation(databases[step.Object], step.Name, step.Arguments)
	}
}

// entities adds the collections of entities. It returns the databases of databases, collections and buckets by entity.
func (n named) entities(all []specs.Entity) map[string]string {
	databases := map[string]string{}
	for _, e := range all {
		database := databases[e.Value.Get("database").Text()]
		switch e.Kind {
		case entities.Client:
			n.full(e.Value.Get("autoEncryptOpts").Get("keyVaultNamespace"))
		case entities.ClientEncryption:
			n.full(e.Value.Get("clientEncryptionOpts").Get("keyVaultNamespace"))
		case entities.Database:
			database = e.Value.Get("databaseName").Text()
		case entities.Collection:
			n.add(database, e.Value.Get("collectionName").Text())
		case entities.Bucket:
			name := cmp.Or(e.Value.Get("bucketOptions").Get("bucketName").Text(), "fs")
			n.add(database, name+".files")
			n.add(database, name+".chunks")
		}
		databases[e.ID] = database
	}
	return databases
}

// operation adds what the arguments of an operation on an object of a database name.
func (n named) operation(database, name string, arguments *source.Value) {
	switch name {
	case "createCollection", "dropCollection", "modifyCollection":
		n.add(database, arguments.Get("collection").Text())
	case "rename": // of a collection
		n.add(database, arguments.Get("to").Text())
	case "mapReduce":
		n.target(database, arguments.Get("out"), "replace", "merge", "reduce")
	case "aggregate":
		n.pipeline(database, arguments.Get("pipeline"))
	case "clientBulkWrite":
		for _, model := range arguments.Get("models").Elements() {
			for _, f := range model.Fields {
				n.full(f.Value.Get("namespace"))
			}
		}
	case "dropDatabase":
		n.add(arguments.Get("database").Text(), wholeDatabase)
	case "runCommand", "runCursorCommand", "createCommandCursor":
		n.command(database, arguments.Get("command"))
	}
}

// pipeline adds the targets of the stages $out and $merge. Such a stage is the last one.
func (n named) pipeline(database string, stages *source.Value) {
	for _, stage := range stages.Elements() {
		n.target(database, stage.Get("$out"), "coll")
		n.target(database, stage.Get("$merge"), "into")
	}
}

// target adds an output: a name, or a document with a name or another output below one of the keys.
func (n named) target(database string, v *source.Value, keys ...string) {
	if v == nil {
		return
	}
	if other := v.Get("db").Text(); other != "" {
		database = other
	}
	n.add(database, v.Text())
	for _, key := range keys {
		n.target(database, v.Get(key), "coll")
	}
}

// ofCollection are the commands whose first value is the name of a collection.
var ofCollection = strings.Fields("aggregate collMod compact convertToCapped count create createIndexes createSearchIndexes " +
	"delete distinct drop dropIndexes dropSearchIndex find findAndModify insert listIndexes mapReduce update updateSearchIndex")

func (n named) command(database string, command *source.Value) {
	if command == nil || len(command.Fields) == 0 {
		return
	}
	first := command.Fields[0]
	if slices.Contains(ofCollection, first.Key) {
		n.add(database, first.Value.Text())
	}
	switch first.Key {
	case "aggregate", "mapReduce":
		n.operation(database, first.Key, command)
	case "renameCollection":
		n.full(first.Value)
		n.full(command.Get("to"))
	case "dropDatabase":
		n.add(database, wholeDatabase)
	case "bulkWrite":
		for _, one := range command.Get("nsInfo").Elements() {
			n.full(one.Get("ns"))
		}
	}
}
