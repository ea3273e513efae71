package replay

import (
	"encoding/json"
	"testing"

	"github.com/unified-test-runner/utr/embedded/server"
)

// write is one line of the recording of writes: every connection goes to the primary, unless it
// names another server, and each reply is an OP_MSG.
type write struct {
	Scenario string
	Step     int
	Server   int
	Send     json.RawMessage
	Reply    json.RawMessage
	Closed   bool
}

// TestWrites replays what a replica set of three did with writes, fail points and wrong commands.
func TestWrites(t *testing.T) {
	var steps []step
	for _, w := range lines[write](t, "writes.jsonl", 1355) {
		s := step{Scenario: w.Scenario, Step: w.Step, Connection: w.Server, Server: w.Server, Send: w.Send, Closed: w.Closed}
		if w.Reply != nil {
			s.Reply = &reply{Opcode: "OP_MSG", Doc: w.Reply}
		}
		steps = append(steps, s)
	}
	report(t, "writes", steps, func(t *testing.T) *player {
		// Server 0 was the primary in the second term, and server 2 the one after it.
		p := newPlayer(t, server.ReplicaSet, nil, "localhost:27118", "localhost:27117", "localhost:27119")
		p.live(`{"replSetStepDown": 1, "force": true, "$db": "admin"}`)
		p.forget()
		p.servers[0], p.servers[1] = p.servers[1], p.servers[0]
		p.scenario = prepare
		return p
	})
}

// prepare does what the recording leaves out: a scenario begins with three documents, and where
// one more step of it is missing these were deleted.
func prepare(p *player, first step) {
	const none = `{"delete": "c", "deletes": [{"q": {}, "limit": 0}], "$db": "ptw"}`
	p.live(none, `{"insert": "c", "documents": [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}, {"_id": 3, "x": 3}], "$db": "ptw"}`)
	if first.Step == 4 {
		p.live(none)
	}
}
