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
	declared := bson.D{{Key: "requireApiVersion", Value: true}}
	for _, r := range []struct {
		reason   string
		o        embedded.Options
		srv      bool
		txt, api string
		topology Topology
		name     string
	}{
		{"a server", embedded.Options{}, false, "", "", Single, "single 8.0"},
		{"a server without scripts", embedded.Options{NoScripting: true}, false, "", "", Single, "single 8.0"},
		{"one with access control", embedded.Options{Users: users}, false, "", "", Single, "single 8.0 auth"},
		{"routers with access control", embedded.Options{Topology: embedded.Sharded, Users: users}, false, "", "", Sharded, "sharded 8.0 auth"},
		{"routers of a name in DNS", embedded.Options{Topology: embedded.Sharded, Mongoses: 2}, true, "", "", Sharded, "sharded 8.0"},
		{"members of a name", embedded.Options{Topology: embedded.ReplicaSet}, true, "replicaSet=rs0", "", ReplicaSet, "replicaset 8.0"},
		{"a load balancer of a name", embedded.Options{Topology: embedded.LoadBalanced}, true, "loadBalanced=true", "", LoadBalanced, "load-balanced 8.0"},
		{"a server that requires an API version", embedded.Options{Parameters: declared}, false, "", "1", Single, "single 8.0"},
		{"such members", embedded.Options{Topology: embedded.ReplicaSet, Parameters: declared}, false, "", "1", ReplicaSet, "replicaset 8.0"},
		{"such routers", embedded.Options{Topology: embedded.Sharded, Parameters: declared}, false, "", "1", Sharded, "sharded 8.0"},
		{"behind a load balancer", embedded.Options{Topology: embedded.LoadBalanced, Parameters: declared},
			false, "", "1", LoadBalanced, "load-balanced 8.0"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			r.o.Version = "8.0"
			d := serve(t, r.o)
			hosts, text := parsed(t, d.URI()).hosts, d.URI()
			if r.srv {
				named(t, hosts, r.txt)
				text = "mongodb+srv://" + srvName + "/?tls=false"
			}
			s := openCluster(t, ClusterOptions{URI: text, SingleURI: d.SingleURI(), ServerAPI: r.api, Lock: &LockOptions{}})
			c := borrow(t, s)
			about := c.Description()
			testkit.Equal(t, "name, topology, shards and hosts", []any{about.Name, about.Topology, about.ReplicaSetShards, about.Hosts},
				[]any{r.name, r.topology, r.topology == Sharded || r.topology == LoadBalanced, hosts})
			testkit.Equal(t, "access control", about.Auth, len(r.o.Users) > 0)
			testkit.Equal(t, "without scripts", about.NoScripting, r.o.NoScripting)
			if c.Owned() || c.URI() != text || len(about.AuthMechanisms) == 0 {
				t.Errorf("%+v at %s, our own: %t", about, c.URI(), c.Owned())
			}
			usable(t, r.api, c)
			busy, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("enough"))
			_, err := s.Acquire(busy, 0)
			testkit.Fails(t, err, "waiting for the cluster to be free: enough")
			_, err = s.Acquire(t.Context(), 1)
			testkit.Fails(t, err, "no offer 1")
			s.Release(c, false)
			borrow(t, s)
			target := Target{URI: text, ServerAPI: r.api}
			if swept, err := ClearFailPoints(testkit.Context(t), target); err != nil || len(swept.Unasked) > 0 {
				t.Error(swept.Unasked, err)
			}
			if !r.srv {
				_, _, err := ClearLock(testkit.Context(t), target)
				testkit.Check(t, err)
			}
		})
	}
}

func TestNoScripting(t *testing.T) {
	raw := func(doc bson.D) bson.Raw {
		out, err := bson.Marshal(doc)
		testkit.Check(t, err)
		return out
	}
	build := func(engine string) bson.Raw { return raw(bson.D{{Key: "javascriptEngine", Value: engine}}) }
	started := func(enabled any) bson.Raw {
		return raw(bson.D{{Key: "parsed", Value: bson.D{{Key: "security", Value: bson.D{{Key: "javascriptEnabled", Value: enabled}}}}}})
	}
	for _, r := range []struct {
		reason         string
		build, started bson.Raw
		want           bool
	}{
		{"as usual", build("mozjs"), raw(bson.D{{Key: "parsed", Value: bson.D{}}}), false},
		{"built without it", build("none"), nil, true},
		{"--noscripting", build("mozjs"), started(false), true},
		{"switched on in words", build("mozjs"), started(true), false},
		{"nobody tells", nil, nil, false},
	} {
		testkit.Equal(t, r.reason, noScripting(r.build, r.started), r.want)
	}
}

// A user who may not read the list of shards can use the cluster all the same:
// what it would say is known. Any other error counts.
func TestShardsThatMayNotBeRead(t *testing.T) {
	d := serve(t, embedded.Options{Topology: embedded.Sharded, Users: users})
	open := func(code int32) (Source, error) {
		for _, host := range d.Hosts() {
			arm(t, d.DirectURI(host), "alwaysOn", "find", bson.E{Key: "errorCode", Value: code})
		}
		return OpenCluster(testkit.Context(t), ClusterOptions{URI: d.URI()})
	}
	if about := opened[Source](t)(open(codeUnauthorized)).Offers()[0]; about.Topology != Sharded || !about.ReplicaSetShards {
		t.Errorf("%+v", about)
	}
	_, err := open(codeInvalidOptions)
	testkit.Fails(t, err, "cannot read config.shards: ")
}

// The error says in words that help why a deployment cannot be used. What each host
// did is known only once it did it: on a busy machine it is asked again, for longer.
func TestUnreachable(t *testing.T) {
	hosts := func(o embedded.Options) string { return strings.Join(parsed(t, serve(t, o).URI()).hosts, ",") }
	open := hosts(embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
	locked := hosts(embedded.Options{Users: users})
	tls := hosts(embedded.Options{TLS: true})
	balanced := serve(t, embedded.Options{Topology: embedded.LoadBalanced}).URI()
	api := serve(t, embedded.Options{Version: "8.0", Parameters: bson.D{{Key: "requireApiVersion", Value: true}}}).URI()
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
		{"a write that was not done", mongo.WriteException{
			WriteErrors: mongo.WriteErrors{{Code: 11000}}, WriteConcernError: &mongo.WriteConcernError{Code: 91}}, false},
	} {
		testkit.Equal(t, r.reason, Passing(r.err), r.want)
	}
}

func TestNotServing(t *testing.T) {
	say := func(fields ...bson.E) greeting {
		raw, err := bson.Marshal(bson.D(fields))
		testkit.Check(t, err)
		return greeting{hello: raw}
	}
	yes := func(key string) bson.E { return bson.E{Key: key, Value: true} }
	member := bson.E{Key: "setName", Value: "rs"}
	router, primary, secondary := say(bson.E{Key: "msg", Value: "isdbgrid"}), say(member, yes("isWritablePrimary")), say(member, yes("secondary"))
	gone := greeting{err: errors.New("connection refused")}
	for _, r := range []struct {
		reason string
		hosts  string
		said   map[string]greeting
		want   string
	}{
		{"a standalone", "a", map[string]greeting{"a": say(yes("isWritablePrimary"))}, ""},
		{"an old one", "a", map[string]greeting{"a": say(yes("ismaster"))}, ""},
		{"two routers", "a b", map[string]greeting{"a": router, "b": router}, ""},
		{"a replica set with an arbiter", "a b c", map[string]greeting{"a": primary, "b": secondary, "c": say(member, yes("arbiterOnly"))}, ""},
		{"an old replica set", "a b", map[string]greeting{"a": say(member, yes("ismaster")), "b": secondary}, ""},
		{"one that was not asked", "a b", map[string]greeting{"a": router}, "b was not asked yet"},
		{"one that does not answer", "a b", map[string]greeting{"a": primary, "b": gone},
			"b: connection refused (nothing listens there: is it running, and is this its port?)"},
		{"one that was not initiated", "a", map[string]greeting{"a": say(yes("isreplicaset"))}, "a is not initiated yet"},
		{"no primary", "a b", map[string]greeting{"a": secondary, "b": secondary}, "replica set rs has no primary yet"},
		{"one that starts", "a b", map[string]greeting{"a": primary, "b": say(member)}, "b is neither primary nor secondary nor arbiter yet"},
		{"several things", "a b", map[string]greeting{"a": secondary, "b": {err: errors.New("x")}}, "b: x; replica set rs has no primary yet"},
	} {
		testkit.Equal(t, r.reason, strings.Join(notServing(strings.Fields(r.hosts), r.said), "; "), r.want)
	}
}

// A deployment serves without credentials, and when the last of its hosts does.
func TestAwaitServing(t *testing.T) {
	for _, kind := range []embedded.Topology{embedded.Standalone, embedded.ReplicaSet, embedded.Sharded} {
		u := parsed(t, serve(t, embedded.Options{Topology: kind, Users: users}).URI())
		if kind == embedded.ReplicaSet {
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
