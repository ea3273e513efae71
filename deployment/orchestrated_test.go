package deployment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/fakeorchestration"
)

// service is a script for a twin of mongo-orchestration. It counts clusters created, existing clusters, and entries of
// its ledger.
type service struct {
	*script
	twin    *fakeorchestration.Service
	dir     string // of the ledger
	options OrchestrationOptions
	fault   error
	secrets notes
}

func orchestrate(t *testing.T) *service {
	t.Helper()
	s := &service{script: newScript(t), twin: fakeorchestration.Start(t), dir: t.TempDir()}
	book, err := ledger.Open(s.dir)
	testkit.Check(t, err)
	s.options = OrchestrationOptions{URL: s.twin.URL, Ledger: book, Note: s.notes.add, Secret: s.secrets.add}
	s.count = func() []int { return []int{s.twin.Made(), len(s.twin.Clusters()), len(files(t, s.dir, "ledger/*"))} }
	s.verbs = map[string]func(string){
		"name":   func(names string) { s.options.Clusters = named(t, strings.Fields(names)) },
		"serve":  func(limit string) { s.options.serve, _ = time.ParseDuration(limit) },
		"create": func(limit string) { s.options.create, _ = time.ParseDuration(limit) },
		"select": func(ms string) { s.options.URIOptions = []URIOption{{"serverSelectionTimeoutMS", ms}} },
		"each":   func(n string) { s.options.Each, _ = strconv.Atoi(n) },
		"only":   func(topology string) { s.options.Topology = Topology(topology) },
		"open": func(string) {
			s.Source, err = OpenOrchestration(s.ctx, s.options)
			testkit.Check(t, err)
			t.Cleanup(func() { _ = s.Source.Close() })
		},
		"reject": func(text string) {
			_, s.fault = OpenOrchestration(s.ctx, s.options)
			testkit.ErrorContains(t, s.fault, text)
		},
		"and":    func(text string) { testkit.ErrorContains(t, s.fault, text) },
		"held":   func(string) { _, err := OpenOrchestration(s.ctx, s.options); heldBy(t, err) },
		"proxy":  func(string) { s.options.FailPointMode = FailPointsProxy },
		"url":    func(url string) { s.options.URL = url },
		"forget": func(string) { s.twin.ForgetVersions() },
		"version": func(version string) {
			for i := range s.options.Clusters {
				c := &s.options.Clusters[i].Configuration
				*c = c.With(orchestration.Settings{Version: version})
			}
		},
		"lie": func(what string) { // in answers to requests to remove clusters
			s.twin.Misbehave(func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
				_, _ = io.WriteString(w, testkit.Either(method == http.MethodDelete, what, ""))
				return method == http.MethodDelete
			})
		},
		"restart": func(string) { s.twin.Forget() },
		"vanish":  func(string) { s.twin.Vanish() },
		"kill":    func(string) { s.twin.Kill() },
		"arm": func(name string) {
			runOn(t, parsed(t, s.the(name).URI()), "admin", failCommand(t, "alwaysOn", "find", ""))
		},
		"right": func(name string) { testkit.Equal(t, "fail points", left(t, s.the(name).URI()), 0) },
		"stop": s.creating(func(string, http.ResponseWriter, *http.Request) bool {
			s.cancel(errors.New("interrupted"))
			return false
		}),
		"raise": s.creating(func(what string, w http.ResponseWriter, _ *http.Request) bool {
			fakeorchestration.Raise(w, what)
			return true
		}),
		"once": func(what string) { // for each path
			var failed sync.Map
			s.creating(func(what string, w http.ResponseWriter, r *http.Request) bool {
				_, again := failed.LoadOrStore(path.Dir(r.URL.Path), true)
				if !again {
					fakeorchestration.Raise(w, what)
				}
				return !again
			})(what)
		},
		"never": s.creating(func(kind string, w http.ResponseWriter, r *http.Request) bool {
			fails := strings.Contains(r.URL.Path, kind)
			if fails {
				fakeorchestration.Raise(w, "TimeoutError: no port")
			}
			return fails
		}),
		"write": s.creating(func(what string, w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, what)
			return true
		}),
		"part": s.creating(func(_ string, w http.ResponseWriter, r *http.Request) bool {
			s.twin.AddPart("servers", path.Base(r.URL.Path)+"-part-member1")
			fakeorchestration.Raise(w, "ReplicaSetError: no primary was ever elected")
			return true
		}),
		"hang": s.creating(func(_ string, _ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // net/http detects a closed connection only after the body was read
			<-r.Context().Done()
			return true
		}),
	}
	return s
}

// creating replaces the twin's handling of requests to create clusters.
func (s *service) creating(do func(about string, w http.ResponseWriter, r *http.Request) bool) func(about string) {
	return func(about string) {
		s.twin.Misbehave(func(method, _ string, w http.ResponseWriter, r *http.Request) bool {
			return method == http.MethodPut && do(about, w, r)
		})
	}
}

// named returns clusters by their names on the command line, or two configurations of its own.
func named(t testing.TB, names []string) (out []OrchestratedCluster) {
	for _, name := range names {
		if id, found := strings.CutPrefix(name, "id:"); found {
			out = append(out, OrchestratedCluster{ID: id})
			continue
		}
		own := map[string]string{
			"secret":   `{"members": [{}, {}], "login": "ann", "password": "` + testkit.Secret + `", "auth_key": "ke"}`,
			"balanced": `{"shards": [{"id": "a"}], "routers": [{"setParameter": {"loadBalancerPort": 1}}]}`,
		}
		c, err := orchestration.Parse("mine", []byte(own[name]))
		if own[name] == "" {
			c, err = orchestration.Preset(name)
			c = c.With(orchestration.Settings{})
		}
		testkit.Check(t, err)
		out = append(out, OrchestratedCluster{Configuration: c})
	}
	return out
}

// A cluster that cannot be created is removed, and the error contains the reason without the password. If the service
// has not answered, it may still create the cluster, and the entry stays in the ledger.
func TestOrchestration(t *testing.T) {
	stories(t, "orchestration", func(t *testing.T, _, steps string) {
		t.Parallel() // some wait for clusters that never become ready
		s := orchestrate(t)
		s.play(steps)
		testkit.Contains(t, s.notes.String())
		for _, body := range s.twin.Bodies() {
			for _, key := range []string{"password", "auth_key"} {
				if secret, _ := body[key].(string); secret != "" && !strings.Contains(s.secrets.String(), secret+"\n") {
					t.Errorf("Secret did not receive %s", key)
				}
			}
		}
	})
}

// An existing cluster is used and kept; its lock is released.
func TestOrchestratedExistingCluster(t *testing.T) {
	const password = `p@ss:w/o?r%d& +é`
	ann := []embedded.User{{Name: "ann@home", Password: password}}
	for kind, o := range map[string]embedded.Options{
		"servers":          {},
		"replica_sets":     {Topology: embedded.ReplicaSet, Users: ann},
		"sharded_clusters": {Topology: embedded.Sharded, Users: ann},
	} {
		t.Run(kind, func(t *testing.T) {
			s := orchestrate(t)
			s.twin.Add(t, kind, "mine", o)
			s.options.Lock = &lock.Options{}
			s.play("name id:mine; open; lend a; theirs a; use a; held; break a; lend a; return a; close; open; close; has 0 1 0")
			testkit.Equal(t, "Secret received the password", strings.Contains(s.secrets.String(), password+"\n"), len(o.Users) > 0)
		})
	}
}

// Equal clusters share an offer; others have their own. Options.Topology selects clusters. The first of each is created
// before tests run.
func TestOrchestratedPool(t *testing.T) {
	s := orchestrate(t)
	s.twin.Add(t, "replica_sets", "mine", embedded.Options{Topology: embedded.ReplicaSet})
	s.play("name replicaset single id:mine replicaset-one; each 2; open; offers replicaset 8.0, single 8.0; has 3 4 4;" +
		"lend a; lend b; lend c; lend d; lend e; has 5 6 6")
	full, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Acquire(full, 0)
	testkit.ErrorContains(t, err, "canceled")
	ids := make(map[any]bool)
	for _, body := range s.twin.Bodies() {
		ids[body["id"]] = true
		if text := fmt.Sprint(body); strings.Contains(text, "port:") {
			t.Errorf("two clusters would have the same port: %s", text)
		}
	}
	testkit.Equal(t, "ids", len(ids), 5)
	s.play("close; only single; each 0; open; offers single 8.0; has 6 2 2; close; has 6 1 0")
}

func TestOrchestratedBalancers(t *testing.T) {
	routers := parsed(t, "mongodb://127.0.0.1:1,127.0.0.1:2/?w=1")
	balancers, through, err := balance(routers, []int{3, 4})
	testkit.Check(t, err)
	for _, at := range []string{balancers.All, balancers.First} {
		conn, err := net.Dial("tcp", at)
		testkit.Check(t, err)
		testkit.Equal(t, "through a load balancer", through.at(at).String(), "mongodb://"+at+"/?w=1&loadBalanced=true")
		testkit.Check(t, conn.Close())
	}
	_, _, err = balance(routers, []int{3})
	testkit.ErrorContains(t, err, "it has 2 routers, but 1 port for load balancers")
	balancers.Close()
	_, err = net.Dial("tcp", balancers.All)
	testkit.ErrorContains(t, err)
}

// Logs are read if the service is on this machine. It reports their paths after creating the cluster.
func TestOrchestratedLog(t *testing.T) {
	s := orchestrate(t)
	var text string
	for second, what := range []string{"", "before", "meanwhile", "", "after"} {
		text += fmt.Sprintf(`{"t":{"$date":"2026-01-01T00:00:0%d.000+00:00"},"msg":"%s"}`+"\n", second, what)
	}
	testkit.Check(t, os.WriteFile(s.dir+"/mongod.log", []byte(text), 0o600))
	s.twin.Logs(s.dir + "/mongod.log")
	s.play("name single; open; lend a")
	d := s.the("a")
	at := time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC)
	for range 2 {
		lines := d.Log(at, at.Add(time.Second/2))
		if len(lines) != 1 || !strings.Contains(lines[0].Text, "meanwhile") || lines[0].Server != d.Description().Hosts[0] || !lines[0].Time.Equal(at) {
			t.Errorf("%v", lines)
		}
		s.twin.Vanish()
	}
}
