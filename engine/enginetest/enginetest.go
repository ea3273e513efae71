// Package enginetest holds every engine to what engine.Engine promises: a table
// of behaviours, each with the reason why the runner relies on it. What a
// driver does is judged by suites; this is about the adapter around it.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Behaviour is one thing that every engine must show.
type Behaviour struct {
	Name   string
	Reason string
	check  func(*bench) error
}

// limit is how long one behaviour may take. It is long, for nothing but a hang
// comes near it.
const limit = time.Minute

// Check tries the behaviour on an engine with a deployment that has fail
// points; uri is its connection string. It uses the database
// "utr-enginetest" there, and closes what it opens. The error says what is
// wrong.
func (b Behaviour) Check(ctx context.Context, e engine.Engine, uri string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s took more than %s", b.Name, limit))
	defer cancel()
	t, err := e.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	k := &bench{ctx: ctx, engine: e, test: t, uri: uri}
	defer func() { err = errors.Join(err, k.end()) }()
	if err := k.open(); err != nil {
		return err
	}
	return b.check(k)
}

// Test tries every behaviour.
func Test(t *testing.T, e engine.Engine, uri string) {
	for _, b := range Behaviours() {
		t.Run(b.Name, func(t *testing.T) {
			if err := b.Check(t.Context(), e, uri); err != nil {
				t.Errorf("%v\nwhy: %s", err, b.Reason)
			}
		})
	}
}

// bench is one test on the engine, with a client, a database and a collection
// of the same names open.
type bench struct {
	ctx    context.Context
	engine engine.Engine
	test   engine.Test
	uri    string
}

const databaseName, collectionName = "utr-enginetest", "documents"

func (k *bench) open() error {
	return errors.Join(
		k.entity("client", "client", bson.D{{Key: "useMultipleMongoses", Value: false}}),
		k.entity("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: databaseName}}),
		k.entity("collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: collectionName}}))
}

// end turns the fail point off, whatever the behaviour was.
func (k *bench) end() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), limit)
	defer cancel()
	t, err := k.engine.Begin(ctx)
	if err != nil {
		return err
	}
	sweep := &bench{ctx: ctx, engine: k.engine, test: t, uri: k.uri}
	err = sweep.entity("client", "client", nil)
	if err == nil {
		err = sweep.failPoint("off", nil)
	}
	return errors.Join(err, t.End(ctx), k.test.End(ctx))
}

func (k *bench) entity(kind, id string, options bson.D) error {
	doc, err := bson.Marshal(append(bson.D{{Key: "id", Value: id}}, options...))
	if err != nil {
		return err
	}
	if err := k.test.Open(k.ctx, engine.Entity{Kind: kind, ID: id, Options: doc, URI: k.uri}); err != nil {
		return fmt.Errorf("opening %s %s: %w", kind, id, err)
	}
	return nil
}

func (k *bench) doIn(ctx context.Context, object, name string, arguments bson.D) result.Outcome {
	return k.saveIn(ctx, object, name, arguments, "")
}

func (k *bench) saveIn(ctx context.Context, object, name string, arguments bson.D, as string) result.Outcome {
	var doc bson.Raw
	if arguments != nil {
		var err error
		if doc, err = bson.Marshal(arguments); err != nil {
			return result.Outcome{Err: &result.Error{Message: err.Error()}}
		}
	}
	return k.test.Do(ctx, engine.Operation{Object: object, Name: name, Arguments: doc, SaveAs: as})
}

func (k *bench) do(object, name string, arguments bson.D) result.Outcome {
	return k.doIn(k.ctx, object, name, arguments)
}

// must does an operation that has to succeed.
func (k *bench) must(object, name string, arguments bson.D) (bson.RawValue, error) {
	out := k.do(object, name, arguments)
	if out.Err != nil {
		return out.Value, fmt.Errorf("%s on %s: %w", name, object, out.Err)
	}
	return out.Value, nil
}

// fill leaves the documents 1 … n in the collection.
func (k *bench) fill(n int) error {
	documents := bson.A{}
	for i := range n {
		documents = append(documents, bson.D{{Key: "_id", Value: i + 1}})
	}
	_, err := k.must("collection", "deleteMany", bson.D{{Key: "filter", Value: bson.D{}}})
	if err == nil && n > 0 {
		_, err = k.must("collection", "insertMany", bson.D{{Key: "documents", Value: documents}})
	}
	return err
}

// failPoint sets failCommand.
func (k *bench) failPoint(mode any, data bson.D) error {
	command := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}}
	if data != nil {
		command = append(command, bson.E{Key: "data", Value: data})
	}
	_, err := k.must("client", engine.OpConfigureFailPoint, bson.D{{Key: "command", Value: command}})
	return err
}

func once() bson.D { return bson.D{{Key: "times", Value: 1}} }

// events gives the whole log of the client.
func (k *bench) events() ([]result.Event, error) { return k.test.Events(k.ctx, "client", 0, 0) }

// seen gives the events after a number, of some types.
func (k *bench) seen(after int64, types ...result.EventType) ([]result.Event, error) {
	all, err := k.test.Events(k.ctx, "client", after, 0)
	var out []result.Event
	for _, e := range all {
		for _, t := range types {
			if e.Type == t {
				out = append(out, e)
			}
		}
	}
	return out, err
}

// sent counts the commands of a name that were started after a number.
func (k *bench) sent(after int64, name string) (n int, err error) {
	started, err := k.seen(after, result.CommandStarted)
	for _, e := range started {
		if e.Command.CommandName == name {
			n++
		}
	}
	return n, err
}

// now is the number of the last event.
func (k *bench) now() (int64, error) {
	all, err := k.events()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1].Sequence, nil
}

// unsupported tells that an error names a lack of the engine.
func unsupported(err error) bool {
	var e *result.Error
	return errors.As(err, &e) && e != nil && e.Unsupported != ""
}
