package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// twoFinds has a test that fails, on purpose, and the same one that passes.
const twoFinds = `
description: two finds
schemaVersion: "1.3"
createEntities:
  - client: {id: client0, useMultipleMongoses: false, uriOptions: {appname: the-test}}
  - database: {id: database0, client: client0, databaseName: log}
  - collection: {id: collection0, database: database0, collectionName: coll}
initialData:
  - {databaseName: log, collectionName: coll, documents: [{_id: 1}]}
tests:
  - description: a test that passes
    operations:
      - &error
        name: failPoint
        object: testRunner
        arguments:
          client: client0
          failPoint: {configureFailPoint: failCommand, mode: {times: 1}, data: {failCommands: [find], errorCode: 91, appName: the-test}}
      - {name: find, object: collection0, arguments: {filter: {}}, expectResult: [{_id: 1}]}
  - description: a test that fails
    operations:
      - *error
      - {name: find, object: collection0, arguments: {filter: {}}, expectResult: [{_id: 2}]}
`

// A failure tells what the servers did meanwhile, on every topology, with
// access control, and without what nobody may read.
func TestServerLogOfFailure(t *testing.T) {
	auth := true
	b := bench.New(t, deployment.EmbeddedOptions{Auth: &auth})
	var told []string
	for _, v := range b.Everywhere(t, parse(t, twoFinds)) {
		var text strings.Builder
		for _, l := range v.ServerLog {
			text.WriteString(l.Server + " " + l.Text + "\n")
		}
		told = append(told, fmt.Sprintf("%s: %s %t", v.Test.Description, v.Status, text.Len() > 0))
		if text.Len() == 0 {
			continue
		}
		rest := text.String()
		for _, want := range []string{"application the-test", "saslContinue admin ok", "fail point failCommand set: ",
			"fail point hits find: error 91 ShutdownInProgress", "find log.coll error 91 ShutdownInProgress", "find log.coll ok"} {
			_, after, found := strings.Cut(rest, want)
			if rest = after; !found {
				t.Fatalf("%s: %q is missing, or in another order:\n%s", v.Test.Deployment, want, text.String())
			}
		}
		// It has nothing of the authentication but names.
		for _, not := range []string{"payload", "r=", "biws", "conversationId"} {
			if strings.Contains(text.String(), not) {
				t.Errorf("%s: the log has %q:\n%s", v.Test.Deployment, not, text.String())
			}
		}
		testkit.Says(t, string(report.JSON()(result.TestFinished{Verdict: v})), `"serverLog"`)
		testkit.Says(t, string(report.HTML()(result.TestFinished{Verdict: v})), `"serverLog"`)
	}
	slices.Sort(told) // on four topologies
	testkit.Equal(t, "verdicts", told, append(slices.Repeat([]string{"a test that fails: failed true"}, 4), slices.Repeat([]string{"a test that passes: passed false"}, 4)...))
}

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
	bench.AllWell(t, b.Run(t, parse(t, goesOn)), result.SkipRequirement)
}
