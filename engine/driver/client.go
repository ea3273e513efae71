package driver

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/internal/net/socket"
	"github.com/unified-test-runner/utr/result"
)

// client is a client entity.
type client struct {
	*mongo.Client
	log     *enginekit.EventLog
	sockets *socket.Dialer
	timeout *time.Duration // timeoutMS, nil if not set

	closed sync.Once
}

// newClient creates a client. It does not wait for server discovery.
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

// heartbeat is the heartbeatFrequencyMS of clients that do not set it, the lowest that
// the driver accepts. With its default of 10 s, a server could stay Unknown for 10 s after
// an error, because the driver does not interrupt an awaitable hello to check it.
const heartbeat = 500 * time.Millisecond

// ending limits the endSessions command.
const ending = 2 * time.Second

// close disconnects the client. It does not wait for an unresponsive server.
func (c *client) close() {
	c.closed.Do(func() {
		// With a deadline the driver would wait for connections in use.
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		defer time.AfterFunc(ending, cancel).Stop()
		c.sockets.Close(closing, func() {
			_ = c.Disconnect(ctx) // the only error: it is already disconnected
		})
	})
}

func (c *client) Events() *enginekit.EventLog { return c.log }

func clientRows() []row {
	const on = entities.Client
	driven := func(c *call) *mongo.Client { return c.client.Client }
	return []row{
		calling(on, "createChangeStream", "", "pipeline", driven, (*mongo.Client).Watch),
		calling(on, "listDatabaseNames", "", "filter", driven, (*mongo.Client).ListDatabaseNames),
		calling(on, "listDatabases", "", "filter", driven, (*mongo.Client).ListDatabases),
		with(on, "clientBulkWrite", "", clientBulkWrite),
		silently(on, "appendMetadata", "", func(c *call) error {
			info, err := enginekit.DriverInfo(c.Arg("driverInfoOptions"), lacking)
			if err == nil {
				c.client.AppendDriverInfo(info)
			}
			return err
		}),
		silently(on, "close", "", func(c *call) error { c.client.close(); return nil }),
		silently(on, "dropDatabase", writeConcerns, func(c *call) error {
			return c.database(c.Text("database"), options.DatabaseOptions{}).Drop(c.ctx)
		}),
		plainly(on, "$topology", "", func(c *call) (any, error) {
			events, err := c.client.log.After(c.ctx, 0, 0)
			for _, e := range slices.Backward(events) {
				if e.Type == result.TopologyDescriptionChanged {
					return e.New, nil
				}
			}
			return result.TopologyState{Type: "Unknown", Servers: []result.ServerState{}}, err
		}),
		plainly(on, "$configureFailPoint", "command", func(c *call) (any, error) {
			c.trace.hidden = true
			return c.client.Database("admin").RunCommand(c.ctx, c.any("command")).Raw()
		}),
	}
}

const (
	// holding limits how long a heartbeat is held, and how long a failing socket waits for the monitor to read again.
	holding = 50 * time.Millisecond
	// closing is how long a client waits for the driver before it closes its sockets.
	closing = 500 * time.Millisecond
)

// newSockets returns the dialer of a client. A heartbeat must not arrive while the driver handles a network error, so
// when a socket fails, the monitor's stream from the same server is held for a moment. That changes when bytes
// arrive, never their content.
func newSockets() *socket.Dialer {
	s := socket.New(new(net.Dialer).DialContext, holding)
	s.Failed = func(k *socket.Socket, err error) {
		var n net.Error
		if errors.Is(err, net.ErrClosed) || errors.As(err, &n) && n.Timeout() {
			return // the driver closed the socket, or does not take this as a failure of the server
		}
		if !k.Streams() && !k.Closed() {
			s.Hold(k.Address)
		}
	}
	return s
}

// withOptions adds uriOptions to a connection string, replacing options of the same name. An option that the driver
// does not know is an error, because the driver would ignore it. The driver parses serverMonitoringMode but does not
// apply it, so it is returned as well, "" if it is not set.
func withOptions(uri string, uriOptions bson.Raw) (full, serverMonitoringMode string, err error) {
	u, err := enginekit.ParseURI(uri, uriOptions)
	if err != nil {
		return "", "", err
	}
	known, err := connstring.Parse(u.String())
	if err != nil {
		return "", "", err
	}
	for name := range known.UnknownOptions {
		return "", "", unsupported("uriOptions." + cmp.Or(enginekit.Spelling(uriOptions, name), name))
	}
	if known.SocketTimeoutSet { // the driver parses it but does not apply it
		return "", "", unsupported("uriOptions.socketTimeoutMS")
	}
	return u.String(), known.ServerMonitoringMode, nil
}
