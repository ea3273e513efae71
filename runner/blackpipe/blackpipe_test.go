package blackpipe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/runner/blackpipe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// count is an application. It counts an event exactly once, in two idempotent steps that it retries once
// (docs/application/black-pipe.md).
func count(ctx context.Context, uri string) error {
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(5 * time.Second))
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(ctx) }()
	days, token := client.Database("app").Collection("days"), bson.NewObjectID()
	twice := func(filter, update bson.D, upsert bool) error {
		_, err := days.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(upsert))
		if mongo.IsNetworkError(err) {
			_, err = days.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(upsert))
		}
		return err
	}
	today := bson.E{Key: "_id", Value: "2016-06-28"}
	if err := twice(bson.D{today}, bson.D{{Key: "$addToSet", Value: bson.D{{Key: "pending", Value: token}}}},
		true); err != nil {
		return err
	}
	return twice(bson.D{today, {Key: "pending", Value: token}},
		bson.D{{Key: "$pull", Value: bson.D{{Key: "pending", Value: token}}},
			{Key: "$inc", Value: bson.D{{Key: "counter", Value: 1}}}}, false)
}

const (
	adds   = "{ update: days, updates: [ { q: { _id: 2016-06-28 }, u: { $addToSet: { pending: { $$type: objectId } } }, upsert: true, multi: { $$unsetOrMatches: false } } ] }"
	counts = "{ update: days, updates: [ { q: { _id: 2016-06-28, pending: { $$type: objectId } }, " +
		"u: { $pull: { pending: { $$type: objectId } }, $inc: { counter: 1 } }, upsert: { $$unsetOrMatches: false }, multi: { $$unsetOrMatches: false } } ] }"
)

type fault struct {
	reason, steps string
	app           string // part of the application's error
	play          string // part of the script's error
}

// faults are faults of a network or a server; mistakes are mistakes of an application or its script.
func faults() (faults, mistakes []fault) {
	return []fault{
			{"no fault", "[{expect: ADDS, reply: {n: 1}}, {expect: COUNTS, reply: {n: 1}}]", "", ""},
			{"the first request or its reply is lost",
				"[{expect: ADDS, hangUp: true}, {expect: ADDS, reply: {n: 1}}, {expect: COUNTS, reply: {n: 1}}]", "", ""},
			{"half of a reply", "[{expect: ADDS, reply: {n: 1}}, {expect: COUNTS, half: {n: 1}}, {expect: COUNTS, reply: {n: 0}}]", "", ""},
			{"an outage", "[{expect: ADDS, hangUp: true}, {expect: ADDS, hangUp: true}]", "EOF", ""},
			{"a command error is not retried", "[{expect: ADDS, reply: {ok: 0, code: 13, errmsg: not authorized}}]",
				"not authorized", ""},
			{"a late reply", "[{expect: ADDS, reply: {n: 1}, after: 20ms}, {expect: COUNTS, reply: {n: 1}}]", "", ""},
			{"in any order", "[{any: [{expect: COUNTS, reply: {n: 1}}, {expect: ADDS, reply: {n: 1}}]}]", "", ""},
		}, []fault{
			{"another command than expected", "[{expect: {insert: days}, reply: {}}]", "EOF",
				"expect.insert: the value is missing"},
			{"another value than expected", "[{expect: {update: nights}, reply: {}}]", "EOF", "message 1 does not match"},
			{"none of several expected commands",
				"[{any: [{expect: {update: nights}, reply: {}}, {expect: {find: days}, reply: {}}]}]", "EOF", `want "nights", got "days"`},
			{"extra command", "[{expect: ADDS, reply: {n: 1}}]", "EOF", "received update after the end of the script"},
			{"missing command", "[{expect: ADDS, reply: {n: 1}}, {expect: COUNTS, reply: {n: 1}}, {expect: COUNTS, reply: {n: 1}}]", "", "ended after 2 messages"},
		}
}

// The results of the application and of the script for each fault.
func TestFaults(t *testing.T) {
	faults, mistakes := faults()
	try(t, append(faults, mistakes...), count)
}

// An application in another language has the same results.
func TestPython(t *testing.T) {
	python := testkit.Python(t, "pymongo")
	faults, _ := faults()
	try(t, faults, func(ctx context.Context, uri string) error {
		app := exec.CommandContext(ctx, python, "testdata/count.py")
		app.Env = append(os.Environ(), "MONGODB_URI="+uri)
		if out, err := app.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, strings.ReplaceAll(string(out), "connection closed", "EOF"))
		}
		return nil
	})
}

func try(t *testing.T, faults []fault, app func(ctx context.Context, uri string) error) {
	for _, r := range faults {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			script, err := blackpipe.ParseScript("script.yml",
				[]byte("steps: "+strings.NewReplacer("ADDS", adds, "COUNTS", counts).Replace(r.steps)))
			testkit.Check(t, err)
			server, err := blackpipe.Listen(script.Options)
			testkit.Check(t, err)
			defer func() { testkit.Check(t, server.Close()) }()
			play := script.Play(server, nil)
			testkit.WantError(t, "the application", app(testkit.Context(t), server.URI()), r.app)
			err = play.End()
			testkit.WantError(t, "the script", err, r.play)
			if unexpected := (*blackpipe.Unexpected)(nil); r.play != "" && !errors.As(err, &unexpected) {
				t.Errorf("%T is not an *Unexpected", err)
			}
		})
	}
}

// What a server sends for each answer, and whether the connection stays open for the next message. After the last
// message it hangs up, so that reading ends.
func TestAnswers(t *testing.T) {
	const next = "{expect: {ping: 2}, reply: {n: 2}}, {expect: {ping: 3}, hangUp: true}"
	full := func(id int32) []byte {
		reply, err := bson.Marshal(bson.D{{Key: "n", Value: id}, {Key: "ok", Value: 1.0}})
		testkit.Check(t, err)
		return wire.AppendMsg(nil, 0, id, 0, reply)
	}
	for _, r := range []struct {
		answer, next string
		messages     int32
		want         []byte
	}{
		{"reply: {n: 1}", next, 3, append(full(1), full(2)...)},
		{"stall: true", next, 3, full(2)},
		{"half: {n: 1}", "", 1, full(1)[:len(full(1))/2]},
		{"hangUp: true", "", 1, []byte{}},
	} {
		script, err := blackpipe.ParseScript("script.yml",
			fmt.Appendf(nil, "steps: [{expect: {ping: 1}, %s}, %s]", r.answer, r.next))
		testkit.Check(t, err)
		server, err := blackpipe.Listen(script.Options)
		testkit.Check(t, err)
		play := script.Play(server, nil)
		conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(server.URI(), "mongodb://"), "/?directConnection=true"))
		testkit.Check(t, err)
		testkit.Check(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		for id := range r.messages {
			ping, err := bson.Marshal(bson.D{{Key: "ping", Value: id + 1}})
			testkit.Check(t, err)
			_, err = conn.Write(wire.AppendMsg(nil, id+1, 0, 0, ping))
			testkit.Check(t, err)
		}
		got, err := io.ReadAll(conn)
		testkit.Check(t, err)
		testkit.Same(t, r.answer, got, r.want)
		testkit.Check(t, conn.Close())
		testkit.Check(t, play.End())
		testkit.Check(t, server.Close())
	}
}

// An operation of an application times out while the server stalls, and the next one succeeds on another connection.
func TestTimeout(t *testing.T) {
	script, err := blackpipe.ParseScript("script.yml", []byte("steps: [{expect: {ping: 1}, reply: {}}, "+
		"{expect: {count: days}, stall: true}, {expect: {count: days}, reply: {n: 5}}]"))
	testkit.Check(t, err)
	server, err := blackpipe.Listen(script.Options)
	testkit.Check(t, err)
	defer func() { testkit.Check(t, server.Close()) }()
	play := script.Play(server, nil)
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI()).SetRetryReads(false))
	testkit.Check(t, err)
	testkit.Check(t, client.Ping(t.Context(), nil)) // the first operation needs no time to connect
	days := client.Database("app").Collection("days")
	limited, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err = days.EstimatedDocumentCount(limited); !mongo.IsTimeout(err) {
		t.Errorf("error %v is not a timeout", err)
	}
	n, err := days.EstimatedDocumentCount(t.Context())
	testkit.Check(t, err)
	testkit.Equal(t, "the count", n, 5)
	testkit.Check(t, play.End())
	testkit.Check(t, client.Disconnect(t.Context()))
}

// A server can be closed twice, and has no message after that.
func TestClose(t *testing.T) {
	server, err := blackpipe.Listen(blackpipe.Options{})
	testkit.Check(t, err)
	testkit.Check(t, server.Close())
	testkit.Check(t, server.Close())
	_, err = server.Next(t.Context())
	testkit.Equal(t, "the error of Next", err, blackpipe.ErrClosed)
}

// The driver selects the server in each topology, and retries except in a standalone.
func TestTopologies(t *testing.T) {
	for topology, retries := range map[string]bool{blackpipe.Single: false, blackpipe.ReplicaSet: true,
		blackpipe.Sharded: true, blackpipe.LoadBalanced: true} {
		server, err := blackpipe.Listen(blackpipe.Options{Topology: topology})
		testkit.Check(t, err)
		client, err := mongo.Connect(options.Client().ApplyURI(server.URI()))
		testkit.Check(t, err)
		failed := make(chan error)
		go func() {
			_, err := client.Database("app").Collection("days").InsertOne(t.Context(), bson.D{})
			failed <- err
		}()
		m, err := server.Next(testkit.Context(t))
		testkit.Check(t, err)
		_, numbered := m.Command.Lookup("txnNumber").Int64OK()
		testkit.Equal(t, topology+": "+m.Name+" has a transaction number", numbered, retries)
		m.HangUp()
		if retries {
			m, err = server.Next(testkit.Context(t))
			testkit.Check(t, err)
			testkit.Check(t, m.Reply(bson.D{{Key: "n", Value: 1}}))
		}
		if err := <-failed; mongo.IsNetworkError(err) == retries {
			t.Errorf("%s: error %v", topology, err)
		}
		testkit.Check(t, client.Disconnect(t.Context()))
		testkit.Check(t, server.Close())
	}
	_, err := blackpipe.Listen(blackpipe.Options{Topology: "ring"})
	testkit.ErrorContains(t, err, `"ring" is not one of single, replicaset`)
}

// A test can answer hello itself. Unacknowledged writes get no reply.
func TestHelloOption(t *testing.T) {
	server, err := blackpipe.Listen(blackpipe.Options{Hello: true, MaxWireVersion: 21})
	testkit.Check(t, err)
	defer func() { testkit.Check(t, server.Close()) }()
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI() + "&w=0"))
	testkit.Check(t, err)
	go func() { _, _ = client.Database("app").Collection("days").InsertOne(t.Context(), bson.D{}) }()
	for ctx := testkit.Context(t); ; {
		m, err := server.Next(ctx)
		testkit.Check(t, err)
		if m.Name == "insert" {
			testkit.Equal(t, "it is unacknowledged", m.Unacknowledged, true)
			testkit.Check(t, m.Reply(nil))
			break
		}
		testkit.Check(t, m.Reply(server.Hello()))
	}
	testkit.Check(t, client.Disconnect(t.Context()))
}

func TestParseScript(t *testing.T) {
	for _, r := range []struct{ reason, text, fails string }{
		{"not YAML", "steps: [", "s.yml:1"},
		{"no steps", "topology: single", "s.yml:1:1: the script has no steps"},
		{"an unknown key", "step: []", `s.yml:1:1: a script has no key "step"; did you mean steps?`},
		{"a key of something else", "color: red", "it has topology, maxWireVersion, hello, steps"},
		{"a misspelled topology", "topology: shraded", "; did you mean sharded?"},
		{"an unknown topology", "topology: ring", "s.yml:1:11: topology is not one of single"},
		{"a wire version that is not a number", "maxWireVersion: x", "maxWireVersion is not a wire version"},
		{"hello", "hello: 1", "hello is not true or false"},
		{"a step that is not a document", "steps: [1]", "s.yml:1:9: a step is not a document"},
		{"no expect", "steps: [{reply: {}}]", "the step has no expect"},
		{"the command is empty", "steps: [{expect: {}, reply: {}}]", "expect is not a command"},
		{"no answer", "steps: [{expect: {ping: 1}}]", "the step requires reply, half, hangUp or stall"},
		{"two answers", "steps: [{expect: {ping: 1}, reply: {}, hangUp: true}]", "reply and hangUp are mutually exclusive"},
		{"a reply that is not a document", "steps: [{expect: {ping: 1}, reply: 1}]", "reply is not a document"},
		{"hangUp: false", "steps: [{expect: {ping: 1}, hangUp: false}]", "hangUp is not true"},
		{"a delay without a unit", "steps: [{expect: {ping: 1}, reply: {}, after: 5}]", "after is not a duration"},
		{"a misspelled key", "steps: [{expects: {ping: 1}}]", `a step has no key "expects"; did you mean expect?`},
		{"an unknown operator", "steps: [{expect: {ping: {$$exist: true}}, reply: {}}]",
			"s.yml:1:26: unknown operator $$exist"},
		{"a malformed reply", "steps: [{expect: {ping: 1}, reply: {id: {$oid: x}}}]", "$oid"},
		{"any beside other keys", "steps: [{any: [], reply: {}}]", "any must be the only key"},
		{"an invalid step in any", "steps: [{any: [{expect: {ping: 1}}]}]", "the step requires"},
	} {
		_, err := blackpipe.ParseScript("s.yml", []byte(r.text))
		testkit.WantError(t, r.reason, err, r.fails)
	}
}

func ExampleServer() {
	server, err := blackpipe.Listen(blackpipe.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = server.Close() }()
	ended := make(chan error)
	go func() { ended <- count(context.Background(), server.URI()) }()
	for i := range 3 {
		m, err := server.Next(context.Background())
		if err != nil {
			panic(err)
		}
		fmt.Println(m.Name, m.Command.Lookup("updates", "0", "upsert"))
		if i == 0 {
			m.HangUp() // the application cannot know whether it was executed
			continue
		}
		_ = m.Reply(bson.D{{Key: "n", Value: 1}})
	}
	fmt.Println("error:", <-ended)
	// Output:
	// update true
	// update true
	// update false
	// error: <nil>
}

// docs/application/black-pipe.md contains the script in testdata/lost-reply.yml.
func TestPage(t *testing.T) {
	page := testkit.Read(t, "../../docs/application/black-pipe.md")
	script := testkit.Read(t, "testdata/lost-reply.yml")
	_, shown, _ := strings.Cut(page, "```yaml\n")
	if !strings.HasPrefix(shown, script+"```") {
		t.Error("docs/application/black-pipe.md does not contain testdata/lost-reply.yml")
	}
}
