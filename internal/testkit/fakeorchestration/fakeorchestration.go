// Package fakeorchestration emulates mongo-orchestration in tests: the same paths, answers and errors, with embedded
// deployments as clusters. It can be made to misbehave.
package fakeorchestration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/embedded"
)

// Service is a running twin. Its methods may be called concurrently.
type Service struct {
	URL  string // includes the API version
	http *httptest.Server

	mu       sync.Mutex
	clusters map[string]*cluster // by "servers/ID"
	bodies   []map[string]any
	made     int
	fault    Fault
	log      string
	forgets  bool // see ForgetVersions
	lost     []*cluster
}

// cluster is a cluster, or, without a deployment, a part of one whose creation failed.
type cluster struct {
	*embedded.Deployment
	login, password string
	log             string            // path, or ""
	version         string            // of a standalone
	parts           map[string]string // versions of servers by their ids
	forgets         bool
}

// release is what the service starts if nothing else is requested.
const release = "8.0"

// find finds the servers in a part of a request, with their versions.
func (c *cluster) find(part any, version string) {
	switch x := part.(type) {
	case []any:
		for _, e := range x {
			c.find(e, version)
		}
	case map[string]any:
		if own, ok := x["version"].(string); ok {
			version = own
		}
		if id, ok := x["server_id"].(string); ok {
			c.parts[id] = version
		}
		for key, e := range x {
			if key != "configsvrs" {
				c.find(e, version)
			} else if c.find(e, release); c.forgets { // the service does not pass the version on
				for id := range c.parts {
					if strings.Contains(id, "-config") {
						c.parts[id] = release
					}
				}
			}
		}
	}
}

func (c *cluster) stop() {
	if c.Deployment != nil {
		_ = c.Close()
	}
}

// Fault may answer a request in place of the twin: then it returns true. method and path belong to the request,
// without the API version.
type Fault func(method, path string, w http.ResponseWriter, r *http.Request) bool

// Start starts a twin. At the end of the test it stops with all its clusters.
func Start(t testing.TB) *Service {
	s := &Service{clusters: make(map[string]*cluster)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/{$}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"service": "mongo-orchestration", "version": "0.9"})
	})
	for _, kind := range []string{"servers", "replica_sets", "sharded_clusters"} {
		mux.HandleFunc("GET /v1/"+kind, func(w http.ResponseWriter, _ *http.Request) { s.list(w, kind) })
		mux.HandleFunc("PUT /v1/"+kind+"/{id}",
			func(w http.ResponseWriter, r *http.Request) { s.make(w, r, kind, r.PathValue("id")) })
		mux.HandleFunc("/v1/"+kind+"/{id}",
			func(w http.ResponseWriter, r *http.Request) { s.one(w, r, kind, r.PathValue("id")) })
	}
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		fault := s.fault
		s.mu.Unlock()
		if fault == nil || !fault(r.Method, strings.TrimPrefix(r.URL.Path, "/v1"), w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	s.URL = s.http.URL + "/v1"
	t.Cleanup(func() { s.Vanish(); s.Kill() })
	return s
}

// Vanish stops the service as a crash does: it no longer answers, and its clusters run until the test ends.
func (s *Service) Vanish() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Logs sets the log path that later clusters report.
func (s *Service) Logs(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = path
}

// ForgetVersions makes the config servers of later clusters ignore requested versions.
func (s *Service) ForgetVersions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets = true
}

// Misbehave installs a fault; nil removes it.
func (s *Service) Misbehave(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Clusters lists the clusters with their kinds, such as "servers/x".
func (s *Service) Clusters() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.clusters))
}

// Made returns how many clusters were created.
func (s *Service) Made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}

// Bodies returns the request bodies of created clusters.
func (s *Service) Bodies() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// Add creates a cluster without a request.
func (s *Service) Add(t testing.TB, kind, id string, o embedded.Options) {
	t.Helper()
	d, err := embedded.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{Deployment: d}
	if len(o.Users) > 0 {
		c.login, c.password = o.Users[0].Name, o.Users[0].Password
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[kind+"/"+id] = c
}

// AddPart adds a part of a cluster whose creation failed.
func (s *Service) AddPart(kind, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[kind+"/"+id] = new(cluster)
}

// Forget makes the service forget its clusters, as if it had been killed and started again. Their servers still run.
func (s *Service) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = slices.AppendSeq(s.lost, maps.Values(s.clusters))
	clear(s.clusters)
}

// Hosts returns the hosts of a cluster. Clusters returns its name.
func (s *Service) Hosts(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clusters[name].Deployment.Hosts()
}

// Kill stops the servers of some clusters, or of all. The service continues to list them. Clusters returns their names.
func (s *Service) Kill(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, c := range s.clusters {
		if len(names) == 0 || slices.Contains(names, name) {
			c.stop()
		}
	}
	if len(names) == 0 {
		for _, c := range s.lost {
			c.stop()
		}
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// Raise answers as the service does after a Python exception.
func Raise(w http.ResponseWriter, what string) {
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = fmt.Fprintf(w, "Traceback (most recent call last):\n  File \"apps/__init__.py\", line 66, in wrap\n    return f(*arg, **kwd)\n%s\n", what)
}

func (s *Service) list(w http.ResponseWriter, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := []map[string]any{}
	for name, c := range s.clusters {
		if id, found := strings.CutPrefix(name, kind+"/"); found {
			rows = append(rows, map[string]any{"id": id})
		}
		for id := range c.parts {
			if kind == "servers" {
				rows = append(rows, map[string]any{"id": id})
			}
		}
	}
	answer(w, map[string]any{kind: rows})
}

func (s *Service) make(w http.ResponseWriter, r *http.Request, kind, id string) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		Raise(w, "mongo_orchestration.errors.RequestError: Could not parse the JSON sent to the server.")
		return
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	taken := s.clusters[kind+"/"+id] != nil
	c := &cluster{log: s.log, parts: make(map[string]string), forgets: s.forgets}
	c.version, _ = body["version"].(string)
	c.version = cmp.Or(c.version, release)
	c.find(body, c.version)
	s.mu.Unlock()
	if taken {
		Raise(w, fmt.Sprintf("mongo_orchestration.errors.ServersError: %s with id %s already exists.", kind, id))
		return
	}
	o := embedded.Options{Topology: map[string]embedded.Topology{
		"servers": embedded.Standalone, "replica_sets": embedded.ReplicaSet, "sharded_clusters": embedded.Sharded}[kind]}
	o.Version, _ = body["version"].(string)
	if members, ok := body["members"].([]any); ok {
		o.Members, o.SetName = len(members), id
	}
	routers, _ := body["routers"].([]any)
	o.Mongoses = len(routers)
	if c.login, _ = body["login"].(string); c.login != "" {
		c.password, _ = body["password"].(string)
		o.Users = []embedded.User{{Name: c.login, Password: c.password}}
	}
	var err error
	if c.Deployment, err = embedded.Start(context.WithoutCancel(r.Context()), o); err != nil {
		Raise(w, "mongo_orchestration.errors.TimeoutError: Could not start Server: "+err.Error())
		return
	}
	s.mu.Lock()
	s.clusters[kind+"/"+id] = c
	s.made++
	s.mu.Unlock()
	answer(w, c.info(id))
}

// info is the service's description of a cluster. Passwords are not escaped.
func (c *cluster) info(id string) map[string]any {
	hosts := strings.Join(c.Hosts(), ",")
	if c.parts[id] != "" {
		hosts = c.Hosts()[0]
	}
	uri, auth := "mongodb://"+hosts, "mongodb://"+c.login+":"+c.password+"@"+hosts+"/?authSource=admin"
	if u, err := url.Parse(c.URI()); err == nil && u.Query().Has("replicaSet") {
		set := "replicaSet=" + u.Query().Get("replicaSet")
		uri, auth = uri+"/?"+set, auth+"&"+set
	}
	version := cmp.Or(c.parts[id], c.version) + ".0"
	out := map[string]any{"id": id, "mongodb_uri": uri, "serverInfo": map[string]any{"version": version},
		"procInfo": map[string]any{"params": map[string]any{"logpath": c.log}}}
	if c.login != "" {
		out["mongodb_auth_uri"] = auth
	}
	return out
}

func (s *Service) one(w http.ResponseWriter, r *http.Request, kind, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[kind+"/"+id]
	for _, whole := range s.clusters {
		if whole.parts[id] != "" && r.Method == http.MethodGet {
			c = whole
		}
	}
	switch {
	case c != nil && r.Method == http.MethodDelete:
		delete(s.clusters, kind+"/"+id)
		c.stop()
		w.WriteHeader(http.StatusNoContent)
	case c == nil || c.Deployment == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		answer(w, c.info(id))
	}
}
