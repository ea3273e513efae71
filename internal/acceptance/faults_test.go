package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// The faults of docs/faults.md that a deployment can have in the middle of a
// test. The deployment is taken for somebody else's: nothing of it is started
// anew.

// middle is a suite whose first test is in the middle of COMMAND, blocked by a
// fail point on the server that it goes to, when something happens.
const middle = `description: "middle"
schemaVersion: "1.10"
createEntities:
  - client: {id: client, useMultipleMongoses: false, uriOptions: {OPTIONS}}
  - database: {id: database, client: client, databaseName: db}
  - collection: {id: collection, database: database, collectionName: coll, collectionOptions: {readPreference: {mode: PREFERENCE}}}
  - client: {id: other, useMultipleMongoses: false}
  - database: {id: otherDatabase, client: other, databaseName: db}
  - collection: {id: otherCollection, database: otherDatabase, collectionName: coll}
initialData:
  - {databaseName: db, collectionName: coll, documents: [{_id: 1}]}
tests:
  - description: "hit"
    operations:
      - COMMAND
  - description: "next"
    operations:
      - {name: find, object: otherCollection, arguments: {filter: {}}, expectResult: [{_id: 1}]}
`

const (
	findOne   = `{name: find, object: collection, arguments: {filter: {}}, expectResult: [{_id: 1}]}`
	insertOne = `{name: insertOne, object: collection, arguments: {document: {_id: 2}}}`
)

// fragile is a deployment of somebody else, with what a test does to it.
type fragile struct {
	*embedded.Deployment
	t *testing.T
}

// member gives a client for one member alone.
func (f *fragile) member(address string) *mongo.Client {
	f.t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(f.DirectURI(address)).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the member may be gone
		defer cancel()
		_ = c.Disconnect(ctx)
	})
	return c
}

func (f *fragile) admin(c *mongo.Client, command bson.D) bson.Raw {
	f.t.Helper()
	reply, err := c.Database("admin").RunCommand(testkit.Context(f.t), command).Raw()
	if err != nil {
		f.t.Errorf("%s: %v", command[0].Key, err)
	}
	return reply
}

// block makes a command of clients wait at every member, and gives a function
// that waits until it does at one, whose address it returns.
func (f *fragile) block(command, appName string, wait time.Duration) (struck func() string) {
	members := make(map[string]*mongo.Client)
	for _, host := range f.Hosts() {
		members[host] = f.member(host)
		f.admin(members[host], bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{command}}, {Key: "blockConnection", Value: true},
				{Key: "blockTimeMS", Value: wait.Milliseconds()}, {Key: "appName", Value: appName}}}})
	}
	return func() string {
		f.t.Helper()
		met := ""
		testkit.Until(f.t, command+" meets the fail point", func() bool {
			for host, c := range members {
				reply := f.admin(c, bson.D{{Key: "getParameter", Value: 1}, {Key: "failpoint.failCommand", Value: 1}})
				if n, _ := reply.Lookup("failpoint.failCommand", "timesEntered").AsInt64OK(); n > 0 {
					met = host
				}
			}
			return met != ""
		})
		for _, c := range members { // a retry elsewhere meets none
			f.admin(c, bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}})
		}
		return met
	}
}

// runOn runs a suite on a deployment that is not ours.
func runOn(t *testing.T, d *embedded.Deployment, suite string, notify func(result.Note)) (verdicts []*result.Verdict, summary result.Summary) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "suite.yml")
	if err := os.WriteFile(file, []byte(suite), 0o644); err != nil {
		t.Fatal(err)
	}
	uri := d.URI()
	if strings.Contains(uri, "?") {
		uri += "&"
	} else {
		uri += "?"
	}
	source, err := deployment.OpenCluster(context.Background(), deployment.ClusterOptions{URI: uri + "serverSelectionTimeoutMS=2000"})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := reference.New(reference.Options{Backoff: reference.BackoffNone})
	if err != nil {
		t.Fatal(err)
	}
	summary, err = runner.Run(context.Background(), bench.Load(t, file), runner.Config{Engine: engine, Source: source, Timeout: testkit.Patience, Notify: func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdicts = append(verdicts, f.Verdict)
		}
		if notify != nil {
			notify(n)
		}
	}})
	for _, err := range []error{err, engine.Close(), source.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	return verdicts, summary
}

// Whatever becomes of a server in the middle of a test, the verdict is clear:
// passed if the engine went on elsewhere, broken if a server was at fault,
// failed only where the servers were there all the time.
func TestServersInTheMiddle(t *testing.T) {
	const appName = "in the middle"
	set := embedded.Options{Topology: embedded.ReplicaSet}
	kill := func(f *fragile, host string) { f.check(f.Kill(host)) }
	for _, r := range []struct {
		reason     string
		o          embedded.Options
		uriOptions string
		preference string
		operation  string
		command    string
		happen     func(f *fragile, host string)
		want       result.Status
		says       string // in the reason; HOST is the server that was met
		next       result.Status
	}{
		{"the standalone is killed", embedded.Options{}, "retryReads: false", "primary", findOne, "find", kill,
			result.Broken, "Servers: [{ Addr: HOST", result.Skipped},
		{"the standalone is started anew", embedded.Options{}, "retryReads: false", "primary", findOne, "find",
			func(f *fragile, host string) { kill(f, host); f.check(f.Restart(host)) },
			result.Broken, "HOST was started anew", result.Passed},
		{"the primary is killed, and the engine retries at the next", set, "retryReads: true", "primary", findOne, "find",
			kill, result.Passed, "", result.Passed},
		{"the primary is killed, and the engine does not retry", set, "retryReads: false", "primary", findOne, "find",
			kill, result.Broken, "in the middle of the test, HOST stopped answering", result.Passed},
		{"the primary is killed, and so are all others", set, "retryReads: false", "primary", findOne, "find",
			func(f *fragile, met string) { // last of all, since the test goes on when it is killed
				for _, host := range f.Hosts() {
					if host != met {
						kill(f, host)
					}
				}
				kill(f, met)
			},
			result.Broken, "the deployment stopped answering", result.Skipped},
		{"a secondary is killed", set, "retryReads: false", "secondary", findOne, "find", kill,
			result.Broken, "in the middle of the test, HOST stopped answering", result.Passed},
		{"a secondary is killed, and the engine retries at the other", set, "retryReads: true", "secondary", findOne, "find", kill,
			result.Passed, "", result.Passed},
		{"a mongos is killed, and the engine knows no other", embedded.Options{Topology: embedded.Sharded}, "retryReads: true", "primary", findOne, "find", kill,
			result.Broken, "HOST", result.Skipped},
		{"the primary steps down, and the engine retries", set, "retryWrites: true", "primary", insertOne, "insert",
			func(f *fragile, _ string) { f.check(f.StepDown()) },
			result.Passed, "", result.Passed},
		{"the primary steps down, and the engine does not retry", set, "retryWrites: false", "primary", insertOne, "insert",
			func(f *fragile, _ string) { f.check(f.StepDown()) },
			result.Failed, "the primary changed during the test, from HOST to ", result.Passed},
		{"nothing happens", set, "retryReads: true", "primary", findOne, "find", func(*fragile, string) {},
			result.Passed, "", result.Passed},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d, err := embedded.Start(context.Background(), r.o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			f := &fragile{d, t}
			wait := testkit.Patience // ended by the death of the server
			if r.next == result.Passed && !strings.Contains(r.reason, "kill") && !strings.Contains(r.reason, "anew") {
				wait = 2 * time.Second // nothing else ends it
			}
			struck := f.block(r.command, appName, wait)
			happened := make(chan string, 1)
			go func() {
				host := struck()
				if host != "" {
					r.happen(f, host)
				}
				happened <- host
			}()
			suite := strings.NewReplacer("OPTIONS", r.uriOptions+", appName: "+appName+", heartbeatFrequencyMS: 500", "PREFERENCE", r.preference, "COMMAND", r.operation).Replace(middle)
			verdicts, summary := runOn(t, d, suite, nil)
			host := <-happened
			var got []result.Status
			for _, v := range verdicts {
				got = append(got, v.Status)
			}
			if want := []result.Status{r.want, r.next}; !slices.Equal(got, want) {
				for _, v := range verdicts {
					t.Log(bench.Describe(v))
				}
				t.Fatalf("%v, want %v", got, want)
			}
			if says := strings.ReplaceAll(r.says, "HOST", host); !strings.Contains(verdicts[0].Reason, says) {
				t.Errorf("the reason is %q, want %q", verdicts[0].Reason, says)
			}
			code := 0
			switch r.want {
			case result.Broken:
				code = 3
			case result.Failed:
				code = 1
			}
			if summary.ExitCode() != code {
				t.Errorf("exit code %d, want %d", summary.ExitCode(), code)
			}
		})
	}
}

func (f *fragile) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Error(err)
	}
}

// The runner's own client goes on where the primary steps down before each test,
// and where the servers turn its own commands away once or twice; if they
// always do, that breaks the test and is told.
func TestRunnersOwnClient(t *testing.T) {
	const own = "utr internal client"
	suite := strings.NewReplacer("OPTIONS", "retryReads: true", "PREFERENCE", "primary", "COMMAND", insertOne).Replace(middle) +
		"    outcome: [{databaseName: db, collectionName: coll, documents: [{_id: 1}]}]\n"
	failing := func(command string, times int, data ...bson.E) func(*fragile) {
		return func(f *fragile) {
			for _, host := range f.Hosts() {
				var mode any = bson.D{{Key: "times", Value: times}}
				if times < 0 {
					mode = "alwaysOn"
				}
				f.admin(f.member(host), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode},
					{Key: "data", Value: append(bson.D{{Key: "failCommands", Value: bson.A{command}}, {Key: "appName", Value: own}}, data...)}})
			}
		}
	}
	notPrimary, hangUp := bson.E{Key: "errorCode", Value: 10107}, bson.E{Key: "closeConnection", Value: true}
	for _, r := range []struct {
		reason string
		before func(*fragile) // each test
		want   result.Status
		says   string
	}{
		{"the primary steps down", func(f *fragile) { f.check(f.StepDown()) }, result.Passed, ""},
		{"initial data: no primary, once", failing("drop", 1, notPrimary), result.Passed, ""},
		{"initial data: no primary, twice", failing("insert", 2, notPrimary), result.Passed, ""},
		{"initial data: the server hangs up", failing("insert", 1, hangUp), result.Passed, ""},
		{"outcome: no primary", failing("find", 1, notPrimary), result.Passed, ""},
		{"outcome: the server hangs up", failing("find", 1, hangUp), result.Passed, ""},
		{"initial data: never", failing("insert", -1, notPrimary), result.Broken, "initial data of db.coll: insert: "},
		{"initial data: an error that does not pass", failing("insert", 1, bson.E{Key: "errorCode", Value: 8}), result.Broken, "initial data of db.coll: insert: "},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d, err := embedded.Start(context.Background(), embedded.Options{Topology: embedded.ReplicaSet})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			f := &fragile{d, t}
			verdicts, _ := runOn(t, d, suite, func(n result.Note) {
				if _, ok := n.(result.TestStarted); ok {
					r.before(f)
				}
			})
			for _, v := range verdicts {
				if v.Status != r.want || !strings.Contains(v.Reason, r.says) {
					t.Error(bench.Describe(v))
				}
			}
			if len(verdicts) != 2 {
				t.Error(fmt.Sprint(len(verdicts), " verdicts"))
			}
		})
	}
}
