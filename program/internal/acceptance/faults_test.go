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

// Operations of testdata/middle.yml.
const (
	findOne   = `{name: find, object: collection, arguments: {filter: {}}, expectResult: [{_id: 1}]}`
	insertOne = `{name: insertOne, object: collection, arguments: {document: {_id: 2}}}`
	// gated is an insertOne to the server that was primary before the gate was opened.
	gated = `{name: find, object: collection, arguments: {filter: {}}}
      - name: waitForEvent # a late first answer would tell the client about the election
        object: testRunner
        arguments: {client: client, event: {serverDescriptionChangedEvent: {newDescription: {type: RSSecondary}}}, count: 2}
      # a driver that waits for its first servers may ask for another check, which follows after 500 ms
      - {name: wait, object: testRunner, arguments: {ms: 1500}}
      - {name: createChangeStream, object: gate, arguments: {pipeline: []}, saveResultAsEntity: changes}
      - {name: insertOne, object: gate, arguments: {document: {_id: waits}}}
      - {name: iterateUntilDocumentOrError, object: changes}
      - {name: iterateUntilDocumentOrError, object: changes}
      - ` + insertOne
)

// Options of the client that gated uses: it does not notice an election before it sends a command.
const unaware = ", heartbeatFrequencyMS: 90000, serverMonitoringMode: poll"

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

func (f *fragile) admin(c *mongo.Client, command bson.D) bson.Raw {
	f.t.Helper()
	reply, err := c.Database("admin").RunCommand(testkit.Context(f.t), command).Raw()
	f.check(err)
	return reply
}

func (f *fragile) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Error(err)
	}
}

// failCommand sets the fail point on all members, alwaysOn if times is negative.
func (f *fragile) failCommand(command, appName string, times int, data ...bson.E) map[string]*mongo.Client {
	members := make(map[string]*mongo.Client)
	var mode any = bson.D{{Key: "times", Value: times}}
	if times < 0 {
		mode = "alwaysOn"
	}
	for _, host := range f.Hosts() {
		members[host] = f.client(f.DirectURI(host))
		f.admin(members[host], bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode},
			{Key: "data", Value: append(bson.D{{Key: "failCommands", Value: bson.A{command}}, {Key: "appName", Value: appName}},
				data...)}})
	}
	return members
}

// block makes every member block a find once, for longer than anyone waits for it. The returned function waits until a
// member does, and returns its address.
func (f *fragile) block(appName string) (blocked func() string) {
	members := f.failCommand("find", appName, 1, bson.E{Key: "blockConnection", Value: true},
		bson.E{Key: "blockTimeMS", Value: 2 * testkit.Patience.Milliseconds()})
	return func() string {
		f.t.Helper()
		address := ""
		testkit.Until(f.t, "find triggers the fail point", func() bool {
			for host, c := range members {
				reply := f.admin(c, bson.D{{Key: "getParameter", Value: 1}, {Key: "failpoint.failCommand", Value: 1}})
				if n, _ := reply.Lookup("failpoint.failCommand", "timesEntered").AsInt64OK(); n > 0 {
					address = host
				}
			}
			return address != ""
		})
		for _, c := range members { // do not block a retry
			f.admin(c, bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}})
		}
		return address
	}
}

// atGate waits until a test waits at the gate, calls a function with the primary, and opens the gate.
func (f *fragile) atGate(happen func(f *fragile, host string)) (primary string) {
	f.t.Helper()
	gate := f.client(f.URI()).Database("db").Collection("gate")
	testkit.Until(f.t, "the test waits at the gate", func() bool {
		n, err := gate.CountDocuments(testkit.Context(f.t), bson.D{})
		return err == nil && n > 0
	})
	primary = f.Primary()
	happen(f, primary)
	_, err := gate.InsertOne(testkit.Context(f.t), bson.D{{Key: "_id", Value: "open"}})
	f.check(err)
	return primary
}

// load loads a suite in testdata and replaces words in it.
func load(t *testing.T, name string, words ...string) []*specs.Suite {
	t.Helper()
	text := testkit.Read(t, "testdata/"+name+".yml")
	suite, err := specs.Parse(name+".yml", []byte(strings.NewReplacer(words...).Replace(text)))
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

// When a server fails during a test, the test passes if the engine used another
// server, and is otherwise broken. It fails only if all servers stayed available.
func TestServersInTheMiddle(t *testing.T) {
	const appName = "in the middle"
	alone, set, sharded := embedded.Options{}, embedded.Options{Topology: embedded.ReplicaSet}, embedded.Options{Topology: embedded.Sharded}
	kill := func(f *fragile, host string) { f.check(f.Kill(host)) }
	stepDown := func(f *fragile, _ string) { f.check(f.StepDown()) }
	restart := func(f *fragile, host string) { f.check(errors.Join(f.Kill(host), f.Restart(host))) }
	killAll := func(f *fragile, blocked string) { // that one last, because killing it unblocks the test
		for _, host := range f.Hosts() {
			if host != blocked {
				kill(f, host)
			}
		}
		kill(f, blocked)
	}
	const stopped = "during the test, HOST stopped answering"
	for _, r := range []struct {
		reason                string
		o                     embedded.Options
		uriOptions, operation string
		happen                func(f *fragile, host string)
		want                  result.Status
		says                  string // in the reason; HOST is the server that blocks
		next                  result.Status
	}{
		{"the standalone is killed", alone, "retryReads: false", findOne, kill, result.Broken,
			"the deployment stopped answering: HOST: ", result.Skipped},
		{"the standalone is restarted", alone, "retryReads: false", findOne, restart, result.Broken, "HOST was restarted",
			result.Passed},
		{"the primary is killed, and the engine retries on the next", set, "retryReads: true", findOne, kill, result.Passed,
			"", result.Passed},
		{"the primary is killed, and the engine does not retry", set, "retryReads: false", findOne, kill, result.Broken,
			stopped, result.Passed},
		{"all members are killed", set, "retryReads: false", findOne, killAll, result.Broken,
			"the deployment stopped answering", result.Skipped},
		{"a secondary is killed", set, "retryReads: false", findOne, kill, result.Broken, stopped, result.Passed},
		{"a secondary is killed, and the engine retries on the other", set, "retryReads: true", findOne, kill, result.Passed,
			"", result.Passed},
		{"a mongos is killed, and the engine knows no other", sharded, "retryReads: true", findOne, kill, result.Broken,
			stopped, result.Passed},
		{"the primary steps down, and the engine retries", set, "retryWrites: true" + unaware, gated, stepDown,
			result.Passed, "", result.Passed},
		{"the primary steps down, and the engine does not retry", set, "retryWrites: false" + unaware, gated, stepDown,
			result.Failed, "the primary changed during the test, from HOST to ", result.Passed},
		{"nothing happens", set, "retryWrites: false" + unaware, gated, func(*fragile, string) {}, result.Passed, "",
			result.Passed},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			f := start(t, r.o)
			preference := "primary"
			if strings.HasPrefix(r.reason, "a secondary") {
				preference = "secondary"
			}
			happened := make(chan string, 1)
			if r.operation == gated {
				go func() { happened <- f.atGate(r.happen) }()
			} else {
				blocked := f.block(appName)
				go func() {
					host := blocked()
					if host != "" {
						r.happen(f, host)
					}
					happened <- host
				}()
			}
			suite := load(t, "middle", "OPTIONS", r.uriOptions+", appName: "+appName, "PREFERENCE", preference, "COMMAND",
				r.operation)
			verdicts, summary := f.run(t.Context(), suite, nil, func(result.Note) {})
			host := <-happened
			var got []result.Status
			for _, v := range verdicts {
				got = append(got, v.Status)
			}
			if want := []result.Status{r.want, r.next}; !slices.Equal(got, want) {
				for _, v := range verdicts {
					t.Log(suitetest.Describe(v))
				}
				t.Fatalf("%v, want %v", got, want)
			}
			if says := strings.ReplaceAll(r.says, "HOST", host); !strings.Contains(verdicts[0].Reason, says) {
				t.Errorf("the reason is %q, want %q", verdicts[0].Reason, says)
			}
			code := map[result.Status]int{result.Broken: 3, result.Failed: 1}[r.want]
			testkit.Equal(t, "exit code", summary.ExitCode(), code)
		})
	}
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
  - {description: passes, operations: [`+findOne+`]}
  - {description: passes again, operations: [`+insertOne+`]}
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
	f.run(t.Context(), load(t, "middle", "OPTIONS", "retryReads: true", "PREFERENCE", "primary", "COMMAND", findOne), nil,
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
	const own = "utr internal client"
	suite := load(t, "middle", "OPTIONS", "retryReads: true", "PREFERENCE", "primary", "COMMAND", insertOne)
	suite[0].Tests[1].Outcome = suite[0].InitialData
	failing := func(command string, times int, data bson.E) func(*fragile) {
		return func(f *fragile) { f.failCommand(command, own, times, data) }
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
