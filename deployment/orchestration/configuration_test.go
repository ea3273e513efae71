package orchestration

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestPresets(t *testing.T) {
	kinds := map[string]Kind{"single": Server, "replicaset": ReplicaSet, "sharded": ShardedCluster, "load": ShardedCluster}
	for _, name := range Presets() {
		c, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		shape, _, _ := strings.Cut(name, "-")
		if c.Kind != kinds[shape] || !c.Preset() || c.Name != name {
			t.Errorf("%s is %+v", name, c)
		}
		if got, want := c.NeedsFiles(), strings.Contains(name, "tls"); got != want || c.TLS() != want || (c.CAFile() != "") != want {
			t.Errorf("%s: needs files %t, TLS %t, authority %q", name, got, c.TLS(), c.CAFile())
		}
		if got, want := c.LoadBalanced(), strings.HasPrefix(name, "load"); got != want {
			t.Errorf("%s: load balanced %t", name, got)
		}
		if !slices.Contains(c.Parameters(), "enableTestCommands") {
			t.Errorf("%s has no test commands: %v", name, c.Parameters())
		}
		full := c.With(Settings{Files: "/files", Version: "7.0"})
		user, password, source := full.Login()
		if auth := strings.Contains(name, "auth"); (user != "") != auth || (len(password) >= 20) != auth || source != "admin" ||
			(len(full.Secrets()) == 2) != auth || auth && full.Secrets()[0] == full.Secrets()[1] {
			t.Errorf("%s: user %q of %s, %d secrets", name, user, source, len(full.Secrets()))
		}
		if full.NeedsFiles() || full.doc["version"] != "7.0" {
			t.Errorf("%s is not filled in: %v", name, full.doc)
		}
		if _, mutated := c.doc["version"]; mutated {
			t.Errorf("%s was changed by filling it in", name)
		}
		body := full.Body("x", true)
		if text := fmt.Sprint(body); strings.Contains(text, FilesToken) || c.TLS() && !strings.Contains(text, "/files/.evergreen/x509gen/server.pem") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if _, err := Preset("moon"); err == nil {
		t.Error("there is a moon")
	}
}

func TestKinds(t *testing.T) {
	for _, r := range []struct {
		reason, text string
		kind         Kind
		fault        string
	}{
		{"a server", `{"name": "mongod", "procParams": {"port": 27017}}`, Server, ""},
		{"one without a name", `{"procParams": {}}`, Server, ""},
		{"a replica set", `{"id": "repl0", "members": [{}]}`, ReplicaSet, ""},
		{"a sharded cluster", `{"shards": [{"id": "sh01"}], "routers": [{}]}`, ShardedCluster, ""},
		{"one with routers alone", `{"routers": [{}]}`, ShardedCluster, ""},
		{"nothing", ``, "", "x: it is not"},
		{"nothing at all", `{}`, "", "x: it is no configuration"},
		{"only a name for it", `{"id": "a"}`, "", "x: it is no configuration"},
		{"two things", `{"members": [{}], "shards": []}`, "", "it has keys of sharded_clusters and of replica_sets"},
		{"a list", `[]`, "", "it is not a JSON object"},
		{"null", `null`, "", "it is not a JSON object"},
		{"no JSON, with a password", `{"password": "hunter22",}`, "", "it is not JSON: "},
		{"more than one", `{"members": [{}]} {}`, "", "something follows"},
		{"no members", `{"members": []}`, "", "it has no members"},
		{"members that are no list", `{"members": {}}`, "", "members must be a list"},
		{"members that are no objects", `{"members": ["a"]}`, "", "members must be a list of objects"},
		{"routers that are a number", `{"routers": 2}`, "", "routers must be a list"},
	} {
		c, err := Parse("x", []byte(r.text))
		switch {
		case r.fault == "" && (err != nil || c.Kind != r.kind || c.Preset()):
			t.Errorf("%s: %s, %v", r.reason, c.Kind, err)
		case r.fault != "" && (err == nil || !strings.Contains(err.Error(), r.fault) || !strings.HasPrefix(err.Error(), "x: ")):
			t.Errorf("%s: %v", r.reason, err)
		case err != nil && strings.Contains(err.Error(), "hunter22"):
			t.Errorf("%s: %v", r.reason, err)
		}
	}
}

// What is sent, as a whole: every server has an id that begins with that of
// its cluster.
func TestBody(t *testing.T) {
	const sharded = `{"id": "shard_cluster_1", "shards": [
		{"id": "sh01", "shardParams": {"members": [{"procParams": {"port": 27217, "dbpath": "/d"}}, {}]}},
		{"id": "sh02"}],
		"routers": [{"port": 27017, "logpath": "/l", "setParameter": {"loadBalancerPort": 27050}}, {"port": 27018}]}`
	for _, r := range []struct {
		reason, text string
		alone        bool
		want         string
	}{
		{"a server", `{"procParams": {"port": 27017, "x": 1.5}}`, true,
			`{"id": "ID", "name": "mongod", "procParams": {"port": 27017, "x": 1.5}}`},
		{"one of several", `{"id": "a", "name": "mongod", "procParams": {"port": 27017, "ipv6": true}}`, false,
			`{"id": "ID", "name": "mongod", "procParams": {"ipv6": true}}`},
		{"a replica set", `{"members": [{"procParams": {"port": 1}, "rsParams": {"tags": {"port": "x"}}}, {"server_id": "mine", "rsParams": {"arbiterOnly": true}}]}`, false,
			`{"id": "ID", "members": [{"procParams": {}, "rsParams": {"tags": {"port": "x"}}, "server_id": "ID-part-member0"},
			{"procParams": {}, "rsParams": {"arbiterOnly": true}, "server_id": "ID-part-member1"}]}`},
		{"a sharded cluster", sharded, true,
			`{"id": "ID", "configsvrs": [{"rs_id": "ID-part-config", "members": [{"server_id": "ID-part-config-0"}]}],
			"shards": [{"id": "sh01", "shardParams": {"rs_id": "ID-part-shard0", "members": [
				{"procParams": {"port": 27217, "dbpath": "/d"}, "server_id": "ID-part-shard0-0"}, {"server_id": "ID-part-shard0-1"}]}},
				{"id": "sh02", "shardParams": {"server_id": "ID-part-shard1"}}],
			"routers": [{"port": 27017, "logpath": "/l", "setParameter": {"loadBalancerPort": 27050}, "server_id": "ID-part-router0"}, {"port": 27018, "server_id": "ID-part-router1"}]}`},
		{"config servers of long ago", `{"shards": [], "configsvrs": [{"port": 1}, {}, {}]}`, true,
			`{"id": "ID", "shards": [], "configsvrs": [{"port": 1, "server_id": "ID-part-config0"}, {"server_id": "ID-part-config1"}, {"server_id": "ID-part-config2"}]}`},
	} {
		c, err := Parse("x", []byte(r.text))
		if err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(c.doc)
		got, err := json.Marshal(c.Body("ID", r.alone))
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := json.Unmarshal(got, &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(r.want), &b); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s:\n%s\nwant\n%s", r.reason, got, r.want)
		}
		if after := fmt.Sprint(c.doc); after != before {
			t.Errorf("%s: the configuration was changed:\n%s\n%s", r.reason, before, after)
		}
	}
	c, _ := Parse("x", []byte(sharded))
	body := c.Body("ID", false)
	if text := fmt.Sprint(body); strings.Contains(text, "27017") || strings.Contains(text, "/d") || strings.Contains(text, "/l") {
		t.Errorf("what two clusters would both have: %s", text)
	}
	ports, err := SetBalancerPorts(body, func() (int, error) { return 4711, nil })
	if err != nil || !slices.Equal(ports, []int{4711}) || !strings.Contains(fmt.Sprint(body), "loadBalancerPort:4711") {
		t.Errorf("%v, %v, %v", ports, err, body)
	}
}

func TestNewID(t *testing.T) {
	for text, prefix := range map[string]string{
		`{"id": "shard_cluster_1", "shards": []}`:                      "utr-shard-cluster-1-",
		`{"id": "../../etc", "members": [{}]}`:                         "utr-etc-",
		`{"members": [{}]}`:                                            "utr-x-",
		`{"id": "` + strings.Repeat("long", 20) + `", "members":[{}]}`: "utr-" + strings.Repeat("long", 6) + "-",
	} {
		c, err := Parse("/some/where/x.json", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		a, b := c.NewID(), c.NewID()
		if !strings.HasPrefix(a, prefix) || len(a) != len(prefix)+10 || a == b || a != strings.ToLower(a) {
			t.Errorf("%s: %s and %s, want %s…", text, a, b, prefix)
		}
	}
}

// Whatever a file says, what is made of it can be sent, names its parts, and
// has no part with somebody else's id.
func FuzzConfiguration(f *testing.F) {
	for _, name := range Presets() {
		c, err := Preset(name)
		if err != nil {
			f.Fatal(err)
		}
		text, _ := json.Marshal(c.doc)
		f.Add(text)
	}
	for _, text := range []string{
		`{"members": [{"server_id": "b", "procParams": 7}]}`, `{"shards": [{"shardParams": []}], "configsvrs": [{"members": 1}]}`,
		`{"routers": [{"setParameter": "x"}], "sslParams": 1, "password": 3}`, `{"procParams": null, "login": []}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("x", text)
		if err != nil {
			return
		}
		before := fmt.Sprint(c.doc)
		c.Parameters()
		c.Secrets()
		c.LoadBalanced()
		body := c.With(Settings{Files: "/f", Secret: func() string { return "secret" }}).Body("ID", false)
		sent, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if body["id"] != "ID" {
			t.Errorf("its id is %v", body["id"])
		}
		if _, err := SetBalancerPorts(body, func() (int, error) { return 1, nil }); err != nil {
			t.Error(err)
		}
		again, err := Parse("x", sent)
		if err != nil || again.Kind != c.Kind {
			t.Errorf("what is sent is %s, %v, and it was %s", again.Kind, err, c.Kind)
		}
		if after := fmt.Sprint(c.doc); after != before {
			t.Errorf("the configuration was changed:\n%s\n%s", before, after)
		}
	})
}
