// Package replay contains only tests. They replay recorded requests to a real server on embedded servers, and compare
// the replies.
//
//	go test ./embedded/internal/replay -run 'TestReplay/replica-set/reads_and_cursors'
//
// A recording is always replayed completely, because scenarios depend on earlier ones; -run selects which scenarios are
// reported. Expected differences are in a table with their reasons. A missing difference fails the test.
package replay

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// difference is an expected difference from a recording.
type difference struct {
	recordings, scenario string
	steps                []int
	reason               string
}

var differences = []difference{
	// The protocol.
	{"replica-set sharded", "diagnostics", []int{12, 13}, "the real servers contained databases of earlier tests"},
	{"replica-set sharded standalone", "diagnostics", []int{17},
		"serverStatus: fewer sections without a storage engine; the recording is also shortened"},
	{"replica-set", "diagnostics", []int{15},
		"replSetGetStatus: no replication progress, because there is no replication"},
	{"replica-set", "message sections and flags", []int{1},
		"the real server had the collection from an earlier recording"},
	// Data.
	{"replica-set sharded", "retryable writes: records", []int{24},
		"the message quotes an oplog entry in its storage format, which does not exist here"},
	{"replica-set", "change streams", []int{6, 7, 8},
		"replication of the real server took time: three getMores returned one event each; here the first one returns all"},
	{"sharded", "change streams", []int{6, 7, 8, 9},
		"the real shards needed time to advance the cluster time: the second getMore returned what here the first one returns; steps 8 and 9 use its tokens"},
	{"writes", insertOfThree + "code 1, keeps the connection", []int{6, 8}, forgets},
	{"writes", insertOfThree + "code 1, closes the connection", []int{6, 8}, forgets},
	{"writes", insertOfThree + "code 189, keeps the connection", []int{6, 8}, forgets},
	{"writes", insertOfThree + "code 189, closes the connection", []int{6, 8}, forgets},
	{"writes", wrong + "bad argument of a stage", []int{3}, "error messages of stages are those of later versions"},
}

const (
	insertOfThree = `onPrimaryTransactionalWrite: insert of three, unordered, mode {"times": 2}, `
	wrong         = "a command that is wrong, with failCommand on for it: "
	forgets       = "a bug of the real server: a retried insert loses the documents before the last one, if that one was already stored"
)

// pasts are commands before the recordings that affect replies: they create a collection and a session.
var pasts = map[string][]string{
	"replica-set": {`{"create": "w", "$db": "utr_recording"}`, pastSession},
	"standalone":  {pastSession},
}

const pastSession = `{"find": "past", "lsid": {"id": {"$binary": {"base64": "AAAAAAAAQACAAAAAAAAAAA==", "subType": "04"}}}, "$db": "past"}`

// TestReplay plays the recordings of 4.9 against servers of that version.
func TestReplay(t *testing.T) {
	for _, r := range []struct {
		name  string
		kind  server.Topology
		steps int
		hosts []string
	}{
		{"replica-set", server.ReplicaSet, 413, []string{"localhost:27117", "localhost:27118", "localhost:27119"}},
		{"sharded", server.Sharded, 395, []string{"localhost:27217", "localhost:27218"}},
		{"standalone", server.Standalone, 348, []string{"localhost:27400"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			report(t, r.name, lines[step](t, r.name+".jsonl", r.steps), func(t *testing.T) *player {
				p := newPlayer(t, r.kind, nil, r.hosts...)
				p.run(pasts[r.name]...)
				return p
			})
		})
	}
}

// report plays all steps in virtual time, and then runs a subtest for each scenario.
func report(t *testing.T, recording string, steps []step, start func(*testing.T) *player) {
	var order []string
	found, allowed := map[string][]string{}, map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		for _, s := range steps {
			if len(order) == 0 || s.Scenario != order[len(order)-1] {
				order = append(order, s.Scenario)
				if p.scenario != nil {
					p.scenario(p, s)
				}
			}
			found[s.String()] = p.play(s)
		}
	})
	for _, d := range differences {
		for _, n := range d.steps {
			if s := (step{Scenario: d.scenario, Step: n}); slices.Contains(strings.Fields(d.recordings), recording) {
				allowed[s.String()] = d.reason
				if _, ok := found[s.String()]; !ok {
					t.Errorf("%s is in the table of differences, but not in the recording", s)
				}
			}
		}
	}
	for _, scenario := range order {
		t.Run(scenario, func(t *testing.T) {
			for _, s := range steps {
				diff, reason := found[s.String()], allowed[s.String()]
				if s.Scenario == scenario && (len(diff) > 0) != (reason != "") {
					t.Errorf("%s %.300s\n\tallowed: %q\n\t%s", s, s.Send, reason, strings.Join(diff, "\n\t"))
				}
			}
		})
	}
}

type malformed struct {
	Case    string
	Bytes   string
	Replies []struct {
		Opcode     wire.OpCode
		ResponseTo int32
		Flags      uint32
		Doc        json.RawMessage
	}
	Rest   string
	Closed bool
}

// TestMalformed sends malformed and unusual messages, each on its own connection, in order, because some depend on
// earlier ones.
func TestMalformed(t *testing.T) {
	t.Run("4.9", func(t *testing.T) { playMalformed(t, "malformed.jsonl", "4.9") })
	t.Run("5.0", func(t *testing.T) { playMalformed(t, "5.0/malformed.jsonl", "5.0") })
}

func playMalformed(t *testing.T, file, version string) {
	cases := lines[malformed](t, file, 55)
	synctest.Test(t, func(t *testing.T) {
		p := setup{version: version, began: 1795360000, kind: server.Standalone}.start(t, "localhost:27400")
		for _, m := range cases {
			if m.Case == "OP_QUERY of a collection" || m.Case == "OP_INSERT" {
				continue // no driver sends these to supported versions
			}
			c := connect(t, p.servers[0])
			message, err := hex.DecodeString(m.Bytes)
			testkit.Check(t, err)
			c.send(message)
			for _, want := range m.Replies {
				got, err := c.receive()
				testkit.Check(t, err)
				if got.opcode != want.Opcode || got.to != want.ResponseTo || got.flags != want.Flags {
					t.Errorf("%s: got %+v, want %+v", m.Case, got, want)
				}
				doc := bson.D{{Key: "note", Value: "compressed reply"}} // as in the recording
				if got.doc != nil {
					err = bson.Unmarshal(got.doc, &doc)
				}
				for _, diff := range p.compare(step{Send: json.RawMessage(`{"x": 1}`)}, doc,
					testkit.Extended[bson.D](t, want.Doc)) {
					t.Errorf("%s: %s, %v", m.Case, diff, err)
				}
			}
			synctest.Wait()
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			rest, err := io.ReadAll(c.in)
			if got := hex.EncodeToString(rest); got != m.Rest || (err == nil) != m.Closed {
				t.Errorf("%s: rest: got %q, %v, want %q, closed %v", m.Case, got, err, m.Rest, m.Closed)
			}
			p.run(`{"ping": 1, "$db": "admin"}`) // other connections are not affected
		}
	})
}

// TestWrites replays writes, fail points and invalid commands on a replica set of three, with one connection per
// server.
func TestWrites(t *testing.T) {
	steps := lines[step](t, "writes.jsonl", 1355)
	for i := range steps {
		steps[i].Connection = steps[i].Server
	}
	report(t, "writes", steps, func(t *testing.T) *player {
		// Server 0 was the primary of the second term, server 2 that of the third.
		p := newPlayer(t, server.ReplicaSet, nil, "localhost:27118", "localhost:27117", "localhost:27119")
		p.run(`{"replSetStepDown": 1, "force": true, "$db": "admin"}`)
		delete(p.conns, own) // connect to the new primary
		p.servers[0], p.servers[1] = p.servers[1], p.servers[0]
		p.scenario = prepare
		return p
	})
}

// prepare executes steps that are missing in the recording: each scenario begins with three documents. If its first
// step is 4, they were deleted.
func prepare(p *player, first step) {
	const none = `{"delete": "c", "deletes": [{"q": {}, "limit": 0}], "$db": "ptw"}`
	p.run(none, `{"insert": "c", "documents": [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}, {"_id": 3, "x": 3}], "$db": "ptw"}`)
	if first.Step == 4 {
		p.run(none)
	}
}
