package runner

import (
	"context"
	"slices"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

var ping = bson.D{{Key: "ping", Value: 1}}

// The way to a service behind a load balancer is kept once it was found, led
// nowhere else, and is forgotten when it is lost.
func TestRoutes(t *testing.T) {
	ctx := testkit.Context(t)
	d := lend(t, embedded.Options{Topology: embedded.LoadBalanced}, deployment.ClusterOptions{})
	made, err := dialer("")(d)
	testkit.Check(t, err)
	c := made.(*clients)
	defer c.close()

	var services []bson.ObjectID
	for len(c.routes) < 2 {
		_, service, err := c.once(ctx, d.URI(), "admin", ping)
		if err != nil || service == nil {
			t.Fatalf("no service: %v", err)
		}
		if c.routes[*service] == nil {
			t.Fatalf("the way to %s is not kept", service)
		}
		services = append(services, *service)
	}
	first, other := services[0], services[len(services)-1]
	for range 3 {
		if !c.again(ctx, first, "admin", ping) || !c.again(ctx, other, "admin", ping) {
			t.Fatal("a way that was kept is not found")
		}
	}
	if c.again(ctx, bson.NewObjectID(), "admin", ping) {
		t.Error("a way to nowhere is found")
	}
	// What was kept leads elsewhere: as if its connection had been made anew.
	c.routes[first], c.routes[other] = c.routes[other], c.routes[first]
	if c.again(ctx, first, "admin", ping) || c.routes[first] != nil {
		t.Error("a way that leads elsewhere is taken for the right one")
	}
	if c.again(ctx, other, "none", bson.D{{Key: "noSuchCommand", Value: 1}}) || c.routes[other] != nil {
		t.Error("a way that fails is kept")
	}
}

// The contents of collections are read from the primary, with local read
// concern, sorted by _id, whatever the connection string says.
func TestDocuments(t *testing.T) {
	ctx := testkit.Context(t)
	d := lend(t, embedded.Options{Topology: embedded.ReplicaSet}, deployment.ClusterOptions{})
	var finds []bson.Raw
	monitor := &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if e.CommandName == "find" {
			finds = append(finds, bson.Raw(slices.Clone(e.Command)))
		}
	}}
	client, err := mongo.Connect(internal(d.URI()+"&readPreference=secondary&readConcernLevel=majority", "").SetMonitor(monitor))
	testkit.Check(t, err)
	c := &clients{client: client}
	defer c.close()
	insert := bson.D{{Key: "insert", Value: "coll"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 1}}}}}
	if _, err := c.primary(ctx, "db", insert); err != nil {
		t.Fatal(err)
	}
	got, err := c.documents(ctx, "db", "coll")
	if err != nil || len(got) != 2 || got[0].Lookup("_id").AsInt64() != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if len(finds) != 1 {
		t.Fatalf("%d finds", len(finds))
	}
	if level, _ := finds[0].Lookup("readConcern", "level").StringValueOK(); level != "local" {
		t.Errorf("read concern %q", level)
	}
	if mode, ok := finds[0].Lookup("$readPreference", "mode").StringValueOK(); ok && mode != "primary" {
		t.Errorf("read preference %q", mode)
	}
}

// The runner's own clients declare the version of the Stable API that the run
// declares: servers with requireApiVersion refuse those that do not, wherever
// they are aimed.
func TestDialedAPI(t *testing.T) {
	ctx := testkit.Context(t)
	for _, kind := range []embedded.Topology{embedded.ReplicaSet, embedded.LoadBalanced} {
		required := embedded.Options{Topology: kind, Parameters: bson.D{{Key: "requireApiVersion", Value: true}}}
		lent := lend(t, required, deployment.ClusterOptions{ServerAPI: "1"})
		c, err := dialer("1")(lent)
		testkit.Check(t, err)
		defer c.close()
		_, primary := c.primary(ctx, "admin", ping)
		_, at := c.at(ctx, lent.Description().Hosts[0], "admin", ping)
		_, _, once := c.once(ctx, lent.URI(), "admin", ping)
		_, documents := c.documents(ctx, "db", "none")
		for way, err := range map[string]error{"primary": primary, "one server": at, "a new connection": once, "documents": documents} {
			if err != nil {
				t.Errorf("%s: %s: %v", kind, way, err)
			}
		}
	}
}
