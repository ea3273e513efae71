package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestParseSetConfig(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/configurations.txt", func(t *testing.T, in string) string {
		if strings.HasPrefix(in, "[") {
			in = `{"_id": "rs", "members": ` + in + `}`
		}
		set, err := ParseSetConfig(testkit.Extended[bson.Raw](t, in))
		if refused := (*fault.Error)(nil); errors.As(err, &refused) {
			return fmt.Sprint("error ", refused.Code, " ", refused)
		}
		testkit.Check(t, err)
		var members []string
		for _, m := range set.Members {
			members = append(members, fmt.Sprintf("%+v", m))
		}
		return fmt.Sprintf("%s %d %t %v %s", set.Name, set.Version, set.ConfigServer, set.Settings,
			strings.Join(members, " "))
	})
}

// Votes and priorities of the running members determine the primary.
func TestElections(t *testing.T) {
	const members = `[{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1", "priority": 5}, {"_id": 2, "host": "c:1", "arbiterOnly": true}]`
	config, err := ParseSetConfig(testkit.Extended[bson.Raw](t, `{"_id": "rs", "members": `+members+`}`))
	testkit.Check(t, err)
	v, err := version.Named("8.0")
	testkit.Check(t, err)
	c := NewCluster(Config{Topology: ReplicaSet, Version: v, SetName: "rs",
		Backend: commands.New(commands.Options{ReplicaSet: true})})
	defer func() { testkit.Check(t, c.Close()) }()
	testkit.Check(t, c.Configure(config))
	servers := map[string]*Server{}
	for _, step := range []struct{ reason, host, primary string }{
		{"one of three votes is not a majority", "a:1", ""},
		{"an arbiter votes", "c:1", "a:1"},
		{"a member with higher priority takes over", "b:1", "b:1"},
		{"another member takes over", "-b:1", "a:1"},
		{"no majority, no primary", "-c:1", ""},
		{"a restarted member of higher priority takes over", "b:1", "b:1"},
		{"an arbiter is not elected", "-a:1", ""},
		{"the electable member is elected again", "c:1", "b:1"},
	} {
		if host, leaves := strings.CutPrefix(step.host, "-"); leaves {
			testkit.Check(t, c.Kill(servers[host]))
		} else if servers[host], err = c.Join(host, Process{}); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		got := ""
		if p := c.Primary(); p != nil {
			got = p.Address()
		}
		testkit.Equal(t, step.reason+": the primary", got, step.primary)
	}
	for _, host := range []string{"d:1", "b:1"} {
		if _, err := c.Join(host, Process{}); err == nil {
			t.Errorf("%s joined", host)
		}
	}
}
