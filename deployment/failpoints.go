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
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// suiteFailPoints are the fail points that suites set. A deployment can have
// others on for reasons of its own, which are nothing to a run.
var suiteFailPoints = []string{
	"failCommand", "failCommandSequence", "onPrimaryTransactionalWrite",
	"failGetMoreAfterCursorCheckout", "failReceivedGetmore", "failCursorNotFound",
	"maxTimeAlwaysTimeOut", "maxTimeNeverTimeOut",
}

// leftFailPoint is a fail point that was on at a member before anything ran, as the
// server tells.
type leftFailPoint struct {
	member, name string
	Mode         int      // as servers count modes
	TimesEntered *int64   `bson:"timesEntered"` // how often it had struck, nil if the server does not tell
	Data         bson.Raw // what it was set with
}

// String describes the fail point.
func (l leftFailPoint) String() string {
	mode := fmt.Sprint("mode ", l.Mode)
	if l.Mode > 0 && l.Mode < len(modes) {
		mode = modes[l.Mode]
	}
	if l.TimesEntered != nil {
		mode += fmt.Sprintf(", struck %d times", *l.TimesEntered)
	}
	return fmt.Sprintf("%s was on at %s (%s): %s", l.name, l.member, mode, l.Data)
}

// sweepLimit bounds the questions to one member: one that is down holds up a run
// no longer.
const sweepLimit = 5 * time.Second

// clearFailPoints turns the fail points that suites set off on every member of
// a deployment, or on every mongos of the connection string, where an earlier
// run has left them on. More names can be added. It gives those that were on, and for
// each member that cannot be asked the reason.
func clearFailPoints(ctx context.Context, u uri, d Description, more []string) (off []leftFailPoint, unasked []error) {
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
	offs, errs := make([][]leftFailPoint, len(hosts)), make([]error, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() { offs[i], errs[i] = sweep(ctx, u.direct(host), host, names) })
	}
	all.Wait()
	return slices.Concat(offs...), slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// A load balancer hands out connections as it likes. Connections are made anew
// until several in a row have led to no fail point.
const (
	mostConnections = 32
	nothingOn       = 6 // of two services, one is missed in 1 of 64 sweeps
)

// sweepServices asks the services behind a load balancer, as far as it leads to
// them.
func sweepServices(ctx context.Context, u uri, names []string) (off []leftFailPoint, unasked []error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sweepLimit, fmt.Errorf("no answer from %s within %s", u.names(), sweepLimit))
	defer cancel()
	for clean, n := 0, 0; clean < nothingOn && n < mostConnections; n++ {
		found, err := sweep(ctx, u, "a service behind "+u.names(), names)
		if err != nil {
			return off, []error{err}
		}
		off = append(off, found...)
		if clean++; len(found) > 0 {
			clean = 0
		}
	}
	return off, nil
}

// sweep turns fail points off on the server that a new connection leads to.
func sweep(ctx context.Context, u uri, member string, names []string) (off []leftFailPoint, err error) {
	err = u.look(ctx, sweepLimit, func(ctx context.Context, run runs) error {
		found, err := failPointsOn(ctx, run, member, names)
		var e mongo.CommandError
		if errors.As(err, &e) && (e.Code == codeInvalidOptions || e.Code == 0 && len(e.Labels) == 0) {
			return nil // it has no test commands, and so no fail points
		}
		if err == nil {
			off, err = turnOff(ctx, run, found)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("%s could not be asked for fail points left on: %w", member, err)
	}
	return off, err
}

// turnOff gives those that are off now.
func turnOff(ctx context.Context, run runs, found []leftFailPoint) (off []leftFailPoint, err error) {
	for _, left := range found {
		if _, err := run(ctx, "admin", bson.D{{Key: "configureFailPoint", Value: left.name}, {Key: "mode", Value: "off"}}); err != nil {
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

// modes are the modes of a fail point as servers count them.
var modes = []string{"off", "alwaysOn", "random", "times", "skip"}

// failPointsOn asks one server for the fail points that are on, in one round trip.
// Names that a version lacks are passed over.
func failPointsOn(ctx context.Context, run runs, member string, names []string) (found []leftFailPoint, err error) {
	command := bson.D{{Key: "getParameter", Value: 1}}
	for _, name := range names {
		command = append(command, bson.E{Key: failPointPrefix + name, Value: 1})
	}
	reply, err := run(ctx, "admin", command)
	if err != nil {
		return nil, err
	}
	elements, err := reply.Elements()
	for _, e := range elements {
		name, known := strings.CutPrefix(e.Key(), failPointPrefix)
		l := leftFailPoint{member: member, name: name}
		if known {
			_ = e.Value().Unmarshal(&l) // one that tells little is on all the same
		}
		if l.Mode != 0 {
			found = append(found, l)
		}
	}
	return found, err
}
