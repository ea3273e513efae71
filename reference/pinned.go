package reference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
)

// pins reports whether package pinning applies to a command: a read on a replica set, under a policy with pinning, and
// not pinned to a server by a transaction or a cursor.
func (c *client) pins(ctx context.Context, cmd *command) bool {
	if c.driver.policy.Pinning == "" || cmd.write || cmd.address != "" || cmd.inTransaction() {
		return false
	}
	c.awaitMembers(ctx)
	return c.topology.Description().Kind&description.TopologyKindReplicaSet != 0
}

// newThread returns the thread of a session. An explicit session is a request.
func (c *client) newThread(request bool) pinning.Thread {
	if c.driver.policy.Pinning == "" {
		return pinning.Thread{}
	}
	t := pinning.Thread{Rules: pinning.Named(c.driver.policy.Pinning)}
	if request {
		t, _ = pinning.Next(t, pinning.Input{Kind: pinning.StartRequest})
	}
	return t
}

// readPinned performs a read by executing the decisions of pinning.Next.
func (c *client) readPinned(ctx context.Context, cmd *command, tr *trace) (out reply, failed *result.Error) {
	s := cmd.session
	ignores := cmd.op.Name == opWritingAggregate || cmd.op.Name == "runCommand" && !pinning.Obeys(cmd.body)
	see := func(kind pinning.InputKind) pinning.Input {
		return pinning.Input{Kind: kind, Members: c.describe().Servers, Random: c.driver.options.Random(), Ignores: ignores,
			Preference: pinning.Preference{Preference: cmd.preference, Latency: c.settings.LocalThreshold}}
	}
	s.thread, _ = pinning.Next(s.thread, see(pinning.Refreshed))
	in, a := see(pinning.Read), &attempt{client: c, cmd: cmd, trace: tr, operation: c.operation.Add(1)}
	for attempt := 0; ; {
		var d pinning.Decision
		s.thread, d = pinning.Next(s.thread, in)
		if d.Action == pinning.Send {
			attempt++
		}
		tr.decisions = append(tr.decisions, DecisionOfRead(d, attempt))
		if d.Refresh {
			c.checkAgain(c.topology.Description())
		}
		switch d.Action {
		case pinning.Send:
			srv, err := c.suitable(c.topology.Description(),
				want{pinned: d.Member, preference: s.thread.Reading.Preference.Preference})
			if srv == nil { // it has gone down
				failed, in = selectionError(false, "member %s is no longer available: %v", d.Member, err), see(pinning.Broken)
				continue
			}
			srv.begun, a.srv = time.Now(), srv
			r, f := a.perform(ctx)
			switch {
			case f == nil:
				out, failed, in = r, nil, see(pinning.Answered)
			case f.rules.Kind == retry.Network || f.rules.Kind == retry.PoolCleared:
				failed, in = f.err, see(pinning.Broken)
			default:
				out, failed, in = r, f.err, see(pinning.Refused)
			}
		case pinning.ReturnReply:
			return out, failed
		default:
			if d.Text != "" {
				failed = selectionError(false, "%s", d.Text)
			}
			return reply{}, failed
		}
	}
}

// DecisionOfRead converts a decision of package pinning for reports.
func DecisionOfRead(d pinning.Decision, attempt int) result.Decision {
	return result.Decision{Attempt: max(attempt, 1), Action: d.Action.String(), Rules: d.Rules, Server: d.Member,
		Reason: d.Text}
}

// currentOptions replaces the URI options of 2014 by current ones (P26; Driver Read Preferences, "Ping Times").
func currentOptions(given []enginekit.Option) ([]enginekit.Option, error) {
	var out []enginekit.Option
	var slaveOk, preference bool
	for _, o := range given {
		is := func(name string) bool { return enginekit.SameOption(o.Name, name) }
		switch {
		case is("slaveOk"):
			if slaveOk = true; o.Value == "true" {
				out = append(out, enginekit.Option{Name: "readPreference", Value: string(selection.SecondaryPreferred)})
			} else if o.Value != "false" {
				return nil, fmt.Errorf("slaveOk: %q is neither true nor false", o.Value)
			}
			continue
		case is("secondaryAcceptableLatencyMS"):
			o.Name = "localThresholdMS"
		case is("readPreference"):
			preference, o.Value = true, string(pinning.ModeOf(o.Value))
		case is("readPreferenceTags"):
			preference = true
		}
		out = append(out, o)
	}
	if slaveOk && preference {
		//lint:ignore ST1005 the document has the period
		return nil, errors.New(pinning.BothSlaveOk)
	}
	return out, nil
}

// awaitMembers waits until the client has checked every member once. Clients in 2014 did so when they were opened.
func (c *client) awaitMembers(ctx context.Context) {
	c.sockets.Await(ctx, c.settings.ServerSelectionTimeout, func() bool {
		d := c.topology.Description()
		return d.Kind != description.Unknown && !slices.ContainsFunc(d.Servers, neverChecked) || c.sockets.IsShut()
	})
}
