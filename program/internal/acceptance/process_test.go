package acceptance

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

func TestMain(m *testing.M) { utrtest.Main(m, func() error { return goleak.Find() }) }

var (
	wellEnded = regexp.MustCompile(`(?m)^[1-9]\d* passed, 0 failed, \d+ skipped$`)
	skipped   = regexp.MustCompile(`(?m)^skipped \d+: (.*)$`)
)

// runWell runs suites. No test may fail, tests may be skipped only for requirements, and
// nothing may be left over.
func runWell(t *testing.T, p *utrtest.Place, args ...string) {
	t.Helper()
	r := p.Run(append([]string{"run"}, args...)...).Want(0)
	if !wellEnded.MatchString(r.Out) {
		t.Error(r.All())
	}
	for _, line := range skipped.FindAllStringSubmatch(r.Out, -1) {
		if !strings.Contains(line[0], ": requirement: ") {
			t.Error(line[0])
		}
	}
	p.Empty()
}

// finds returns a suite of our own that runs quickly.
func finds(t *testing.T) string {
	return filepath.Join(suitetest.OwnFolder(t, "retryable-reads"), "collection-find.yml")
}

// One process serves each topology, and another runs suites on it as on an existing
// cluster. Afterward the ports are free.
func TestServeAndRun(t *testing.T) {
	for _, topology := range suitetest.Topologies() {
		t.Run(string(topology), func(t *testing.T) {
			s := utrtest.NewPlace(t, "UTR_PASSWORD=secret").Serve("--topology", string(topology), "--user", "tester")
			runWell(t, utrtest.NewPlace(t), "--uri", s.URI, "--single-uri", s.Single, finds(t))
			s.Signal(os.Interrupt)
			s.End().Want(0)
			for _, address := range append(utrtest.Hosts(s.URI), utrtest.Hosts(s.Single)...) {
				l, err := net.Listen("tcp", address)
				testkit.Check(t, err)
				_ = l.Close()
			}
		})
	}
}

// utr starts clusters from the binaries of a release and runs suites on all topologies.
func TestLocalRelease(t *testing.T) {
	for _, row := range []struct {
		reason, version string
		args            []string
	}{
		{"the oldest, without load balancing", "4.2", nil},
		{"load balancing must be enabled", "5.0", nil},
		{"the newest, with everything enabled", "8.2",
			[]string{"--auth", "on", "--tls", "--local-shards", "2", "--mongoses", "3"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			runWell(t, utrtest.NewPlace(t, "UTR_SERVER_VERSION="+row.version),
				append([]string{"--local", utrtest.Release(t), "--topology", "all", "smoke"}, row.args...)...)
		})
	}
}

// A shorter version of TestLocalRelease with real binaries.
func TestRealReleases(t *testing.T) {
	releases := testkit.Releases()
	if len(releases) == 0 {
		t.Skipf("not verified: %s does not name a folder with mongod and mongos", testkit.EnvReleases)
	}
	for _, release := range releases {
		for _, args := range [][]string{{"--auth", "off", "smoke"}, {"--auth", "on", "smoke"}, {"--jobs", "2", finds(t)}} {
			t.Run(filepath.Base(release)+" "+strings.Join(args[:2], " "), func(t *testing.T) {
				runWell(t, utrtest.NewPlace(t),
					append([]string{"--local", release, "--topology", "all", "--backoff", "none"}, args...)...)
			})
		}
	}
}
