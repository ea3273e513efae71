package runner

import (
	"context"
	"fmt"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func (t *testRun) topologyOf(ctx context.Context, path string, at source.Position, client string) (result.TopologyState, *fault) {
	outcome, f := t.ask(ctx, path, at, client, engine.OpTopology, nil)
	if f != nil {
		return result.TopologyState{}, f
	}
	if outcome.Err != nil {
		return result.TopologyState{}, failf(path, at, "the topology of %s: %s", client, outcome.Err.Message)
	}
	var state result.TopologyState
	doc, ok := outcome.Value.DocumentOK()
	if err := bson.Unmarshal(doc, &state); !ok || err != nil || state.Type == "" {
		return state, breakf("%s answered %s, which is not a topology description", engine.OpTopology, matchers.Extended(outcome.Value, false))
	}
	return state, nil
}

// recordTopology ("recordTopologyDescription").
func recordTopology(ctx context.Context, t *testRun, c call) *fault {
	state, f := t.topologyOf(ctx, c.path, c.op.Position, c.text("client"))
	if f != nil {
		return f
	}
	if err := t.entities.add(c.text("id"), entity{kind: operations.Topology, content: state}); err != nil {
		return failf(c.path+".arguments.id", c.value("id").Position, "%s", err)
	}
	return nil
}

// assertTopologyType ("assertTopologyType").
func assertTopologyType(_ context.Context, t *testRun, c call) *fault {
	state, err := contentOf[result.TopologyState](&t.entities, c.text("topologyDescription"), operations.Topology)
	switch {
	case err != nil:
		return c.failf("%s", err)
	case state.Type != c.text("topologyType"):
		return differ(c, c.value("topologyType"), source.Quote(state.Type), "the type of %s", c.text("topologyDescription"))
	}
	return nil
}

// primaryOf gives the address of the primary, "" if there is none.
func primaryOf(t result.TopologyState) string {
	for _, s := range t.Servers {
		if s.Type == "RSPrimary" {
			return s.Address
		}
	}
	return ""
}

// waitForPrimaryChange looks again after each event of the client
// ("waitForPrimaryChange").
func waitForPrimaryChange(ctx context.Context, t *testRun, c call) *fault {
	prior, err := contentOf[result.TopologyState](&t.entities, c.text("priorTopologyDescription"), operations.Topology)
	if err != nil {
		return c.failf("%s", err)
	}
	limit := patience
	if c.value("timeoutMS") != nil {
		limit = c.milliseconds("timeoutMS")
	}
	ctx, cancel := t.limited(ctx, limit, "waitForPrimaryChange")
	defer cancel()
	client, old := c.text("client"), primaryOf(prior)
	waitingFor := fmt.Sprintf("%s to discover another primary than %q", client, old)
	for {
		if f := ended(ctx, c.path, c.op.Position, waitingFor); f != nil {
			return f
		}
		log, err := t.log(ctx, client)
		if err != nil && ctx.Err() == nil {
			return &fault{broken: err}
		}
		now, f := t.topologyOf(ctx, c.path, c.op.Position, client)
		switch {
		case f != nil && ctx.Err() != nil:
			return ended(ctx, c.path, c.op.Position, waitingFor)
		case f != nil:
			return f
		case primaryOf(now) != "" && primaryOf(now) != old:
			return nil
		}
		// An engine's topology may change a moment before its event is there.
		t.whileWaiting(func() { _, _ = t.logWaiting(ctx, client, lastSequence(log), limit/20) })
	}
}
