package deployment

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestNotServing(t *testing.T) {
	say := func(pairs ...any) greeting {
		var d bson.D
		for i := 0; i < len(pairs); i += 2 {
			d = append(d, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
		}
		raw, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return greeting{hello: raw}
	}
	primary := say("setName", "rs", "isWritablePrimary", true)
	secondary := say("setName", "rs", "isWritablePrimary", false, "secondary", true)
	for _, r := range []struct {
		reason string
		hosts  string
		said   map[string]greeting
		want   string
	}{
		{"a standalone", "a", map[string]greeting{"a": say("isWritablePrimary", true)}, ""},
		{"an old one", "a", map[string]greeting{"a": say("ismaster", true)}, ""},
		{"two routers", "a b", map[string]greeting{"a": say("msg", "isdbgrid"), "b": say("msg", "isdbgrid")}, ""},
		{"a replica set with an arbiter", "a b c", map[string]greeting{"a": primary, "b": secondary, "c": say("setName", "rs", "arbiterOnly", true)}, ""},
		{"one that nobody has asked", "a b", map[string]greeting{"a": say("msg", "isdbgrid")}, "b was not asked yet"},
		{"one that does not answer", "a b", map[string]greeting{"a": primary, "b": {err: errors.New("connection refused")}},
			"b: connection refused (nothing listens there: is it running, and is this its port?)"},
		{"one that was not initiated", "a", map[string]greeting{"a": say("isreplicaset", true, "isWritablePrimary", false)}, "a is not initiated yet"},
		{"no primary", "a b", map[string]greeting{"a": secondary, "b": secondary}, "replica set rs has no primary yet"},
		{"one that starts", "a b", map[string]greeting{"a": primary, "b": say("setName", "rs", "secondary", false)}, "b is neither primary nor secondary nor arbiter yet"},
		{"several things", "a b", map[string]greeting{"a": secondary, "b": {err: errors.New("x")}}, "b: x; replica set rs has no primary yet"},
	} {
		if got := strings.Join(notServing(strings.Fields(r.hosts), r.said), "; "); got != r.want {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}

func TestAwaitServing(t *testing.T) {
	auth := true
	running, err := OpenEmbedded(context.Background(), EmbeddedOptions{Topologies: []Topology{ReplicaSet, Sharded, Single}, Auth: &auth})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Close() }()
	for i := range running.Offers() {
		d, err := running.Acquire(context.Background(), i)
		if err != nil {
			t.Fatal(err)
		}
		u, err := parseURI(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		if d.Description().Topology == ReplicaSet {
			u.hosts = u.hosts[:1] // it tells of the others
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := awaitServing(ctx, u); err != nil {
			t.Errorf("%s: %v", d.Description().Name, err)
		}
		cancel()
		u.hosts = append(u.hosts, "127.0.0.1:1")
		ctx, cancel = context.WithTimeoutCause(context.Background(), 300*time.Millisecond, errors.New("waited long enough"))
		// A host that serves may be missing as well, on a machine that is busy.
		if err := awaitServing(ctx, u); err == nil || !strings.HasPrefix(err.Error(), "waited long enough: ") || !strings.Contains(err.Error(), "127.0.0.1:1: ") {
			t.Errorf("%s: a host that nobody listens at is not waited for: %v", d.Description().Name, err)
		}
		cancel()
	}
}
