package acceptance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

// dropping drops the database of the lock, and goes on.
const dropping = `description: "dropping"
schemaVersion: "1.10"
createEntities:
  - client: {id: client}
  - database: {id: database, client: client, databaseName: utr}
  - collection: {id: collection, database: database, collectionName: lock}
tests:
  - description: "drops the database"
    operations: [{name: runCommand, object: database, arguments: {commandName: dropDatabase, command: {dropDatabase: 1}}}]
  - description: "goes on"
    operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]
`

// waiting takes minutes.
const waiting = `description: "waiting"
schemaVersion: "1.10"
createEntities: [{client: {id: client}}]
tests:
  - description: "waits"
    operations: [{name: wait, object: testRunner, arguments: {ms: 90000}}]
  - description: "next"
    operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]
`

// locked runs a suite on a deployment that it locks. As the test with a name
// begins, during is called.
func locked(t *testing.T, d *embedded.Deployment, suite, test string, during func(lock *mongo.Collection)) (result.Summary, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "suite.yml")
	if err := os.WriteFile(file, []byte(suite), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Context(t)
	running, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	source, err := deployment.OpenCluster(ctx, deployment.ClusterOptions{URI: d.URI(),
		Lock: &deployment.LockOptions{Lease: 3 * time.Second, Lost: func(err error) { lose(err) }}})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := reference.New(reference.Options{Backoff: reference.BackoffNone})
	if err != nil {
		t.Fatal(err)
	}
	summary, err := runner.Run(running, bench.Load(t, file), runner.Config{Engine: engine, Source: source, Notify: func(n result.Note) {
		if s, ok := n.(result.TestStarted); ok && s.Test.Description == test {
			during(lockOf(t, d))
		}
	}})
	for _, err := range []error{err, engine.Close(), source.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	return summary, context.Cause(running)
}

// lockOf gives the collection of the lock, as another client sees it.
func lockOf(t *testing.T, d *embedded.Deployment) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(d.URI()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database(deployment.LockDatabase).Collection(deployment.LockCollection)
}

// lockedBy names the run that holds the lock, "" if none does.
func lockedBy(t *testing.T, lock *mongo.Collection) (run string) {
	t.Helper()
	found, err := lock.FindOne(testkit.Context(t), bson.D{}).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return found.Lookup("run").StringValue()
}

// A lock that another run takes in the middle of a test ends the run in bounded
// time, as broken, and stays the other's.
func TestLockTakenInTheMiddle(t *testing.T) {
	d, err := embedded.Start(context.Background(), embedded.Options{Topology: embedded.ReplicaSet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	begun := time.Now()
	summary, cause := locked(t, d, waiting, "waits", func(lock *mongo.Collection) {
		later := time.Now().Add(time.Hour)
		if _, err := lock.ReplaceOne(context.Background(), bson.D{{Key: "_id", Value: "run"}}, bson.D{{Key: "run", Value: "other"}, {Key: "host", Value: "far"},
			{Key: "pid", Value: 7}, {Key: "started", Value: begun}, {Key: "renewed", Value: begun}, {Key: "expires", Value: later}}); err != nil {
			t.Error(err)
		}
	})
	var lost *deployment.LostError
	if !errors.As(cause, &lost) || lost.Holder == nil || lost.Holder.Host != "far" {
		t.Errorf("it ended with %v", cause)
	}
	if !summary.Interrupted || summary.ExitCode() != 3 || summary.Passed > 0 {
		t.Errorf("%+v", summary)
	}
	if by := lockedBy(t, lockOf(t, d)); by != "other" {
		t.Errorf("the lock is held by %q", by)
	}
}

// A suite that drops the lock's database takes the lock from nobody: it is put
// back, and removed at the end.
func TestSuiteDropsTheLock(t *testing.T) {
	d, err := embedded.Start(context.Background(), embedded.Options{Topology: embedded.ReplicaSet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	summary, cause := locked(t, d, dropping, "goes on", func(lock *mongo.Collection) {
		testkit.Until(t, "the lock is put back", func() bool { return lockedBy(t, lock) != "" })
	})
	if summary.Passed != 2 || cause != nil {
		t.Errorf("%+v, %v", summary, cause)
	}
	if by := lockedBy(t, lockOf(t, d)); by != "" {
		t.Errorf("the lock is held by %q", by)
	}
}
