package deployment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// A cluster is what it says, whichever way it is named and whatever its clients have
// to declare; each host of it can be reached alone, and one worker has it at a time.
func TestCluster(t *testing.T) {
	for _, r := range []struct {
		words, name string
		txt         string // of the name in DNS that stands for it, if there is one
	}{
		{"single 8.0", "single 8.0", ""},
		{"single 8.0 noscripting", "single 8.0", ""},
		{"single 8.0 auth", "single 8.0 auth", ""},
		{"sharded 8.0 auth", "sharded 8.0 auth", ""},
		{"sharded 8.0", "sharded 8.0", "authSource=admin"},
		{"replicaset 8.0", "replicaset 8.0", "replicaSet=rs0"},
		{"load-balanced 8.0", "load-balanced 8.0", "loadBalanced=true"},
		{"single api", "single 8.0", ""},
		{"replicaset api", "replicaset 8.0", ""},
		{"sharded api", "sharded 8.0", ""},
		{"load-balanced api", "load-balanced 8.0", ""},
	} {
		t.Run(r.words+" "+r.txt, func(t *testing.T) {
			s := newScene(t, r.words)
			hosts := parsed(t, s.d.URI()).hosts
			if r.txt != "" {
				resolves(t, hosts, r.txt)
				s.o.URI = "mongodb+srv://" + srvName + "/?tls=false"
			}
			s.tell("open; offers " + r.name + "; lend a; theirs a")
			d := s.the("a")
			about := d.Description()
			routers := about.Topology == Sharded || about.Topology == LoadBalanced
			testkit.Equal(t, "topology, shards and hosts", []any{about.Topology, about.ReplicaSetShards, about.Hosts},
				[]any{strings.Fields(r.name)[0], routers, hosts})
			testkit.Equal(t, "access control, no scripts, and URI", []any{about.Auth, about.NoScripting, d.URI(), len(about.AuthMechanisms) > 0},
				[]any{strings.Contains(r.words, "auth"), strings.Contains(r.words, "noscripting"), s.o.URI, true})
			usable(t, s.o.ServerAPI, d)
			busy, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("enough"))
			_, err := s.Acquire(busy, 0)
			testkit.Fails(t, err, "waiting for the cluster to be free: enough")
			s.tell("refuse 1 no offer 1; return a; lend a; sweep 0 0; clean true false")
		})
	}
}

func TestNoScripting(t *testing.T) {
	for _, r := range []struct {
		reason         string
		build, started string
		want           bool
	}{
		{"as usual", `{"javascriptEngine": "mozjs"}`, `{"parsed": {}}`, false},
		{"built without it", `{"javascriptEngine": "none"}`, "", true},
		{"--noscripting", `{"javascriptEngine": "mozjs"}`, `{"parsed": {"security": {"javascriptEnabled": false}}}`, true},
		{"switched on in words", `{"javascriptEngine": "mozjs"}`, `{"parsed": {"security": {"javascriptEnabled": true}}}`, false},
		{"nobody tells", "", "", false},
	} {
		testkit.Equal(t, r.reason, noScripting(document[bson.Raw](t, r.build), document[bson.Raw](t, r.started)), r.want)
	}
}

// The error says in words that help why a deployment cannot be used. What each host
// did is known only once it did it: on a busy machine it is asked again, for longer.
func TestUnreachable(t *testing.T) {
	hosts := func(o embedded.Options) string { return strings.Join(serve(t, o).Hosts(), ",") }
	open, locked, tls := hosts(embeddedAs("replicaset")), hosts(embeddedAs("auth")), hosts(embedded.Options{TLS: true})
	balanced, api := serve(t, embeddedAs("load-balanced")).URI(), serve(t, embeddedAs("api")).URI()
	silent, _ := listening(t)
	const u = "mongodb://u:" + testkit.Secret + "@"
	for _, r := range []struct {
		reason, uri string
		want        []string
	}{
		{"nothing listens", u + "127.0.0.1:1/", []string{"no answer from 127.0.0.1:1 within LIMIT", "nothing listens there"}},
		{"two hosts, and nothing listens", "mongodb://127.0.0.1:1,127.0.0.1:2/", []string{"\n  127.0.0.1:1: ", "\n  127.0.0.1:2: "}},
		{"it accepts and never answers", "mongodb://" + silent + "/", []string{"within LIMIT", "not answer"}},
		{"a wrong password", "mongodb://utr:" + testkit.Secret + "@" + locked + "/", []string{"user or password is wrong"}},
		{"no user", "mongodb://" + locked + "/", []string{"it wants authentication, and the connection string names no user"}},
		{"another set", "mongodb://" + open + "/?replicaSet=other", []string{`no host is a member of a replica set named "other"`}},
		{"TLS is missing", "mongodb://" + tls + "/", []string{"if it wants TLS, add tls=true"}},
		{"TLS without the authority", "mongodb://" + tls + "/?tls=true", []string{"tlsCAFile"}},
		{"TLS where there is none", "mongodb://" + open + "/?tls=true", []string{"hung up"}},
		{"no version of the Stable API where one is required", api, []string{"--server-api"}},
		{"no load balancer for one mongos", balanced, []string{"--single-uri"}},
		{"not a connection string", u + "/", []string{"empty host"}},
		{"an option has a wrong value", u + open + "/?w=-3", []string{"cannot use the deployment at " + open}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			for limit := 400 * time.Millisecond; ; limit *= 4 {
				s, err := OpenCluster(t.Context(), ClusterOptions{URI: r.uri, Timeout: limit, Lock: &LockOptions{}})
				if err == nil {
					t.Fatal("it can be used", s.Close())
				}
				missing := func(part string) bool {
					return !strings.Contains(err.Error(), strings.ReplaceAll(part, "LIMIT", limit.String()))
				}
				testkit.Says(t, err.Error())
				if i := slices.IndexFunc(r.want, missing); i < 0 {
					return
				} else if limit > 20*time.Second {
					t.Fatalf("%q is missing in: %v", r.want[i], err)
				}
			}
		})
	}
	t.Run("the limit is in the connection string", func(t *testing.T) {
		_, err := OpenCluster(t.Context(), ClusterOptions{URI: "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50"})
		testkit.Fails(t, err, "no answer from 127.0.0.1:1 within 50ms")
	})
}

func TestPassing(t *testing.T) {
	late := func(code int) mongo.WriteException {
		return mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: code}}
	}
	undone := late(91)
	undone.WriteErrors = mongo.WriteErrors{{Code: 11000}}
	for _, r := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"no error", nil, false},
		{"not an error of the driver", errors.New("it is dark"), false},
		{"the primary stepped down", mongo.CommandError{Code: 189}, true},
		{"a wrapped one", errors.Join(mongo.CommandError{Code: 10107}), true},
		{"a mongos finds no primary", mongo.CommandError{Code: 133}, true},
		{"a shard is not reached", mongo.CommandError{Code: 6}, true},
		{"the network", mongo.CommandError{Labels: []string{"NetworkError"}}, true},
		{"the command is wrong", mongo.CommandError{Code: 9}, false},
		{"a write that was done and not waited for", late(11602), true},
		{"wtimeout", late(64), false},
		{"a write that was not done", undone, false},
	} {
		testkit.Equal(t, r.reason, Passing(r.err), r.want)
	}
}

func TestNotServing(t *testing.T) {
	said := map[string]greeting{"refused": {err: errors.New("connection refused")}, "failed": {err: errors.New("x")}}
	for name, hello := range map[string]string{
		"standalone": `{"isWritablePrimary": true}`, "master": `{"ismaster": true}`, "router": `{"msg": "isdbgrid"}`,
		"router 2": `{"msg": "isdbgrid"}`, "raw": `{"isreplicaset": true}`, "starting": `{"setName": "rs"}`,
		"primary": `{"setName": "rs", "isWritablePrimary": true}`, "old primary": `{"setName": "rs", "ismaster": true}`,
		"secondary": `{"setName": "rs", "secondary": true}`, "arbiter": `{"setName": "rs", "arbiterOnly": true}`,
	} {
		said[name] = greeting{hello: document[bson.Raw](t, hello)}
	}
	for hosts, want := range map[string]string{
		"standalone":                  "",
		"master":                      "",
		"router, router 2":            "",
		"primary, secondary, arbiter": "",
		"old primary, secondary":      "",
		"router, stranger":            "stranger was not asked yet",
		"primary, refused":            "refused: connection refused (nothing listens there: is it running, and is this its port?)",
		"raw":                         "raw is not initiated yet",
		"secondary":                   "replica set rs has no primary yet",
		"primary, starting":           "starting is neither primary nor secondary nor arbiter yet",
		"secondary, failed":           "failed: x; replica set rs has no primary yet",
	} {
		testkit.Equal(t, hosts, strings.Join(notServing(strings.Split(hosts, ", "), said), "; "), want)
	}
}

// A deployment serves without credentials, and when the last of its hosts does.
func TestAwaitServing(t *testing.T) {
	for _, words := range []string{"single auth", "replicaset auth", "sharded auth"} {
		u := parsed(t, serve(t, embeddedAs(words)).URI())
		if u.get("replicaSet") != "" {
			u.hosts = u.hosts[:1] // it names the others
		}
		testkit.Check(t, awaitServing(testkit.Context(t), u))
		silent, called := listening(t)
		u.hosts = append(u.hosts, silent)
		ctx, cancel := context.WithCancelCause(testkit.Context(t))
		go func() { <-called; cancel(errors.New("waited long enough")) }()
		testkit.Fails(t, awaitServing(ctx, u), "waited long enough: ", silent+": ")
	}
}
