package local

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drawn writes a plan down: waves by lines, then the sets.
func drawn(p Plan) string {
	var lines []string
	for _, wave := range p.Waves {
		var names []string
		for _, process := range wave {
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
		line := "set " + s.Name
		if s.Config {
			line += " config"
		}
		if s.Shard {
			line += " shard"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestPlan(t *testing.T) {
	for _, row := range []struct {
		reason  string
		shape   Shape
		version Version
		want    string // of the plan, or of the error after "error: "
	}{
		{"one process", Shape{}, Version{4, 2}, "mongod"},
		{"three members by default, started together", Shape{Topology: ReplicaSet}, Version{4, 2},
			"rs0-0@rs0 rs0-1@rs0 rs0-2@rs0\nset rs0"},
		{"as many members as wanted", Shape{Topology: ReplicaSet, Members: 1}, Version{8, 0}, "rs0-0@rs0\nset rs0"},
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
		{"no version before", Shape{Topology: LoadBalanced}, Version{5, 0, 6}, "error: version 5.0.6 has no load balancing, which came with 5.0.7"},
		{"more members than a set can have", Shape{Topology: ReplicaSet, Members: 51}, Version{8, 0}, "error: a replica set has 1 to 50 members"},
		{"less than nothing", Shape{Topology: Sharded, Mongoses: -1}, Version{8, 0}, "error: a sharded cluster has at least one shard and one mongos"},
		{"a topology that there is not", Shape{Topology: 9}, Version{8, 0}, "error: there is no topology 9"},
	} {
		p, err := NewPlan(row.shape, row.version)
		got := drawn(p)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != row.want {
			t.Errorf("%s: got\n%s\nwant\n%s", row.reason, got, row.want)
		}
	}
}

// Each process of a plan has a name of its own: it names its files.
func TestPlanNamesDiffer(t *testing.T) {
	for topology := range LoadBalanced + 1 {
		p, err := NewPlan(Shape{Topology: topology, Members: 50, Shards: 5, ShardMembers: 5, Mongoses: 5}, Version{8, 0})
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for _, wave := range p.Waves {
			for _, process := range wave {
				if seen[process.Name] {
					t.Errorf("%s: %s is there twice", topology, process.Name)
				}
				seen[process.Name] = true
			}
		}
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
	for _, row := range []struct {
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
		got := strings.Join(Argv(row.process, row.version, row.place), " ")
		if d := cmp.Diff(row.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, d)
		}
	}
}

// Versions bound the options of the table on both sides.
func TestOptionVersions(t *testing.T) {
	o := option{from: Version{4, 4}, until: Version{6, 1}}
	for v, want := range map[Version]bool{{4, 2}: false, {4, 4, 0}: true, {6, 0, 9}: true, {6, 1, 0}: false, {8, 0}: false} {
		if got := o.holds(v); got != want {
			t.Errorf("%s: got %t", v, got)
		}
	}
	for i, o := range optionTable() {
		if o.reason == "" || o.roles == 0 || o.args == nil {
			t.Errorf("row %d lacks its reason, its roles or its arguments", i)
		}
	}
}

func TestInitiation(t *testing.T) {
	nine := strings.Fields("h1 h2 h3 h4 h5 h6 h7 h8 h9")
	for _, row := range []struct {
		reason string
		set    Set
		hosts  []string
		want   string // in Extended JSON, a part
	}{
		{"members are numbered", Set{Name: "rs0"}, nine[:2], `{"_id":"rs0","members":[{"_id":0,"host":"h1"},{"_id":1,"host":"h2"}]}`},
		{"config servers say so", Set{Name: "c", Config: true}, nine[:1], `{"_id":"c","members":[{"_id":0,"host":"h1"}],"configsvr":true}`},
		{"the eighth member cannot vote any more", Set{Name: "rs0"}, nine, `{"_id":6,"host":"h7"},{"_id":7,"host":"h8","votes":0,"priority":0},`},
	} {
		got, err := bsonText(initiation(row.set, row.hosts))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%s: got %s", row.reason, got)
		}
	}
}

func TestLacks(t *testing.T) {
	for _, row := range []struct {
		reason string
		states []state
		want   string
	}{
		{"a set of one", []state{primary}, ""},
		{"a whole set", []state{secondary, primary, secondary}, ""},
		{"no primary yet", []state{secondary, secondary}, "0 primaries, 2 secondaries, 0 that are neither"},
		{"a member that copies yet", []state{primary, starting}, "1 primaries, 0 secondaries, 1 that are neither"},
		{"an old primary that has not heard", []state{primary, primary, secondary}, "2 primaries, 1 secondaries, 0 that are neither"},
	} {
		got := ""
		if err := lacks(row.states); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}
