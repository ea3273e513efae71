package cli

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
)

// localBench notes what is asked of local clusters.
type localBench struct {
	*bench
	options deployment.LocalOptions
	opened  bool
	kept    bool // the logs
}

func newLocalBench(t *testing.T) *localBench {
	b := &localBench{bench: newBench()}
	b.env["UTR_STATE_DIR"] = t.TempDir()
	b.Local = func(_ context.Context, o deployment.LocalOptions) (LocalSource, error) {
		b.options, b.opened = o, true
		return localSource{noSource{[]deployment.Description{{Name: "replicaset 8.0"}}}, b}, nil
	}
	return b
}

type localSource struct {
	noSource
	bench *localBench
}

func (s localSource) KeepLogs() { s.bench.kept = true }

func TestLocalFlags(t *testing.T) {
	file := suiteFile(t)
	asking := filepath.Join(t.TempDir(), "asking.yml")
	write(t, asking, strings.NewReplacer("\"1.0\"", "\"1.1\"", "tests:\n", "runOnRequirements: [{serverParameters: {enableTestCommands: true}}]\ntests:\n").Replace(suite))
	on, off := true, false
	for _, row := range []struct {
		reason string
		args   []string
		env    string // UTR_URI
		want   deployment.LocalOptions
	}{
		{"what is there by default", []string{"--local", "/r", file}, "",
			deployment.LocalOptions{Where: "/r", Members: 3, Mongoses: 2, Shards: 1, Jobs: 1}},
		{"all that can be said", []string{"--local", "/r", "--topology", "sharded", "--members", "5", "--mongoses", "4", "--local-shards", "2", "--jobs", "3", "--tls", "--auth", "on", file}, "",
			deployment.LocalOptions{Where: "/r", Topologies: []deployment.Topology{deployment.Sharded}, Members: 5, Mongoses: 4, Shards: 2, Jobs: 3, TLS: true, Auth: &on}},
		{"every topology is no topology", []string{"--local", "mongod", "--topology", "all", "--auth", "off", file}, "",
			deployment.LocalOptions{Where: "mongod", Members: 3, Mongoses: 2, Shards: 1, Jobs: 1, Auth: &off}},
		{"a suite that asks for parameters", []string{"--local", "/r", asking}, "",
			deployment.LocalOptions{Where: "/r", Members: 3, Mongoses: 2, Shards: 1, Jobs: 1, Parameters: true}},
		{"a flag goes before the environment", []string{"--local", "/r", file}, "mongodb://elsewhere/",
			deployment.LocalOptions{Where: "/r", Members: 3, Mongoses: 2, Shards: 1, Jobs: 1}},
	} {
		b := newLocalBench(t)
		b.env[envURI] = row.env
		if code := b.Main(t.Context(), append([]string{"run"}, row.args...)); code != 0 {
			t.Errorf("%s: exit code %d: %s", row.reason, code, b.err.String())
			continue
		}
		if d := cmp.Diff(row.want, b.options, cmpopts.IgnoreFields(deployment.LocalOptions{}, "Ledger", "Note", "Secret")); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, d)
		}
		if b.options.Ledger == nil || b.options.Note == nil || b.options.Secret == nil {
			t.Errorf("%s: nothing would be remembered or told", row.reason)
		}
		if b.before != "" {
			t.Errorf("%s: clusters of our own, and yet %q", row.reason, b.before)
		}
	}
}

func TestLocalRefused(t *testing.T) {
	file := suiteFile(t)
	for _, row := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"no release", []string{"--local", ""}, "--local is empty"},
		{"a version that is played", []string{"--local", "/r", "--server-version", "8.0"}, "the binaries have the version that they have"},
		{"two places", []string{"--local", "/r", "--uri", "mongodb://h/"}, "--local and --uri both say where to run"},
		{"two places, of which one makes clusters", []string{"--local", "/r", "--orchestration", "http://h:1"}, "--local and --orchestration both say where to run"},
		{"shards of nothing", []string{"--local-shards", "2"}, "goes with --local"},
		{"no shards", []string{"--local", "/r", "--local-shards", "0"}, "at least 1"},
	} {
		b := newLocalBench(t)
		code := b.Main(t.Context(), append(append([]string{"run"}, row.args...), file))
		if code != ExitUsage || !strings.Contains(b.err.String(), row.want) || b.opened {
			t.Errorf("%s: exit code %d, opened %t: %s", row.reason, code, b.opened, b.err.String())
		}
	}
	b := newLocalBench(t)
	if code := b.Main(t.Context(), []string{"run", "--local", "/r", "--dry-run", file}); code != 0 || b.opened {
		t.Errorf("a dry run: exit code %d, opened %t", code, b.opened)
	}
	b = newLocalBench(t)
	b.Local = func(context.Context, deployment.LocalOptions) (LocalSource, error) {
		return nil, errors.New("there is no mongod")
	}
	if code := b.Main(t.Context(), []string{"run", "--local", "/r", file}); code != ExitBroken || !strings.Contains(b.err.String(), "there is no mongod") {
		t.Errorf("no binaries: exit code %d: %s", code, b.err.String())
	}
}

// The logs of the servers stay where something went wrong with the tests, and
// not where somebody ended the run.
func TestLocalLogsAreKept(t *testing.T) {
	file := suiteFile(t)
	for _, row := range []struct {
		reason string
		change func(*localBench, context.CancelFunc)
		want   bool
	}{
		{"all well", func(*localBench, context.CancelFunc) {}, false},
		{"a test failed", func(b *localBench, _ context.CancelFunc) { b.summary.Failed = 1 }, true},
		{"a test broke", func(b *localBench, _ context.CancelFunc) { b.summary.Broken = 1 }, true},
		{"the run broke", func(b *localBench, _ context.CancelFunc) { b.fails = errors.New("no") }, true},
		{"a problem of the run", func(b *localBench, _ context.CancelFunc) { b.summary.Problems = []string{"x"} }, true},
		{"interrupted", func(b *localBench, cancel context.CancelFunc) { b.summary.Failed = 1; b.during = cancel }, false},
	} {
		b := newLocalBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		row.change(b, cancel)
		b.Main(ctx, []string{"run", "--local", "/r", file})
		cancel()
		if b.kept != row.want {
			t.Errorf("%s: kept %t", row.reason, b.kept)
		}
	}
}

// The command that runs a test again names the binaries, and no version that an
// embedded deployment would play.
func TestLocalRerun(t *testing.T) {
	b := newLocalBench(t)
	file := suiteFile(t)
	if code := b.Main(t.Context(), []string{"run", "--local", "/r", "--local-shards", "2", "--members", "1", file}); code != 0 {
		t.Fatal(b.err.String())
	}
	got := strings.Join(b.ran.Rerun(result.TestID{File: "f", Description: "d", Deployment: "sharded 8.0"}), " ")
	if want := "utr run --members 1 --local /r --local-shards 2 --topology sharded --run ^f: d$ f"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
