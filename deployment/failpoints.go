package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// suiteFailPoints are the fail points that suites set. A deployment can have
// others on for reasons of its own, which are nothing to a run.
var suiteFailPoints = []string{
	"failCommand", "failCommandSequence", "onPrimaryTransactionalWrite",
	"failGetMoreAfterCursorCheckout", "failReceivedGetmore", "failCursorNotFound",
	"maxTimeAlwaysTimeOut", "maxTimeNeverTimeOut",
}

// LeftFailPoint is a fail point that was on at a member before anything ran.
type LeftFailPoint struct {
	// Member is the address, or the service behind a load balancer.
	Member string
	Name   string
	// Mode is how it was set, such as alwaysOn.
	Mode string
	// Entered is how often it had struck, -1 if the server does not tell.
	Entered int64
	// Data is what it was set with.
	Data bson.Raw
}

// String describes the fail point.
func (l LeftFailPoint) String() string {
	struck := ""
	if l.Entered >= 0 {
		struck = fmt.Sprintf(", struck %d times", l.Entered)
	}
	return fmt.Sprintf("%s was on at %s (%s%s): %s", l.Name, l.Member, l.Mode, struck, l.Data)
}

// FailPointSweep is what became of the fail points of a deployment.
type FailPointSweep struct {
	// Off are those that were on and are off now.
	Off []LeftFailPoint
	// Unasked says, for each member where that failed, why.
	Unasked []error
}

// sweepLimit bounds the questions to one member: one that is down holds up a run
// no longer.
const sweepLimit = 5 * time.Second

// ClearFailPoints turns the fail points that suites set off on every member of
// a deployment, or on every mongos of the connection string, where an earlier
// run has left them on. More names can be added. A member that cannot be asked
// is in the result; an error means that the deployment itself cannot be.
func ClearFailPoints(ctx context.Context, t Target, more ...string) (FailPointSweep, error) {
	u, err := t.resolved(ctx)
	if err != nil {
		return FailPointSweep{}, err
	}
	var d Description
	err = u.look(ctx, lookTimeout, func(ctx context.Context, client *mongo.Client) (err error) { d, err = greet(ctx, client, u); return })
	if err != nil {
		return FailPointSweep{}, err
	}
	return clearFailPoints(ctx, u, d, more), nil
}

// clearFailPoints is ClearFailPoints for a deployment whose topology and
// hosts are known.
func clearFailPoints(ctx context.Context, u uri, d Description, more []string) FailPointSweep {
	names := slices.Concat(suiteFailPoints, more)
	slices.Sort(names)
	names = slices.Compact(names)
	if d.Topology == LoadBalanced {
		return sweepServices(ctx, u, names)
	}
	hosts := d.Hosts
	if u.get("directConnection") == "true" {
		hosts = u.hosts
	}
	sweeps := make([]FailPointSweep, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() { sweeps[i] = sweepMember(ctx, u.direct(host), host, names) })
	}
	all.Wait()
	var sum FailPointSweep
	for _, s := range sweeps {
		sum.Off = append(sum.Off, s.Off...)
		sum.Unasked = append(sum.Unasked, s.Unasked...)
	}
	return sum
}

// sweepMember asks one member.
func sweepMember(ctx context.Context, u uri, member string, names []string) (s FailPointSweep) {
	err := u.look(ctx, sweepLimit, func(ctx context.Context, client *mongo.Client) (err error) {
		s.Off, err = turnOff(ctx, client, member, names)
		return err
	})
	if err != nil {
		s.Unasked = append(s.Unasked, fmt.Errorf("%s could not be asked for fail points left on: %w", member, err))
	}
	return s
}

// turnOff looks at the fail points of one server in one round trip, and turns
// off what is on.
func turnOff(ctx context.Context, client *mongo.Client, member string, names []string) (off []LeftFailPoint, err error) {
	admin := client.Database("admin")
	nearest := options.RunCmd().SetReadPreference(readpref.Nearest())
	reply, err := admin.RunCommand(ctx, lookFor(names), nearest).Raw()
	if err != nil {
		var e mongo.CommandError
		if errors.As(err, &e) && (e.Code == codeInvalidOptions || e.Code == 0 && len(e.Labels) == 0) {
			return nil, nil // it knows none: there are no test commands
		}
		return nil, err
	}
	for _, left := range on(member, reply) {
		if err := admin.RunCommand(ctx, bson.D{{Key: "configureFailPoint", Value: left.Name}, {Key: "mode", Value: "off"}}, nearest).Err(); err != nil {
			return off, fmt.Errorf("%s, and cannot be turned off: %w", left, err)
		}
		off = append(off, left)
	}
	return off, nil
}

// codeInvalidOptions is what a server says that has no such parameter; before
// 5.0 it said no code.
const codeInvalidOptions = 72

// failPointPrefix stands before the name of a fail point among parameters.
const failPointPrefix = "failpoint."

// lookFor is the command that says how fail points are set. Names that a
// version lacks are passed over.
func lookFor(names []string) bson.D {
	command := bson.D{{Key: "getParameter", Value: 1}}
	for _, name := range names {
		command = append(command, bson.E{Key: failPointPrefix + name, Value: 1})
	}
	return command
}

// modes are the modes of a fail point as servers count them.
var modes = []string{"off", "alwaysOn", "random", "times", "skip"}

// on reads the fail points that are on from the reply.
func on(member string, reply bson.Raw) (left []LeftFailPoint) {
	elements, _ := reply.Elements()
	for _, e := range elements {
		name, found := strings.CutPrefix(e.Key(), failPointPrefix)
		state, ok := e.Value().DocumentOK()
		if !found || !ok {
			continue
		}
		n, ok := state.Lookup("mode").AsInt64OK()
		if !ok || n == 0 {
			continue
		}
		l := LeftFailPoint{Member: member, Name: name, Mode: fmt.Sprint("mode ", n), Entered: -1}
		if n > 0 && n < int64(len(modes)) {
			l.Mode = modes[n]
		}
		if entered, ok := state.Lookup("timesEntered").AsInt64OK(); ok {
			l.Entered = entered
		}
		l.Data, _ = state.Lookup("data").DocumentOK()
		left = append(left, l)
	}
	return left
}

// A load balancer hands out connections as it likes. Connections are made anew
// until several in a row have met no service that was not known.
const (
	mostConnections = 32
	nothingNew      = 4
)

// sweepServices asks the services behind a load balancer, as far as it leads to
// them.
func sweepServices(ctx context.Context, u uri, names []string) (sum FailPointSweep) {
	ctx, cancel := context.WithTimeoutCause(ctx, sweepLimit, fmt.Errorf("no answer from %s within %s", u.names(), sweepLimit))
	defer cancel()
	known := make(map[bson.ObjectID]bool)
	for old, n := 0, 0; old < nothingNew && n < mostConnections; n++ {
		service, off, err := sweepService(ctx, u, names)
		if err != nil {
			sum.Unasked = append(sum.Unasked, fmt.Errorf("a service behind %s could not be asked for fail points left on: %w", u.names(), u.plain(ctx, err)))
			return sum
		}
		sum.Off = append(sum.Off, off...)
		if old++; !known[service] {
			known[service], old = true, 0
		}
	}
	return sum
}

// sweepService asks the service that a new connection leads to.
func sweepService(ctx context.Context, u uri, names []string) (service bson.ObjectID, off []LeftFailPoint, err error) {
	monitor := &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
		if e.ServiceID != nil {
			service = *e.ServiceID
		}
	}}
	client, err := mongo.Connect(u.client("utr").SetMinPoolSize(0).SetMaxPoolSize(1).SetMonitor(monitor))
	if err != nil {
		return service, nil, err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	off, err = turnOff(ctx, client, "", names)
	for i := range off {
		off[i].Member = "service " + service.Hex() + " behind " + u.names()
	}
	return service, off, err
}
