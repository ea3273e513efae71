//go:build unix

package command

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/fakeorchestration"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// TestMain also makes this program an adapter.
func TestMain(m *testing.M) {
	if os.Getenv(adapterMode) == "" {
		utrtest.Main(m)
	}
	if err := serveFaulty(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A closed standard output does not kill the run during a test: it ends as after a signal.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	testkit.Check(t, errors.Join(err, reader.Close()))
	r := utrtest.NewPlace(t).RunTo(writer, "run", "-v", "--topology", "single", suiteFile(t, armed)).Want(3)
	testkit.Equal(t, "standard error", r.Err, "")
}

// The suites in testdata. The second test of armed sets a fail point that fails ping for all clients, and then takes
// minutes. The second test of blocked waits for an answer of the server for minutes. The second test of gated has a fail
// point like armed, and then waits until someone opens the gate. reads passes on an empty collection. sensitive observes
// authentication commands, and fails in all ways that make a report long.
var (
	//go:embed testdata/armed.yml
	armed string
	//go:embed testdata/blocked.yml
	blocked string
	//go:embed testdata/gated.yml
	gated string
	//go:embed testdata/reads.yml
	reads string
	//go:embed testdata/sensitive.yml
	sensitive string
)

// misread is reads with an expectation in line 11 that fails.
var misread = strings.Replace(reads, "expectResult: []", "expectResult: [{x: 1}]", 1)

func suiteFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "suite.yml")
	testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

type record struct{ Test, Status, RerunCommand string }

func records(t *testing.T, file string) (all []record) {
	t.Helper()
	text := testkit.Read(t, file)
	for line := range strings.Lines(text) {
		var r record
		testkit.Check(t, json.Unmarshal([]byte(line), &r))
		if r.Test != "" { // the last line is about the run
			all = append(all, r)
		}
	}
	return all
}

// witness is a client that is independent of the run.
type witness struct {
	*mongo.Client
	t   *testing.T
	uri string
}

func newWitness(t *testing.T, uri string) witness {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	testkit.Check(t, err)
	t.Cleanup(func() { // the server may have been killed
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Disconnect(ctx)
	})
	return witness{client, t, uri}
}

// run runs a command on admin.
func (w witness) run(command bson.D) (bson.Raw, error) {
	w.t.Helper()
	return w.Database("admin").RunCommand(testkit.Context(w.t), command).Raw()
}

func (w witness) ping() error {
	w.t.Helper()
	_, err := w.run(bson.D{{Key: "ping", Value: 1}})
	return err
}

// sees waits until the fail point of the suite armed is on: the run is in its second test.
func (w witness) sees(run *utrtest.Process) {
	w.t.Helper()
	run.Until("the fail point is on", func() bool { return w.ping() != nil })
}

// holder returns the process id in the lock document, or 0.
func (w witness) holder() int64 {
	w.t.Helper()
	lock, err := w.Database("utr").Collection("lock").FindOne(testkit.Context(w.t),
		bson.D{{Key: "_id", Value: "run"}}).Raw()
	if err != nil {
		return 0
	}
	return lock.Lookup("pid").AsInt64()
}

// free checks that no fail point is on and no lock exists.
func (w witness) free() {
	w.t.Helper()
	testkit.Equal(w.t, "ping, which the fail point would fail", w.ping(), nil)
	testkit.Equal(w.t, "the process that has the lock", w.holder(), 0)
}

// triggered waits until a fail point was triggered on one of some servers: the run is in the second test of the suite
// blocked. The test must last longer than this wait: when it ends, the count is 0 again.
func triggered(t *testing.T, run *utrtest.Process, hosts ...string) {
	t.Helper()
	var members []witness
	for _, host := range hosts {
		members = append(members, newWitness(t, "mongodb://"+host+"/?directConnection=true"))
	}
	run.Until("the fail point is triggered", func() bool {
		for _, m := range members {
			reply, err := m.run(bson.D{{Key: "getParameter", Value: 1}, {Key: "failpoint.failCommand", Value: 1}})
			if n, ok := reply.Lookup("failpoint.failCommand", "timesEntered").AsInt64OK(); err == nil && ok && n > 0 {
				return true
			}
		}
		return false
	})
}

// gone waits until some processes have ended. A zombie has.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	testkit.Until(t, fmt.Sprintf("the processes %v have ended", pids), func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { _, err := ledger.ProcessOf(pid); return err == nil })
	})
}

// servers returns the process ids in the ledger of a place.
func servers(t *testing.T, p *utrtest.Place) (pids []int) {
	t.Helper()
	for _, text := range p.Entries(`"kind": "process"`) {
		var record struct {
			Entry struct{ Process struct{ PID int } }
		}
		testkit.Check(t, json.Unmarshal([]byte(text), &record))
		pids = append(pids, record.Entry.Process.PID)
	}
	return pids
}

// begin starts a run of armed, waits until its first test has passed, and returns the servers of the run.
func begin(t *testing.T, p *utrtest.Place, args ...string) (u *utrtest.Process, pids []int) {
	t.Helper()
	u = p.Start(append(append([]string{"run", "-v", "--jobs", "1"}, args...), suiteFile(t, armed))...)
	u.Line("passed armed: first")
	return u, servers(t, p)
}

// uriOf returns the connection string of a cluster of a service.
func uriOf(t *testing.T, s *fakeorchestration.Service, id string) string {
	t.Helper()
	client, err := orchestration.New(s.URL)
	testkit.Check(t, err)
	defer client.Close()
	cluster, err := client.Find(testkit.Context(t), id)
	testkit.Check(t, err)
	return cluster.URI
}
