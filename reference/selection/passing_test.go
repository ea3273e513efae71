package selection_test

import (
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/selection"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestPass(t *testing.T) {
	for _, r := range []struct {
		reason   string
		topology selection.TopologyType
		server   selection.ServerType
		mode     selection.Mode
		want     string // "" for nothing
	}{
		{"a standalone is never told", "Single", "Standalone", "secondary", ""},
		{"nor with the default", "Single", "Standalone", "", ""},
		{"a direct member is told to answer whatever it is", "Single", "RSSecondary", "", "primaryPreferred"},
		{"the same for primary said aloud", "Single", "RSPrimary", "primary", "primaryPreferred"},
		{"another mode goes as it is", "Single", "RSSecondary", "nearest", "nearest"},
		{"an arbiter is a member too", "Single", "RSArbiter", "", "primaryPreferred"},
		{"a direct mongos gets what a mongos gets", "Single", "Mongos", "primary", ""},
		{"and the mode, if it is another", "Single", "Mongos", "secondaryPreferred", "secondaryPreferred"},
		{"mongos: primary is not sent", "Sharded", "Mongos", "primary", ""},
		{"mongos: secondary is", "Sharded", "Mongos", "secondary", "secondary"},
		{"load balancer: as for a mongos", "LoadBalanced", "LoadBalancer", "nearest", "nearest"},
		{"load balancer: primary is not sent", "LoadBalanced", "LoadBalancer", "", ""},
		{"replica set: primary is not sent", "ReplicaSetWithPrimary", "RSPrimary", "primary", ""},
		{"replica set: the preference goes to a primary too", "ReplicaSetWithPrimary", "RSPrimary", "secondaryPreferred", "secondaryPreferred"},
		{"replica set without a primary: the same", "ReplicaSetNoPrimary", "RSSecondary", "primaryPreferred", "primaryPreferred"},
		{"unknown topology: nothing is sent at all", "Unknown", "Unknown", "secondary", ""},
	} {
		got, send := selection.Pass(r.topology, r.server, selection.Preference{Mode: r.mode})
		if send != (r.want != "") || string(got.Mode) != r.want {
			t.Errorf("%s: got %q, %v", r.reason, got.Mode, send)
		}
	}
}

func TestDocument(t *testing.T) {
	yes := true
	for _, row := range []struct{ reason, preference, want string }{
		{"primary has the mode alone", "primary -", `{"mode":"primary"}`},
		{"the mode is in camel case", "secondaryPreferred", `{"mode":"secondaryPreferred","hedge":{"enabled":true}}`},
		{"-1 is left out", "nearest <-1", `{"mode":"nearest","hedge":{"enabled":true}}`},
		{"what an int32 does not hold stays a long", "nearest <2147483648",
			`{"mode":"nearest","maxStalenessSeconds":{"$numberLong":"2147483648"},"hedge":{"enabled":true}}`},
		{"all fields", "secondary rack:1,dc:ny - <120",
			`{"mode":"secondary","tags":[{"dc":"ny","rack":"1"},{}],"maxStalenessSeconds":{"$numberInt":"120"},"hedge":{"enabled":true}}`},
	} {
		p := preferred(row.preference)
		p.Hedge = &yes
		got, err := bson.MarshalExtJSON(p.Document(), true, false)
		testkit.Check(t, err)
		testkit.Equal(t, row.reason, string(got), row.want)
	}
	testkit.Equal(t, "without hedge", mode(nearest).Document(), bson.D{{Key: "mode", Value: "nearest"}})
}
