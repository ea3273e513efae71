package runner

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/result"
)

// A server continues a command whose connection was closed by a fail point or a client: it retries a failed batch of
// inserts document by document. If the fail point is disabled too early, it writes the rest; if the outcome is read
// too early, later writes are missing.

// settleLimit bounds the wait for such commands.
const settleLimit = 5 * time.Second

// unanswered returns the sessions of commands without a reply by address. Some
// drivers do not publish the end of a canceled command.
func unanswered(log []result.Event) map[string][]bson.RawValue {
	open := make(map[int64]result.Event) // by request
	for _, e := range log {
		switch f := e.Failure; {
		case e.Type == result.CommandStarted:
			open[e.RequestID] = e
		case e.Type == result.CommandSucceeded, e.Type == result.CommandFailed &&
			(f == nil || !f.Client || f.Response != nil):
			delete(open, e.RequestID)
		}
	}
	out := make(map[string][]bson.RawValue)
	for _, e := range open {
		if id := e.Body.Lookup("lsid", "id"); !id.IsZero() && !slices.ContainsFunc(out[e.Address], id.Equal) {
			out[e.Address] = append(out[e.Address], id)
		}
	}
	return out
}

// settle waits until the servers have completed all commands of the test. It sends nothing if all have replies.
func (t *testRun) settle(ctx context.Context) {
	sessions := make(map[string][]bson.RawValue)
	t.mu.Lock()
	logs := maps.Clone(t.logs)
	t.mu.Unlock()
	for _, client := range t.entities.Of(entities.Client) {
		for address, ids := range unanswered(logs[client]) {
			sessions[address] = append(sessions[address], ids...)
		}
	}
	if len(sessions) == 0 {
		return
	}
	ctx, cancel := limited(ctx, settleLimit, "the wait for commands without an answer")
	defer cancel()
	for _, address := range slices.Sorted(maps.Keys(sessions)) {
		for wait := time.Millisecond; t.site.busy(ctx, address, sessions[address]); wait = min(2*wait, 50*time.Millisecond) {
			if sleep(ctx, wait) != nil {
				return
			}
		}
	}
}

// busy reports whether a server executes a command of one of the sessions. A mongos reports its own operations and the
// operations of the shards. A server that returns an error is not busy.
func (s *site) busy(ctx context.Context, address string, sessions []bson.RawValue) bool {
	if s.about.Topology == deployment.LoadBalanced {
		address = defaultServer // any mongos
	}
	options := []bson.D{{{Key: "allUsers", Value: true}}}
	if s.sharded() {
		options = append([]bson.D{{{Key: "allUsers", Value: true}, {Key: "localOps", Value: true}}}, options...)
	}
	for _, o := range options {
		command := bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: bson.A{
			bson.D{{Key: "$currentOp", Value: o}},
			bson.D{{Key: "$match", Value: bson.D{{Key: "active", Value: true},
				{Key: "lsid.id", Value: bson.D{{Key: "$in", Value: sessions}}}}}},
			bson.D{{Key: "$limit", Value: 1}},
		}}, {Key: "cursor", Value: bson.D{}}}
		if found, err := s.commands.list(ctx, address, "admin", command); err != nil || len(found) > 0 {
			return err == nil
		}
	}
	return false
}
