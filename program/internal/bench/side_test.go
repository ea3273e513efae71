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

// BenchmarkSideBySide runs a quarter of the tests on a replica set in a network, whose replies take 5 ms longer, with real
// backoffs: one by one, and several side by side.
func BenchmarkSideBySide(b *testing.B) {
	d := embedded.StartT(b, embedded.Options{Topology: embedded.ReplicaSet})
	uri := distant(b, d.Hosts())
	for _, origin := range []string{"own", "official"} {
		for _, specification := range suitetest.Specifications() {
			path, found := filepath.Join(testkit.Root(b), "specs", specification), true
			if origin == "official" {
				path, found = testkit.FindOfficial(b, specification)
			}
			if !found {
				continue
			}
			n := 0
			suites := suitetest.Some(suitetest.Load(b, path), func() bool { n++; return n%4 == 0 })
			for _, jobs := range []int{1, 2, 4, 8, 16} {
				b.Run(fmt.Sprintf("%s-%s/jobs=%d", origin, specification, jobs), func(b *testing.B) { beside(b, uri, suites, jobs) })
			}
		}
	}
}

func beside(b *testing.B, uri string, suites []*specs.Suite, jobs int) {
	e, err := reference.New(reference.Options{})
	testkit.Check(b, err)
	defer func() { testkit.Check(b, e.Close()) }()
	source, err := deployment.OpenCluster(context.Background(),
		deployment.ClusterOptions{URI: uri, FailPointMode: deployment.FailPointsProxy, Jobs: jobs})
	testkit.Check(b, err)
	defer func() { testkit.Check(b, source.Close()) }()
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
