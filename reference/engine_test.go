package reference

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a test with client, database, collection and bucket open.
type bench struct {
	engine.Test
	t *testing.T
	s *scripted
}

func open(t *testing.T, s *scripted, o Options, uriOptions bson.D) *bench {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return openOn(t, s, e, uriOptions)
}

func openOn(t *testing.T, s *scripted, e engine.Engine, uriOptions bson.D) *bench {
	t.Helper()
	tt, err := e.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		begun := time.Now()
		if err := tt.End(context.Background()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 9*time.Second { // it does not wait for a heartbeat, which comes every 10 s
			t.Errorf("closing took %v", took)
		}
		_ = e.Close()
	})
	b := &bench{tt, t, s}
	b.entity("client", "client", bson.D{{Key: "uriOptions", Value: uriOptions}})
	b.entity("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "db"}})
	b.entity("collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "coll"}})
	b.entity("bucket", "bucket", bson.D{{Key: "database", Value: "database"}})
	return b
}

func raw(t *testing.T, v any) bson.Raw {
	t.Helper()
	if v == nil {
		return nil
	}
	r, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (b *bench) entity(kind, id string, d bson.D) {
	b.t.Helper()
	if err := b.Open(context.Background(), engine.Entity{Kind: kind, ID: id, URI: b.s.uri(),
		Options: raw(b.t, append(bson.D{{Key: "id", Value: id}}, d...))}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) do(object, name string, args bson.D) result.Outcome {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if args == nil {
		args = bson.D{}
	}
	return b.Do(ctx, engine.Operation{Object: object, Name: name, Arguments: raw(b.t, args)})
}

// story gives the command events in short: find>, find<, find!.
func (b *bench) story() string {
	b.t.Helper()
	events, err := b.Events(context.Background(), "client", 0, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		if e.Command == nil {
			continue
		}
		out = append(out, e.Command.CommandName+map[result.EventType]string{
			result.CommandStarted: ">", result.CommandSucceeded: "<", result.CommandFailed: "!"}[e.Type])
	}
	return strings.Join(out, " ")
}

// reads are all retryable read operations with arguments that work, and the
// command that each sends.
var reads = []struct {
	object, name, command string
	args                  bson.D
}{
	{"collection", "find", "find", bson.D{{Key: "filter", Value: bson.D{}}}},
	{"collection", "findOne", "find", bson.D{{Key: "filter", Value: bson.D{}}}},
	{"collection", "aggregate", "aggregate", bson.D{{Key: "pipeline", Value: bson.A{}}}},
	{"database", "aggregate", "aggregate", bson.D{{Key: "pipeline", Value: bson.A{}}}},
	{"collection", "count", "count", bson.D{{Key: "filter", Value: bson.D{}}}},
	{"collection", "countDocuments", "aggregate", bson.D{{Key: "filter", Value: bson.D{}}}},
	{"collection", "estimatedDocumentCount", "count", nil},
	{"collection", "distinct", "distinct", bson.D{{Key: "fieldName", Value: "x"}, {Key: "filter", Value: bson.D{}}}},
	{"client", "createChangeStream", "aggregate", bson.D{{Key: "pipeline", Value: bson.A{}}}},
	{"database", "createChangeStream", "aggregate", bson.D{{Key: "pipeline", Value: bson.A{}}}},
	{"collection", "createChangeStream", "aggregate", bson.D{{Key: "pipeline", Value: bson.A{}}}},
	{"client", "listDatabases", "listDatabases", nil},
	{"client", "listDatabaseNames", "listDatabases", nil},
	{"client", "listDatabaseObjects", "listDatabases", nil},
	{"database", "listCollections", "listCollections", nil},
	{"database", "listCollectionNames", "listCollections", nil},
	{"database", "listCollectionObjects", "listCollections", nil},
	{"collection", "listIndexes", "listIndexes", nil},
	{"collection", "listIndexNames", "listIndexes", nil},
}

func TestReadsAreRetriedOnEveryTopology(t *testing.T) {
	for _, kind := range []string{"single", "replicaset", "sharded", "load-balanced"} {
		t.Run(kind, func(t *testing.T) {
			n := map[string]int{"replicaset": 3, "sharded": 2}[kind]
			for _, fault := range []struct {
				name string
				step step
			}{{"network", closes}, {"91", fails(91)}, {"10107", fails(10107)}} {
				for _, r := range reads {
					t.Run(fault.name+" "+r.object+"."+r.name, func(t *testing.T) {
						s := script(t, kind, max(n, 1))
						s.on(r.command, fault.step)
						b := open(t, s, Options{}, nil)
						if out := b.do(r.object, r.name, r.args); out.Err != nil {
							t.Fatal(out.Err)
						}
						if got, want := b.story(), r.command+"> "+r.command+"! "+r.command+"> "+r.command+"<"; got != want {
							t.Error(got)
						}
						sent := s.commands(r.command)
						if len(sent) != 2 || !sent[0].Lookup("lsid").Equal(sent[1].Lookup("lsid")) {
							t.Error("the two attempts have different sessions")
						}
					})
				}
			}
		})
	}
}

func TestTheSecondErrorIsRaised(t *testing.T) {
	s := script(t, "replicaset", 1)
	s.on("find", fails(91), fails(11600))
	b := open(t, s, Options{}, nil)
	out := b.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}})
	if out.Err == nil || out.Err.Code != 11600 || out.Err.Client || out.Err.CodeName != "Code11600" || out.Err.Response == nil {
		t.Fatalf("%+v", out.Err)
	}
	var rules []string
	for _, d := range out.Decisions {
		rules = append(rules, d.Action+" "+strings.Join(d.Rules, ","))
	}
	want := []string{"select R1", "send R5", "select R11,R22,R50", "send R5", "return error R11,R20,R35"}
	if !slices.Equal(rules, want) {
		t.Errorf("decisions %q", rules)
	}
}

func TestAShardedRetryGoesToAnotherMongos(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := script(t, "sharded", 2)
			s.on("find", fails(6))
			b := open(t, s, Options{}, nil)
			if out := b.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); out.Err != nil {
				t.Fatal(out.Err)
			}
			events, _ := b.Events(context.Background(), "client", 0, 0)
			var servers []string
			for _, e := range events {
				if e.Type == result.CommandStarted {
					servers = append(servers, e.Address)
				}
			}
			if len(servers) != 2 || servers[0] == servers[1] {
				t.Fatalf("attempts went to %v", servers)
			}
		})
	}
}

func TestNeverRetried(t *testing.T) {
	for _, c := range []struct {
		object, name, command string
		args, uri             bson.D
		why                   string
	}{
		{"database", "runCommand", "ping", bson.D{{Key: "commandName", Value: "ping"}, {Key: "command", Value: bson.D{{Key: "ping", Value: 1}}}}, nil, "generic"},
		{"collection", "mapReduce", "mapReduce", bson.D{{Key: "map", Value: bson.JavaScript("f")}, {Key: "reduce", Value: bson.JavaScript("f")}, {Key: "out", Value: bson.D{{Key: "inline", Value: 1}}}}, nil, "mapReduce"},
		{"collection", "aggregate", "aggregate", bson.D{{Key: "pipeline", Value: bson.A{bson.D{{Key: "$out", Value: "o"}}}}}, nil, "$out"},
		{"collection", "aggregate", "aggregate", bson.D{{Key: "pipeline", Value: bson.A{bson.D{{Key: "$merge", Value: bson.D{{Key: "into", Value: "o"}}}}}}}, nil, "$merge"},
		{"collection", "find", "find", bson.D{{Key: "filter", Value: bson.D{}}}, bson.D{{Key: "retryReads", Value: false}}, "retryReads false"},
	} {
		s := script(t, "replicaset", 1)
		s.on(c.command, closes)
		b := open(t, s, Options{}, c.uri)
		out := b.do(c.object, c.name, c.args)
		if out.Err == nil || !out.Err.Client || out.Err.Kind != "network" {
			t.Errorf("%s: %+v", c.why, out.Err)
		}
		if got := b.story(); got != c.command+"> "+c.command+"!" {
			t.Errorf("%s: %s", c.why, got)
		}
	}
}

func TestGetMoreIsNotRetriedAndKeepsItsServer(t *testing.T) {
	for _, kind := range []string{"replicaset", "sharded", "load-balanced"} {
		s := script(t, kind, map[string]int{"sharded": 2}[kind]+1)
		if kind == "load-balanced" {
			s.members[0].s = s
		}
		s.on("find", step{reply: bson.D{{Key: "ok", Value: 1}, cursorField("firstBatch", 42, "db.coll", bson.D{{Key: "_id", Value: 1}})}})
		s.on("getMore", step{reply: bson.D{{Key: "ok", Value: 1}, cursorField("nextBatch", 42, "db.coll", bson.D{{Key: "_id", Value: 2}})}}, closes)
		b := open(t, s, Options{}, nil)
		out := b.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "batchSize", Value: 1}})
		if out.Err == nil || out.Err.Kind != "network" {
			t.Fatalf("%s: %+v", kind, out)
		}
		if got := b.story(); got != "find> find< getMore> getMore< getMore> getMore!" {
			t.Errorf("%s: %s", kind, got)
		}
		events, _ := b.Events(context.Background(), "client", 0, 0)
		address, conn := "", ""
		for _, e := range events {
			if e.Command == nil {
				continue
			}
			if address != "" && e.Address != address {
				t.Errorf("%s: the cursor moved from %s to %s", kind, address, e.Address)
			}
			if kind == "load-balanced" && conn != "" && e.Command.ConnectionID != conn {
				t.Errorf("the cursor left its connection")
			}
			address, conn = e.Address, e.Command.ConnectionID
		}
	}
}

func TestTimeoutMSRetriesUntilTheDeadline(t *testing.T) {
	s := script(t, "replicaset", 1)
	s.on("find", fails(91), fails(91), fails(91), closes, fails(91))
	b := open(t, s, Options{}, bson.D{{Key: "timeoutMS", Value: 5000}})
	if out := b.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if n := strings.Count(b.story(), "find>"); n != 6 {
		t.Errorf("%d attempts", n)
	}
	for _, c := range s.commands("find") {
		if ms, ok := enginekit.Integer(c.Lookup("maxTimeMS")); !ok || ms > 5000 {
			t.Errorf("maxTimeMS: %v", c.Lookup("maxTimeMS"))
		}
	}
	s.on("find", step{wait: 300 * time.Millisecond})
	out := b.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "timeoutMS", Value: 50}})
	if out.Err == nil || !out.Err.Timeout || !out.Err.Client {
		t.Errorf("%+v", out.Err)
	}
}

func TestUnknownArgumentsAreRefused(t *testing.T) {
	b := open(t, script(t, "single", 1), Options{}, nil)
	out := b.do("collection", "find", bson.D{{Key: "filtre", Value: bson.D{}}})
	if out.Err == nil || out.Err.Unsupported == "" {
		t.Errorf("%+v", out.Err)
	}
	out = b.do("collection", "fly", nil)
	if out.Err == nil || out.Err.Unsupported == "" {
		t.Errorf("%+v", out.Err)
	}
	if b.story() != "" {
		t.Error(b.story())
	}
}

func TestEventsInterleaveInTheOrderInWhichTheyHappened(t *testing.T) {
	s := script(t, "replicaset", 1)
	s.on("find", closes)
	b := open(t, s, Options{}, nil)
	if out := b.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); out.Err != nil {
		t.Fatal(out.Err)
	}
	events, _ := b.Events(context.Background(), "client", 0, 0)
	var got []string
	for i, e := range events {
		if e.Sequence != int64(i+1) {
			t.Fatalf("event %d has number %d", i, e.Sequence)
		}
		switch e.Type {
		case result.CommandStarted, result.CommandFailed, result.PoolCleared, result.ConnectionCheckedOut,
			result.ConnectionCheckedIn, result.ConnectionClosed, result.CommandSucceeded:
			got = append(got, string(e.Type))
		}
	}
	want := "[connectionCheckedOutEvent commandStartedEvent commandFailedEvent poolClearedEvent connectionCheckedInEvent connectionClosedEvent" +
		" connectionCheckedOutEvent commandStartedEvent commandSucceededEvent connectionCheckedInEvent]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
}

func TestDescribeIsSortedAndServed(t *testing.T) {
	e, _ := New(Options{})
	d, err := e.Describe(context.Background())
	if err != nil || !slices.IsSorted(d.Operations) || len(d.Operations) < 60 {
		t.Fatalf("%v %d", err, len(d.Operations))
	}
	if !d.Serves("collection", "find") || d.Serves("clientEncryption", "encrypt") {
		t.Error("find is served, encryption is not")
	}
	if _, err := New(Options{Policy: "none"}); err == nil {
		t.Error("an unknown policy is taken")
	}
}

func BenchmarkOpenFindClose(b *testing.B) {
	s := script(&testing.T{}, "replicaset", 3)
	defer s.stop()
	e, _ := New(Options{})
	for b.Loop() {
		t, _ := e.Begin(context.Background())
		bs := &bench{t, &testing.T{}, s}
		bs.entity("client", "client", nil)
		bs.entity("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "db"}})
		bs.entity("collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "coll"}})
		if out := bs.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); out.Err != nil {
			b.Fatal(out.Err)
		}
		_ = t.End(context.Background())
	}
}
