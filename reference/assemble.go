package reference

import (
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/selection"
)

// assembly is a command that is being assembled for an attempt.
type assembly struct {
	*attempt
	body bson.D
}

// checks return why a command cannot be sent. appliers add the generic fields, in this order.
var (
	checks   = []func(*assembly) error{(*assembly).adapt, (*assembly).checkTime, (*assembly).checkSession}
	appliers = []func(*assembly){
		(*assembly).applyRawData, (*assembly).applyTimeout, (*assembly).applyWriteConcern, (*assembly).applySession,
		(*assembly).applyReadConcern, (*assembly).applyReadPreference, (*assembly).applyClusterTime, (*assembly).applyAPI,
	}
)

// assemble builds a command and adds the generic fields.
func (a *attempt) assemble() (bson.Raw, error) {
	b := &assembly{a, slices.Clone(a.cmd.body)}
	for _, check := range checks {
		if err := check(b); err != nil {
			return nil, err
		}
	}
	for _, apply := range appliers {
		apply(b)
	}
	b.add("$db", a.cmd.db)
	return bson.Marshal(b.body)
}

// add adds a field unless the user has set it.
func (a *assembly) add(key string, value any) {
	if !slices.ContainsFunc(a.body, func(e bson.E) bool { return e.Key == key }) {
		a.body = append(a.body, bson.E{Key: key, Value: value})
	}
}

func (a *assembly) remove(key string) {
	a.body = slices.DeleteFunc(a.body, func(e bson.E) bool { return e.Key == key })
}

func (a *assembly) adapt() error {
	if a.cmd.adapt == nil {
		return nil
	}
	more, err := a.cmd.adapt(a.attempt)
	a.body = append(a.body, more...)
	return err
}

// limited reports whether maxTimeMS is derived from timeoutMS (Client Side Operations Timeout, "Command Execution").
func (a *assembly) limited() bool { return a.cmd.timeout && !a.cmd.noMaxTime && a.remaining < forever }

func (a *assembly) checkTime() error {
	// maxTimeMS 0 would mean no limit
	if a.cmd.timeout && a.remaining <= 0 || a.limited() && a.remaining < time.Millisecond {
		return errNoTime
	}
	return nil
}

// applyRawData removes rawData for servers before 8.2 (CRUD).
func (a *assembly) applyRawData() {
	if a.wire < wire82 && a.cmd.op.Name != "runCommand" {
		a.remove("rawData")
	}
}

func (a *assembly) applyTimeout() {
	if a.limited() {
		a.remove("maxTimeMS")
		a.add("maxTimeMS", a.remaining.Milliseconds())
	}
}

func (a *assembly) applyWriteConcern() {
	if len(a.cmd.writeConcern) > 0 && (!a.cmd.inTransaction() || a.cmd.op.EndsTransaction) {
		a.add("writeConcern", a.cmd.writeConcern)
	}
}

// supportsSessions reports whether the server supports sessions (Load Balancers, "Session Support").
func (a *assembly) supportsSessions() bool {
	return a.srv.topology == selection.LoadBalanced || a.conn.Description().SessionTimeoutMinutes != nil
}

func (a *assembly) checkSession() error {
	s := a.cmd.session
	switch {
	case a.silent && !s.implicit:
		return errors.New("unacknowledged writes cannot use an explicit session")
	case !a.supportsSessions() && !s.implicit:
		return errors.New("the server does not support sessions")
	case s.snapshot && a.wire < wire50:
		// the text of Snapshot Reads, "Requires MongoDB 5.0+"
		return argument("Snapshot reads require MongoDB 5.0 or later")
	}
	return nil
}

// applySession adds the session, and the number of the transaction or of a retryable write.
func (a *assembly) applySession() {
	cmd, s := a.cmd, a.cmd.session
	if !a.supportsSessions() || a.silent || cmd.closing {
		return
	}
	session := s.acquired()
	a.add("lsid", session.id)
	session.lastUse = a.driver.options.Now()
	switch {
	case cmd.inTransaction():
		a.applyTransaction(session.txn)
	case a.settings.RetryWrites && a.driver.policy.Numbers(cmd.op, a.srv.chosen()):
		if cmd.txnNumber == nil {
			session.txn++
			n := session.txn
			cmd.txnNumber = &n
		}
		a.add("txnNumber", *cmd.txnNumber)
	}
}

func (a *assembly) applyTransaction(number int64) {
	cmd, s := a.cmd, a.cmd.session
	if s.state == txnStarting {
		cmd.startTransaction, s.state = true, txnInProgress
	}
	a.add("txnNumber", number)
	if cmd.startTransaction {
		a.add("startTransaction", true)
	}
	a.add("autocommit", false)
	if cmd.op.EndsTransaction && s.recovery != nil {
		a.add("recoveryToken", s.recovery)
	}
}

func (a *assembly) applyReadConcern() {
	if rc := a.readConcern(); len(rc) > 0 {
		a.add("readConcern", rc)
	}
}

func (a *assembly) applyReadPreference() {
	cmd, srv := a.cmd, a.srv
	preference := srv.preference
	if cmd.primary {
		preference = selection.Preference{}
	}
	p, ok := selection.Pass(srv.topology, srv.kind, preference)
	if a.driver.policy.Pinning != "" {
		p, ok = pinning.Pass(preference, srv.kind == selection.Mongos)
	}
	if ok && (cmd.primary || !cmd.write) {
		a.add("$readPreference", p.Document())
	}
}

// applyClusterTime gossips the cluster time (Driver Sessions, "Gossipping the cluster time").
func (a *assembly) applyClusterTime() {
	now := later(a.clock.GetClusterTime(), a.cmd.session.clusterTime)
	if a.srv.kind != selection.Standalone && now != nil {
		a.add("$clusterTime", now.Lookup("$clusterTime"))
	}
}

func (a *assembly) applyAPI() {
	if a.api == nil {
		return
	}
	a.add("apiVersion", string(a.api.ServerAPIVersion))
	if a.api.Strict != nil {
		a.add("apiStrict", *a.api.Strict)
	}
	if a.api.DeprecationErrors != nil {
		a.add("apiDeprecationErrors", *a.api.DeprecationErrors)
	}
}

// causalWrites are the writes with afterClusterTime (Read and Write Concern, "afterClusterTime").
var causalWrites = []string{"insert", "update", "delete", "findAndModify", "bulkWrite", "create",
	"createIndexes", "drop", "dropDatabase", "dropIndexes"}

// readConcern returns the readConcern field, including the fields of the session.
func (a *assembly) readConcern() bson.D {
	cmd, s, inTxn := a.cmd, a.cmd.session, a.cmd.inTransaction()
	var rc bson.D
	switch {
	case inTxn && !cmd.startTransaction:
		return nil
	case inTxn:
		rc = slices.Clone(s.options.readConcern)
	case s.snapshot:
		// On every command, so that the server rejects those that cannot read from a snapshot (Snapshot Reads, "Sending
		// readConcern to the server on all commands").
		return addIf(document("level", "snapshot"), s.snapshotTime != nil, "atClusterTime", s.snapshotTime)
	case cmd.op.Name == "runCommand":
		// the argument; nothing is added (Causal Consistency, "Causally consistent read and write commands")
		return cmd.readConcern
	case slices.Contains(causalWrites, cmd.name()):
	case !cmd.takesReadConcern:
		return nil
	default:
		rc = slices.Clone(cmd.readConcern)
	}
	causal := s.causal && s.operationTime != nil && a.srv.kind != selection.Standalone
	return addIf(rc, causal, "afterClusterTime", s.operationTime)
}
