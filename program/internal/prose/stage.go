package prose

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/net/interpose"
	"github.com/unified-test-runner/utr/result"
)

// stage is the state of a running test. The first error ends the test. Proxy hooks may use it concurrently.
type stage struct {
	ctx     context.Context
	setting Setting

	dropping sync.Once // for the first client

	mu   sync.Mutex
	err  error
	ends []func(context.Context) error
}

func (k *stage) failed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// try calls a function in a goroutine, which check may end as in package testing, and waits for it.
func (k *stage) try(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

// check ends the function that try calls if its caller or a concurrent hook has an error.
func (k *stage) check(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = err
	}
	if k.err != nil {
		runtime.Goexit()
	}
}

// require fails the test unless a condition holds.
func (k *stage) require(holds bool, format string, args ...any) {
	if !holds {
		k.check(fmt.Errorf(format, args...))
	}
}

// succeeded fails the test if an operation failed.
func (k *stage) succeeded(what string, err *result.Error) {
	k.require(err == nil, "%s failed: %w", what, err)
}

// atEnd registers a cleanup function.
func (k *stage) atEnd(f func(context.Context) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = append(k.ends, f)
}

// end runs the cleanup functions, the newest first, even if the context has ended.
func (k *stage) end() (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), limit)
	defer cancel()
	for _, f := range slices.Backward(k.ends) {
		err = errors.Join(err, f(ctx))
	}
	return err
}

// client is a client and a collection in a separate engine test.
type client struct {
	stage *stage
	uri   string
	test  engine.Test
}

// The collection of the tests, which they drop.
const (
	DatabaseName   = "utr-prose"
	CollectionName = "documents"
)

// client opens a client with a connection string and uriOptions.
func (k *stage) client(uri, uriOptions string) *client { return k.jittered(nil, uri, uriOptions) }

// jittered opens a client whose engine has constant jitter.
func (k *stage) jittered(jitter *float64, uri, uriOptions string) *client {
	k.check(nil)
	e, err := k.setting.Engine(jitter)
	k.check(err)
	test, err := e.Begin(k.ctx)
	k.check(err)
	c := &client{k, uri, test}
	k.atEnd(test.End)
	if k.setting.Deployment != nil {
		k.dropping.Do(func() { c.atEnd("database", "dropCollection", `{"collection": "`+CollectionName+`"}`) })
	}
	c.open("client", "client", `{"uriOptions": {`+uriOptions+`}}`)
	c.open("database", "database", `{"client": "client", "databaseName": "`+DatabaseName+`"}`)
	c.open("collection", "collection", `{"database": "database", "collectionName": "`+CollectionName+`"}`)
	return c
}

func (c *client) open(kind, id, options string) {
	doc, err := document(options)
	c.stage.check(err)
	c.stage.check(c.test.Open(c.stage.ctx, engine.Entity{Kind: kind, ID: id, Options: doc, URI: c.uri}))
}

// atEnd performs an operation at the end of the test.
func (c *client) atEnd(object, name, arguments string) {
	c.stage.atEnd(func(ctx context.Context) error {
		out := c.request(ctx, object, name, arguments)
		if out.Err != nil && out.Err.Unsupported == "" { // an unsupported operation had no effect to undo
			return fmt.Errorf("%s: %w", name, out.Err)
		}
		return out.Broken
	})
}

func (c *client) request(ctx context.Context, object, name, arguments string) result.Outcome {
	doc, err := document(arguments)
	if err != nil {
		return result.Outcome{Broken: err}
	}
	return c.test.Do(ctx, engine.Operation{Object: object, Name: name, Arguments: doc})
}

// document parses Extended JSON.
func document(text string) (doc bson.Raw, err error) {
	err = bson.UnmarshalExtJSON([]byte(text), false, &doc)
	return doc, err
}

// do performs an operation and returns its value or error.
func (c *client) do(object, name, arguments string) (bson.RawValue, *result.Error) {
	out := c.request(c.stage.ctx, object, name, arguments)
	err := out.Broken
	if out.Err != nil && out.Err.Unsupported != "" {
		err = out.Err
	}
	c.stage.check(err)
	return out.Value.RawValue, out.Err
}

// must performs an operation, which must succeed.
func (c *client) must(object, name, arguments string) bson.RawValue {
	value, err := c.do(object, name, arguments)
	c.stage.succeeded(name, err)
	return value
}

// perform performs the operation of a command, find or insert.
func (c *client) perform(command string) *result.Error {
	name, arguments := "find", `{"filter": {}}`
	if command == "insert" {
		name, arguments = "insertOne", `{"document": {"a": 1}}`
	}
	_, err := c.do("collection", name, arguments)
	return err
}

// ping makes the client discover a server.
func (c *client) ping() { c.must("database", "runCommand", ping) }

const ping = `{"commandName": "ping", "command": {"ping": 1}}`

// failPoint sets failCommand on the server that the client writes to, until the end of the test.
func (c *client) failPoint(mode, data string) {
	const command = `{"command": {"configureFailPoint": "failCommand", "mode": %s, "data": {%s}}}`
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
	return fmt.Sprintf(`"failCommands": [%q], "errorCode": %d, "errorLabels": ["%s"]`, command, code,
		strings.Join(labels, `", "`))
}

// events returns the client's events of some types. Of command events, it returns only the events of a command.
func (c *client) events(command string, types ...result.EventType) []result.Event {
	all, err := c.test.Events(c.stage.ctx, "client", 0, 0)
	c.stage.check(err)
	return slices.DeleteFunc(all, func(e result.Event) bool {
		return !slices.Contains(types, e.Type) || e.CommandName != "" && e.CommandName != command
	})
}

// started counts the attempts of a command.
func (c *client) started(command string) int { return len(c.events(command, result.CommandStarted)) }

// discovered waits until the client has discovered n servers of some kinds, and returns their addresses.
func (c *client) discovered(n int, kinds ...string) []string {
	for deadline := time.Now().Add(limit / 6); ; {
		var seen result.TopologyState
		c.stage.check(c.must("client", engine.OpTopology, `{}`).Unmarshal(&seen))
		var found []string
		for _, s := range seen.Servers {
			if slices.Contains(kinds, s.Type) {
				found = append(found, s.Address)
			}
		}
		if len(found) >= n {
			return found
		}
		if time.Now().After(deadline) {
			which := strings.Join(kinds, " or ")
			c.stage.check(&Unmet{fmt.Sprintf("it requires %d of %s, and the deployment has %d", n, which, len(found))})
		}
		_, _ = c.do("database", "runCommand", ping)
	}
}

// between starts a proxy for a server and returns its connection string. The proxy calls f after the first reply to a
// command, before the client receives it.
func (k *stage) between(address, command string, f func()) string {
	var first sync.Once
	p, err := interpose.Listen(address, interpose.Hooks{Replied: func(name string, _ interpose.Action) {
		if name == command {
			first.Do(func() { k.try(f) })
		}
	}})
	k.check(err)
	k.atEnd(func(context.Context) error { p.Close(); return nil })
	uri := k.setting.Deployment.DirectURI(p.Address())
	if lower := strings.ToLower(uri); strings.Contains(lower, "tls=true") || strings.Contains(lower, "ssl=true") ||
		strings.Contains(lower, "compressors=") {
		k.check(&Unmet{"it reads the messages of clients, which must not be encrypted or compressed"})
	}
	return uri
}
