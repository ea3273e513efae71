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
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// commands is the runner's own way to a deployment, beside the engine's: the
// internal MongoClient ("Initializing the Test Runner"). It may be used
// concurrently.
type commands interface {
	// at runs a command on one server: by default on the primary, or on the one
	// mongos that all set-up goes through.
	at(ctx context.Context, address, database string, command any) (bson.Raw, error)
	// list runs a command that answers with a cursor, and gives all documents.
	list(ctx context.Context, address, database string, command any) ([]bson.Raw, error)
	// once runs a command through a new connection, and returns which service
	// behind a load balancer that led to.
	once(ctx context.Context, uri, database string, command any) (*bson.ObjectID, error)
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
		client, err := mongo.Connect(internal(d.SingleURI(), api))
		return &clients{deployment: d, api: api, clients: map[string]*mongo.Client{byDefault: client}}, err
	}
}

// clients are commands by the official driver: one client for the deployment,
// and one for each server that was asked for, kept between tests.
type clients struct {
	deployment deployment.Deployment
	api        string // "": none is declared

	mu      sync.Mutex
	clients map[string]*mongo.Client // by address
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

func (c *clients) at(ctx context.Context, address, database string, command any) (bson.Raw, error) {
	client, err := c.clientOf(address)
	if err != nil {
		return nil, err
	}
	return client.Database(database).RunCommand(ctx, command).Raw()
}

func (c *clients) list(ctx context.Context, address, database string, command any) (all []bson.Raw, err error) {
	client, err := c.clientOf(address)
	if err != nil {
		return nil, err
	}
	cursor, err := client.Database(database).RunCommandCursor(ctx, command)
	if err != nil {
		return nil, err
	}
	err = cursor.All(ctx, &all)
	return all, err
}

func (c *clients) clientOf(address string) (*mongo.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.clients[address]; client != nil {
		return client, nil
	}
	client, err := mongo.Connect(internal(c.deployment.DirectURI(address), c.api))
	if err == nil {
		c.clients[address] = client
	}
	return client, err
}

func (c *clients) once(ctx context.Context, uri, database string, command any) (service *bson.ObjectID, err error) {
	monitor := &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) { service = e.ServiceID }}
	client, err := mongo.Connect(internal(uri, c.api).SetMaxPoolSize(1).SetMonitor(monitor))
	if err != nil {
		return nil, err
	}
	err = client.Database(database).RunCommand(ctx, command).Err()
	return service, errors.Join(err, client.Disconnect(ctx))
}

// closeLimit bounds the goodbye to a deployment, which may be gone: sessions
// are ended there by and by, too.
const closeLimit = time.Second

func (c *clients) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		_ = client.Disconnect(ctx) // nothing is lost with it
	}
}
