package reference

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// logsOf runs a few operations on a client with observeLogMessages and gives
// its messages.
func logsOf(t *testing.T, observed, uriOptions bson.D, do func(b *bench)) []result.LogMessage {
	t.Helper()
	d, err := embedded.Start(context.Background(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	test, err := e.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Test: test, t: t}
	open := func(kind, id string, o bson.D) {
		t.Helper()
		if err := test.Open(context.Background(), engine.Entity{Kind: kind, ID: id, URI: d.URI(),
			Options: raw(t, append(bson.D{{Key: "id", Value: id}}, o...))}); err != nil {
			t.Fatal(err)
		}
	}
	open("client", "client", bson.D{{Key: "observeLogMessages", Value: observed}, {Key: "uriOptions", Value: uriOptions}})
	open("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "db"}})
	open("collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "coll"}})
	do(b)
	if err := test.Close(context.Background(), "client"); err != nil {
		t.Fatal(err)
	}
	reader, ok := test.(engine.LogReader)
	if !ok {
		t.Fatal("the test gives no log messages")
	}
	messages, err := reader.Logs(context.Background(), "client")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range messages {
		if m.Sequence != int64(i)+1 {
			t.Errorf("message %d has number %d", i+1, m.Sequence)
		}
	}
	return messages
}

func shown(messages []result.LogMessage) []string {
	var out []string
	for _, m := range messages {
		text := m.Component + " " + m.Level + ": " + m.Data.Lookup("message").StringValue()
		if name, ok := m.Data.Lookup("commandName").StringValueOK(); ok {
			text += " (" + name + ")"
		}
		out = append(out, text)
	}
	return out
}

func field(messages []result.LogMessage, message, key string) bson.RawValue {
	for _, m := range messages {
		if m.Data.Lookup("message").StringValue() == message {
			return m.Data.Lookup(key)
		}
	}
	return bson.RawValue{}
}

func TestLogMessages(t *testing.T) {
	insert := func(b *bench) {
		b.must("collection", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}})
	}
	for _, c := range []struct {
		why      string
		observed bson.D
		uri      bson.D
		do       func(*bench)
		want     []string
	}{
		{"commands, those of the handshake and of monitors left out", bson.D{{Key: "command", Value: "debug"}}, nil, insert, []string{
			"command debug: Command started (insert)", "command debug: Command succeeded (insert)",
			"command debug: Command started (endSessions)", "command debug: Command succeeded (endSessions)"}},
		{"more severe levels than those of all messages", bson.D{{Key: "command", Value: "info"}}, nil, insert, nil},
		{"other components are not observed", bson.D{{Key: "connection", Value: "debug"}}, nil, insert, []string{
			"connection debug: Connection pool created", "connection debug: Connection pool ready",
			"connection debug: Connection checkout started", "connection debug: Connection created", "connection debug: Connection ready",
			"connection debug: Connection checked out", "connection debug: Connection checked in",
			"connection debug: Connection checkout started", "connection debug: Connection checked out", "connection debug: Connection checked in",
			"connection debug: Connection closed", "connection debug: Connection pool closed"}},
		{"waiting is told once", bson.D{{Key: "serverSelection", Value: "debug"}},
			bson.D{{Key: "serverSelectionTimeoutMS", Value: 50}, {Key: "replicaSet", Value: "none"}},
			func(b *bench) {
				if out := b.do("collection", "insertOne", bson.D{{Key: "document", Value: bson.D{}}}); out.Err == nil {
					b.t.Error("a server of another set was selected")
				}
			}, []string{"serverSelection debug: Server selection started",
				"serverSelection info: Waiting for suitable server to become available",
				"serverSelection debug: Server selection failed"}},
		{"less severe messages are left out", bson.D{{Key: "serverSelection", Value: "info"}},
			bson.D{{Key: "serverSelectionTimeoutMS", Value: 50}, {Key: "replicaSet", Value: "none"}},
			func(b *bench) { b.do("collection", "insertOne", bson.D{{Key: "document", Value: bson.D{}}}) },
			[]string{"serverSelection info: Waiting for suitable server to become available"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			if diff := cmp.Diff(c.want, shown(logsOf(t, c.observed, c.uri, c.do))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLogData(t *testing.T) {
	all := bson.D{{Key: "command", Value: "trace"}, {Key: "connection", Value: "trace"}, {Key: "topology", Value: "trace"}, {Key: "serverSelection", Value: "trace"}}
	messages := logsOf(t, all, bson.D{{Key: "maxPoolSize", Value: 7}, {Key: "waitQueueTimeoutMS", Value: 9000}}, func(b *bench) {
		b.must("collection", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}})
		b.do("collection", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}})
		b.do("database", "runCommand", bson.D{{Key: "commandName", Value: "saslContinue"}, {Key: "command", Value: bson.D{
			{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: 0}, {Key: "payload", Value: "secret"}}}})
	})
	for _, c := range []struct {
		why, message, key string
		want              any // nil: absent
	}{
		{"an option that was given", "Connection pool created", "maxPoolSize", int64(7)},
		{"one that the topology does not know", "Connection pool created", "waitQueueTimeoutMS", int64(9000)},
		{"one that was not given", "Connection pool created", "minPoolSize", nil},
		{"host without port", "Command started", "serverHost", "127.0.0.1"},
		{"no service without a load balancer", "Command started", "serviceId", nil},
		{"no service in a pool either", "Connection pool ready", "serviceId", nil},
		{"the operation of a selection is its command", "Server selection started", "operation", "insert"},
		{"the operation's number joins selection and command", "Server selection started", "operationId",
			field(messages, "Command started", "operationId").Int64()},
		{"heartbeats have no connection string", "Server heartbeat succeeded", "serverHost", "127.0.0.1"},
		{"a failure of a sensitive command", "Command failed", "failure", ""},
	} {
		var got any
		v := field(messages, c.message, c.key)
		if v.Type != 0 {
			if err := v.Unmarshal(&got); err != nil {
				t.Fatal(err)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s.%s is %v, want %v", c.why, c.message, c.key, v, c.want)
		}
	}
	if text := field(messages, "Command started", "command").StringValue(); text[:16] != `{"insert":"coll"` {
		t.Errorf("the command is %s", text)
	}
	ids := map[string]bool{}
	for _, m := range messages {
		if m.Component == "topology" {
			ids[m.Data.Lookup("topologyId").StringValue()] = true
		}
		if m.Data.Lookup("commandName").Type == 0 || m.Data.Lookup("commandName").StringValue() != "saslContinue" {
			continue
		}
		switch m.Data.Lookup("message").StringValue() {
		case "Command started":
			if got := m.Data.Lookup("command").StringValue(); got != "{}" {
				t.Errorf("a sensitive command is shown: %s", got)
			}
		case "Command failed":
			if m.FailureRedacted == nil || !*m.FailureRedacted {
				t.Error("a sensitive failure is not redacted")
			}
		}
	}
	if len(ids) != 1 || ids[""] {
		t.Errorf("topology messages of one client have the topologyIds %v", ids)
	}
}

func TestObserveLogMessages(t *testing.T) {
	for _, c := range []struct {
		why   string
		value any
		wrong bool
	}{
		{"nothing is observed", nil, false},
		{"all components", bson.D{{Key: "command", Value: "off"}}, true}, // "off" is no level of the format
		{"no document", "debug", true},
		{"unknown component", bson.D{{Key: "commands", Value: "debug"}}, true},
		{"unknown level", bson.D{{Key: "command", Value: "verbose"}}, true},
		{"level of another type", bson.D{{Key: "command", Value: 7}}, true},
		{"every level", bson.D{{Key: "command", Value: "emergency"}, {Key: "connection", Value: "trace"}}, false},
	} {
		v := raw(t, bson.D{{Key: "v", Value: c.value}}).Lookup("v")
		if c.value == nil {
			v = bson.RawValue{}
		}
		if _, err := newMessageLog(time.Now, v); (err != nil) != c.wrong {
			t.Errorf("%s: error %v", c.why, err)
		}
	}
	var none *messageLog
	none.add(componentCommand, "error", nil, nil)
	if len(none.all()) != 0 || none.observes(componentCommand, "emergency") {
		t.Error("a log that observes nothing has messages")
	}
}

func TestLoggedValues(t *testing.T) {
	id := bson.NewObjectID()
	var absent *bson.ObjectID
	for _, c := range []struct {
		why  string
		in   any
		want any
	}{
		{"null is left out", nil, nil}, {"so is a pointer to nothing", absent, nil},
		{"identifiers are text", &id, id.Hex()}, {"by value, too", id, id.Hex()},
		{"unsigned numbers are numbers", uint64(3), int64(3)}, {"so are plain ones", 4, int64(4)},
		{"text stays", "x", "x"}, {"what else there is becomes text", errors.New("e"), "e"},
	} {
		got, ok := logged(c.in)
		if got != c.want || ok != (c.want != nil) {
			t.Errorf("%s: %v, %v", c.why, got, ok)
		}
	}
}
