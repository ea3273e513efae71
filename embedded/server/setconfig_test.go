package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// setDocument is a configuration in Extended JSON whose members are given.
func setDocument(t *testing.T, text string) bson.Raw {
	t.Helper()
	if strings.HasPrefix(text, "[") {
		text = `{"_id": "rs", "members": ` + text + `}`
	}
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc
}

func TestParseSetConfig(t *testing.T) {
	var voters []string
	for i := range 8 {
		voters = append(voters, fmt.Sprintf(`{"_id": %d, "host": "h:%d"}`, i, i))
	}
	eight, seven := strings.Join(voters, ", "), strings.Join(voters[1:], ", ")
	for _, row := range []struct {
		reason, version, text string
		code                  int32 // 0: accepted
	}{
		{"one member", "8.0", `[{"_id": 0, "host": "h:1"}]`, 0},
		{"every field", "8.0", `{"_id": "rs", "version": 3, "term": 1, "protocolVersion": 1, "configsvr": true,
			"settings": {"electionTimeoutMillis": 1000}, "members": [{"_id": 0, "host": "h:1"},
			{"_id": 1, "host": "h:2", "arbiterOnly": true}, {"_id": 2, "host": "h:3", "priority": 0, "hidden": true, "votes": 0,
			"secondaryDelaySecs": 5, "buildIndexes": false, "tags": {"a": "b"}}]}`, 0},
		{"numbers for switches, as old shells send them", "8.0", `[{"_id": 0, "host": "h:1"}, {"_id": 1, "host": "h:2", "arbiterOnly": 1}]`, 0},
		{"no name", "8.0", `{"members": [{"_id": 0, "host": "h:1"}]}`, 93},
		{"no members", "8.0", `{"_id": "rs"}`, 93},
		{"members that are not documents", "8.0", `{"_id": "rs", "members": [1]}`, 14},
		{"an empty list", "8.0", `[]`, 93},
		{"an unknown field", "8.0", `{"_id": "rs", "crown": 1, "members": []}`, 40415},
		{"an unknown field, in the words of 4.4", "4.4", `{"_id": "rs", "crown": 1, "members": []}`, 2},
		{"version 0", "8.0", `{"_id": "rs", "version": 0, "members": [{"_id": 0, "host": "h:1"}]}`, 93},
		{"a member without an id", "8.0", `[{"host": "h:1"}]`, 93},
		{"a member without a host", "8.0", `[{"_id": 0}]`, 93},
		{"an id that is too large", "8.0", `[{"_id": 256, "host": "h:1"}]`, 93},
		{"an id twice", "8.0", `[{"_id": 0, "host": "h:1"}, {"_id": 0, "host": "h:2"}]`, 93},
		{"a host twice, once without the default port", "8.0", `[{"_id": 0, "host": "h"}, {"_id": 1, "host": "h:27017"}]`, 93},
		{"hidden and electable", "8.0", `[{"_id": 0, "host": "h:1"}, {"_id": 1, "host": "h:2", "hidden": true}]`, 93},
		{"delayed and electable", "8.0", `[{"_id": 0, "host": "h:1"}, {"_id": 1, "host": "h:2", "secondaryDelaySecs": 1}]`, 93},
		{"without indexes and electable", "8.0", `[{"_id": 0, "host": "h:1"}, {"_id": 1, "host": "h:2", "buildIndexes": false}]`, 93},
		{"an arbiter with a high priority", "8.0", `[{"_id": 0, "host": "h:1"}, {"_id": 1, "host": "h:2", "arbiterOnly": true, "priority": 2}]`, 93},
		{"an arbiter with tags", "8.0", `[{"_id": 0, "host": "h:1"}, {"_id": 1, "host": "h:2", "arbiterOnly": true, "tags": {"a": "b"}}]`, 93},
		{"an arbiter without a vote", "8.0", `[{"_id": 0, "host": "h:1"}, {"_id": 1, "host": "h:2", "arbiterOnly": true, "votes": 0}]`, 93},
		{"electable without a vote", "8.0", `[{"_id": 0, "host": "h:1"}, {"_id": 1, "host": "h:2", "votes": 0}]`, 93},
		{"two votes", "8.0", `[{"_id": 0, "host": "h:1", "votes": 2}]`, 93},
		{"nobody can be elected", "8.0", `[{"_id": 0, "host": "h:1", "priority": 0}]`, 93},
		{"a negative priority", "8.0", `[{"_id": 0, "host": "h:1", "priority": -1}]`, 93},
		{"eight voters", "8.0", "[" + eight + "]", 93},
		{"seven voters", "8.0", "[" + seven + "]", 0},
	} {
		profile, err := ProfileNamed(row.version)
		testkit.Check(t, err)
		_, err = ParseSetConfig(setDocument(t, row.text), profile)
		var refused *command.Error
		switch {
		case row.code == 0 && err != nil:
			t.Errorf("%s: %v", row.reason, err)
		case row.code != 0 && (!errors.As(err, &refused) || refused.Code != row.code):
			t.Errorf("%s: got %v, not code %d", row.reason, err, row.code)
		}
	}
}

// Votes, priorities and presence decide who is primary.
func TestElections(t *testing.T) {
	profile, err := ProfileNamed("8.0")
	testkit.Check(t, err)
	const members = `[{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1", "priority": 5}, {"_id": 2, "host": "c:1", "arbiterOnly": true}]`
	config, err := ParseSetConfig(setDocument(t, members), profile)
	testkit.Check(t, err)
	c := NewCluster(Config{Kind: ReplicaSet, Profile: profile, SetName: "rs"})
	defer func() { testkit.Check(t, c.Close()) }()
	_, err = c.Configure(config)
	testkit.Check(t, err)
	there := map[string]*Server{}
	for _, step := range []struct{ reason, host, primary string }{
		{"one of three votes is not a majority", "a:1", ""},
		{"an arbiter votes", "c:1", "a:1"},
		{"a higher priority takes over", "b:1", "b:1"},
		{"the next one follows", "-b:1", "a:1"},
		{"without a majority nobody is primary", "-c:1", ""},
		{"a member that comes back takes over", "b:1", "b:1"},
		{"an arbiter is not elected", "-a:1", ""},
		{"the electable member is elected again", "c:1", "b:1"},
	} {
		if host, leaves := strings.CutPrefix(step.host, "-"); leaves {
			c.Leave(there[host])
		} else if there[host], err = c.Join(host, Place{}); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		got := ""
		if p := c.Primary(); p != nil {
			got = p.Address()
		}
		testkit.Equal(t, step.reason+": the primary", got, step.primary)
	}
	for _, host := range []string{"d:1", "b:1"} {
		if _, err := c.Join(host, Place{}); err == nil {
			t.Errorf("%s, a stranger or a member, joins", host)
		}
	}
	if _, err := c.Join("a:1", Place{Parameters: bson.D{{Key: "nonsense", Value: 1}}}); !errors.Is(err, ErrParameter) {
		t.Errorf("an unknown parameter: %v", err)
	}
}
