package runner

import (
	"cmp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestRequirements(t *testing.T) {
	set := world{deployment: deployment.Description{
		Name: "replicaset 4.0", Topology: deployment.ReplicaSet, Version: [3]int{4, 0, 10}, AuthMechanisms: []string{"SCRAM-SHA-256"},
		Parameters: mustRaw(bson.D{{Key: "enableTestCommands", Value: 1}, {Key: "failPointX", Value: int64(3)}, {Key: "half", Value: 1.5}}),
	}}
	with := func(change func(*world)) world { w := set; change(&w); return w }
	recent := func(features ...string) world {
		return with(func(w *world) {
			w.deployment.Version, w.engine = [3]int{4, 2, 0}, engine.Description{Features: features}
		})
	}
	libmongocrypt := engine.FeatureLibmongocrypt + "1.9.0-rc1"
	worlds := map[string]world{
		"set":         set,
		"sharded":     with(func(w *world) { w.deployment.Topology = deployment.Sharded }),
		"shardedSets": with(func(w *world) { w.deployment.Topology, w.deployment.ReplicaSetShards = deployment.Sharded, true }),
		"balanced":    with(func(w *world) { w.deployment.Topology, w.deployment.ReplicaSetShards = deployment.LoadBalanced, true }),
		"secured":     with(func(w *world) { w.deployment.Auth = true }),
		"atlas":       with(func(w *world) { w.deployment.Serverless = true }),
		"mute":        with(func(w *world) { w.deployment.Parameters = nil }),
		"recent":      recent(),
		"encrypts":    recent(engine.FeatureEncryption, libmongocrypt),
		"somehow":     recent(engine.FeatureEncryption),
		"early":       with(func(w *world) { w.engine.Features = []string{engine.FeatureEncryption, libmongocrypt} }),
	}
	testkit.PlayCases(t, "testdata/cases/requirements.txt", func(t *testing.T, in string) string {
		on, list, _ := strings.Cut(in, ":")
		why, _ := unmet(oneTest(t, "runOnRequirements: ["+list+"], operations: []").Tests[0].Requirements, worlds[on])
		return cmp.Or(why, "met")
	})
}
