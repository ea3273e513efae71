package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// failPoint is a fail point that a test has set, and where it has to be
// turned off ("Disabling Fail Points").
type failPoint struct {
	name    string
	address string         // of the server, "" if the engine does not know
	service *bson.ObjectID // behind a load balancer
	uri     string         // of the client that set it, behind a load balancer
}

// off turns a fail point off on the very server where it was set, or, if that
// is not known, on each that can be reached.
func (s *site) off(ctx context.Context, f failPoint) error {
	if s.about.Topology == deployment.LoadBalanced {
		return s.offBehindBalancer(ctx, f)
	}
	hosts := s.about.Hosts
	if f.address != "" {
		hosts = []string{f.address}
	}
	var failures []error
	for _, host := range hosts {
		failures = append(failures, retriedAfter(ctx, strikesItself, func() error { return s.offAt(ctx, host, f.name) }))
	}
	return errors.Join(failures...)
}

// strikesItself reports that any error passes: a fail point that is to fail a few times
// can fail the handshake of the connection that turns it off.
func strikesItself(error) bool { return true }

func (s *site) offAt(ctx context.Context, address, name string) error {
	if _, err := s.runAt(ctx, address, "admin", turnOff(name)); err != nil {
		return fmt.Errorf("fail point %s could not be turned off: %w", name, err)
	}
	return nil
}

func turnOff(name string) bson.D {
	return bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: "off"}}
}

// connections bounds the search for a service behind a load balancer, which
// hands out connections as it likes.
const connections = 64

// offBehindBalancer turns a fail point off on the service where it was set. A
// load balancer cannot be told where to go: new connections are opened until
// one has arrived there. Turning it off elsewhere on the way does no harm.
func (s *site) offBehindBalancer(ctx context.Context, f failPoint) error {
	uri := f.uri
	if uri == "" {
		uri = s.deployment.URI()
	}
	enough := connections
	if f.service == nil {
		enough = 1 // nothing says when the right one is met
		if uri != s.deployment.SingleURI() {
			enough = connections / 4
		}
	}
	var failure error
	for range enough {
		var service *bson.ObjectID
		err := retriedAfter(ctx, strikesItself, func() (err error) {
			service, err = s.commands.once(ctx, uri, "admin", turnOff(f.name))
			return err
		})
		if err != nil {
			failure = err
		} else if f.service != nil && service != nil && *service == *f.service {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	switch {
	case failure != nil:
		return fmt.Errorf("fail point %s could not be turned off behind the load balancer: %w", f.name, failure)
	case f.service != nil:
		return fmt.Errorf("fail point %s could not be turned off: no connection of %d reached service %s", f.name, enough, f.service.Hex())
	}
	return nil
}

// setFailPoint sets a fail point through a client ("failPoint").
func setFailPoint(ctx context.Context, t *testRun, c call) *fault {
	command, name, f := failPointOf(c)
	if f != nil {
		return f
	}
	arguments, err := bson.Marshal(bson.D{{Key: "command", Value: command}})
	if err != nil {
		return c.failf("%s", err)
	}
	outcome, f := t.ask(ctx, c.path, c.op.Position, c.text("client"), engine.OpConfigureFailPoint, arguments)
	if outcome.Err == nil || outcome.Err.Client {
		// Even an answer that never arrived may have been that it is set.
		t.recordFailPoint(name, c.text("client"), outcome)
	}
	if f == nil && outcome.Err != nil {
		f = c.failf("the fail point %s could not be set: %s", name, outcome.Err.Message)
	}
	return f
}

// targetFailPoint sets a fail point on the mongos that a session is pinned to,
// through the runner's own client of that mongos ("targetedFailPoint").
func targetFailPoint(ctx context.Context, t *testRun, c call) *fault {
	command, name, f := failPointOf(c)
	if f != nil {
		return f
	}
	address, f := t.pinned(ctx, c)
	switch {
	case f != nil:
		return f
	case address == "":
		return c.failf("%s is not pinned to a mongos", c.text("session"))
	}
	t.locked(func() { t.failPoints = append(t.failPoints, failPoint{name: name, address: address}) })
	_, err := t.site.commands.at(ctx, address, "admin", command)
	if f := ended(ctx, c.path, c.op.Position, "the fail point to be set on "+address); f != nil {
		return f
	}
	if err != nil {
		return c.failf("the fail point %s could not be set on %s: %s", name, address, err)
	}
	return nil
}

// failPointOf gives a fail point of a test, which names itself: other tests are
// flawed.
func failPointOf(c call) (command bson.Raw, name string, f *fault) {
	v := c.value("failPoint")
	command, err := v.Raw()
	if err != nil {
		return nil, "", c.failf("%s", err)
	}
	return command, v.Get("configureFailPoint").Text(), nil
}
