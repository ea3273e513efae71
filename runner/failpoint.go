package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/result"
)

// failPoint is a fail point that a test configured ("Disabling Fail Points").
type failPoint struct {
	name    string
	address string         // of the server, "" if unknown
	service *bson.ObjectID // behind a load balancer
	uri     string         // of the client that set it

	command string // the bytes of configureFailPoint
	path    string // of the command in the suite
	at      source.Position
	on      bool   // it is set, not turned off
	idle    string // why it had no effect, if that is so
	before  *hits  // when it was set
}

// configured returns a fail point as a command configures it.
func configured(command bson.Raw, path string, at source.Position) *failPoint {
	f := &failPoint{command: string(command), path: path, at: at, idle: "no command matched it"}
	f.name, _ = command.Lookup("configureFailPoint").StringValueOK()
	mode := command.Lookup("mode")
	text, _ := mode.StringValueOK()
	f.on = text != "off"
	if document, ok := mode.DocumentOK(); ok && document.Lookup("times").IsZero() {
		f.idle = "no command matched it, or it spared all that did" // by skip or activationProbability
	}
	return f
}

// key identifies a fail point of a server.
func (f failPoint) key() string { return fmt.Sprint(f.name, f.address, f.service) }

// hits is how often a fail point has had an effect, as the reply of configureFailPoint reports it since 4.4. It is nil
// if the server did not report it.
type hits int64

func hitsIn(reply bson.Raw) *hits {
	n, ok := reply.Lookup("count").AsInt64OK()
	if !ok {
		return nil
	}
	count := hits(n)
	return &count
}

// off disables a fail point on its server or, if that is unknown, on all. A fail point ends with the server's process.
// It returns the hits on one server.
func (s *site) off(ctx context.Context, f failPoint) (*hits, error) {
	if s.about.Topology == deployment.LoadBalanced {
		return s.offBehindBalancer(ctx, f)
	}
	hosts := s.about.Hosts
	if f.address != "" {
		hosts = []string{f.address}
	}
	var failures []error
	var count *hits
	for _, host := range hosts {
		reply, err := retriedAfter(ctx, anyError, func() (bson.Raw, error) {
			reply, err := s.run(ctx, host, "admin", turnOff(f.name))
			if err != nil && s.ended(ctx, host) {
				return nil, nil
			}
			return reply, err
		})
		if err != nil {
			failures = append(failures, &stillOnError{f.name, err})
		}
		count = hitsIn(reply)
	}
	if len(hosts) > 1 {
		count = nil
	}
	return count, errors.Join(failures...)
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
func (s *site) offBehindBalancer(ctx context.Context, f failPoint) (*hits, error) {
	uri, connections := cmp.Or(f.uri, s.deployment.URI()), 64
	if f.service == nil { // unknown
		connections = 1
		if uri != s.deployment.SingleURI() {
			connections = 16
		}
	}
	var failure error
	for range connections {
		reached, err := retriedAfter(ctx, anyError, func() (serviceReply, error) {
			return s.commands.once(ctx, uri, "admin", turnOff(f.name))
		})
		if err != nil {
			failure = err
		} else if f.service != nil && reached.service != nil && *reached.service == *f.service {
			return hitsIn(reached.reply), nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	switch {
	case failure != nil:
		return nil, &stillOnError{f.name, fmt.Errorf("behind the load balancer: %w", failure)}
	case f.service != nil:
		return nil, &stillOnError{f.name, fmt.Errorf("no connection of %d reached service %s", connections, f.service.Hex())}
	}
	return nil, nil
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
	command := arguments.Lookup("command").Document()
	t.recordFailPoint(c.path+".arguments.failPoint", point.Position, command, c.text("client"), outcome)
	t.blocksFrom(command)
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
	point := configured(command, c.path+".arguments.failPoint", c.value("failPoint").Position)
	point.address = address
	t.mu.Lock()
	t.failPoints = append(t.failPoints, point)
	t.mu.Unlock()
	t.blocksFrom(command)
	reply, err := t.site.commands.at(ctx, address, "admin", command)
	t.mu.Lock()
	point.before = hitsIn(reply)
	t.mu.Unlock()
	f = ended(ctx, c.path, c.op.Position, "the fail point to be set on "+address)
	if f == nil && err != nil {
		f = c.breakf("the fail point %s could not be set on %s: %s", name, address, err)
	}
	return f
}

// recordFailPoint records a fail point for the clean-up, unless the server has refused it. After a network error, it
// may be set.
func (t *testRun) recordFailPoint(path string, at source.Position, command bson.Raw, object string,
	outcome result.Outcome) {
	if outcome.Err != nil && !outcome.Err.Client {
		return
	}
	f := configured(command, path, at)
	f.address, f.service = outcome.Server, outcome.ServiceID
	if f.address == "" && outcome.Err != nil {
		f.address = outcome.Err.Server
	}
	if reply, ok := outcome.Value.DocumentOK(); ok {
		f.before = hitsIn(reply)
	}
	of, _ := t.entities.Get(object)
	t.mu.Lock()
	defer t.mu.Unlock()
	f.uri = t.uris[of.Client]
	t.failPoints = append(t.failPoints, f)
}

// failPointsOff turns off the fail points of the test, and returns a mismatch for each that never fired. If no time is
// left, the clean-up turns them off.
func (t *testRun) failPointsOff(ctx context.Context) (unfired []result.Mismatch, _ error) {
	t.mu.Lock()
	points := t.failPoints
	t.failPoints = nil
	t.mu.Unlock()
	var failures []error
	end := map[string]*hits{} // at the end, by key
	for _, f := range points {
		if _, done := end[f.key()]; !done {
			count, err := t.site.off(ctx, *f)
			if err != nil && ctx.Err() != nil {
				t.mu.Lock()
				t.failPoints = append(t.failPoints, f)
				t.mu.Unlock()
			}
			failures = append(failures, err)
			end[f.key()] = count
		}
	}
	for _, f := range neverFired(points, end) {
		unfired = append(unfired, result.Mismatch{Path: f.path, Position: f.at,
			Message: "fail point " + f.name + " was set, but " + f.idle})
	}
	return unfired, errors.Join(failures...)
}

// neverFired returns the fail points whose hits were the same when they were configured the next time, or at the end.
// A test that depends on chance sets one several times: then one hit is enough.
func neverFired(points []*failPoint, end map[string]*hits) (idle []*failPoint) {
	fired := map[string]bool{} // by command
	next := maps.Clone(end)
	for _, f := range slices.Backward(points) {
		if count := next[f.key()]; f.on && f.before != nil && count != nil {
			if *f.before == *count {
				idle = append(idle, f)
			} else {
				fired[f.command] = true
			}
		}
		next[f.key()] = f.before
	}
	slices.Reverse(idle)
	return slices.DeleteFunc(idle, func(f *failPoint) bool { return fired[f.command] })
}
