// Package counter measures what strategies of applications do to a counter when the network
// or the server fails: clients increment it through the Go driver, over real sockets, and a
// proxy strikes at the moment at which the write becomes durable. The strategies are those
// of "How to Write Resilient MongoDB Applications" (2016), and what superseded them.
package counter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Config says what is measured. Use Defaults.
type Config struct {
	// URI is the connection string of a deployment whose connections are not encrypted. Faults strike
	// at the primary of a replica set, or at the first mongos.
	URI string
	// Events is how many events each client counts. A fault strikes the first step of a
	// strategy or the second, before the server has executed it or after, in turn. Of events
	// that cannot succeed, a tenth is enough, and two at least: each waits for the server.
	Events     int
	Strategies []Strategy
	Faults     []Fault
	// Selection is serverSelectionTimeoutMS. In an outage a tenth of it shows the same.
	Selection time.Duration
}

// Defaults gives all strategies and faults.
func Defaults() Config {
	return Config{Events: 10, Strategies: Strategies(), Faults: Faults(), Selection: 5 * time.Second}
}

// Cell is what was measured of one strategy in one fault.
type Cell struct {
	Strategy string `json:"strategy"`
	Fault    Fault  `json:"fault"`
	Events   int    `json:"events"`
	// Counter is what the counter says in the end, after the clean-up of the strategy, which
	// added CleanedUp to it.
	Counter   int `json:"counter"`
	CleanedUp int `json:"cleanedUp"`
	// Errors is how many events the application could not count, as far as it knows.
	Errors int `json:"errors"`
	// Attempts is how often the application called the driver, Messages how many writes
	// reached the proxy.
	Attempts int           `json:"attempts"`
	Messages int           `json:"messages"`
	Elapsed  time.Duration `json:"elapsedNS"`
}

// Verdict is what the document's tables say of a cell.
func (c Cell) Verdict() string {
	switch {
	case c.Fault.lasts() && c.Attempts > 2*steps*c.Events:
		return "wastes time"
	case c.Fault.lasts():
		return "correct"
	case c.Counter < c.Events:
		return "undercounts"
	case c.Counter > c.Events:
		return "overcounts"
	}
	return "correct"
}

// steps is how many calls of the driver a strategy needs at most if all is well.
const steps = 2

const database, collection = "utr-experiment", "counters"

// Run measures all cells at the same time, each with a client, a proxy and a document of
// its own, and removes the documents. done, if it is not nil, is called after each cell, one
// call after the other.
func Run(ctx context.Context, c Config, done func()) ([]Cell, error) {
	if c.Events < 1 || len(c.Strategies) == 0 || len(c.Faults) == 0 {
		return nil, errors.New("nothing to count")
	}
	server, err := c.server(ctx)
	if err != nil {
		return nil, err
	}
	client, disconnect, err := c.connect(ctx, server, 10*time.Second, true)
	if err != nil {
		return nil, err
	}
	defer disconnect()
	counters := client.Database(database).Collection(collection)
	// Transactions do not create collections on every server.
	run := bson.NewObjectID().Hex()
	if _, err := counters.InsertOne(ctx, bson.D{{Key: "_id", Value: run}}); err != nil {
		return nil, fmt.Errorf("%s: %w", server, err)
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, _ = counters.DeleteMany(limited, bson.D{{Key: "_id", Value: bson.D{{Key: "$regex", Value: "^" + run}}}})
	}()
	cells, errs := make([]Cell, len(c.Strategies)*len(c.Faults)), make([]error, len(c.Strategies)*len(c.Faults))
	var all sync.WaitGroup
	var calling sync.Mutex
	for i, s := range c.Strategies {
		for k, f := range c.Faults {
			at := i*len(c.Faults) + k
			all.Go(func() {
				cells[at], errs[at] = c.measure(ctx, server, s, f, fmt.Sprintf("%s-%s-%s", run, s.Name, f), counters)
				if done != nil {
					calling.Lock()
					defer calling.Unlock()
					done()
				}
			})
		}
	}
	all.Wait()
	return cells, errors.Join(errs...)
}

// measure counts the events of one cell.
func (c Config) measure(ctx context.Context, server string, s Strategy, f Fault, id string, counters *mongo.Collection) (Cell, error) {
	cell := Cell{Strategy: s.Name, Fault: f, Events: c.Events}
	if f.lasts() {
		cell.Events, c.Selection = max(2, c.Events/10), c.Selection/10
	}
	p, err := listen(server)
	if err != nil {
		return cell, err
	}
	defer p.close()
	client, disconnect, err := c.connect(ctx, p.Address(), c.Selection, s.retryWrites)
	if err != nil {
		return cell, err
	}
	defer disconnect()
	if err := c.awaitUp(ctx, client); err != nil {
		return cell, err
	}
	begun := time.Now()
	for i := range cell.Events {
		if ctx.Err() != nil {
			return cell, ctx.Err()
		}
		a := &application{client: client, counters: client.Database(database).Collection(collection), id: id, tries: s.tries}
		p.arm(f, strike{command: s.durable, skip: i / 2 % 2 * s.second, executed: i%2 == 0})
		limited, cancel := context.WithTimeout(ctx, 8*c.Selection)
		if s.count(limited, a) != nil {
			cell.Errors++
		}
		cancel()
		cell.Attempts += a.attempts
		cell.Messages += p.disarm()
		if err := c.awaitUp(ctx, client); err != nil {
			return cell, err
		}
		if err := killSessions(ctx, client, a.sessions); err != nil {
			return cell, err
		}
	}
	cell.Elapsed = time.Since(begun)
	if s.cleanUp != nil {
		if cell.CleanedUp, err = s.cleanUp(ctx, counters, id); err != nil {
			return cell, err
		}
	}
	var doc struct{ Counter int }
	if err := counters.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&doc); err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return cell, err
	}
	cell.Counter = doc.Counter
	return cell, nil
}

// awaitUp waits until the client has found the server again, so that a fault strikes one
// event alone.
func (c Config) awaitUp(ctx context.Context, client *mongo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := client.Ping(ctx, nil)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// killSessions ends the transactions that an outage has left open: they lock the counter.
func killSessions(ctx context.Context, client *mongo.Client, sessions bson.A) error {
	if len(sessions) == 0 {
		return nil
	}
	return client.Database("admin").RunCommand(ctx, bson.D{{Key: "killSessions", Value: sessions}}).Err()
}
