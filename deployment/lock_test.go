package deployment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/ledger"
)

// serving starts an embedded deployment that the test takes for somebody
// else's.
func serving(t *testing.T, o embedded.Options) *embedded.Deployment {
	t.Helper()
	d, err := embedded.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// within bounds what a test waits for.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("the test's patience of %s", patience))
	t.Cleanup(cancel)
	return ctx
}

// admin is a client of somebody who has nothing to do with the run.
func admin(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	return c
}

// notes collects what people are told.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "\n")
}

func release(t *testing.T, l *Lock) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// storeOf is the lock of a deployment for somebody who looks.
func storeOf(t *testing.T, text string) lockStore {
	t.Helper()
	u, err := parseURI(text)
	if err != nil {
		t.Fatal(err)
	}
	store, err := openLockStore(u)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func lockOf(t *testing.T, uri string) *Holder {
	t.Helper()
	store := storeOf(t, uri)
	defer store.close()
	h, err := store.read(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// shapes are the deployments that a lock has to hold on.
var shapes = []struct {
	reason string
	o      embedded.Options
}{
	{"no majority but itself", embedded.Options{Topology: embedded.Standalone}},
	{"a replica set", embedded.Options{Topology: embedded.ReplicaSet}},
	{"two mongoses", embedded.Options{Topology: embedded.Sharded}},
	{"behind a load balancer", embedded.Options{Topology: embedded.LoadBalanced}},
	{"the oldest server", embedded.Options{Topology: embedded.ReplicaSet, Version: "4.2"}},
	{"with access control", embedded.Options{Topology: embedded.ReplicaSet, Users: []embedded.User{{Name: "u", Password: "s3cret-pw"}}}},
}

// A second run is refused at once and told who the first is; when that has
// ended, the lock is free, and nothing of it is left.
func TestSecondRunIsRefused(t *testing.T) {
	for _, r := range shapes {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			uri := serving(t, r.o).URI()
			first, err := AcquireLock(within(t), uri, LockOptions{Name: "job $17"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = AcquireLock(within(t), uri, LockOptions{})
			var held *HeldError
			if !errors.As(err, &held) {
				t.Fatalf("the second run got: %v", err)
			}
			host, _ := os.Hostname()
			if h := held.Holder; h.Host != host || h.PID != os.Getpid() || h.Name != "job $17" || h.Started.IsZero() || h.Stale() {
				t.Errorf("the holder is %+v", h)
			}
			for _, part := range []string{"on host " + host, fmt.Sprint("process ", os.Getpid()), "(job $17)", "since ", "last seen ", "--wait-for-lock", "utr clean --uri"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is missing in: %v", part, err)
				}
			}
			if strings.Contains(err.Error()+fmt.Sprintf("%+v", lockOf(t, uri)), "s3cret") {
				t.Error("the lock tells a password")
			}
			release(t, first)
			release(t, first) // twice does no harm
			if h := lockOf(t, uri); h != nil {
				t.Errorf("the lock is left: %+v", h)
			}
			second, err := AcquireLock(within(t), uri, LockOptions{})
			if err != nil {
				t.Fatal(err)
			}
			release(t, second)
		})
	}
}

// Of many runs that start at the same moment exactly one gets the lock, be it
// free or stale.
func TestOneOfManyWins(t *testing.T) {
	const contenders = 8
	for _, r := range shapes {
		for _, stale := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stale %v", r.reason, stale), func(t *testing.T) {
				t.Parallel()
				uri := serving(t, r.o).URI()
				if stale {
					leaveStale(t, uri)
				}
				var all sync.WaitGroup
				start := make(chan struct{})
				won, lost := make(chan *Lock, contenders), make(chan error, contenders)
				for range contenders {
					all.Go(func() {
						<-start
						l, err := AcquireLock(within(t), uri, LockOptions{})
						if err != nil {
							lost <- err
							return
						}
						won <- l
					})
				}
				close(start)
				all.Wait()
				if len(won) != 1 {
					t.Errorf("%d of %d have the lock", len(won), contenders)
				}
				close(won)
				close(lost)
				for err := range lost {
					if held := new(HeldError); !errors.As(err, &held) {
						t.Errorf("a loser is told: %v", err)
					}
				}
				for l := range won {
					release(t, l)
				}
			})
		}
	}
}

// leaveStale leaves the lock of a run that ended without a word.
func leaveStale(t *testing.T, uri string) {
	t.Helper()
	store := storeOf(t, uri)
	defer store.close()
	if _, ok, err := store.take(within(t), Holder{Run: "dead", Host: "far", PID: 7, Name: "of last night"}, -time.Minute); err != nil || !ok {
		t.Fatalf("%v %v", ok, err)
	}
}

// A stale lock is taken over, and people hear of it; a fresh one is not.
func TestStaleLockIsTakenOver(t *testing.T) {
	uri := serving(t, embedded.Options{Topology: embedded.ReplicaSet}).URI()
	leaveStale(t, uri)
	var told notes
	l, err := AcquireLock(within(t), uri, LockOptions{Note: told.add})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, l)
	for _, part := range []string{"took over the lock", "host far, process 7 (of last night)"} {
		if !strings.Contains(told.String(), part) {
			t.Errorf("%q is missing in %q", part, told.String())
		}
	}
	if h := lockOf(t, uri); h.Run != l.me.Run || h.Stale() || h.Expires.Sub(h.Renewed) != DefaultLease {
		t.Errorf("%+v", h)
	}
}

// The lock of a run that is known to be gone is taken at once, and no other.
func TestLockOfARunThatIsGone(t *testing.T) {
	uri := serving(t, embedded.Options{Topology: embedded.ReplicaSet}).URI()
	first, err := AcquireLock(within(t), uri, LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, first)
	if first.me.Place != ledger.Here() {
		t.Errorf("place %q", first.me.Place)
	}
	held := new(HeldError)
	if _, err := AcquireLock(within(t), uri, LockOptions{Gone: func(*Holder) bool { return false }}); !errors.As(err, &held) {
		t.Errorf("of a run that goes on: %v", err)
	}
	var told notes
	second, err := AcquireLock(within(t), uri, LockOptions{Note: told.add, Gone: func(h *Holder) bool { return h.Run == first.me.Run }})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, second)
	if h := lockOf(t, uri); h.Run != second.me.Run || !strings.Contains(told.String(), "which is gone") {
		t.Errorf("%+v; told %q", h, told.String())
	}
}

// A run that waits gets the lock once the other has ended, and is told what it
// waits for.
func TestWaitForLock(t *testing.T) {
	uri := serving(t, embedded.Options{Topology: embedded.ReplicaSet}).URI()
	first, err := AcquireLock(within(t), uri, LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan string, 10)
	second, err := AcquireLock(within(t), uri, LockOptions{Wait: patience, Note: func(line string) {
		waiting <- line
		go release(t, first)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, second)
	if line := <-waiting; !strings.HasPrefix(line, "waiting up to "+patience.String()) || len(waiting) > 0 {
		t.Errorf("it said %q and %d more", line, len(waiting))
	}
}

// The wait ends with its time, and with the run's.
func TestWaitForLockEnds(t *testing.T) {
	uri := serving(t, embedded.Options{}).URI()
	first, err := AcquireLock(within(t), uri, LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, first)
	_, err = AcquireLock(within(t), uri, LockOptions{Wait: 20 * time.Millisecond})
	var held *HeldError
	if !errors.As(err, &held) || !strings.Contains(err.Error(), "(waited for 20ms)") {
		t.Errorf("after the wait: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err = AcquireLock(ctx, uri, LockOptions{Wait: patience, Note: func(string) { cancel(errors.New("Ctrl-C")) }})
	if err == nil || !strings.Contains(err.Error(), "waiting for the lock: Ctrl-C") {
		t.Errorf("interrupted: %v", err)
	}
}

// What becomes of a lock in the middle of a run: whatever another run has
// taken is lost, and what a test has dropped is put back.
func TestLockInTheMiddle(t *testing.T) {
	for _, r := range []struct {
		reason string
		happen func(*testing.T, *mongo.Database)
		lost   string // "" if it is not
	}{
		{"nothing", func(*testing.T, *mongo.Database) {}, ""},
		{"a test drops the database", func(t *testing.T, db *mongo.Database) {
			if err := db.Drop(within(t)); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"another run has taken it", func(t *testing.T, db *mongo.Database) {
			soon := time.Now().Add(time.Hour)
			_, err := db.Collection(LockCollection).ReplaceOne(within(t), bson.D{{Key: "_id", Value: lockID}}, bson.D{
				{Key: "run", Value: "other"}, {Key: "host", Value: "far"}, {Key: "pid", Value: 7},
				{Key: "started", Value: time.Now()}, {Key: "renewed", Value: time.Now()}, {Key: "expires", Value: soon}})
			if err != nil {
				t.Fatal(err)
			}
		}, "was lost: a run on host far, process 7"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			d := serving(t, embedded.Options{Topology: embedded.ReplicaSet})
			lost := make(chan error, 10)
			l, err := AcquireLock(within(t), d.URI(), LockOptions{Lost: func(err error) { lost <- err }})
			if err != nil {
				t.Fatal(err)
			}
			before := lockOf(t, d.URI())
			r.happen(t, admin(t, d.URI()).Database(LockDatabase))
			l.renew(within(t), 0)
			if r.lost == "" {
				h := lockOf(t, d.URI())
				if h == nil || h.Run != l.me.Run || h.Expires.Before(before.Expires) || len(lost) > 0 {
					t.Errorf("the lock is %+v, it was %+v", h, before)
				}
				release(t, l)
				return
			}
			select {
			case err := <-lost:
				if !strings.Contains(err.Error(), r.lost) {
					t.Errorf("it says: %v", err)
				}
			case <-time.After(patience):
				t.Fatalf("nobody heard of it within %s", patience)
			}
			release(t, l)
			if h := lockOf(t, d.URI()); h == nil || h.Run != "other" {
				t.Errorf("the other's lock was removed: %+v", h)
			}
		})
	}
}

// The lock outlives a change of the primary; that of a deployment which is
// gone ends the run once the lease is over.
func TestLockAndElections(t *testing.T) {
	d := serving(t, embedded.Options{Topology: embedded.ReplicaSet})
	l, err := AcquireLock(within(t), d.URI(), LockOptions{Lost: func(err error) { t.Errorf("lost: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		before := lockOf(t, d.URI())
		if err := d.StepDown(); err != nil {
			t.Fatal(err)
		}
		l.renew(within(t), 0)
		if h := lockOf(t, d.URI()); h == nil || h.Run != l.me.Run || h.Renewed.Before(before.Renewed) {
			t.Errorf("after the election: %+v", h)
		}
	}
	if err := d.StepDown(); err != nil {
		t.Fatal(err)
	}
	release(t, l)
	if h := lockOf(t, d.URI()); h != nil {
		t.Errorf("the lock is left: %+v", h)
	}
}

// scripted is a lockStore that answers what a test wants.
type scripted struct {
	mu      sync.Mutex
	taking  error
	removed bool
	renewal error
	loud    bool // a fail point of a test is on
	renewed chan struct{}
}

func (s *scripted) take(context.Context, Holder, time.Duration) (*Holder, bool, error) {
	return nil, s.taking == nil, s.taking
}
func (s *scripted) renew(context.Context, string, time.Duration) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.renewed <- struct{}{}:
	default:
	}
	return s.renewal == nil, s.renewal
}
func (s *scripted) read(context.Context) (*Holder, error) { return nil, nil }
func (s *scripted) remove(ctx context.Context, _ string) error {
	s.removed = ctx.Err() == nil
	return nil
}
func (s *scripted) close() {}
func (s *scripted) quiet(context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.loud
}

// A lease that nobody can renew is lost when it is over, and not before.
func TestLeaseRunsOut(t *testing.T) {
	const lease = 300 * time.Millisecond
	lost := make(chan error, 1)
	begun := time.Now()
	s := &scripted{renewal: errors.New("no primary"), renewed: make(chan struct{}, 1)}
	l, err := acquire(within(t), s, []string{"h:1"}, LockOptions{Lease: lease, Lost: func(err error) { lost <- err }})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-lost:
		if took := time.Since(begun); took < lease {
			t.Errorf("it was given up after %s", took)
		}
		if !strings.Contains(err.Error(), "could not be renewed for 300ms: no primary") {
			t.Errorf("it says: %v", err)
		}
	case <-time.After(patience):
		t.Fatalf("nobody heard of it within %s", patience)
	}
	release(t, l)
}

// While a long test runs the lease is renewed all the same, and also if its
// fail points stay on: rather a disturbed test than two runs.
func TestLeaseOfALongTest(t *testing.T) {
	for _, loud := range []bool{false, true} {
		s := &scripted{loud: loud, renewed: make(chan struct{}, 1)}
		l, err := acquire(within(t), s, []string{"h:1"}, LockOptions{Lease: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			select {
			case <-s.renewed:
			case <-time.After(patience):
				t.Fatalf("a fail point is on: %v; no renewal within %s", loud, patience)
			}
		}
		release(t, l)
	}
}

// Renewals between tests are far enough apart to cost nothing.
func TestRenewIsCheap(t *testing.T) {
	s := &scripted{renewed: make(chan struct{}, 10)}
	l, err := acquire(within(t), s, []string{"h:1"}, LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		l.Renew(context.Background())
	}
	if len(s.renewed) > 0 {
		t.Errorf("%d renewals at once", len(s.renewed))
	}
	release(t, l)
}

// utr clean removes what is stale, and what its caller knows to be gone.
func TestClearLock(t *testing.T) {
	uri := serving(t, embedded.Options{Topology: embedded.ReplicaSet}).URI()
	if h, removed, err := ClearLock(within(t), Target{URI: uri}, nil); h != nil || removed || err != nil {
		t.Errorf("without a lock: %v %v %v", h, removed, err)
	}
	leaveStale(t, uri)
	if h, removed, err := ClearLock(within(t), Target{URI: uri}, nil); h == nil || h.Host != "far" || !removed || err != nil || lockOf(t, uri) != nil {
		t.Errorf("a stale one: %v %v %v", h, removed, err)
	}
	l, err := AcquireLock(within(t), uri, LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, l)
	if h, removed, err := ClearLock(within(t), Target{URI: uri}, func(*Holder) bool { return false }); h == nil || removed || err != nil || lockOf(t, uri) == nil {
		t.Errorf("one of a run that goes on: %v %v %v", h, removed, err)
	}
	if h, removed, err := ClearLock(within(t), Target{URI: uri}, func(h *Holder) bool { return h.PID == os.Getpid() }); h == nil || !removed || err != nil || lockOf(t, uri) != nil {
		t.Errorf("one of a run that its caller knows to be gone: %v %v %v", h, removed, err)
	}
	if _, _, err := ClearLock(within(t), Target{URI: "mongodb://u:s3cret@127.0.0.1:1/?serverSelectionTimeoutMS=50"}, nil); err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "canceled") {
		t.Errorf("nothing listens: %v", err)
	}
}

// What the server refuses, or does not make safe, is no lock: a user without
// the right runs without one and is told, everything else is an error that
// leaves nothing behind.
func TestLockThatCannotBe(t *testing.T) {
	refuse := func(code int32) bson.D { return bson.D{{Key: "errorCode", Value: code}} }
	for _, r := range []struct {
		reason string
		data   bson.D // of failCommand for the lock's commands
		note   string // people are told, and the deployment can be used
		err    string
	}{
		{"the user may not", refuse(codeUnauthorized), "no lock keeps other runs away from the deployment at HOSTS: the user of the connection string may not write utr.lock", ""},
		{"it is read-only", refuse(20), "", "taking the lock utr.lock: "},
		{"no majority", bson.D{{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}}}, "", "no majority has it: waiting for replication timed out"},
		{"an election at each try", refuse(189), "", "taking the lock"},
		{"sessions are killed meanwhile", bson.D{{Key: "errorCode", Value: 11601}, {Key: "times", Value: 2}}, "", ""},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d := serving(t, embedded.Options{Topology: embedded.ReplicaSet, Users: []embedded.User{{Name: "u", Password: "s3cret-pw"}}})
			var mode any = "alwaysOn"
			if last := len(r.data) - 1; r.data[last].Key == "times" {
				mode, r.data = bson.D{r.data[last]}, r.data[:last]
			}
			arm(t, d.DirectURI(d.Primary()), "failCommand", mode, append(bson.D{{Key: "failCommands", Value: bson.A{"findAndModify"}}, {Key: "appName", Value: "utr lock"}}, r.data...))
			var told notes
			s, err := OpenCluster(within(t), ClusterOptions{URI: d.URI(), Lock: &LockOptions{}, Note: told.add})
			if err == nil {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if (err != nil) != (r.err != "") || err != nil && !strings.Contains(err.Error(), r.err) {
				t.Errorf("it says %v, want %q", err, r.err)
			}
			if note := strings.ReplaceAll(r.note, "HOSTS", strings.Join(d.Hosts(), ",")); !strings.Contains(told.String(), note) {
				t.Errorf("people are told %q, want %q", told.String(), note)
			}
			if h := lockOf(t, d.URI()); h != nil {
				t.Errorf("a lock is left: %+v", h)
			}
			if strings.Contains(fmt.Sprint(err, told.String()), "s3cret") {
				t.Errorf("the password is out: %v %s", err, told.String())
			}
		})
	}
}

// A run that is interrupted while it takes the lock takes back what may have
// been written.
func TestLockInterrupted(t *testing.T) {
	s := &scripted{taking: context.Canceled}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := acquire(ctx, s, []string{"h:1"}, LockOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	if !s.removed {
		t.Error("what may have been written is left")
	}
}
