package deployment

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// embeddedAs gives options for a topology, a version, access control ("auth"), and a required API version ("api").
func embeddedAs(words string) (o embedded.Options) {
	for _, word := range strings.Fields(words) {
		switch topology, known := map[string]embedded.Topology{
			"replicaset": embedded.ReplicaSet, "sharded": embedded.Sharded, "load-balanced": embedded.LoadBalanced}[word]; {
		case known:
			o.Topology = topology
		case word == "noscripting":
			o.NoScripting = true
		case word == "auth":
			o.Users = []embedded.User{{Name: "u", Password: testkit.Secret}}
		case word == "api":
			o.Version, o.Parameters = "8.0", bson.D{{Key: "requireApiVersion", Value: true}}
		case word != "single" && word != "srv":
			o.Version = word
		}
	}
	return o
}

// scene is a tale of somebody else's deployment, on which servers, runs and tests do what they should not. HOST0 is
// its first host in texts.
type scene struct {
	*tale
	d    *embedded.Deployment
	o    ClusterOptions
	mine *lock.Lock
	held time.Time // until when, at first
	run  string    // that has it
	lost chan error
}

func newScene(t testing.TB, words string) *scene {
	s := &scene{tale: newTale(t), d: serve(t, embeddedAs(words)), lost: make(chan error, 10)}
	s.o = ClusterOptions{URI: s.d.URI(), SingleURI: s.d.SingleURI(), Lock: &lock.Options{}, Note: s.heard.add}
	if strings.Contains(words, "api") {
		s.o.ServerAPI = "1"
	}
	dir := t.TempDir()
	var err error
	s.o.Ledger, err = ledger.Open(dir)
	testkit.Check(t, err)
	s.verbs = map[string]func(string){
		// What servers and tests do.
		"arm":      s.arm,
		"shut":     s.shut,
		"kill":     func(host string) { testkit.Check(t, s.d.Kill(s.host(host))) },
		"election": func(string) { testkit.Check(t, s.d.StepDown()) },
		"command": func(about string) { // a database, and what the primary is to do
			database, text, _ := strings.Cut(about, " ")
			runOn(t, parsed(t, s.d.DirectURI(s.d.Primary())), database, document[bson.D](t, text))
		},
		// What runs do.
		"uri": func(uri string) { s.o.URI = uri },
		"within": func(text string) {
			limit, err := time.ParseDuration(text)
			testkit.Check(t, err)
			s.o.URI = s.named(s.o.URI).with("serverSelectionTimeoutMS", strconv.FormatInt(limit.Milliseconds(), 10)).String()
		},
		"lockless": func(string) { s.o.Lock = nil },
		"open": func(string) {
			var err error
			s.Source, err = OpenCluster(testkit.Context(t), s.o)
			testkit.Check(t, err)
			t.Cleanup(func() { testkit.Check(t, s.Source.Close()) })
		},
		"reject":  func(text string) { _, err := OpenCluster(testkit.Context(t), s.o); testkit.Fails(t, err, text) },
		"refused": func(run string) { _, err := OpenCluster(testkit.Context(t), s.o); s.is(run, isHeld(t, err)) },
		"lock": func(string) {
			var err error
			s.mine, err = acquired(t, s.d.URI(), lock.Options{Note: s.heard.add, Lost: func(err error) { s.lost <- err }})
			testkit.Check(t, err)
			t.Cleanup(func() { testkit.Check(t, s.mine.Release()) })
			h := s.holder()
			s.held, s.run = h.Expires, h.Run
		},
		"renew":   func(string) { s.mine.Renew(testkit.Context(t), 0) },
		"release": func(string) { testkit.Check(t, s.mine.Release()) },
		"remove":  func(string) { testkit.Check(t, storeOf(t, s.d.URI()).Remove(testkit.Context(t), s.holder().Run)) },
		"leave":   s.leave,
		"clean": func(want string) {
			h, removed, err := s.named(s.d.URI()).clearLock(testkit.Context(t))
			testkit.Check(t, err)
			testkit.Equal(t, "there was a lock, and it is removed", []bool{h != nil, removed}, "["+want+"]")
		},
		"unblock": func(run string) {
			off, err := s.named(s.o.URI).unblock(testkit.Context(t))
			if tell(s.heard.add, leftOver, off); run != "" {
				s.is(run, isHeld(t, err))
			} else {
				testkit.Check(t, err)
			}
		},
		"sweep": func(want string) {
			u, d := s.named(s.o.URI), Description{}
			testkit.Check(t, u.look(testkit.Context(t), lookTimeout, func(ctx context.Context, run runs) (err error) { d, err = greet(ctx, run, u); return }))
			off, unasked := clearFailPoints(testkit.Context(t), u, d, []string{"someOther"})
			testkit.Equal(t, "fail points, and members that were not asked", []int{len(off), len(unasked)}, "["+want+"]")
			for _, err := range unasked {
				s.heard.add(err.Error())
			}
			tell(s.heard.add, leftOver, off)
		},
		// What became of it.
		"holder": func(run string) { s.is(run, s.holder()) },
		"kept": func(string) {
			s.is("mine", s.holder())
			testkit.Equal(t, "lost, or shorter", []bool{len(s.lost) > 0, s.holder().Expires.Before(s.held)}, []bool{false, false})
		},
		"lost": func(text string) { testkit.Fails(t, testkit.Receive(t, "the loss", s.lost), text) },
		"calm": func(want string) {
			testkit.Equal(t, "a quiet moment", storeOf(t, s.d.URI()).Quiet(testkit.Context(t)), want)
		},
		"remembers": func(entries string) { testkit.Equal(t, "entries", len(files(t, dir, "ledger/*")), entries) },
		"on": func(about string) { // the host, and how many fail points
			host, want, _ := strings.Cut(about, " ")
			testkit.Equal(t, "fail points", left(t, s.d.DirectURI(s.host(host))), want)
		},
		"shuts": func(string) { // no client gets in to ask
			on, err := failPointsOn(testkit.Context(t), parsed(t, s.d.URI()).bare(s.host("0")), "", suiteFailPoints)
			testkit.Equal(t, "fail points", []any{len(on), err}, []any{1, nil})
		},
	}
	return s
}

func (s *scene) tell(steps string) {
	s.Helper()
	steps = strings.ReplaceAll(steps, "HOSTS", strings.Join(s.d.Hosts(), ","))
	for i, host := range s.d.Hosts() {
		steps = strings.ReplaceAll(steps, "HOST"+strconv.Itoa(i), host)
	}
	s.tale.tell(steps)
}

func (s *scene) host(number string) string {
	n, err := strconv.Atoi(number)
	testkit.Check(s, err)
	return s.d.Hosts()[n]
}

// failCommand gives the command for a fail point, as a run that was killed leaves it.
func failCommand(t testing.TB, mode, commands, more string) bson.D {
	if !strings.HasPrefix(mode, "{") {
		mode = strconv.Quote(mode)
	}
	return document[bson.D](t, `{"configureFailPoint": "failCommand", "mode": `+mode+`, "data": {"failCommands": ["`+commands+`"]`+more+`}}`)
}

// left counts the fail points that are on at the member of a connection string.
func left(t testing.TB, uri string) int {
	on, err := failPointsOn(t.Context(), func(_ context.Context, database string, command bson.D) (bson.Raw, error) {
		return runOn(t, parsed(t, uri), database, command), nil
	}, "", suiteFailPoints)
	testkit.Check(t, err)
	return len(on)
}

// arm is about a host, a mode, a command, and what else failCommand has.
func (s *scene) arm(about string) {
	words := append(strings.SplitN(about, " ", 4), "")
	for i, host := range s.d.Hosts() {
		if words[0] == "all" || words[0] == strconv.Itoa(i) {
			runOn(s, parsed(s, s.d.DirectURI(host)), "admin", failCommand(s, words[1], words[2], words[3]))
		}
	}
}

// shut makes a fail point that lets no client in, on every server, or ends it; it is about the mode, and what else
// failCommand has.
func (s *scene) shut(about string) {
	mode, more, _ := strings.Cut(about, " ")
	command := failCommand(s, mode, `hello", "isMaster`, `, "closeConnection": true`+more)
	u := s.named(s.d.URI())
	for _, host := range s.d.Hosts() {
		_, err := u.bare(host)(testkit.Context(s), "admin", command)
		testkit.Check(s, err)
	}
}

// named gives a connection string as our clients use it.
func (s *scene) named(text string) uri {
	u, err := parsed(s, text).resolved(testkit.Context(s))
	testkit.Check(s, err)
	u.api = s.o.ServerAPI
	return u
}

// leave leaves the lock of another run for a time, which may be over, and says what becomes of that run.
func (s *scene) leave(about string) {
	lease, fate, _ := strings.Cut(about, " ")
	limit, err := time.ParseDuration(lease)
	testkit.Check(s, err)
	run := ledger.Run{}
	if fate != "" {
		run, err = ledger.Self()
		testkit.Check(s, err)
		run.Started = "long ago"
	}
	if fate == "elsewhere" {
		run.Place += "0" // a container with the same name
	}
	ok, err := storeOf(s, s.d.URI()).Take(testkit.Context(s),
		lock.Holder{Run: "other", Host: "far", PID: 7, Place: run.Place, Began: run.Started, Name: "of last night"}, limit)
	if !ok || err != nil {
		s.Fatal(ok, err)
	}
}

func (s *scene) holder() *lock.Holder {
	h, err := storeOf(s, s.d.URI()).Read(testkit.Context(s))
	testkit.Check(s, err)
	return h
}

// is expects a run to be mine, other, or nobody.
func (s *scene) is(run string, h *lock.Holder) {
	s.Helper()
	got := "nobody"
	if h != nil {
		got = h.Run
	}
	if s.mine != nil && got == s.run {
		got = "mine"
	}
	if got != run {
		s.Fatalf("the holder is %s, want %s", got, run)
	}
}

// isHeld gives the run that an error names.
func isHeld(t testing.TB, err error) *lock.Holder {
	t.Helper()
	held := new(lock.HeldError)
	if !errors.As(err, &held) {
		t.Errorf("it says: %v", err)
	}
	return &held.Holder
}

// storeOf is the lock of a deployment for somebody who looks.
func storeOf(t testing.TB, text string) lock.Store {
	t.Helper()
	store, err := lock.Open(parsed(t, text).client("utr lock"))
	testkit.Check(t, err)
	t.Cleanup(store.Close)
	return store
}

// acquired takes the lock of a deployment.
func acquired(t testing.TB, text string, o lock.Options) (*lock.Lock, error) {
	store, err := lock.Open(parsed(t, text).client("utr lock"))
	testkit.Check(t, err)
	return lock.Acquire(testkit.Context(t), store, parsed(t, text).hosts, o)
}

// Fail points that an earlier run left on are noticed on each member, whatever they break, and are off afterwards.
// One that keeps every client out is turned off without a client.
func TestLeftFailPoints(t *testing.T) {
	stories(t, "fail-points", func(t *testing.T, words, steps string) {
		t.Parallel()
		newScene(t, words).tell(steps)
	})
}

// What another run has taken in the middle of a run is lost; what a test has dropped, and what an election has
// interrupted, is put back. The lock of a run that is known to be gone is taken, or removed, at once; no other is
// before it is stale. What the server refuses, or does not make safe, is not a lock: a user without the right runs
// without one and hears so, everything else is an error that leaves nothing behind.
func TestLocks(t *testing.T) {
	stories(t, "locks", func(t *testing.T, words, steps string) {
		t.Parallel()
		newScene(t, words).tell(steps)
	})
	uri := "mongodb://u:" + testkit.Secret + "@127.0.0.1:1/?serverSelectionTimeoutMS=50"
	testkit.Fails(t, Clean(testkit.Context(t), uri, "", nil), "nothing listens there")
}
