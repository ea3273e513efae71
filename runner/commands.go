package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/wire/replies"
)

// commands is the internal MongoClient of the runner ("Initializing the Test Runner"). It may be used concurrently.
type commands interface {
	// at runs a command on a server.
	at(ctx context.Context, address, database string, command any) (bson.Raw, error)
	// list runs a command that returns a cursor and reads all documents.
	list(ctx context.Context, address, database string, command any) ([]bson.Raw, error)
	// ask sends a command on a connection of its own. An error that the server returns counts as an answer.
	ask(ctx context.Context, address string, command bson.D) (bson.Raw, error)
	// once runs a command on a new connection.
	once(ctx context.Context, uri, database string, command any) (serviceReply, error)
	close()
}

// serviceReply is a reply, and the service that sent it behind a load balancer.
type serviceReply struct {
	reply   bson.Raw
	service *bson.ObjectID
}

// defaultServer is the address of the primary, or of the mongos that inserts initial data.
const defaultServer = ""

// dialer returns a function that creates the commands of a deployment without connecting. Clients declare a version
// of the Stable API unless it is "": servers with requireApiVersion require it.
func dialer(api string) func(deployment.Deployment) (commands, error) {
	return func(d deployment.Deployment) (commands, error) {
		o := internal(d.SingleURI(), api)
		if d.Description().Topology == deployment.Sharded {
			o = alone(o)
		}
		client, err := mongo.Connect(o)
		return &clients{deployment: d, api: api, clients: map[string]*mongo.Client{defaultServer: client}}, err
	}
}

// clients implements commands with a client of the Go driver for the deployment
// and one for each address, kept between tests.
type clients struct {
	deployment deployment.Deployment
	api        string

	mu      sync.Mutex
	clients map[string]*mongo.Client // by address
}

// internal returns the options of an internal client.
func internal(uri, api string) *options.ClientOptions {
	o := replies.Own(options.Client().ApplyURI(uri).SetAppName("utr internal client").
		SetReadPreference(readpref.Primary()))
	if api != "" {
		o.SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion(api)))
	}
	return o
}

// alone limits the wait of a client for its only server. An election cannot replace that server.
func alone(o *options.ClientOptions) *options.ClientOptions {
	if o.ServerSelectionTimeout == nil {
		o.SetServerSelectionTimeout(5 * time.Second)
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

func (c *clients) ask(ctx context.Context, address string, command bson.D) (bson.Raw, error) {
	if c.api != "" {
		command = append(slices.Clip(command), bson.E{Key: "apiVersion", Value: c.api})
	}
	return deployment.Ask(ctx, c.deployment.DirectURI(address), command)
}

func (c *clients) clientOf(address string) (*mongo.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.clients[address]; client != nil {
		return client, nil
	}
	client, err := mongo.Connect(alone(internal(c.deployment.DirectURI(address), c.api)))
	if err == nil {
		c.clients[address] = client
	}
	return client, err
}

func (c *clients) once(ctx context.Context, uri, database string, command any) (a serviceReply, err error) {
	monitor := &event.CommandMonitor{Succeeded: func(_ context.Context,
		e *event.CommandSucceededEvent) {
		a.service = e.ServiceID
	}}
	client, err := mongo.Connect(internal(uri, c.api).SetMaxPoolSize(1).SetMonitor(monitor))
	if err != nil {
		return a, err
	}
	a.reply, err = client.Database(database).RunCommand(ctx, command).Raw()
	return a, errors.Join(err, client.Disconnect(ctx))
}

// closeLimit bounds close, since the deployment may be unreachable. Servers also end sessions themselves.
const closeLimit = time.Second

func (c *clients) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		_ = client.Disconnect(ctx)
	}
}
