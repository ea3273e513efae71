package prose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/trial"
	"github.com/unified-test-runner/utr/internal/net/interpose"
	"github.com/unified-test-runner/utr/result"
)

// stage is the state of a running test. Proxy hooks may use it concurrently.
type stage struct {
	trial.Trial
	ctx     context.Context
	setting Setting

	dropping sync.Once // for the first client
}

// succeeded fails the test if an operation failed.
func (k *stage) succeeded(what string, err *result.Error) {
	k.Require(err == nil, "%s failed: %w", what, err)
}

// client is a client and a collection in a separate engine test.
type client struct {
	stage *stage
	uri   string
	test  engine.Test
}

// The collection of the tests. They drop it.
const (
	DatabaseName   = "utr-prose"
	CollectionName = "documents"
)

// client opens a client with a connection string and uriOptions.
func (k *stage) client(uri, uriOptions string) *client { return k.jittered(nil, uri, uriOptions) }

// jittered opens a client whose engine has constant jitter.
func (k *stage) jittered(jitter *float64, uri, uriOptions string) *client {
	k.Check(nil)
	e, err := k.setting.Engine(jitter)
	k.Check(err)
	test, err := e.Begin(k.ctx)
	k.Check(err)
	c := &client{k, uri, test}
	k.AtEnd(test.End)
	if k.setting.Deployment != nil {
		k.dropping.Do(func() { c.atEnd("database", "dropCollection", `{"collection": "`+CollectionName+`"}`) })
	}
	c.open("client", "client", `{"uriOptions": {`+uriOptions+`}}`)
	c.open("database", "database", `{"client": "client", "databaseName": "`+DatabaseName+`"}`)
	c.open("collection", "collection", `{"database": "database", "collectionName": "`+CollectionName+`"}`)
	return c
}

func (c *client) open(kind, id, options string) {
	c.stage.Check(trial.Open(c.stage.ctx, c.test, c.uri, kind, id, options))
}

// atEnd performs an operation at the end of the test.
func (c *client) atEnd(object, name, arguments string) {
	c.stage.AtEnd(func(ctx context.Context) error {
		out := trial.Do(ctx, c.test, object, name, arguments)
		if out.Err != nil && out.Err.Unsupported == "" { // an unsupported operation had no effect to undo
			return fmt.Errorf("%s: %w", name, out.Err)
		}
		return out.Broken
	})
}

// do performs an operation and returns its value or error.
func (c *client) do(object, name, arguments string) (bson.RawValue, *result.Error) {
	out := trial.Do(c.stage.ctx, c.test, object, name, arguments)
	err := out.Broken
	if out.Err != nil && out.Err.Unsupported != "" {
		err = out.Err
	}
	c.stage.Check(err)
	return out.Value.RawValue, out.Err
}

// must performs an operation that must succeed.
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
	c.atEnd("client", engine.OpConfigureFailPoint, trial.FailCommand(`"off"`, `{}`))
	c.must("client", engine.OpConfigureFailPoint, trial.FailCommand(mode, "{"+data+"}"))
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
	c.stage.Check(err)
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
		c.stage.Check(c.must("client", engine.OpTopology, `{}`).Unmarshal(&seen))
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
			c.stage.Check(&Unmet{fmt.Sprintf("it requires %d of %s, and the deployment has %d", n, which, len(found))})
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
			first.Do(func() { k.Try(f) })
		}
	}})
	k.Check(err)
	k.AtEnd(func(context.Context) error { p.Close(); return nil })
	uri := k.setting.Deployment.DirectURI(p.Address())
	if lower := strings.ToLower(uri); strings.Contains(lower, "tls=true") || strings.Contains(lower, "ssl=true") ||
		strings.Contains(lower, "compressors=") {
		k.Check(&Unmet{"it reads the messages of clients, which must not be encrypted or compressed"})
	}
	return uri
}
