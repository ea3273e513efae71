//go:build unix

package command

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/net/processtime"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/fakeorchestration"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// fault is a row of the table in docs/faults.md. TestFaults generates it.
type fault struct {
	fault   string
	happens string
	within  time.Duration // from the fault to the end of the run; only make soak plays rows of more than a minute
	code    int
	tests   string // their verdicts in each report, or "" if it says that the run has not finished
	says    string // in each report but the badge
	scene   func(*faultScene)
}

// faultScene is a run of three tests on which a fault acts. Its reports are in a folder.
type faultScene struct {
	*testing.T
	*utrtest.Place
	dir   string
	kinds []string // the reports
	run   *utrtest.Process
	end   func() // checks what is left
}

// quick is armed without what takes minutes.
var quick = strings.Replace(armed, "ms: 90000", "ms: 1", 1)

// embedded starts a deployment in this process, so that it can kill single servers.
func (s *faultScene) embedded(o embedded.Options) *embedded.Deployment {
	s.Helper()
	d, err := embedded.Start(testkit.Context(s.T), o)
	testkit.Check(s.T, err)
	s.Cleanup(func() { _ = d.Close() })
	return d
}

// during starts a run whose second test waits for an answer of a deployment, and calls a function meanwhile.
func (s *faultScene) during(topology embedded.Topology, happens func(*embedded.Deployment) error, args ...string) {
	s.Helper()
	d := s.embedded(embedded.Options{Topology: topology})
	s.start(blocked, append(args, "--uri", d.URI())...)
	s.run.Line("passed blocked: first")
	triggered(s.T, s.run, d.Hosts()...)
	testkit.Check(s.T, happens(d))
}

// atGate calls a function while the second test of the suite gated waits, however long that takes, and then opens the
// gate.
func (s *faultScene) atGate(uri string, happens func()) {
	s.Helper()
	gate := newWitness(s.T, uri).Database("db").Collection("gate")
	s.run.Until("the test waits at the gate", func() bool {
		n, err := gate.CountDocuments(testkit.Context(s.T), bson.D{})
		return err == nil && n > 0
	})
	happens()
	_, err := gate.InsertOne(testkit.Context(s.T), bson.D{{Key: "_id", Value: "open"}})
	testkit.Check(s.T, err)
}

// elects starts a run during whose second test another member becomes primary.
func (s *faultScene) elects(args ...string) {
	s.Helper()
	d := s.embedded(embedded.Options{Topology: embedded.ReplicaSet})
	s.start(gated, append(args, "--uri", d.URI())...)
	s.atGate(d.URI(), func() { testkit.Check(s.T, d.StepDown()) })
	s.end = newWitness(s.T, d.URI()).free
}

// as starts a run as a user with some roles.
func (s *faultScene) as(roles ...any) {
	s.Helper()
	d := s.embedded(embedded.Options{Users: []embedded.User{{Name: "root", Password: testkit.Secret}}})
	_, err := newWitness(s.T,
		d.URI()).run(bson.D{{Key: "createUser", Value: "ann"}, {Key: "pwd", Value: testkit.Secret},
		{Key: "roles", Value: append(bson.A{}, roles...)}})
	testkit.Check(s.T, err)
	s.start(blocked, "--uri", strings.Replace(d.URI(), "root:", "ann:", 1))
}

// onLocal starts a run of gated on a replica set of --local, and returns the address of the primary and the processes of the
// secondaries.
func (s *faultScene) onLocal() (primary string, secondaries []int) {
	s.Helper()
	s.start(gated, "--local", utrtest.Release(s.T), "--topology", "replicaset", "--auth", "off")
	s.run.Line("passed gated: first")
	for _, pid := range servers(s.T, s.Place) {
		args, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
		testkit.Check(s.T, err)
		host := "127.0.0.1:" + regexp.MustCompile(`--port[= ](\d+)`).FindStringSubmatch(string(args))[1]
		hello, err := newWitness(s.T, "mongodb://"+host+"/?directConnection=true").run(bson.D{{Key: "hello", Value: 1}})
		testkit.Check(s.T, err)
		if hello.Lookup("secondary").Boolean() {
			secondaries = append(secondaries, pid)
		} else {
			primary = host
		}
	}
	return primary, secondaries
}

// start starts the run of a suite with all reports.
func (s *faultScene) start(suite string, args ...string) {
	s.Helper()
	s.run = s.Start(slices.Concat([]string{"run", "--jobs", "1", "--uri-option", "serverSelectionTimeoutMS=2000"},
		everyReport(s.dir), args, []string{suiteFile(s.T, suite)})...)
}

// limited starts a run under a limit of the shell.
func (s *faultScene) limited(limit string, args ...string) {
	s.Helper()
	if !slices.Contains(args, "--jobs") {
		args = append(args, "--jobs", "1")
	}
	s.run = s.Launch(exec.Command("sh", slices.Concat([]string{"-c", limit + ` && exec "$@"`, "sh", utrtest.Command(s.T),
		"run"}, everyReport(s.dir), args, []string{suiteFile(s.T, quick)})...))
}

// second starts a run whose second test waits, and returns when it does.
func (s *faultScene) second(args ...string) {
	s.Helper()
	s.start(armed, args...)
	s.run.Line("passed armed: first")
}

// onSet starts a replica set, and a run whose second test waits there.
func (s *faultScene) onSet() *utrtest.Server {
	s.Helper()
	server := s.Serve("--topology", "replicaset")
	s.second("--uri", server.URI)
	w := newWitness(s.T, server.URI)
	w.sees(s.run)
	s.end = w.free
	return server
}

// onBlocked starts a deployment, and a run whose second test waits for an answer of it.
func (s *faultScene) onBlocked(topology string) *utrtest.Server {
	s.Helper()
	server := s.Serve("--topology", topology)
	s.start(blocked, "--uri", server.URI)
	s.run.Line("passed blocked: first")
	triggered(s.T, s.run, utrtest.Hosts(server.URI)...)
	return server
}

// marked is blocked, with a document that the second test inserts before it waits. All tests write, so that they run in
// this order also side by side.
var marked = strings.NewReplacer(
	"operations: [{", "operations: [{name: deleteMany, object: marks, arguments: {filter: {}}}, {",
	"collectionName: coll}\n", "collectionName: coll}\n"+
		"  - collection: {id: marks, database: database, collectionName: marks}\n",
	"blockTimeMS: 90000}\n", "blockTimeMS: 90000}\n"+
		"      - {name: insertOne, object: marks, arguments: {document: {_id: 1}}}\n").Replace(blocked)

// behind starts a run whose second test waits for a command that the proxy of the run blocks in front of a deployment.
func (s *faultScene) behind(uri string, args ...string) {
	s.Helper()
	s.start(marked, append(args, "--fail-points", "proxy", "--uri", uri)...)
	s.run.Line("passed blocked: first")
	s.waits(uri)
}

// waits returns when the second test of marked waits. It may not have the reply to its insert yet, but the driver
// retries.
func (s *faultScene) waits(uri string) {
	s.Helper()
	w := newWitness(s.T, uri)
	s.run.Until("the insert after the fail point has run", func() bool {
		n, err := w.Database("db").Collection("marks").CountDocuments(testkit.Context(s.T), bson.D{})
		return err == nil && n > 0
	})
	s.end = func() {
		w.free()
		w.untouched()
	}
}

// interruptedBehind interrupts a run whose second test waits for a command that its proxy blocks.
func (s *faultScene) interruptedBehind(args ...string) {
	s.Helper()
	s.behind(s.Serve("--topology", "replicaset").URI, args...)
	s.run.Signal(syscall.SIGINT)
}

// killedBehind kills the only server during such a test.
func (s *faultScene) killedBehind(args ...string) {
	s.Helper()
	server := s.Serve("--topology", "single")
	s.behind(server.URI, args...)
	server.Signal(syscall.SIGKILL)
	s.end = func() {}
}

// reportsToFullDisk starts a run whose first report is on a full disk.
func (s *faultScene) reportsToFullDisk(args ...string) {
	s.Helper()
	if _, err := os.Stat("/dev/full"); err != nil {
		s.Skip("not verified: no /dev/full")
	}
	s.start(quick, append(args, "--json", "/dev/full")...)
	s.kinds = s.kinds[1:]
	s.end = func() {
		testkit.Contains(s.T, s.run.Errors(), "writing the report to /dev/full: write /dev/full: no space left on device")
	}
}

// untouched checks that no server of a replica set has ever had a fail point.
func (w witness) untouched() {
	w.t.Helper()
	for _, host := range utrtest.Hosts(w.uri) {
		reply, err := newWitness(w.t, "mongodb://"+host+
			"/?directConnection=true").run(bson.D{{Key: "configureFailPoint", Value: "failCommand"},
			{Key: "mode", Value: "off"}})
		testkit.Check(w.t, err)
		testkit.Equal(w.t, "how often the fail point of "+host+" had an effect", reply.Lookup("count").AsInt64(), 0)
	}
}

// listens matches the log line with a server's port.
var listens = regexp.MustCompile(`"Waiting for connections".*"port":(\d+)`)

var faults = []fault{
	{"`utr` gets SIGINT", "fail points are turned off and the lock is removed", 10 * time.Second, 3,
		"passed skipped skipped", "interrupted",
		func(s *faultScene) { s.onSet(); s.run.Signal(syscall.SIGINT) }},
	{"`utr` gets SIGTERM", "the same", 10 * time.Second, 3, "passed skipped skipped", "interrupted",
		func(s *faultScene) { s.onSet(); s.run.Signal(syscall.SIGTERM) }},
	{"`utr` gets SIGHUP", "the same", 10 * time.Second, 3, "passed skipped skipped", "interrupted",
		func(s *faultScene) { s.onSet(); s.run.Signal(syscall.SIGHUP) }},
	{"`utr` is paused for a few seconds and continues", "nothing: the test continues", 10 * time.Second, 0,
		"passed passed passed", "",
		func(s *faultScene) {
			server := s.Serve("--topology", "replicaset")
			s.start(gated, "--uri", server.URI)
			s.atGate(server.URI, func() {
				s.run.Freeze()
				time.Sleep(3 * time.Second)
			})
			s.run.Signal(syscall.SIGCONT)
			s.end = newWitness(s.T, server.URI).free
		}},
	{"`utr` is paused for 65 s and continues", "the lock is lost, so the run ends as after a signal", 90 * time.Second, 3,
		"passed skipped skipped", "was lost",
		func(s *faultScene) {
			s.onSet()
			s.run.Freeze()
			time.AfterFunc(65*time.Second, func() { _ = s.run.Process.Signal(syscall.SIGCONT) })
		}},
	{"`utr` gets SIGKILL", "the next run on the deployment takes over the lock and turns fail points off",
		10 * time.Second, -1, "", "",
		func(s *faultScene) {
			server := s.onSet()
			s.run.Signal(syscall.SIGKILL)
			free := s.end
			s.end = func() {
				s.Place.Run("run", "--uri", server.URI, suiteFile(s.T, reads)).Want(0, "took over the lock",
					"turned off: failCommand")
				free()
				s.Empty()
			}
		}},
	{"`utr` gets SIGINT while its proxy executes a fail point",
		"the lock is removed; the servers never had the fail point", 10 * time.Second, 3,
		"passed skipped skipped", "interrupted", func(s *faultScene) { s.interruptedBehind() }},
	{"`utr` gets SIGINT while tests run side by side", "all workers end, and the lock is removed", 10 * time.Second, 3,
		"passed skipped skipped", "interrupted", func(s *faultScene) { s.interruptedBehind("--jobs", "4") }},
	{"`utr` gets SIGKILL while its proxy executes a fail point",
		"the next run takes over the lock; the servers never had the fail point",
		10 * time.Second, -1, "", "", func(s *faultScene) {
			server := s.Serve("--topology", "replicaset")
			s.behind(server.URI)
			s.run.Signal(syscall.SIGKILL)
			untouched := s.end
			s.end = func() {
				next := s.Place.Run("run", "--uri", server.URI, suiteFile(s.T, reads)).Want(0, "took over the lock")
				testkit.Equal(s.T, "a fail point was turned off", strings.Contains(next.All(), "turned off"), false)
				untouched()
				s.Empty()
			}
		}},
	{"`--deadline` is over", "as after a signal", 10 * time.Second, 3, "passed skipped skipped",
		"the run took longer than --deadline",
		func(s *faultScene) { // it waits for the line: the fail point could be off before a client sees it
			server := s.Serve("--topology", "replicaset")
			s.second("--deadline", "15s", "--uri", server.URI)
			s.run.WaitStderr("the run took longer than --deadline")
			s.end = newWitness(s.T, server.URI).free
		}},
	{"the only server is killed", "the test is broken; the rest does not run", 25 * time.Second, 3,
		"passed broken skipped", "stopped answering",
		func(s *faultScene) { s.onBlocked("single").Signal(syscall.SIGKILL) }},
	{"the only server behind the proxy is killed", "the same", 25 * time.Second, 3, "passed broken skipped",
		"stopped answering", func(s *faultScene) { s.killedBehind() }},
	{"the same, with tests side by side", "all workers end: the test is broken; the rest does not run", 25 * time.Second, 3,
		"passed broken skipped", "stopped answering", func(s *faultScene) { s.killedBehind("--jobs", "4") }},
	{"all members of a replica set are killed", "the test is broken; the rest does not run", 25 * time.Second, 3, "passed broken skipped",
		"stopped answering",
		func(s *faultScene) { s.onBlocked("replicaset").Signal(syscall.SIGKILL) }},
	{"all routers of a cluster are killed", "the same", 25 * time.Second, 3, "passed broken skipped", "stopped answering",
		func(s *faultScene) { s.onBlocked("sharded").Signal(syscall.SIGKILL) }},
	{"a server of `--local` is killed", "the test is broken; the rest runs on another deployment", 25 * time.Second, 3,
		"passed broken passed", "stopped answering",
		func(s *faultScene) {
			s.start(blocked, "--local", utrtest.Release(s.T), "--topology", "single", "--auth", "off")
			s.run.Line("passed blocked: first")
			pids := servers(s.T, s.Place)
			logs, _ := filepath.Glob(filepath.Join(s.Temp, "utr-*", "*.log"))
			triggered(s.T, s.run, "127.0.0.1:"+listens.FindStringSubmatch(testkit.Read(s.T, strings.Join(logs, "")))[1])
			testkit.Check(s.T, syscall.Kill(pids[0], syscall.SIGKILL))
			s.end = func() { // the log of each cluster is kept, and nothing else
				testkit.Contains(s.T, s.run.Errors(), "the logs of the servers are in "+s.Temp)
				kept, _ := filepath.Glob(filepath.Join(s.Temp, "utr-*", "*"))
				logs, _ := filepath.Glob(filepath.Join(s.Temp, "utr-*", "*.log"))
				testkit.Equal(s.T, fmt.Sprint("the ledger, what is kept, and logs: ", kept),
					fmt.Sprint(s.Entries(""), len(kept), len(logs)), "[] 2 2")
			}
		}},
	{"the same, with tests side by side", "the test is broken; the rest runs on another deployment of all workers",
		25 * time.Second, 3, "passed broken passed", "stopped answering",
		func(s *faultScene) {
			s.start(marked, "--local", utrtest.Release(s.T), "--topology", "single", "--auth", "off", "--jobs", "4")
			s.run.Line("passed blocked: first")
			pids := servers(s.T, s.Place)
			logs, _ := filepath.Glob(filepath.Join(s.Temp, "utr-*", "*.log"))
			s.waits("mongodb://127.0.0.1:" + listens.FindStringSubmatch(testkit.Read(s.T, strings.Join(logs, "")))[1])
			testkit.Check(s.T, syscall.Kill(pids[0], syscall.SIGKILL))
			s.end = func() { testkit.Equal(s.T, "the ledger", fmt.Sprint(s.Entries("")), "[]") }
		}},
	{"the primary of a replica set is killed, and the driver retries on another member",
		"nothing: the test passes, and its fail point ended with the member",
		25 * time.Second, 0, "passed passed passed", "", func(s *faultScene) {
			s.during(embedded.ReplicaSet, func(d *embedded.Deployment) error { return d.Kill(d.Primary()) })
		}},
	{"the same, and the driver does not retry", "the test is broken; the rest runs on the others", 25 * time.Second, 3,
		"passed broken passed", "stopped answering",
		func(s *faultScene) {
			s.during(embedded.ReplicaSet, func(d *embedded.Deployment) error { return d.Kill(d.Primary()) },
				"--uri-option", "retryReads=false")
		}},
	{"the primary of a replica set behind the proxy is killed, and the driver retries",
		"nothing: the test passes, and its fail point ended with the member", 25 * time.Second, 0, "passed passed passed", "",
		func(s *faultScene) {
			d := s.embedded(embedded.Options{Topology: embedded.ReplicaSet})
			s.behind(d.URI())
			testkit.Check(s.T, d.Kill(d.Primary()))
			s.end = func() {}
		}},
	{"another member becomes primary, and the driver retries", "nothing: the test passes", 25 * time.Second, 0,
		"passed passed passed", "", func(s *faultScene) { s.elects() }},
	{"the same, and the driver does not retry", "the test failed, and the reason names the election", 25 * time.Second, 1,
		"passed failed passed",
		"the primary changed during the test", func(s *faultScene) { s.elects("--uri-option", "retryReads=false") }},
	{"a replica set has no primary, and its members answer", "the test is broken; the rest does not run", 25 * time.Second,
		3, "passed broken skipped", "has no primary",
		func(s *faultScene) {
			s.during(embedded.ReplicaSet, func(d *embedded.Deployment) error {
				primary := d.Primary()
				other := slices.DeleteFunc(d.Hosts(), func(host string) bool { return host == primary })[0]
				return errors.Join(d.Kill(other), d.Kill(primary))
			})
		}},
	{"the same at the start", "nothing runs", 25 * time.Second, 3, none, "no server can be used", func(s *faultScene) {
		d := s.embedded(embedded.Options{Topology: embedded.ReplicaSet})
		testkit.Check(s.T, errors.Join(d.Kill(d.Hosts()[0]), d.Kill(d.Hosts()[1])))
		s.start(blocked, "--uri", d.URI())
	}},
	{"a secondary is paused", "nothing: tests may take ten times as long", 25 * time.Second, 0, "passed passed passed", "",
		func(s *faultScene) {
			primary, secondaries := s.onLocal()
			s.atGate("mongodb://"+primary+"/?directConnection=true", func() {
				testkit.Check(s.T, syscall.Kill(secondaries[0], syscall.SIGSTOP))
			})
		}},
	{"a server is restarted, and the driver does not retry", "the test is broken; the rest runs", 25 * time.Second, 3,
		"passed broken passed", "was restarted",
		func(s *faultScene) {
			s.during(embedded.Standalone, func(d *embedded.Deployment) error {
				return errors.Join(d.Kill(d.Hosts()[0]), d.Restart(d.Hosts()[0]))
			}, "--uri-option", "retryReads=false")
		}},
	{"one router of several is down at the start", "nothing: it is left out", 10 * time.Second, 0, "passed passed passed",
		"", func(s *faultScene) {
			d := s.embedded(embedded.Options{Topology: embedded.Sharded})
			testkit.Check(s.T, d.Kill(d.Hosts()[0]))
			s.start(quick, "--uri", d.URI())
			s.end = func() { testkit.Contains(s.T, s.run.Errors(), "the mongos "+d.Hosts()[0]+" is left out") }
		}},
	{"one router of several is killed", "the test is broken; the rest runs on the others", 25 * time.Second, 3,
		"passed broken passed", "stopped answering",
		func(s *faultScene) {
			s.during(embedded.Sharded, func(d *embedded.Deployment) error { return d.Kill(d.Hosts()[0]) })
		}},
	{"nothing listens", "nothing runs", 10 * time.Second, 3, none, "nothing listens there",
		func(s *faultScene) { s.start(blocked, "--uri", "mongodb://127.0.0.1:1/") }},
	{"something listens and does not answer", "nothing runs", 15 * time.Second, 3, none, "it does not answer",
		func(s *faultScene) {
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			testkit.Check(s.T, err)
			s.Cleanup(func() { _ = silent.Close() })
			s.start(blocked, "--uri", "mongodb://"+silent.Addr().String())
		}},
	{"the password is wrong", "nothing runs", 15 * time.Second, 3, none, "user or password is wrong", func(s *faultScene) {
		d := s.embedded(embedded.Options{Users: []embedded.User{{Name: "ann", Password: testkit.Secret}}})
		s.start(blocked, "--uri", strings.Replace(d.URI(), "ann:", "bob:", 1))
	}},
	{"a fail point of an earlier run is on", "it is turned off, and the run continues", 10 * time.Second, 0,
		"passed passed passed", "", func(s *faultScene) {
			server := s.Serve("--topology", "replicaset")
			w := newWitness(s.T, server.URI)
			_, err := w.run(bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 8}}}})
			testkit.Check(s.T, err)
			s.start(quick, "--uri", server.URI)
			s.end = func() {
				testkit.Contains(s.T, s.run.Errors(), "left over from an earlier run, and turned off: failCommand was on")
				w.free()
			}
		}},
	{"another run uses the deployment", "nothing runs, and the other run continues", 10 * time.Second, 3, none,
		"is in use by a run on host",
		func(s *faultScene) {
			server := s.onSet()
			other := s.run
			s.dir = s.TempDir()
			s.start(blocked, "--uri", server.URI)
			free := s.end
			s.end = func() {
				other.Signal(syscall.SIGINT)
				other.End().Want(3)
				free()
			}
		}},
	{"a collection that a suite names contains documents that `utr` did not write", "nothing runs, and nothing is changed",
		10 * time.Second, 3, none, "documents that utr did not write",
		func(s *faultScene) {
			server := s.Serve("--topology", "replicaset")
			w := newWitness(s.T, server.URI)
			mine := w.Database("db").Collection("coll")
			_, err := mine.InsertOne(testkit.Context(s.T), bson.D{{Key: "_id", Value: "mine"}})
			testkit.Check(s.T, err)
			s.start(blocked, "--uri", server.URI)
			s.end = func() {
				n, err := mine.CountDocuments(testkit.Context(s.T), bson.D{})
				testkit.Check(s.T, err)
				testkit.Equal(s.T, "documents of the user", n, 1)
				w.free()
			}
		}},
	{"the user has no role", "nothing runs, and the error names the right", 10 * time.Second, 3, none,
		"not authorized to read enableTestCommands",
		func(s *faultScene) { s.as() }},
	{"the user may only read", "the same", 10 * time.Second, 3, none, "may not drop collections of the database db",
		func(s *faultScene) { s.as("readAnyDatabase", "clusterMonitor") }},
	{"the user may write only another database", "the same", 10 * time.Second, 3, none,
		"may not drop collections of the database db",
		func(s *faultScene) {
			s.as("clusterMonitor", bson.D{{Key: "role", Value: "readWrite"}, {Key: "db", Value: "other"}})
		}},
	{"the orchestration service does not answer", "nothing runs", 10 * time.Second, 3, none, "connection refused",
		func(s *faultScene) { s.start(blocked, "--orchestration", "http://127.0.0.1:1", "--cluster", "single") }},
	{"the orchestration service fails to create the first cluster, once", "it is asked again", 60 * time.Second, 0,
		"passed passed passed", "",
		func(s *faultScene) {
			service, failed := fakeorchestration.Start(s.T), false
			service.Misbehave(func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
				if method != http.MethodPut && method != http.MethodPost || failed {
					return false
				}
				failed = true
				fakeorchestration.Raise(w, "Error: once")
				return true
			})
			s.start(quick, "--orchestration", service.URL, "--cluster", "single")
			s.end = func() { testkit.Equal(s.T, "remaining clusters", fmt.Sprint(service.Clusters()), "[]") }
		}},
	{"the orchestration service takes 2 s to answer", "nothing: the run waits for it", 60 * time.Second, 0,
		"passed passed passed", "", func(s *faultScene) {
			service := fakeorchestration.Start(s.T)
			service.Misbehave(func(string, string, http.ResponseWriter, *http.Request) bool {
				time.Sleep(2 * time.Second)
				return false
			})
			s.start(quick, "--orchestration", service.URL, "--cluster", "single")
			s.end = func() { testkit.Equal(s.T, "remaining clusters", fmt.Sprint(service.Clusters()), "[]") }
		}},
	{"the orchestration service does not delete a cluster", "the run names it, `utr clean` removes it later",
		60 * time.Second, 3, "passed skipped skipped", "interrupted",
		func(s *faultScene) {
			service := fakeorchestration.Start(s.T)
			s.second("--orchestration", service.URL, "--cluster", "single")
			service.Misbehave(func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
				if method == http.MethodDelete {
					fakeorchestration.Raise(w, "Error: it is stuck")
				}
				return method == http.MethodDelete
			})
			s.run.Signal(syscall.SIGTERM)
			s.end = func() {
				service.Misbehave(nil)
				s.Place.Run("clean").Want(0, "removed 1, left 0")
				testkit.Equal(s.T, "remaining clusters", fmt.Sprint(service.Clusters()), "[]")
				s.Empty()
			}
		}},
	{"the orchestration service hangs while a cluster is deleted", "the same", 150 * time.Second, 3,
		"passed skipped skipped", "interrupted", func(s *faultScene) {
			service := fakeorchestration.Start(s.T)
			s.second("--orchestration", service.URL, "--cluster", "single")
			service.Misbehave(func(_, _ string, _ http.ResponseWriter, r *http.Request) bool {
				<-r.Context().Done()
				return true
			})
			s.run.Signal(syscall.SIGTERM)
			s.end = func() {
				service.Misbehave(nil)
				s.Place.Run("clean").Want(0, "removed 1, left 0")
				s.Empty()
			}
		}},
	{"one of two existing clusters of an orchestration service dies", "the test is broken; the rest runs on the other",
		25 * time.Second, 3, "passed broken passed", "stopped answering",
		func(s *faultScene) {
			service := fakeorchestration.Start(s.T)
			service.Add(s.T, "servers", "a", embedded.Options{})
			service.Add(s.T, "servers", "b", embedded.Options{})
			s.start(blocked, "--orchestration", service.URL, "--cluster", "id:a", "--cluster", "id:b")
			s.run.Line("passed blocked: first")
			triggered(s.T, s.run, utrtest.Hosts(uriOf(s.T, service, "a"))...)
			service.Kill("servers/a")
			s.end = func() { testkit.Equal(s.T, "remaining clusters", len(service.Clusters()), 2) }
		}},
	{"a report cannot be written", "nothing runs, and the other reports say so", 10 * time.Second, 3, "",
		"cannot write a report", func(s *faultScene) {
			s.start(quick, "--topology", "single", "--json", filepath.Join(s.dir, "missing", "report.json"))
			s.kinds = s.kinds[1:]
		}},
	{"the disk of a report is full", "the run finishes; the error names that report, which is incomplete",
		10 * time.Second, 3, "passed passed passed", "",
		func(s *faultScene) { s.reportsToFullDisk("--topology", "single") }},
	{"the same, with tests side by side", "the same", 10 * time.Second, 3, "passed passed passed", "",
		func(s *faultScene) {
			s.reportsToFullDisk("--uri", s.Serve("--topology", "replicaset").URI, "--fail-points", "proxy", "--jobs", "4")
		}},
	{"the disk of `--results` is full for a cell of a matrix", "its tests do not count; the other cells run",
		20 * time.Second, 3,
		"skipped skipped skipped passed", "file too large", func(s *faultScene) {
			long := strings.NewReplacer("first", strings.Repeat("first ", 900), "ms: 90000", "ms: 1").Replace(armed)
			file := suiteFile(s.T, "clusters: {name: c, embedded: single}\nsuites: [{name: long, paths: ["+suiteFile(s.T,
				long)+"]}, smoke]\n")
			s.kinds = []string{"markdown"} // others of this cell do not fit
			s.run = s.Launch(exec.Command("sh", "-c", `ulimit -f 8 && exec "$@"`, "sh", utrtest.Command(s.T), "matrix", file,
				"--results", filepath.Join(s.dir, "results"), "--markdown", filepath.Join(s.dir, "report.markdown")))
		}},
	{"the limit of file descriptors is too low, on an embedded deployment", "nothing runs", 10 * time.Second, 3, none,
		"file descriptors, and the limit is 40: raise it", func(s *faultScene) { s.limited("ulimit -n 40", "--topology", "single") }},
	{"the same, on an existing deployment", "the same", 10 * time.Second, 3, none,
		"file descriptors, and the limit is 40: raise it",
		func(s *faultScene) { s.limited("ulimit -n 40", "--uri", s.Serve("--topology", "replicaset").URI) }},
	{"the same, after the hosts are known", "the same, and the lock is removed", 10 * time.Second, 3, none,
		"file descriptors, and the limit is 60: raise it", func(s *faultScene) {
			server := s.Serve("--topology", "replicaset")
			s.limited("ulimit -n 60", "--uri", server.URI)
			s.end = newWitness(s.T, server.URI).free
		}},
	{"the limit of file descriptors is too low for `--jobs`", "the same", 10 * time.Second, 3, none,
		"or use --jobs 4", func(s *faultScene) { s.limited("ulimit -n 200", "--topology", "single", "--jobs", "9") }},
	{"the soft limit of file descriptors is too low", "it is raised", 10 * time.Second, 0, "passed passed passed", "",
		func(s *faultScene) { s.limited("ulimit -Sn 20", "--topology", "single") }},
	{"the process of a cell of a matrix is killed", "its other tests are skipped; the other cells run",
		20 * time.Second, 3,
		"passed passed skipped skipped passed", "its process died: signal: killed", func(s *faultScene) {
			n := nightAt(s.T, s.Place)
			s.run = n.begin(reportFiles(s.dir)...)
			testkit.Check(s.T, syscall.Kill(child(s.T, s.run), syscall.SIGKILL))
		}},
	{"the process of an adapter ends while several tests are open in it", "these are broken; the next test gets a new process",
		10 * time.Second, 3, "broken broken passed", "while 2 tests were open in the adapter; the adapter ended with exit status 3",
		func(s *faultScene) {
			s.start(three(command("stay"), command("exit"), wait(1)), "--jobs", "2", "--topology", "single",
				"--engine", faultyEngine(s.T))
		}},
	{"a call hangs in an adapter while another test is open in it",
		"3 s after the test's limit, the test is broken; the other one continues, and the process ends after it",
		25 * time.Second, 3, "passed broken passed", "exceeded --timeout 6s: the adapter did not reply to runCommand on database",
		func(s *faultScene) { // the third test begins in the process before the limit of the second, and ends after it
			s.start(three(wait(5000), command("hang"), wait(4500)), "--jobs", "2", "--topology", "single", "--timeout", "6s",
				"--engine", faultyEngine(s.T))
		}},
	{"the network to the deployment blocks", "the test is broken; the rest does not run", 25 * time.Second, 3,
		"passed broken skipped", "stopped answering",
		func(s *faultScene) { s.onBlocked("single").Freeze() }},
}

// none are the verdicts of a run that ends before its first test.
const none = "skipped skipped skipped"

// Each row of the table in docs/faults.md is what happens: the run ends within the time, with the exit code, its
// reports have the verdicts and the reason, and nothing else is left. UTR_UPDATE=1 writes the table.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.fault, func(t *testing.T) {
			t.Parallel()
			if f.within > time.Minute && os.Getenv("UTR_SOAK") != "1" {
				t.Skip("not verified: make soak plays it")
			}
			s := &faultScene{T: t, Place: utrtest.NewPlace(t), dir: t.TempDir(), end: func() {}}
			s.kinds = []string{"json", "junit", "tap", "sarif", "markdown", "html", "badge"}
			f.scene(s)
			ended := make(chan utrtest.Result, 1)
			go func() { ended <- s.run.End() }()
			var end utrtest.Result
			late, stop := processtime.Limit(t.Context(), f.within, nil) // as utr does, it waits longer on a busy machine
			defer stop()
			select {
			case end = <-ended:
			case <-late.Done():
				t.Fatalf("the run has not ended after %s", f.within)
			}
			testkit.Equal(t, "exit code of a run that says "+end.All(), end.Code, f.code)
			for _, kind := range s.kinds {
				f.check(t, kind, testkit.Read(t, filepath.Join(s.dir, "report."+kind)))
			}
			if f.code < 0 {
				testkit.Read(t, filepath.Join(s.dir, "report.json.partial"))
			}
			testkit.Contains(t, end.All(), f.says)
			s.end()
		})
	}
	testkit.Check(t, keepTable(filepath.Join("..", "..", "..", "..", "docs", "faults.md")))
}

// check checks the verdicts and the reason in a report.
func (f fault) check(t *testing.T, kind, text string) {
	t.Helper()
	if kind == "badge" {
		unfinished := regexp.MustCompile("unfinished|interrupted|1 cell broke").MatchString(text)
		testkit.Equal(t, "the badge is unfinished", unfinished, f.tests == "" || strings.Contains(f.tests, "skipped"))
		for _, status := range []string{"passed", "broken", "failed"} {
			n := strings.Count(f.tests, status)
			testkit.Equal(t, "the badge has "+status, strings.Contains(text, fmt.Sprint(n, " ", status)), n > 0)
		}
		return
	}
	want := strings.Fields(f.tests)
	switch kind {
	case "markdown":
		slices.Sort(want)
	case "sarif":
		want = slices.DeleteFunc(want, func(status string) bool { return status == "passed" || status == "skipped" })
	}
	testkit.Equal(t, "verdicts in the "+kind+" report", strings.Join(readers[kind](text), " "), strings.Join(want, " "))
	if f.code < 0 {
		f.says = "it has not finished"
	}
	testkit.Contains(t, text, f.says)
}

// readers return the verdicts in a report: in order, or sorted if the report has only counts.
var readers = map[string]func(text string) []string{
	"json": matches(`(?m)^{"file":.*?"status":"(\w+)"`, nil),
	"junit": matches(`(?s)<testcase name="[^"]*" classname="(?:[^u"]|u[^t"])[^"]*" time="[^"]*">\s*<(/testcase|\w+)`,
		map[string]string{"/testcase": "passed", "error": "broken", "failure": "failed"}),
	"tap": matches(`(?m)^((?:not )?ok) \d+ - (?:[^u]|u[^t]).*?(# SKIP|$)(?:\n  ---\n  severity: "(\w+)")?`,
		map[string]string{"ok": "passed", "ok# SKIP": "skipped", "not okbroken": "broken", "not okfail": "failed"}),
	"sarif": matches(`"ruleId": "(\w+)"`, nil),
	"html":  matches(`{"verdict":\[\d+,\d+,"(\w+)"`, nil),
	"markdown": func(text string) (all []string) {
		m := regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|`).FindStringSubmatch(text)
		for i, status := range []string{"failed", "broken", "flaky", "passed", "known-failing", "skipped"} {
			for range number(m, i+1) {
				all = append(all, status)
			}
		}
		slices.Sort(all)
		return all
	},
}

// matches returns a function that finds verdicts by the groups of a pattern. They have other names in the report.
func matches(pattern string, names map[string]string) func(string) []string {
	return func(text string) (all []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found := strings.Join(m[1:], "")
			all = append(all, cmp.Or(names[found], found))
		}
		return all
	}
}

func number(groups []string, i int) int {
	if i >= len(groups) {
		return 0
	}
	n, _ := strconv.Atoi(groups[i])
	return n
}

// row returns the row of the table.
func (f fault) row() string {
	code, reports := fmt.Sprint(f.code), cmp.Or(strings.ReplaceAll(f.tests, " ", ", "), "none")
	if f.code < 0 {
		code, reports = "none", "none; `it has not finished`, and `FILE.partial` is left"
	}
	if f.says != "" {
		reports += fmt.Sprintf("; `%s`", f.says)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", f.fault, f.happens, f.within, code, reports)
}

// keepTable compares the table in a page with the rows, or writes it.
func keepTable(page string) error {
	table := "| fault | what happens | within | exit code | verdicts in each report |\n|---|---|---|---|---|\n"
	for _, f := range faults {
		table += f.row()
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	old := regexp.MustCompile(`(?s)\| fault \| what happens \|.*?\n\n`)
	fresh := old.ReplaceAllLiteralString(string(text), table+"\n")
	switch {
	case !old.Match(text):
		return errors.New(page + " has no table of faults")
	case fresh == string(text):
		return nil
	case os.Getenv("UTR_UPDATE") == "1":
		return os.WriteFile(page, []byte(fresh), 0o644)
	}
	return errors.New(page + " is stale: UTR_UPDATE=1 go test ./program/internal/acceptance/command -run ^TestFaults$ writes it")
}
