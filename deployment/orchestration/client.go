// Package orchestration speaks to mongo-orchestration, a service that starts
// and stops MongoDB servers, replica sets and sharded clusters on its machine
// (its REST interface, version 1), and knows the configurations that the
// service is given.
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

// Kind is a kind of cluster, as the service's paths name it.
type Kind string

// The kinds.
const (
	Server         Kind = "servers"
	ReplicaSet     Kind = "replica_sets"
	ShardedCluster Kind = "sharded_clusters"
)

// DeleteLimit bounds the taking down of a cluster, unless Limits say otherwise.
const DeleteLimit = 2 * time.Minute

// Limits bound requests. Zero means the default.
type Limits struct {
	// Create bounds the making of a cluster (default 5 minutes): a sharded
	// cluster with access control starts each of its servers twice.
	Create time.Duration
	// Delete bounds the taking down of one with all its parts (default
	// DeleteLimit).
	Delete time.Duration
	// Ask bounds everything else (default 1 minute): the service looks at each
	// server before it answers, and waits for those that do not.
	Ask time.Duration
}

// Client speaks to one service. Methods may be called concurrently; each has a
// deadline of its own beside that of its context.
type Client struct {
	base   *url.URL // with the version, without a slash at the end
	http   *http.Client
	limits Limits
}

// New gives a client for the service at a URL, such as http://localhost:8889.
// Version 1 of the interface is meant if the URL has no path. Nothing is asked
// yet. Credentials of the URL go with each request and are in no error.
func New(address string, l Limits) (*Client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil: // it repeats the address, which may hold a password
		return nil, errors.New("it is no URL")
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
	l = Limits{cmp.Or(l.Create, 5*time.Minute), cmp.Or(l.Delete, DeleteLimit), cmp.Or(l.Ask, time.Minute)}
	return &Client{base: u, http: &http.Client{Transport: transport, CheckRedirect: stay}, limits: l}, nil
}

// stay refuses to go elsewhere: a request with a method of its own would come
// out as another one there.
func stay(*http.Request, []*http.Request) error {
	return errors.New("it asks to ask elsewhere: is that the URL of the service?")
}

// URL is the address of the service, without credentials.
func (c *Client) URL() string {
	u := *c.base
	u.User = nil
	return u.String()
}

// Local reports whether the service is reached at an address of this machine,
// whatever name the URL has for it. One in a container can be, and see other files.
func (c *Client) Local(ctx context.Context) bool {
	port := cmp.Or(c.base.Port(), map[string]string{"http": "80", "https": "443"}[c.base.Scheme])
	ctx, cancel := context.WithTimeout(ctx, localLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(c.base.Hostname(), port))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	return sameMachine(conn.LocalAddr(), conn.RemoteAddr())
}

// localLimit bounds a connection that only shows where the service is.
const localLimit = 5 * time.Second

// sameMachine reports whether a connection has one machine at both ends: only there
// do both have the same address, or one of the loopback interface.
func sameMachine(here, there net.Addr) bool {
	a, okA := here.(*net.TCPAddr)
	b, okB := there.(*net.TCPAddr)
	return okA && okB && (b.IP.IsLoopback() || a.IP.Equal(b.IP))
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Cluster is what the service says of a cluster. Its connection strings may
// hold credentials: never print them.
type Cluster struct {
	Part
	// URI is the connection string without credentials; AuthURI is the one with
	// them, "" without access control. The service does not escape passwords.
	URI     string `json:"mongodb_uri"`
	AuthURI string `json:"mongodb_auth_uri"`
	Process struct {
		Parameters struct {
			Log string `json:"logpath"` // of a server, on the machine of the service
		} `json:"params"`
	} `json:"procInfo"`
}

// Check asks the service what it is.
func (c *Client) Check(ctx context.Context) error {
	var about struct {
		Service string `json:"service"`
	}
	if err := c.do(ctx, c.limits.Ask, http.MethodGet, "/", nil, &about); err != nil {
		return err
	}
	if about.Service == "" {
		return &Error{Method: http.MethodGet, URL: c.URL() + "/", Err: errors.New("something other than mongo-orchestration answers")}
	}
	return nil
}

// Create makes a cluster and gives it once the service has started all of its
// servers. A cluster with the id of the body must not be there yet.
//
// After an error something may be left: see Remove. The end of the context does
// not end the making either.
func (c *Client) Create(ctx context.Context, kind Kind, id string, body any) (Cluster, error) {
	return c.cluster(ctx, c.limits.Create, http.MethodPut, kind, id, body)
}

// Get asks for a cluster. errors.Is(err, ErrNotFound) if there is none.
func (c *Client) Get(ctx context.Context, kind Kind, id string) (Cluster, error) {
	return c.cluster(ctx, c.limits.Ask, http.MethodGet, kind, id, nil)
}

// Find looks for a cluster among all kinds.
func (c *Client) Find(ctx context.Context, id string) (Cluster, error) {
	for _, kind := range []Kind{ShardedCluster, ReplicaSet, Server} {
		found, err := c.Get(ctx, kind, id)
		if !errors.Is(err, ErrNotFound) {
			return found, err
		}
	}
	return Cluster{}, &Error{Method: http.MethodGet, URL: c.URL(), Status: http.StatusNotFound,
		Message: fmt.Sprintf("it has no cluster %q", id)}
}

func (c *Client) cluster(ctx context.Context, limit time.Duration, method string, kind Kind, id string, body any) (found Cluster, err error) {
	if err := c.do(ctx, limit, method, place(kind, id), body, &found); err != nil {
		return Cluster{}, err
	}
	if found.URI == "" {
		return Cluster{}, &Error{Method: method, URL: c.URL() + place(kind, id), Err: errors.New("the answer has no mongodb_uri: do its servers run?")}
	}
	found.Kind = kind
	return found, nil
}

func place(kind Kind, id string) string { return "/" + string(kind) + "/" + url.PathEscape(id) }

// Remove takes a cluster down, with everything whose id is the cluster's and a
// part after it: what a making that failed leaves behind. It reports whether
// anything was there. What was not there is no error.
func (c *Client) Remove(ctx context.Context, kind Kind, id string) (found bool, err error) {
	limit := c.limits.Delete
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not over within %s", limit))
	defer cancel()
	switch err := c.remove(ctx, kind, id); {
	case err == nil:
		found = true
	case !errors.Is(err, ErrNotFound):
		return false, err
	}
	parts, err := c.Parts(ctx, id)
	if err != nil {
		return found, err
	}
	for _, p := range parts {
		if err := c.remove(ctx, p.Kind, p.ID); err != nil && !errors.Is(err, ErrNotFound) {
			return found, err
		}
		found = true
	}
	return found, nil
}

// Part is a server or replica set that belongs to a cluster.
type Part struct {
	Kind Kind   `json:"-"`
	ID   string `json:"id"`
}

// Parts lists what is there of a cluster beside itself, replica sets first:
// they take their members with them.
func (c *Client) Parts(ctx context.Context, id string) ([]Part, error) {
	all, err := c.list(ctx, ReplicaSet, Server)
	return slices.DeleteFunc(all, func(p Part) bool { return !strings.HasPrefix(p.ID, id+partMark) }), err
}

// Made is what a run has made on the service, a whole cluster or what is left of one.
type Made struct {
	Part
	Mark
}

// Made lists what runs have made, by the marks of the ids.
func (c *Client) Made(ctx context.Context) (made []Made, err error) {
	all, err := c.list(ctx, ShardedCluster, ReplicaSet, Server)
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

// Servers gives the servers of a cluster that Create made, by host:port, and where
// each writes its log, on the machine of the service. One that does not run is left
// out, after half a minute.
func (c *Client) Servers(ctx context.Context, kind Kind, id string) (map[string]string, error) {
	servers := []Part{{Server, id}}
	if kind != Server {
		var err error
		if servers, err = c.Parts(ctx, id); err != nil {
			return nil, err
		}
	}
	logs := make(map[string]string)
	for _, s := range servers {
		if s.Kind != Server {
			continue
		}
		var about Cluster
		if err := c.do(ctx, c.limits.Ask, http.MethodGet, place(Server, s.ID), nil, &about); err != nil {
			return nil, err
		}
		if host := strings.TrimPrefix(about.URI, "mongodb://"); host != "" {
			logs[host] = about.Process.Parameters.Log
		}
	}
	return logs, nil
}

func (c *Client) remove(ctx context.Context, kind Kind, id string) error {
	return c.do(ctx, c.limits.Delete, http.MethodDelete, place(kind, id), nil, nil)
}

// list gives what there is of some kinds; nothing if one of them cannot be listed.
func (c *Client) list(ctx context.Context, kinds ...Kind) (all []Part, err error) {
	for _, kind := range kinds {
		var answer map[string]json.RawMessage
		if err := c.do(ctx, c.limits.Ask, http.MethodGet, "/"+string(kind), nil, &answer); err != nil {
			return nil, err
		}
		var rows []Part
		if err := json.Unmarshal(answer[string(kind)], &rows); err != nil {
			return nil, &Error{Method: http.MethodGet, URL: c.URL() + "/" + string(kind), Err: errors.New("the answer has no list of " + string(kind))}
		}
		for _, r := range rows {
			all = append(all, Part{kind, r.ID})
		}
	}
	return slices.Compact(all), nil
}

// answerLimit is more than a service of a thousand servers says.
const answerLimit = 32 << 20

// do makes a request and reads the answer into a value, if one is wanted.
func (c *Client) do(ctx context.Context, limit time.Duration, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	failed := &Error{Method: method, URL: c.URL() + path}
	var text []byte
	if text, failed.Err = c.exchange(ctx, failed, method, c.base.String()+path, body); failed.Err != nil {
		return failed
	}
	switch {
	case failed.Status < 200 || failed.Status > 299:
		failed.Message = said(text)
		return failed
	case into == nil || json.Unmarshal(text, into) == nil:
		return nil
	}
	failed.Status, failed.Err = 0, fmt.Errorf("the answer is not the JSON of mongo-orchestration: %s", excerpt(string(text), 80))
	return failed
}

// exchange makes a request, and notes the status of the answer, or that there may
// be one.
func (c *Client) exchange(ctx context.Context, e *Error, method, url string, body any) ([]byte, error) {
	var send []byte
	if body != nil {
		var err error
		if send, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(send))
	if err != nil {
		return nil, errors.New("it cannot be asked")
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		var dialing *net.OpError
		dialed := !errors.As(err, &dialing) || dialing.Op != "dial"
		e.Unanswered = dialed && response == nil // there is one if it asks to ask elsewhere
		return nil, reason(ctx, err)
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

// reason says what kept a request from being answered. The error of package
// http is left out: it repeats the URL.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err
}
