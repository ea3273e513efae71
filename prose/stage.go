package prose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/interpose"
	"github.com/unified-test-runner/utr/result"
)

// stage is what a test acts on. The first error sticks: nothing is done after it. The hooks of a proxy may
// use the stage beside the test.
type stage struct {
	ctx     context.Context
	setting Setting

	dropping sync.Once // by the first client

	mu   sync.Mutex
	err  error
	ends []func(context.Context) error // in the order in which they were added
}

func (k *stage) failed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func (k *stage) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil && err != nil {
		k.err = err
	}
}

// require fails the test unless something holds.
func (k *stage) require(holds bool, format string, args ...any) {
	if !holds {
		k.fail(fmt.Errorf(format, args...))
	}
}

// atEnd keeps what has to be done at the end, the newest first.
func (k *stage) atEnd(f func(context.Context) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = append(k.ends, f)
}

// end does what has to be done at the end, even if the context has ended.
func (k *stage) end() (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), limit)
	defer cancel()
	for _, f := range slices.Backward(k.ends) {
		err = errors.Join(err, f(ctx))
	}
	return err
}

// client is a client with a collection of its own engine test.
type client struct {
	stage *stage
	uri   string
	test  engine.Test
}

// collectionName is where documents go, in the database utr-prose.
const collectionName = "documents"

// client opens one at a connection string, with uriOptions.
func (k *stage) client(uri, uriOptions string) *client { return k.jittered(nil, uri, uriOptions) }

// jittered opens one whose engine has the same random number always.
func (k *stage) jittered(jitter *float64, uri, uriOptions string) *client {
	c := &client{stage: k}
	if k.failed() != nil {
		return c
	}
	e, err := k.setting.Engine(jitter)
	if err != nil {
		k.fail(err)
		return c
	}
	if c.test, err = e.Begin(k.ctx); err != nil {
		k.fail(err)
		return c
	}
	k.atEnd(c.test.End)
	if k.setting.Deployment != nil {
		k.dropping.Do(func() { c.atEnd("database", "dropCollection", `{"collection": "`+collectionName+`"}`) })
	}
	c.uri = uri
	c.open("client", "client", `{"uriOptions": {`+uriOptions+`}}`)
	c.open("database", "database", `{"client": "client", "databaseName": "utr-prose"}`)
	c.open("collection", "collection", `{"database": "database", "collectionName": "`+collectionName+`"}`)
	return c
}

func (c *client) open(kind, id, options string) {
	if c.stage.failed() != nil {
		return
	}
	doc, err := document(options)
	if err == nil {
		err = c.test.Open(c.stage.ctx, engine.Entity{Kind: kind, ID: id, Options: doc, URI: c.uri})
	}
	c.stage.fail(err)
}

// atEnd performs an operation at the end of the test.
func (c *client) atEnd(object, name, arguments string) {
	if c.test == nil { // it could not be opened
		return
	}
	c.stage.atEnd(func(ctx context.Context) error {
		doc, err := document(arguments)
		if err != nil {
			return err
		}
		out := c.test.Do(ctx, engine.Operation{Object: object, Name: name, Arguments: doc})
		if out.Err != nil && out.Err.Unsupported == "" { // what the engine cannot do, it has not done before
			return fmt.Errorf("%s: %w", name, out.Err)
		}
		return out.Broken
	})
}

// document reads Extended JSON.
func document(text string) (doc bson.Raw, err error) {
	err = bson.UnmarshalExtJSON([]byte(text), false, &doc)
	return doc, err
}

// do performs an operation, and returns its error.
func (c *client) do(object, name, arguments string) *result.Error {
	return c.outcome(c.stage.ctx, object, name, arguments).Err
}

func (c *client) outcome(ctx context.Context, object, name, arguments string) (out result.Outcome) {
	if c.stage.failed() != nil {
		return out
	}
	doc, err := document(arguments)
	if err == nil {
		out = c.test.Do(ctx, engine.Operation{Object: object, Name: name, Arguments: doc})
		err = out.Broken
	}
	if out.Err != nil && out.Err.Unsupported != "" {
		err = out.Err
	}
	c.stage.fail(err)
	return out
}

// must performs an operation that has to succeed.
func (c *client) must(object, name, arguments string) bson.RawValue {
	out := c.outcome(c.stage.ctx, object, name, arguments)
	if out.Err != nil {
		c.stage.fail(fmt.Errorf("%s failed: %w", name, out.Err))
	}
	return out.Value
}

// find reads, insert writes a document with an _id of its own.
func (c *client) find() *result.Error { return c.do("collection", "find", `{"filter": {}}`) }
func (c *client) insert() *result.Error {
	return c.do("collection", "insertOne", `{"document": {"a": 1}}`)
}

// failPoint sets failCommand on the server that the client writes to, until the end of the test.
func (c *client) failPoint(mode, data string) {
	const command = `{"command": {"configureFailPoint": "failCommand", "mode": %s, "data": {%s}}}`
	if c.stage.failed() != nil {
		return
	}
	c.atEnd("client", engine.OpConfigureFailPoint, fmt.Sprintf(command, `"off"`, ""))
	c.must("client", engine.OpConfigureFailPoint, fmt.Sprintf(command, mode, data))
}

// Modes of fail points.
const (
	once   = `{"times": 1}`
	always = `"alwaysOn"`
)

// fails is the data of a fail point for a command, with an error code and labels.
func fails(command string, code int, labels ...string) string {
	return fmt.Sprintf(`"failCommands": [%q], "errorCode": %d, "errorLabels": ["%s"]`, command, code, strings.Join(labels, `", "`))
}

// events gives the client's events of some types, those of commands only for a command.
func (c *client) events(command string, types ...result.EventType) []result.Event {
	if c.stage.failed() != nil {
		return nil
	}
	all, err := c.test.Events(c.stage.ctx, "client", 0, 0)
	c.stage.fail(err)
	return slices.DeleteFunc(all, func(e result.Event) bool {
		return !slices.Contains(types, e.Type) || e.Command != nil && e.Command.CommandName != command
	})
}

// started counts the attempts of a command.
func (c *client) started(command string) int { return len(c.events(command, result.CommandStarted)) }

// server is one that a client sees.
type server struct{ address, kind string }

// servers are the ones that a client sees.
func (c *client) servers() (all []server) {
	topology, _ := c.must("client", engine.OpTopology, `{}`).DocumentOK()
	var t result.TopologyState
	if c.stage.failed() != nil {
		return nil
	}
	if err := bson.Unmarshal(topology, &t); err != nil {
		c.stage.fail(err)
	}
	for _, s := range t.Servers {
		all = append(all, server{s.Address, s.Type})
	}
	return all
}

// discovered waits until the client sees n servers of some kinds, and returns their addresses.
func (c *client) discovered(n int, kinds ...string) []string {
	deadline := time.Now().Add(limit / 6)
	for c.stage.failed() == nil {
		var found []string
		for _, s := range c.servers() {
			if slices.Contains(kinds, s.kind) {
				found = append(found, s.address)
			}
		}
		if len(found) >= n {
			return found
		}
		if time.Now().After(deadline) {
			c.stage.fail(&Lacking{fmt.Sprintf("it requires %d of %s, and the deployment has %d", n, strings.Join(kinds, " or "), len(found))})
		}
		c.do("database", "runCommand", `{"commandName": "ping", "command": {"ping": 1}}`)
	}
	return make([]string, n)
}

// between puts a proxy between clients and a server, and returns the connection string through it.
func (k *stage) between(address string, hooks interpose.Hooks) string {
	if k.failed() != nil {
		return ""
	}
	p, err := interpose.Listen(address, hooks)
	if err != nil {
		k.fail(err)
		return ""
	}
	k.atEnd(func(context.Context) error { p.Close(); return nil })
	uri := k.setting.Deployment.DirectURI(p.Address())
	if lower := strings.ToLower(uri); strings.Contains(lower, "tls=true") || strings.Contains(lower, "ssl=true") || strings.Contains(lower, "compressors=") {
		k.fail(&Lacking{"it reads the messages of clients, which must not be encrypted or compressed"})
	}
	return uri
}

// afterFirst calls f when the server has replied to a command for the first time, before the client gets the reply.
func afterFirst(command string, f func()) interpose.Hooks {
	var first sync.Once
	return interpose.Hooks{Replied: func(name string, _ interpose.Deed, _ bson.Raw) {
		if name == command {
			first.Do(f)
		}
	}}
}
