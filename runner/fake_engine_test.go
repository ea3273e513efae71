package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// fakeEngine plays a script: outcomes and events for the operations that it
// is asked for. What it is asked for goes to the transcript.
type fakeEngine struct {
	about engine.Description
	say   func(format string, args ...any)

	mu     sync.Mutex
	script map[string][]step // by "object.operation", or "open.id"
	open   int               // tests that were begun and not ended
}

// step is what the engine does when it is asked once.
type step struct {
	outcome result.Outcome
	events  []scripted
	logs    []scriptedLog
	panics  string
	hangs   bool   // until the context ends
	stuck   bool   // beyond the context's end
	broken  string // an error that is not the driver's: open only
	repeat  bool
}

type scripted struct {
	client string
	event  result.Event
}

func (e *fakeEngine) Describe(context.Context) (engine.Description, error) { return e.about, nil }
func (e *fakeEngine) Close() error                                         { return nil }

func (e *fakeEngine) Begin(context.Context) (engine.Test, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open++
	return &fakeTest{engine: e, logs: make(map[string][]result.Event), said: make(map[string][]result.LogMessage), changed: make(chan struct{})}, nil
}

// next takes the next step of the script.
func (e *fakeEngine) next(key string) step {
	e.mu.Lock()
	defer e.mu.Unlock()
	steps := e.script[key]
	if len(steps) == 0 {
		return step{}
	}
	if !steps[0].repeat {
		e.script[key] = steps[1:]
	}
	return steps[0]
}

type scriptedLog struct {
	client  string
	message result.LogMessage
}

type fakeTest struct {
	engine *fakeEngine

	mu      sync.Mutex
	logs    map[string][]result.Event
	said    map[string][]result.LogMessage
	changed chan struct{} // closed when a log grows
}

func (t *fakeTest) play(ctx context.Context, s step) {
	if s.panics != "" {
		panic(s.panics)
	}
	t.mu.Lock()
	for _, x := range s.events {
		x.event.Sequence = int64(len(t.logs[x.client]) + 1)
		x.event.Time = time.Now()
		t.logs[x.client] = append(t.logs[x.client], x.event)
	}
	for _, x := range s.logs {
		t.said[x.client] = append(t.said[x.client], x.message)
	}
	if len(s.events) > 0 {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	t.mu.Unlock()
	if s.hangs {
		<-ctx.Done()
	}
	if s.stuck {
		select {}
	}
}

func (t *fakeTest) Open(ctx context.Context, e engine.Entity) error {
	line := fmt.Sprintf("engine  open %s %s", e.Kind, e.Options)
	if e.URI != "" {
		line += " " + e.URI
	}
	if e.ClusterTime != nil {
		line += " at " + e.ClusterTime.String()
	}
	t.engine.say("%s", line)
	s := t.engine.next("open." + e.ID)
	t.play(ctx, s)
	if s.broken != "" {
		return errors.New(s.broken)
	}
	if s.outcome.Err != nil {
		return s.outcome.Err
	}
	return ctx.Err()
}

func (t *fakeTest) Do(ctx context.Context, o engine.Operation) result.Outcome {
	line := fmt.Sprintf("engine  %s.%s", o.Object, o.Name)
	if o.Arguments != nil {
		line += " " + o.Arguments.String()
	}
	if o.SaveAs != "" {
		line += " as " + o.SaveAs
	}
	t.engine.say("%s", line)
	s := t.engine.next(o.Object + "." + o.Name)
	t.play(ctx, s)
	if o.Callback != nil {
		if err := o.Callback(ctx); err != nil {
			return result.Outcome{Err: err}
		}
	}
	if err := ctx.Err(); err != nil {
		return result.Outcome{Err: &result.Error{Message: err.Error(), Client: true}}
	}
	return s.outcome
}

func (t *fakeTest) Events(ctx context.Context, client string, after int64, wait time.Duration) ([]result.Event, error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		t.mu.Lock()
		log, changed := t.logs[client], t.changed
		t.mu.Unlock()
		if int64(len(log)) > after || wait == 0 {
			return slices.Clone(log[min(after, int64(len(log))):]), nil
		}
		select {
		case <-changed:
		case <-deadline.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (t *fakeTest) Logs(_ context.Context, client string) ([]result.LogMessage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.said[client]), nil
}

func (t *fakeTest) Close(context.Context, string) error { return nil }

func (t *fakeTest) End(ctx context.Context) error {
	t.engine.say("engine  end")
	t.engine.mu.Lock()
	t.engine.open--
	t.engine.mu.Unlock()
	s := t.engine.next("end")
	t.play(ctx, s)
	if s.broken != "" {
		return errors.New(s.broken)
	}
	return nil
}

// scriptOf reads the script of an engine: a YAML list of steps.
func scriptOf(v *source.Value) (map[string][]step, error) {
	script := make(map[string][]step)
	if v == nil {
		return script, nil
	}
	for _, item := range v.Items {
		var s step
		for _, f := range item.Fields {
			switch f.Key {
			case "on":
			case "result":
				value, err := f.Value.BSON()
				if err != nil {
					return nil, err
				}
				s.outcome.Value = value
			case "error":
				s.outcome.Err = errorOf(f.Value)
			case "server":
				s.outcome.Server = f.Value.String
			case "service":
				id, err := bson.ObjectIDFromHex(f.Value.String)
				if err != nil {
					return nil, err
				}
				s.outcome.ServiceID = &id
			case "events":
				for _, e := range f.Value.Items {
					x, err := eventOf(e)
					if err != nil {
						return nil, err
					}
					s.events = append(s.events, x)
				}
			case "logs":
				for _, l := range f.Value.Items {
					x, err := logOf(l)
					if err != nil {
						return nil, err
					}
					s.logs = append(s.logs, x)
				}
			case "panics":
				s.panics = f.Value.String
			case "broken":
				s.broken = f.Value.String
			case "hangs":
				s.hangs = f.Value.Bool
			case "stuck":
				s.stuck = f.Value.Bool
			case "repeat":
				s.repeat = f.Value.Bool
			default:
				return nil, fmt.Errorf("%s: the script has no %q", f.KeyPosition, f.Key)
			}
		}
		key := item.Get("on").String
		script[key] = append(script[key], s)
	}
	return script, nil
}

// logOf reads a log message: {client, level, component, data, redacted}.
func logOf(v *source.Value) (scriptedLog, error) {
	x := scriptedLog{textOf(v.Get("client")), result.LogMessage{Level: textOf(v.Get("level")), Component: textOf(v.Get("component"))}}
	if r := v.Get("redacted"); r != nil {
		x.message.FailureRedacted = &r.Bool
	}
	var err error
	x.message.Data, err = v.Get("data").Raw()
	return x, err
}

func errorOf(v *source.Value) *result.Error {
	e := &result.Error{Message: "scripted"}
	for _, f := range v.Fields {
		switch f.Key {
		case "message":
			e.Message = f.Value.String
		case "client":
			e.Client = f.Value.Bool
		case "code":
			e.Code, e.HasCode = int32(f.Value.Int), true
		case "unsupported":
			e.Unsupported = f.Value.String
		case "server":
			e.Server = f.Value.String
		}
	}
	return e
}

// eventOf reads an event: {client, type, and fields by type}.
func eventOf(v *source.Value) (scripted, error) {
	x := scripted{client: textOf(v.Get("client")), event: result.Event{Type: result.EventType(textOf(v.Get("type"))), Address: textOf(v.Get("address"))}}
	switch {
	case strings.HasPrefix(string(x.event.Type), "command"):
		c := &result.CommandEvent{CommandName: textOf(v.Get("name")), DatabaseName: textOf(v.Get("db")), Duration: time.Millisecond}
		if r := v.Get("request"); r != nil {
			c.RequestID = r.Int
		}
		var err error
		if c.Command, err = v.Get("command").Raw(); err != nil {
			return x, err
		}
		if c.CommandName == "" && c.Command != nil {
			elements, _ := c.Command.Elements()
			c.CommandName = elements[0].Key()
		}
		if r := v.Get("redacted"); r != nil {
			c.Redacted = r.Bool
		}
		x.event.Command = c
	case strings.HasPrefix(string(x.event.Type), "pool"), strings.HasPrefix(string(x.event.Type), "connection"):
		x.event.Pool = &result.PoolEvent{}
		if n := v.Get("connection"); n != nil {
			x.event.Pool.ConnectionID = n.Int
		}
	default:
		x.event.SDAM = &result.SDAMEvent{}
	}
	return x, nil
}
