package orchestration

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/fakeorchestration"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, address string) *Client {
	t.Helper()
	c, err := New(address)
	testkit.Check(t, err)
	t.Cleanup(c.Close)
	return c
}

// answering starts a service with one handler for all requests.
func answering(t *testing.T, do http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(do)
	t.Cleanup(s.Close)
	return s
}

// The address of a service determines whether it is on this machine, not its name.
func TestLocal(t *testing.T) {
	for _, r := range []struct {
		reason, here, there string
		want                bool
	}{
		{"loopback", "127.0.0.1", "127.0.0.2", true},
		{"an address of this machine", "10.0.0.5", "10.0.0.5", true},
		{"another machine", "10.0.0.5", "10.0.0.9", false},
	} {
		got := sameMachine(&net.TCPAddr{IP: net.ParseIP(r.here)}, &net.TCPAddr{IP: net.ParseIP(r.there)})
		testkit.Equal(t, r.reason, got, r.want)
	}
	s := fakeorchestration.Start(t)
	testkit.Equal(t, "a service on this machine", client(t, s.URL).Local(t.Context()), true)
	testkit.Equal(t, "no service", client(t, "http://localhost:1").Local(t.Context()), false)
}

func TestCreateGetRemove(t *testing.T) {
	ctx := testkit.Context(t)
	s := fakeorchestration.Start(t)
	c := client(t, s.URL)
	testkit.Check(t, c.Check(ctx))
	single, err := Preset("single")
	testkit.Check(t, err)
	made, err := c.Create(ctx, Server, "a", single.Body("a", true))
	testkit.Check(t, err)
	got, err := c.Get(ctx, Server, "a")
	found, err2 := c.Find(ctx, "a")
	if err := errors.Join(err, err2); err != nil || got != made || found != made || made.URI == "" || made.AuthURI != "" {
		t.Errorf("%+v and %+v, %v; made was %+v", got, found, err, made)
	}
	_, err = c.Create(ctx, Server, "a", single.Body("a", true))
	testkit.ErrorContains(t, err, "ServersError: servers with id a already exists.")
	// Remove removes only parts of the cluster.
	for id, kind := range map[string]string{"a-part-member0": "servers", "a-part-config": "replica_sets",
		"ab-part-1": "servers", "b": "servers"} {
		s.AddPart(kind, id)
	}
	for _, want := range []bool{true, false} {
		there, err := c.Remove(ctx, Server, "a")
		testkit.Equal(t, "it existed", []any{there, err}, []any{want, nil})
	}
	testkit.Equal(t, "left", s.Clusters(), []string{"servers/ab-part-1", "servers/b"})
	_, err = c.Get(ctx, Server, "a")
	_, err2 = c.Find(ctx, "a")
	_, err3 := c.Servers(ctx, Server, "a")
	for i, err := range []error{err, err2, err3} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("request %d for a removed cluster: %v", i, err)
		}
	}
}

// Errors contain the service's message and no credentials.
func TestFaults(t *testing.T) {
	// net/http detects a closed connection only after the body was read.
	hang := func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, body) }
	}
	raise := func(what string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fakeorchestration.Raise(w, what) }
	}
	for _, r := range []struct {
		reason  string
		handler http.HandlerFunc
		want    string
		status  int
	}{
		{"a Python exception", raise("errors.TimeoutError: Could not start Server. Please check server log"),
			"500: errors.TimeoutError: Could not start Server. Please check server log", 500},
		{"a message of several lines", raise("pymongo.errors.OperationFailure: not\n  master: it is\n  a secondary"),
			"500: pymongo.errors.OperationFailure: not master: it is a secondary", 500},
		{"two exceptions", status(500,
			"Traceback (most recent call last):\n  x\nKeyError: 'a'\n\nDuring handling of the above exception, "+
				"another exception occurred:\n\nTraceback (most recent call last):\n  y\nOSError: gone\n"),
			"500: OSError: gone (KeyError: 'a')", 500},
		{"a page of a web server", status(404,
			"<!DOCTYPE html><html><head><title>Error: 404 Not Found</title><style>a{}</style></head>"+
				"<body><h1>Error: 404 Not Found</h1><p>Not found: <tt>'/v2/'</tt></p></body></html>"),
			"404: Error: 404 Not Found Not found: '/v2/'", 404},
		{"a status without a body", status(503, ""), "503 Service Unavailable", 503},
		{"an unknown status", status(599, ""), ": 599", 599},
		{"control characters", status(500, "a\x1b[31mb\x00\nc"), "500: a [31mb c", 500},
		{"a very long body", status(500, strings.Repeat("x", 1<<16)), "xxx…", 500},
		{"not JSON", status(200, "<html>hello"), "not the JSON of mongo-orchestration: <html>hello", 0},
		{"incomplete JSON", status(200, `{"id": "a", "mongodb`), "not the JSON of mongo-orchestration", 0},
		{"a list", status(200, "[]"), "not the JSON of mongo-orchestration", 0},
		{"an empty answer", status(200, ""), "not the JSON of mongo-orchestration", 0},
		{"no connection string", status(200, `{"id": "a", "mongodb_uri": ""}`), "no mongodb_uri", 0},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { hang(r) }, "no answer within 100ms", 0},
		{"an incomplete answer", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"id":`)
			_ = http.NewResponseController(w).Flush()
			hang(r)
		}, "no answer within 100ms", 0},
		{"a broken connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF", 0},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
			"it redirects the request", 0},
	} {
		t.Run(r.reason, func(t *testing.T) {
			s := answering(t, func(w http.ResponseWriter, q *http.Request) {
				testkit.Equal(t, "the content type is JSON", q.Header.Get("Content-Type") == "application/json",
					q.Method == http.MethodPut)
				r.handler(w, q)
			})
			limit := testkit.Patience
			if strings.Contains(r.want, "no answer") {
				limit = 100 * time.Millisecond
			}
			c := client(t, strings.Replace(s.URL, "//", "//ann:"+testkit.Secret+"@", 1))
			c.CreateLimit, c.askLimit = limit, limit
			_, err1 := c.Create(t.Context(), Server, "a", map[string]any{"password": testkit.Secret})
			_, err2 := c.Get(t.Context(), Server, "a")
			for _, err := range []error{err1, err2} {
				testkit.ErrorContains(t, err, r.want, s.URL+"/v1/servers/a: ")
				var e *Error
				if !errors.As(err, &e) || e.Status != r.status || len(err.Error()) > 3000 {
					t.Fatalf("%+v", err)
				}
				testkit.Equal(t, "unanswered", e.Unanswered, strings.Contains(r.want, "no answer") || r.want == "EOF")
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	s := answering(t, http.NotFound)
	s.Close()
	c := client(t, s.URL)
	err := c.Check(t.Context())
	testkit.ErrorContains(t, err, "connection refused")
	if e := new(Error); !errors.As(err, &e) || e.Unanswered {
		t.Errorf("%+v", err)
	}
	if _, err := c.Remove(t.Context(), Server, "a"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("Remove without a service: %v", err)
	}
	other := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"hello": "world"}`) })
	testkit.ErrorContains(t, client(t, other.URL).Check(t.Context()), "something other than mongo-orchestration answers")
}

// Canceling the context interrupts a request, with the cause as the error.
func TestInterruption(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := answering(t, func(_ http.ResponseWriter, r *http.Request) { cancel(errors.New("enough")); <-r.Context().Done() })
	_, err := client(t, s.URL).Get(ctx, Server, "a")
	testkit.ErrorContains(t, err, ": enough")
}

// late is a context past its deadline whose timer has not fired yet, as on a busy machine.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

// A refused connection shows that a host is closed. One that timed out does not.
func TestOpen(t *testing.T) {
	c := client(t, fakeorchestration.Start(t).URL)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	host := listener.Addr().String()
	testkit.Equal(t, "in time", c.open(t.Context(), host), true)
	testkit.Equal(t, "too late", c.open(late{t.Context()}, host), true)
	testkit.Check(t, listener.Close())
	testkit.Equal(t, "closed", c.open(t.Context(), host), false)
}
