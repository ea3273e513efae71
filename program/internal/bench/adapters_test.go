package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// runners are the unified test runners of drivers with an adapter. Each runs in a checkout of its driver, in a folder
// of UTR_CHECKOUTS. The time is what the runner itself reports, without its start, in which Node's compiles the driver.
var runners = []struct {
	engine, checkout string
	ready            func(*testing.B)
	command          []string
	environment      func(host, uri string) []string
	passed, took     *regexp.Regexp
	unit             time.Duration // of the time
}{
	{"node", "node-mongodb-native", func(b *testing.B) { testkit.Node(b) },
		[]string{"sh", "-c",
			"exec npx mocha --config test/mocha_mongodb.js --reporter json test/integration/retryable-reads/*.spec.test.ts"},
		func(_, uri string) []string {
			return []string{"AUTH=noauth", "TS_NODE_TRANSPILE_ONLY=1", "MONGODB_URI=" + uri}
		},
		regexp.MustCompile(`"passes": (\d+)`), regexp.MustCompile(`"duration": (\d+)`), time.Millisecond},
	{"pymongo", "mongo-python-driver", func(b *testing.B) { testkit.Python(b, "pymongo", "pytest") },
		[]string{"sh", "-c",
			"exec ${UTR_PYTHON:-python3} -m pytest -q -p no:cacheprovider test/test_retryable_reads_unified.py"},
		func(host, _ string) []string {
			name, port, _ := strings.Cut(host, ":")
			return []string{"DB_IP=" + name, "DB_PORT=" + port}
		},
		regexp.MustCompile(`(\d+) passed`), regexp.MustCompile(` in ([\d.]+)s`), time.Second},
}

// played matches the tests that utr played: those that passed, and known failures.
var played = regexp.MustCompile(`(?m)^(\d+) passed, (?:(\d+) known-failing)?`)

// BenchmarkAdapters plays the official retryable reads with drivers in other languages: with their own runners, and
// with utr through their adapters, on the same server and on embedded deployments of its own. ns/op is the time per
// test.
func BenchmarkAdapters(b *testing.B) {
	utr, suites := command(b), testkit.Official(b, "retryable-reads")
	d, err := embedded.Start(context.Background(), embedded.Options{Topology: embedded.ReplicaSet})
	testkit.Check(b, err)
	b.Cleanup(func() { testkit.Check(b, d.Close()) })
	for _, r := range runners {
		for _, way := range []struct {
			who  string
			args []string
		}{
			{"utr", []string{"--uri", d.URI(), "--overwrite", "--jobs", "8"}},
			{"utr-embedded", []string{"--topology", "replicaset"}},
		} {
			b.Run(r.engine+"/who="+way.who, func(b *testing.B) {
				r.ready(b)
				args := slices.Concat([]string{"run", "--engine", r.engine}, way.args, []string{suites})
				for b.Loop() {
					out, _ := exec.Command(utr, args...).CombinedOutput()
					found := played.FindSubmatch(out)
					if found == nil {
						b.Fatalf("%s", out[max(0, len(out)-1000):])
					}
					perTest(b, b.Elapsed(), number(found[1])+number(found[2]))
				}
			})
		}
		b.Run(r.engine+"/who=driver", func(b *testing.B) {
			r.ready(b)
			folder := filepath.Join(os.Getenv("UTR_CHECKOUTS"), r.checkout)
			if _, err := os.Stat(folder); os.Getenv("UTR_CHECKOUTS") == "" || err != nil {
				b.Skipf("not verified: UTR_CHECKOUTS has no %s, which contains the driver's own runner", r.checkout)
			}
			for b.Loop() {
				c := exec.Command(r.command[0], r.command[1:]...)
				c.Dir, c.Env = folder, append(os.Environ(), r.environment(d.Hosts()[0], d.URI())...)
				out, _ := c.CombinedOutput() // it fails tests of features that the server or the driver lacks
				passed, took := r.passed.FindSubmatch(out), r.took.FindSubmatch(out)
				if passed == nil || took == nil {
					b.Skipf("not verified: the runner in %s is not ready: %s", folder, out[max(0, len(out)-1000):])
				}
				perTest(b, time.Duration(number(took[1])*float64(r.unit)), number(passed[1]))
			}
		})
	}
}

func number(text []byte) float64 {
	n, _ := strconv.ParseFloat(string(text), 64) // 0 if it is empty
	return n
}

// perTest reports the time per test.
func perTest(b *testing.B, took time.Duration, tests float64) {
	b.ReportMetric(float64(took)/tests, "ns/op")
	b.ReportMetric(tests/took.Seconds(), "tests/s")
	b.ReportMetric(tests, "tests")
}
