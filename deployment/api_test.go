package deployment

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
)

// Servers with requireApiVersion refuse every client that declares no version,
// and so do ours with them (Stable API, "Testing with required API version").
func TestServersThatWantAnAPI(t *testing.T) {
	for _, r := range []struct {
		reason string
		kind   embedded.Topology
	}{
		{"a server", embedded.Standalone},
		{"members", embedded.ReplicaSet},
		{"routers", embedded.Sharded},
		{"behind a load balancer", embedded.LoadBalanced},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d := serving(t, embedded.Options{Topology: r.kind, Version: "8.0", Parameters: bson.D{{Key: "requireApiVersion", Value: true}}})
			o := ClusterOptions{URI: d.URI(), SingleURI: d.SingleURI(), ServerAPI: "1", Lock: &LockOptions{}}
			s, err := OpenCluster(within(t), o)
			if err != nil {
				t.Fatal(err)
			}
			if swept := clearFailPoints(within(t), s.(*clusterSource).cluster.uri, s.Offers()[0], nil); len(swept.Unasked) > 0 {
				t.Error(swept.Unasked)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			target := Target{URI: d.URI(), ServerAPI: "1"}
			if swept, err := ClearFailPoints(within(t), target); err != nil || len(swept.Unasked) > 0 {
				t.Error(swept.Unasked, err)
			}
			if _, _, err := ClearLock(within(t), target, nil); err != nil {
				t.Error(err)
			}
			o.ServerAPI, o.URI = "", withSelection(o.URI)
			if s, err := OpenCluster(within(t), o); err == nil {
				t.Error("clients that declare none can use it", s.Close())
			} else if !strings.Contains(err.Error(), "--server-api") {
				t.Errorf("the error does not tell what to do: %v", err)
			}
		})
	}
}

// withSelection has clients give up soon.
func withSelection(text string) string {
	u, err := parseURI(text)
	if err != nil {
		return text
	}
	return u.with("serverSelectionTimeoutMS", "1500").String()
}
