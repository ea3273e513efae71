package local

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// drawn writes a plan down: waves by lines, then the sets.
func drawn(t *testing.T, p Plan) string {
	var lines []string
	seen := make(map[string]bool)
	for _, wave := range p.Waves {
		var names []string
		for _, process := range wave {
			if seen[process.Name] {
				t.Errorf("two processes have the name %s, and its files", process.Name)
			}
			seen[process.Name] = true
			name := process.Name
			if process.Set != "" {
				name += "@" + process.Set
			}
			if process.Balanced {
				name += "+lb"
			}
			names = append(names, name)
		}
		lines = append(lines, strings.Join(names, " "))
	}
	for _, s := range p.Sets {
		kind := map[[2]bool]string{{true, false}: " config", {false, true}: " shard"}[[2]bool{s.Config, s.Shard}]
		lines = append(lines, "set "+s.Name+kind)
	}
	return strings.Join(lines, "\n")
}

func TestPlan(t *testing.T) {
	for _, r := range []struct {
		reason  string
		shape   Shape
		version Version
		want    string // of the plan, or of the error after "error: "
	}{
		{"one process", Shape{}, Version{4, 2}, "mongod"},
		{"three members by default, started together", Shape{Topology: ReplicaSet}, Version{4, 2},
			"rs0-0@rs0 rs0-1@rs0 rs0-2@rs0\nset rs0"},
		{"as many members as asked for", Shape{Topology: ReplicaSet, Members: 1}, Version{8, 0}, "rs0-0@rs0\nset rs0"},
		{"a mongos needs the config servers, and the second one knows the shards from its start", Shape{Topology: Sharded}, Version{4, 2},
			"csrs-0@csrs shard0-0@shard0\nmongos-0\nmongos-1\nset csrs config\nset shard0 shard"},
		{"one mongos makes no third wave", Shape{Topology: Sharded, Mongoses: 1}, Version{8, 2},
			"csrs-0@csrs shard0-0@shard0\nmongos-0\nset csrs config\nset shard0 shard"},
		{"shards of several members", Shape{Topology: Sharded, Shards: 2, ShardMembers: 2, Mongoses: 3}, Version{7, 0},
			"csrs-0@csrs shard0-0@shard0 shard0-1@shard0 shard1-0@shard1 shard1-1@shard1\nmongos-0\nmongos-1 mongos-2\n" +
				"set csrs config\nset shard0 shard\nset shard1 shard"},
		{"mongoses behind a load balancer", Shape{Topology: LoadBalanced}, Version{6, 0},
			"csrs-0@csrs shard0-0@shard0\nmongos-0+lb\nmongos-1+lb\nset csrs config\nset shard0 shard"},
		{"the first version that has it", Shape{Topology: LoadBalanced, Mongoses: 1}, Version{5, 0, 7},
			"csrs-0@csrs shard0-0@shard0\nmongos-0+lb\nset csrs config\nset shard0 shard"},
		{"not the version before", Shape{Topology: LoadBalanced}, Version{5, 0, 6}, "error: version 5.0.6 has no load balancing, which came with 5.0.7"},
		{"more members than a set can have", Shape{Topology: ReplicaSet, Members: 51}, Version{8, 0}, "error: a replica set has 1 to 50 members"},
		{"less than nothing", Shape{Topology: Sharded, Mongoses: -1}, Version{8, 0}, "error: a sharded cluster has at least one shard and one mongos"},
		{"an unknown topology", Shape{Topology: 9}, Version{8, 0}, "error: there is no topology 9"},
	} {
		p, err := NewPlan(r.shape, r.version)
		got := drawn(t, p)
		if err != nil {
			got = "error: " + err.Error()
		}
		testkit.Equal(t, r.reason, got, r.want)
	}
}

func TestArgv(t *testing.T) {
	const common = "--port 7 --bind_ip 127.0.0.1 --nounixsocket --setParameter enableTestCommands=1 --setParameter diagnosticDataCollectionEnabled=false "
	const mongod = common + "--dbpath /d --wiredTigerCacheSizeGB 0.25"
	const member = mongod + " --replSet s --oplogSize 128"
	const patient = " --setParameter maxTransactionLockRequestTimeoutMillis=25"
	place := Place{Port: 7, BalancerPort: 8, Data: "/d", ConfigDB: "config/h:1"}
	secure := place
	secure.KeyFile, secure.Certificate, secure.CA = "/k", "/c", "/a"
	for _, r := range []struct {
		reason  string
		process Process
		version Version
		place   Place
		want    string
	}{
		{"a standalone is in no set", Process{Role: RoleStandalone}, Version{4, 2}, place, mongod},
		{"members are in a set", Process{Role: RoleMember, Set: "s"}, Version{8, 2}, place, member + patient},
		{"config servers", Process{Role: RoleConfig, Set: "s"}, Version{4, 4}, place, member + " --configsvr --setParameter periodicNoopIntervalSecs=1"},
		{"shards", Process{Role: RoleShard, Set: "s"}, Version{4, 4}, place, member + patient + " --shardsvr --setParameter periodicNoopIntervalSecs=1"},
		{"a mongos has no data", Process{Role: RoleMongos}, Version{4, 2}, place, common + "--configdb config/h:1"},
		{"a mongos behind a balancer", Process{Role: RoleMongos, Balanced: true}, Version{5, 0, 7}, place,
			common + "--configdb config/h:1 --setParameter featureFlagLoadBalancer=true --setParameter loadBalancerPort=8"},
		{"one that would not know the switch any more", Process{Role: RoleMongos, Balanced: true}, Version{6, 1}, place,
			common + "--configdb config/h:1 --setParameter loadBalancerPort=8"},
		{"an older one would not know the option", Process{Role: RoleMongos, Balanced: true}, Version{5, 0}, place, common + "--configdb config/h:1"},
		{"access control and TLS", Process{Role: RoleMongos}, Version{8, 0}, secure,
			common + "--configdb config/h:1 --keyFile /k --tlsMode requireTLS --tlsCertificateKeyFile /c --tlsCAFile /a --tlsAllowConnectionsWithoutCertificates"},
	} {
		testkit.Equal(t, r.reason, strings.Join(Argv(r.process, r.version, r.place), " "), r.want)
	}
}

func TestInitiation(t *testing.T) {
	nine := strings.Fields("h1 h2 h3 h4 h5 h6 h7 h8 h9")
	for _, r := range []struct {
		reason string
		set    Set
		hosts  []string
		want   string // in Extended JSON, a part
	}{
		{"members are numbered", Set{Name: "rs0"}, nine[:2], `{"_id":"rs0","members":[{"_id":0,"host":"h1"},{"_id":1,"host":"h2"}]}`},
		{"config servers say so", Set{Name: "c", Config: true}, nine[:1], `{"_id":"c","members":[{"_id":0,"host":"h1"}],"configsvr":true}`},
		{"the eighth member cannot vote any more", Set{Name: "rs0"}, nine, `{"_id":6,"host":"h7"},{"_id":7,"host":"h8","votes":0,"priority":0},`},
	} {
		got, err := bson.MarshalExtJSON(initiation(r.set, r.hosts), false, false)
		testkit.Check(t, err)
		testkit.Says(t, string(got), r.want)
	}
	for states, want := range map[*[]state]string{
		{primary}:                       "<nil>",
		{secondary, primary, secondary}: "<nil>",
		{secondary, secondary}:          "0 primaries, 2 secondaries, 0 that are neither",
		{primary, starting}:             "1 primaries, 0 secondaries, 1 that are neither",
		{primary, primary, secondary}:   "2 primaries, 1 secondaries, 0 that are neither",
	} {
		testkit.Equal(t, "what the set lacks", lacks(*states), want)
	}
}

func TestParseVersion(t *testing.T) {
	for out, want := range map[string]string{
		"db version v4.2.24\ngit version: 5e4ec1d24431\nOpenSSL version: OpenSSL 1.1.1\n":                       "4.2.24",
		"db version v8.0.4\nBuild Info: {\n    \"version\": \"8.0.4\",\n    \"openSSLVersion\": \"3.0.2\"\n}\n": "8.0.4",
		"db version v8.2.0-rc3-12-gabcdef":          "8.2.0",
		"WARNING: no locale\ndb version v6.0.1\r\n": "6.0.1",
		"ls (GNU coreutils) 9.1":                    "0.0.0",
		"OpenSSL version: OpenSSL 1.1.1":            "0.0.0",
	} {
		got, err := parseVersion(out)
		testkit.Equal(t, out, []any{got, err != nil}, []any{want, want == "0.0.0"})
	}
}

// script writes a program that a shell runs.
func script(t *testing.T, path, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
	testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testkit.Check(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for path, text := range map[string]string{
		"whole/bin/mongod":  "echo db version v8.0.4",
		"whole/bin/mongos":  "echo mongos version v8.0.4",
		"flat/mongod":       "echo db version v4.2.0",
		"suffix/mongod-7.0": "echo db version v7.0.1",
		"suffix/mongos-7.0": "echo mongos version v7.0.1",
		"mixed/mongod":      "echo db version v8.0.4",
		"mixed/mongos":      "echo mongos version v7.0.1",
		"old/mongod":        "echo db version v4.0.28",
		"broken/mongod":     "echo mongod: error while loading shared libraries: libcrypto.so.1.1 >&2; exit 127",
		"silent/mongod":     "true",
		"empty/other":       "",
	} {
		script(t, at(path), text)
	}
	testkit.Check(t, os.WriteFile(at("plain"), nil, 0o644))
	t.Setenv("PATH", at("whole/bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, r := range []struct{ reason, where, want string }{ // or the errors
		{"a release", at("whole"), "{DIR/whole/bin/mongod DIR/whole/bin/mongos 8.0.4}"},
		{"the oldest version, a folder of programs without a mongos", at("flat"), "{DIR/flat/mongod  4.2.0}"},
		{"a program", at("whole/bin/mongod"), "{DIR/whole/bin/mongod DIR/whole/bin/mongos 8.0.4}"},
		{"one with a version in its name", at("suffix/mongod-7.0"), "{DIR/suffix/mongod-7.0 DIR/suffix/mongos-7.0 7.0.1}"},
		{"a name in $PATH", "mongod", "{DIR/whole/bin/mongod DIR/whole/bin/mongos 8.0.4}"},
		{"a name that is missing", "mongod-of-nobody", "neither a folder here nor a program on $PATH"},
		{"two versions", at("mixed"), "8.0.4, 7.0.1, cannot be made of both"},
		{"a version that is too old", at("old"), "4.0.28, 4.2 is the oldest"},
		{"a library that is missing", at("broken"), "exit status 127, libcrypto.so.1.1"},
		{"a program that says nothing", at("silent"), "does not tell a version, it said nothing"},
		{"a folder without it", at("empty"), "there is no mongod in the folder, empty/bin/mongod, empty/mongod"},
		{"a file that cannot be run", at("plain"), "not executable"},
		{"a folder that is missing", at("nowhere"), "there is no "},
	} {
		if got, err := Find(t.Context(), r.where); r.want[0] == '{' {
			testkit.Equal(t, r.reason, []any{got, err}, []any{strings.ReplaceAll(r.want, "DIR", dir), nil})
		} else {
			testkit.Fails(t, err, strings.Split(r.want, ", ")...)
		}
	}
	// A program that does not even tell its version is given up, with all that it
	// started.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Find(ctx, script(t, at("hangs/mongod"), "sleep 600 & wait"))
	testkit.Fails(t, err, "canceled")
}

func TestEnvironmentKeepsSecrets(t *testing.T) {
	t.Setenv("UTR_URI", "mongodb://u:"+testkit.Secret+"@h/")
	t.Setenv("UTR_PASSWORD", testkit.Secret)
	t.Setenv("HARMLESS", "kept")
	testkit.Says(t, strings.Join(environment(), "\n"), "HARMLESS=kept")
}
