//go:build unix

package faults

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/fakeorchestration"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// quick is a night on an existing deployment and on three that utr creates: embedded, by an orchestration service, and
// of local processes. Its second suite has a fail point on for a while.
const quick = `clusters:
- {name: mine, uri: %q}
- {name: own, embedded: replicaset}
- {name: cloud, orchestration: {url: %q, cluster: single}}
- {name: made, local: {dir: %q, topology: single}, auth: "off"}
defaults: {jobs: 1, timeout: 10s, uri-options: {serverSelectionTimeoutMS: 1000}, wait-for-lock: 2m}
suites: [{name: smoke, paths: [smoke]}, {name: held, paths: [%q]}]
`

const held = `description: "held"
schemaVersion: "1.10"
createEntities:
  - client: {id: client, useMultipleMongoses: false}
  - database: {id: database, client: client, databaseName: soak}
  - collection: {id: collection, database: database, collectionName: coll}
initialData: [{databaseName: soak, collectionName: coll, documents: [{_id: 1}]}]
tests:
  - description: "one"
    operations: [{name: find, object: collection, arguments: {filter: {}}, expectResult: [{_id: 1}]}]
  - description: "two"
    operations:
      - name: failPoint
        object: testRunner
        arguments:
          client: client
          failPoint: {configureFailPoint: failCommand, mode: alwaysOn, data: {failCommands: [ping], errorCode: 8}}
      - {name: wait, object: testRunner, arguments: {ms: 1500}}
      - {name: insertOne, object: collection, arguments: {document: {_id: 2}}}
    outcome: [{databaseName: soak, collectionName: coll, documents: [{_id: 1}, {_id: 2}]}]
  - description: "three"
    operations: [{name: find, object: collection, arguments: {filter: {}}, expectResult: [{_id: 1}]}]
`

// stage is an existing deployment with data of a user, an orchestration service, and nights on them.
type stage struct {
	*testing.T
	*utrtest.Place
	random  *rand.Rand
	suite   string
	file    string
	release string // of --local
	service *fakeorchestration.Service
	server  *utrtest.Server
	user    *mongo.Client
	before  string // what the deployment contains
}

// serve starts the deployment and inserts the user's data, also beside the collections of suites.
func (s *stage) serve() {
	s.Helper()
	s.server = s.Serve("--topology", []string{"single", "replicaset", "sharded"}[s.random.IntN(3)])
	testkit.Check(s.T, os.WriteFile(s.file, fmt.Appendf(nil, quick, s.server.URI, s.service.URL, s.release, s.suite),
		0o600))
	s.user = s.connect(s.server.URI)
	ctx := testkit.Context(s.T)
	for _, database := range []string{"accounts", "soak", "utr-smoke"} {
		people := s.user.Database(database).Collection("people")
		_, err := people.InsertMany(ctx, []any{
			bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "ann"}, {Key: "balance", Value: int64(1) << 40},
				{Key: "since", Value: time.UnixMilli(1)}},
			bson.D{{Key: "_id", Value: "two"}, {Key: "name", Value: "bob"},
				{Key: "notes", Value: bson.A{bson.D{}, nil, 1.5, bson.Binary{Data: []byte{0, 1}}}}}})
		testkit.Check(s.T, err)
		_, err = people.Indexes().CreateOne(ctx,
			mongo.IndexModel{Keys: bson.D{{Key: "name", Value: 1}}, Options: options.Index().SetUnique(true)})
		testkit.Check(s.T, errors.Join(err,
			s.user.Database(database).CreateCollection(ctx, "log",
				options.CreateCollection().SetCapped(true).SetSizeInBytes(4096)),
			s.user.Database(database).CreateView(ctx, "names", "people",
				bson.A{bson.D{{Key: "$project", Value: bson.D{{Key: "name", Value: 1}}}}})))
	}
	s.before = s.content()
}

func (s *stage) connect(uri string) *mongo.Client {
	s.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	testkit.Check(s.T, err)
	s.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Disconnect(ctx)
	})
	return client
}

// ours are the namespaces that utr may change.
var ours = []string{"utr.lock", "utr.used", "soak.coll", "utr-smoke.documents"}

// content returns all databases but ours, byte for byte: collections with their options, indexes and documents.
func (s *stage) content() string {
	s.Helper()
	ctx := testkit.Context(s.T)
	var text strings.Builder
	add := func(namespace string, cursor *mongo.Cursor, err error) (all []bson.Raw) {
		testkit.Check(s.T, err)
		testkit.Check(s.T, cursor.All(ctx, &all))
		for _, one := range all {
			fmt.Fprintf(&text, "%s %x\n", namespace, []byte(one))
		}
		return all
	}
	names, err := s.user.ListDatabaseNames(ctx, bson.D{})
	testkit.Check(s.T, err)
	slices.Sort(names)
	for _, name := range names {
		if name == "config" || name == "local" {
			continue
		}
		database := s.user.Database(name)
		collections, err := database.ListCollectionNames(ctx, bson.D{})
		testkit.Check(s.T, err)
		slices.Sort(collections)
		for _, c := range collections {
			if slices.Contains(ours, name+"."+c) {
				continue
			}
			cursor, err := database.ListCollections(ctx, bson.D{{Key: "name", Value: c}})
			kind := add(name+"."+c, cursor, err)[0].Lookup("type").StringValue()
			if kind == "collection" {
				cursor, err = database.Collection(c).Indexes().List(ctx)
				add(name+"."+c, cursor, err)
			}
			cursor, err = database.Collection(c).Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
			add(name+"."+c, cursor, err)
		}
	}
	return text.String()
}

// processes returns the processes of the place except the deployment, by process id, with their parents.
func (s *stage) processes() map[int]int {
	s.Helper()
	found := map[int]int{}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	testkit.Check(s.T, err)
	for _, file := range files {
		environment, _ := os.ReadFile(file) // the process may have ended, or be another user's
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		testkit.Check(s.T, err)
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		var parent int
		_, after, _ := strings.Cut(string(stat), ") ")
		_, _ = fmt.Sscanf(after, "%s %d", new(string), &parent)
		if bytes.Contains(environment, []byte("TMPDIR="+s.Temp)) && pid != s.server.Cmd.Process.Pid {
			found[pid] = parent
		}
	}
	return found
}

// one returns a random child of a process or of its children, or 0.
func (s *stage) one(night int, grandchild bool) (pid int) {
	s.Helper()
	all := s.processes()
	var fitting []int
	for pid, parent := range all {
		if parent == night != grandchild && (parent == night || all[parent] == night) {
			fitting = append(fitting, pid)
		}
	}
	if len(fitting) == 0 {
		return 0
	}
	slices.Sort(fitting)
	return fitting[s.random.IntN(len(fitting))]
}

// randomFault is a fault of a night.
type randomFault struct {
	name    string
	cluster string // that the night uses besides mine, or "" for any
	do      func(night *utrtest.Process) (met bool)
}

func (s *stage) faults() []randomFault {
	pause := func(pid int) bool {
		if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
			return false
		}
		time.Sleep(time.Duration(s.random.IntN(3000)) * time.Millisecond)
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been killed with its parent
		return true
	}
	kill := func(pid int) bool { return pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil }
	signal := func(sig os.Signal) func(*utrtest.Process) bool {
		return func(u *utrtest.Process) bool { return u.Process.Signal(sig) == nil }
	}
	service := func(f fakeorchestration.Fault) func(*utrtest.Process) bool {
		return func(*utrtest.Process) bool { s.service.Misbehave(f); return true }
	}
	return []randomFault{
		{"killed", "", signal(syscall.SIGKILL)},
		{"interrupted", "", signal(syscall.SIGINT)},
		{"terminated", "", signal(syscall.SIGTERM)},
		{"hung up", "", signal(syscall.SIGHUP)},
		{"paused", "", func(u *utrtest.Process) bool { return pause(u.Process.Pid) }},
		{"a cell is killed", "", func(u *utrtest.Process) bool { return kill(s.one(u.Process.Pid, false)) }},
		{"a cell is paused", "", func(u *utrtest.Process) bool { return pause(s.one(u.Process.Pid, false)) }},
		{"the deployment is paused", "", func(*utrtest.Process) bool { return pause(s.server.Cmd.Process.Pid) }},
		{"the deployment is killed", "", func(*utrtest.Process) bool { return kill(s.server.Cmd.Process.Pid) }},
		{"a local server is killed", "made", func(u *utrtest.Process) bool { return kill(s.one(u.Process.Pid, true)) }},
		{"a local server is paused", "made", func(u *utrtest.Process) bool { return pause(s.one(u.Process.Pid, true)) }},
		{"the service fails once", "cloud", func(*utrtest.Process) bool {
			var once sync.Once
			s.service.Misbehave(func(_, _ string, w http.ResponseWriter, _ *http.Request) (failed bool) {
				once.Do(func() { failed = true; fakeorchestration.Raise(w, "Error: once") })
				return failed
			})
			return true
		}},
		{"the service is slow", "cloud", service(func(string, string, http.ResponseWriter, *http.Request) bool {
			time.Sleep(time.Second)
			return false
		})},
		{"deletions lie", "cloud", service(func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
			if method == http.MethodDelete {
				_, _ = w.Write([]byte("<html>please log in</html>"))
			}
			return method == http.MethodDelete
		})},
		{"the service is killed", "cloud", service(func(_, _ string, w http.ResponseWriter, _ *http.Request) bool {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = c.Close()
			}
			return true
		})},
	}
}

// A hundred random faults in a row. After each of them, no process is left, and utr clean leaves no entry, folder,
// lock, fail point or cluster; the user's data is unchanged, no test failed, and the reports of a night that ended have
// every test of every cell. Nights without a fault pass.
func TestRandomFaults(t *testing.T) {
	const rounds = 100
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("not verified: requires /proc")
	}
	s := &stage{T: t, Place: utrtest.NewPlace(t), random: rand.New(rand.NewPCG(testkit.Seed(t), 0)),
		file:  filepath.Join(t.TempDir(), "night.yml"),
		suite: filepath.Join(t.TempDir(), "held.yml"), release: utrtest.Release(t), service: fakeorchestration.Start(t)}
	testkit.Check(t, os.WriteFile(s.suite, []byte(held), 0o600))
	s.serve()
	met := map[string]int{}
	kinds := s.faults()
	for round := 0; round < rounds; { // nights that end before their fault do not count
		f := kinds[s.random.IntN(len(kinds))]
		cluster := cmp.Or(f.cluster, []string{"own", "cloud", "made"}[s.random.IntN(3)])
		if s.round(round, f, cluster) {
			met[f.name]++
			round++
		} else {
			met["nothing"]++
		}
	}
	t.Logf("faults: %v", met)
}

// round plays a night. It reports whether the fault happened.
func (s *stage) round(round int, f randomFault, cluster string) (met bool) {
	s.Helper()
	report, results := filepath.Join(s.TempDir(), "night.json"), filepath.Join(s.TempDir(), "results")
	u := s.Start("matrix", s.file, "--only", "^(mine|"+cluster+")_", "--jobs", "2", "--results", results, "--json", report)
	time.Sleep(time.Duration(100+s.random.IntN(4000)) * time.Millisecond)
	met = !u.Ended() && f.do(u)
	end := u.End()
	s.Logf("round %d: %s with %s: %t, exit code %d", round, f.name, cluster, met, end.Code)
	fail := func(format string, args ...any) {
		s.Helper()
		s.Fatalf("round %d, %s with %s: %s\n%s", round, f.name, cluster, fmt.Sprintf(format, args...), end.All())
	}
	if missing, failed := read(s.T, report, cluster, f.name == "killed" && met); missing != "" || failed != "" {
		fail("not in the report: %s; failed: %s", missing, failed)
	}
	if !met && end.Code != 0 {
		fail("exit code %d without a fault", end.Code)
	}
	testkit.Until(s.T, f.name+": all processes have ended", func() bool { return len(s.processes()) == 0 })
	s.service.Misbehave(nil)
	if f.name == "the service is killed" { // and started again: it does not know its clusters, whose servers run
		running := len(s.service.Clusters())
		s.service.Forget()
		if left := s.Entries(`"cluster"`); running > 0 && len(left) == running {
			s.Place.Run("clean", "--uri", s.server.URI).Want(3, fmt.Sprintf("left %d", running))
		}
		s.service.Kill()
	}
	if left := s.held(); left != "" && !(met && f.abrupt()) {
		fail("%s before utr clean", left)
	}
	if s.server.Ended() {
		s.Place.Run("clean", "--forget") // the lock of a deployment that no longer exists
		s.serve()
	}
	late := time.Now().Add(3 * testkit.Patience)
	for s.Place.Run("clean", "--uri", s.server.URI).Code != 0 || len(s.Entries("")) > 0 {
		// cells of a killed night clean up first
		if time.Now().After(late) {
			fail("something is left: %v", s.Entries(""))
		}
		time.Sleep(time.Second)
	}
	for _, folder := range s.Folders() { // of a cluster that died, whose logs are kept
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		testkit.Check(s.T, err)
		if slices.ContainsFunc(files, func(file string) bool { return filepath.Ext(file) != ".log" }) || f.cluster != "made" {
			fail("%s has %v", folder, files)
		}
		testkit.Check(s.T, os.RemoveAll(folder))
	}
	if left := s.service.Clusters(); len(left) > 0 {
		fail("clusters are left: %v", left)
	}
	if left := s.held(); left != "" {
		fail("%s after utr clean", left)
	}
	if after := s.content(); after != s.before {
		fail("the user's data has changed: %s\nbefore: %s", after, s.before)
	}
	return met
}

// abrupt reports whether the run cannot remove its lock and its fail points on the deployment.
func (f randomFault) abrupt() bool {
	return slices.Contains([]string{"killed", "a cell is killed", "the deployment is paused", "the deployment is killed"},
		f.name)
}

// held returns a fail point that is on, or a lock.
func (s *stage) held() string {
	s.Helper()
	if s.server.Ended() {
		return ""
	}
	for _, host := range utrtest.Hosts(s.server.URI) {
		points, err := s.connect("mongodb://"+host+
			"/?directConnection=true").Database("admin").RunCommand(testkit.Context(s.T),
			bson.D{{Key: "getParameter", Value: 1}, {Key: "failpoint.failCommand", Value: 1}}).Raw()
		testkit.Check(s.T, err)
		if points.Lookup("failpoint.failCommand", "mode").AsInt64() != 0 {
			return fmt.Sprintf("a fail point is on at %s: %s", host, points)
		}
	}
	n, err := s.user.Database("utr").Collection("lock").CountDocuments(testkit.Context(s.T), bson.D{})
	testkit.Check(s.T, err)
	if n != 0 {
		return "the lock is left"
	}
	return ""
}

// read returns a test that is not in the report of a night, and one that failed. The report of a killed night is a
// part.
func read(t *testing.T, report, cluster string, killed bool) (missing, failed string) {
	t.Helper()
	text, err := os.ReadFile(report)
	if err != nil && !killed {
		t.Fatal(err)
	}
	planned := map[string]bool{}
	for _, name := range []string{"mine", cluster} {
		for _, test := range []string{"smoke: finds inserted documents", "held: one", "held: two", "held: three"} {
			planned[name+"_reference_"+test] = true
		}
	}
	for line := range strings.Lines(string(text)) {
		var r struct{ Cell, Test, Status string }
		testkit.Check(t, json.Unmarshal([]byte(line), &r))
		_, suite, _ := strings.Cut(r.Cell, "_reference_")
		delete(planned, strings.TrimSuffix(r.Cell, suite)+suite+": "+r.Test)
		if r.Status == "failed" {
			failed = line
		}
	}
	if !killed {
		missing = strings.Join(slices.Sorted(maps.Keys(planned)), ", ")
	}
	return missing, failed
}
