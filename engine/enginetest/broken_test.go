package enginetest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginetest"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
)

// fault is a fault of an engine. Nil functions are correct.
type fault struct {
	describe func(*engine.Description)
	begin    func(inner func() (engine.Test, error)) (engine.Test, error)
	entity   func(*engine.Entity)
	open     func(error) error
	do       func(context.Context, engine.Test, engine.Operation) result.Outcome
	events   func(t engine.Test, ctx context.Context, id string, after int64, wait time.Duration) ([]result.Event, error)
	keeps    string // an entity that it does not close
	silent   bool   // it has no log messages
}

// brokenEngine is an engine with a fault.
type brokenEngine struct {
	engine.Engine
	fault
}

func (e brokenEngine) Describe(ctx context.Context) (engine.Description, error) {
	d, err := e.Engine.Describe(ctx)
	if e.describe != nil {
		e.describe(&d)
	}
	return d, err
}

func (e brokenEngine) Begin(ctx context.Context) (engine.Test, error) {
	inner := func() (engine.Test, error) { return e.Engine.Begin(ctx) }
	if e.begin != nil {
		return e.begin(inner)
	}
	t, err := inner()
	return brokenTest{t, e.fault}, err
}

type brokenTest struct {
	engine.Test
	fault
}

func (t brokenTest) Open(ctx context.Context, e engine.Entity) error {
	if t.entity != nil {
		t.entity(&e)
	}
	err := t.Test.Open(ctx, e)
	if err != nil && t.open != nil {
		return t.open(err)
	}
	return err
}

func (t brokenTest) Do(ctx context.Context, op engine.Operation) result.Outcome {
	if t.do != nil {
		return t.do(ctx, t.Test, op)
	}
	return t.Test.Do(ctx, op)
}

func (t brokenTest) Events(ctx context.Context, id string, after int64, wait time.Duration) ([]result.Event, error) {
	if t.events != nil {
		return t.events(t.Test, ctx, id, after, wait)
	}
	return t.Test.Events(ctx, id, after, wait)
}

func (t brokenTest) Logs(ctx context.Context, id string) ([]result.LogMessage, error) {
	if t.silent {
		return nil, nil
	}
	return t.Test.Logs(ctx, id)
}

func (t brokenTest) Close(ctx context.Context, id string) error {
	if id == t.keeps {
		return nil
	}
	return t.Test.Close(ctx, id)
}

// changing is a fault that changes outcomes.
func changing(change func(engine.Operation, *result.Outcome)) fault {
	return fault{do: func(ctx context.Context, t engine.Test, op engine.Operation) result.Outcome {
		out := t.Do(ctx, op)
		if out.Err != nil {
			copied := *out.Err
			out.Err = &copied
		}
		change(op, &out)
		return out
	}}
}

// changed is a fault that changes logs.
func changed(change func([]result.Event) []result.Event) fault {
	return fault{events: func(t engine.Test, ctx context.Context, id string, after int64,
		wait time.Duration) ([]result.Event, error) {
		found, err := t.Events(ctx, id, after, wait)
		return change(found), err
	}}
}

// only keeps the events of some monitors, and numbers them again.
func only(monitors ...result.Monitor) func([]result.Event) []result.Event {
	return func(log []result.Event) []result.Event {
		log = slices.DeleteFunc(log, func(e result.Event) bool { return !slices.Contains(monitors, e.Type.Monitor()) })
		for i := range log {
			log[i].Sequence = int64(i) + 1
		}
		return log
	}
}

type faultRow struct {
	reason, behavior string
	fault
}

// faults returns at least one fault for each behavior. The behavior must detect it.
func faults() []faultRow {
	lenient := func(unsupported bool) func(error) error {
		return func(err error) error {
			var raised *result.Error
			if (errors.As(err, &raised) && raised.Unsupported != "") == unsupported {
				return nil
			}
			return err
		}
	}
	var running atomic.Int64
	var shared atomic.Pointer[engine.Test]
	var one sync.Mutex
	return []faultRow{
		{"operations are not sorted", "describes itself", fault{describe: func(d *engine.Description) {
			d.Operations = slices.Clone(d.Operations)
			slices.Reverse(d.Operations)
		}}},
		{"an operation is supported and lacked", "describes itself", fault{describe: func(d *engine.Description) {
			d.Lacks = map[string]string{"collection.find": "the driver has none"}
		}}},
		{"a find returns no value", "finds what it inserted, and logs the commands",
			changing(func(op engine.Operation, out *result.Outcome) {
				if op.Name == "find" {
					out.Value = result.Value{}
				}
			})},
		{"no command is logged", "finds what it inserted, and logs the commands",
			changed(func([]result.Event) []result.Event { return nil })},
		{"options are ignored", "rejects unknown kinds and options of entities", fault{open: lenient(true)}},
		{"uriOptions are ignored", "applies uriOptions", fault{entity: func(e *engine.Entity) {
			if e.Kind == "client" {
				e.Options = nil
			}
		}}},
		{"names are not checked", "rejects names that are in use or unknown", fault{open: lenient(false)}},
		{"arguments are ignored", "rejects unknown operations and arguments",
			changing(func(_ engine.Operation, out *result.Outcome) {
				if out.Err != nil && out.Err.Unsupported != "" {
					out.Err = nil
				}
			})},
		{"events are reversed", "logs all events in order", changed(func(found []result.Event) []result.Event {
			slices.Reverse(found)
			return found
		})},
		{"Events does not wait", "waits for events",
			fault{events: func(t engine.Test, ctx context.Context, id string, after int64,
				_ time.Duration) ([]result.Event, error) {
				return t.Events(ctx, id, after, 0)
			}}},
		{"the server of the fail point is unknown", "does not log the runner's own commands",
			changing(func(_ engine.Operation, out *result.Outcome) { out.Server = "" })},
		{"command started events are missing", "logs canceled commands", changed(func(found []result.Event) []result.Event {
			return slices.DeleteFunc(found,
				func(e result.Event) bool { return e.Type == result.CommandStarted && e.CommandName == "insert" })
		})},
		{"a canceled operation has no error", "logs canceled commands",
			changing(func(op engine.Operation, out *result.Outcome) {
				if op.Name == "insertOne" {
					out.Err = nil
				}
			})},
		{"the id of another session", "reports the id of a session", changing(func(op engine.Operation, out *result.Outcome) {
			if op.Name == engine.OpLSID {
				out.Value.RawValue = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: []byte{5, 0, 0, 0, 0}}
			}
		})},
		{"a topology without servers", "reports the topology", changing(func(op engine.Operation, out *result.Outcome) {
			if op.Name == engine.OpTopology {
				out.Value.Value, _ = bson.Marshal(bson.D{{Key: "type", Value: "Single"}, {Key: "servers", Value: bson.A{}}})
			}
		})},
		{"a misspelled type in a topology", "reports the topology", changing(func(op engine.Operation, out *result.Outcome) {
			if op.Name == engine.OpTopology {
				out.Value.Value = bytes.ReplaceAll(out.Value.Value, []byte("RSPrimary"), []byte("RsPrimary"))
			}
		})},
		{"a misspelled type in an event", "reports the topology", changed(func(found []result.Event) []result.Event {
			for i, e := range found {
				if e.Type == result.ServerDescriptionChanged && e.New.Type == "RSPrimary" {
					found[i].New = &result.TopologyState{Type: "RsPrimary"}
				}
			}
			return found
		})},
		{"the caller's deadline is sent", "does not treat a caller's deadline as timeoutMS",
			fault{do: func(ctx context.Context, t engine.Test, op engine.Operation) result.Outcome {
				if op.Name == "find" {
					var d bson.D
					_ = bson.Unmarshal(op.Arguments, &d)
					op.Arguments, _ = bson.Marshal(append(d, bson.E{Key: "timeoutMS", Value: 60_000}))
				}
				return t.Do(ctx, op)
			}}},
		{"a canceled operation is a timeout", "cancels an operation", changing(func(_ engine.Operation, out *result.Outcome) {
			if out.Err != nil {
				out.Err.Timeout = true
			}
		})},
		{"one operation at a time", "performs operations concurrently",
			fault{do: func(ctx context.Context, t engine.Test, op engine.Operation) result.Outcome {
				defer running.Add(-1)
				if running.Add(1) > 1 {
					return result.Outcome{Err: &result.Error{Message: "busy", Client: true}}
				}
				return t.Do(ctx, op)
			}}},
		{"tests share entities", "isolates tests", fault{begin: func(inner func() (engine.Test, error)) (engine.Test, error) {
			if t := shared.Load(); t != nil {
				return *t, nil
			}
			t, err := inner()
			shared.Store(&t)
			return t, err
		}}},
		{"an operation waits for those of other tests", "performs tests concurrently",
			fault{do: func(ctx context.Context, t engine.Test, op engine.Operation) result.Outcome {
				one.Lock()
				defer one.Unlock()
				return t.Do(ctx, op)
			}}},
		{"sessions are not ended", "ends sessions", fault{keeps: "session"}},
		{"clients with pending writes are not closed", "completes unacknowledged writes", fault{keeps: "client"}},
		{"no log messages despite the feature", "returns the log messages that a client observes", fault{silent: true}},
		{"command events are not declared", "describes itself", fault{describe: func(d *engine.Description) {
			d.Events = []result.Monitor{result.MonitorSDAM}
		}}},
		{"SDAM events are missing", "closes clients permanently", changed(only(result.MonitorCommand, result.MonitorCMAP))},
		{"CMAP events are missing", "closes clients permanently", changed(only(result.MonitorCommand, result.MonitorSDAM))},
		{"clients are not closed", "closes clients permanently", fault{keeps: "client"}},
	}
}

// Every behavior detects a fault.
func TestFaultsAreFound(t *testing.T) {
	uri := deployment(t, embedded.Options{Topology: embedded.ReplicaSet})
	untested := map[string]bool{}
	for _, b := range enginetest.Behaviors() {
		untested[b.Name] = true
	}
	for _, row := range faults() {
		t.Run(row.reason, func(t *testing.T) {
			e, err := reference.New(reference.Options{})
			testkit.Check(t, err)
			defer func() { _ = e.Close() }()
			at := slices.IndexFunc(enginetest.Behaviors(), func(b enginetest.Behavior) bool { return b.Name == row.behavior })
			if enginetest.Behaviors()[at].Check(t.Context(), brokenEngine{e, row.fault}, uri) == nil {
				t.Error("the behavior does not detect the fault")
			}
			delete(untested, row.behavior)
		})
	}
	testkit.Equal(t, "behaviors without a fault", untested, map[string]bool{})
}

// An engine that logs only command events, and says so, has all behaviors.
func TestCommandEventsOnly(t *testing.T) {
	e, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	defer func() { _ = e.Close() }()
	commands := only(result.MonitorCommand)
	broken := brokenEngine{e, fault{
		describe: func(d *engine.Description) { d.Events = []result.Monitor{result.MonitorCommand} },
		events: func(t engine.Test, ctx context.Context, id string, after int64, wait time.Duration) ([]result.Event, error) {
			for end := time.Now().Add(wait); ; {
				all, err := t.Events(ctx, id, 0, 0)
				last := int64(len(all))
				found := commands(all)
				found = found[min(after, int64(len(found))):]
				if left := time.Until(end); err != nil || len(found) > 0 || left <= 0 {
					return found, err
				} else if _, err = t.Events(ctx, id, last, left); err != nil {
					return nil, err
				}
			}
		},
	}}
	uri := deployment(t, embedded.Options{Topology: embedded.ReplicaSet})
	for _, b := range enginetest.Behaviors() {
		if !strings.Contains(b.Name, "log messages") { // which a brokenEngine does not return
			t.Run(b.Name, func(t *testing.T) { testkit.Check(t, b.Check(t.Context(), broken, uri)) })
		}
	}
}
