package runner

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
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

	encrypts := engine.Description{Features: []string{engine.FeatureEncryption, engine.FeatureLibmongocrypt + "1.9.0-rc1"}}
	encryptsSomehow := engine.Description{Features: []string{engine.FeatureEncryption}}

	for _, row := range []struct {
		reason      string
		requirement string
		on          deployment.Description
		engine      engine.Description
		want        string // "" if met
	}{
		{"a version is compared number by number", `[{minServerVersion: "4.0.9"}]`, replicaSet, engine.Description{}, ""},
		{"the minimum is inclusive", `[{minServerVersion: "4.0.10"}]`, replicaSet, engine.Description{}, ""},
		{"4.0.11 is later than 4.0.10", `[{minServerVersion: "4.0.11"}]`, replicaSet, engine.Description{}, "needs server 4.0.11 or later, the deployment has 4.0.10"},
		{"an absent patch is zero", `[{minServerVersion: "4.0"}]`, replicaSet, engine.Description{}, ""},
		{"the maximum is inclusive", `[{maxServerVersion: "4.0.10"}]`, replicaSet, engine.Description{}, ""},
		{"4.0 as a maximum is 4.0.0", `[{maxServerVersion: "4.0"}]`, replicaSet, engine.Description{}, "needs server 4.0 or earlier, the deployment has 4.0.10"},
		{"3.6 is no greater than 4.0", `[{maxServerVersion: "3.6"}]`, replicaSet, engine.Description{}, "needs server 3.6 or earlier, the deployment has 4.0.10"},
		{"9 is less than 10", `[{minServerVersion: "3.10"}]`, replicaSet, engine.Description{}, ""},

		{"a topology of the list", `[{topologies: [single, replicaset]}]`, replicaSet, engine.Description{}, ""},
		{"no topology of the list", `[{topologies: [single, sharded]}]`, replicaSet, engine.Description{}, "needs topology single or sharded, the deployment has replicaset"},
		{"sharded is any sharded cluster", `[{topologies: [sharded]}]`, sharded, engine.Description{}, ""},
		{"sharded implies sharded-replicaset", `[{topologies: [sharded]}]`, shardedSets, engine.Description{}, ""},
		{"sharded-replicaset is met by such shards", `[{topologies: [sharded-replicaset]}]`, shardedSets, engine.Description{}, ""},
		{"but not by others", `[{topologies: [sharded-replicaset]}]`, sharded, engine.Description{}, "needs topology sharded-replicaset, the deployment has sharded"},
		{"load-balanced is not sharded", `[{topologies: [sharded]}]`, balanced, engine.Description{}, "needs topology sharded, the deployment has load-balanced"},
		{"load-balanced is itself", `[{topologies: [load-balanced]}]`, balanced, engine.Description{}, ""},
		{"load-balanced is not sharded-replicaset", `[{topologies: [sharded-replicaset]}]`, balanced, engine.Description{}, "needs topology sharded-replicaset, the deployment has load-balanced"},

		{"serverless is required", `[{serverless: require}]`, replicaSet, engine.Description{}, "needs Atlas Serverless, the deployment has none"},
		{"serverless is there", `[{serverless: require}]`, atlas, engine.Description{}, ""},
		{"serverless is forbidden", `[{serverless: forbid}]`, atlas, engine.Description{}, "needs a deployment other than Atlas Serverless, the deployment has it"},
		{"serverless is forbidden and not there", `[{serverless: forbid}]`, replicaSet, engine.Description{}, ""},
		{"serverless is allowed", `[{serverless: allow}]`, atlas, engine.Description{}, ""},

		{"authentication is required", `[{auth: true}]`, replicaSet, engine.Description{}, "needs authentication enabled, the deployment has authentication disabled"},
		{"authentication is there", `[{auth: true}]`, secured, engine.Description{}, ""},
		{"authentication is in the way", `[{auth: false}]`, secured, engine.Description{}, "needs authentication disabled, the deployment has authentication enabled"},
		{"a mechanism whatever the case", `[{authMechanism: scram-sha-256}]`, replicaSet, engine.Description{}, ""},
		{"a mechanism that is not there", `[{authMechanism: MONGODB-OIDC}]`, replicaSet, engine.Description{}, "needs authentication mechanism MONGODB-OIDC, the deployment has SCRAM-SHA-256"},

		{"a parameter is compared flexibly", `[{serverParameters: {failPointX: 3.0}}]`, replicaSet, engine.Description{}, ""},
		{"but exactly", `[{serverParameters: {half: 1}}]`, replicaSet, engine.Description{}, "needs server parameter half=1, the deployment has 1.5"},
		{"a missing parameter is not satisfied", `[{serverParameters: {nothingOfTheKind: false}}]`, replicaSet, engine.Description{},
			"needs server parameter nothingOfTheKind=false, the deployment has no such parameter"},
		{"nor is any where none can be read", `[{serverParameters: {enableTestCommands: 1}}]`, mute, engine.Description{},
			"needs server parameter enableTestCommands=1, the deployment has no such parameter"},
		{"every parameter counts", `[{serverParameters: {failPointX: 3, half: 2}}]`, replicaSet, engine.Description{}, "needs server parameter half=2, the deployment has 1.5"},

		{"encryption needs an engine", `[{csfle: true}]`, recent, engine.Description{}, "needs client-side field level encryption, the deployment has server 4.2, and the engine no encryption"},
		{"encryption needs server 4.2", `[{csfle: true}]`, replicaSet, encrypts, "needs client-side field level encryption, the deployment has server 4.0.10, and the engine libmongocrypt 1.9"},
		{"encryption is there", `[{csfle: true}]`, recent, encrypts, ""},
		{"encryption is in the way", `[{csfle: false}]`, recent, encryptsSomehow, "needs no client-side field level encryption, the deployment has server 4.2, and the engine encryption of unknown version"},
		{"libmongocrypt is new enough", `[{csfle: {minLibmongocryptVersion: "1.9.0"}}]`, recent, encrypts, ""},
		{"libmongocrypt is too old", `[{csfle: {minLibmongocryptVersion: "1.10.0"}}]`, recent, encrypts, "needs libmongocrypt 1.10.0 or later, the deployment has an engine with libmongocrypt 1.9"},
		{"libmongocrypt of unknown version", `[{csfle: {minLibmongocryptVersion: "1.0.0"}}]`, recent, encryptsSomehow, "needs libmongocrypt 1.0.0 or later, the deployment has an engine with encryption of unknown version"},

		{"one of several is enough", `[{minServerVersion: "5.0"}, {maxServerVersion: "4.1"}]`, replicaSet, engine.Description{}, ""},
		{"one has to be met as a whole", `[{minServerVersion: "4.0", topologies: [single]}, {minServerVersion: "5.0", topologies: [replicaset]}]`, replicaSet, engine.Description{},
			"needs topology single, the deployment has replicaset; or needs server 5.0 or later, the deployment has 4.0.10"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s, err := specs.Parse("suite.yml", []byte("description: d\nschemaVersion: '1.28'\nrunOnRequirements: "+row.requirement+"\ntests: [{description: t, operations: []}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got := unmet(s.Requirements, world{deployment: row.on, engine: row.engine}); got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
	if unmet(nil, world{}) != "" {
		t.Error("no requirements are not met")
	}
}

// Every demand of a requirement has a row, so that none goes unnoticed.
func TestEveryDemandHasACheck(t *testing.T) {
	have := make(map[string]bool)
	for _, c := range requirementChecks {
		have[c.demand] = true
	}
	for _, demand := range []string{"minServerVersion", "maxServerVersion", "topologies", "serverless", "serverParameters", "auth", "authMechanism", "csfle"} {
		if !have[demand] {
			t.Errorf("nothing checks %s", demand)
		}
	}
}

func TestParseKnownFailing(t *testing.T) {
	list, err := ParseKnownFailing("k.txt", strings.NewReader("\n# comment\n  a.yml: x# y$  # DRIVERS-1 # really\n"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if k := list[0]; k.Pattern.String() != "a.yml: x# y$" || k.Reason != "DRIVERS-1 # really" || k.Position != (source.Position{File: "k.txt", Line: 3, Column: 1}) {
		t.Errorf("%+v", k)
	}
	for _, row := range []struct{ text, want string }{
		{"pattern", "k.txt:1:1: a known failure needs a reason: pattern # reason"},
		{"pattern #", "k.txt:1:1: a known failure needs a reason: pattern # reason"},
		{"# only a comment\n(# reason", "k.txt:2:1: a known failure needs a reason: pattern # reason"},
		{"( # reason", "k.txt:1:1: error parsing regexp: missing closing ): `(`"},
	} {
		if _, err := ParseKnownFailing("k.txt", strings.NewReader(row.text)); err == nil || err.Error() != row.want {
			t.Errorf("%q gives %v, want %s", row.text, err, row.want)
		}
	}
}

func FuzzParseKnownFailing(f *testing.F) {
	f.Add("pattern # reason")
	f.Add("a# b # c\n\n# d")
	f.Add("(")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseKnownFailing("k", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, k := range list {
			if k.Reason == "" || k.Pattern == nil || k.Position.Line < 1 {
				t.Errorf("%q gives %+v", text, k)
			}
		}
	})
}
