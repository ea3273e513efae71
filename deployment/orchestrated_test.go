package deployment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// service is a twin of mongo-orchestration, with a ledger and a record of what
// people hear.
type service struct {
	*twin.Service
	book           *ledger.Ledger
	dir            string
	heard, secrets notes
}

func orchestrate(t *testing.T) *service {
	t.Helper()
	s := &service{Service: twin.Start(t), dir: t.TempDir()}
	var err error
	s.book, err = ledger.Open(s.dir)
	testkit.Check(t, err)
	return s
}

// open opens a source, which the end of the test closes.
func (s *service) open(t *testing.T, o OrchestrationOptions) Source {
	t.Helper()
	source, err := OpenOrchestration(testkit.Context(t), o)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = source.Close() })
	return source
}

// has compares what the service has made, what it and the ledger have.
func (s *service) has(t *testing.T, made, clusters, entries int) {
	t.Helper()
	testkit.Equal(t, "made, there and in the ledger", []int{s.Made(), len(s.Clusters()), len(files(t, s.dir, "ledger/*"))}, []int{made, clusters, entries})
}

// options for clusters named as on the command line.
func (s *service) options(t *testing.T, names ...string) OrchestrationOptions {
	t.Helper()
	o := OrchestrationOptions{URL: s.URL, Ledger: s.book, Note: s.heard.add, Secret: s.secrets.add}
	for _, name := range names {
		if id, found := strings.CutPrefix(name, "id:"); found {
			o.Clusters = append(o.Clusters, OrchestratedCluster{ID: id})
			continue
		}
		c, err := orchestration.Preset(name)
		testkit.Check(t, err)
		o.Clusters = append(o.Clusters, OrchestratedCluster{Configuration: c.With(orchestration.Settings{})})
	}
	return o
}

// All kinds come up, are reached by all their connection strings, and are gone
// afterwards, from the service and from the ledger.
func TestOrchestratedClusters(t *testing.T) {
	s := orchestrate(t)
	source := s.open(t, s.options(t, "replicaset", "sharded-auth", "single-auth"))
	testkit.Equal(t, "offers", offerNames(source), "replicaset 8.0, sharded 8.0 auth, single 8.0 auth")
	s.has(t, 3, 3, 3)
	for i, about := range source.Offers() {
		d, err := source.Acquire(testkit.Context(t), i)
		testkit.Check(t, err)
		testkit.Equal(t, about.Name+" is ours", d.Owned(), true)
		usable(t, "", d)
		source.Release(d, false)
	}
	testkit.Check(t, source.Close())
	s.has(t, 3, 0, 0)
	testkit.Equal(t, "people hear", s.heard.String(), "")
	// Each password was passed on before it could be printed.
	for _, body := range s.Bodies() {
		for _, key := range []string{"password", "auth_key"} {
			if secret, _ := body[key].(string); secret != "" && !slices.Contains(s.secrets.lines, secret) {
				t.Errorf("%s was not passed on", key)
			}
		}
	}
}

// A cluster that is there already is used, and stays; its lock does not.
func TestOrchestratedClusterThatIsThere(t *testing.T) {
	const password = `p@ss:w/o?r%d& +é`
	ann := []embedded.User{{Name: "ann@home", Password: password}}
	for kind, o := range map[string]embedded.Options{
		"servers":          {},
		"replica_sets":     {Topology: embedded.ReplicaSet, Users: ann},
		"sharded_clusters": {Topology: embedded.Sharded, Users: ann},
	} {
		t.Run(kind, func(t *testing.T) {
			s := orchestrate(t)
			s.Add(t, kind, "mine", o)
			options := s.options(t, "id:mine")
			options.Lock = &LockOptions{}
			source := s.open(t, options)
			d := borrow(t, source)
			testkit.Equal(t, "it is ours", d.Owned(), false)
			reaches(t, "", d.URI())
			testkit.Equal(t, "the password is passed on", slices.Contains(s.secrets.lines, password), len(o.Users) > 0)
			_, err := OpenOrchestration(testkit.Context(t), options)
			isHeld(t, err)
			source.Release(d, true) // it is put right, too
			source.Release(borrow(t, source), false)
			testkit.Check(t, source.Close())
			testkit.Check(t, s.open(t, options).Close())
			s.has(t, 0, 1, 0)
		})
	}
}

// Several equal clusters share the work; unequal ones do not. --topology chooses
// among them.
func TestOrchestratedPool(t *testing.T) {
	s := orchestrate(t)
	s.Add(t, "replica_sets", "mine", embedded.Options{Topology: embedded.ReplicaSet})
	o := s.options(t, "replicaset", "single", "id:mine", "replicaset-one")
	o.Each = 2
	source := s.open(t, o)
	testkit.Equal(t, "offers", offerNames(source), "replicaset 8.0, single 8.0")
	s.has(t, 3, 4, 4) // the first of each, and the lock of the one that was there, before anything runs
	lent := make(map[string]bool)
	for range 5 {
		lent[borrow(t, source).URI()] = true
	}
	testkit.Equal(t, "different clusters", len(lent), 2+2+1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Acquire(ctx, 0); err == nil {
		t.Error("there is a sixth")
	}
	ids := make(map[any]bool)
	for _, body := range s.Bodies() {
		ids[body["id"]] = true
		if text := fmt.Sprint(body); strings.Contains(text, "port:") {
			t.Errorf("a port that two clusters would have: %s", text)
		}
	}
	testkit.Equal(t, "ids", len(ids), 5)
	testkit.Check(t, source.Close())

	o.Topology, o.Each = Single, 0
	source = s.open(t, o)
	testkit.Equal(t, "offers", offerNames(source), "single 8.0")
	s.has(t, 6, 2, 2)
	testkit.Check(t, source.Close())
	s.has(t, 6, 1, 0)
	o.Topology = Sharded
	_, err := OpenOrchestration(testkit.Context(t), o)
	testkit.Fails(t, err, "none of the clusters is of topology sharded")
}

// A cluster that a test broke is put right, or made anew.
func TestOrchestratedClusterThatBreaks(t *testing.T) {
	t.Parallel() // the dead one is waited for
	s := orchestrate(t)
	o := s.options(t, "single")
	o.Serve = 3 * time.Second
	source := s.open(t, o)
	d := borrow(t, source)
	arm(t, d.URI(), "alwaysOn", "find")
	source.Release(d, true)
	if borrow(t, source) != d || len(left(t, d.URI())) > 0 {
		t.Fatal("it serves, and is not lent again, or with its fail point")
	}
	if !slices.ContainsFunc(s.Requests(), func(r string) bool { return strings.HasPrefix(r, "POST /servers/") }) {
		t.Error("the service was not asked to start again what had stopped")
	}
	s.Kill()
	source.Release(d, true)
	anew := borrow(t, source)
	if anew == d {
		t.Fatal("a dead cluster is lent again")
	}
	reaches(t, "", anew.URI())
	s.has(t, 2, 1, 1)
	testkit.Says(t, s.heard.String(), "cluster single number 1 is made anew: it does not serve after 3s: ")
}

// The service is gone in the middle: the cluster that it made serves on; one
// that breaks is out, and every test says why, at once.
func TestOrchestrationGone(t *testing.T) {
	s := orchestrate(t)
	source := s.open(t, s.options(t, "single"))
	d := borrow(t, source)
	s.Vanish()
	reaches(t, "", d.URI())
	source.Release(d, true)
	for range 3 {
		_, err := source.Acquire(testkit.Context(t), 0)
		testkit.Fails(t, err, "no cluster is left: orchestration: POST "+s.URL, "connection refused")
	}
	testkit.Fails(t, source.Close(), "could not be taken down, utr clean tries again: orchestration: DELETE "+s.URL)
	s.has(t, 1, 1, 1)
}

// What does not come up leaves nothing, and says why, without its password; what is
// not answered may come up still, and stays in the ledger.
func TestOrchestrationFails(t *testing.T) {
	raise := func(what string) func(*service, string, http.ResponseWriter, *http.Request) {
		return func(_ *service, _ string, w http.ResponseWriter, _ *http.Request) { twin.Raise(w, what) }
	}
	write := func(what string) func(*service, string, http.ResponseWriter, *http.Request) {
		return func(_ *service, _ string, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, what) }
	}
	for _, r := range []struct {
		reason  string
		making  func(s *service, id string, w http.ResponseWriter, r *http.Request)
		entries int
		want    []string
	}{
		{"the service refuses", raise("TimeoutError: Could not start Server with password " + testkit.Secret + "."), 0,
			[]string{"cluster mine: orchestration: PUT http://", ": 500: TimeoutError: Could not start Server with password ***."}},
		{"its making leaves parts", func(s *service, id string, w http.ResponseWriter, _ *http.Request) {
			s.AddPart("servers", id+"-part-member1")
			twin.Raise(w, "ReplicaSetError: no primary was ever elected")
		}, 0, []string{"500: ReplicaSetError: no primary was ever elected"}},
		{"it answers nonsense", write(`{"id": 7}`), 0, []string{"not the JSON of mongo-orchestration"}},
		{"its cluster does not serve", write(`{"id": "x", "mongodb_uri": "mongodb://127.0.0.1:1",
			"mongodb_auth_uri": "mongodb://ann:` + testkit.Secret + `@127.0.0.1:1/?authSource=admin"}`), 0,
			[]string{"cluster mine: it does not serve after 500ms: 127.0.0.1:1: "}},
		{"it hangs", func(_ *service, _ string, _ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the end of a connection is noticed once the request is read
			<-r.Context().Done()
		}, 1, []string{"no answer within 100ms", "the service was still making cluster "}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel() // some are waited for
			s := orchestrate(t)
			s.Misbehave(func(method, path string, w http.ResponseWriter, req *http.Request) bool {
				if method == http.MethodPut {
					_, id, _ := strings.Cut(strings.Trim(path, "/"), "/")
					r.making(s, id, w, req)
				}
				return method == http.MethodPut
			})
			mine, err := orchestration.Parse("mine", []byte(`{"members": [{}, {}], "login": "ann", "password": "`+testkit.Secret+`", "auth_key": "ke"}`))
			testkit.Check(t, err)
			o := s.options(t)
			o.Serve = 500 * time.Millisecond
			if r.entries > 0 {
				o.Limits.Create = 100 * time.Millisecond
			}
			o.Clusters = []OrchestratedCluster{{Configuration: mine}}
			_, err = OpenOrchestration(testkit.Context(t), o)
			testkit.Fails(t, err, r.want...)
			testkit.Says(t, s.heard.String())
			s.has(t, 0, 0, r.entries)
		})
	}
}

// An interruption while clusters are made waits for them, and takes them down.
func TestOrchestrationInterrupted(t *testing.T) {
	s := orchestrate(t)
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	s.Misbehave(func(method, _ string, _ http.ResponseWriter, _ *http.Request) bool {
		if method == http.MethodPut {
			cancel(errors.New("interrupted"))
		}
		return false
	})
	_, err := OpenOrchestration(ctx, s.options(t, "single", "replicaset"))
	testkit.Fails(t, err, "interrupted")
	s.has(t, 2, 0, 0)
}

// What the servers logged meanwhile can be had, where the service is on this
// machine. It is asked once where the logs are.
func TestOrchestratedLog(t *testing.T) {
	s := orchestrate(t)
	var text string
	for second, what := range []string{"", "before", "meanwhile", "", "after"} {
		text += fmt.Sprintf(`{"t":{"$date":"2026-01-01T00:00:0%d.000+00:00"},"msg":"%s"}`+"\n", second, what)
	}
	testkit.Check(t, os.WriteFile(s.dir+"/mongod.log", []byte(text), 0o600))
	s.Service.Logs(s.dir + "/mongod.log")
	d := borrow(t, s.open(t, s.options(t, "single")))
	at := time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC)
	for range 2 {
		lines := d.(Logger).Log(at, at.Add(time.Second/2))
		if len(lines) != 1 || !strings.Contains(lines[0].Text, "meanwhile") || lines[0].Server != d.Description().Hosts[0] || !lines[0].Time.Equal(at) {
			t.Errorf("%v", lines)
		}
		s.Vanish()
	}
}

func TestOrchestrationThatIsNone(t *testing.T) {
	s := orchestrate(t)
	for _, r := range []struct{ reason, url, cluster, want string }{
		{"not a URL", "x", "single", "the URL of the orchestration service: "},
		{"nobody listens", "http://127.0.0.1:1", "single", "connection refused"},
		{"no such cluster", s.URL, "id:nowhere", `it has no cluster "nowhere"`},
	} {
		o := s.options(t, r.cluster)
		o.URL = r.url
		_, err := OpenOrchestration(testkit.Context(t), o)
		testkit.Fails(t, err, r.want)
	}
}

// A cluster behind load balancers is reached through them, even a single router;
// the twin has no ports for them.
func TestOrchestratedBalancers(t *testing.T) {
	s := orchestrate(t)
	c, err := orchestration.Parse("mine", []byte(`{"shards": [{"id": "a"}], "routers": [{"setParameter": {"loadBalancerPort": 1}}]}`))
	testkit.Check(t, err)
	o := s.options(t)
	o.Clusters, o.URIOptions = []OrchestratedCluster{{Configuration: c}}, []URIOption{{"serverSelectionTimeoutMS", "100"}}
	_, err = OpenOrchestration(testkit.Context(t), o)
	testkit.Fails(t, err, "cluster mine: cannot use the deployment at 127.0.0.1:")
	s.has(t, 1, 0, 0)
	made := &ownCluster{}
	all, one, err := made.balance("mongodb://127.0.0.1:1,127.0.0.1:2/?w=1", []int{3, 4})
	testkit.Check(t, err)
	const options = "/?w=1&loadBalanced=true"
	testkit.Equal(t, "through load balancers", []string{all, one},
		[]string{"mongodb://" + made.balancers[0].Address() + options, "mongodb://" + made.balancers[1].Address() + options})
	_, _, err = made.balance("mongodb://127.0.0.1:1,127.0.0.1:2/", []int{3})
	testkit.Fails(t, err, "its 2 routers have 1 ports for load balancers")
	for _, b := range made.balancers {
		b.Close()
	}
}

// Equal names stay equal only if what the configurations set is equal, too.
func TestDistinct(t *testing.T) {
	about := func(name, key string, value int32) Description {
		raw, err := bson.Marshal(bson.D{{Key: key, Value: value}})
		testkit.Check(t, err)
		return Description{Name: name, Parameters: raw}
	}
	others := []Description{about("a", "set", 1), about("a #2", "set", 2), about("b", "set", 3)}
	for want, d := range map[string]Description{
		"a":    about("a", "set", 1), // equal to the first
		"a #2": about("a", "set", 2), // to the second
		"a #3": about("a", "set", 3), // to none
		"b #2": about("b", "no", 1),  // it lacks the parameter
		"c":    about("c", "set", 1), // it has another name
	} {
		testkit.Equal(t, "distinct", distinct(d, others, []string{"set"}).Name, want)
	}
}

func TestCredentials(t *testing.T) {
	for _, r := range []struct {
		reason, uri, hosts, user, password string
		found                              bool
	}{
		{"all that hurts", "mongodb://a@b:p@ss:w/o?r%d&@h:1,h:2/?authSource=admin", "h:1,h:2", "a@b", "p@ss:w/o?r%d&", true},
		{"no password, as with X.509", "mongodb://CN=x@h:1/", "h:1", "CN=x", "", true},
		{"other hosts", "mongodb://ann:pw@h:2/", "h:1", "", "", false},
	} {
		user, password, found := credentials(r.uri, strings.Split(r.hosts, ","))
		testkit.Equal(t, r.reason, []any{user, password, found}, []any{r.user, r.password, r.found})
	}
}
