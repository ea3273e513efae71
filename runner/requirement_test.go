package runner

import (
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
	sharded := with(func(w *world) { w.deployment.Topology = deployment.Sharded })
	shardedSets := with(func(w *world) { w.deployment.Topology, w.deployment.ReplicaSetShards = deployment.Sharded, true })
	balanced := with(func(w *world) { w.deployment.Topology, w.deployment.ReplicaSetShards = deployment.LoadBalanced, true })
	secured := with(func(w *world) { w.deployment.Auth = true })
	atlas := with(func(w *world) { w.deployment.Serverless = true })
	mute := with(func(w *world) { w.deployment.Parameters = nil })
	recent := with(func(w *world) { w.deployment.Version = [3]int{4, 2, 0} })
	features := func(w world, names ...string) world { w.engine = engine.Description{Features: names}; return w }
	encrypts := features(recent, engine.FeatureEncryption, engine.FeatureLibmongocrypt+"1.9.0-rc1")
	somehow := features(recent, engine.FeatureEncryption)
	early := features(set, encrypts.engine.Features...)

	const encryption, mechanism = "client-side field level encryption", "authentication mechanism "
	for _, r := range []struct {
		reason     string
		on         world
		met, unmet string // requirements, "" for none
		needs, has string // why the second is not met
	}{
		{"versions are compared number by number", set, `minServerVersion: "4.0.9"`, `minServerVersion: "4.0.11"`, "server 4.0.11 or later", "4.0.10"},
		{"the minimum is inclusive", set, `minServerVersion: "4.0.10"`, `minServerVersion: "4.1"`, "server 4.1 or later", "4.0.10"},
		{"9 is less than 10", set, `minServerVersion: "3.10"`, `minServerVersion: "5.0"`, "server 5.0 or later", "4.0.10"},
		{"an absent patch is zero", set, `minServerVersion: "4.0"`, `maxServerVersion: "4.0"`, "server 4.0 or earlier", "4.0.10"},
		{"the maximum is inclusive", set, `maxServerVersion: "4.0.10"`, `maxServerVersion: "3.6"`, "server 3.6 or earlier", "4.0.10"},
		{"a topology of the list", set, `topologies: [single, replicaset]`, `topologies: [single, sharded]`, "topology single or sharded", "replicaset"},
		{"sharded is any sharded cluster", sharded, `topologies: [sharded]`, `topologies: [sharded-replicaset]`, "topology sharded-replicaset", "sharded"},
		{"sharded implies sharded-replicaset", shardedSets, `topologies: [sharded]`, "", "", ""},
		{"shards are replica sets", shardedSets, `topologies: [sharded-replicaset]`, `topologies: [single]`,
			"topology single", "sharded (shards are replica sets)"},
		{"load-balanced is not sharded", balanced, `topologies: [load-balanced]`, `topologies: [sharded]`, "topology sharded", "load-balanced"},
		{"nor sharded-replicaset", balanced, "", `topologies: [sharded-replicaset]`, "topology sharded-replicaset", "load-balanced"},
		{"serverless", atlas, `serverless: require`, `serverless: forbid`, "a deployment other than Atlas Serverless", "it"},
		{"serverless may be absent", set, `serverless: forbid`, `serverless: require`, "Atlas Serverless", "none"},
		{"serverless is allowed", atlas, `serverless: allow`, "", "", ""},
		{"no authentication", set, `auth: false`, `auth: true`, "authentication enabled", "authentication disabled"},
		{"authentication", secured, `auth: true`, `auth: false`, "authentication disabled", "authentication enabled"},
		{"a mechanism whatever the case", set, `authMechanism: scram-sha-256`, `authMechanism: MONGODB-OIDC`, mechanism + "MONGODB-OIDC", "SCRAM-SHA-256"},
		{"a parameter is compared flexibly, but not approximately", set, `serverParameters: {failPointX: 3.0}`, `serverParameters: {half: 1}`,
			"server parameter half=1", "1.5"},
		{"a missing parameter", set, "", `serverParameters: {none: false}`, "server parameter none=false", "no such parameter"},
		{"no parameter can be read", mute, "", `serverParameters: {half: 1}`, "server parameter half=1", "no such parameter"},
		{"every parameter counts", set, "", `serverParameters: {failPointX: 3, half: 2}`, "server parameter half=2", "1.5"},
		{"encryption needs an engine", recent, `csfle: false`, `csfle: true`, encryption, "server 4.2, and the engine no encryption"},
		{"encryption needs server 4.2", early, `csfle: false`, `csfle: true`, encryption, "server 4.0.10, and the engine libmongocrypt 1.9"},
		{"encryption", somehow, `csfle: true`, `csfle: false`, "no " + encryption, "server 4.2, and the engine encryption of unknown version"},
		{"the version of libmongocrypt", encrypts, `csfle: {minLibmongocryptVersion: "1.9.0"}`, `csfle: {minLibmongocryptVersion: "1.10.0"}`,
			"libmongocrypt 1.10.0 or later", "an engine with libmongocrypt 1.9"},
		{"libmongocrypt of unknown version", somehow, "", `csfle: {minLibmongocryptVersion: "1.0.0"}`,
			"libmongocrypt 1.0.0 or later", "an engine with encryption of unknown version"},
		{"one of several is enough, and is met as a whole", set, `minServerVersion: "5.0"}, {maxServerVersion: "4.1"`,
			`minServerVersion: "4.0", topologies: [single]}, {minServerVersion: "5.0", topologies: [replicaset]`,
			"topology single", "replicaset; or needs server 5.0 or later, the deployment has 4.0.10"},
	} {
		for requirement, want := range map[string]string{r.met: "", r.unmet: "needs " + r.needs + ", the deployment has " + r.has} {
			if requirement != "" {
				got, _ := unmet(oneTest(t, "runOnRequirements: [{"+requirement+"}], operations: []").Tests[0].Requirements, r.on)
				testkit.Equal(t, r.reason, got, want)
			}
		}
	}
	if why, lacks := unmet(nil, world{}); why != "" || lacks != 0 {
		t.Error("a test without requirements lacks something")
	}
}
