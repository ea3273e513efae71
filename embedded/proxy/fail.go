package proxy

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/compose"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// fail evaluates the fail points for a command before it runs. It returns the reply if the command does not run, and
// ErrClose if the connection is closed instead. reads means that nothing else reads the client's messages.
func (k *conn) fail(x *pending, reads bool) (bson.Raw, error) {
	c, registry := k.command(x), k.registry()
	about := k.front.current()
	numbered := value.Has(x.Body, "txnNumber") && about.role() == commands.Standalone
	if registry == nil || numbered || !x.row.Exists(about.wire, about.role()) {
		return nil, nil // a standalone refuses the number before, and any server a command that it does not have
	}
	if f, hit := registry.Before(c); hit {
		x.failure = f
		if version.Of(about.wire).ErrorLabels {
			x.labels = f.Labels
		}
		if f.Block > 0 && f.LoseReply {
			_ = k.toClient.Close() // before the command runs
		}
		err := f.Error(about.wire)
		if f.Block > 0 && (err != nil || x.topology.IsZero()) {
			err = cmp.Or(k.block(x, reads), err)
		} // a reply in a stream of hello is blocked later: a server waits for a change only after the block
		switch {
		case errors.Is(err, failpoint.ErrClose):
			return nil, err
		case err != nil:
			return k.failure(x, err), nil
		}
	}
	return k.expire(x, registry, c), nil
}

// expire returns the reply to a command whose time limit has passed, or that a fail point fails as it begins.
func (k *conn) expire(x *pending, registry *failpoint.Registry, c failpoint.Command) bson.Raw {
	if x.row.Name == "getMore" {
		if f, hit := registry.During(failpoint.FailGetMoreAfterCursorCheckout, c); hit && f.HasCode {
			x.checkedOut = true
			return k.failure(x, fault.Errorf(f.Code, "Hit the '%s' failpoint", failpoint.FailGetMoreAfterCursorCheckout))
		}
		return nil
	}
	ms := value.IntAt(x.Body, "maxTimeMS")
	if ms <= 0 {
		return nil
	}
	_, always := registry.During(failpoint.MaxTimeAlwaysTimeOut, c)
	if always || time.Since(x.start) > time.Duration(ms)*time.Millisecond {
		return k.failure(x, store.TimedOut())
	}
	return nil
}

func (k *conn) command(x *pending) failpoint.Command {
	k.mu.Lock()
	defer k.mu.Unlock()
	return failpoint.Command{Name: x.row.Name, Aliases: x.row.Aliases, Namespace: x.namespace(), AppName: k.appName,
		Connection: k.number}
}

// parts returns the parts of a reply that the command and the server determine.
func (k *conn) parts(x *pending) *compose.Reply {
	about := k.front.current()
	k.mu.Lock()
	defer k.mu.Unlock()
	r := &compose.Reply{Facts: compose.Facts{Wire: about.wire, Mongos: about.mongos,
		EndsTransaction: x.row.EndsTransaction, NoWrites: !k.lastOp.IsZero()}}
	r.Read(x.Body)
	if id, ok := x.Body.Lookup("getMore").AsInt64OK(); ok && x.checkedOut {
		_, r.ChangeStream = k.front.proxy.streams.Load(id)
	}
	now := sync.OnceValues(func() (bson.RawValue, bson.D) { return k.front.times(k.ctx) })
	r.Times = func() bson.D { _, times := now(); return times }
	r.Topology = func() any {
		if version, _ := now(); about.member && !version.IsZero() {
			return version
		}
		return nil
	}
	r.Backoff = func() int64 { return k.front.baseBackoff(k.ctx) }
	return r
}

// failure returns the reply to a command that failed before it ran. Labels of a fail point replace the server's.
func (k *conn) failure(x *pending, err error) bson.Raw {
	r := k.parts(x)
	if r.Labels = x.labels; !errors.As(err, &r.Failure) {
		r.Failure = fault.Errorf(fault.InternalError, "%s", err)
	}
	r.SetLabels()
	return r.Compose()
}

// written adds the write concern error of a fail point to the reply of a command that has run, and records the time of
// the write.
func (k *conn) written(x *pending, doc bson.Raw) bson.Raw {
	code := int32(value.IntAt(doc, "code"))
	if !x.row.AcceptsWriteConcern() || k.registry() == nil || slices.Contains(refusals, code) {
		return doc
	}
	r := k.parts(x)
	r.NoWrites = !k.noteWrite(x, doc) && r.NoWrites
	f, hit := k.registry().After(k.command(x), x.failure)
	if !hit {
		return doc
	}
	x.labels = nil
	r.Fields = unlabeled(value.Delete(value.Must(doc), "writeConcernError"))
	r.Concern, r.ConcernCode, r.Labels = f.WriteConcernError, int32(value.IntAt(f.WriteConcernError, "code")), f.Labels
	if code != 0 {
		r.Failure = &fault.Error{Code: code}
	} else {
		r.Fields = value.Delete(r.Fields, "topologyVersion")
	}
	r.SetLabels()
	return r.Amend()
}

// relabeled returns the reply to a command that a fail point has not failed: its labels replace the server's,
// and are also in a reply without an error.
func (k *conn) relabeled(x *pending, doc bson.Raw) bson.Raw {
	if x.labels == nil {
		return doc
	}
	r := k.parts(x)
	r.Fields, r.Labels = unlabeled(value.Must(doc)), x.labels
	return r.Amend()
}

// unlabeled removes the fields with labels.
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

// noteWrite records the time of a write, and reports whether the command has written anything.
func (k *conn) noteWrite(x *pending, doc bson.Raw) bool {
	open := value.Has(x.Body, "autocommit") && !x.row.EndsTransaction && !value.Has(doc, "writeErrors")
	if !x.row.Write || !succeeded(doc) || open {
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
