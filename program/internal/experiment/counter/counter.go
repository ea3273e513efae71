// Package counter measures how accurately application strategies count when the network or the server fails: clients
// increment a counter through the Go driver over real sockets, and a proxy causes a fault just before or after a
// write. The strategies come from "How to Write Resilient MongoDB Applications" (2016) and their successors.
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

// Config is the configuration of an experiment. Use Defaults.
type Config struct {
	// URI is the connection string of a deployment without TLS. Faults affect the
	// primary of a replica set or the first mongos.
	URI string
	// Events is the number of events that each client counts. Faults alternate between the first and second step of a
	// strategy, and between before and after execution. For lasting faults, each client counts a tenth, but at least
	// two, since each waits for the server.
	Events     int
	Strategies []Strategy
	Faults     []Fault
	// Selection is serverSelectionTimeoutMS. Lasting faults use a tenth of it.
	Selection time.Duration
}

// Defaults returns a configuration with all strategies and faults.
func Defaults() Config {
	return Config{Events: 10, Strategies: Strategies(), Faults: Faults(), Selection: 5 * time.Second}
}

// Cell is the result of a strategy with a fault.
type Cell struct {
	Strategy string `json:"strategy"`
	Fault    Fault  `json:"fault"`
	Events   int    `json:"events"`
	// Counter is the final value of the counter. The clean-up of the strategy added CleanedUp to it.
	Counter   int `json:"counter"`
	CleanedUp int `json:"cleanedUp"`
	// Errors is the number of events for which the application received an error.
	Errors int `json:"errors"`
	// Attempts is the number of calls of the driver, Messages the number of writes that reached the proxy.
	Attempts int           `json:"attempts"`
	Messages int           `json:"messages"`
	Elapsed  time.Duration `json:"elapsedNS"`
}

// Verdict is the assessment of a cell, as in the tables of the document. A command error must not be retried, and a
// network error once: in a lasting fault, no strategy reaches its second step.
func (c Cell) Verdict() string {
	switch {
	case c.Fault == CommandError && max(c.Attempts, c.Messages) > c.Events,
		c.Fault == Outage && c.Attempts > 2*c.Events:
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

const database, collection = "utr-experiment", "counters"

// Run measures all cells concurrently, each with its own client, proxy and document, and removes the documents. It
// calls done after each cell, without overlapping calls. It may be nil.
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
	var calling sync.Mutex
	return each(c.Strategies, c.Faults, func(s Strategy, f Fault) (Cell, error) {
		cell, err := c.measure(ctx, server, s, f, fmt.Sprintf("%s-%s-%s", run, s.Name, f), counters)
		if done != nil {
			calling.Lock()
			defer calling.Unlock()
			done()
		}
		return cell, err
	})
}

// each measures all pairs of a subject and a fault concurrently. The results are ordered by subject.
func each[S, R any](subjects []S, faults []Fault, measure func(S, Fault) (R, error)) ([]R, error) {
	results, errs := make([]R, len(subjects)*len(faults)), make([]error, len(subjects)*len(faults))
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i], errs[i] = measure(subjects[i/len(faults)], faults[i%len(faults)]) })
	}
	all.Wait()
	return results, errors.Join(errs...)
}

// measure counts the events of one cell.
func (c Config) measure(ctx context.Context, server string, s Strategy, f Fault, id string,
	counters *mongo.Collection) (Cell, error) {
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
	if err := settle(ctx, client, nil); err != nil {
		return cell, err
	}
	begun := time.Now()
	for i := range cell.Events {
		if ctx.Err() != nil {
			return cell, ctx.Err()
		}
		a := &application{client: client, counters: client.Database(database).Collection(collection), id: id, tries: s.tries}
		p.arm(f, point{command: s.durable, skip: i / 2 % 2 * s.second, executed: i%2 == 0})
		limited, cancel := context.WithTimeout(ctx, 8*c.Selection)
		if s.count(limited, a) != nil {
			cell.Errors++
		}
		cancel()
		cell.Attempts += a.attempts
		cell.Messages += p.disarm()
		if err := settle(ctx, client, a.sessions); err != nil {
			return cell, err
		}
	}
	cell.Elapsed = time.Since(begun)
	own := bson.D{{Key: "_id", Value: id}}
	before, err := count(ctx, counters, own)
	if err != nil {
		return cell, err
	}
	if err := cleanUp(ctx, counters, append(mongo.Pipeline{{{Key: "$match", Value: own}}}, corrected()...)); err != nil {
		return cell, err
	}
	cell.Counter, err = count(ctx, counters, own)
	cell.CleanedUp = cell.Counter - before
	return cell, err
}

// count returns the counter of a document, 0 if there is none.
func count(ctx context.Context, counters *mongo.Collection, filter bson.D) (int, error) {
	var doc struct{ Counter int }
	err := counters.FindOne(ctx, filter).Decode(&doc)
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = nil
	}
	return doc.Counter, err
}

// settle waits until the client has rediscovered the server, so that a fault affects only
// one event. It aborts transactions that an outage left open, since they lock the counter.
func settle(ctx context.Context, client *mongo.Client, sessions bson.A) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err := client.Ping(ctx, nil)
	for err != nil && ctx.Err() == nil {
		err = client.Ping(ctx, nil)
	}
	if err != nil || len(sessions) == 0 {
		return err
	}
	return client.Database("admin").RunCommand(ctx, bson.D{{Key: "killSessions", Value: sessions}}).Err()
}
