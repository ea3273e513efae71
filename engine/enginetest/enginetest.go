// Package enginetest holds every engine to what engine.Engine promises: a table
// of behaviours, each with the reason why the runner relies on it. What a
// driver does is judged by suites; this is about the adapter around it.
package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Behaviour is one thing that every engine must show.
type Behaviour struct {
	Name   string
	Reason string
	check  func(*bench)
}

// limit is how long one behaviour may take. It is long, for nothing but a hang
// comes near it.
const limit = time.Minute

// Check tries the behaviour on an engine and a deployment that has fail points, at the
// connection string uri. The error says what the engine did instead, or is a *result.Error
// that names what the behaviour needs and the engine does not support. Behaviours need find
// and insertOne of a collection; some need more. Check leaves a collection in the database
// "utr-enginetest", and closes what it opens. Behaviours set the same fail point: they
// cannot be tried on one deployment at once.
func (b Behaviour) Check(ctx context.Context, e engine.Engine, uri string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %s", limit))
	defer cancel()
	t, err := e.Begin(ctx)
	if err != nil {
		return err
	}
	k := &bench{ctx: ctx, engine: e, test: t, uri: uri, collection: "documents-" + rand.Text()}
	err = k.open()
	if err == nil {
		err = k.try(b.check)
	}
	if ending := k.end(); ending != nil {
		err = errors.Join(err, fmt.Errorf("ending the test: %w", ending))
	}
	return err
}

// bench is one test on the engine, with a client, a database and a collection
// of the same names open.
type bench struct {
	ctx    context.Context
	engine engine.Engine
	test   engine.Test
	uri    string
	// collection is its name, which no other behaviour uses.
	collection string
	armed      bool // the fail point was set
}

// failure is what the engine did wrong. A behaviour panics with it, which ends at try.
type failure struct{ error }

func (k *bench) try(check func(*bench)) (err error) {
	defer func() {
		if why := recover(); why != nil {
			failed, is := why.(failure)
			if !is {
				panic(why)
			}
			err = failed.error
		}
	}()
	check(k)
	return nil
}

// with is a bench for another test on the same engine.
func (k *bench) with(test engine.Test) *bench {
	other := *k
	other.test = test
	return &other
}

// check ends the behaviour with an error, if there is one.
func (k *bench) check(err error) { k.failIf(err != nil, "%w", err) }

// failIf ends it with an error if something holds.
func (k *bench) failIf(holds bool, format string, args ...any) {
	if holds {
		panic(failure{fmt.Errorf(format, args...)})
	}
}

func (k *bench) fail(format string, args ...any) { k.failIf(true, format, args...) }

// all are the arguments of what looks at all documents.
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

// end turns the fail point off, and ends the test.
func (k *bench) end() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), limit)
	defer cancel()
	var err error
	if k.armed {
		err = k.disarm(ctx)
	}
	return errors.Join(err, k.test.End(ctx))
}

// disarm turns the fail point off through another test, whatever became of this one.
func (k *bench) disarm(ctx context.Context) error {
	t, err := k.engine.Begin(ctx)
	if err != nil {
		return err
	}
	sweep := k.with(t)
	sweep.ctx = ctx
	err = sweep.entity("client", "client", `{}`)
	if out := sweep.do("client", engine.OpConfigureFailPoint, failCommand(`"off"`, `{}`)); err == nil && out.Err != nil {
		err = out.Err
	}
	return errors.Join(err, t.End(ctx))
}

// document reads Extended JSON.
func document(text string) (doc bson.Raw, err error) {
	err = bson.UnmarshalExtJSON([]byte(text), false, &doc)
	return doc, err
}

func (k *bench) entity(kind, id, options string) error {
	doc, err := document(options)
	if err != nil {
		return err
	}
	if err := k.test.Open(k.ctx, engine.Entity{Kind: kind, ID: id, Options: doc, URI: k.uri}); err != nil {
		return fmt.Errorf("opening %s %s: %w", kind, id, err)
	}
	return nil
}

func (k *bench) doIn(ctx context.Context, object, name, arguments string) result.Outcome {
	doc, err := document(arguments)
	if err != nil {
		return result.Outcome{Err: &result.Error{Message: err.Error()}}
	}
	return k.test.Do(ctx, engine.Operation{Object: object, Name: name, Arguments: doc})
}

func (k *bench) do(object, name, arguments string) result.Outcome {
	return k.doIn(k.ctx, object, name, arguments)
}

// must does an operation that has to succeed.
func (k *bench) must(object, name, arguments string) bson.RawValue {
	out := k.do(object, name, arguments)
	if out.Err != nil {
		k.check(fmt.Errorf("%s on %s: %w", name, object, out.Err))
	}
	k.check(out.Broken)
	return out.Value
}

// insert puts a document into the collection.
func (k *bench) insert() { k.must("collection", "insertOne", `{"document": {}}`) }

// count counts the documents of the collection.
func (k *bench) count() int {
	found, _ := k.must("collection", "find", all).ArrayOK()
	documents, err := found.Values()
	k.check(err)
	return len(documents)
}

// failPoint sets failCommand.
func (k *bench) failPoint(mode, data string) {
	k.armed = true
	k.must("client", engine.OpConfigureFailPoint, failCommand(mode, data))
}

// failCommand are the arguments that set that fail point.
func failCommand(mode, data string) string {
	return fmt.Sprintf(`{"command": {"configureFailPoint": "failCommand", "mode": %s, "data": %s}}`, mode, data)
}

// events gives the whole log of the client.
func (k *bench) events() []result.Event {
	events, err := k.test.Events(k.ctx, "client", 0, 0)
	k.check(err)
	return events
}

// seen gives the events after a number, of some types.
func (k *bench) seen(after int64, types ...result.EventType) []result.Event {
	return slices.DeleteFunc(slices.Clone(k.events()), func(e result.Event) bool {
		return e.Sequence <= after || !slices.Contains(types, e.Type)
	})
}

// sent counts the commands of a name that were started after a number.
func (k *bench) sent(after int64, name string) (n int) {
	for _, e := range k.seen(after, result.CommandStarted) {
		if e.Command.CommandName == name {
			n++
		}
	}
	return n
}

// now is the number of the last event.
func (k *bench) now() int64 {
	log := k.events()
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Sequence
}

// unsupported reports whether an error names something that the engine does not support.
func unsupported(err error) bool {
	var e *result.Error
	return errors.As(err, &e) && e != nil && e.Unsupported != ""
}
