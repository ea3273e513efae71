package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// rows is the table of commands.
func (d *Data) rows() []command.Row {
	mongosOnly := []command.Role{command.Mongos}
	rows := []command.Row{
		{Name: "insert", Parse: d.parse(d.insert), Write: true},
		{Name: "update", Parse: d.parse(d.update), Write: true},
		{Name: "delete", Parse: d.parse(d.delete), Write: true},
		{Name: "findAndModify", Aliases: []string{"findandmodify"}, Run: d.serve(d.findAndModify), Write: true},
		{Name: "bulkWrite", Run: d.serve(d.bulkWrite), Write: true, AdminOnly: true, MinWire: 25},
		{Name: "find", Run: d.serve(d.find)},
		{Name: "getMore", Run: d.serve(d.getMore), OnSecondary: true},
		{Name: "killCursors", Run: d.serve(d.killCursors), OnSecondary: true},
		{Name: "aggregate", Parse: d.parse(d.aggregate)},
		{Name: "count", Run: d.serve(d.count)},
		{Name: "distinct", Run: d.serve(d.distinct)},
		{Name: "mapReduce", Aliases: []string{"mapreduce"}, Run: d.serve(d.mapReduce)},
		{Name: "explain", Run: d.serve(d.explain), OnSecondary: true},
		{Name: "create", Run: d.serve(d.createCommand), Write: true},
		{Name: "drop", Run: d.serve(d.drop), Write: true},
		{Name: "dropDatabase", Run: d.serve(d.dropDatabase), Write: true},
		{Name: "createIndexes", Run: d.serve(d.createIndexes), Write: true},
		{Name: "dropIndexes", Aliases: []string{"deleteIndexes"}, Run: d.serve(d.dropIndexes), Write: true},
		{Name: "listIndexes", Run: d.serve(d.listIndexes)},
		{Name: "listCollections", Run: d.serve(d.listCollections)},
		{Name: "listDatabases", Run: d.serve(d.listDatabases)},
		{Name: "collMod", Run: d.serve(d.collMod), Write: true},
		{Name: "renameCollection", Run: d.serve(d.renameCollection), Write: true, AdminOnly: true},
		{Name: "collStats", Aliases: []string{"collstats"}, Run: d.serve(d.collStats)},
		{Name: "dbStats", Aliases: []string{"dbstats"}, Run: d.serve(d.dbStats)},
		{Name: "validate", Run: d.serve(d.validate)},
		{Name: "commitTransaction", Run: d.commitTransaction, Write: true, AdminOnly: true},
		{Name: "abortTransaction", Run: d.abortTransaction, Write: true, AdminOnly: true},
		{Name: "enableSharding", Run: d.serve(d.enableSharding), Write: true, AdminOnly: true, Topologies: mongosOnly},
		{Name: "createSearchIndexes", Run: d.serve(d.createSearchIndexes), Write: true, NoWriteConcern: true, MinWire: wire60},
		{Name: "dropSearchIndex", Run: d.serve(d.dropSearchIndex), Write: true, NoWriteConcern: true, MinWire: wire60},
		{Name: "updateSearchIndex", Run: d.serve(d.updateSearchIndex), Write: true, NoWriteConcern: true, MinWire: wire60},
		{Name: "checkMetadataConsistency", Run: d.serve(d.checkMetadataConsistency), MinWire: wire70, Topologies: mongosOnly},
		{Name: "shardCollection", Run: d.serve(d.shardCollection), Write: true, AdminOnly: true, Topologies: mongosOnly},
	}
	for i, row := range rows {
		if row.Parse != nil {
			rows[i].Run = run(row.Parse)
		}
	}
	return rows
}

// run parses and answers.
func run(parse func(*command.Request) (func() (bson.D, error), error)) func(*command.Request) (bson.D, error) {
	return func(req *command.Request) (bson.D, error) {
		do, err := parse(req)
		if err != nil {
			return nil, err
		}
		return do()
	}
}
