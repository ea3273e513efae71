//go:build unix

// Package orchestration runs utr on every kind of cluster that a real
// mongo-orchestration creates with our own mongod and mongos, and ends runs in different
// ways. program/internal/acceptance/command has one test of each.
package orchestration

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

func TestMain(m *testing.M) { utrtest.Main(m) }

// Suites pass on each kind of cluster, no password is printed or reported, and nothing
// is left over.
func TestClusters(t *testing.T) {
	for _, r := range []struct {
		reason string
		args   []string
		auth   bool
	}{
		{"all kinds", []string{"--cluster", "single", "--cluster", "replicaset", "--cluster", "sharded", "--topology", "all"},
			false},
		{"with passwords", []string{"--cluster", "sharded-auth"}, true},
		{"with TLS, two clusters", []string{"--cluster", "replicaset-one-auth-tls", "--clusters", "2"}, true},
		{"behind a load balancer", []string{"--cluster", "load-balanced"}, false},
	} {
		t.Run(r.reason, func(t *testing.T) {
			o := utrtest.Orchestrate(t)
			report := filepath.Join(t.TempDir(), "r.json")
			u := o.Begin(append(r.args, "--events", "--json", report, "--run", "distinct", "retryable-reads")...)
			var secrets []string
			for r.auth && len(secrets) == 0 && !u.Ended() {
				for _, id := range o.IDs() {
					secrets = append(secrets, password(o, id)...)
				}
			}
			testkit.Equal(t, "a password was found", len(secrets) > 0, r.auth)
			end := u.End().Want(0, " passed, 0 failed, ")
			testkit.Equal(t, "nothing ran", strings.Contains("\n"+end.Out, "\n0 passed"), false)
			text := testkit.Read(t, report)
			for _, secret := range secrets {
				if strings.Contains(end.All()+text, secret) {
					t.Errorf("the password %s is in the output or report", secret)
				}
			}
			o.Vacant()
		})
	}
}

// password returns the password of a cluster, if it has one.
func password(o *utrtest.Orchestra, id string) []string {
	content, found := o.Ask("GET", id, nil)
	uri, _ := content["mongodb_auth_uri"].(string)
	userinfo, _, _ := strings.Cut(strings.TrimPrefix(uri, "mongodb://"), "@")
	_, password, _ := strings.Cut(userinfo, ":")
	if !found || len(password) < 8 {
		return nil
	}
	return []string{password}
}

// Runs use a configuration with fixed ports, as in drivers-evergreen-tools, and an
// existing cluster. It is not deleted.
func TestConfiguration(t *testing.T) {
	o := utrtest.Orchestrate(t)
	var ports []any
	for range 2 { // the test fails if another process takes a port first
		l, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Check(t, err)
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		_ = l.Close()
	}
	file := filepath.Join(t.TempDir(), "repl.json")
	text := fmt.Sprintf(`{"id": "repl0", "auth_key": "secretkey", "login": "bob", "password": "p+d 123%%", "members": [
		{"procParams": {"ipv6": true, "bind_ip": "127.0.0.1,::1", "oplogSize": 500, "port": %d}, "rsParams": {"tags": {"ordinal": "one", "dc": "ny"}}},
		{"procParams": {"ipv6": true, "bind_ip": "127.0.0.1,::1", "port": %d}, "rsParams": {"arbiterOnly": true}}]}`,
		ports...)
	testkit.Check(t, os.WriteFile(file, []byte(text), 0o600))
	end := o.Begin("--cluster", file, "--orchestration-version", "embedded", "--run", "distinct",
		"retryable-reads").End().Want(0)
	if strings.Contains(end.All(), "p+d 123%") || strings.Contains(end.All(), "secretkey") {
		t.Errorf("a secret is in the output: %s", end.All())
	}
	o.Vacant()

	o.Call("PUT", "replica_sets/mine", map[string]any{"members": []any{map[string]any{}, map[string]any{}}})
	o.Begin("--cluster", "id:mine", "--run", "distinct", "retryable-reads").End().Want(0,
		"utr will drop or change these collections on 127.0.0.1:")
	testkit.Equal(t, "the cluster and its two servers", len(o.IDs()), 3)
}

const slow = `description: "slow"
schemaVersion: "1.10"
createEntities:
  - client: {id: client}
tests:
  - description: "first"
    operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]
  - description: "second"
    operations: [{name: wait, object: testRunner, arguments: {ms: 90000}}]
`

// The clusters of a run are deleted when it ends, or by utr clean.
func TestEnds(t *testing.T) {
	suite := filepath.Join(t.TempDir(), "suite.yml")
	testkit.Check(t, os.WriteFile(suite, []byte(slow), 0o644))
	for _, r := range []struct {
		reason string
		signal syscall.Signal
		early  bool // while the cluster is created
	}{
		{"interrupted in a test", syscall.SIGINT, false},
		{"interrupted while the cluster is created", syscall.SIGTERM, true},
		{"killed in a test", syscall.SIGKILL, false},
		{"killed while the cluster is created", syscall.SIGKILL, true},
	} {
		t.Run(r.reason, func(t *testing.T) {
			o := utrtest.Orchestrate(t)
			u := o.Begin("--cluster", "replicaset", suite)
			if r.early {
				u.Until("the cluster is being created", func() bool { return len(o.Processes()) > 0 })
			} else {
				u.Line("first")
			}
			u.Signal(r.signal)
			end := u.End()
			if r.signal == syscall.SIGKILL {
				o.Run("clean").Want(0, "removed 1, left 0")
			} else {
				end.Want(3)
			}
			o.Vacant()
		})
	}
}

// If any server of a cluster crashes, the cluster is replaced.
func TestCrash(t *testing.T) {
	for _, preset := range []string{"single", "replicaset", "sharded"} {
		t.Run(preset, func(t *testing.T) {
			o := utrtest.Orchestrate(t)
			configuration, err := orchestration.Preset(preset)
			testkit.Check(t, err)
			source, err := deployment.OpenOrchestration(testkit.Context(t), deployment.OrchestrationOptions{URL: o.URL,
				Clusters: []deployment.OrchestratedCluster{{Configuration: configuration.With(orchestration.Settings{})}}})
			testkit.Check(t, err)
			defer func() { testkit.Check(t, source.Close()) }()
			first, err := source.Acquire(testkit.Context(t), 0)
			testkit.Check(t, err)
			all := o.Processes()
			pid, err := strconv.Atoi(strings.Fields(all[0])[0])
			testkit.Check(t, err)
			testkit.Check(t, syscall.Kill(pid, syscall.SIGKILL))
			testkit.Until(t, "the server has ended", func() bool { return len(o.Processes()) < len(all) })
			begun := time.Now()
			source.Release(first, true)
			second, err := source.Acquire(testkit.Context(t), 0)
			testkit.Check(t, err)
			t.Logf("replaced in %s", time.Since(begun))
			if second == first {
				t.Error("a cluster with a crashed server is used again")
			}
			testkit.Check(t, writes(t, second.URI()))
			source.Release(second, false)
		})
	}
}

type body = map[string]any

// writes inserts and finds a document.
func writes(t *testing.T, uri any) error {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(fmt.Sprint(uri)))
	testkit.Check(t, err)
	ctx := testkit.Context(t)
	defer func() { _ = client.Disconnect(ctx) }()
	one := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
	if _, err := client.Database("db").Collection("c").InsertOne(ctx, one); err != nil {
		return err
	}
	return client.Database("db").Collection("c").FindOne(ctx, one).Err()
}

// With our release, the service creates, changes, uses and deletes all kinds of
// clusters, with and without users.
func TestService(t *testing.T) {
	for reason, user := range map[string]body{"open": nil,
		"with users": {"login": "ann", "password": "secret", "auth_key": "key"}} {
		t.Run(reason, func(t *testing.T) {
			o := utrtest.Orchestrate(t)
			with := func(b body) body { maps.Copy(b, user); return b }
			check := func(created body) {
				t.Helper()
				uri := created["mongodb_uri"]
				if user != nil {
					testkit.ErrorContains(t, writes(t, uri)) // not authenticated
					uri = created["mongodb_auth_uri"]
				}
				testkit.Check(t, writes(t, uri))
			}

			single := o.Call("POST", "servers", with(body{"name": "mongod"}))
			check(single)
			for _, action := range []string{"stop", "start", "restart", "reset"} {
				o.Call("POST", "servers/"+fmt.Sprint(single["id"]), body{"action": action})
			}
			check(single)
			o.Call("DELETE", "servers/"+fmt.Sprint(single["id"]), nil)

			set := o.Call("POST", "replica_sets", with(body{"id": "repl0", "members": []any{
				body{"rsParams": body{"priority": 99, "tags": body{"dc": "ny"}}}, body{"rsParams": body{"priority": 1.1}},
				body{"rsParams": body{"arbiterOnly": true}},
			}}))
			check(set)
			testkit.Equal(t, "the primary, by priority", o.Call("GET", "replica_sets/repl0/primary", nil)["_id"], 0)
			secondary := o.Call("GET", "replica_sets/repl0/members/1", nil)
			for _, action := range []string{"stop", "start", "restart"} {
				o.Call("POST", "servers/"+fmt.Sprint(secondary["server_id"]), body{"action": action})
			}
			o.Call("POST", "replica_sets/repl0", body{"action": "reset"})
			check(set)
			o.Call("DELETE", "replica_sets/repl0", nil)

			shard := func(id string) body { return body{"id": id, "shardParams": body{"members": []any{body{}}}} }
			cluster := o.Call("POST", "sharded_clusters",
				with(body{"id": "cluster", "configsvrs": []any{body{"members": []any{body{}}}},
					"shards": []any{shard("sh01"), shard("sh02")}, "routers": []any{body{}, body{}}}))
			check(cluster)
			list, _ := cluster["shards"].([]any)
			testkit.Equal(t, "shards", len(list), 2)
			o.Call("DELETE", "sharded_clusters/cluster", nil)
			o.Vacant()
		})
	}
}
