package commands

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
)

// Rows returns the table of the commands that this package implements. Each call returns new rows.
func (d *Deployment) Rows() []Row {
	mongosOnly := []Role{Mongos}
	levels := ReadConcernLevels
	return []Row{
		{Name: "insert", RoutedReadConcern: true, Parse: d.early(insertCommand), Write: true, Retryable: true,
			Transactional: true, Statements: "documents", API: "1"},
		{Name: "update", RoutedReadConcern: true, Parse: d.early(updateCommand), Write: true, Retryable: true,
			Transactional: true, Statements: "updates", API: "1"},
		{Name: "delete", RoutedReadConcern: true, Parse: d.early(deleteCommand), Write: true, Retryable: true,
			Transactional: true, Statements: "deletes", API: "1"},
		{Name: "findAndModify", Aliases: []string{"findandmodify"}, Parse: d.late(findAndModify), ShardRefuses: true,
			Write: true, Retryable: true, Transactional: true, API: "1"},
		{Name: "bulkWrite", Statements: "ops", Parse: d.late(bulkWrite), Write: true, Retryable: true, Transactional: true,
			AdminOnly: true, Since: "8.0", API: "1"},
		{Name: "find", Parse: d.late(find), Transactional: true, ReadConcern: levels, API: "1"},
		{Name: "getMore", Coordinated: true, Parse: d.late(getMore), Transactional: true, OnSecondary: true,
			ReadConcern: levels, NoAfterClusterTime: true, API: "1"},
		{Name: "killCursors", RoutedReadConcern: true, Parse: d.late(killCursors), Transactional: true,
			OnSecondary: true, API: "1",
			StartTransactionError: "Cannot run killCursors as the first operation in a multi-document transaction."},
		{Name: "aggregate", Parse: d.early(aggregate), Transactional: true, WriteConcern: true,
			ReadConcern: levels, API: "1"},
		{Name: "explain", Parse: d.late(explain), API: "1"},
		{Name: "validate", Parse: d.late(validate)},
		{Name: "currentOp", Parse: d.late(currentOp), AdminOnly: true, OnSecondary: true},
		{Name: "count", Parse: d.late(count), ReadConcern: levels[:4], API: "1"},
		{Name: "distinct", Parse: d.late(distinct), Transactional: true, ReadConcern: levels},
		{Name: "mapReduce", Aliases: []string{"mapreduce"}, Parse: d.late(mapReduce), WriteConcern: true,
			ReadConcern: []string{"local", "available"}, NoAfterClusterTime: true},
		{Name: "create", Parse: d.late(createCommand), Write: true, Transactional: true, API: "1"},
		{Name: "drop", Coordinated: true, Parse: d.late(drop), Write: true, API: "1"},
		{Name: "dropDatabase", Coordinated: true, Parse: d.late(dropDatabase), Write: true, API: "1"},
		{Name: "createIndexes", Raw: true, Parse: d.late(createIndexes), Write: true, Transactional: true, API: "1"},
		{Name: "dropIndexes", Aliases: []string{"deleteIndexes"}, Raw: true, Parse: d.late(dropIndexes), Write: true,
			API: "1"},
		{Name: "listIndexes", Parse: d.late(listIndexes), API: "1"},
		{Name: "listCollections", Parse: d.late(listCollections), API: "1"},
		{Name: "listDatabases", Parse: d.late(listDatabases), API: "1"},
		{Name: "collMod", Raw: true, Parse: d.late(collMod), Write: true, API: "1"},
		{Name: "renameCollection", Coordinated: true, Parse: d.late(renameCollection), Write: true, AdminOnly: true},
		{Name: "collStats", Aliases: []string{"collstats"}, Parse: d.late(collStats), OnSecondary: true},
		{Name: "dbStats", Aliases: []string{"dbstats"}, Raw: true, Parse: d.late(dbStats), OnSecondary: true},
		{Name: "commitTransaction", Parse: d.directly(endTransaction), Write: true, Retryable: true, Transactional: true,
			AdminOnly: true, EndsTransaction: true, API: "1",
			StartTransactionError: "Cannot start a transaction with a commit"},
		{Name: "abortTransaction", Parse: d.directly(endTransaction), Write: true, Retryable: true, Transactional: true,
			AdminOnly: true, EndsTransaction: true, API: "1", ReadConcern: []string{"local", "majority", "snapshot"},
			StartTransactionError: "Cannot start a transaction with an abort"},
		{Name: "enableSharding", Parse: d.late(enableSharding), Write: true, AdminOnly: true, Roles: mongosOnly},
		{Name: "createSearchIndexes", Parse: d.directly(searchNotEnabled), Write: true, NoWriteConcern: true, Since: "6.0"},
		{Name: "dropSearchIndex", Parse: d.directly(searchNotEnabled), Write: true, NoWriteConcern: true, Since: "6.0"},
		{Name: "updateSearchIndex", Parse: d.directly(searchNotEnabled), Write: true, NoWriteConcern: true, Since: "6.0"},
		{Name: "checkMetadataConsistency", Parse: d.late(checkMetadataConsistency), Since: "7.0", Roles: mongosOnly},
		{Name: "shardCollection", Parse: d.late(shardCollection), Write: true, AdminOnly: true, Roles: mongosOnly},
	}
}

// searchNotEnabled is the result of a server without Atlas Search.
func searchNotEnabled(*call) (bson.D, error) {
	return nil, fault.Errorf(fault.SearchNotEnabled,
		"Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional configuration. "+
			"Please connect to Atlas or an AtlasCLI local deployment to enable. "+
			"For more information on how to connect, see https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.")
}
