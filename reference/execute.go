package reference

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	mongo "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// trace collects the parts of an operation's outcome.
type trace struct {
	decisions []result.Decision
	server    string
	service   *bson.ObjectID
}

// reply is the reply to a command.
type reply struct {
	doc     bson.Raw
	address string
	wire    int32
	conn    *mnet.Connection // pinned, if the command requested it
	write   *failure         // write errors or a write concern error in a reply with ok 1
}

// lacks returns the error for a missing field.
func (r reply) lacks(field string) *result.Error {
	return &result.Error{Message: "the reply has no " + field, Client: true, Kind: "reply", Response: r.doc, Server: r.address}
}

// execute performs a command by executing the decisions of retry.Next. Only under timeoutMS are errors marked as
// timeout errors (Client Side Operations Timeout, "Errors").
func (c *client) execute(ctx context.Context, cmd *command, tr *trace) (reply, *result.Error) {
	cmd.session.leaveTransaction(cmd)
	if err := cmd.session.permits(cmd); err != nil {
		return reply{}, err
	}
	if c.pins(ctx, cmd) {
		return c.readPinned(ctx, cmd, tr)
	}
	state := retry.Start(c.driver.policy, c.rules(cmd))
	errs := map[int]*result.Error{}
	replies := map[int]reply{} // of attempts that failed with a reply of ok 1
	operation := c.operation.Add(1)
	in := retry.Input{Kind: retry.Begin}
	var srv *server
	var out reply
	for {
		var d retry.Decision
		state, d = c.tokens.next(state, in)
		tr.decided(d, state.Chosen.Address, c.driver.policy.Bucket())
		switch d.Action {
		case retry.Select:
			var err *result.Error
			if srv, err = c.selectFor(ctx, cmd, d.Deprioritized, operation); err != nil {
				err.Timeout = err.Timeout && cmd.timeout
				errs[d.Attempt] = cmp.Or(errs[d.Attempt], err)
				in = c.failed(ctx, retry.Failure{Kind: retry.Selection, Labels: err.Labels})
				continue
			}
			in = retry.Input{Kind: retry.Selected, Chosen: chosen(srv)}
		case retry.Send:
			r, f := c.attempt(ctx, srv, cmd, operation, tr)
			if f != nil {
				f.err.Timeout = f.err.Timeout && cmd.timeout
				errs[d.Attempt], replies[d.Attempt], cmd.failed = f.err, r, f.err
				in = c.failed(ctx, f.rules)
				if f.err.Kind == "timeout" { // the remaining time is too short for an attempt
					in.Left = 0
				}
				continue
			}
			out, in = r, retry.Input{Kind: retry.Succeeded}
		case retry.BackOff:
			c.driver.options.backOff(ctx, d.Delay)
			in = retry.Input{Kind: retry.BackedOff, Left: c.driver.options.left(ctx)}
		case retry.ReturnResult:
			return out, nil
		default:
			err := errs[d.Raise.Attempt]
			if err == nil {
				err = &result.Error{Message: d.Reason, Client: true, Kind: "engine"}
			}
			if d.Expired && !err.Timeout {
				late := *err
				late.Timeout = true
				err = &late
			}
			return replies[d.Raise.Attempt], err
		}
	}
}

// rules returns the settings of a command for the retry rules.
func (c *client) rules(cmd *command) retry.Settings {
	op := cmd.op
	if cmd.silent() {
		op = retry.Lookup("unacknowledged write")
	}
	return retry.Settings{
		Operation: op, RetryReads: c.settings.retryReads, RetryWrites: c.settings.retryWrites,
		InTransaction: cmd.session.inTransaction(), Timeout: cmd.timeout,
		MaxAdaptiveRetries: c.settings.maxAdaptiveRetries, OverloadRetargeting: c.settings.overloadRetargeting,
	}
}

// chosen describes a server for the retry rules. Behind a load balancer, the wire version is unknown before the
// handshake.
func chosen(s *server) retry.Chosen {
	balanced := s.kind == selection.LoadBalancer
	out := retry.Chosen{Address: s.address, Sharded: s.topology == selection.Sharded, Mongos: s.kind == selection.Mongos, Wire: 1 << 20,
		RetryableWrites: balanced || s.desc.SessionTimeoutMinutes != nil && s.kind != selection.Standalone}
	if s.desc.WireVersion != nil {
		out.Wire = s.desc.WireVersion.Max
	}
	return out
}

func (c *client) failed(ctx context.Context, f retry.Failure) retry.Input {
	return retry.Input{Kind: retry.Failed, Failure: f, Left: c.driver.options.left(ctx), Jitter: c.driver.options.Random()}
}

func (tr *trace) decided(d retry.Decision, server string, bucket *retry.Bucket) {
	tr.decisions = append(tr.decisions, DecisionOf(d, server, bucket))
}

// DecisionOf converts a decision of the retry core for reports. The bucket is nil without client backpressure.
func DecisionOf(d retry.Decision, server string, bucket *retry.Bucket) result.Decision {
	decision := result.Decision{
		Attempt: d.Attempt, Action: d.Action.String(), Rules: d.Rules, Server: server,
		Deprioritized: d.Deprioritized, DelayMS: float64(d.Delay) / float64(time.Millisecond), Reason: d.Reason,
	}
	if bucket != nil {
		tokens := float64(d.Tokens) / float64(retry.Token)
		decision.Tokens = &tokens
	}
	return decision
}

// selectFor selects the server for an attempt, or uses the pinned server.
func (c *client) selectFor(ctx context.Context, cmd *command, deprioritized []string, operation int64) (*server, *result.Error) {
	w := want{write: cmd.write, preference: cmd.preference, stage: cmd.op.Name == opWritingAggregate, pinned: cmd.address, deprioritized: deprioritized,
		operation: cmd.name, operationID: operation}
	s := cmd.session
	if s.inTransaction() || cmd.op.EndsTransaction {
		if !cmd.write {
			w.preference = s.options.preference
		}
		if s.pinned != "" && cmd.address == "" {
			w.pinned = s.pinned
		}
	}
	w.quiet = cmd.hidden || w.pinned != ""
	srv, err := c.selectServer(ctx, w)
	if err != nil {
		cmd.labelTransaction(err)
		cmd.unpin(err)
	}
	return srv, err
}

// opWritingAggregate is the operation aggregate with $out or $merge.
const opWritingAggregate = "aggregate with a write stage"

// attempt checks out a connection, builds the command, and sends it.
func (c *client) attempt(ctx context.Context, srv *server, cmd *command, operation int64, tr *trace) (reply, *failure) {
	s := cmd.session
	conn := cmd.conn
	if conn == nil && s.conn != nil && (s.inTransaction() || cmd.op.EndsTransaction) {
		conn = s.conn
	}
	if conn == nil {
		var err error
		if conn, err = c.checkOut(ctx, srv, cmd); err != nil {
			f := c.classify(cmd, srv, checkoutFailure(ctx, err, srv.address))
			cmd.unpin(f.err)
			return reply{}, f
		}
	}
	defer func() { _ = conn.Close() }() // no-op while the connection is pinned

	t := target{server: srv, wire: wireOf(conn), sessions: conn.Description().SessionTimeoutMinutes != nil, silent: cmd.silent(),
		remaining: c.driver.options.left(ctx), minRTT: srv.RTTMonitor().Min()}
	body, err := c.assemble(cmd, t)
	if err != nil {
		return reply{}, buildFailure(err, srv.address)
	}
	if s.inTransaction() && srv.topology == selection.Sharded {
		s.pinned = srv.address
	}
	if s.inTransaction() && srv.topology == selection.LoadBalanced && s.conn == nil {
		if conn.PinToTransaction() == nil {
			s.conn = conn
		}
	}
	return c.exchange(ctx, conn, srv, cmd, body, operation, tr)
}

// wireOf returns the wire version of a connection's server, or 0.
func wireOf(conn *mnet.Connection) int32 {
	if v := conn.Description().WireVersion; v != nil {
		return v.Max
	}
	return 0
}

// checkOut checks out a connection. timeoutMS replaces waitQueueTimeoutMS, and makes server selection and check-out
// share serverSelectionTimeoutMS (Client Side Operations Timeout, "Server Selection").
func (c *client) checkOut(ctx context.Context, srv *server, cmd *command) (*mnet.Connection, error) {
	end := func() {}
	if cmd.timeout {
		ctx, end = context.WithDeadline(ctx, srv.begun.Add(c.settings.serverSelectionTimeout))
	} else if w := c.settings.waitQueueTimeout; w > 0 {
		ctx, end = context.WithTimeout(ctx, w)
	}
	defer end()
	if srv.desc.TopologyVersion != nil && !c.sockets.polls {
		// If the attempt made the server Unknown before its monitor streams, the monitor would sleep for minHeartbeat.
		c.sockets.AwaitStream(srv.address, 50*time.Millisecond)
	}
	defer c.sockets.watch(srv.address)()
	return srv.Connection(ctx)
}

// exchange sends the command, reads its reply, and writes the events.
func (c *client) exchange(ctx context.Context, conn *mnet.Connection, srv *server, cmd *command,
	body bson.Raw, operation int64, tr *trace) (reply, *failure) {
	desc := conn.Description()
	tr.server, tr.service = srv.address, desc.ServiceID
	id := wiremessage.NextRequestID()
	flags := wiremessage.MsgFlag(0)
	silent := cmd.silent()
	if silent {
		flags = wiremessage.MoreToCome
	}
	secret := sensitive(cmd.name, body)
	events := eventWriter{c: c, conn: conn, cmd: cmd, address: srv.address, id: int64(id), operation: operation,
		secret: secret, service: desc.ServiceID, begun: time.Now()}
	events.started(body)

	if d := c.settings.socketTimeout; d > 0 && !cmd.timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	wm, err := message(id, body, flags), error(nil)
	if conn.Compressor != nil && !secret {
		wm, err = conn.CompressWireMessage(wm, nil)
	}
	if err == nil {
		err = conn.Write(ctx, wm)
	}
	if err == nil && silent {
		ok, _ := bson.Marshal(bson.D{{Key: "ok", Value: 1.0}})
		events.succeeded(ok)
		return reply{doc: ok, address: srv.address}, nil
	}
	if err == nil {
		wm, err = conn.Read(ctx)
	}
	var doc bson.Raw
	if err == nil {
		doc, err = parse(wm)
	}
	if err != nil {
		return reply{}, c.networkError(err, srv, events)
	}

	c.gossip(cmd, doc)
	out := reply{doc: doc, address: srv.address, wire: wireOf(conn)}
	f := c.classify(cmd, srv, replyError(doc, srv.address))
	if f == nil || okOf(doc) {
		events.succeeded(doc)
	} else {
		events.failed(f.err)
	}
	if f != nil {
		c.processError(cmd, srv, conn, doc)
		cmd.unpin(f.err)
		if !okOf(doc) {
			return reply{}, f
		}
		out.write = f
		if c.raisesWriteError(cmd, f) {
			return out, f
		}
	}
	if id, _ := enginekit.Integer(doc.Lookup("cursor", "id")); cmd.pin && srv.topology == selection.LoadBalanced && id != 0 {
		if cmd.conn != nil {
			out.conn = cmd.conn
		} else if conn.PinToCursor() == nil {
			out.conn = conn
		}
	}
	return out, nil
}

// raisesWriteError reports whether a write error in a reply with ok 1 fails the attempt, so that the rules may retry
// it. Otherwise the operation includes it in its result or error.
func (c *client) raisesWriteError(cmd *command, f *failure) bool {
	numbered := cmd.op.EndsTransaction || cmd.txnNumber != nil
	if p := c.driver.policy; p.WriteCodes != nil { // before error labels
		return numbered && p.Listed(f.rules)
	}
	return numbered && f.err.HasLabel(labelWrite) ||
		f.err.HasLabel(labelOverloaded) && f.err.HasLabel(labelRetryable) && (numbered || len(f.err.WriteErrors) == 0)
}

func okOf(doc bson.Raw) bool {
	b, _ := doc.Lookup("ok").BooleanOK()
	n, _ := enginekit.Integer(doc.Lookup("ok"))
	return b || n == 1
}

// networkError writes the failed event and passes the error to the topology.
func (c *client) networkError(err error, srv *server, events eventWriter) *failure {
	cmd, conn := events.cmd, events.conn
	f := c.classify(cmd, srv, networkFailure(err, srv.address))
	defer cmd.unpin(f.err)
	events.failed(f.err)
	if s := cmd.session.server; s != nil {
		s.dirty = true
	}
	if c.sockets.interrupted(srv.address, conn.DriverConnectionID()) {
		return f // another error has cleared the pool
	}
	c.sockets.handle(srv.address, func() bool {
		// The topology looks for a connection error inside a driver error.
		e := mongo.Error{Message: err.Error(), Labels: []string{mongo.NetworkError}, Wrapped: err}
		return srv.ProcessError(e, conn) != mongo.NoChange && srv.unknown()
	})
	if !cmd.timeout || errors.Is(err, errMalformed) || errors.Is(err, io.EOF) {
		if e, ok := conn.ReadWriteCloser.(mongo.Expirable); ok && cmd.conn == nil {
			_ = e.Expire()
		}
	}
	return f
}

// processError passes a state change error to the topology. A server with topologyVersion in its error also reports the
// change to monitors that stream hello. If another server becomes Unknown, it is checked again.
func (c *client) processError(cmd *command, srv *server, conn *mnet.Connection, doc bson.Raw) {
	err := mongo.ExtractErrorFromServerResponse([]byte(doc))
	if err == nil || srv.ProcessError(err, conn) == mongo.NoChange {
		return
	}
	if _, versioned := doc.Lookup("topologyVersion").DocumentOK(); !versioned && !cmd.closing {
		c.sockets.recheck(srv.address, c.settings.heartbeat, srv.unknown)
	}
}

// gossip advances the cluster time, the operation time and the state of the session.
func (c *client) gossip(cmd *command, doc bson.Raw) {
	now := clusterTimeOf(doc)
	if now != nil {
		c.clock.AdvanceClusterTime(now)
	}
	s := cmd.session
	s.advance(now, timestampOf(doc, "operationTime"))
	if s.snapshot && s.snapshotTime == nil {
		s.snapshotTime = cmp.Or(timestampOf(doc, "cursor", "atClusterTime"), timestampOf(doc, "atClusterTime"))
	}
	if token, ok := doc.Lookup("recoveryToken").DocumentOK(); ok && (s.inTransaction() || cmd.op.EndsTransaction) {
		s.recovery = token
	}
}

// unanswered reports whether there was no reply.
func unanswered(err *result.Error) bool {
	return err.Kind == "network" || err.Kind == "pool cleared" || err.Kind == "server selection"
}

// labelTransaction adds the labels of the Transactions specification.
func (cmd *command) labelTransaction(err *result.Error) {
	switch {
	case cmd.op.Name == "commitTransaction":
		if unknownCommit(err) && !err.HasLabel(labelUnknownCommit) {
			err.Labels = append(without(err.Labels, labelTransient), labelUnknownCommit)
		}
	case cmd.op.EndsTransaction:
	case cmd.session.inTransaction() && unanswered(err) && !err.HasLabel(labelTransient):
		err.Labels = append(err.Labels, labelTransient)
	}
}

// unpin unpins the session if the error requires it (Transactions, "When to unpin"). The topology must process the
// error before, because it needs the connection.
func (cmd *command) unpin(err *result.Error) {
	s := cmd.session
	switch {
	case cmd.op.Name == "abortTransaction",
		cmd.op.Name == "commitTransaction" && (err.HasLabel(labelUnknownCommit) || err.HasLabel(labelTransient)),
		s.inTransaction() && err.HasLabel(labelTransient):
		s.unpin()
	}
}

// unknownCommit reports whether the outcome of a commit is unknown (Transactions, "UnknownTransactionCommitResult").
func unknownCommit(err *result.Error) bool {
	return unanswered(err) || err.HasLabel(labelWrite) || err.Code == maxTimeMSExpired ||
		len(err.WriteConcernErrors) > 0 && err.Code != 100 && err.Code != 79
}
