package replay

import (
	"testing"

	"github.com/unified-test-runner/utr/embedded/server"
)

// TestWrites replays what a replica set of three did with writes, fail points and wrong commands.
// A server has one connection.
func TestWrites(t *testing.T) {
	steps := lines[step](t, "writes.jsonl", 1355)
	for i := range steps {
		steps[i].Connection = steps[i].Server
	}
	report(t, "writes", steps, func(t *testing.T) *player {
		// Server 0 was the primary in the second term, and server 2 the one after it.
		p := newPlayer(t, server.ReplicaSet, nil, "localhost:27118", "localhost:27117", "localhost:27119")
		p.live(`{"replSetStepDown": 1, "force": true, "$db": "admin"}`)
		delete(p.conns, own) // the next one is to the new primary
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
