package counter

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/net/interpose"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T) Config {
	t.Helper()
	d, err := embedded.Start(t.Context(), embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, d.Close()) })
	c := Defaults()
	c.URI, c.Events = d.URI(), 6
	return c
}

// Measurements reproduce the tables of the document and leave no documents behind. All other operations of the article
// except the one that ignores the key are safe to retry, and deletes race as in the article.
func TestTables(t *testing.T) {
	t.Parallel()
	c, ctx := serve(t), testkit.Context(t)
	var r Report
	var err error
	r.Cells, err = Run(ctx, c, nil)
	testkit.Check(t, err)
	r.Operations, err = RunOperations(ctx, c)
	testkit.Check(t, err)
	r.CleanUps, err = RunCleanUps(ctx, c)
	testkit.Check(t, err)
	var text, data, plot strings.Builder
	testkit.Check(t, errors.Join(r.Text(&text, false), r.JSON(&data), r.SVG(&plot)))
	testkit.Golden(t, "testdata/tables.txt", text.String())
	var rows struct{ Cells []struct{ Verdict string } }
	testkit.Check(t, json.Unmarshal([]byte(data.String()), &rows))
	testkit.Equal(t, "rows", len(rows.Cells), len(r.Cells))
	testkit.Contains(t, plot.String(), "none, lost-request: -100 percent", "once, lost-reply: +100 percent",
		"idempotent, lost-reply: 0 percent", "none, command-error: 0 percent")
	testkit.Check(t, xml.Unmarshal([]byte(plot.String()), new(struct{})))
	client, err := mongo.Connect(options.Client().ApplyURI(c.URI))
	testkit.Check(t, err)
	n, err := client.Database(database).Collection(collection).CountDocuments(t.Context(), bson.D{})
	testkit.Check(t, err)
	testkit.Equal(t, "remaining documents", n, 0)
	testkit.Check(t, client.Disconnect(t.Context()))
}

// The nightly task adds the pending tokens to the counter and removes them, and doing it again changes nothing. The
// pipeline of the article sets a missing counter to null.
func TestCleanUp(t *testing.T) {
	t.Parallel()
	c := serve(t)
	client, err := mongo.Connect(options.Client().ApplyURI(c.URI))
	testkit.Check(t, err)
	defer func() { testkit.Check(t, client.Disconnect(context.Background())) }()
	for _, r := range []struct{ reason, day, verbatim, corrected string }{
		{"tokens and a counter", `{"counter": 5, "pending": ["a", "b"]}`, `{"counter": 7}`, `{"counter": 7}`},
		{"the first event of the day has no counter yet", `{"pending": ["a"]}`, `{"counter": null}`, `{"counter": 1}`},
		{"no token is left", `{"counter": 5, "pending": []}`, `{"counter": 5, "pending": []}`,
			`{"counter": 5, "pending": []}`},
		{"another technique", `{"counter": 5}`, `{"counter": 5}`, `{"counter": 5}`},
	} {
		for i, p := range []mongo.Pipeline{verbatim(), corrected()} {
			text := []string{r.verbatim, r.corrected}[i]
			days := client.Database(database).Collection(bson.NewObjectID().Hex())
			var day, want map[string]any
			testkit.Check(t, bson.UnmarshalExtJSON([]byte(r.day), false, &day))
			testkit.Check(t, bson.UnmarshalExtJSON([]byte(text), false, &want))
			day["_id"], want["_id"] = r.reason, r.reason
			_, err := days.InsertOne(t.Context(), day)
			testkit.Check(t, err)
			for range 2 {
				testkit.Check(t, cleanUp(t.Context(), days, p))
				var got map[string]any
				testkit.Check(t, days.FindOne(t.Context(), bson.M{"_id": r.reason}).Decode(&got))
				testkit.Equal(t, r.reason, got, want)
			}
		}
	}
}

// Each step of the strategy "idempotent" has the same effect if it is executed twice.
func TestSteps(t *testing.T) {
	t.Parallel()
	client, err := mongo.Connect(options.Client().ApplyURI(serve(t).URI))
	testkit.Check(t, err)
	defer func() { testkit.Check(t, client.Disconnect(context.Background())) }()
	a := &application{counters: client.Database(database).Collection("steps"), id: "day"}
	token := bson.E{Key: "pending", Value: "a"}
	add, move := steps(token)
	for _, r := range []struct {
		reason         string
		filter, update bson.D
		want           map[string]any
	}{
		{"a token is added once", nil, add, map[string]any{"_id": "day", "pending": bson.A{"a"}}},
		{"and counted once", bson.D{token}, move, map[string]any{"_id": "day", "pending": bson.A{}, "counter": int32(1)}},
	} {
		for range 2 {
			testkit.Check(t, a.update(t.Context(), r.filter, r.update, r.filter == nil))
			var got map[string]any
			testkit.Check(t, a.counters.FindOne(t.Context(), bson.M{"_id": a.id}).Decode(&got))
			testkit.Equal(t, r.reason, got, r.want)
		}
	}
}

// A check of the server beside an operation could clear the pool before a retry is sent.
func TestChecks(t *testing.T) {
	o := Config{URI: "mongodb://localhost"}.options("localhost", time.Second, true)
	testkit.Equal(t, "a stream of checks never ends", *o.ServerMonitoringMode, options.ServerMonitoringModePoll)
	if every, longest := *o.HeartbeatInterval, 10*time.Minute; every < longest {
		t.Errorf("a check every %s may run beside an operation of an experiment of %s", every, longest)
	}
}

// The driver marks a server Unknown after a network error or the error of a former primary, and the next operation
// waits until it has found the server again. Another command error changes nothing.
func TestServerStates(t *testing.T) {
	t.Parallel()
	c := serve(t)
	server, err := c.server(t.Context())
	testkit.Check(t, err)
	for fault, want := range map[Fault]bool{NoFault: false, LostRequest: true, LostReply: true, NotMaster: true,
		CommandError: false} {
		p, err := listen(server)
		testkit.Check(t, err)
		defer p.close()
		var unknown atomic.Bool
		client, err := mongo.Connect(c.options(p.Address(), c.Selection, false).SetServerMonitor(&event.ServerMonitor{
			ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
				unknown.Store(unknown.Load() || e.NewDescription.Kind == "Unknown")
			}}))
		testkit.Check(t, err)
		defer func() { testkit.Check(t, client.Disconnect(context.Background())) }()
		testkit.Check(t, client.Ping(t.Context(), nil))
		unknown.Store(false)
		p.arm(fault, point{command: "insert"})
		insert := func() error {
			_, err := client.Database(database).Collection("states").InsertOne(t.Context(), bson.D{})
			return err
		}
		testkit.Equal(t, string(fault)+": succeeds", insert() == nil, fault == NoFault)
		testkit.Equal(t, string(fault)+": the server is Unknown", unknown.Load(), want)
		p.disarm()
		testkit.Check(t, sent(t.Context(), insert))
	}
}

// Experiments that cannot run return errors.
func TestFails(t *testing.T) {
	t.Parallel()
	c := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, c, nil)
	testkit.ErrorContains(t, err, "context canceled")
	c.Events = 0
	_, err = Run(t.Context(), c, nil)
	testkit.ErrorContains(t, err, "nothing to count")
}

func TestVerdict(t *testing.T) {
	for _, r := range []struct {
		reason string
		cell   Cell
		want   string
	}{
		{"an equal count", Cell{Fault: LostReply, Events: 3, Counter: 3}, "correct"},
		{"one is missing", Cell{Fault: LostRequest, Events: 3, Counter: 2}, "undercounts"},
		{"one too many", Cell{Fault: Failover, Events: 3, Counter: 4}, "overcounts"},
		{"an outage may lose an event", Cell{Fault: Outage, Events: 3, Attempts: 6}, "correct"},
		{"two retries in an outage", Cell{Fault: Outage, Events: 3, Attempts: 7}, "wastes time"},
		{"no retry after a command error", Cell{Fault: CommandError, Events: 2, Attempts: 2, Messages: 2}, "correct"},
		{"one retry after a command error", Cell{Fault: CommandError, Events: 2, Attempts: 3, Messages: 3}, "wastes time"},
		{"a retry by the driver after a command error", Cell{Fault: CommandError, Events: 2, Attempts: 2, Messages: 3},
			"wastes time"},
	} {
		testkit.Equal(t, r.reason, r.cell.Verdict(), r.want)
	}
	for _, r := range []struct {
		reason string
		cell   Cell
		want   float64
	}{
		{"a third is missing", Cell{Fault: LostRequest, Events: 3, Counter: 2, Errors: 1}, -100.0 / 3},
		{"twice as many", Cell{Fault: LostReply, Events: 3, Counter: 6}, 100},
		{"events with an error are not missing", Cell{Fault: Outage, Events: 4, Counter: 1, Errors: 4}, 0},
		{"events without an error are", Cell{Fault: Outage, Events: 4, Counter: 1, Errors: 2}, -25},
	} {
		testkit.Equal(t, r.reason, r.cell.wrong(), r.want)
	}
	testkit.Equal(t, "nothing was measured", all(nil, "none", Outage), "not measured")
	both := []Cell{{Strategy: "x", Fault: LostRequest, Events: 1},
		{Strategy: "x", Fault: LostReply, Events: 1, Counter: 2}}
	testkit.Equal(t, "both", all(both, "x", LostRequest, LostReply), "may undercount or overcount")
}

// If the driver retries too, n attempts of an application at a read cause 2n attempts
// (Retryable Reads, "Backwards Compatibility").
func TestApplicationRetriesToo(t *testing.T) {
	t.Parallel()
	c := serve(t)
	server, err := c.server(t.Context())
	testkit.Check(t, err)
	for _, r := range []struct {
		retryReads bool
		want       int64
	}{{false, 3}, {true, 6}} {
		var finds atomic.Int64
		p, err := interpose.Listen(server, interpose.Hooks{Command: func(name string) interpose.Action {
			if name != "find" {
				return interpose.Forward
			}
			finds.Add(1)
			return interpose.DropReply
		}})
		testkit.Check(t, err)
		client, err := mongo.Connect(c.options(p.Address(), c.Selection, false).SetRetryReads(r.retryReads))
		testkit.Check(t, err)
		for range 3 {
			if err := client.Database(database).Collection(collection).FindOne(t.Context(),
				bson.D{}).Err(); !mongo.IsNetworkError(err) {
				t.Fatalf("the reply was not lost: %v", err)
			}
		}
		testkit.Check(t, client.Disconnect(t.Context()))
		p.Close()
		testkit.Equal(t, fmt.Sprintf("attempts, with retryReads %t", r.retryReads), finds.Load(), r.want)
	}
}
