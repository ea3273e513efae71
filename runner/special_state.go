package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/result"
)

// querySession reads a property of the session of a call.
func querySession[T any](
	ctx context.Context, t *testRun, c call, name string, read func(bson.RawValue) (T, bool), what string,
) (out T, f *fault) {
	outcome, f := t.query(ctx, c.path, c.op.Position, c.text("session"), name, nil)
	if f == nil && outcome.Err != nil {
		f = c.failf("%s", outcome.Err.Message)
	}
	if f != nil {
		return out, f
	}
	out, ok := read(outcome.Value.RawValue)
	if !ok {
		f = breakf("%s answered %s, not %s", name, matchers.ExtendedJSON(outcome.Value.RawValue, false), what)
	}
	return out, f
}

func assertTransactionState(ctx context.Context, t *testRun, c call) *fault {
	rendered := func(v bson.RawValue) (string, bool) { return matchers.ExtendedJSON(v, false), true }
	state, f := querySession(ctx, t, c, engine.OpTransactionState, rendered, "")
	if f != nil {
		return f
	}
	return c.equal("state", state, "the transaction state of "+c.text("session"))
}

func assertPinned(ctx context.Context, t *testRun, c call) *fault {
	address, f := t.pinned(ctx, c)
	if f != nil {
		return f
	}
	session := c.text("session")
	return c.expect(address != "", session+" is pinned to "+address, session+" is not pinned to a mongos")
}

// pinned returns the address of the mongos that a session is pinned to, or "".
func (t *testRun) pinned(ctx context.Context, c call) (string, *fault) {
	address := func(v bson.RawValue) (string, bool) {
		address, ok := v.StringValueOK()
		return address, ok || v.Type == bson.TypeNull || v.Type == 0
	}
	return querySession(ctx, t, c, engine.OpPinnedServer, address, "an address or null")
}

func assertDirty(ctx context.Context, t *testRun, c call) *fault {
	dirty, f := querySession(ctx, t, c, engine.OpDirty, bson.RawValue.BooleanOK, "a boolean")
	if f != nil {
		return f
	}
	return c.expect(dirty, c.text("session")+" is marked dirty", c.text("session")+" is not marked dirty")
}

func (t *testRun) topologyOf(ctx context.Context, path string, at source.Position,
	client string) (result.TopologyState, *fault) {
	outcome, f := t.query(ctx, path, at, client, engine.OpTopology, nil)
	if f != nil {
		return result.TopologyState{}, f
	}
	if outcome.Err != nil {
		return result.TopologyState{}, failf(path, at, "the topology of %s: %s", client, outcome.Err.Message)
	}
	var state result.TopologyState
	doc, ok := outcome.Value.DocumentOK()
	if err := bson.Unmarshal(doc, &state); !ok || err != nil || state.Type == "" {
		return state, breakf("%s answered %s, not a topology description", engine.OpTopology,
			matchers.ExtendedJSON(outcome.Value.RawValue, false))
	}
	return state, nil
}

func recordTopology(ctx context.Context, t *testRun, c call) *fault {
	state, f := t.topologyOf(ctx, c.path, c.op.Position, c.text("client"))
	if f != nil {
		return f
	}
	if err := t.entities.Add(entities.Entity{ID: c.text("id"), Kind: entities.Topology, Value: state}); err != nil {
		return failf(c.path+".arguments.id", c.value("id").Position, "%s", err)
	}
	return nil
}

func assertTopologyType(_ context.Context, t *testRun, c call) *fault {
	state, err := entities.Value[result.TopologyState](&t.entities, c.text("topologyDescription"), entities.Topology)
	if err != nil {
		return c.failf("%s", err)
	}
	return c.equal("topologyType", source.Quote(state.Type), "the type of "+c.text("topologyDescription"))
}

func primaryOf(t result.TopologyState) string {
	for _, s := range t.Servers {
		if s.Type == "RSPrimary" {
			return s.Address
		}
	}
	return ""
}

// waitForPrimaryChange checks the topology after each event of the client ("waitForPrimaryChange").
func waitForPrimaryChange(ctx context.Context, t *testRun, c call) *fault {
	prior, err := entities.Value[result.TopologyState](&t.entities, c.text("priorTopologyDescription"), entities.Topology)
	if err != nil {
		return c.failf("%s", err)
	}
	limit := waitLimit
	if c.value("timeoutMS") != nil {
		limit = c.milliseconds("timeoutMS")
	}
	ctx, cancel := limited(ctx, limit, "the limit for waitForPrimaryChange")
	defer cancel()
	client, old := c.text("client"), primaryOf(prior)
	waitingFor := fmt.Sprintf("%s to discover a primary other than %q", client, old)
	for {
		log, err := t.log(ctx, client)
		now, f := t.topologyOf(ctx, c.path, c.op.Position, client)
		if f := cmp.Or(ended(ctx, c.path, c.op.Position, waitingFor), broken(err), f); f != nil {
			return f
		}
		if primary := primaryOf(now); primary != "" && primary != old {
			return nil
		}
		// The topology may change shortly before the event.
		t.whileWaiting(func() { _, _ = t.logWaiting(ctx, client, lastSequence(log), limit/20) })
	}
}

func assertCollection(ctx context.Context, t *testRun, c call) *fault {
	name := c.text("collectionName")
	return t.assertListed(ctx, c, "the collection "+c.text("databaseName")+"."+name, name, bson.D{
		{Key: "listCollections", Value: 1},
		{Key: "filter", Value: bson.D{{Key: "name", Value: name}}},
		{Key: "nameOnly", Value: true},
	})
}

func assertIndex(ctx context.Context, t *testRun, c call) *fault {
	collection, name := c.text("collectionName"), c.text("indexName")
	what := "the index " + name + " of " + c.text("databaseName") + "." + collection
	return t.assertListed(ctx, c, what, name, bson.D{{Key: "listIndexes", Value: collection}})
}

// assertListed asserts whether a command lists a document with a name. A missing collection has no indexes.
func (t *testRun) assertListed(ctx context.Context, c call, what, name string, command bson.D) *fault {
	listed, err := t.site.commands.list(ctx, defaultServer, c.text("databaseName"), command)
	if f := ended(ctx, c.path, c.op.Position, command[0].Key); f != nil {
		return f
	}
	if err != nil && !direct.Absent(err) {
		return breakf("%s: %w", c.op.Name, err)
	}
	exists := slices.ContainsFunc(listed, func(document bson.Raw) bool {
		n, _ := document.Lookup("name").StringValueOK()
		return n == name
	})
	return c.expect(exists, what+" exists", what+" does not exist")
}
