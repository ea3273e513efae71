package deployment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// embeddedAs parses a topology, a version, access control ("auth"), a required API version ("api"), and "noscripting".
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

// scene is a script for an existing deployment with faults. HOST0 stands for its first host.
type scene struct {
	*script
	d    *embedded.Deployment
	o    ClusterOptions
	mine *lock.Lock
	held time.Time // the first expiry of the lock
	run  string    // the run of that lock
	lost chan error
}

func newScene(t testing.TB, words string) *scene {
	s := &scene{script: newScript(t), d: serve(t, embeddedAs(words)), lost: make(chan error, 10)}
	s.o = ClusterOptions{URI: s.d.URI(), SingleURI: s.d.SingleURI(), Lock: &lock.Options{}, Note: s.notes.add}
	if strings.Contains(words, "api") {
		s.o.ServerAPI = "1"
	}
	dir := t.TempDir()
	var err error
	s.o.Ledger, err = ledger.Open(dir)
	testkit.Check(t, err)
	s.verbs = map[string]func(string){
		// Servers and tests.
		"arm":      s.arm,
		"shut":     s.shut,
		"kill":     func(host string) { testkit.Check(t, s.d.Kill(s.host(host))) },
		"election": func(string) { testkit.Check(t, s.d.StepDown()) },
		"command": func(about string) { // a database, and a command for the primary
			database, text, _ := strings.Cut(about, " ")
			runOn(t, parsed(t, s.d.DirectURI(s.d.Primary())), database, document[bson.D](t, text))
		},
		// Runs.
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
		"reject":  func(text string) { _, err := OpenCluster(testkit.Context(t), s.o); testkit.ErrorContains(t, err, text) },
		"refused": func(run string) { _, err := OpenCluster(testkit.Context(t), s.o); s.is(run, heldBy(t, err)) },
		"lock": func(string) {
			var err error
			s.mine, err = acquired(t, s.d.URI(), lock.Options{Note: s.notes.add, Lost: func(err error) { s.lost <- err }})
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
			testkit.Equal(t, "there was a lock, and it was removed", fmt.Sprint(h != nil, removed), want)
		},
		"unblock": func(run string) {
			off, err := s.named(s.o.URI).unblock(testkit.Context(t))
			if report(s.notes.add, leftOver, off); run != "" {
				s.is(run, heldBy(t, err))
			} else {
				testkit.Check(t, err)
			}
		},
		"sweep": func(want string) {
			u := s.named(s.o.URI)
			d, err := u.discover(testkit.Context(t), lookTimeout)
			testkit.Check(t, err)
			off, failed := clearFailPoints(testkit.Context(t), u, d, []string{"someOther"})
			testkit.Equal(t, "fail points, and members that could not be checked", fmt.Sprint(len(off), len(failed)), want)
			for _, err := range failed {
				s.notes.add(err.Error())
			}
			report(s.notes.add, leftOver, off)
		},
		// Results.
		"holder": func(run string) { s.is(run, s.holder()) },
		"kept": func(string) {
			s.is("mine", s.holder())
			testkit.Equal(t, "the lock is lost, or expires earlier", []bool{len(s.lost) > 0, s.holder().Expires.Before(s.held)},
				[]bool{false, false})
		},
		"lost": func(text string) { testkit.ErrorContains(t, testkit.Receive(t, "Lost is called", s.lost), text) },
		"calm": func(want string) {
			store := storeOf(t, s.d.URI()) // a new client may need more time than Quiet has
			testkit.Until(t, "Quiet is "+want, func() bool { return fmt.Sprint(store.Quiet(testkit.Context(t))) == want })
		},
		// an ended run has left an entry for a connection string
		"abandoned": func(uri string) {
			_, err := s.o.Ledger.Add(ledger.Entry{Kind: ledger.Lock, URI: uri, Name: "utr.lock"})
			testkit.Check(t, err)
			started := regexp.MustCompile(`"started": "[^"]*"`)
			for _, name := range files(t, dir, "ledger/*") {
				testkit.Check(t, os.WriteFile(name,
					started.ReplaceAll([]byte(testkit.Read(t, name)), []byte(`"started": "long ago"`)), 0o600))
			}
		},
		"remembers": func(entries string) {
			testkit.Equal(t, "entries", strconv.Itoa(len(files(t, dir, "ledger/*"))), entries)
		},
		"on": func(about string) { // a host, and the number of its fail points
			host, want, _ := strings.Cut(about, " ")
			testkit.Equal(t, "fail points", strconv.Itoa(left(t, s.d.DirectURI(s.host(host)))), want)
		},
		"shuts": func(string) { // no client can connect to check
			on, err := failPointsOn(testkit.Context(t), parsed(t, s.d.URI()).bare(s.host("0")), "", suiteFailPoints)
			testkit.Equal(t, "fail points", []any{len(on), err}, []any{1, nil})
		},
	}
	return s
}

func (s *scene) play(steps string) {
	s.Helper()
	steps = strings.ReplaceAll(steps, "HOSTS", strings.Join(s.d.Hosts(), ","))
	for i, host := range s.d.Hosts() {
		steps = strings.ReplaceAll(steps, "HOST"+strconv.Itoa(i), host)
	}
	s.script.play(steps)
}

func (s *scene) host(number string) string {
	n, err := strconv.Atoi(number)
	testkit.Check(s, err)
	return s.d.Hosts()[n]
}

// failCommand returns the command for a fail point.
func failCommand(t testing.TB, mode, commands, more string) bson.D {
	if !strings.HasPrefix(mode, "{") {
		mode = strconv.Quote(mode)
	}
	return document[bson.D](t, `{"configureFailPoint": "failCommand", "mode": `+mode+`, "data": {"failCommands": ["`+
		commands+`"]`+more+`}}`)
}

// left counts the fail points that are on at the member of a connection string.
func left(t testing.TB, uri string) int {
	on, err := failPointsOn(t.Context(), func(_ context.Context, database string, command bson.D) (bson.Raw, error) {
		return runOn(t, parsed(t, uri), database, command), nil
	}, "", suiteFailPoints)
	testkit.Check(t, err)
	return len(on)
}

// arm turns a fail point on: on a host or all, with a mode, a command, and more data.
func (s *scene) arm(about string) {
	words := append(strings.SplitN(about, " ", 4), "")
	for i, host := range s.d.Hosts() {
		if words[0] == "all" || words[0] == strconv.Itoa(i) {
			runOn(s, parsed(s, s.d.DirectURI(host)), "admin", failCommand(s, words[1], words[2], words[3]))
		}
	}
}

// shut sets a fail point that fails the handshake of every client on every server, with a mode and more data.
func (s *scene) shut(about string) {
	mode, more, _ := strings.Cut(about, " ")
	command := failCommand(s, mode, `hello", "isMaster`, `, "closeConnection": true`+more)
	u := s.named(s.d.URI())
	for _, host := range s.d.Hosts() {
		_, err := u.bare(host)(testkit.Context(s), "admin", command)
		testkit.Check(s, err)
	}
}

// named parses a connection string for our own clients.
func (s *scene) named(text string) uri {
	u, err := parsed(s, text).resolved(testkit.Context(s))
	testkit.Check(s, err)
	u.api = s.o.ServerAPI
	return u
}

// leave leaves the lock of another run with a lease and a fate of that run. The lease may have expired.
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
		run.Place += "0" // another container with the same host name
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

// is checks that a run is mine, other, or nobody.
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

// heldBy returns the holder in an error.
func heldBy(t testing.TB, err error) *lock.Holder {
	t.Helper()
	held := new(lock.HeldError)
	if !errors.As(err, &held) {
		t.Errorf("the error is %v", err)
	}
	return &held.Holder
}

// storeOf opens the lock document of a deployment.
func storeOf(t testing.TB, text string) lock.Store {
	t.Helper()
	store, err := lock.Open(parsed(t, text).client("utr lock"))
	testkit.Check(t, err)
	t.Cleanup(store.Close)
	return store
}

// acquired acquires the lock of a deployment.
func acquired(t testing.TB, text string, o lock.Options) (*lock.Lock, error) {
	store, err := lock.Open(parsed(t, text).client("utr lock"))
	testkit.Check(t, err)
	return lock.Acquire(testkit.Context(t), store, parsed(t, text).hosts, o)
}

// Fail points that an earlier run left on are turned off on each member and reported, even if no client can connect.
func TestLeftFailPoints(t *testing.T) {
	stories(t, "fail-points", func(t *testing.T, words, steps string) {
		t.Parallel()
		newScene(t, words).play(steps)
	})
}

// A lock that another run has taken is lost. If a test has dropped the document, or an election has interrupted the
// renewal, the lock is written again. The lock of a run that has certainly ended is taken over or removed immediately,
// any other only when it is stale. A write that fails or is not acknowledged by a majority is not a lock. If the user
// lacks the privilege, the run continues without a lock and reports that. Every other failure is an error and leaves
// nothing behind.
func TestLocks(t *testing.T) {
	stories(t, "locks", func(t *testing.T, words, steps string) {
		t.Parallel()
		newScene(t, words).play(steps)
	})
	uri := "mongodb://u:" + testkit.Secret + "@127.0.0.1:1/?serverSelectionTimeoutMS=50"
	testkit.ErrorContains(t, Clean(testkit.Context(t), uri, "", nil), "nothing listens there")
}
