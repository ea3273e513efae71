package commands

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
)

// Rows returns the table of the commands that this package implements. Each call returns new rows.
func (d *Deployment) Rows() []Row {
	mongosOnly := []Role{Mongos}
	levels := ReadConcernLevels
	search := func(*Request) (bson.D, error) { return nil, searchNotEnabled() }
	rows := []Row{
		{Name: "insert", Parse: d.parse(insertCommand), Write: true, Retryable: true, Transactional: true, OnlyOK: true, API: "1"},
		{Name: "update", Parse: d.parse(updateCommand), Write: true, Retryable: true, Transactional: true, OnlyOK: true, API: "1"},
		{Name: "delete", Parse: d.parse(deleteCommand), Write: true, Retryable: true, Transactional: true, OnlyOK: true, API: "1"},
		{Name: "findAndModify", Aliases: []string{"findandmodify"}, Run: d.serve(findAndModify), Write: true, Retryable: true, Transactional: true, API: "1"},
		{Name: "bulkWrite", Run: d.serve(bulkWrite), Write: true, Retryable: true, Transactional: true, AdminOnly: true, MinWire: 25, API: "1"},
		{Name: "find", Run: d.serve(find), Transactional: true, ReadConcern: levels, API: "1"},
		{Name: "getMore", Run: d.serve(getMore), Transactional: true, OnSecondary: true, ReadConcern: levels, NoAfterClusterTime: true, API: "1"},
		{Name: "killCursors", Run: d.serve(killCursors), Transactional: true, OnSecondary: true, API: "1",
			StartTransactionError: "Cannot run killCursors as the first operation in a multi-document transaction."},
		{Name: "aggregate", Parse: d.parse(aggregate), Transactional: true, WriteConcern: true, ReadConcern: levels, API: "1"},
		{Name: "count", Run: d.serve(count), ReadConcern: levels[:4], API: "1"},
		{Name: "distinct", Run: d.serve(distinct), Transactional: true, ReadConcern: levels},
		{Name: "mapReduce", Aliases: []string{"mapreduce"}, Run: d.serve(mapReduce), WriteConcern: true,
			ReadConcern: []string{"local", "available"}, NoAfterClusterTime: true},
		{Name: "create", Run: d.serve(createCommand), Write: true, Transactional: true, API: "1"},
		{Name: "drop", Run: d.serve(drop), Write: true, API: "1"},
		{Name: "dropDatabase", Run: d.serve(dropDatabase), Write: true, API: "1"},
		{Name: "createIndexes", Run: d.serve(createIndexes), Write: true, Transactional: true, API: "1"},
		{Name: "dropIndexes", Aliases: []string{"deleteIndexes"}, Run: d.serve(dropIndexes), Write: true, API: "1"},
		{Name: "listIndexes", Run: d.serve(listIndexes), API: "1"},
		{Name: "listCollections", Run: d.serve(listCollections), API: "1"},
		{Name: "listDatabases", Run: d.serve(listDatabases), API: "1"},
		{Name: "collMod", Run: d.serve(collMod), Write: true, API: "1"},
		{Name: "renameCollection", Run: d.serve(renameCollection), Write: true, AdminOnly: true},
		{Name: "collStats", Aliases: []string{"collstats"}, Run: d.serve(collStats)},
		{Name: "dbStats", Aliases: []string{"dbstats"}, Run: d.serve(dbStats)},
		{Name: "commitTransaction", Run: d.endTransaction, Write: true, Retryable: true, Transactional: true, AdminOnly: true, EndsTransaction: true, API: "1",
			StartTransactionError: "Cannot start a transaction with a commit"},
		{Name: "abortTransaction", Run: d.endTransaction, Write: true, Retryable: true, Transactional: true, AdminOnly: true, EndsTransaction: true, API: "1",
			StartTransactionError: "Cannot start a transaction with an abort"},
		{Name: "enableSharding", Run: d.serve(enableSharding), Write: true, AdminOnly: true, Topologies: mongosOnly},
		{Name: "createSearchIndexes", Run: search, Write: true, NoWriteConcern: true, MinWire: wire60},
		{Name: "dropSearchIndex", Run: search, Write: true, NoWriteConcern: true, MinWire: wire60},
		{Name: "updateSearchIndex", Run: search, Write: true, NoWriteConcern: true, MinWire: wire60},
		{Name: "checkMetadataConsistency", Run: d.serve(checkMetadataConsistency), MinWire: wire70, Topologies: mongosOnly},
		{Name: "shardCollection", Run: d.serve(shardCollection), Write: true, AdminOnly: true, Topologies: mongosOnly},
	}
	for i, row := range rows {
		if row.Parse != nil {
			rows[i].Run = run(row.Parse)
		}
	}
	return rows
}

// searchNotEnabled is the error of a server without Atlas Search.
func searchNotEnabled() error {
	return fault.Errorf(fault.SearchNotEnabled, "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional configuration. "+
		"Please connect to Atlas or an AtlasCLI local deployment to enable. "+
		"For more information on how to connect, see https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.")
}
