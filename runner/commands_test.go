package runner

import (
	"context"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/replies"
	"github.com/unified-test-runner/utr/specs"
)

var document = testkit.Extended[bson.D, string] // a document in Extended JSON

// acquire starts an embedded deployment and acquires it as an existing cluster.
func acquire(t *testing.T, options embedded.Options, as deployment.ClusterOptions) deployment.Deployment {
	t.Helper()
	d, err := cluster(t, options, as).Acquire(testkit.Context(t), 0)
	testkit.Check(t, err)
	return d
}

func cluster(t *testing.T, options embedded.Options, as deployment.ClusterOptions) deployment.Source {
	t.Helper()
	ctx := testkit.Context(t)
	d, err := embedded.Start(ctx, options)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	as.URI, as.SingleURI = d.URI(), d.SingleURI()
	source, err := deployment.OpenCluster(ctx, as)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = source.Close() })
	return source
}

// Collections are read from the primary, with local read concern, sorted by _id,
// even if the connection string specifies something else.
func TestDocuments(t *testing.T) {
	ctx := testkit.Context(t)
	d := acquire(t, embedded.Options{Topology: embedded.ReplicaSet}, deployment.ClusterOptions{})
	var finds []bson.Raw
	monitor := &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if e.CommandName == "find" {
			finds = append(finds, bson.Raw(slices.Clone(e.Command)))
		}
	}}
	client, err := mongo.Connect(internal(d.URI()+"&readPreference=secondary&readConcernLevel=majority",
		"").SetMonitor(monitor))
	testkit.Check(t, err)
	c := &clients{clients: map[string]*mongo.Client{defaultServer: client}}
	defer c.close()
	_, err = c.at(ctx, defaultServer, "db", document(t, `{"insert": "coll", "documents": [{"_id": 2}, {"_id": 1}]}`))
	testkit.Check(t, err)
	got, err := (&site{commands: c}).documents(ctx, "db", "coll")
	if err != nil || len(got) != 2 || got[0].Lookup("_id").AsInt64() != 1 || len(finds) != 1 {
		t.Fatalf("got %v, %v, by %v", got, err, finds)
	}
	if level, _ := finds[0].Lookup("readConcern", "level").StringValueOK(); level != "local" {
		t.Errorf("read concern %q", level)
	}
	if mode, ok := finds[0].Lookup("$readPreference", "mode").StringValueOK(); ok && mode != "primary" {
		t.Errorf("read preference %q", mode)
	}
}

// A late reply is not the reply to another command of the runner's own clients.
func TestRepliesAreChecked(t *testing.T) {
	testkit.Equal(t, "dialer", internal("mongodb://a/", "").Dialer == replies.Dialer{}, true)
}

// The runner's own clients declare the version of the Stable API, as servers with
// requireApiVersion require.
func TestDialedAPI(t *testing.T) {
	ctx, ping := testkit.Context(t), document(t, `{"ping": 1}`)
	for _, kind := range []embedded.Topology{embedded.ReplicaSet, embedded.LoadBalanced} {
		required := embedded.Options{Topology: kind, Parameters: document(t, `{"requireApiVersion": true}`)}
		d := acquire(t, required, deployment.ClusterOptions{ServerAPI: "1"})
		c, err := dialer("1")(d)
		testkit.Check(t, err)
		defer c.close()
		_, primary := c.at(ctx, defaultServer, "admin", ping)
		_, at := c.at(ctx, d.Description().Hosts[0], "admin", ping)
		_, once := c.once(ctx, d.URI(), "admin", ping)
		_, documents := (&site{commands: c}).documents(ctx, "db", "none")
		testkit.Equal(t, string(kind), []error{primary, at, once, documents}, make([]error, 4))
	}
}

// While others read the initial data of a test that failed, it stays, and no more tests may read it.
func TestSeedBesideReaders(t *testing.T) {
	ctx := testkit.Context(t)
	r := &run{dial: dialer(""), claims: []*claims{newClaims()}}
	r.free = sync.NewCond(&r.mu)
	s, err := r.siteOf(acquire(t, embedded.Options{}, deployment.ClusterOptions{}))
	testkit.Check(t, err)
	defer s.commands.close()
	reader := job{suite: &specs.Suite{InitialData: []specs.CollectionData{{DatabaseName: "db", CollectionName: "c"}}},
		test: &specs.Test{}, uses: footprint{names: []string{"db.c"}, reads: "data"}}
	seeds := func(reason string, documents int, joins bool) {
		t.Helper()
		testkit.Check(t, r.seed(ctx, s, reader))
		found, err := s.documents(ctx, "db", "c")
		testkit.Check(t, err)
		testkit.Equal(t, reason+": documents", len(found), documents)
		testkit.Equal(t, reason+": another test may read it", r.claims[0].try(reader.uses), joins)
	}
	testkit.Equal(t, "the first test begins", r.claims[0].try(reader.uses), true)
	seeds("the first test", 0, true)
	_, err = s.run(ctx, defaultServer, "db", document(t, `{"insert": "c", "documents": [{}]}`))
	testkit.Check(t, err)
	r.fill(reader, reader.uses.names, false)
	s.record(operations.Anything, reader.uses)
	seeds("beside a test that failed", 1, false)
	r.leave(reader)
	seeds("after a test that failed", 0, true)
}

// Initial data is created again after a stepdown. A missing majority is an error.
func TestSeedWithoutAMajority(t *testing.T) {
	ctx := testkit.Context(t)
	s, err := (&run{dial: dialer("")}).siteOf(acquire(t, embedded.Options{Topology: embedded.ReplicaSet},
		deployment.ClusterOptions{}))
	testkit.Check(t, err)
	defer s.commands.close()
	value, err := source.ParseYAML("f", []byte(`[{_id: 1}, {_id: 2}]`))
	testkit.Check(t, err)
	data := []specs.CollectionData{{DatabaseName: "db", CollectionName: "c", Documents: value.Items}}
	for _, r := range []struct {
		reason, fails string
		ok            bool
	}{
		{"no error", `["ping"], "writeConcernError": {"code": 91, "errmsg": "x"}`, true},
		{"the primary shut down after the insert", `["insert"], "writeConcernError": {"code": 91, "errmsg": "x"}`, true},
		{"the primary stepped down after the drop", `["drop"], "writeConcernError": {"code": 11602, "errmsg": "x"}`, true},
		{"the secondaries are late", `["insert"], "writeConcernError": {"code": 64, "errmsg": "x"}`, false},
	} {
		_, err := s.run(ctx, defaultServer, "admin",
			document(t, `{"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": `+r.fails+`}}`))
		testkit.Check(t, err)
		if err := s.seed(ctx, &specs.Suite{InitialData: data}, &specs.Test{}, ReseedAlways, false); (err == nil) != r.ok {
			t.Errorf("%s: %v", r.reason, err)
		}
		if found, err := s.documents(ctx, "db", "c"); r.ok && (err != nil || len(found) != 2) {
			t.Errorf("%s: %v, %v", r.reason, found, err)
		}
	}
}
