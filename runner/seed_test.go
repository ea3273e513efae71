package runner

import (
	"context"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Initial data that was written just as the primary stepped down is made again;
// that a majority does not come in time is told.
func TestSeedWithoutAMajority(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := embedded.Start(ctx, embedded.Options{Topology: embedded.ReplicaSet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	opened, err := deployment.OpenCluster(ctx, deployment.ClusterOptions{URI: d.URI()})
	if err != nil {
		t.Fatal(err)
	}
	lent, err := opened.Acquire(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSite(ctx, lent, dialer(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	value, err := source.ParseYAML("f", []byte(`[{_id: 1}, {_id: 2}]`))
	if err != nil {
		t.Fatal(err)
	}
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
