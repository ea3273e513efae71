package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// create creates entities in order ("createEntities").
func (t *testRun) create(ctx context.Context, path string, list []specs.Entity) *fault {
	for i, e := range list {
		at := fmt.Sprintf("%s[%d].%s", path, i, e.Kind)
		if f := cmp.Or(t.createOne(ctx, at, e), ended(ctx, at, e.Position, "entity "+e.ID+" to open")); f != nil {
			return f
		}
	}
	return nil
}

func (t *testRun) createOne(ctx context.Context, path string, e specs.Entity) *fault {
	kind := e.Kind
	if kind == entities.Thread {
		if err := t.entities.Add(entities.Entity{ID: e.ID, Kind: kind, Value: new(entities.Queue)}); err != nil {
			return failf(path, e.Position, "%s", err)
		}
		return nil
	}
	_, keys := kind.Parent()
	parent := e.Value
	for _, key := range keys {
		parent = parent.Get(key)
	}
	err := t.entities.AddObject(kind, e.ID, parent.Text())
	if err != nil {
		return failf(path, e.Position, "%s", err)
	}
	request := engine.Entity{Kind: string(kind), ID: e.ID}
	value := e.Value
	var f *fault
	switch kind {
	case entities.Client:
		request.URI = t.uriFor(e)
		// The runner itself waits for the pools, to ignore their events.
		value = t.withServerAPI(t.withHeartbeat(e.ID, value).With("awaitMinPoolSizeMS", nil))
		t.mu.Lock()
		t.observations[e.ID], t.uris[e.ID] = &observation{client: value}, request.URI
		t.mu.Unlock()
	case entities.Session:
		request.ClusterTime = t.site.sessionTime()
		if value, err = t.withSnapshotTime(value); err != nil {
			return failf(path+".sessionOptions.snapshotTime", e.Position, "%s", err)
		}
	}
	if f = checkPlaceholders(path, value); f != nil {
		return f
	}
	if request.Options, err = value.Raw(); err != nil {
		return failf(path, e.Position, "%s", err)
	}
	_, err = guarded(ctx, "opening "+e.ID,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, t.engine.Open(ctx, request) })
	if err != nil {
		t.entities.Remove(e.ID)
		var call *callError
		var raised *result.Error // by the driver
		switch late := ended(ctx, path, e.Position, "entity "+e.ID+" to open"); {
		case late != nil && !errors.As(err, &call):
			return late
		case errors.As(err, &raised):
			refused := failf(path, e.Position, "%s %s could not be opened: %s", e.Kind, e.ID, raised.Message)
			return cmp.Or(unsupported(raised), refused)
		default:
			return breakf("%s %s could not be opened: %w", e.Kind, e.ID, err)
		}
	}
	if kind == entities.Client {
		return t.awaitPools(ctx, path, e)
	}
	return nil
}

// checkPlaceholders rejects entities with a $$placeholder, because utr cannot replace it.
func checkPlaceholders(path string, v *source.Value) *fault {
	for i, item := range v.Items {
		if f := checkPlaceholders(fmt.Sprintf("%s[%d]", path, i), item); f != nil {
			return f
		}
	}
	for _, f := range v.Fields {
		if f.Key == "$$placeholder" {
			return failf(path, v.Position, "no value is configured for this placeholder")
		}
		if f := checkPlaceholders(path+"."+f.Key, f.Value); f != nil {
			return f
		}
	}
	return nil
}

// uriFor returns the connection string of a client ("useMultipleMongoses").
func (t *testRun) uriFor(e specs.Entity) string {
	d, about := t.site.deployment, t.site.about
	direct := e.Value.Get("uriOptions").Get("directConnection")
	if direct != nil && direct.Bool && about.Topology != deployment.LoadBalanced && len(about.Hosts) > 0 {
		return d.DirectURI(about.Hosts[0]) // one seed, without replicaSet
	}
	multiple := e.Value.Get("useMultipleMongoses")
	switch {
	case multiple == nil:
	case !multiple.Bool && (t.site.sharded() || about.Topology == deployment.LoadBalanced):
		return d.SingleURI()
	}
	return d.URI()
}

// Heartbeats of clients that set fail points ("Executing a Test"): the minimum of
// the URI Options specification, and a shorter minHeartbeatFrequencyMS.
const (
	heartbeatFrequencyMS    = 500
	minHeartbeatFrequencyMS = 50
)

// withHeartbeat adds a short heartbeat interval to the options of a client that
// sets fail points and does not specify one, if the engine supports it.
func (t *testRun) withHeartbeat(id string, client *source.Value) *source.Value {
	uriOptions := client.Get("uriOptions")
	if !slices.Contains(t.run.about.Features, engine.FeatureReducedHeartbeats) || !setsFailPoints(t.test, id) ||
		uriOptions.Get("heartbeatFrequencyMS") != nil {
		return client
	}
	number := func(n int64) *source.Value { return &source.Value{Position: client.Position, Kind: source.Int, Int: n} }
	uriOptions = cmp.Or(uriOptions, &source.Value{Position: client.Position, Kind: source.Document})
	return client.With("uriOptions", uriOptions.With("heartbeatFrequencyMS", number(heartbeatFrequencyMS))).
		With("minHeartbeatFrequencyMS", number(minHeartbeatFrequencyMS))
}

// withServerAPI adds Config.ServerAPI to the options of a client without serverApi.
func (t *testRun) withServerAPI(client *source.Value) *source.Value {
	if t.run.cfg.ServerAPI == "" || client.Get("serverApi") != nil {
		return client
	}
	version := &source.Value{Position: client.Position, Kind: source.String, String: t.run.cfg.ServerAPI}
	api := &source.Value{Position: client.Position, Kind: source.Document}
	return client.With("serverApi", api.With("version", version))
}

// withSnapshotTime replaces the name in snapshotTime by the value of the entity ("getSnapshotTime").
func (t *testRun) withSnapshotTime(session *source.Value) (*source.Value, error) {
	options := session.Get("sessionOptions")
	name := options.Get("snapshotTime")
	if name == nil || name.Kind != source.String {
		return session, nil
	}
	saved, err := entities.Value[bson.RawValue](&t.entities, name.String, entities.SavedValue)
	if err != nil {
		return nil, err
	}
	value, err := source.ParseJSON(name.Position.File, []byte(matchers.ExtendedJSON(saved, true)))
	if err != nil {
		return nil, err
	}
	return session.With("sessionOptions", options.With("snapshotTime", value)), nil
}

// dataBearing lists the server types that have a connection pool (Server
// Discovery and Monitoring, "Data-bearing server type").
var dataBearing = map[string]bool{"Mongos": true, "RSPrimary": true, "RSSecondary": true, "Standalone": true,
	"LoadBalancer": true}

// awaitPools waits until the pools of a client are populated ("awaitMinPoolSizeMS"). Earlier events are not observed.
func (t *testRun) awaitPools(ctx context.Context, path string, e specs.Entity) *fault {
	limit, size := e.Value.Get("awaitMinPoolSizeMS"), e.Value.Get("uriOptions").Get("minPoolSize")
	connections, _ := size.Integer()
	if limit == nil || connections <= 0 {
		return nil
	}
	milliseconds, _ := limit.Integer()
	wait := time.Duration(milliseconds) * time.Millisecond
	ctx, cancel := limited(ctx, wait, "awaitMinPoolSizeMS")
	defer cancel()
	for after := int64(0); ; {
		log, err := t.logWaiting(ctx, e.ID, after, 50*time.Millisecond)
		waitingFor := plural.Of(int(connections), "connection") + " in each pool of " + e.ID
		if f := cmp.Or(ended(ctx, path, limit.Position, waitingFor), broken(err)); f != nil {
			return f
		}
		after = lastSequence(log)
		topology, f := t.topologyOf(ctx, path, limit.Position, e.ID)
		if f != nil {
			return f
		}
		if populated(topology, log, connections) {
			t.mu.Lock()
			t.observations[e.ID].after = after
			t.mu.Unlock()
			return nil
		}
	}
}

// populated reports whether all servers are known and all pools have a number of connections.
func populated(topology result.TopologyState, log []result.Event, size int64) bool {
	open := make(map[string]map[int64]bool)
	for _, e := range log {
		switch e.Type {
		case result.ConnectionReady:
			if open[e.Address] == nil {
				open[e.Address] = make(map[int64]bool)
			}
			open[e.Address][e.ConnectionID] = true
		case result.ConnectionClosed:
			delete(open[e.Address], e.ConnectionID)
		}
	}
	bearing := 0
	for _, s := range topology.Servers {
		switch {
		case s.Type == "Unknown" || s.Type == "PossiblePrimary":
			return false
		case dataBearing[s.Type] && int64(len(open[s.Address])) < size:
			return false
		case dataBearing[s.Type]:
			bearing++
		}
	}
	return bearing > 0
}
