package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// commands is the runner's own way to a deployment, beside the engine's: the
// internal MongoClient ("Initializing the Test Runner"). It may be used
// concurrently.
type commands interface {
	// at runs a command on one server: by default on the primary, or on the one
	// mongos that all set-up goes through.
	at(ctx context.Context, address, database string, command any) (bson.Raw, error)
	// once runs a command through a new connection, and returns which service
	// behind a load balancer that led to.
	once(ctx context.Context, uri, database string, command any) (bson.Raw, *bson.ObjectID, error)
	// again runs a command through the connection that once made to a service,
	// and reports whether it exists, still leads to that service, and answered.
	again(ctx context.Context, service bson.ObjectID, database string, command any) bool
	// documents reads a collection from the primary, with local read concern,
	// sorted by _id.
	documents(ctx context.Context, database, collection string) ([]bson.Raw, error)
	// close ends all connections.
	close()
}

// byDefault is the address of the server that set-up goes through.
const byDefault = ""

// dialer gives what makes the commands of a deployment, by clients that declare a
// version of the Stable API, if any: a server with requireApiVersion requires that of
// every client. Nothing is sent yet.
func dialer(api string) func(deployment.Deployment) (commands, error) {
	return func(d deployment.Deployment) (commands, error) {
		c := &clients{deployment: d, api: api, direct: make(map[string]*mongo.Client), routes: make(map[bson.ObjectID]*route)}
		var err error
		if c.client, err = c.connect(d.SingleURI()); err != nil {
			return nil, err
		}
		return c, nil
	}
}

// clients are commands by the official driver: one client for the deployment,
// one for each server that was asked for, and one for each service behind a
// load balancer that was met, kept between tests.
type clients struct {
	deployment deployment.Deployment
	api        string // "": none is declared
	client     *mongo.Client

	mu     sync.Mutex
	direct map[string]*mongo.Client // by address
	routes map[bson.ObjectID]*route // by service
}

// route is a client of one connection, through a load balancer.
type route struct {
	client *mongo.Client

	mu      sync.Mutex     // one command at a time
	service *bson.ObjectID // that the last reply came from
}

func newRoute(uri, api string) (r *route, err error) {
	r = &route{}
	monitor := &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) { r.service = e.ServiceID }}
	r.client, err = mongo.Connect(internal(uri, api).SetMaxPoolSize(1).SetMonitor(monitor))
	return r, err
}

// run runs a command, and returns where: a new connection
// may lead elsewhere.
func (r *route) run(ctx context.Context, database string, command any) (bson.Raw, *bson.ObjectID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.service = nil
	reply, err := r.client.Database(database).RunCommand(ctx, command).Raw()
	return reply, r.service, err
}

// internal gives the options of internal clients. They are the connection
// string's, so that TLS and authentication are as for the clients of the
// tests, but for the monitoring: a client that streams hello can miss that it
// is disconnected, and then waits for the next heartbeat, 10 s.
func internal(uri, api string) *options.ClientOptions {
	o := options.Client().ApplyURI(uri).SetAppName("utr internal client").
		SetReadPreference(readpref.Primary()).SetServerMonitoringMode(options.ServerMonitoringModePoll)
	if api != "" {
		o.SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion(api)))
	}
	return o
}

func (c *clients) connect(uri string) (*mongo.Client, error) {
	return mongo.Connect(internal(uri, c.api))
}

func (c *clients) at(ctx context.Context, address, database string, command any) (bson.Raw, error) {
	client, err := c.directly(address)
	if err != nil {
		return nil, err
	}
	return client.Database(database).RunCommand(ctx, command).Raw()
}

func (c *clients) directly(address string) (*mongo.Client, error) {
	if address == byDefault {
		return c.client, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.direct[address]; client != nil {
		return client, nil
	}
	client, err := c.connect(c.deployment.DirectURI(address))
	if err == nil {
		c.direct[address] = client
	}
	return client, err
}

func (c *clients) once(ctx context.Context, uri, database string, command any) (bson.Raw, *bson.ObjectID, error) {
	r, err := newRoute(uri, c.api)
	if err != nil {
		return nil, nil, err
	}
	reply, service, err := r.run(ctx, database, command)
	if err == nil && service != nil && c.keep(*service, r) {
		return reply, service, nil
	}
	return reply, service, errors.Join(err, r.client.Disconnect(ctx))
}

// keep notes the way to a service, unless one is known.
func (c *clients) keep(service bson.ObjectID, r *route) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes[service] != nil {
		return false
	}
	c.routes[service] = r
	return true
}

func (c *clients) again(ctx context.Context, service bson.ObjectID, database string, command any) bool {
	c.mu.Lock()
	r := c.routes[service]
	c.mu.Unlock()
	if r == nil {
		return false
	}
	_, met, err := r.run(ctx, database, command)
	if err == nil && met != nil && *met == service {
		return true
	}
	c.mu.Lock()
	delete(c.routes, service)
	c.mu.Unlock()
	_ = r.client.Disconnect(ctx) // it is of no use any more, however it ends
	return false
}

func (c *clients) documents(ctx context.Context, database, collection string) ([]bson.Raw, error) {
	cursor, err := c.client.Database(database).
		Collection(collection, options.Collection().SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Local())).
		Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return nil, err
	}
	var all []bson.Raw
	err = cursor.All(ctx, &all)
	return all, err
}

// closeLimit bounds the goodbye to a deployment, which may be gone: sessions
// are ended there by and by, too.
const closeLimit = time.Second

func (c *clients) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.client.Disconnect(ctx) // nothing is lost with it
	for _, client := range c.direct {
		_ = client.Disconnect(ctx)
	}
	for _, r := range c.routes {
		_ = r.client.Disconnect(ctx)
	}
}
