package driver

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

// client is a client entity.
type client struct {
	*mongo.Client
	log     *enginekit.EventLog
	sockets *enginekit.Sockets
	timeout *time.Duration // timeoutMS, nil if not set

	closed sync.Once
}

// newClient opens a client. It returns at once: the driver discovers servers
// while operations wait for them.
func newClient(d *driver, uri string, entity bson.Raw) (*client, error) {
	uriOptions, _ := entity.Lookup("uriOptions").DocumentOK()
	uri, monitoring, err := withOptions(uri, uriOptions)
	if err != nil {
		return nil, err
	}
	c := &client{log: enginekit.NewEventLog(time.Now), sockets: newSockets()}
	write := enginekit.PoolWriter(c.log)
	o := options.Client().ApplyURI(uri).
		SetMonitor(commandMonitor(c.log)).
		SetServerMonitor(enginekit.ServerMonitor(c.log)).
		SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
			write(e)
			if e.Type == event.ConnectionPoolClosed {
				c.sockets.PoolClosed(e.Address)
			}
		}}).
		SetDialer(c.sockets)
	if monitoring != "" {
		o.SetServerMonitoringMode(monitoring)
	}
	if o.HeartbeatInterval == nil {
		o.SetHeartbeatInterval(heartbeat)
	}
	if v := entity.Lookup("serverApi"); v.Type != 0 {
		api, err := enginekit.ServerAPI(v, lacking)
		if err != nil {
			return nil, err
		}
		o.SetServerAPIOptions(api)
	}
	for _, change := range d.change {
		change(o)
	}
	c.timeout = o.Timeout
	c.Client, err = mongo.Connect(o)
	return c, err
}

// heartbeat is the heartbeatFrequencyMS of clients that do not set it, the least that
// the driver takes. Its own 10 s is how long a server that an error has made Unknown may
// stay so: the driver does not interrupt an awaitable hello to look at once.
const heartbeat = 500 * time.Millisecond

// ending is how long it may take to tell a server that sessions have ended.
const ending = 2 * time.Second

// close disconnects. It does not wait for a server that is silent.
func (c *client) close() {
	c.closed.Do(func() {
		// With a deadline the driver would wait for connections in use.
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		defer time.AfterFunc(ending, cancel).Stop()
		c.sockets.Close(closing, func() {
			_ = c.Disconnect(ctx) // the only error is that it was disconnected before
		})
	})
}

// topology is what the last event said of it.
func (c *client) topology() result.TopologyState {
	last, found := c.log.Latest(result.TopologyDescriptionChanged)
	if !found {
		return result.TopologyState{Type: "Unknown"}
	}
	return *last.SDAM.New
}

// Events implements enginekit.Client.
func (c *client) Events() *enginekit.EventLog { return c.log }

// clientRows are operations of clients.
func clientRows() []row {
	const on = operations.Client
	return []row{
		one(on, "createChangeStream", "pipeline", (*mongo.Client).Watch),
		one(on, "listDatabaseNames", "filter", (*mongo.Client).ListDatabaseNames),
		one(on, "listDatabases", "filter", (*mongo.Client).ListDatabases),
		with(on, "clientBulkWrite", "models", clientBulkWrite),
		silently(on, "appendMetadata", "driverInfoOptions", func(c *call) error {
			info, err := enginekit.DriverInfo(c.Arg("driverInfoOptions"), lacking)
			if err == nil {
				c.client.AppendDriverInfo(info)
			}
			return err
		}),
		silently(on, "close", "", func(c *call) error { c.client.close(); return nil }),
		silently(on, "dropDatabase", "database"+writeConcerns, func(c *call) error {
			return c.database(c.Text("database"), options.DatabaseOptions{}).Drop(c.ctx)
		}),
		plainly(on, "$topology", "", func(c *call) (any, error) { return enginekit.TopologyDocument(c.client.topology()), nil }),
		plainly(on, "$configureFailPoint", "command", func(c *call) (any, error) {
			c.trace.hidden = true
			return c.client.Database("admin").RunCommand(c.ctx, c.any("command")).Raw()
		}),
	}
}

// How long a heartbeat is held back, and how long a failing socket waits for the
// monitor to be out of the way; and how long a server may take to be closed.
const (
	holding = 50 * time.Millisecond
	closing = 500 * time.Millisecond
)

// newSockets dials for a client. A heartbeat must not arrive in the middle of
// the driver's handling of a network error, so a monitor's stream is held for a
// moment when another socket to the same server fails. That changes when bytes
// arrive, never what they are.
func newSockets() *enginekit.Sockets {
	s := enginekit.NewSockets(new(net.Dialer).DialContext, holding)
	s.Failed = func(k *enginekit.Socket, err error) {
		var n net.Error
		if errors.Is(err, net.ErrClosed) || errors.As(err, &n) && n.Timeout() {
			return // by the driver itself, or not a failure of the server to the driver
		}
		if !k.Streams() && !k.Closed() {
			s.Hold(k.Address)
		}
	}
	return s
}

// withOptions writes uriOptions into a connection string, each in the place
// of one of the same name. The string must then be one that the driver knows
// all of: it ignores options that it does not know. The second result is
// serverMonitoringMode, which the driver reads and does not apply; "" if it is
// not there.
func withOptions(uri string, uriOptions bson.Raw) (string, string, error) {
	u, err := enginekit.ParseURI(uri, uriOptions)
	if err != nil {
		return "", "", err
	}
	known, err := connstring.Parse(u.String())
	if err != nil {
		return "", "", err
	}
	for name := range known.UnknownOptions {
		for _, o := range u.Options { // as it is written
			if strings.EqualFold(o.Name, name) && uriOptions.Lookup(o.Name).Type != 0 {
				name = o.Name
			}
		}
		return "", "", unsupported("uriOptions." + name)
	}
	if known.SocketTimeoutSet { // it reads it, and forgets it
		return "", "", unsupported("uriOptions.socketTimeoutMS")
	}
	return u.String(), known.ServerMonitoringMode, nil
}
