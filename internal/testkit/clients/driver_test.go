package clients

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/unified-test-runner/utr/internal/testkit"
)

var d = testkit.D // a document of keys and values in turn

const goDatabase = "clients_go"

// goSteps lists the steps that suites with this driver (soak/suites) do not cover.
var goSteps = map[string]func(*goClient){
	"connects":       (*goClient).connects,
	"getMore":        (*goClient).getMore,
	"compressors":    (*goClient).compressors,
	"authentication": (*goClient).authentication,
}

// goDriver executes steps with the Go driver, in this process.
func goDriver(t *testing.T, s *served, names []string) report {
	t.Helper()
	c := &goClient{t: t, s: s, ctx: testkit.Context(t), sent: map[string]int{}}
	c.client = s.connect(t, s.uri, c.monitored)
	c.single = s.connect(t, s.single)
	var r report
	for _, name := range names {
		line := c.step(name)
		r.lines = append(r.lines, line)
		if strings.HasPrefix(line, "FAILED") {
			return r
		}
	}
	r.lines = append(r.lines, "done with the Go driver")
	return r
}

// goClient executes steps. They panic with a failure or a skip. The method step converts it to a line.
type goClient struct {
	t              *testing.T
	s              *served
	ctx            context.Context
	client, single *mongo.Client

	mu   sync.Mutex
	sent map[string]int // number of commands by name
}

type (
	failure string
	skip    string
)

func (c *goClient) step(name string) (line string) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case failure:
			line = fmt.Sprintf("FAILED %s: %s", name, why)
		case skip:
			line = fmt.Sprintf("skip %s: %s", name, why)
		default:
			panic(why)
		}
	}()
	goSteps[name](c)
	return "ok " + name
}

func fail(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func equal(got, want any, what string) {
	if !reflect.DeepEqual(got, want) {
		fail("%s: got %v, want %v", what, got, want)
	}
}

func good(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func must[T any](v T, err error) T {
	good(err, fmt.Sprintf("call that returns %T", v))
	return v
}

// failed expects a server error with a code.
func failed(err error, code int, what string) {
	var e mongo.ServerError
	if !errors.As(err, &e) || !e.HasErrorCode(code) {
		fail("%s: got %v, want code %d", what, err, code)
	}
}

// connect creates a client. At the end of the test, it does not send endSessions, because the server may have exited.
func (s *served) connect(t *testing.T, uri string, change ...func(*options.ClientOptions)) *mongo.Client {
	t.Helper()
	o := options.Client().ApplyURI(uri).SetServerSelectionTimeout(testkit.Patience / 2)
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		testkit.Check(t, err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		o.SetTLSConfig(&tls.Config{RootCAs: roots})
	}
	for _, f := range change {
		f(o)
	}
	client, err := mongo.Connect(o)
	testkit.Check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Disconnect(ctx)
	})
	return client
}

func (c *goClient) monitored(o *options.ClientOptions) {
	o.SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent[e.CommandName]++
	}})
}

// count returns how often a command was sent since the last call.
func (c *goClient) count(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer delete(c.sent, name)
	return c.sent[name]
}

// fresh returns a collection with only these documents.
func (c *goClient) fresh(name string, documents ...any) *mongo.Collection {
	collection := c.client.Database(goDatabase).Collection(name)
	good(collection.Drop(c.ctx), "drop "+name)
	if len(documents) > 0 {
		must(collection.InsertMany(c.ctx, documents))
	}
	return collection
}

func (c *goClient) all(cursor *mongo.Cursor, err error) []bson.D {
	good(err, "cursor")
	out := []bson.D{}
	good(cursor.All(c.ctx, &out), "reading the cursor")
	return out
}

func (c *goClient) hello(preference *readpref.ReadPref) bson.M {
	var reply bson.M
	o := options.RunCmd().SetReadPreference(preference)
	good(c.client.Database("admin").RunCommand(c.ctx, d("hello", 1), o).Decode(&reply), "hello")
	return reply
}

func (c *goClient) connects() {
	good(c.client.Ping(c.ctx, readpref.Primary()), "ping")
	hello := c.hello(readpref.Primary())
	kinds := map[string][2]any{
		"single": {}, "replicaset": {"rs0", nil}, "sharded": {nil, "isdbgrid"}, "load-balanced": {nil, "isdbgrid"},
	}
	equal([2]any{hello["setName"], hello["msg"]}, kinds[c.s.topology], "setName and msg")
	var build struct{ Version string }
	good(c.client.Database("admin").RunCommand(c.ctx, d("buildInfo", 1)).Decode(&build), "buildInfo")
	equal(strings.HasPrefix(build.Version, c.s.version+"."), true, "version "+build.Version)
	if c.s.topology == "replicaset" {
		equal(c.hello(readpref.Secondary())["secondary"], true, "read from a secondary")
	}
}

func (c *goClient) getMore() {
	collection := c.fresh("batches", slices.Repeat([]any{bson.D{}}, 10)...)
	c.count("getMore")
	got := c.all(collection.Find(c.ctx, bson.D{}, options.Find().SetBatchSize(3)))
	equal(len(got), 10, "documents")
	equal(c.count("getMore"), 3, "getMore sent")
	got = c.all(collection.Aggregate(c.ctx, bson.A{d("$match", bson.D{})}, options.Aggregate().SetBatchSize(4)))
	equal(len(got), 10, "documents of aggregate")
	equal(c.count("getMore"), 2, "getMore sent for aggregate")
	cursor := must(collection.Find(c.ctx, bson.D{}, options.Find().SetBatchSize(2)))
	equal(cursor.Next(c.ctx), true, "a first document")
	c.count("killCursors")
	good(cursor.Close(c.ctx), "close")
	equal(c.count("killCursors"), 1, "killCursors sent")
	// Use one server, because the cursor does not exist on another mongos.
	database := c.single.Database(goDatabase)
	session := must(c.single.StartSession())
	defer session.EndSession(c.ctx)
	ctx := mongo.NewSessionContext(c.ctx, session)
	cursor = must(database.Collection("batches").Find(ctx, bson.D{}, options.Find().SetBatchSize(2)))
	good(database.RunCommand(ctx, d("killCursors", "batches", "cursors", bson.A{cursor.ID()})).Err(), "killCursors")
	equal([3]bool{cursor.Next(ctx), cursor.Next(ctx), cursor.Next(ctx)}, [3]bool{true, true, false},
		"documents of a killed cursor")
	failed(cursor.Err(), 43, "getMore of a killed cursor")
}

func (c *goClient) compressors() {
	collection := c.fresh("compressed", d("_id", 1, "x", strings.Repeat("y", 5000)))
	for _, name := range compressorNames {
		client := c.s.connect(c.t, c.s.uri, func(o *options.ClientOptions) { o.SetCompressors([]string{name}) })
		other := client.Database(goDatabase).Collection("compressed")
		must(other.InsertOne(c.ctx, d("_id", name)))
		equal(must(other.CountDocuments(c.ctx, d("x", strings.Repeat("y", 5000)))), int64(1), name)
	}
	equal(must(collection.CountDocuments(c.ctx, bson.D{})), int64(4), "documents")
}

func (c *goClient) authentication() {
	if c.s.user == "" {
		panic(skip("access control is off"))
	}
	var status struct {
		AuthInfo struct{ AuthenticatedUsers []struct{ User, DB string } }
	}
	good(c.client.Database("admin").RunCommand(c.ctx, d("connectionStatus", 1)).Decode(&status), "connectionStatus")
	equal(fmt.Sprint(status.AuthInfo.AuthenticatedUsers), fmt.Sprintf("[{%s admin}]", c.s.user), "authenticated users")
	u := must(url.Parse(c.s.single))
	u.User = url.UserPassword(c.s.user, "wrong")
	wrong := c.s.connect(c.t, u.String())
	failed(wrong.Database(goDatabase).Collection("x").FindOne(c.ctx, bson.D{}).Err(), 18, "a wrong password")
	u.User = nil
	failed(c.s.connect(c.t, u.String()).Database(goDatabase).Collection("x").FindOne(c.ctx, bson.D{}).Err(), 13,
		"reading without authentication")
}
