// Package enginetest checks whether an engine fulfils the contract of engine.Engine: a table of behaviors, each with
// the reason why the runner relies on it. Suites test the driver; enginetest tests the adapter around it.
package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/trial"
	"github.com/unified-test-runner/utr/result"
)

// Behavior is a required behavior of engines.
type Behavior struct {
	Name   string
	Reason string
	// Vital behaviors are needed by the others: without one, a check can end.
	Vital bool
	check func(*bench)
}

// limit is the time limit of a behavior. Only a hang should reach it. Nothing slow happens in a vital behavior.
const (
	limit      = time.Minute
	vitalLimit = 20 * time.Second
)

// Check checks the behavior of an engine on the deployment with the connection string uri, which must have fail
// points enabled. The error describes what the engine did instead, or is a *result.Error that names something that
// the behavior needs and the engine does not support. All behaviors need find and insertOne of a collection. Check
// leaves a collection in the database "utr-enginetest". Behaviors set the same fail point, so they cannot run
// concurrently on one deployment.
func (b Behavior) Check(ctx context.Context, e engine.Engine, uri string) error {
	limit := limit
	if b.Vital {
		limit = vitalLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %s", limit))
	defer cancel()
	t, err := e.Begin(ctx)
	if err != nil {
		return err
	}
	k := &bench{Trial: &trial.Trial{}, ctx: ctx, engine: e, test: t, uri: uri, collection: "documents-" + rand.Text()}
	k.AtEnd(func(ctx context.Context) error { return k.test.End(ctx) })
	if err = k.open(); err == nil {
		k.Try(func() { b.check(k) })
		err = k.Failed()
	}
	if failed := k.End(ctx, limit); failed != nil && (err == nil || !strings.Contains(err.Error(), failed.Error())) {
		err = errors.Join(err, fmt.Errorf("ending the test: %w", failed))
	}
	return err
}

// bench is a test on the engine with three open entities: a client, a database and a
// collection, each named after its kind.
type bench struct {
	*trial.Trial // shared with other tests on the engine
	ctx          context.Context
	engine       engine.Engine
	test         engine.Test
	uri          string
	// collection is the unique name of the collection on the server.
	collection string
}

// with returns a bench for another test on the same engine.
func (k *bench) with(test engine.Test) *bench {
	other := *k
	other.test = test
	return &other
}

// check fails the behavior if err is not nil.
func (k *bench) check(err error) { k.failIf(err != nil, "%w", err) }

// failIf fails the behavior if a condition holds.
func (k *bench) failIf(holds bool, format string, args ...any) { k.Require(!holds, format, args...) }

func (k *bench) fail(format string, args ...any) { k.failIf(true, format, args...) }

// all is the arguments of a find of all documents.
const all = `{"filter": {}}`

func (k *bench) open() error {
	for _, e := range []struct{ kind, options string }{
		{"client", `{}`},
		{"database", `{"client": "client", "databaseName": "utr-enginetest"}`},
		{"collection", `{"database": "database", "collectionName": "` + k.collection + `"}`},
	} {
		if err := k.entity(e.kind, e.kind, e.options); err != nil {
			return err
		}
	}
	return nil
}

// disarm turns the fail point off in another test, because this one can be broken.
func (k *bench) disarm(ctx context.Context) error {
	t, err := k.engine.Begin(ctx)
	if err != nil {
		return err
	}
	other := k.with(t)
	other.ctx = ctx
	err = other.entity("client", "client", `{}`)
	out := other.do("client", engine.OpConfigureFailPoint, trial.FailCommand(`"off"`, `{}`))
	if err == nil && out.Err != nil {
		err = out.Err
	}
	return errors.Join(err, t.End(ctx))
}

func (k *bench) entity(kind, id, options string) error {
	if err := trial.Open(k.ctx, k.test, k.uri, kind, id, options); err != nil {
		return fmt.Errorf("opening %s %s: %w", kind, id, err)
	}
	return nil
}

func (k *bench) doIn(ctx context.Context, object, name, arguments string) result.Outcome {
	return trial.Do(ctx, k.test, object, name, arguments)
}

func (k *bench) do(object, name, arguments string) result.Outcome {
	return k.doIn(k.ctx, object, name, arguments)
}

// must performs an operation that must succeed.
func (k *bench) must(object, name, arguments string) result.Outcome {
	out := k.do(object, name, arguments)
	k.failIf(out.Err != nil, "%s on %s: %w", name, object, out.Err)
	k.check(out.Broken)
	return out
}

func (k *bench) insert() { k.must("collection", "insertOne", `{"document": {}}`) }

// count counts the documents in the collection.
func (k *bench) count() int {
	found := k.must("collection", "find", all).Value
	list, isList := found.ArrayOK()
	documents, err := list.Values()
	k.failIf(!isList || err != nil, "a find returned %s, want a list of all documents", shown(found))
	return len(documents)
}

// shown returns a value for a message.
func shown(v result.Value) string {
	if v.IsZero() {
		return "no value"
	}
	return v.String()
}

// raised returns an error, which may be nil, for a message.
func raised(err error) string {
	if failed := (*result.Error)(nil); err == nil || errors.As(err, &failed) && failed == nil {
		return "no error"
	}
	return err.Error()
}

// first returns the sequence number of the first event.
func first(log []result.Event) int64 {
	if len(log) == 0 {
		return 0
	}
	return log[0].Sequence
}

// failPoint sets failCommand until the end of the behavior.
func (k *bench) failPoint(mode, data string) {
	k.AtEnd(k.disarm)
	k.must("client", engine.OpConfigureFailPoint, trial.FailCommand(mode, data))
}

// events returns the log of the client.
func (k *bench) events() []result.Event {
	events, err := k.test.Events(k.ctx, "client", 0, 0)
	k.check(err)
	return events
}

// logs reports whether the log must have events of a monitor. It fails the behavior if they are missing.
func (k *bench) logs(m result.Monitor) bool {
	d, err := k.engine.Describe(k.ctx)
	k.check(err)
	k.failIf(d.Logs(m) && len(k.seen(0, result.EventTypes(m)...)) == 0,
		"the log has no %s events, and the description of the engine does not exclude them (its events)", m)
	return d.Logs(m)
}

// seen returns the events of some types after a sequence number.
func (k *bench) seen(after int64, types ...result.EventType) []result.Event {
	return slices.DeleteFunc(slices.Clone(k.events()), func(e result.Event) bool {
		return e.Sequence <= after || !slices.Contains(types, e.Type)
	})
}

// now returns the sequence number of the last event.
func (k *bench) now() int64 {
	log := k.events()
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Sequence
}

// unsupported reports whether an error names something unsupported.
func unsupported(err error) bool {
	var e *result.Error
	return errors.As(err, &e) && e != nil && e.Unsupported != ""
}
