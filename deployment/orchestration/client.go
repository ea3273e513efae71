// Package orchestration is for utr only. It is a client of mongo-orchestration, a service that starts and stops MongoDB
// servers, replica sets and sharded clusters on its machine (REST API, version 1), and reads the configurations for it.
package orchestration

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of cluster, as in the service's paths.
type Kind string

const (
	Server         Kind = "servers"
	ReplicaSet     Kind = "replica_sets"
	ShardedCluster Kind = "sharded_clusters"
)

// kinds are all kinds, those with parts first.
var kinds = []Kind{ShardedCluster, ReplicaSet, Server}

// Limits of requests.
const (
	createLimit = 5 * time.Minute // a sharded cluster with access control starts each of its servers twice
	DeleteLimit = 2 * time.Minute // of a cluster with all its parts
	askLimit    = time.Minute     // the service contacts each server first, and waits for those that do not respond
)

// Client is a client of one service. Methods may be called concurrently. Each has its own deadline in addition to the
// deadline of its context.
type Client struct {
	// CreateLimit bounds Create. New sets it.
	CreateLimit time.Duration

	base     *url.URL // with the version, without a trailing slash
	http     *http.Client
	askLimit time.Duration
	// closeLimit bounds the wait until the servers of a removed cluster have ended.
	closeLimit time.Duration
}

// New returns a client for the service at a URL, such as http://localhost:8889. A URL without a path means version 1 of
// the API. New sends no request. Credentials in the URL are sent with each request and are never in an error.
func New(address string) (*Client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil: // err repeats the address, and that may contain a password
		return nil, errors.New("it is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it must begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("it has no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it must not have a query or a fragment")
	}
	if u.Path = strings.TrimRight(u.Path, "/"); u.Path == "" {
		u.Path = "/v1"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	noRedirect := func(*http.Request, []*http.Request) error { // it would change the method of a request
		return errors.New("it redirects the request: is that the URL of the service?")
	}
	client := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	return &Client{CreateLimit: createLimit, base: u, http: client, askLimit: askLimit, closeLimit: closeLimit}, nil
}

// URL returns the address of the service, without credentials.
func (c *Client) URL() string {
	u := *c.base
	u.User = nil
	return u.String()
}

// Local reports whether the service has an address of this machine, whatever host name the URL has. A service in a
// container can have one although its files are different.
func (c *Client) Local(ctx context.Context) bool {
	port := cmp.Or(c.base.Port(), map[string]string{"http": "80", "https": "443"}[c.base.Scheme])
	ctx, cancel := context.WithTimeout(ctx, localLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(c.base.Hostname(), port))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	return sameMachine(conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr))
}

// localLimit bounds the connection of Local.
const localLimit = 5 * time.Second

// sameMachine reports whether both ends of a connection are on one machine. If so, they have the same address, or a
// loopback address.
func sameMachine(here, there *net.TCPAddr) bool {
	return there.IP.IsLoopback() || here.IP.Equal(there.IP)
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Cluster is a cluster as the service reports it. Its connection strings may contain credentials: never print them.
type Cluster struct {
	Part
	// URI is the connection string without credentials; AuthURI has them, or is "" without access control. The service
	// does not escape passwords.
	URI     string `json:"mongodb_uri"`
	AuthURI string `json:"mongodb_auth_uri"`
	Process struct {
		Parameters struct {
			Log string `json:"logpath"` // of a server, on the service's machine
		} `json:"params"`
	} `json:"procInfo"`
	Build struct {
		Version string `json:"version"` // of a server that is running
	} `json:"serverInfo"`
}

// Check checks that the service is mongo-orchestration.
func (c *Client) Check(ctx context.Context) error {
	var about struct {
		Service string `json:"service"`
	}
	if err := c.get(ctx, "/", &about); err != nil {
		return err
	}
	if about.Service == "" {
		return &Error{Method: http.MethodGet, URL: c.URL() + "/",
			Err: errors.New("something other than mongo-orchestration answers")}
	}
	return nil
}

// Create creates a cluster and returns when the service has started all of its servers. The id must equal the body's
// and must not exist yet.
//
// After an error, parts of the cluster may exist: see Remove. Canceling the context does not stop the service.
func (c *Client) Create(ctx context.Context, kind Kind, id string, body any) (Cluster, error) {
	return c.cluster(ctx, c.CreateLimit, http.MethodPut, kind, id, body)
}

// Get returns a cluster. The error matches ErrNotFound if it does not exist.
func (c *Client) Get(ctx context.Context, kind Kind, id string) (Cluster, error) {
	return c.cluster(ctx, c.askLimit, http.MethodGet, kind, id, nil)
}

// Find searches all kinds for a cluster.
func (c *Client) Find(ctx context.Context, id string) (Cluster, error) {
	for _, kind := range kinds {
		found, err := c.Get(ctx, kind, id)
		if !errors.Is(err, ErrNotFound) {
			return found, err
		}
	}
	return Cluster{}, &Error{Method: http.MethodGet, URL: c.URL(), Status: http.StatusNotFound,
		Message: fmt.Sprintf("it has no cluster %q", id)}
}

func (c *Client) cluster(ctx context.Context, limit time.Duration, method string, kind Kind, id string,
	body any) (found Cluster, err error) {
	err = c.do(ctx, limit, method, place(kind, id), body, &found)
	if err == nil && found.URI == "" {
		err = &Error{Method: method, URL: c.URL() + place(kind, id),
			Err: errors.New("the answer has no mongodb_uri: are its servers running?")}
	}
	found.Kind = kind
	return found, err
}

func place(kind Kind, id string) string { return "/" + string(kind) + "/" + url.PathEscape(id) }

// Remove removes a cluster and all its parts, such as the parts of a failed Create. It reports whether anything
// existed; nothing need exist. hosts are the known hosts of its servers. Remove does not rely on the answer: it checks
// that the service no longer lists the cluster and that the hosts are closed.
func (c *Client) Remove(ctx context.Context, kind Kind, id string, hosts ...string) (found bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, DeleteLimit, fmt.Errorf("not finished within %s", DeleteLimit))
	defer cancel()
	remove := func(p Part) error {
		err := c.do(ctx, DeleteLimit, http.MethodDelete, place(p.Kind, p.ID), nil, nil)
		found = found || err == nil
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if _, err = c.Get(ctx, p.Kind, p.ID); errors.Is(err, ErrNotFound) {
			return nil
		}
		still := errors.New("the service still has it")
		return &Error{Method: http.MethodDelete, URL: c.URL() + place(p.Kind, p.ID), Err: cmp.Or(err, still)}
	}
	if err := remove(Part{kind, id}); err != nil {
		return false, err
	}
	parts, err := c.Parts(ctx, id)
	for _, p := range parts {
		if err := remove(p); err != nil {
			return found, err
		}
	}
	if err == nil && len(hosts) > 0 {
		err = c.closed(ctx, hosts)
	}
	return found, err
}

// closed waits until the hosts of a removed cluster no longer accept connections, or belong to other servers of the
// service, since it reuses ports. If the service is on another machine, names of loopback addresses prove nothing.
func (c *Client) closed(ctx context.Context, hosts []string) error {
	local := c.Local(ctx)
	ctx, cancel := context.WithTimeout(ctx, c.closeLimit)
	defer cancel()
	for _, host := range hosts {
		name, _, _ := net.SplitHostPort(host)
		if ip := net.ParseIP(name); !local && (name == "localhost" || ip.IsLoopback()) {
			continue
		}
		for c.open(ctx, host) {
			select {
			case <-time.After(closePoll):
			case <-ctx.Done():
				return fmt.Errorf("%s still accepts connections, though the service at %s no longer has its server: end that process on its machine", host, c.URL())
			}
		}
	}
	return nil
}

const (
	closeLimit = 10 * time.Second
	closePoll  = 200 * time.Millisecond
)

// open reports whether a host accepts connections and no server of the service has it.
func (c *Client) open(ctx context.Context, host string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil { // a timeout proves nothing, and can be reported before ctx.Err is set
		var timeout net.Error
		return ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout()
	}
	_ = conn.Close()
	servers, _ := c.list(ctx, Server)
	return !slices.ContainsFunc(servers, func(p Part) bool {
		about, err := c.Get(ctx, Server, p.ID)
		return err == nil && about.URI == "mongodb://"+host
	})
}

// Part identifies a cluster, or a server or replica set in one.
type Part struct {
	Kind Kind   `json:"-"`
	ID   string `json:"id"`
}

// Parts lists the parts of a cluster, replica sets first: removing one removes its members.
func (c *Client) Parts(ctx context.Context, id string) ([]Part, error) {
	all, err := c.list(ctx, ReplicaSet, Server)
	return slices.DeleteFunc(all, func(p Part) bool { return !strings.HasPrefix(p.ID, id+partMark) }), err
}

// Made is a cluster that a run created, or the remaining parts of it.
type Made struct {
	Part
	Mark
}

// Made lists the clusters that runs created, by the marks in their ids.
func (c *Client) Made(ctx context.Context) (made []Made, err error) {
	all, err := c.list(ctx, kinds...)
	for _, p := range all {
		p.ID, _, _ = strings.Cut(p.ID, partMark)
		known := slices.ContainsFunc(made, func(m Made) bool { return m.ID == p.ID })
		if m, found := markOf(p.ID); found && !known {
			made = append(made, Made{p, m})
		}
	}
	slices.SortFunc(made, func(a, b Made) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID)) })
	return made, err
}

// Running is a server of a cluster.
type Running struct {
	ID, Host string // host:port
	Version  string
	Log      string // the path of its log on the service's machine
}

// Servers returns the servers of a cluster that Create created. Servers that are not running are omitted, after half a
// minute.
func (c *Client) Servers(ctx context.Context, kind Kind, id string) (running []Running, err error) {
	servers := []Part{{Server, id}}
	if kind != Server {
		if servers, err = c.Parts(ctx, id); err != nil {
			return nil, err
		}
	}
	for _, s := range servers {
		if s.Kind != Server {
			continue
		}
		var about Cluster
		if err := c.get(ctx, place(Server, s.ID), &about); err != nil {
			return nil, err
		}
		if host := strings.TrimPrefix(about.URI, "mongodb://"); host != "" {
			running = append(running, Running{s.ID, host, about.Build.Version, about.Process.Parameters.Log})
		}
	}
	return running, nil
}

// list lists the clusters of some kinds, or returns an error if one of them cannot be listed.
func (c *Client) list(ctx context.Context, kinds ...Kind) (all []Part, err error) {
	for _, kind := range kinds {
		var answer map[string]json.RawMessage
		if err := c.get(ctx, "/"+string(kind), &answer); err != nil {
			return nil, err
		}
		var rows []Part
		if err := json.Unmarshal(answer[string(kind)], &rows); err != nil {
			return nil, &Error{Method: http.MethodGet, URL: c.URL() + "/" + string(kind),
				Err: errors.New("the answer has no list of " + string(kind))}
		}
		for _, r := range rows {
			all = append(all, Part{kind, r.ID})
		}
	}
	return slices.Compact(all), nil
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, c.askLimit, http.MethodGet, path, nil, into)
}

// do sends a request and decodes the answer, unless into is nil.
func (c *Client) do(ctx context.Context, limit time.Duration, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	e := &Error{Method: method, URL: c.URL() + path}
	text, err := c.exchange(ctx, e, c.base.String()+path, body)
	switch {
	case err != nil:
		e.Err = err
	case e.Status < 200 || e.Status > 299:
		e.Message = message(text)
	case into == nil || json.Unmarshal(text, into) == nil:
		return nil
	default:
		e.Status, e.Err = 0, fmt.Errorf("the answer is not the JSON of mongo-orchestration: %s", excerpt(string(text), 80))
	}
	return e
}

// answerLimit is larger than the answers of a service with a thousand servers.
const answerLimit = 32 << 20

// exchange sends a request, and sets the error's Status, or its Unanswered.
func (c *Client) exchange(ctx context.Context, e *Error, url string, body any) ([]byte, error) {
	var send bytes.Buffer
	header := http.Header{"Accept": {"application/json"}}
	if body != nil {
		header.Set("Content-Type", "application/json")
		if err := json.NewEncoder(&send).Encode(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, e.Method, url, &send)
	if err != nil {
		return nil, errors.New("invalid request")
	}
	request.Header = header
	response, err := c.http.Do(request)
	if err != nil {
		var dialing *net.OpError
		dialed := !errors.As(err, &dialing) || dialing.Op != "dial"
		e.Unanswered = dialed && response == nil    // a rejected redirect is a response
		return nil, reason(ctx, errors.Unwrap(err)) // the *url.Error repeats the URL
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		e.Unanswered = true
		return nil, reason(ctx, err)
	}
	e.Status = response.StatusCode
	return text, nil
}

// reason returns why a request failed.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
