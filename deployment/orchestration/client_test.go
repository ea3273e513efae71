package orchestration

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, address string, l Limits) *Client {
	t.Helper()
	c, err := New(address, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNew(t *testing.T) {
	for _, r := range []struct {
		reason, address, url string
		local                bool
	}{
		{"no version is version 1", "http://localhost:8889", "http://localhost:8889/v1", true},
		{"nor is a slash", "http://127.0.0.1:8889/", "http://127.0.0.1:8889/v1", true},
		{"the version itself", "http://[::1]:8889/v1/", "http://[::1]:8889/v1", true},
		{"behind a proxy", "https://ci.example.net/orchestration/v1", "https://ci.example.net/orchestration/v1", false},
		{"credentials are not shown", "http://ann:s3cret@host", "http://host/v1", false},
		{"no scheme", "localhost:8889", "", false},
		{"another one", "mongodb://localhost:8889", "", false},
		{"no host", "http:///v1", "", false},
		{"nothing", "", "", false},
		{"a query", "http://localhost/?a=b", "", false},
		{"no URL, with a password", "http://ann:s3cret@host:port", "", false},
	} {
		c, err := New(r.address, Limits{})
		switch {
		case (err == nil) != (r.url != ""):
			t.Errorf("%s: %v", r.reason, err)
		case err != nil && strings.Contains(err.Error(), "s3cret"):
			t.Errorf("%s: the error tells the password: %v", r.reason, err)
		case err == nil && (c.URL() != r.url || c.Local() != r.local):
			t.Errorf("%s: %s, local %t", r.reason, c.URL(), c.Local())
		}
	}
}

func single(t *testing.T) Configuration {
	t.Helper()
	c, err := Preset("single")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMakeAskRemove(t *testing.T) {
	ctx := context.Background()
	s := twin.Start(t)
	c := client(t, s.URL, Limits{})
	if err := c.Check(ctx); err != nil {
		t.Fatal(err)
	}
	made, err := c.Create(ctx, Server, "a", single(t).Body("a", true))
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []func() (Cluster, error){
		func() (Cluster, error) { return c.Get(ctx, Server, "a") },
		func() (Cluster, error) { return c.Find(ctx, "a") },
	} {
		if got, err := ask(); err != nil || got != made || made.URI == "" || made.AuthURI != "" {
			t.Errorf("%+v, %v; made was %+v", got, err, made)
		}
	}
	if err := c.Reset(ctx, Server, "a"); err != nil {
		t.Error(err)
	}
	if _, err := c.Create(ctx, Server, "a", single(t).Body("a", true)); err == nil || !strings.HasSuffix(err.Error(), "ServersError: servers with id a already exists.") {
		t.Errorf("the same id once more: %v", err)
	}
	// Only what belongs to the cluster goes with it.
	for id, kind := range map[string]string{"a-part-member0": "servers", "a-part-config": "replica_sets", "ab-part-1": "servers", "b": "servers"} {
		s.AddPart(kind, id)
	}
	for _, want := range []bool{true, false} {
		if found, err := c.Remove(ctx, Server, "a"); err != nil || found != want {
			t.Errorf("it was there: %t, %v, want %t", found, err, want)
		}
	}
	if left := s.Clusters(); !slices.Equal(left, []string{"servers/ab-part-1", "servers/b"}) {
		t.Errorf("left are %v", left)
	}
	for reason, err := range map[string]error{
		"it is gone":        func() error { _, err := c.Get(ctx, Server, "a"); return err }(),
		"nor is it another": func() error { _, err := c.Find(ctx, "a"); return err }(),
		"nothing to reset":  c.Reset(ctx, Server, "a"),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// What goes wrong is said in the words of the service, in bounded time, and
// without credentials.
func TestFaults(t *testing.T) {
	// The end of a connection is noticed once the request is read.
	hang := func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, body) }
	}
	for _, r := range []struct {
		reason  string
		handler http.HandlerFunc
		want    string
		status  int
	}{
		{"an error of Python", func(w http.ResponseWriter, _ *http.Request) {
			twin.Raise(w, "mongo_orchestration.errors.TimeoutError: Could not start Server. Please check server log located in /tmp/mongod.log")
		}, "500: mongo_orchestration.errors.TimeoutError: Could not start Server. Please check server log located in /tmp/mongod.log", 500},
		{"one of several lines", func(w http.ResponseWriter, _ *http.Request) {
			twin.Raise(w, "pymongo.errors.OperationFailure: not\n  master: it is\n  a secondary")
		}, "500: pymongo.errors.OperationFailure: not master: it is a secondary", 500},
		{"one after another", status(500, "Traceback (most recent call last):\n  x\nKeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  y\nOSError: gone\n"), "500: OSError: gone (KeyError: 'a')", 500},
		{"a page of a web server", status(404, "<!DOCTYPE html><html><head><title>Error: 404 Not Found</title><style>a{}</style></head><body><h1>Error: 404 Not Found</h1><p>Not found: <tt>'/v2/'</tt></p></body></html>"), "404: Error: 404 Not Found Not found: '/v2/'", 404},
		{"nothing but a number", status(503, ""), "503 Service Unavailable", 503},
		{"a number that nobody knows", status(599, ""), ": 599", 599},
		{"control characters", status(500, "a\x1b[31mb\x00\nc"), "500: a [31mb c", 500},
		{"a book", status(500, strings.Repeat("x", 1<<16)), "xxx…", 500},
		{"no JSON", status(200, "<html>hello"), "not the JSON of mongo-orchestration: <html>hello", 0},
		{"half of it", status(200, `{"id": "a", "mongodb`), "not the JSON of mongo-orchestration", 0},
		{"a list", status(200, "[]"), "not the JSON of mongo-orchestration", 0},
		{"nothing", status(200, ""), "not the JSON of mongo-orchestration", 0},
		{"no connection string", status(200, `{"id": "a", "mongodb_uri": ""}`), "no mongodb_uri", 0},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { hang(r) }, "no answer within 300ms", 0},
		{"half an answer", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"id":`)
			_ = http.NewResponseController(w).Flush()
			hang(r)
		}, "no answer within 300ms", 0},
		{"a connection that breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF", 0},
		{"a way to somewhere else", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "asks to ask elsewhere", 0},
	} {
		t.Run(r.reason, func(t *testing.T) {
			s := httptest.NewServer(r.handler)
			defer s.Close()
			const limit = 300 * time.Millisecond
			address := strings.Replace(s.URL, "//", "//ann:s3cret@", 1)
			c := client(t, address, Limits{Create: limit, Delete: limit, Ask: limit})
			for name, do := range map[string]func() error{
				"create": func() error {
					_, err := c.Create(context.Background(), Server, "a", map[string]any{"password": "hunter22"})
					return err
				},
				"get": func() error { _, err := c.Get(context.Background(), Server, "a"); return err },
			} {
				began := time.Now()
				err := do()
				var e *Error
				if !errors.As(err, &e) || e.Status != r.status || !strings.Contains(err.Error(), r.want) {
					t.Errorf("%s: %v, want %q", name, err, r.want)
					continue
				}
				if waited := strings.Contains(r.want, "no answer within") || r.want == "EOF"; e.Unanswered != waited {
					t.Errorf("%s: can it still happen? %t", name, e.Unanswered)
				}
				if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "hunter22") || len(err.Error()) > 3000 {
					t.Errorf("%s: %v", name, err)
				}
				if !strings.Contains(err.Error(), s.URL+"/v1/servers/a: ") {
					t.Errorf("%s: where is not said: %v", name, err)
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("%s took %s", name, took)
				}
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	c := client(t, s.URL, Limits{})
	err := c.Check(context.Background())
	var e *Error
	if !errors.As(err, &e) || e.Unanswered || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
	if _, err := c.Remove(context.Background(), Server, "a"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("a service that is gone tells nothing about its clusters: %v", err)
	}
}

func TestSomethingElseAnswers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"hello": "world"}`) }))
	defer s.Close()
	if err := client(t, s.URL, Limits{}).Check(context.Background()); err == nil || !strings.Contains(err.Error(), "something other than mongo-orchestration answers") {
		t.Error(err)
	}
}

// A request ends with its context, and says so.
func TestInterruption(t *testing.T) {
	reached := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { close(reached); <-r.Context().Done() }))
	defer s.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { <-reached; cancel(errors.New("enough")) }()
	_, err := client(t, s.URL, Limits{}).Get(ctx, Server, "a")
	if err == nil || !strings.HasSuffix(err.Error(), ": enough") {
		t.Error(err)
	}
}
