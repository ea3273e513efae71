package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/ledger"
)

// Benches have no state directory of their own: theirs is not the user's.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "utr-cli-test-")
	if err == nil {
		err = os.Setenv("XDG_CACHE_HOME", dir)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// The flags of the lock reach the deployment, and only one of somebody else's.
func TestLockFlags(t *testing.T) {
	file := suiteFile(t)
	b := newBench()
	b.Main(context.Background(), []string{"run", "--uri", "mongodb://h1:1/", "--wait-for-lock", "90s", "--lock-name", "job 7", file})
	if lock := b.cluster.Lock; lock == nil || lock.Wait != 90*time.Second || lock.Name != "job 7" || lock.Lost == nil {
		t.Errorf("%+v\n%s", lock, b.err.String())
	}
	armed := filepath.Join(t.TempDir(), "armed.yml")
	write(t, armed, `{description: x, schemaVersion: "1.0", createEntities: [{client: {id: c}}], tests: [{description: a, operations: [
	  {name: failPoint, object: testRunner, arguments: {client: c, failPoint: {configureFailPoint: hangSomewhere, mode: "off"}}}]}]}`)
	b = newBench()
	b.Main(context.Background(), []string{"run", "--uri", "mongodb://h1:1/", armed})
	if got := b.cluster.FailPoints; len(got) != 1 || got[0] != "hangSomewhere" {
		t.Errorf("the fail points of the suites are %q\n%s", got, b.err.String())
	}
	b = newBench()
	b.Main(context.Background(), []string{"run", "--uri", "mongodb://h1:1/", file})
	if lock := b.cluster.Lock; lock == nil || lock.Wait != 0 {
		t.Errorf("a run that does not wait: %+v", lock)
	}
	for _, args := range [][]string{{"run", "--uri", "mongodb://h1:1/", "--dry-run", file}, {"validate", file}} {
		b = newBench()
		if b.Main(context.Background(), args); b.cluster.URI != "" || b.cluster.Lock != nil {
			t.Errorf("%q touches a deployment: %+v", args, b.cluster)
		}
	}
}

// A deployment that another run uses is an error of its own: nothing runs.
func TestHeldLock(t *testing.T) {
	b := newBench()
	b.Cluster = func(context.Context, deployment.ClusterOptions) (deployment.Source, error) {
		return nil, &deployment.HeldError{Hosts: []string{"h1:1"}, Holder: deployment.Holder{Host: "far", PID: 7}}
	}
	if code := b.Main(context.Background(), []string{"run", "--uri", "mongodb://h1:1/", suiteFile(t)}); code != ExitBroken || b.ran != nil {
		t.Errorf("exit code %d, ran %v", code, b.ran != nil)
	}
	for _, part := range []string{"the deployment at h1:1 is in use by a run on host far, process 7", "--wait-for-lock"} {
		if !strings.Contains(b.err.String(), part) {
			t.Errorf("%q is missing in %q", part, b.err.String())
		}
	}
}

// A lock that is lost in the middle ends the run, which says why and did not
// go well.
func TestLostLock(t *testing.T) {
	b := newBench()
	ended := make(chan struct{})
	b.during = func() {
		b.cluster.Lock.Lost(&deployment.LostError{Hosts: []string{"h1:1"}, Holder: &deployment.Holder{Host: "far", PID: 7}})
		close(ended)
	}
	code := b.Main(context.Background(), []string{"run", "--uri", "mongodb://h1:1/", suiteFile(t)})
	<-ended
	if code != ExitBroken {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(b.err.String(), "utr: the lock of the deployment at h1:1 was lost: a run on host far, process 7") {
		t.Errorf("standard error: %q", b.err.String())
	}
}

// closing is a source whose end a test decides.
type closing struct {
	noSource
	err error
}

func (s closing) Close() error { return s.err }

// The ledger knows of the lock from before it is taken until it is removed.
func TestLedgerKnowsOfTheLock(t *testing.T) {
	for _, r := range []struct {
		reason  string
		opening error
		closing error
		dies    bool
		kept    int
	}{
		{"the run ends well", nil, nil, false, 0},
		{"the deployment is in use", &deployment.HeldError{}, nil, false, 0},
		{"the lock cannot be removed", nil, errors.New("no primary"), false, 1},
		{"the runner panics", nil, nil, true, 0},
	} {
		t.Run(r.reason, func(t *testing.T) {
			b := newBench()
			dir := t.TempDir()
			b.env[ledger.EnvDir] = dir
			entries := func() int {
				names, err := filepath.Glob(filepath.Join(dir, "ledger", "*.json"))
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					text, err := os.ReadFile(name)
					if err != nil || strings.Contains(string(text), "s3cret") || !strings.Contains(string(text), "mongodb://***@h1:1/") {
						t.Errorf("%v: %s", err, text)
					}
				}
				return len(names)
			}
			b.Cluster = func(context.Context, deployment.ClusterOptions) (deployment.Source, error) {
				if n := entries(); n != 1 {
					t.Errorf("%d entries before the lock is taken", n)
				}
				return closing{err: r.closing}, r.opening
			}
			b.during = func() {
				if r.dies {
					panic("a fault of the runner")
				}
			}
			func() {
				defer func() { _ = recover() }()
				b.Main(context.Background(), []string{"run", "--uri", "mongodb://u:s3cret@h1:1/", suiteFile(t)})
			}()
			if n := entries(); n != r.kept {
				t.Errorf("%d entries are left, want %d", n, r.kept)
			}
		})
	}
}
