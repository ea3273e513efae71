package runner

import (
	"context"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// The way to a service behind a load balancer is kept once it was found, led
// nowhere else, and is forgotten when it is lost.
func TestRoutes(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	source, err := deployment.OpenEmbedded(ctx, deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.LoadBalanced}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}()
	d, err := source.Acquire(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	made, err := dial(d)
	if err != nil {
		t.Fatal(err)
	}
	c := made.(*clients)
	defer c.close()
	ping := bson.D{{Key: "ping", Value: 1}}

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
