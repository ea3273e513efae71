package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/specs/source"
)

// failPoint is a fail point that a test set ("Disabling Fail Points").
type failPoint struct {
	name    string
	address string         // of the server, "" if unknown
	service *bson.ObjectID // behind a load balancer
	uri     string         // of the client that set it
}

// off disables a fail point on its server or, if that is unknown, on all. A fail point ends with the server's process.
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
		_, err := retriedAfter(ctx, anyError, func() (bson.Raw, error) {
			reply, err := s.run(ctx, host, "admin", turnOff(f.name))
			if err != nil && s.ended(ctx, host) {
				return nil, nil
			}
			return reply, err
		})
		if err != nil {
			failures = append(failures, &stillOnError{f.name, err})
		}
	}
	return errors.Join(failures...)
}

// stillOnError is why a fail point could not be turned off.
type stillOnError struct {
	name string
	why  error
}

func (e *stillOnError) Error() string {
	return fmt.Sprintf("fail point %s could not be turned off: %s", e.name, e.why)
}

func (e *stillOnError) Unwrap() error { return e.why }

// anyError retries after all errors: a fail point may fail the handshake of the connection that disables it.
func anyError(error) bool { return true }

func turnOff(name string) bson.D {
	return bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: "off"}}
}

// offBehindBalancer opens connections and disables a fail point on each until one
// reaches its service, since a load balancer chooses the service.
func (s *site) offBehindBalancer(ctx context.Context, f failPoint) error {
	uri, connections := cmp.Or(f.uri, s.deployment.URI()), 64
	if f.service == nil { // unknown
		connections = 1
		if uri != s.deployment.SingleURI() {
			connections = 16
		}
	}
	var failure error
	for range connections {
		service, err := retriedAfter(ctx, anyError, func() (*bson.ObjectID, error) {
			return s.commands.once(ctx, uri, "admin", turnOff(f.name))
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
		return &stillOnError{f.name, fmt.Errorf("behind the load balancer: %w", failure)}
	case f.service != nil:
		return &stillOnError{f.name, fmt.Errorf("no connection of %d reached service %s", connections, f.service.Hex())}
	}
	return nil
}

// setFailPoint sets a fail point through a client ("failPoint").
func setFailPoint(ctx context.Context, t *testRun, c call) *fault {
	point := c.value("failPoint")
	name := point.Get("configureFailPoint").Text()
	arguments, err := (&source.Value{Kind: source.Document}).With("command", point).Raw()
	if err != nil {
		return c.failf("%s", err)
	}
	outcome, f := t.query(ctx, c.path, c.op.Position, c.text("client"), engine.OpConfigureFailPoint, arguments)
	t.recordFailPoint(name, c.text("client"), outcome)
	t.blocksFrom(arguments.Lookup("command").Document())
	if f == nil && outcome.Err != nil {
		f = c.breakf("the fail point %s could not be set: %s", name, outcome.Err.Message)
	}
	return f
}

// targetFailPoint sets a fail point on the mongos that a session is pinned to,
// through the runner's own client ("targetedFailPoint").
func targetFailPoint(ctx context.Context, t *testRun, c call) *fault {
	name := c.value("failPoint").Get("configureFailPoint").Text()
	command, err := c.value("failPoint").Raw()
	if err != nil {
		return c.failf("%s", err)
	}
	address, f := t.pinned(ctx, c)
	switch {
	case f != nil:
		return f
	case address == "":
		return c.failf("%s is not pinned to a mongos", c.text("session"))
	}
	t.mu.Lock()
	t.failPoints = append(t.failPoints, failPoint{name: name, address: address})
	t.mu.Unlock()
	t.blocksFrom(command)
	_, err = t.site.commands.at(ctx, address, "admin", command)
	f = ended(ctx, c.path, c.op.Position, "the fail point to be set on "+address)
	if f == nil && err != nil {
		f = c.breakf("the fail point %s could not be set on %s: %s", name, address, err)
	}
	return f
}
