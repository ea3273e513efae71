package reference

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
)

// trace collects the parts of an operation's outcome.
type trace struct {
	decisions []result.Decision
	server    string
	service   *bson.ObjectID
	span      *span        // of the operation, nil if it has none
	later     func() *span // starts span before the first command; may be nil
}

// reply is the reply to a command.
type reply struct {
	doc     bson.Raw
	address string
	wire    int32
	conn    *mnet.Connection // pinned, if the command requested it
	write   *failure         // write errors or a write concern error in a reply with ok 1
	// interrupts marks a retryable error in write. Whether it was retried or not, it interrupts a bulk write (Retryable
	// Writes, "Executing Retryable Write Commands").
	interrupts bool
}

// lacks returns the error for a missing field.
func (r reply) lacks(field string) *result.Error {
	return &result.Error{Message: "the reply has no " + field, Client: true, Kind: "reply",
		Response: result.Document(r.doc), Server: r.address}
}

// execute performs a command by executing the decisions of retry.Next. Only under timeoutMS are errors marked as
// timeout errors (Client Side Operations Timeout, "Errors"). A write error in a reply with ok 1 is an error, except of
// runCommand.
func (c *client) execute(ctx context.Context, cmd *command, tr *trace) (reply, *result.Error) {
	cmd.session.leaveTransaction(cmd)
	if err := cmd.session.permits(cmd); err != nil {
		return reply{}, err
	}
	if tr.later != nil {
		tr.span, tr.later = tr.later(), nil
	}
	if c.pins(ctx, cmd) {
		return c.readPinned(ctx, cmd, tr)
	}
	state := retry.Start(c.driver.policy, c.rules(cmd))
	errs := map[int]*result.Error{}
	replies := map[int]reply{} // of attempts that failed with a reply of ok 1
	a := &attempt{client: c, cmd: cmd, trace: tr, operation: c.operation.Add(1)}
	in := retry.Input{Kind: retry.Begin}
	var out reply
	for {
		var d retry.Decision
		state, d = c.tokens.next(state, in)
		tr.decided(d, state.Chosen.Address, c.driver.policy.Bucket())
		var f *failure
		switch d.Action {
		case retry.Select:
			begun := c.driver.options.Now()
			f = a.selectServer(ctx, d.Deprioritized)
			tr.took(c.driver.options.Now().Sub(begun))
			if f == nil {
				in = retry.Input{Kind: retry.Selected, Chosen: a.srv.chosen()}
			}
		case retry.Send:
			out, f = a.perform(ctx)
			state.Settings = c.rules(cmd) // the operation may depend on the limits of the server
			in = retry.Input{Kind: retry.Succeeded}
		case retry.BackOff:
			tr.took(c.driver.options.backOff(ctx, d.Delay))
			in = retry.Input{Kind: retry.BackedOff, Left: c.driver.options.left(ctx)}
		case retry.ReturnResult:
			if out.write == nil || cmd.op.Name == "runCommand" {
				return out, nil
			}
			cmd.unpinAtEnd(out.write.err)
			return out, out.write.err
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
			cmd.unpinAtEnd(err)
			return replies[d.Raise.Attempt], err
		}
		if f != nil {
			cmd.unpinForRetry(f.err)
			cmd.uncertain = cmd.uncertain || !c.driver.policy.Since(retry.ShedCommits) || !overloaded(f.err)
			f.err.Timeout = f.err.Timeout && cmd.timeout
			errs[d.Attempt], replies[d.Attempt] = f.err, out
			in = retry.Input{Kind: retry.Failed, Failure: f.rules,
				Left: c.driver.options.left(ctx), Jitter: c.driver.options.Random()}
			if f.err.Kind == "timeout" { // the remaining time is too short for an attempt
				in.Left = 0
			}
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
		Operation: op, RetryReads: c.settings.RetryReads, RetryWrites: c.settings.RetryWrites,
		InTransaction: cmd.session.inTransaction(), Timeout: cmd.timeout,
		MaxAdaptiveRetries: c.settings.maxAdaptiveRetries, OverloadRetargeting: c.settings.EnableOverloadRetargeting,
	}
}

// chosen describes a server for the retry rules. Behind a load balancer, the wire version is unknown before the
// handshake.
func (s *server) chosen() retry.Chosen {
	balanced := s.kind == selection.LoadBalancer
	out := retry.Chosen{Address: s.address, Sharded: s.topology == selection.Sharded, Mongos: s.kind == selection.Mongos,
		Wire:            1 << 20,
		RetryableWrites: balanced || s.desc.SessionTimeoutMinutes != nil && s.kind != selection.Standalone}
	if s.desc.WireVersion != nil {
		out.Wire = s.desc.WireVersion.Max
	}
	return out
}

func (tr *trace) decided(d retry.Decision, server string, bucket *retry.Bucket) {
	tr.decisions = append(tr.decisions, DecisionOf(d, server, bucket))
}

// took records how long the last decision took.
func (tr *trace) took(d time.Duration) { tr.decisions[len(tr.decisions)-1].Took = result.Duration(d) }

// DecisionOf converts a decision of the retry core for reports. The bucket is nil without client backpressure.
func DecisionOf(d retry.Decision, server string, bucket *retry.Bucket) result.Decision {
	decision := result.Decision{
		Attempt: d.Attempt, Action: d.Action.String(), Rules: d.Rules.IDs(), Server: server,
		Deprioritized: d.Deprioritized, DelayMS: milliseconds(d.Delay), Reason: d.Reason,
	}
	if bucket != nil {
		tokens := float64(d.Tokens) / float64(retry.Token)
		decision.Tokens = &tokens
	}
	return decision
}

// opWritingAggregate is the operation aggregate with $out or $merge.
const opWritingAggregate = "aggregate with a write stage"

// attempt is one attempt to execute a command.
type attempt struct {
	*client
	cmd       *command
	trace     *trace
	operation int64 // operationId; all attempts share it
	srv       *server
	conn      *mnet.Connection

	wire      int32         // version of the server, or 0
	silent    bool          // the command has no reply
	remaining time.Duration // until the deadline, less a round trip; forever without a deadline

	id     int64 // of the request
	secret bool  // the command is sensitive
	span   *span
	begun  time.Time
}

// selectServer selects the server, or uses the pinned server.
func (a *attempt) selectServer(ctx context.Context, deprioritized []string) *failure {
	cmd, s := a.cmd, a.cmd.session
	w := want{write: cmd.write, preference: cmd.preference, stage: cmd.op.Name == opWritingAggregate,
		pinned: cmd.address, deprioritized: deprioritized, operation: cmd.name(), operationID: a.operation}
	if cmd.inTransaction() {
		if !cmd.write {
			w.preference = s.options.preference
		}
		w.pinned = cmp.Or(cmd.address, s.pinned)
	}
	w.quiet = cmd.hidden || w.pinned != ""
	srv, err := a.client.selectServer(ctx, w)
	if err != nil {
		cmd.labelTransaction(err)
		return &failure{retry.Failure{Kind: retry.Selection, Labels: err.Labels}, err}
	}
	a.srv = srv
	return nil
}

// perform checks out a connection, builds the command, and sends it.
func (a *attempt) perform(ctx context.Context) (reply, *failure) {
	cmd, s, srv := a.cmd, a.cmd.session, a.srv
	a.conn = cmd.conn
	if a.conn == nil && cmd.inTransaction() {
		a.conn = s.conn
	}
	if a.conn == nil {
		var err error
		if a.conn, err = a.checkOut(ctx); err != nil {
			return reply{}, a.classify(checkoutFailure(ctx, err))
		}
	}
	conn := a.conn
	defer func() { _ = conn.Close() }() // no-op while the connection is pinned

	if v := conn.Description().WireVersion; v != nil {
		a.wire = v.Max
	}
	if cmd.fit != nil {
		if err := cmd.fit(limitsOf(conn.Description())); err != nil {
			return reply{}, buildFailure(err, srv.address)
		}
		cmd.fit = nil
	}
	if cmd.late != nil && *cmd.late { // (Connection Monitoring and Pooling, "Connection": Single Track)
		if _, err := conn.Read(ctx); err != nil {
			return reply{}, a.networkError(a.classify(networkFailure(err)), err)
		}
		*cmd.late = false
	}
	a.silent = cmd.silent()
	if a.remaining = a.driver.options.left(ctx); a.remaining < forever {
		a.remaining -= srv.minRTT
	}
	body, err := a.assemble()
	if err != nil {
		return reply{}, buildFailure(err, srv.address)
	}
	if s.inTransaction() && srv.topology == selection.Sharded {
		s.pinned = srv.address
	}
	if s.inTransaction() && srv.topology == selection.LoadBalanced && s.conn == nil && conn.PinToTransaction() == nil {
		s.conn = conn
	}
	return a.exchange(ctx, body)
}

// checkOut checks out a connection. timeoutMS replaces waitQueueTimeoutMS, and makes server selection and check-out
// share serverSelectionTimeoutMS (Client Side Operations Timeout, "Server Selection").
func (a *attempt) checkOut(ctx context.Context) (*mnet.Connection, error) {
	end, p := func() {}, waitLimit{}
	if a.cmd.timeout {
		ctx, end = context.WithDeadline(ctx, a.srv.begun.Add(a.settings.ServerSelectionTimeout))
		p.deadline, _ = ctx.Deadline()
		p.rtt = a.srv.minRTT
	} else if w := a.settings.waitQueueTimeout; w > 0 {
		ctx, end = context.WithTimeout(ctx, w)
	}
	defer end()
	if a.srv.desc.TopologyVersion != nil && !a.sockets.polls {
		// If the attempt made the server Unknown before its monitor streams, the monitor would sleep for minHeartbeat.
		a.sockets.AwaitStream(a.srv.address, 50*time.Millisecond)
	}
	defer a.sockets.watch(a.srv.address, p)()
	return a.srv.Connection(ctx)
}

// exchange sends the command, reads its reply, and writes the events.
func (a *attempt) exchange(ctx context.Context, body bson.Raw) (reply, *failure) {
	cmd, conn, address := a.cmd, a.conn, a.srv.address
	a.trace.server, a.trace.service = address, conn.Description().ServiceID
	id := wiremessage.NextRequestID()
	a.id, a.secret, a.begun = int64(id), sensitive(cmd.name(), body), time.Now()
	a.started(body)
	doc, err := a.roundTrip(ctx, id, body)
	if err != nil {
		f := a.classify(networkFailure(err))
		a.failed(f.err)
		return reply{}, a.networkError(f, err)
	}

	a.gossip(doc)
	out := reply{doc: doc, address: address, wire: a.wire}
	f := a.classify(replyError(doc))
	if f == nil || okOf(doc) {
		a.succeeded(doc)
	} else {
		a.failed(f.err)
	}
	if f != nil {
		a.processError(doc)
		if !okOf(doc) {
			return reply{}, f
		}
		retryable := a.retryableWriteError(f)
		out.write, out.interrupts = f, retryable || a.driver.policy.RetryableWriteError(f.rules)
		noWrites := cmd.op.Class == operations.Write && f.err.HasLabel(codes.NoWritesPerformed) // raise an earlier error
		if retryable || noWrites {
			return out, f
		}
	}
	cursor, _ := enginekit.Integer(doc.Lookup("cursor", "id"))
	pin := cmd.pin && a.srv.topology == selection.LoadBalanced && cursor != 0
	if pin && (cmd.conn != nil || conn.PinToCursor() == nil) {
		out.conn = conn
	}
	return out, nil
}

// roundTrip sends a command and returns the reply, or {ok: 1} if the command has no reply.
func (a *attempt) roundTrip(ctx context.Context, id int32, body bson.Raw) (bson.Raw, error) {
	if d := a.settings.SocketTimeout; d > 0 && !a.cmd.timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	flags := wire.Flags(0)
	if a.silent {
		flags = wire.MoreToCome
	}
	m, err := wire.Sequenced(body, a.cmd.sequences...)
	if err != nil {
		return nil, err
	}
	m.Flags = flags
	wm := m.Append(nil, id, 0)
	if a.conn.Compressor != nil && !a.secret {
		if wm, err = a.conn.CompressWireMessage(wm, nil); err != nil {
			return nil, err
		}
	}
	if err := a.conn.Write(ctx, wm); err != nil {
		return nil, err
	}
	if a.silent {
		return bson.Marshal(document("ok", 1.0))
	}
	if wm, err = a.conn.Read(ctx); err != nil {
		return nil, err
	}
	return parse(id, wm)
}

// parse returns the body of the reply to a request.
func parse(request int32, message []byte) (bson.Raw, error) {
	h, body, err := wire.Split(message)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	return wire.Response(request, h, body)
}

// retryableWriteError reports whether a write error in a reply with ok 1 fails the attempt, so that the rules may retry
// it. Otherwise the operation includes it in its result or error.
func (a *attempt) retryableWriteError(f *failure) bool {
	numbered, p := a.cmd.op.EndsTransaction || a.cmd.txnNumber != nil, a.driver.policy
	return numbered && p.RetryableWriteError(f.rules) ||
		p.Overload != nil && overloaded(f.err) && (numbered || len(f.err.WriteErrors) == 0)
}

// overloaded reports whether an error is a retryable overload error.
func overloaded(err *result.Error) bool {
	return err.HasLabel(codes.SystemOverloadedError) && err.HasLabel(codes.RetryableError)
}

func okOf(doc bson.Raw) bool {
	b, _ := doc.Lookup("ok").BooleanOK()
	n, _ := enginekit.Integer(doc.Lookup("ok"))
	return b || n == 1
}

// networkError passes the error of a connection to the topology.
func (a *attempt) networkError(f *failure, err error) *failure {
	cmd, srv, conn := a.cmd, a.srv, a.conn
	if s := cmd.session.server; s != nil {
		s.dirty = true
	}
	if a.sockets.interrupted(srv.address, conn.DriverConnectionID()) {
		return f // another error has cleared the pool
	}
	a.sockets.handle(srv.address, func() bool {
		// The topology looks for a connection error inside a driver error.
		e := xdriver.Error{Message: err.Error(), Labels: []string{xdriver.NetworkError}, Wrapped: err}
		return srv.ProcessError(e, conn) != xdriver.NoChange && srv.unknown()
	})
	if cmd.conn == nil { // a cursor keeps its connection
		expire(conn)
	}
	return f
}

// expire checks in a connection that has perished, which closes it, also after a timeout (Connection Monitoring and
// Pooling, "Connection"). The topology would read the late reply and use the connection again.
func expire(conn *mnet.Connection) {
	if e, ok := conn.ReadWriteCloser.(xdriver.Expirable); ok {
		_ = e.Expire()
	}
}

// processError passes a state change error to the topology, to make it request an immediate check.
func (a *attempt) processError(doc bson.Raw) {
	if err := xdriver.ExtractErrorFromServerResponse([]byte(doc)); err != nil {
		a.srv.ProcessError(err, a.conn)
	}
}

// gossip advances the cluster time, the operation time and the state of the session.
func (a *attempt) gossip(doc bson.Raw) {
	now := clusterTimeOf(doc)
	if now != nil {
		a.clock.AdvanceClusterTime(now)
	}
	s := a.cmd.session
	s.advance(now, timestampOf(doc, "operationTime"))
	if s.snapshot && s.snapshotTime == nil {
		s.snapshotTime = cmp.Or(timestampOf(doc, "cursor", "atClusterTime"), timestampOf(doc, "atClusterTime"))
	}
	if token, ok := doc.Lookup("recoveryToken").DocumentOK(); ok && a.cmd.inTransaction() {
		s.recovery = token
	}
}

// unanswered reports whether there was no reply.
func unanswered(err *result.Error) bool {
	return broken(err) || err.Kind == "pool cleared" || err.Kind == "server selection"
}

// broken reports whether the error made a connection unusable.
func broken(err *result.Error) bool { return err.Kind == "network" || err.Kind == "protocol" }

// labelTransaction adds the labels of the Transactions specification.
func (cmd *command) labelTransaction(err *result.Error) {
	switch {
	case cmd.op.Name == "commitTransaction":
		if unknownCommit(err) && !err.HasLabel(codes.UnknownTransactionCommitResult) {
			err.Labels = append(without(err.Labels, codes.TransientTransactionError), codes.UnknownTransactionCommitResult)
		}
	case cmd.op.EndsTransaction:
	case cmd.session.inTransaction() && unanswered(err) && !err.HasLabel(codes.TransientTransactionError):
		err.Labels = append(err.Labels, codes.TransientTransactionError)
	}
}

// unpinForRetry unpins the session after a failed attempt to end the transaction, so that a retry may go to another
// mongos (Transactions, "When to unpin", 1 and 3).
func (cmd *command) unpinForRetry(err *result.Error) {
	if cmd.op.Name == "abortTransaction" || cmd.op.Name == "commitTransaction" && err.HasLabel(codes.UnknownTransactionCommitResult) {
		cmd.session.unpin()
	}
}

// unpinAtEnd unpins the session after a failed operation. Retries of a command that does not end the transaction go to
// its mongos (Transactions, "Mongos Pinning" and "When to unpin", 2).
func (cmd *command) unpinAtEnd(err *result.Error) {
	cmd.unpinForRetry(err)
	if cmd.inTransaction() && err.HasLabel(codes.TransientTransactionError) {
		cmd.session.unpin()
	}
}

// unknownCommit reports whether the outcome of a commit is unknown (Transactions, "UnknownTransactionCommitResult").
func unknownCommit(err *result.Error) bool {
	return unanswered(err) || err.HasLabel(codes.RetryableWriteError) || err.Code == codes.MaxTimeMSExpired ||
		len(err.WriteConcernErrors) > 0 && err.Code != codes.UnsatisfiableWriteConcern &&
			err.Code != codes.UnknownReplWriteConcern
}
