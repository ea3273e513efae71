package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/internal/process/parallel"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// suiteFailPoints are the fail points that suites set. Others may be on for reasons unrelated to runs.
var suiteFailPoints = []string{
	"failCommand", "failCommandSequence", "onPrimaryTransactionalWrite",
	"failGetMoreAfterCursorCheckout", "failReceivedGetmore", "failCursorNotFound",
	"maxTimeAlwaysTimeOut", "maxTimeNeverTimeOut",
}

// leftFailPoint is a fail point that was on before the run, as the server reports it.
type leftFailPoint struct {
	member, name string
	Mode         int      // index in modes
	TimesEntered *int64   `bson:"timesEntered"` // nil if not reported
	Data         bson.Raw // data of configureFailPoint
}

func (l leftFailPoint) String() string {
	mode := fmt.Sprint("mode ", l.Mode)
	if l.Mode > 0 && l.Mode < len(modes) {
		mode = modes[l.Mode]
	}
	if l.TimesEntered != nil {
		mode += ", triggered " + plural.Of(int(*l.TimesEntered), "time")
	}
	return fmt.Sprintf("%s was on at %s (%s): %s", l.name, l.member, mode, l.Data)
}

// sweepLimit bounds the commands to one member, in case it is down.
const sweepLimit = 5 * time.Second

// clearFailPoints turns off the fail points that suites set, and more, on every member of a deployment, or on every
// mongos of the connection string. It returns those that were on, and an error for each member that could not be
// checked.
func clearFailPoints(ctx context.Context, u uri, d Description, more []string) (off []leftFailPoint, failed []error) {
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
	_ = parallel.Each(len(hosts), hosts, func(i int, host string) error {
		offs[i], errs[i] = sweep(ctx, u.direct(host), host, names)
		return nil
	})
	return slices.Concat(offs...), slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// New connections are opened through a load balancer until several in a row have found no fail point.
const (
	mostConnections = 32
	nothingOn       = 6 // with two services, one is missed in 1 of 64 sweeps
)

// sweepServices turns fail points off on the services behind a load balancer, as far as connections reach them.
func sweepServices(ctx context.Context, u uri, names []string) (off []leftFailPoint, failed []error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sweepLimit,
		fmt.Errorf("%s did not answer within %s", u.names(), sweepLimit))
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

// sweep turns fail points off on the server that a new connection reaches.
func sweep(ctx context.Context, u uri, member string, names []string) (off []leftFailPoint, err error) {
	err = u.look(ctx, sweepLimit, func(ctx context.Context, run runFunc) error {
		found, err := failPointsOn(ctx, run, member, names)
		if direct.Refused(err) && slices.Contains(withoutTestCommands, direct.CodeOf(err)) {
			return nil // fail points require test commands
		}
		if err == nil {
			off, err = turnOff(ctx, run, found)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("cannot check %s for fail points left on: %w", member, err)
	}
	return off, err
}

// turnOff returns the fail points that it has turned off.
func turnOff(ctx context.Context, run runFunc, found []leftFailPoint) (off []leftFailPoint, err error) {
	for _, left := range found {
		if _, err := run(ctx, "admin",
			bson.D{{Key: "configureFailPoint", Value: left.name}, {Key: "mode", Value: "off"}}); err != nil {
			return off, fmt.Errorf("%s, and cannot be turned off: %w", left, err)
		}
		off = append(off, left)
	}
	return off, nil
}

// withoutTestCommands are the error codes for an unknown parameter: 0 before 5.0, then InvalidOptions. Other vendors'
// servers may not have getParameter.
var withoutTestCommands = []int32{0, codes.InvalidOptions, codes.CommandNotFound}

const failPointPrefix = "failpoint."

// modes are the modes of a fail point by the server's numbers.
var modes = []string{"off", "alwaysOn", "random", "times", "skip"}

// failPointsOn returns the fail points that are on at a server, in one round trip. Names that a version lacks are
// ignored.
func failPointsOn(ctx context.Context, run runFunc, member string, names []string) (found []leftFailPoint, err error) {
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
			_ = e.Value().Unmarshal(&l) // even if fields have unexpected types, the fail point is on
		}
		if l.Mode != 0 {
			found = append(found, l)
		}
	}
	return found, err
}
