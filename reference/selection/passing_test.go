package selection_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/reference/selection"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestPass(t *testing.T) {
	type row struct {
		reason   string
		topology selection.TopologyType
		server   selection.ServerType
		mode     selection.Mode
		want     string // "" for nothing
	}
	for _, r := range []row{
		{"a standalone is never told", selection.Single, selection.Standalone, selection.Secondary, ""},
		{"nor with the default", selection.Single, selection.Standalone, "", ""},
		{"a direct member is told to answer whatever it is", selection.Single, selection.RSSecondary, "", "primaryPreferred"},
		{"the same for primary said aloud", selection.Single, selection.RSPrimary, selection.Primary, "primaryPreferred"},
		{"another mode goes as it is", selection.Single, selection.RSSecondary, selection.Nearest, "nearest"},
		{"an arbiter is a member too", selection.Single, selection.RSArbiter, "", "primaryPreferred"},
		{"a direct mongos gets what a mongos gets", selection.Single, selection.Mongos, selection.Primary, ""},
		{"and the mode, if it is another", selection.Single, selection.Mongos, selection.SecondaryPreferred, "secondaryPreferred"},
		{"mongos: primary is not sent", selection.Sharded, selection.Mongos, selection.Primary, ""},
		{"mongos: secondary is", selection.Sharded, selection.Mongos, selection.Secondary, "secondary"},
		{"load balancer: as for a mongos", selection.LoadBalanced, selection.LoadBalancer, selection.Nearest, "nearest"},
		{"load balancer: primary is not sent", selection.LoadBalanced, selection.LoadBalancer, "", ""},
		{"replica set: primary is not sent", selection.ReplicaSetWithPrimary, selection.RSPrimary, selection.Primary, ""},
		{"replica set: the preference goes to a primary too", selection.ReplicaSetWithPrimary, selection.RSPrimary, selection.SecondaryPreferred, "secondaryPreferred"},
		{"replica set without a primary: the same", selection.ReplicaSetNoPrimary, selection.RSSecondary, selection.PrimaryPreferred, "primaryPreferred"},
		{"unknown topology: nothing is sent at all", selection.Unknown, selection.UnknownServer, selection.Secondary, ""},
	} {
		got, send := selection.Pass(r.topology, r.server, selection.Preference{Mode: r.mode})
		if send != (r.want != "") || string(got.Mode) != r.want {
			t.Errorf("%s: got %q, %v", r.reason, got.Mode, send)
		}
	}
}

func TestDocument(t *testing.T) {
	yes, seconds, none, long := true, int64(120), int64(-1), int64(1)<<31
	type row struct {
		reason string
		p      selection.Preference
		want   bson.D
	}
	for _, r := range []row{
		{"primary has the mode alone", selection.Preference{TagSets: []tags{{}}, Hedge: &yes}, bson.D{{Key: "mode", Value: "primary"}}},
		{"the mode is in camel case", mode(selection.SecondaryPreferred), bson.D{{Key: "mode", Value: "secondaryPreferred"}}},
		{"-1 is left out", selection.Preference{Mode: selection.Nearest, MaxStalenessSeconds: &none}, bson.D{{Key: "mode", Value: "nearest"}}},
		{"what an int32 does not hold stays a long", selection.Preference{Mode: selection.Nearest, MaxStalenessSeconds: &long},
			bson.D{{Key: "mode", Value: "nearest"}, {Key: "maxStalenessSeconds", Value: long}}},
		{"all fields", selection.Preference{Mode: selection.Secondary, TagSets: []tags{{"rack": "1", "dc": "ny"}, {}}, MaxStalenessSeconds: &seconds, Hedge: &yes},
			bson.D{{Key: "mode", Value: "secondary"},
				{Key: "tags", Value: bson.A{bson.D{{Key: "dc", Value: "ny"}, {Key: "rack", Value: "1"}}, bson.D{}}},
				{Key: "maxStalenessSeconds", Value: int32(120)},
				{Key: "hedge", Value: bson.D{{Key: "enabled", Value: true}}}}},
	} {
		if diff := cmp.Diff(r.want, r.p.Document()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", r.reason, diff)
		}
	}
}
