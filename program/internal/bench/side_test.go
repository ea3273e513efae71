package bench

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/proxy"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// BenchmarkSideBySide runs a part of the tests with real backoffs, one by one and several side by side: on a replica set
// in a network, whose replies take 5 ms longer, and on one of each release of UTR_LOCAL_RELEASES.
func BenchmarkSideBySide(b *testing.B) {
	d := embedded.StartT(b, embedded.Options{Topology: embedded.ReplicaSet})
	uri := distant(b, d.Hosts())
	opens := map[string]open{"": func(ctx context.Context, jobs int) (deployment.Source, error) {
		return deployment.OpenCluster(ctx, deployment.ClusterOptions{URI: uri, FailPointMode: deployment.FailPointsProxy, Jobs: jobs})
	}}
	for _, release := range testkit.Releases() {
		opens[filepath.Base(release)+"/"] = func(ctx context.Context, jobs int) (deployment.Source, error) {
			return deployment.OpenLocal(ctx, deployment.LocalOptions{Where: release, Jobs: jobs, EmbeddedOptions: deployment.EmbeddedOptions{
				Topologies: []deployment.Topology{deployment.ReplicaSet}, FailPointMode: deployment.FailPointsProxy}})
		}
	}
	for _, r := range []struct {
		origin, specification string
		every                 int // one in so many tests
	}{
		{"own", "retryable-reads", 4},
		{"own", "retryable-writes", 4},
		{"own", "client-backpressure", 1}, // a quarter is so short that its last tests dominate
		{"official", "retryable-reads", 4},
		{"official", "retryable-writes", 4},
		{"official", "client-backpressure", 4},
	} {
		path, found := filepath.Join(testkit.Root(b), "specs", r.specification), true
		if r.origin == "official" {
			path, found = testkit.FindOfficial(b, r.specification)
		}
		if !found {
			continue
		}
		n := 0
		suites := suitetest.Some(suitetest.Load(b, path), func() bool { n++; return n%r.every == 0 })
		for servers, open := range opens {
			for _, jobs := range []int{1, 2, 4, 8, 16} {
				b.Run(fmt.Sprintf("%s%s-%s/jobs=%d", servers, r.origin, r.specification, jobs),
					func(b *testing.B) { beside(b, open, suites, jobs) })
			}
		}
	}
}

// open returns a source of a replica set that a number of workers share.
type open func(ctx context.Context, jobs int) (deployment.Source, error)

func beside(b *testing.B, open open, suites []*specs.Suite, jobs int) {
	e, err := reference.New(reference.Options{})
	testkit.Check(b, err)
	defer func() { testkit.Check(b, e.Close()) }()
	source, err := open(context.Background(), jobs)
	testkit.Check(b, err)
	defer func() { testkit.Check(b, source.Close()) }()
	started, err := source.Acquire(context.Background(), 0) // the start of local servers is not measured
	testkit.Check(b, err)
	source.Release(started, false)
	for b.Loop() {
		summary, err := runner.Run(context.Background(), suites, runner.Config{Engine: e, Source: source, Jobs: jobs})
		testkit.Check(b, err)
		if summary.Passed == 0 || summary.Failed+summary.Broken > 0 {
			b.Fatalf("%d passed, %d failed, %d broken", summary.Passed, summary.Failed, summary.Broken)
		}
	}
}

// distant returns a connection string for servers in a network: their replies take 5 ms longer.
func distant(b *testing.B, hosts []string) string {
	b.Helper()
	p, err := proxy.Start(proxy.Options{Dial: func(ctx context.Context, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		return late{c}, err
	}}, hosts...)
	testkit.Check(b, err)
	b.Cleanup(p.Close)
	uri := "mongodb://" + p.Address(hosts[0]) + "/?replicaSet=" + embedded.DefaultSetName
	return uri
}

// late is a connection from which bytes are read 5 ms after they arrive.
type late struct{ net.Conn }

func (c late) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(5 * time.Millisecond)
	return n, err
}
