//go:build unix

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// quick is a night of two cells on an existing deployment and one that utr creates. Its second suite has a fail point on
// for a while.
const quick = `clusters: [{name: mine, uri: %q}, {name: own, embedded: replicaset}]
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

// stage is an existing deployment with data of a user, and nights on it.
type stage struct {
	*testing.T
	*utrtest.Place
	random *rand.Rand
	file   string
	server *utrtest.Server
	mine   *mongo.Collection
	before []byte // what it contains
}

// serve starts the deployment and inserts the user's data.
func (s *stage) serve(suite string) {
	s.Helper()
	s.server = s.Serve("--topology", []string{"single", "replicaset", "sharded"}[s.random.IntN(3)])
	testkit.Check(s.T, os.WriteFile(s.file, fmt.Appendf(nil, quick, s.server.URI, suite), 0o600))
	client, err := mongo.Connect(options.Client().ApplyURI(s.server.URI))
	testkit.Check(s.T, err)
	s.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Disconnect(ctx)
	})
	s.mine = client.Database("accounts").Collection("people")
	_, err = s.mine.InsertMany(testkit.Context(s.T), []any{bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: "mine"}}, bson.D{{Key: "_id", Value: 2}}})
	testkit.Check(s.T, err)
	s.before = s.content()
}

func (s *stage) content() []byte {
	s.Helper()
	cursor, err := s.mine.Find(testkit.Context(s.T), bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	testkit.Check(s.T, err)
	var all []bson.Raw
	testkit.Check(s.T, cursor.All(testkit.Context(s.T), &all))
	var text []byte
	for _, one := range all {
		text = append(text, one...)
	}
	return text
}

// A hundred random faults in a row: a night is killed, interrupted or paused, or its deployment is paused or killed. After
// each of them, no process is left, and utr clean leaves no entry, folder, lock or fail point; the user's data is unchanged,
// no test failed, and the reports of a night that ended have every cell.
func TestRandomFaults(t *testing.T) {
	const rounds = 100
	s := &stage{T: t, Place: utrtest.NewPlace(t), random: rand.New(rand.NewPCG(testkit.Seed(t), 0)), file: filepath.Join(t.TempDir(), "night.yml")}
	suite := filepath.Join(t.TempDir(), "held.yml")
	testkit.Check(t, os.WriteFile(suite, []byte(held), 0o600))
	s.serve(suite)
	met := map[string]int{}
	pause := func(p *utrtest.Process) {
		testkit.Check(t, p.Process.Signal(syscall.SIGSTOP))
		time.Sleep(time.Duration(s.random.IntN(3000)) * time.Millisecond)
		testkit.Check(t, p.Process.Signal(syscall.SIGCONT))
	}
	kinds := []struct {
		name string
		do   func(night *utrtest.Process)
	}{
		{"killed", func(u *utrtest.Process) { u.Signal(syscall.SIGKILL) }},
		{"interrupted", func(u *utrtest.Process) { u.Signal(syscall.SIGINT) }},
		{"terminated", func(u *utrtest.Process) { u.Signal(syscall.SIGTERM) }},
		{"hung up", func(u *utrtest.Process) { u.Signal(syscall.SIGHUP) }},
		{"paused", pause},
		{"the deployment is paused", func(*utrtest.Process) { pause(s.server.Process) }},
		{"the deployment is killed", func(*utrtest.Process) { s.server.Signal(syscall.SIGKILL) }},
	}
	for round := 0; round < rounds; { // nights that end before their fault do not count
		kind := kinds[s.random.IntN(len(kinds))]
		report := filepath.Join(t.TempDir(), "night.json")
		results := filepath.Join(t.TempDir(), "results")
		u := s.Start("matrix", s.file, "--jobs", "2", "--results", results, "--json", report)
		time.Sleep(time.Duration(100+s.random.IntN(2200)) * time.Millisecond)
		if u.Ended() {
			met["nothing"]++
		} else {
			met[kind.name]++
			round++
			kind.do(u)
		}
		end := u.End()
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("round %d, %s: %s\n%s", round, kind.name, fmt.Sprintf(format, args...), end.All())
		}
		if kind.name != "killed" {
			silent, failed := read(t, report)
			if len(silent) > 0 {
				fail("cells are not in the report: %v", silent)
			}
			if failed != "" {
				fail("a test failed because of a fault: %s", failed)
			}
		}
		testkit.Until(t, "the processes of all cells have ended", func() bool {
			out, err := exec.Command("ps", "-Aww", "-o", "args=").Output()
			testkit.Check(t, err)
			return !strings.Contains(string(out), results)
		})
		if kind.name == "the deployment is killed" && s.server.Ended() {
			s.Place.Run("clean", "--forget") // the lock of a deployment that no longer exists
			s.Empty()
			s.serve(suite)
			continue
		}
		late := time.Now().Add(3 * testkit.Patience)
		for s.Place.Run("clean", "--uri", s.server.URI).Code != 0 || len(s.Entries("")) > 0 { // cells of a killed night clean up first
			if time.Now().After(late) {
				fail("something is left: %v", s.Entries(""))
			}
			time.Sleep(time.Second)
		}
		s.Empty()
		if _, err := s.mine.Database().Client().Database("admin").RunCommand(testkit.Context(t), bson.D{{Key: "ping", Value: 1}}).Raw(); err != nil {
			fail("a fail point is on: %s", err)
		}
		if n, err := s.mine.Database().Client().Database("utr").Collection("lock").CountDocuments(testkit.Context(t), bson.D{}); err != nil || n != 0 {
			fail("%d locks are left: %v", n, err)
		}
		if !bytes.Equal(s.content(), s.before) {
			fail("the user's data has changed")
		}
	}
	t.Logf("faults: %v", met)
}

// read returns the cells that are not in the report of a night, and the first test that failed.
func read(t *testing.T, report string) (silent []string, failed string) {
	t.Helper()
	text := testkit.Read(t, report)
	for _, cell := range []string{"mine_reference_smoke", "mine_reference_held", "own_reference_smoke", "own_reference_held"} {
		if !strings.Contains(text, strconv.Quote(cell)) {
			silent = append(silent, cell)
		}
	}
	for line := range strings.Lines(text) {
		var r struct{ Status string }
		testkit.Check(t, json.Unmarshal([]byte(line), &r))
		if r.Status == "failed" && failed == "" {
			failed = line
		}
	}
	return silent, failed
}
