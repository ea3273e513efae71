package acceptance

import (
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// goesOn has servers that go on with a command long after they have closed its
// connection. The operation is over by then.
const goesOn = `
description: goes on
schemaVersion: "1.3"
runOnRequirements: [{topologies: [replicaset, sharded, load-balanced]}]
createEntities:
  - client: {id: setup, useMultipleMongoses: false}
  - client: {id: client, useMultipleMongoses: false, uriOptions: {appname: goes-on}}
  - database: {id: database, client: client, databaseName: goes-on}
  - collection: {id: collection, database: database, collectionName: coll}
initialData:
  - {databaseName: goes-on, collectionName: coll, documents: []}
tests:
  - description: a document comes late
    operations:
      - &late
        name: failPoint
        object: testRunner
        arguments:
          client: setup
          failPoint:
            configureFailPoint: failCommandSequence
            mode: alwaysOn
            data: {failCommands: [insert], appName: goes-on, sequence: [{closeConnection: true}, {loseReply: true, blockConnection: true, blockTimeMS: 300}]}
      - &insert {name: insertOne, object: collection, arguments: {document: {_id: 1}}, expectError: {isClientError: true}}
    outcome:
      - {databaseName: goes-on, collectionName: coll, documents: [{_id: 1}]}
  - description: a fail point strikes late
    operations:
      - name: failPoint
        object: testRunner
        arguments:
          client: setup
          failPoint: {configureFailPoint: onPrimaryTransactionalWrite, mode: alwaysOn, data: {failBeforeCommitExceptionCode: 1}}
      - *late
      - *insert
    outcome:
      - {databaseName: goes-on, collectionName: coll, documents: []}
`

// What a test sent is over on the servers before its fail points go off and
// before its outcome is read.
func TestServersThatGoOn(t *testing.T) {
	b := bench.New(t, deployment.EmbeddedOptions{})
	b.Config.AllTopologies, b.Config.Jobs = true, 1
	suite, err := specs.Parse("goes-on.yml", []byte(goesOn))
	if err != nil {
		t.Fatal(err)
	}
	bench.AllWell(t, b.Run(t, []*specs.Suite{suite}), result.SkipRequirement)
}
