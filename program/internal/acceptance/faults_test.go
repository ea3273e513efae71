package acceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// The faults in docs/faults.md that a deployment can have during a test. The runner
// treats the deployment as an existing cluster, so it restarts nothing.

// fragile is an existing deployment with methods to break it.
type fragile struct {
	*embedded.Deployment
	t *testing.T
}

func start(t *testing.T, o embedded.Options) *fragile {
	t.Helper()
	d, err := embedded.Start(context.Background(), o)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return &fragile{d, t}
}

// client connects to the deployment, or to one of its members.
func (f *fragile) client(uri string) *mongo.Client {
	f.t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	testkit.Check(f.t, err)
	f.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the member may be down
		defer cancel()
		_ = c.Disconnect(ctx)
	})
	return c
}

func (f *fragile) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Error(err)
	}
}

// failCommand sets the fail point on all members for the runner's own client, alwaysOn if times is negative.
func (f *fragile) failCommand(command string, times int, data bson.E) {
	f.t.Helper()
	var mode any = bson.D{{Key: "times", Value: times}}
	if times < 0 {
		mode = "alwaysOn"
	}
	for _, host := range f.Hosts() {
		f.check(f.client(f.DirectURI(host)).Database("admin").RunCommand(testkit.Context(f.t), bson.D{
			{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{command}},
				{Key: "appName", Value: "utr internal client"}, data}}}).Err())
	}
}

// load loads a suite in testdata.
func load(t *testing.T, name string) []*specs.Suite {
	t.Helper()
	suite, err := specs.Parse(name+".yml", []byte(testkit.Read(t, "testdata/"+name+".yml")))
	testkit.Check(t, err)
	return []*specs.Suite{suite}
}

// run runs a suite on the deployment with the reference engine.
func (f *fragile) run(ctx context.Context, suite []*specs.Suite, held *lock.Options,
	notify func(result.Note)) (verdicts []*result.Verdict, summary result.Summary) {
	f.t.Helper()
	source, err := deployment.OpenCluster(context.Background(), deployment.ClusterOptions{Lock: held,
		URI: f.URI() + testkit.Either(strings.Contains(f.URI(), "?"), "&", "?") + "serverSelectionTimeoutMS=2000"})
	testkit.Check(f.t, err)
	engine, err := reference.New(reference.Options{Backoff: reference.BackoffNone})
	testkit.Check(f.t, err)
	config := runner.Config{Engine: engine, Source: source, Timeout: testkit.Patience, Notify: func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdicts = append(verdicts, f.Verdict)
		}
		notify(n)
	}}
	summary, err = runner.Run(ctx, suite, config)
	f.check(errors.Join(err, engine.Close(), source.Close()))
	return verdicts, summary
}

// When one mongos of two dies, even the one that the runner writes initial data to, one test is broken, and the others
// run on the other mongos, except those that require several.
func TestMongosIsLeftOut(t *testing.T) {
	f := start(t, embedded.Options{Topology: embedded.Sharded})
	suite, err := specs.Parse("left.yml", []byte(`description: left
schemaVersion: "1.10"
createEntities:
  - client: {id: client}
  - database: {id: database, client: client, databaseName: db}
  - collection: {id: collection, database: database, collectionName: coll}
initialData: [{databaseName: db, collectionName: coll, documents: [{_id: 1}]}]
tests:
  - {description: breaks, operations: []}
  - description: requires several
    operations:
      - {name: createEntities, object: testRunner, arguments: {entities: [{client: {id: many, useMultipleMongoses: true}}]}}
  - description: passes
    operations: [{name: find, object: collection, arguments: {filter: {}}, expectResult: [{_id: 1}]}]
  - {description: passes again, operations: [{name: insertOne, object: collection, arguments: {document: {_id: 2}}}]}
`))
	testkit.Check(t, err)
	var once sync.Once
	verdicts, summary := f.run(t.Context(), []*specs.Suite{suite}, &lock.Options{}, func(n result.Note) {
		if _, is := n.(result.TestStarted); is {
			once.Do(func() { f.check(f.Kill(f.Hosts()[0])) })
		}
	})
	for i, want := range []struct {
		status result.Status
		says   string
	}{
		{result.Broken, "during the test, " + f.Hosts()[0] + " stopped answering"},
		{result.Skipped, "needs several mongoses (useMultipleMongoses), the deployment has one"},
		{result.Passed, ""},
		{result.Passed, ""},
	} {
		if v := verdicts[i]; v.Status != want.status || !strings.Contains(v.Reason, want.says) {
			t.Error(suitetest.Describe(v))
		}
	}
	testkit.Equal(t, "exit code", summary.ExitCode(), 3)
}

// A run on a set with a member that does not answer says so where durations are printed.
func TestSlowMember(t *testing.T) {
	f := start(t, embedded.Options{Topology: embedded.ReplicaSet})
	down := f.Hosts()[2]
	f.check(f.Kill(down))
	var info string
	f.run(t.Context(), load(t, "two-tests"), nil,
		func(n result.Note) {
			if ready, is := n.(result.DeploymentReady); is {
				info = ready.Info
			}
		})
	testkit.Contains(t, info, "on 3 hosts; "+down+" does not answer, so tests may take ten times as long")
}

// The runner's own client retries when the primary steps down before each test, and
// when servers reject its commands once or twice. If they always do, the test is
// broken, with the reason.
func TestRunnersOwnClient(t *testing.T) {
	suite := load(t, "two-tests")
	suite[0].Tests[1].Outcome = suite[0].InitialData
	failing := func(command string, times int, data bson.E) func(*fragile) {
		return func(f *fragile) { f.failCommand(command, times, data) }
	}
	notPrimary, closed := bson.E{Key: "errorCode", Value: 10107}, bson.E{Key: "closeConnection", Value: true}
	for _, r := range []struct {
		reason string
		before func(*fragile) // each test
		want   result.Status
		says   string
	}{
		{"the primary steps down", func(f *fragile) { f.check(f.StepDown()) }, result.Passed, ""},
		{"initial data: not primary, once", failing("drop", 1, notPrimary), result.Passed, ""},
		{"initial data: not primary, twice", failing("insert", 2, notPrimary), result.Passed, ""},
		{"initial data: the server closes the connection", failing("insert", 1, closed), result.Passed, ""},
		{"outcome: not primary", failing("find", 1, notPrimary), result.Passed, ""},
		{"outcome: the server closes the connection", failing("find", 1, closed), result.Passed, ""},
		{"initial data: not primary, always", failing("insert", -1, notPrimary), result.Broken,
			"initial data of db.coll: insert: "},
		{"initial data: a permanent error", failing("insert", 1, bson.E{Key: "errorCode", Value: 8}), result.Broken,
			"initial data of db.coll: insert: "},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			f := start(t, embedded.Options{Topology: embedded.ReplicaSet})
			verdicts, _ := f.run(t.Context(), suite, nil, func(n result.Note) {
				if _, ok := n.(result.TestStarted); ok {
					r.before(f)
				}
			})
			testkit.Equal(t, "verdicts", len(verdicts), 2)
			for _, v := range verdicts {
				if v.Status != r.want || !strings.Contains(v.Reason, r.says) {
					t.Error(suitetest.Describe(v))
				}
			}
		})
	}
}

// If another run takes the lock during a test, the run ends in bounded time, as
// broken, and the other run keeps the lock.
func TestLockTakenInTheMiddle(t *testing.T) {
	f := start(t, embedded.Options{Topology: embedded.ReplicaSet})
	document := f.client(f.URI()).Database(lock.Database).Collection(lock.Collection)
	running, lose := context.WithCancelCause(testkit.Context(t))
	defer lose(nil)
	now := time.Now()
	other := bson.D{{Key: "run", Value: "other"}, {Key: "host", Value: "far"}, {Key: "pid", Value: 7},
		{Key: "started", Value: now}, {Key: "renewed", Value: now}, {Key: "expires", Value: now.Add(time.Hour)}}
	_, summary := f.run(running, load(t, "waiting"),
		&lock.Options{Lease: 3 * time.Second, Lost: func(err error) { lose(err) }}, func(n result.Note) {
			if s, ok := n.(result.TestStarted); ok && s.Test.Description == "waits" {
				_, err := document.ReplaceOne(context.Background(), bson.D{{Key: "_id", Value: "run"}}, other)
				f.check(err)
			}
		})
	var lost *lock.LostError
	if cause := context.Cause(running); !errors.As(cause, &lost) || lost.Holder == nil || lost.Holder.Host != "far" {
		t.Errorf("the run ended with %v", cause)
	}
	if !summary.Interrupted || summary.ExitCode() != 3 || summary.Passed > 0 {
		t.Errorf("%+v", summary)
	}
	found, err := document.FindOne(testkit.Context(t), bson.D{}).Raw()
	testkit.Check(t, err)
	testkit.Equal(t, "holder", found.Lookup("run").StringValue(), "other")
}

// A failure includes what the servers logged during the test, on every topology, with
// access control, and without secrets.
func TestServerLogOfFailure(t *testing.T) {
	auth := true
	b := suitetest.New(t, deployment.EmbeddedOptions{Auth: &auth})
	var verdicts []string
	for _, v := range b.Everywhere(t, load(t, "two-finds")) {
		var text strings.Builder
		for _, l := range v.ServerLog {
			text.WriteString(l.Server + " " + l.Text + "\n")
		}
		verdicts = append(verdicts, fmt.Sprintf("%s: %s %t", v.Test.Description, v.Status, text.Len() > 0))
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
		// Of authentication, it contains only names.
		for _, not := range []string{"payload", "r=", "biws", "conversationId"} {
			if strings.Contains(text.String(), not) {
				t.Errorf("%s: the log has %q:\n%s", v.Test.Deployment, not, text.String())
			}
		}
		testkit.Contains(t, string(report.JSON()(result.TestFinished{Verdict: v})), `"serverLog"`)
		testkit.Contains(t, string(report.HTML()(result.TestFinished{Verdict: v})), `"serverLog"`)
	}
	slices.Sort(verdicts) // on four topologies
	testkit.Equal(t, "verdicts", verdicts,
		append(slices.Repeat([]string{"a test that fails: failed true"}, 4),
			slices.Repeat([]string{"a test that passes: passed false"}, 4)...))
}

// The servers finish the commands of a test before its fail points are turned off and
// its outcome is read.
func TestServersContinueCommands(t *testing.T) {
	b := suitetest.New(t, deployment.EmbeddedOptions{})
	b.Config.AllTopologies, b.Config.Jobs = true, 1
	suitetest.CheckVerdicts(t, b.Run(t, load(t, "goes-on")), result.SkipRequirement)
}
