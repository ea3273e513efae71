package acceptance

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
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
    operations: &operations
      - name: failPoint
        object: testRunner
        arguments:
          client: client0
          failPoint: {configureFailPoint: failCommand, mode: {times: 1}, data: {failCommands: [find], errorCode: 91, appName: the-test}}
      - {name: find, object: collection0, arguments: {filter: {}}, expectResult: [{_id: 1}]}
  - description: a test that fails
    operations:
      - name: failPoint
        object: testRunner
        arguments:
          client: client0
          failPoint: {configureFailPoint: failCommand, mode: {times: 1}, data: {failCommands: [find], errorCode: 91, appName: the-test}}
      - {name: find, object: collection0, arguments: {filter: {}}, expectResult: [{_id: 2}]}
`

// A failure tells what the servers did meanwhile, on every topology, with
// access control, and without what nobody may read.
func TestServerLogOfFailure(t *testing.T) {
	auth := true
	b := bench.New(t, deployment.EmbeddedOptions{Auth: &auth})
	suite, err := specs.Parse("two-finds.yml", []byte(twoFinds))
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, v := range b.Everywhere(t, []*specs.Suite{suite}) {
		var text strings.Builder
		for _, l := range v.ServerLog {
			text.WriteString(l.Server + " " + l.Text + "\n")
		}
		switch v.Test.Description {
		case "a test that passes":
			if v.Status != result.Passed || text.Len() > 0 {
				t.Errorf("%s: %s, with %d lines of the log", v.Test.Deployment, v.Status, len(v.ServerLog))
			}
			continue
		case "a test that fails":
			failed++
		}
		if v.Status != result.Failed {
			t.Errorf("%s: %s", v.Test.Deployment, v.Status)
		}
		at := 0
		for _, want := range []string{"application the-test", "saslContinue admin ok", "fail point failCommand set: ", "fail point hits find: error 91 ShutdownInProgress", "find log.coll error 91 ShutdownInProgress", "find log.coll ok"} {
			i := strings.Index(text.String()[at:], want)
			if i < 0 {
				t.Errorf("%s: %q is missing behind byte %d of\n%s", v.Test.Deployment, want, at, text.String())
				break
			}
			at += i
		}
		// The reports of it have nothing of the authentication but names.
		all := string(report.JSON()(result.TestFinished{Verdict: v})) + string(report.HTML()(result.TestFinished{Verdict: v}))
		for _, not := range []string{"payload", "r=", "biws", "conversationId"} {
			if strings.Contains(text.String(), not) {
				t.Errorf("%s: the log has %q:\n%s", v.Test.Deployment, not, text.String())
			}
		}
		if !strings.Contains(all, `"serverLog"`) {
			t.Errorf("%s: the reports do not have the log", v.Test.Deployment)
		}
	}
	if failed != 4 {
		t.Errorf("the test failed on %d topologies, want 4", failed)
	}
}
