package runner

import (
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// lend starts an embedded deployment, and lends it as one that somebody else
// runs.
func lend(t *testing.T, options embedded.Options, as deployment.ClusterOptions) deployment.Deployment {
	t.Helper()
	ctx := testkit.Context(t)
	d, err := embedded.Start(ctx, options)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	as.URI, as.SingleURI = d.URI(), d.SingleURI()
	source, err := deployment.OpenCluster(ctx, as)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = source.Close() })
	lent, err := source.Acquire(ctx, 0)
	testkit.Check(t, err)
	return lent
}

// Initial data that was written just as the primary stepped down is made again;
// an error is reported if a majority does not come in time.
func TestSeedWithoutAMajority(t *testing.T) {
	ctx := testkit.Context(t)
	s, err := openSite(ctx, lend(t, embedded.Options{Topology: embedded.ReplicaSet}, deployment.ClusterOptions{}), dialer(""))
	testkit.Check(t, err)
	defer s.close()
	value, err := source.ParseYAML("f", []byte(`[{_id: 1}, {_id: 2}]`))
	testkit.Check(t, err)
	data := []specs.CollectionData{{DatabaseName: "db", CollectionName: "c", Documents: value.Items}}
	for _, r := range []struct {
		reason, command string
		code            int32
		made            bool
	}{
		{"nothing is wrong", "ping", 91, true},
		{"the primary shut down after the insert", "insert", 91, true},
		{"it stepped down after the drop", "drop", 11602, true},
		{"the others are late", "insert", 64, false},
	} {
		if _, err := s.run(ctx, "admin", bson.D{
			{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{r.command}},
				{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: r.code}, {Key: "errmsg", Value: "so it is"}}}}},
		}); err != nil {
			t.Fatal(err)
		}
		err := s.seed(ctx, data, ReseedAlways)
		if (err == nil) != r.made {
			t.Errorf("%s: %v", r.reason, err)
		}
		if found, err := s.commands.documents(ctx, "db", "c"); r.made && (err != nil || len(found) != 2) {
			t.Errorf("%s: %v, %v", r.reason, found, err)
		}
	}
}
