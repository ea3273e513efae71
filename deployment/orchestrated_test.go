package deployment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/ledger"
)

// service is a twin of mongo-orchestration, with a ledger and a record of what
// people are told.
type service struct {
	*twin.Service
	book *ledger.Ledger
	dir  string

	mu      sync.Mutex
	notes   []string
	secrets []string
}

func orchestrate(t *testing.T) *service {
	t.Helper()
	s := &service{Service: twin.Start(t), dir: t.TempDir()}
	var err error
	if s.book, err = ledger.Open(s.dir); err != nil {
		t.Fatal(err)
	}
	return s
}

// openClusters opens a source, which is closed by the end of the test.
func openClusters(t *testing.T, o OrchestrationOptions) Source {
	t.Helper()
	source, err := OpenOrchestration(soon(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source
}

// firstOf gives a cluster of the first offer.
func firstOf(t *testing.T, source Source) Deployment {
	t.Helper()
	d, err := source.Acquire(soon(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *service) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, line)
}

func (s *service) noted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.notes, "\n")
}

// entries is how many things the ledger has.
func (s *service) entries(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir(s.dir + "/ledger")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// options for clusters named as on the command line.
func (s *service) options(t *testing.T, names ...string) OrchestrationOptions {
	t.Helper()
	o := OrchestrationOptions{URL: s.URL, Ledger: s.book, Note: s.note, Serve: time.Minute, Secret: func(secret string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.secrets = append(s.secrets, secret)
	}}
	for _, name := range names {
		if id, found := strings.CutPrefix(name, "id:"); found {
			o.Clusters = append(o.Clusters, OrchestratedCluster{ID: id})
			continue
		}
		c, err := orchestration.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		o.Clusters = append(o.Clusters, OrchestratedCluster{Configuration: c.With(orchestration.Settings{})})
	}
	return o
}

func offerNames(s Source) string {
	var names []string
	for _, o := range s.Offers() {
		names = append(names, o.Name)
	}
	return strings.Join(names, ", ")
}

// All kinds come up, are reached by all their connection strings, and are gone
// afterwards, from the service and from the ledger.
func TestOrchestratedClusters(t *testing.T) {
	s := orchestrate(t)
	o := s.options(t, "replicaset", "sharded-auth", "single-auth")
	source := openClusters(t, o)
	if got := offerNames(source); got != "replicaset 8.0, sharded 8.0 auth, single 8.0 auth" {
		t.Errorf("offers are %s", got)
	}
	if n := s.entries(t); n != 3 || len(s.Clusters()) != 3 {
		t.Errorf("%d entries for %v", n, s.Clusters())
	}
	for i, about := range source.Offers() {
		d, err := source.Acquire(soon(t), i)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Owned() {
			t.Errorf("%s was made by us", about.Name)
		}
		uris := []string{d.URI(), d.SingleURI()}
		for _, h := range d.Description().Hosts {
			uris = append(uris, d.DirectURI(h))
		}
		for _, uri := range uris {
			if err := ping(t, uri); err != nil {
				t.Errorf("%s: %v", about.Name, err)
			}
		}
		source.Release(d, false)
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
	if n := s.entries(t); n != 0 || len(s.Clusters()) != 0 {
		t.Errorf("%d entries and %v are left", n, s.Clusters())
	}
	if s.noted() != "" {
		t.Errorf("people are told: %s", s.noted())
	}
	// Each password was told before it could be printed.
	for _, body := range s.Bodies() {
		for _, key := range []string{"password", "auth_key"} {
			if secret, _ := body[key].(string); secret != "" && !slices.Contains(s.secrets, secret) {
				t.Errorf("%s was not told", key)
			}
		}
	}
}

// A cluster that is there already is used, and stays: not even its lock does.
func TestOrchestratedClusterThatIsThere(t *testing.T) {
	const user, password = "ann@home", `p@ss:w/o?r%d& +é`
	for kind, o := range map[string]embedded.Options{
		"servers":          {},
		"replica_sets":     {Topology: embedded.ReplicaSet, Users: []embedded.User{{Name: user, Password: password}}},
		"sharded_clusters": {Topology: embedded.Sharded, Users: []embedded.User{{Name: user, Password: password}}},
	} {
		t.Run(kind, func(t *testing.T) {
			s := orchestrate(t)
			s.Add(t, kind, "mine", o)
			options := s.options(t, "id:mine")
			options.Lock = &LockOptions{}
			source := openClusters(t, options)
			d := firstOf(t, source)
			if d.Owned() {
				t.Error("it is taken for our own")
			}
			if err := ping(t, d.URI()); err != nil {
				t.Error(err)
			}
			if len(o.Users) > 0 && !slices.Contains(s.secrets, password) {
				t.Errorf("the password is not told: %q", s.secrets)
			}
			var held *HeldError
			if _, err := OpenOrchestration(soon(t), options); !errors.As(err, &held) {
				t.Errorf("a second run uses it: %v", err)
			}
			source.Release(d, false)
			if err := source.Close(); err != nil {
				t.Error(err)
			}
			again, err := OpenOrchestration(soon(t), options)
			if err != nil {
				t.Fatalf("it was not given back: %v", err)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
			if got := strings.Join(s.Clusters(), " "); got != kind+"/mine" || s.entries(t) != 0 {
				t.Errorf("there are %s, and %d entries", got, s.entries(t))
			}
		})
	}
}

// Several equal clusters share the work; unequal ones do not.
func TestOrchestratedPool(t *testing.T) {
	s := orchestrate(t)
	s.Add(t, "replica_sets", "mine", embedded.Options{Topology: embedded.ReplicaSet})
	o := s.options(t, "replicaset", "single", "id:mine", "replicaset-one")
	o.Each = 2
	source := openClusters(t, o)
	if got := offerNames(source); got != "replicaset 8.0, single 8.0" {
		t.Errorf("offers are %s", got)
	}
	if s.Made() != 3 {
		t.Errorf("%d clusters were made before anything ran, want the first of each", s.Made())
	}
	lent := make(map[string]bool)
	for range 5 {
		d := firstOf(t, source)
		lent[d.URI()] = true
	}
	if len(lent) != 5 {
		t.Errorf("%d different clusters, want 2 + 2 + 1", len(lent))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := source.Acquire(ctx, 0); err == nil {
		t.Error("there is a sixth")
	}
	ids := make(map[string]bool)
	for _, body := range s.Bodies() {
		ids[body["id"].(string)] = true
		if text := fmt.Sprint(body); strings.Contains(text, "port:") {
			t.Errorf("a port that two clusters would have: %s", text)
		}
	}
	if len(ids) != 5 {
		t.Errorf("%d ids of 5 clusters that were made", len(ids))
	}
}

// --topology chooses among the clusters.
func TestOrchestratedTopology(t *testing.T) {
	s := orchestrate(t)
	s.Add(t, "replica_sets", "mine", embedded.Options{Topology: embedded.ReplicaSet})
	s.Add(t, "servers", "other", embedded.Options{})
	o := s.options(t, "replicaset", "single", "id:mine", "id:other")
	o.Topology = Single
	source := openClusters(t, o)
	if got := offerNames(source); got != "single 8.0" || s.Made() != 1 {
		t.Errorf("offers are %s, %d were made", got, s.Made())
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
	o.Topology = Sharded
	if _, err := OpenOrchestration(soon(t), o); err == nil || !strings.Contains(err.Error(), "none of the clusters is of topology sharded") {
		t.Error(err)
	}
}

// A cluster that a test broke is put right, or made anew.
func TestOrchestratedClusterThatBreaks(t *testing.T) {
	s := orchestrate(t)
	o := s.options(t, "single")
	o.Serve = 2 * time.Second
	source := openClusters(t, o)
	d := firstOf(t, source)
	source.Release(d, true)
	again, err := source.Acquire(soon(t), 0)
	if err != nil || again != d {
		t.Fatalf("it serves, and is not lent again: %v", err)
	}
	if !slices.ContainsFunc(s.Requests(), func(r string) bool { return strings.HasPrefix(r, "POST /servers/") }) {
		t.Error("the service was not asked to start again what had stopped")
	}
	s.Kill()
	source.Release(again, true)
	anew, err := source.Acquire(soon(t), 0)
	if err != nil || anew == d {
		t.Fatalf("a dead cluster is lent again, %v", err)
	}
	if err := ping(t, anew.URI()); err != nil {
		t.Error(err)
	}
	if s.Made() != 2 || len(s.Clusters()) != 1 || s.entries(t) != 1 {
		t.Errorf("%d made, %v are there, %d entries", s.Made(), s.Clusters(), s.entries(t))
	}
	if !strings.Contains(s.noted(), "cluster single number 1 is made anew: it does not serve after 2s: ") {
		t.Errorf("people are told %q", s.noted())
	}
}

// The service is gone in the middle: the cluster that it made serves on; one
// that breaks is out, and every test says why, at once.
func TestOrchestrationGone(t *testing.T) {
	s := orchestrate(t)
	source := openClusters(t, s.options(t, "single"))
	d := firstOf(t, source)
	s.Vanish()
	if err := ping(t, d.URI()); err != nil {
		t.Error(err)
	}
	source.Release(d, true)
	for range 3 {
		if _, err := source.Acquire(soon(t), 0); err == nil || !strings.HasPrefix(err.Error(), "no cluster is left: orchestration: POST "+s.URL) ||
			!strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%v", err)
		}
	}
	if err := source.Close(); err == nil || !strings.Contains(err.Error(), "could not be taken down, utr clean tries again: orchestration: DELETE "+s.URL) {
		t.Errorf("%v", err)
	}
	if n := s.entries(t); n != 1 {
		t.Errorf("%d entries for utr clean", n)
	}
}

// What does not come up leaves nothing, and says why, without its password.
func TestOrchestrationFails(t *testing.T) {
	for _, r := range []struct {
		reason string
		fault  func(s *service) twin.Fault
		wants  []string
	}{
		{"the service refuses", func(*service) twin.Fault {
			return func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
				if method == http.MethodPut {
					twin.Raise(w, "mongo_orchestration.errors.TimeoutError: Could not start Server with password hunter22.")
				}
				return method == http.MethodPut
			}
		}, []string{"cluster mine: orchestration: PUT http://", ": 500: mongo_orchestration.errors.TimeoutError: Could not start Server with password ***."}},
		{"its making leaves parts", func(s *service) twin.Fault {
			return func(method, path string, w http.ResponseWriter, _ *http.Request) bool {
				if method == http.MethodPut {
					_, id, _ := strings.Cut(strings.Trim(path, "/"), "/")
					s.AddPart("servers", id+"-part-member1")
					twin.Raise(w, "ReplicaSetError: no primary was ever elected")
				}
				return method == http.MethodPut
			}
		}, []string{"500: ReplicaSetError: no primary was ever elected"}},
		{"it answers nonsense", func(*service) twin.Fault {
			return func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
				if method == http.MethodPut {
					_, _ = w.Write([]byte(`{"id": 7}`))
				}
				return method == http.MethodPut
			}
		}, []string{"not the JSON of mongo-orchestration"}},
		{"its cluster does not serve", func(*service) twin.Fault {
			return func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
				if method == http.MethodPut {
					_, _ = w.Write([]byte(`{"id": "x", "mongodb_uri": "mongodb://127.0.0.1:1", "mongodb_auth_uri": "mongodb://ann:hunter22@127.0.0.1:1/?authSource=admin"}`))
				}
				return method == http.MethodPut
			}
		}, []string{"cluster mine: it does not serve after 500ms: 127.0.0.1:1: "}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			s := orchestrate(t)
			s.Misbehave(r.fault(s))
			mine, err := orchestration.Parse("mine", []byte(`{"members": [{}, {}], "login": "ann", "password": "hunter22", "auth_key": "ke"}`))
			if err != nil {
				t.Fatal(err)
			}
			o := s.options(t)
			o.Serve = 500 * time.Millisecond
			o.Clusters = []OrchestratedCluster{{Configuration: mine}}
			_, err = OpenOrchestration(soon(t), o)
			for _, want := range r.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error()+s.noted(), "hunter22") {
				t.Errorf("the password is out: %v\n%s", err, s.noted())
			}
			if left := s.Clusters(); len(left) != 0 || s.entries(t) != 0 {
				t.Errorf("%v and %d entries are left: %s", left, s.entries(t), s.noted())
			}
		})
	}
}

// Without an answer nobody knows what will come of a making: it stays in the
// ledger, and says so.
func TestOrchestrationHangs(t *testing.T) {
	s := orchestrate(t)
	s.Misbehave(func(method, _ string, _ http.ResponseWriter, r *http.Request) bool {
		if method != http.MethodPut {
			return false
		}
		buf := make([]byte, 1<<16)
		for {
			if _, err := r.Body.Read(buf); err != nil {
				break
			}
		}
		<-r.Context().Done()
		return true
	})
	o := s.options(t, "single")
	o.Limits = orchestration.Limits{Create: 100 * time.Millisecond}
	_, err := OpenOrchestration(soon(t), o)
	if err == nil || !strings.Contains(err.Error(), "no answer within 100ms") || !strings.Contains(err.Error(), "the service was still making cluster ") {
		t.Error(err)
	}
	if n := s.entries(t); n != 1 {
		t.Errorf("%d entries for utr clean", n)
	}
}

// An interruption while clusters are made waits for them, and takes them down.
func TestOrchestrationInterrupted(t *testing.T) {
	s := orchestrate(t)
	ctx, cancel := context.WithCancelCause(soon(t))
	s.Misbehave(func(method, _ string, _ http.ResponseWriter, _ *http.Request) bool {
		if method == http.MethodPut {
			cancel(errors.New("interrupted"))
		}
		return false
	})
	if _, err := OpenOrchestration(ctx, s.options(t, "single", "replicaset")); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
	if s.Made() != 2 || len(s.Clusters()) != 0 || s.entries(t) != 0 {
		t.Errorf("%d were made, %v and %d entries are left", s.Made(), s.Clusters(), s.entries(t))
	}
}

// What the servers logged meanwhile can be had, where the service is on this
// machine.
func TestOrchestratedLog(t *testing.T) {
	s := orchestrate(t)
	path := s.dir + "/mongod.log"
	text := `{"t":{"$date":"2026-01-01T00:00:01.000+00:00"},"msg":"before"}
{"t":{"$date":"2026-01-01T00:00:02.000+00:00"},"msg":"meanwhile"}
{"t":{"$date":"2026-01-01T00:00:04.000+00:00"},"msg":"after"}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Service.Logs(path)
	source := openClusters(t, s.options(t, "single"))
	d := firstOf(t, source)
	at := time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC)
	lines := d.(Logger).Log(at, at.Add(time.Second))
	if len(lines) != 1 || !strings.Contains(lines[0].Text, "meanwhile") || lines[0].Server != d.Description().Hosts[0] || !lines[0].Time.Equal(at) {
		t.Errorf("%v", lines)
	}
	s.Vanish()
	if again := d.(Logger).Log(at, at); len(again) != 1 {
		t.Errorf("it asks again, and gets %v", again)
	}
}

func TestOrchestrationThatIsNone(t *testing.T) {
	s := orchestrate(t)
	for _, r := range []struct{ reason, url, cluster, want string }{
		{"no URL", "x", "single", "the URL of the orchestration service: "},
		{"nobody listens", "http://127.0.0.1:1", "single", "connection refused"},
		{"no such cluster", s.URL, "id:nowhere", `it has no cluster "nowhere"`},
	} {
		o := s.options(t, r.cluster)
		o.URL = r.url
		if _, err := OpenOrchestration(soon(t), o); err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v", r.reason, err)
		}
	}
}

func TestCredentials(t *testing.T) {
	for _, r := range []struct {
		reason, uri, hosts, user, password string
		found                              bool
	}{
		{"none", "", "h:1", "", "", false},
		{"plain", "mongodb://ann:pw@h:1/?authSource=admin", "h:1", "ann", "pw", true},
		{"all that hurts", "mongodb://a@b:p@ss:w/o?r%d&@h:1,h:2/?authSource=admin", "h:1,h:2", "a@b", "p@ss:w/o?r%d&", true},
		{"no password, as with X.509", "mongodb://CN=x@h:1/", "h:1", "CN=x", "", true},
		{"other hosts", "mongodb://ann:pw@h:2/", "h:1", "", "", false},
	} {
		user, password, found := credentials(r.uri, strings.Split(r.hosts, ","))
		if user != r.user || password != r.password || found != r.found {
			t.Errorf("%s: %q %q %t", r.reason, user, password, found)
		}
	}
}
