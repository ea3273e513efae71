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

// Members differ in what hello says of them, and in when they answer.
func TestMembers(t *testing.T) {
	d, err := Start(t.Context(), Options{Topology: ReplicaSet, Members: 4, Set: []Member{
		member(t, `{"tags": {"dc": "east"}}`), member(t, `{"hidden": true, "priority": 0}`),
		member(t, `{"priority": 0, "secondaryDelaySecs": 3600, "latencyMS": 50}`), member(t, `{"arbiterOnly": true}`)}})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, d.Close()) })
	var hello [4]bson.Raw
	var took [4]time.Duration
	for i, host := range d.Hosts() {
		client, err := mongo.Connect(options.Client().SetHosts([]string{host}).SetDirect(true))
		testkit.Check(t, err)
		ask := func() bson.Raw {
			raw, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Raw()
			testkit.Check(t, err)
			return raw
		}
		ask() // opens the connection
		begun := time.Now()
		hello[i], took[i] = ask(), time.Since(begun)
		testkit.Check(t, client.Disconnect(context.Background()))
	}
	for _, r := range []struct {
		reason string
		member int
		key    string
		want   any
	}{
		{"the first has a tag", 0, "tags", `{"dc": "east"}`}, {"and is primary", 0, "isWritablePrimary", "true"},
		{"the second is hidden", 1, "hidden", "true"}, {"the third cannot be elected", 2, "passive", "true"},
		{"the fourth is an arbiter", 3, "arbiterOnly", "true"}, {"and no secondary", 3, "secondary", "false"},
	} {
		testkit.Equal(t, r.reason, hello[r.member].Lookup(r.key).String(), r.want)
	}
	date := func(i int) time.Time { return hello[i].Lookup("lastWrite", "lastWriteDate").Time() }
	if behind := date(0).Sub(date(2)); behind < 3590*time.Second || behind > 3610*time.Second {
		t.Errorf("the third is %v behind", behind)
	}
	if took[2] < 50*time.Millisecond {
		t.Errorf("the third answers after %v", took[2])
	}
}

// What no replica set could work with is an error.
func TestMembersThatCannotBe(t *testing.T) {
	one := []Member{{}}
	for _, r := range []struct {
		reason string
		o      Options
		want   string
	}{
		{"no replica set", Options{Set: one}, "a standalone has no members"},
		{"more than there are", Options{Topology: ReplicaSet, Members: 1, Set: []Member{{}, {}}}, "2 members are configured, and there are 1"},
		{"nobody can be elected", Options{Topology: ReplicaSet, Members: 1, Set: []Member{member(t, `{"priority": 0}`)}}, "priority > 0"},
	} {
		_, err := Start(t.Context(), r.o)
		testkit.Fails(t, err, r.want)
	}
	for _, r := range []struct{ text, want string }{
		{`[1]`, "not a document"}, {`{"colour": "red"}`, `unknown key "colour"`}, {`{"latencyMS": -1}`, "a number of milliseconds"},
		{`{"latencyMS": "1"}`, "a number of milliseconds"},
	} {
		_, err := ParseMember(r.text)
		testkit.Fails(t, err, r.want)
	}
}
