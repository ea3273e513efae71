package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/result"
)

// fakeEngine returns the outcomes and events of a script, and writes its calls to the transcript.
type fakeEngine struct {
	say       func(format string, args ...any) // writes to the transcript; may be nil
	during    func()                           // called in every operation; may be nil
	interrupt func()
	release   chan struct{} // ends stuck steps
	schema    string        // supported schema version, "" for any
	serves    []string      // supported operations, nil for all
	lacks     map[string]string
	logs      []result.Monitor // events, nil for all

	mu     sync.Mutex
	script map[string][]step
	open   int // tests in progress
}

// step is the reaction to one call. Stories write it in YAML.
type step struct {
	On         string    // "object.operation", "open.id" or "end"
	Result     yaml.Node // Extended JSON
	Error      *result.Error
	Server     string
	Service    *bson.ObjectID
	Events     []scriptedEvent
	Logs       []scriptedLog
	Spans      []scriptedSpan
	Panics     string
	Takes      time.Duration
	Lasts      time.Duration // unless the context ends before
	Interrupts bool
	Hangs      bool   // until the context ends
	Stuck      bool   // even longer
	Broken     string // an error of the engine itself: open and end only
	Repeat     bool
}

type scriptedEvent struct {
	Client, Address, Name, DB string
	Type                      result.EventType
	Command                   yaml.Node
	Request, Connection       int64
	Redacted                  bool
	Failure                   *result.Error
}

type scriptedLog struct {
	Client, Level, Component string
	Redacted                 *bool
	Data                     yaml.Node
}

type scriptedSpan struct {
	Client, ID, Parent, Name string
	Attributes               yaml.Node
}

func (s scriptedEvent) event() result.Event {
	e := result.Event{Type: s.Type, Address: s.Address, CommandName: s.Name, DatabaseName: s.DB, RequestID: s.Request,
		Redacted: s.Redacted, Failure: s.Failure, Duration: result.Duration(time.Millisecond), ConnectionID: s.Connection}
	if !s.Command.IsZero() {
		body := bsonOf(s.Command).Document()
		e.Body, e.CommandName = result.Document(body), must(body.Elements())[0].Key()
	}
	return e
}

// strictly decodes a section of a story.
func strictly(text string, into any) error {
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	return d.Decode(into)
}

// bsonOf parses Extended JSON in a story. It may be missing.
func bsonOf(n yaml.Node) bson.RawValue {
	if n.IsZero() {
		return bson.RawValue{}
	}
	return must(must(source.ParseYAML("script", must(yaml.Marshal(&n)))).BSON())
}

func (e *fakeEngine) Describe(context.Context) (engine.Description, error) {
	about := engine.Description{Name: "scripted", Version: "1", SchemaVersion: e.schema, Operations: e.serves,
		Lacks: e.lacks, Events: e.logs}
	if e.serves == nil {
		about.Features = []string{engine.FeatureLogging, engine.FeatureTracing, engine.FeatureReducedHeartbeats}
		for _, o := range operations.All() {
			about.Operations = append(about.Operations, string(o.Kind)+"."+o.Name)
		}
	}
	return about, nil
}

func (e *fakeEngine) Close() error { return nil }

func (e *fakeEngine) Begin(context.Context) (engine.Test, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open++
	return &fakeTest{engine: e, messages: map[string][]result.LogMessage{}, spans: map[string][]result.Span{}}, nil
}

// next writes a call to the transcript and returns the next step of the script.
func (e *fakeEngine) next(key, line string) step {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.say != nil {
		e.say("engine  %s", line)
	}
	steps := e.script[key]
	if len(steps) == 0 {
		return step{}
	}
	if !steps[0].Repeat {
		e.script[key] = steps[1:]
	}
	return steps[0]
}

type fakeTest struct {
	engine *fakeEngine
	logs   sync.Map // of event logs, by client

	mu       sync.Mutex
	messages map[string][]result.LogMessage
	spans    map[string][]result.Span
}

func (t *fakeTest) log(client string) *enginekit.EventLog {
	log, _ := t.logs.LoadOrStore(client, enginekit.NewEventLog(time.Now))
	return log.(*enginekit.EventLog)
}

// play performs a step. It returns an error of the engine itself.
func (t *fakeTest) play(ctx context.Context, s step) error {
	if s.Panics != "" {
		panic(s.Panics)
	}
	time.Sleep(s.Takes)
	for _, x := range s.Events {
		t.log(x.Client).Add(x.event())
	}
	for _, x := range s.Logs {
		m := result.LogMessage{Level: x.Level, Component: x.Component, Data: bsonOf(x.Data).Document(),
			FailureRedacted: x.Redacted}
		t.mu.Lock()
		t.messages[x.Client] = append(t.messages[x.Client], m)
		t.mu.Unlock()
	}
	for _, x := range s.Spans {
		span := result.Span{ID: x.ID, Parent: x.Parent, Name: x.Name, Attributes: bsonOf(x.Attributes).Document()}
		t.mu.Lock()
		t.spans[x.Client] = append(t.spans[x.Client], span)
		t.mu.Unlock()
	}
	if s.Interrupts {
		t.engine.interrupt()
	}
	if s.Lasts > 0 {
		_ = sleep(ctx, s.Lasts)
	}
	if s.Hangs {
		<-ctx.Done()
	}
	if s.Stuck {
		<-t.engine.release
	}
	if s.Broken != "" {
		return errors.New(s.Broken)
	}
	return nil
}

func (t *fakeTest) Open(ctx context.Context, e engine.Entity) error {
	line := strings.TrimSuffix(fmt.Sprintf("open %s %s %s", e.Kind, e.Options, e.URI), " ")
	if e.ClusterTime != nil {
		line += " at " + e.ClusterTime.String()
	}
	s := t.engine.next("open."+e.ID, line)
	if err := t.play(ctx, s); err != nil || s.Error == nil {
		return cmp.Or(err, ctx.Err())
	}
	return s.Error
}

func (t *fakeTest) Do(ctx context.Context, o engine.Operation) result.Outcome {
	if t.engine.during != nil {
		t.engine.during()
	}
	if _, dated := ctx.Deadline(); dated && !strings.HasPrefix(o.Name, "$") {
		panic("the engine has the deadline of the test")
	}
	line := o.Object + "." + o.Name
	if o.Arguments != nil {
		line += " " + o.Arguments.String()
	}
	if o.SaveAs != "" {
		line += " as " + o.SaveAs
	}
	s := t.engine.next(o.Object+"."+o.Name, line)
	_ = t.play(ctx, s)
	if o.Callback != nil {
		if err := o.Callback(ctx); err != nil {
			return result.Outcome{Err: err}
		}
	}
	if err := ctx.Err(); err != nil {
		return result.Outcome{Err: &result.Error{Message: err.Error(), Client: true}}
	}
	return result.Outcome{Value: result.Value{RawValue: bsonOf(s.Result)}, Err: s.Error, Server: s.Server,
		ServiceID: s.Service}
}

func (t *fakeTest) Events(ctx context.Context, client string, after int64, wait time.Duration) ([]result.Event, error) {
	return t.log(client).After(ctx, after, wait)
}

func (t *fakeTest) Logs(_ context.Context, client string) ([]result.LogMessage, error) {
	return t.messages[client], nil
}

func (t *fakeTest) Spans(_ context.Context, client string) ([]result.Span, error) {
	return t.spans[client], nil
}

func (t *fakeTest) Close(context.Context, string) error { return nil }

func (t *fakeTest) End(ctx context.Context) error {
	s := t.engine.next("end", "end")
	t.engine.mu.Lock()
	t.engine.open--
	t.engine.mu.Unlock()
	return t.play(ctx, s)
}
