package orchestration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
			testkit.Equal(t, "kind, origin and name", []any{c.Kind, c.Preset, c.Name}, []any{kinds[shape], true, name})
			testkit.Equal(t, "needs files, TLS and an authority", []bool{c.NeedsFiles, c.TLS, c.CAFile != ""},
				[]bool{tls, tls, tls})
			testkit.Equal(t, "load balanced", c.LoadBalanced, shape == "load")
			testkit.Equal(t, "test commands", slices.Contains(c.Parameters, "enableTestCommands"), true)
			full := c.With(Settings{Files: "/files", Version: "7.0"})
			doc := full.doc()
			password, _ := doc["password"].(string)
			testkit.Equal(t, "a user, and a password", []any{doc["login"] != nil, len(password) >= 20}, []any{auth, auth})
			if secrets := full.Secrets; (len(secrets) == 2) != auth || auth && secrets[0] == secrets[1] {
				t.Errorf("%d secrets, or equal ones", len(secrets))
			}
			testkit.Equal(t, "settings", []any{full.NeedsFiles, doc["version"], c.doc()["version"]}, []any{false, "7.0", nil})
			text := fmt.Sprint(full.Body("x", true))
			testkit.Equal(t, "the body names files",
				[]bool{strings.Contains(text, FilesToken), strings.Contains(text, "/files/.evergreen/x509gen/server.pem")},
				[]bool{false, tls})
		})
	}
	_, err := Preset("moon")
	testkit.ErrorContains(t, err)
}

var commands = testkit.Commands{
	"service": func(_ *testing.T, a []string) (string, error) { // a URL
		c, err := New(a[0])
		if err != nil {
			return "", err
		}
		return c.URL(), nil
	},
	"kind": func(t *testing.T, a []string) (string, error) {
		c, err := Parse("x", []byte(a[0]))
		if err != nil {
			return "", err
		}
		testkit.Equal(t, "it is a preset", c.Preset, false)
		return string(c.Kind), nil
	},
	"body": func(t *testing.T, a []string) (string, error) { // alone or among several, and a configuration
		c, err := Parse("x", []byte(a[1]))
		testkit.Check(t, err)
		before := string(c.text)
		body, err := json.Marshal(c.Body("ID", a[0] == "alone"))
		testkit.Equal(t, "the configuration", string(c.text), before)
		return string(body), err
	},
	"releases": func(t *testing.T, a []string) (string, error) { // a configuration, and ids and versions of its servers
		c, err := Parse("x", []byte(a[0]))
		testkit.Check(t, err)
		var servers []Running
		for word := range strings.FieldsSeq(a[1]) {
			id, version, _ := strings.Cut(word, "=")
			servers = append(servers, Running{ID: id, Host: "h", Version: version})
		}
		return "", CheckReleases(c.Kind, c.Body("ID", false), servers)
	},
	"id": func(t *testing.T, a []string) (string, error) { // without the ten random characters
		c, err := Parse("/some/where/x.json", []byte(a[0]))
		testkit.Check(t, err)
		mark := Mark{"47-ab", time.Date(2026, 7, 3, 2, 0, 4, 0, time.UTC)}
		one, other := c.NewID(mark), c.NewID(mark)
		got, found := markOf(one)
		testkit.Equal(t, "its mark", []any{got, found}, []any{mark, true})
		testkit.Equal(t, "equal ids, and lower case", []bool{one == other, one == strings.ToLower(one)}, []bool{false, true})
		return one[:len(one)-10], nil
	},
}

func TestTranscripts(t *testing.T) {
	for _, name := range []string{"configurations", "bodies"} {
		commands.Play(t, "testdata/"+name+".txt")
	}
}

func TestBalancerPorts(t *testing.T) {
	c, err := Parse("x", []byte(`{"shards": [], "routers": [{"port": 27017, "setParameter": {"loadBalancerPort": 27050}}, {"port": 27018}]}`))
	testkit.Check(t, err)
	body := c.Body("ID", false)
	ports, err := SetBalancerPorts(body, func() (int, error) { return 4711, nil })
	testkit.Equal(t, "ports", []any{ports, err}, []any{[]int{4711}, nil})
	testkit.Contains(t, fmt.Sprint(body), "loadBalancerPort:4711")
}

func TestMarks(t *testing.T) {
	for _, id := range []string{"mine", "utr-x-abcdefghij", "utr-x-20269903t020004-1-a-abcdefghij",
		"x-utr-x-20260703t020004-1-a-abcdefghij"} {
		if m, found := markOf(id); found {
			t.Errorf("%s: mark %v", id, m)
		}
	}
}

// The body of any configuration is valid JSON of the same kind with the given id.
func FuzzConfiguration(f *testing.F) {
	for _, name := range Presets() {
		c, err := Preset(name)
		testkit.Check(f, err)
		f.Add(c.text)
	}
	for _, text := range []string{
		`{"members": [{"server_id": "b", "procParams": 7}]}`,
		`{"shards": [{"shardParams": []}], "configsvrs": [{"members": 1}]}`,
		`{"routers": [{"setParameter": "x"}], "sslParams": 1, "password": 3}`, `{"procParams": null, "login": []}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("x", text)
		if err != nil {
			return
		}
		before := string(c.text)
		body := c.With(Settings{Files: "/f"}).Body("ID", false)
		sent, err := json.Marshal(body)
		testkit.Check(t, err)
		_, err = SetBalancerPorts(body, func() (int, error) { return 1, nil })
		testkit.Check(t, err)
		again, err := Parse("x", sent)
		testkit.Check(t, err)
		testkit.Equal(t, "id, kind and configuration", []any{body["id"], again.Kind, string(c.text)},
			[]any{"ID", c.Kind, before})
	})
}
