package orchestration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestPresets(t *testing.T) {
	kinds := map[string]Kind{"single": Server, "replicaset": ReplicaSet, "sharded": ShardedCluster, "load": ShardedCluster}
	for _, name := range Presets() {
		t.Run(name, func(t *testing.T) {
			c, err := Preset(name)
			testkit.Check(t, err)
			shape, _, _ := strings.Cut(name, "-")
			auth, tls := strings.Contains(name, "auth"), strings.Contains(name, "tls")
			testkit.Equal(t, "kind, origin and name", []any{c.Kind, c.Preset(), c.Name}, []any{kinds[shape], true, name})
			testkit.Equal(t, "needs files, TLS and an authority", []bool{c.NeedsFiles(), c.TLS(), c.CAFile() != ""}, []bool{tls, tls, tls})
			testkit.Equal(t, "load balanced", c.LoadBalanced(), shape == "load")
			testkit.Equal(t, "test commands", slices.Contains(c.Parameters(), "enableTestCommands"), true)
			full := c.With(Settings{Files: "/files", Version: "7.0"})
			user, password, source := full.Login()
			testkit.Equal(t, "a user, a password, and where", []any{user != "", len(password) >= 20, source}, []any{auth, auth, "admin"})
			if secrets := full.Secrets(); (len(secrets) == 2) != auth || auth && secrets[0] == secrets[1] {
				t.Errorf("%d secrets, or equal ones", len(secrets))
			}
			testkit.Equal(t, "filled in", []any{full.NeedsFiles(), full.doc["version"], c.doc["version"]}, []any{false, "7.0", nil})
			text := fmt.Sprint(full.Body("x", true))
			testkit.Equal(t, "what is sent names files", []bool{strings.Contains(text, FilesToken), strings.Contains(text, "/files/.evergreen/x509gen/server.pem")},
				[]bool{false, tls})
		})
	}
	_, err := Preset("moon")
	testkit.Fails(t, err)
}

func TestKinds(t *testing.T) {
	for text, want := range map[string]string{ // the kind, or the error
		`{"name": "mongod", "procParams": {"port": 27017}}`: "servers",
		`{"procParams": {}}`:                            "servers",
		`{"id": "repl0", "members": [{}]}`:              "replica_sets",
		`{"shards": [{"id": "sh01"}], "routers": [{}]}`: "sharded_clusters",
		`{"routers": [{}]}`:                             "sharded_clusters",
		``:                                              "it is not",
		`{}`:                                            "it is no configuration",
		`{"id": "a"}`:                                   "it is no configuration",
		`{"members": [{}], "shards": []}`:               "it has keys of sharded_clusters and of replica_sets",
		`[]`:                                            "it is not a JSON object",
		`null`:                                          "it is not a JSON object",
		`{"password": "` + testkit.Secret + `",}`: "it is not JSON: ",
		`{"members": [{}]} {}`:                    "something follows",
		`{"members": []}`:                         "it has no members",
		`{"members": {}}`:                         "members must be a list",
		`{"members": ["a"]}`:                      "members must be a list of objects",
		`{"routers": 2}`:                          "routers must be a list",
		`{"shards": [{"shardParams": {"members": [{"procParams": {"keyFile": "/k"}}]}}]}`: "keyFile: the service removes",
	} {
		if c, err := Parse("x", []byte(text)); strings.Contains(want, " ") {
			testkit.Fails(t, err, "x: ", want)
		} else {
			testkit.Equal(t, text, []any{c.Kind, c.Preset(), err}, []any{want, false, nil})
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
		{"a folder of data, which the service removes", `{"procParams": {"dbpath": "/d", "logpath": "/l"}}`, true,
			`{"id": "ID", "name": "mongod", "procParams": {"logpath": "/l"}}`},
		{"one of several", `{"id": "a", "name": "mongod", "procParams": {"port": 27017, "ipv6": true}}`, false,
			`{"id": "ID", "name": "mongod", "procParams": {"ipv6": true}}`},
		{"a replica set", `{"members": [{"procParams": {"port": 1}, "rsParams": {"tags": {"port": "x"}}}, {"server_id": "mine", "rsParams": {"arbiterOnly": true}}]}`, false,
			`{"id": "ID", "members": [{"procParams": {}, "rsParams": {"tags": {"port": "x"}}, "server_id": "ID-part-member0"},
			{"procParams": {}, "rsParams": {"arbiterOnly": true}, "server_id": "ID-part-member1"}]}`},
		{"a sharded cluster", sharded, true,
			`{"id": "ID", "configsvrs": [{"rs_id": "ID-part-config", "members": [{"procParams": {}, "server_id": "ID-part-config-0"}]}],
			"shards": [{"id": "sh01", "shardParams": {"rs_id": "ID-part-shard0", "procParams": {}, "members": [
				{"procParams": {"port": 27217}, "server_id": "ID-part-shard0-0"}, {"procParams": {}, "server_id": "ID-part-shard0-1"}]}},
				{"id": "sh02", "shardParams": {"procParams": {}, "server_id": "ID-part-shard1"}}],
			"routers": [{"port": 27017, "logpath": "/l", "setParameter": {"loadBalancerPort": 27050}, "server_id": "ID-part-router0"}, {"port": 27018, "server_id": "ID-part-router1"}]}`},
		{"config servers of long ago", `{"shards": [], "configsvrs": [{"port": 1}, {}, {}]}`, true,
			`{"id": "ID", "shards": [], "configsvrs": [{"port": 1, "server_id": "ID-part-config0"}, {"server_id": "ID-part-config1"}, {"server_id": "ID-part-config2"}]}`},
	} {
		c, err := Parse("x", []byte(r.text))
		testkit.Check(t, err)
		before := fmt.Sprint(c.doc)
		got, err := json.Marshal(c.Body("ID", r.alone))
		testkit.Check(t, err)
		var want any
		testkit.Check(t, json.Unmarshal([]byte(r.want), &want))
		sorted, _ := json.Marshal(want)
		testkit.Equal(t, r.reason, string(got), string(sorted))
		testkit.Equal(t, r.reason+": the configuration", c.doc, before)
	}
	c, err := Parse("x", []byte(sharded))
	testkit.Check(t, err)
	body := c.Body("ID", false)
	if text := fmt.Sprint(body); strings.Contains(text, "27017") || strings.Contains(text, "/d") || strings.Contains(text, "/l") {
		t.Errorf("what two clusters would both have: %s", text)
	}
	ports, err := SetBalancerPorts(body, func() (int, error) { return 4711, nil })
	testkit.Equal(t, "ports", []any{ports, err}, []any{[]int{4711}, nil})
	testkit.Says(t, fmt.Sprint(body), "loadBalancerPort:4711")
}

func TestNewID(t *testing.T) {
	for text, prefix := range map[string]string{
		`{"id": "shard_cluster_1", "shards": []}`:                      "utr-shard-cluster-1-",
		`{"id": "../../etc", "members": [{}]}`:                         "utr-etc-",
		`{"members": [{}]}`:                                            "utr-x-",
		`{"id": "` + strings.Repeat("long", 20) + `", "members":[{}]}`: "utr-" + strings.Repeat("long", 6) + "-",
	} {
		c, err := Parse("/some/where/x.json", []byte(text))
		testkit.Check(t, err)
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
		testkit.Check(f, err)
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
		testkit.Check(t, err)
		_, err = SetBalancerPorts(body, func() (int, error) { return 1, nil })
		testkit.Check(t, err)
		again, err := Parse("x", sent)
		testkit.Check(t, err)
		testkit.Equal(t, "id, kind and configuration", []any{body["id"], again.Kind, fmt.Sprint(c.doc)}, []any{"ID", c.Kind, before})
	})
}
