package embedded

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func member(t *testing.T, text string) Member {
	t.Helper()
	m, err := ParseMember(text)
	testkit.Check(t, err)
	return m
}

// The configuration of members shows in hello, and in the latency of replies.
func TestMembers(t *testing.T) {
	d, err := Start(t.Context(), Options{Topology: ReplicaSet, Members: 4, MemberConfigs: []Member{
		member(t, `{"tags": {"dc": "east"}}`), member(t, `{"hidden": true, "priority": 0}`),
		member(t, `{"priority": 0, "secondaryDelaySecs": 3600, "latencyMS": 50}`), member(t, `{"arbiterOnly": true}`)}})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, d.Close()) })
	var hello [4]bson.Raw
	var took [4]time.Duration
	for i, host := range d.Hosts() {
		client, err := mongo.Connect(options.Client().SetHosts([]string{host}).SetDirect(true))
		testkit.Check(t, err)
		sayHello := func() bson.Raw {
			raw, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Raw()
			testkit.Check(t, err)
			return raw
		}
		sayHello() // opens the connection
		begun := time.Now()
		hello[i], took[i] = sayHello(), time.Since(begun)
		testkit.Check(t, client.Disconnect(context.Background()))
	}
	for _, r := range []struct {
		reason string
		member int
		key    string
		want   string
	}{
		{"tags", 0, "tags", `{"dc": "east"}`}, {"primary", 0, "isWritablePrimary", "true"},
		{"hidden member", 1, "hidden", "true"}, {"member of priority 0", 2, "passive", "true"},
		{"arbiter", 3, "arbiterOnly", "true"}, {"an arbiter is not a secondary", 3, "secondary", "false"},
	} {
		testkit.Equal(t, r.reason, hello[r.member].Lookup(r.key).String(), r.want)
	}
	date := func(i int) time.Time { return hello[i].Lookup("lastWrite", "lastWriteDate").Time() }
	if behind := date(0).Sub(date(2)); behind < 3590*time.Second || behind > 3610*time.Second {
		t.Errorf("the delayed member is %v behind", behind)
	}
	if took[2] < 50*time.Millisecond {
		t.Errorf("the member with latency replies after %v", took[2])
	}
}

func TestInvalidMembers(t *testing.T) {
	for _, r := range []struct {
		o    Options
		want string
	}{
		{Options{MemberConfigs: []Member{{}}}, "a standalone has no members"},
		{Options{Topology: ReplicaSet, Members: 1, MemberConfigs: []Member{{}, {}}},
			"settings for 2 members, but the replica set has 1"},
		{Options{Topology: ReplicaSet, Members: 1, MemberConfigs: []Member{member(t, `{"priority": 0}`)}}, "priority > 0"},
	} {
		_, err := Start(t.Context(), r.o)
		testkit.ErrorContains(t, err, r.want)
	}
	for _, r := range []struct{ text, want string }{
		{`[1]`, "must be a document"}, {`{`, "must be a document"}, {`{"tags": 3}`, "tags must be a document"},
		{`{"priority": "x"}`, "priority must be a number"}, {`{"hidden": 1}`, "hidden must be true or false"}, {`{"color": "red"}`, `unknown key "color"`},
		{`{"latencyMS": -1}`, "number of milliseconds"},
		{`{"latencyMS": "1"}`, "number of milliseconds"},
	} {
		_, err := ParseMember(r.text)
		testkit.ErrorContains(t, err, r.want)
	}
}
