package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/compose"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// unsatisfied is a write concern that no member could ever satisfy, or that was not satisfied in time.
type unsatisfied struct {
	code    int32
	message string
	concern bson.Raw
	late    bool
}

// supportsConcern reports whether the command accepts a write concern. mapReduce does if it writes a collection.
func (x *exchange) supportsConcern() bool {
	if x.row.Name == "mapReduce" {
		return !value.Has(x.request.Body, "out", "inline")
	}
	return x.row.AcceptsWriteConcern()
}

// awaitConcern is the one place that waits for the write concern, after success and after failure.
func (x *exchange) awaitConcern() {
	if !x.ran || !x.supportsConcern() {
		return
	}
	if x.unsatisfied == nil {
		x.awaitReplication()
	}
	switch f, hit := x.server.failPoints.After(x.forFailPoint(), x.failure); {
	case hit:
		x.out.Concern, x.out.Labels = f.WriteConcernError, f.Labels
		x.out.ConcernCode = int32(value.IntAt(f.WriteConcernError, "code"))
		x.out.Appended = x.view.isMongos() && x.row.Statements == "" // it passes on the reply of its shard
	case x.unsatisfied != nil && x.triedToWrite():
		x.out.Concern, x.out.ConcernCode = x.unsatisfied.text(x), x.unsatisfied.code
	}
}

// triedToWrite reports whether there was a write to wait for, even if it failed or changed nothing.
func (x *exchange) triedToWrite() bool {
	failure := x.out.Failure
	errs, _ := value.Get(x.out.Fields, "writeErrors").(bson.A)
	ordered, given := x.request.Body.Lookup("ordered").BooleanOK()
	switch mongos := x.view.isMongos(); {
	case mongos && failure != nil && len(x.response.AfterTimes) == 0 && x.row.Name != "findAndModify":
		// not a reply of the shard
		return false
	case mongos && len(errs) > 0:
		return given && !ordered && len(errs) < len(value.Elements(x.request.Body.Lookup(x.row.Statements)))
	case failure == nil:
	case failure.Code == fault.NoSuchTransaction, failure.Code == fault.TransactionTooOld && !x.request.InTransaction:
		return true // the server writes a no-op to wait for
	}
	return x.row.Parse == nil || x.response.TriedToWrite
}

// text returns the write concern error. A mongos adds the details to the message, unless it passes on the reply of a
// shard. It drops the details where it composes the error itself.
func (u *unsatisfied) text(x *exchange) bson.D {
	mongos := x.view.isMongos() && !x.row.EndsTransaction
	details, message := u.details(), u.message
	if mongos {
		message += "; Error details: " + value.Text(details) + " at " + ShardName
	}
	out := value.Append(compose.Code(u.code, x.view.Wire), "errmsg", message)
	return value.AddIf(out, !mongos || x.row.Statements == "", "errInfo", details)
}

// details returns the write concern as errors show it.
func (u *unsatisfied) details() bson.D {
	given := value.Append(value.Pick(u.concern, "w", "j"), "wtimeout", int32(value.IntAt(u.concern, "wtimeout")),
		"provenance", "clientSupplied")
	return value.Append(value.AddIf(bson.D{}, u.late, "wtimeout", true), "writeConcern", given)
}

const maxW = 50 // maximum number of members of a replica set

// writeConcern checks the write concern, and whether it can be satisfied.
func (x *exchange) writeConcern() error {
	given, err := x.request.Body.LookupErr("writeConcern")
	if err != nil {
		return nil
	}
	if !x.supportsConcern() {
		return x.noWriteConcern()
	}
	var p fault.First
	name, mongos, wrong := x.row.Name, x.view.isMongos(), x.view.Has.IDL && given.Type != bson.TypeEmbeddedDocument
	p.Refuse(wrong && mongos && x.row.Statements != "", fault.NotAnObject,
		"invalid parameter: expected an object (writeConcern)")
	if wrong && (name == "aggregate" || name == "findAndModify" && !mongos) {
		p.Note(wrongType(name+".writeConcern", given, "object"))
	}
	concern, err := x.document("writeConcern")
	p.Note(err)
	if name != "aggregate" {
		p.Note(commands.CheckDocument(&x.request, "writeConcern", value.Must(concern)))
	}
	for _, e := range value.Must(concern) {
		known := slices.ContainsFunc(writeConcernFields, func(name string) bool { return strings.EqualFold(name, e.Key) })
		p.Refuse(!known, fault.FailedToParse, "unrecognized write concern field: %s", e.Key)
	}
	w, err := concern.LookupErr("w")
	if err != nil || p.Err != nil {
		return p.Err
	}
	return x.acknowledgements(concern, w)
}

// noWriteConcern refuses a write concern that the command does not accept. A mongos parses it first, and begins a
// transaction before it refuses it.
func (x *exchange) noWriteConcern() error {
	mongos := x.view.isMongos()
	if _, err := x.document("writeConcern"); err != nil && mongos {
		return err
	}
	x.noTimes = mongos
	refused := fault.Errorf(fault.InvalidOptions, "Command does not support writeConcern")
	if mongos && x.request.InTransaction && x.row.Parse != nil && x.view.Has.TransactionErrors {
		x.request.Refused = refused
		return nil
	}
	return refused
}

// acknowledgements checks a w: a number of members, majority, tags, or a mode that the configuration of the replica set
// would have to define. Configurations here never define modes.
func (x *exchange) acknowledgements(concern bson.Raw, w bson.RawValue) error {
	n, isNumber := w.AsInt64OK()
	name, isText := w.StringValueOK()
	_, tags := w.DocumentOK()
	alone := x.view.Role == commands.Standalone
	switch {
	case name == "majority":
	case isText && alone:
		return fault.Errorf(fault.BadValue,
			"cannot use non-majority 'w' mode %s when a host is not a member of a replica set", name)
	case isText:
		message := "No write concern mode named '" + name + "' found in replica set configuration"
		return x.unsatisfiable(fault.UnknownReplWriteConcern, message, concern)
	case !isNumber && !x.view.Has.TagsAsW:
		return fault.Errorf(fault.FailedToParse, "w has to be a number or a string")
	case !isNumber && !tags:
		return fault.Errorf(fault.FailedToParse, "w has to be a number, string, or object")
	case n < 0 || n > maxW:
		return fault.Errorf(fault.FailedToParse, "w has to be a non-negative number and not greater than %d", maxW)
	case n > 1 && alone:
		return fault.Errorf(fault.BadValue, "cannot use 'w' > 1 when a host is not replicated")
	case x.view.isMember() && int(n) > x.view.set.dataBearing(), x.view.isMongos() && n > shardMembers:
		return x.unsatisfiable(fault.UnsatisfiableWriteConcern, "Not enough data-bearing nodes", concern)
	}
	return nil
}

var (
	writeConcernFields  = []string{"w", "j", "wtimeout", "fsync", "provenance", "getLastError", "wElectionId", "wOpTime"}
	internalReadConcern = []string{"$_allowTransactionTableSnapshot", "$_waitLastStableRecoveryTimestamp"}
	provenances         = []string{"clientSupplied", "implicitDefault", "customDefault", "getLastErrorDefaults",
		"internalWriteDefault"}
)

// readConcern is the field readConcern of a command.
type readConcern struct {
	level       string
	hasLevel    bool
	after, at   *bson.Timestamp // afterClusterTime and atClusterTime
	afterOpTime bool
}

// parse reads the fields of a read concern in order. It refuses fields that contradict each other.
func (r *readConcern) parse(concern bson.Raw) error {
	var p fault.First
	elements, _ := concern.Elements() // a validated document cannot cause an error
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "level":
			r.level, r.hasLevel = v.StringValueOK()
			checkType(&p, e.Key(), "string", v)
			p.Refuse(!slices.Contains(commands.ReadConcernLevels, r.level), fault.FailedToParse,
				"readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
		case "afterClusterTime":
			r.after = readTime(&p, e)
		case "atClusterTime":
			r.at = readTime(&p, e)
		case "afterOpTime":
			r.afterOpTime = true
		case "provenance":
			name, _ := v.StringValueOK()
			p.Refuse(!slices.Contains(provenances, name), fault.BadValue,
				"Enumeration value '%s' for field 'ReadConcernArgs::parse.provenance' is not a valid value.", name)
		default:
			p.Refuse(!slices.Contains(internalReadConcern, e.Key()), fault.InvalidOptions,
				"Unrecognized option in readConcern: %s", e.Key())
		}
	}
	p.Refuse(r.after != nil && (r.level == "linearizable" || r.level == "available"), fault.InvalidOptions,
		"afterClusterTime field can be set only if level is equal to majority, local, or snapshot")
	p.Refuse(r.at != nil && r.level != "snapshot", fault.InvalidOptions,
		"atClusterTime field can be set only if level is equal to snapshot")
	p.Refuse(r.after != nil && r.after.IsZero(), fault.InvalidOptions, "afterClusterTime cannot be a null timestamp")
	p.Refuse(r.at != nil && r.at.IsZero(), fault.InvalidOptions, "atClusterTime cannot be a null timestamp")
	p.Refuse(r.after != nil && r.at != nil, fault.InvalidOptions,
		"Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed. "+
			"See https://docs.mongodb.com/manual/core/read-isolation-consistency-recency/#causal-consistency")
	return p.Err
}

func readTime(p *fault.First, e bson.RawElement) *bson.Timestamp {
	t, i, _ := e.Value().TimestampOK()
	checkType(p, e.Key(), "timestamp", e.Value())
	return &bson.Timestamp{T: t, I: i}
}

// text returns the read concern as in messages.
func (r *readConcern) text() string {
	out := value.AddIf(bson.D{}, r.hasLevel, "level", r.level)
	if r.after != nil {
		out = value.Append(out, "afterClusterTime", *r.after)
	}
	if r.at != nil {
		out = value.Append(out, "atClusterTime", *r.at)
	}
	return value.Text(value.Doc("readConcern", value.Append(out, "provenance", "clientSupplied")))
}

// readConcern checks the read concern. The backend applies it.
func (x *exchange) readConcern() (err error) {
	given, err := x.request.Body.LookupErr("readConcern")
	if err != nil {
		return nil
	}
	concern, ok := given.DocumentOK()
	if !ok && given.Type != bson.TypeNull && x.row.Name == "aggregate" {
		return wrongType("aggregate.readConcern", given, "object")
	}
	mongos := x.view.isMongos()
	x.noTimes = mongos // if it fails before it knows the time
	if !ok {
		return fault.Errorf(fault.FailedToParse, "readConcern field should be an object")
	}
	var r readConcern
	if err := r.parse(concern); err != nil {
		return err
	}
	if reason := x.refusesLevel(&r); reason != "" {
		if mongos && r.level == "snapshot" && x.row.ShardRefuses {
			now := x.server.cluster.Backend.ClusterTime(bson.Timestamp{})
			r.after, r.at, x.noTimes = nil, cmp.Or(r.at, &now), false
		}
		return fault.Errorf(fault.InvalidOptions, "Command %s does not support %s :: caused by :: %s", x.request.Name,
			r.text(), reason)
	}
	x.noTimes = false
	if mongos && !x.row.ReadsShard() {
		return nil
	}
	err = x.readTimes(&r)
	e, failed := err.(*fault.Error)
	switch {
	case failed && mongos && x.row.Raw:
		x.execute = func() (bson.D, error) { return commands.ShardFailure(ShardHost(x.server.cluster.SetName), e) }
		return nil
	case failed && mongos && shardErrors[x.row.Name] != "":
		e.Message = shardErrors[x.row.Name] + " :: caused by :: " + e.Message
	}
	return err
}

// shardErrors is what a mongos puts before the errors of its shard.
var shardErrors = map[string]string{"find": "Encountered non-retryable error during query",
	"count":     "failed on: " + ShardName,
	"mapReduce": "MapReduce internal error"}

// readTimes checks the times of a read concern on the server that reads.
func (x *exchange) readTimes(r *readConcern) error {
	var p fault.First
	alone, now := x.view.Role == commands.Standalone, x.server.cluster.Backend.ClusterTime(bson.Timestamp{})
	p.Refuse(alone && (r.level == "linearizable" || r.afterOpTime), fault.NotAReplicaSet,
		"node needs to be a replica set member to use read concern")
	p.Refuse(alone && r.level == "snapshot", fault.NotAReplicaSet,
		"node needs to be a replica set member to use readConcern: snapshot")
	p.Refuse(x.row.NoAfterClusterTime && r.after != nil && !x.view.isMongos(), fault.InvalidOptions,
		"afterClusterTime is not allowed for this command")
	p.Refuse(alone && r.after != nil, fault.IllegalOperation,
		"Cannot specify afterClusterTime readConcern without replication enabled")
	for name, t := range map[string]*bson.Timestamp{"afterClusterTime": r.after, "atClusterTime": r.at} {
		if t != nil {
			p.Refuse(t.After(now), fault.InvalidOptions,
				"readConcern %s value must not be greater than the current clusterTime. "+
					"Requested clusterTime: { ts: Timestamp(%d, %d) }; current clusterTime: { ts: Timestamp(%d, %d) }", name, t.T, t.I,
				now.T, now.I)
		}
	}
	return p.Err
}

// stageLevels are the levels of readConcern that aggregation stages require.
var stageLevels = map[string]string{"$changeStream": "majority", "$currentOp": "local", "$listLocalSessions": "local"}

// refusesLevel returns why the command does not support the level of a read concern, "" if it does.
func (x *exchange) refusesLevel(r *readConcern) string {
	for _, stage := range value.Documents(x.request.Body.Lookup("pipeline")) {
		name := firstKey(stage)
		level := stageLevels[name]
		switch {
		case !r.hasLevel || x.row.Name != "aggregate" || x.request.InTransaction:
		case level != "" && r.level != level:
			return fmt.Sprintf("Aggregation stage %s cannot run with a readConcern other than '%s'. Current readConcern: %s",
				name, level, r.level)
		case (name == "$out" || name == "$merge") && r.level == "linearizable":
			return name + " cannot be used with a 'linearizable' read concern level"
		}
	}
	switch {
	case !r.hasLevel || slices.Contains(x.readLevels(), r.level):
		return ""
	case x.row.Name == "count" && r.level == "snapshot":
		return "read concern snapshot not supported"
	case x.row.EndsTransaction && x.row.ReadConcern != nil:
		return "only read concerns valid in transactions are supported"
	}
	return "read concern not supported"
}

// readLevels returns the levels of readConcern that the command accepts: in a transaction all, except for create and
// createIndexes.
func (x *exchange) readLevels() []string {
	auto, ok := x.request.Body.Lookup("autocommit").BooleanOK()
	switch {
	case ok && !auto && x.row.Name != "create" && x.row.Name != "createIndexes":
		return commands.ReadConcernLevels
	case x.row.RoutedReadConcern && x.view.isMongos():
		return commands.ReadConcernLevels
	case x.row.ReadConcern != nil:
		return x.row.ReadConcern
	}
	return commands.ReadConcernLevels[:1]
}

// unsatisfiable records a write concern that cannot be satisfied. On a mongos it fails an aggregation, because the
// stage writes a temporary collection first.
func (x *exchange) unsatisfiable(code int32, message string, concern bson.Raw) error {
	x.unsatisfied = &unsatisfied{code: code, message: message, concern: concern}
	if !x.view.isMongos() || x.row.Name != "aggregate" {
		return nil
	}
	details := x.unsatisfied.details()
	name := "tmp.agg_out." + value.UUIDText(value.NewUUID().Data)
	create := append(value.Doc("create", name, "temp", true), details...)
	return fault.Errorf(code, "PlanExecutor error during aggregation :: caused by :: write concern failed while running command %s :: caused by :: %s; Error details: %s",
		value.Text(create), message, value.Text(details))
}

// awaitReplication waits until enough members acknowledge what the command has written, or until wtimeout. All members
// share their data, and acknowledge at once unless the fail point stopReplProducer stops one.
func (x *exchange) awaitReplication() {
	concern := value.DocAt(x.request.Body, "writeConcern")
	if concern == nil || !x.view.isMember() || x.request.InTransaction && !x.row.EndsTransaction {
		return
	}
	var timeout <-chan time.Time
	if ms := value.IntAt(concern, "wtimeout"); ms > 0 {
		timeout = time.After(time.Duration(ms) * time.Millisecond)
	}
	for {
		missing, changed := x.missing(concern.Lookup("w"))
		if missing <= 0 || !x.triedToWrite() {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			x.unsatisfied = &unsatisfied{fault.WriteConcernTimeout, "waiting for replication timed out", concern, true}
			return
		case <-x.request.Context.Done():
			return
		}
	}
}

// missing returns how many acknowledgements are missing for a w, and a channel that is closed when a stopped member
// continues.
func (x *exchange) missing(w bson.RawValue) (n int, changed <-chan struct{}) {
	data := x.view.set.dataBearing()
	needed, isNumber := w.AsInt64OK()
	if name, _ := w.StringValueOK(); name == "majority" {
		needed, isNumber = int64(data/2+1), true
	}
	for _, s := range x.server.cluster.Members() {
		on, next := s.failPoints.On(failpoint.StopReplProducer)
		if on && s.view().Role == commands.Secondary {
			data, changed = data-1, next
		}
	}
	if !isNumber || changed == nil { // all acknowledge, or a custom mode
		return 0, nil
	}
	return int(needed) - data, changed
}
