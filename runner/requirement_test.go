package runner

import (
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestRequirements(t *testing.T) {
	parameters := mustRaw(bson.D{
		{Key: "enableTestCommands", Value: 1}, {Key: "failPointX", Value: int64(3)}, {Key: "half", Value: 1.5},
		{Key: "authenticationMechanisms", Value: bson.A{"SCRAM-SHA-256"}},
	})
	replicaSet := deployment.Description{
		Name: "replicaset 4.0", Topology: deployment.ReplicaSet, Version: [3]int{4, 0, 10},
		Parameters: parameters, AuthMechanisms: []string{"SCRAM-SHA-256"},
	}
	with := func(change func(*deployment.Description)) deployment.Description {
		d := replicaSet
		change(&d)
		return d
	}
	sharded := with(func(d *deployment.Description) { d.Topology = deployment.Sharded })
	shardedSets := with(func(d *deployment.Description) { d.Topology, d.ReplicaSetShards = deployment.Sharded, true })
	balanced := with(func(d *deployment.Description) { d.Topology, d.ReplicaSetShards = deployment.LoadBalanced, true })
	secured := with(func(d *deployment.Description) { d.Auth = true })
	atlas := with(func(d *deployment.Description) { d.Serverless = true })
	recent := with(func(d *deployment.Description) { d.Version = [3]int{4, 2, 0} })
	mute := with(func(d *deployment.Description) { d.Parameters = nil })

	var plain engine.Description // no encryption
	encrypts := engine.Description{Features: []string{engine.FeatureEncryption, engine.FeatureLibmongocrypt + "1.9.0-rc1"}}
	encryptsSomehow := engine.Description{Features: []string{engine.FeatureEncryption}}

	for _, row := range []struct {
		reason      string
		requirement string
		on          deployment.Description
		engine      engine.Description
		want        string // "" if met
	}{
		{"a version is compared number by number", `[{minServerVersion: "4.0.9"}]`, replicaSet, plain, ""},
		{"the minimum is inclusive", `[{minServerVersion: "4.0.10"}]`, replicaSet, plain, ""},
		{"4.0.11 is later than 4.0.10", `[{minServerVersion: "4.0.11"}]`, replicaSet, plain, "needs server 4.0.11 or later, the deployment has 4.0.10"},
		{"an absent patch is zero", `[{minServerVersion: "4.0"}]`, replicaSet, plain, ""},
		{"the maximum is inclusive", `[{maxServerVersion: "4.0.10"}]`, replicaSet, plain, ""},
		{"4.0 as a maximum is 4.0.0", `[{maxServerVersion: "4.0"}]`, replicaSet, plain, "needs server 4.0 or earlier, the deployment has 4.0.10"},
		{"3.6 is not greater than 4.0", `[{maxServerVersion: "3.6"}]`, replicaSet, plain, "needs server 3.6 or earlier, the deployment has 4.0.10"},
		{"9 is less than 10", `[{minServerVersion: "3.10"}]`, replicaSet, plain, ""},

		{"a topology of the list", `[{topologies: [single, replicaset]}]`, replicaSet, plain, ""},
		{"no topology of the list", `[{topologies: [single, sharded]}]`, replicaSet, plain, "needs topology single or sharded, the deployment has replicaset"},
		{"sharded is any sharded cluster", `[{topologies: [sharded]}]`, sharded, plain, ""},
		{"sharded implies sharded-replicaset", `[{topologies: [sharded]}]`, shardedSets, plain, ""},
		{"sharded-replicaset is met by such shards", `[{topologies: [sharded-replicaset]}]`, shardedSets, plain, ""},
		{"but not by others", `[{topologies: [sharded-replicaset]}]`, sharded, plain, "needs topology sharded-replicaset, the deployment has sharded"},
		{"load-balanced is not sharded", `[{topologies: [sharded]}]`, balanced, plain, "needs topology sharded, the deployment has load-balanced"},
		{"load-balanced is itself", `[{topologies: [load-balanced]}]`, balanced, plain, ""},
		{"load-balanced is not sharded-replicaset", `[{topologies: [sharded-replicaset]}]`, balanced, plain, "needs topology sharded-replicaset, the deployment has load-balanced"},

		{"serverless is required", `[{serverless: require}]`, replicaSet, plain, "needs Atlas Serverless, the deployment has none"},
		{"serverless is there", `[{serverless: require}]`, atlas, plain, ""},
		{"serverless is forbidden", `[{serverless: forbid}]`, atlas, plain, "needs a deployment other than Atlas Serverless, the deployment has it"},
		{"serverless is forbidden and not there", `[{serverless: forbid}]`, replicaSet, plain, ""},
		{"serverless is allowed", `[{serverless: allow}]`, atlas, plain, ""},

		{"authentication is required", `[{auth: true}]`, replicaSet, plain, "needs authentication enabled, the deployment has authentication disabled"},
		{"authentication is there", `[{auth: true}]`, secured, plain, ""},
		{"authentication is in the way", `[{auth: false}]`, secured, plain, "needs authentication disabled, the deployment has authentication enabled"},
		{"a mechanism whatever the case", `[{authMechanism: scram-sha-256}]`, replicaSet, plain, ""},
		{"a mechanism that is not there", `[{authMechanism: MONGODB-OIDC}]`, replicaSet, plain, "needs authentication mechanism MONGODB-OIDC, the deployment has SCRAM-SHA-256"},

		{"a parameter is compared flexibly", `[{serverParameters: {failPointX: 3.0}}]`, replicaSet, plain, ""},
		{"but not approximately", `[{serverParameters: {half: 1}}]`, replicaSet, plain, "needs server parameter half=1, the deployment has 1.5"},
		{"a missing parameter is not satisfied", `[{serverParameters: {nothingOfTheKind: false}}]`, replicaSet, engine.Description{},
			"needs server parameter nothingOfTheKind=false, the deployment has no such parameter"},
		{"nor is any where none can be read", `[{serverParameters: {enableTestCommands: 1}}]`, mute, engine.Description{},
			"needs server parameter enableTestCommands=1, the deployment has no such parameter"},
		{"every parameter counts", `[{serverParameters: {failPointX: 3, half: 2}}]`, replicaSet, plain, "needs server parameter half=2, the deployment has 1.5"},

		{"encryption needs an engine", `[{csfle: true}]`, recent, plain, "needs client-side field level encryption, the deployment has server 4.2, and the engine no encryption"},
		{"encryption needs server 4.2", `[{csfle: true}]`, replicaSet, encrypts, "needs client-side field level encryption, the deployment has server 4.0.10, and the engine libmongocrypt 1.9"},
		{"encryption is there", `[{csfle: true}]`, recent, encrypts, ""},
		{"encryption is in the way", `[{csfle: false}]`, recent, encryptsSomehow, "needs no client-side field level encryption, the deployment has server 4.2, and the engine encryption of unknown version"},
		{"libmongocrypt is new enough", `[{csfle: {minLibmongocryptVersion: "1.9.0"}}]`, recent, encrypts, ""},
		{"libmongocrypt is too old", `[{csfle: {minLibmongocryptVersion: "1.10.0"}}]`, recent, encrypts, "needs libmongocrypt 1.10.0 or later, the deployment has an engine with libmongocrypt 1.9"},
		{"libmongocrypt of unknown version", `[{csfle: {minLibmongocryptVersion: "1.0.0"}}]`, recent, encryptsSomehow, "needs libmongocrypt 1.0.0 or later, the deployment has an engine with encryption of unknown version"},

		{"one of several is enough", `[{minServerVersion: "5.0"}, {maxServerVersion: "4.1"}]`, replicaSet, plain, ""},
		{"one has to be met as a whole", `[{minServerVersion: "4.0", topologies: [single]}, {minServerVersion: "5.0", topologies: [replicaset]}]`, replicaSet, engine.Description{},
			"needs topology single, the deployment has replicaset; or needs server 5.0 or later, the deployment has 4.0.10"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s := parse(t, "description: d\nschemaVersion: '1.28'\nrunOnRequirements: "+row.requirement+"\ntests: [{description: t, operations: []}]\n")
			if got, _ := unmet(s.Requirements, world{deployment: row.on, engine: row.engine}); got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
	if why, lacks := unmet(nil, world{}); why != "" || lacks != 0 {
		t.Error("no requirements are not met")
	}
}
