package proxy

import (
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// fail evaluates the fail points for a command before it runs. It returns the reply if the command does not run, and
// errClose if the connection is closed instead.
func (k *conn) fail(x *pending, block func(*pending, time.Duration) end) (bson.Raw, error) {
	p, c, registry := k.front.proxy, k.command(x), k.registry()
	about := k.front.current()
	_, err := x.body.LookupErr("txnNumber")
	if registry == nil || err == nil && about.role() == commands.Standalone || !x.row.Exists(about.wire, about.role()) {
		return nil, nil // a standalone refuses the number before, and any server a command that it does not have
	}
	f, hit := registry.Before(c)
	if !hit {
		if x.element, hit = p.sequence.Next(c); hit {
			f = x.element
		}
	}
	if hit {
		labels := f.Labels
		if !version.Of(about.wire).ErrorLabels {
			labels = nil
		}
		x.labels = labels
		if f.Err != nil {
			return k.failure(x, f.Err, labels), nil
		}
		if f.Block > 0 {
			if x.element.LoseReply {
				_ = k.client.Close() // the client notices it before the command runs
			}
			switch block(x, f.Block) {
			case killed:
				return k.failure(x, store.Interrupted(), labels), nil
			case left:
				return nil, errClose
			case over:
			}
		}
		closes, err := f.Error(about.wire)
		if closes {
			return nil, errClose
		}
		if err != nil {
			return k.failure(x, err, labels), nil
		}
	}
	return k.expire(x, registry, c), nil
}

// expire returns the reply to a command whose time limit has passed, or that a fail point fails as it begins.
func (k *conn) expire(x *pending, registry *failpoint.Registry, c failpoint.Command) bson.Raw {
	if x.row.Name == "getMore" {
		if f, hit := registry.During(failpoint.FailGetMoreAfterCursorCheckout, c); hit && f.HasCode {
			return k.failure(x, fault.Errorf(f.Code, "Hit the '%s' failpoint", failpoint.FailGetMoreAfterCursorCheckout), nil)
		}
		return nil
	}
	ms, _ := x.body.Lookup("maxTimeMS").AsInt64OK()
	if ms <= 0 {
		return nil
	}
	_, always := registry.During(failpoint.MaxTimeAlwaysTimeOut, c)
	if always || time.Since(x.start) > time.Duration(ms)*time.Millisecond {
		return k.failure(x, store.TimedOut(), nil)
	}
	return nil
}

func (k *conn) command(x *pending) failpoint.Command {
	k.mu.Lock()
	defer k.mu.Unlock()
	return failpoint.Command{Name: x.row.Name, Aliases: x.row.Aliases, Namespace: x.namespace(), AppName: k.appName,
		Connection: k.number}
}

// labels returns what decides which labels the server would add.
func (k *conn) labels(x *pending, code int32) fault.Reply {
	about := k.front.current()
	_, errNumber := x.body.LookupErr("txnNumber")
	_, errAuto := x.body.LookupErr("autocommit")
	stage, _ := x.body.Lookup("pipeline", "0").DocumentOK()
	_, errStream := stage.LookupErr("$changeStream")
	k.mu.Lock()
	defer k.mu.Unlock()
	return fault.Reply{Wire: about.wire, Mongos: about.mongos, Code: code, HasTxnNumber: errNumber == nil,
		InTransaction:   errAuto == nil,
		EndsTransaction: x.row.EndsTransaction, ChangeStream: errStream == nil, NoWrites: !k.lastOp.IsZero()}
}

// failure returns the reply to a command that failed before it ran, in the order of a mongod. Labels of a fail point
// replace those of the server.
func (k *conn) failure(x *pending, err error, labels []string) bson.Raw {
	failed := new(fault.Error)
	if !errors.As(err, &failed) {
		failed = fault.Errorf(fault.InternalError, "%s", err)
	}
	if labels == nil {
		labels = k.labels(x, failed.Code).Labels()
	}
	version, times := k.front.times(k.ctx)
	if about := k.front.current(); !about.member || !fault.NotPrimary.In(failed.Code, about.wire) {
		version = nil
	}
	doc := slices.Concat(k.labeled(labels), version,
		bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: failed.Message}, {Key: "code", Value: failed.Code},
			{Key: "codeName", Value: fault.NameIn(failed.Code, k.front.current().wire)}}, failed.Extra, times)
	return value.Encode(doc)
}

// written adds the write concern error of a fail point to the reply of a command that has run, and remembers whether
// the command has written.
func (k *conn) written(x *pending, doc bson.Raw) bson.Raw {
	code, _ := doc.Lookup("code").AsInt64OK()
	if !x.row.AcceptsWriteConcern() || k.registry() == nil || slices.Contains(refusals, int32(code)) {
		return doc
	}
	facts := k.labels(x, int32(code))
	facts.NoWrites = !k.noteWrite(x, doc) && facts.NoWrites
	f, hit := k.registry().After(k.command(x))
	if x.element.WriteConcernError != nil {
		f, hit = x.element, true
	}
	if !hit {
		return doc
	}
	x.labels = nil
	concern, _ := f.WriteConcernError.Lookup("code").AsInt64OK()
	facts.HasConcern, facts.ConcernCode = true, int32(concern)
	labels := f.Labels
	if labels == nil {
		labels = facts.Labels()
	}
	about := k.front.current()
	out := value.Must(doc)
	out = unlabeled(value.Delete(out, "writeConcernError"))
	out = append(out, bson.E{Key: "writeConcernError", Value: f.WriteConcernError})
	out = append(out, k.labeled(labels)...)
	if about.member && code == 0 && fault.NotPrimary.In(facts.ConcernCode, about.wire) {
		version, _ := k.front.times(k.ctx)
		out = append(value.Delete(out, "topologyVersion"), version...)
	}
	return value.Encode(out)
}

// relabeled returns the reply to a command that a fail point has not failed: its labels replace those of the server,
// and are also in a reply without an error.
func (k *conn) relabeled(x *pending, doc bson.Raw) bson.Raw {
	if x.labels == nil {
		return doc
	}
	return value.Encode(append(unlabeled(value.Must(doc)), k.labeled(x.labels)...))
}

// labeled returns the fields of a reply with labels: an overloaded server adds its base backoff.
func (k *conn) labeled(labels []string) bson.D {
	if len(labels) == 0 {
		return nil
	}
	fields := bson.D{{Key: "errorLabels", Value: labels}}
	if slices.Contains(labels, "SystemOverloadedError") {
		fields = append(fields, k.front.baseBackoff(k.ctx)...)
	}
	return fields
}

// unlabeled removes these fields.
func unlabeled(reply bson.D) bson.D {
	return value.Delete(value.Delete(reply, "errorLabels"), "baseBackoffMS")
}

// refusals are the errors of commands that a server does not begin, and for which it waits for no write concern.
var refusals = []int32{
	fault.BadValue, fault.FailedToParse, fault.Unauthorized, fault.TypeMismatch,
	fault.IllegalOperation, fault.CommandNotFound, fault.InvalidOptions, fault.InvalidNamespace,
	fault.OperationNotSupportedInTransaction, fault.NotWritablePrimary, fault.NotPrimaryOrSecondary,
	fault.APIVersionError, fault.APIStrictError, fault.NotARetryableWriteCommand,
	fault.IDLFailedToParse, fault.IDLUnknownField,
}

// noteWrite remembers the time of a write, and reports whether the command has written anything.
func (k *conn) noteWrite(x *pending, doc bson.Raw) bool {
	_, errAuto := x.body.LookupErr("autocommit")
	_, errWrite := doc.LookupErr("writeErrors")
	if !x.row.Write || !succeeded(doc) || errAuto == nil && !x.row.EndsTransaction && errWrite != nil {
		return false
	}
	t, i, _ := doc.Lookup("operationTime").TimestampOK()
	now := bson.Timestamp{T: t, I: i}
	k.mu.Lock()
	defer k.mu.Unlock()
	wrote := now != k.lastOp
	k.lastOp = now
	return wrote
}
