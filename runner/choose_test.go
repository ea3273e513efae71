package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

func parse(t testing.TB, text string) *specs.Suite { t.Helper(); return parseFile(t, "a.yml", text) }

func parseFile(t testing.TB, name, text string) *specs.Suite {
	t.Helper()
	s, err := specs.Parse(name, []byte(text))
	testkit.Check(t, err)
	return s
}

// oneTest returns a suite of one test with the given fields.
func oneTest(t testing.TB, fields string) *specs.Suite {
	t.Helper()
	return parse(t, "description: x\nschemaVersion: '1.28'\ntests: [{description: a, "+fields+"}]\n")
}

func patterns(list ...string) (out []*regexp.Regexp) {
	for _, p := range list {
		out = append(out, regexp.MustCompile(p))
	}
	return out
}

const choices = `
description: choices
schemaVersion: "1.4"
tests:
  - {description: anywhere, operations: []}
  - {description: sharded, runOnRequirements: [{topologies: [sharded]}], operations: []}
  - {description: with auth, runOnRequirements: [{topologies: [replicaset], auth: true}], operations: []}
  - {description: nowhere, runOnRequirements: [{minServerVersion: "99.0"}], operations: []}
`

// chosen returns where the tests of a suite run, or why they do not.
func chosen(cfg *Config, offers []deployment.Description, suite *specs.Suite) (lines []string) {
	for _, j := range choose([]*specs.Suite{suite}, cfg, offers, engine.Description{}) {
		line := j.id.Description
		if j.id.Deployment != "" {
			line += " on " + j.id.Deployment
		}
		if j.skip != nil {
			line += ": " + j.skip.Reason
		}
		lines = append(lines, line)
	}
	return lines
}

func TestChoose(t *testing.T) {
	offers := []deployment.Description{
		{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Version: [3]int{8}},
		{Name: "replicaset 8.0 auth", Topology: deployment.ReplicaSet, Version: [3]int{8}, Auth: true},
		{Name: "sharded 8.0", Topology: deployment.Sharded, Version: [3]int{8}},
	}
	for _, row := range []struct {
		reason string
		cfg    Config
		want   []string
	}{
		{"each test runs on the first suitable offer", Config{}, []string{
			"anywhere on replicaset 8.0", "sharded on sharded 8.0", "with auth on replicaset 8.0 auth",
			"nowhere: needs server 99.0 or later, the deployment has 8.0"}},
		{"all topologies: each test runs on the first suitable offer of each", Config{AllTopologies: true}, []string{
			"anywhere on replicaset 8.0",
			"sharded on replicaset 8.0: needs topology sharded, the deployment has replicaset",
			"nowhere on replicaset 8.0: needs server 99.0 or later, the deployment has 8.0",
			"with auth on replicaset 8.0 auth",
			"anywhere on sharded 8.0", "sharded on sharded 8.0",
			"with auth on sharded 8.0: needs topology replicaset, the deployment has sharded; " +
				"and needs authentication, which this deployment does not use",
			"nowhere on sharded 8.0: needs server 99.0 or later, the deployment has 8.0"}},
		{"a run pattern selects, a skip pattern excludes",
			Config{Filter: Filter{Run: patterns("^a.yml: .*w"), Skip: patterns("nowhere$")}}, []string{
				"anywhere on replicaset 8.0", "with auth on replicaset 8.0 auth"}},
		{"a shard", Config{Shard: Shard{Index: 1, Count: 2}},
			[]string{"sharded on sharded 8.0", "with auth on replicaset 8.0 auth"}},
		{"a count of 2", Config{Count: 2, Filter: Filter{Skip: patterns("where|auth")}}, []string{
			"sharded on sharded 8.0", "sharded on sharded 8.0"}},
	} {
		testkit.Equal(t, row.reason, strings.Join(chosen(&row.cfg, offers, parse(t, choices)), "\n"),
			strings.Join(row.want, "\n"))
	}
}

// A test runs on the first suitable version. The reason for a skip is the reason of the
// closest offers.
func TestChooseAmongVersions(t *testing.T) {
	var offers []deployment.Description
	for _, v := range [][3]int{{8, 0}, {9, 0}, {4, 2}} {
		for _, topology := range []deployment.Topology{deployment.ReplicaSet, deployment.Sharded} {
			offers = append(offers, deployment.Description{Name: fmt.Sprintf("%s %d.%d", topology, v[0], v[1]),
				Topology: topology, Version: v})
		}
	}
	testkit.PlayCases(t, "testdata/cases/versions.txt", func(t *testing.T, in string) string {
		return strings.Join(chosen(&Config{}, offers, oneTest(t, "runOnRequirements: ["+in+"], operations: []")), " | ")
	})
}

func TestShuffleIsAPermutationByItsSeed(t *testing.T) {
	order := func(seed *int64) []string {
		return chosen(&Config{Shuffle: seed, Count: 10}, []deployment.Description{{Topology: deployment.Single}},
			parse(t, choices))
	}
	one, two := int64(1), int64(2)
	plain, shuffled := order(nil), order(&one)
	testkit.Equal(t, "the order of one seed", shuffled, order(&one))
	if slices.Equal(shuffled, order(&two)) || slices.Equal(shuffled, plain) {
		t.Error("two seeds have the same order")
	}
	testkit.Equal(t, "all tests", slices.Sorted(slices.Values(plain)), slices.Sorted(slices.Values(shuffled)))
}

// Patterns that match no test and a filter that excludes all are problems, but not
// known failures of other suites.
func TestUnused(t *testing.T) {
	suites := []*specs.Suite{{File: "specs/a.yml", Tests: []*specs.Test{{Description: "first"}, {Description: "second"}}}}
	testkit.PlayCases(t, "testdata/cases/unused.txt", func(t *testing.T, in string) string {
		cfg, known := Config{}, ""
		for part := range strings.SplitSeq(in, ", ") {
			switch kind, text, _ := strings.Cut(part, " "); kind {
			case "run":
				cfg.Filter.Run = append(cfg.Filter.Run, patterns(text)...)
			case "skip":
				cfg.Filter.Skip = append(cfg.Filter.Skip, patterns(text)...)
			case "known":
				known = strings.ReplaceAll(text, "⏎", "\n")
			}
		}
		var err error
		cfg.KnownFailing, err = ParseKnownFailing("k", strings.NewReader(known))
		testkit.Check(t, err)
		return cmp.Or(strings.Join(Unused(suites, cfg, time.Now()), " | "), "nothing")
	})
}

func TestBadConfig(t *testing.T) {
	off := []deployment.Description{{Name: "single 8.0",
		Parameters: mustRaw(bson.D{{Key: "enableTestCommands", Value: false}})}}
	for _, cfg := range []Config{{}, {Engine: &fakeEngine{}}, {Source: &fakeSource{}},
		{Engine: &fakeEngine{}, Source: &fakeSource{}}} {
		if summary, err := Run(context.Background(), nil, cfg); err == nil {
			t.Errorf("%+v: %+v", cfg, summary)
		}
	}
	_, err := Run(context.Background(), nil, Config{Engine: &fakeEngine{}, Source: &fakeSource{offers: off}})
	if !errors.Is(err, errNoTestCommands) || !strings.Contains(err.Error(), "single 8.0") {
		t.Errorf("a deployment without test commands: %v", err)
	}
}

// The fail points that a suite sets, and the features that it requires.
func TestFailPointsAndFeatures(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/operations.txt", func(t *testing.T, in string) string {
		suite := oneTest(t, "operations: ["+in+"]")
		var facts []string
		for _, name := range FailPoints([]*specs.Suite{suite, suite}) {
			facts = append(facts, "sets "+name)
		}
		runs := func(on deployment.Description) string {
			return strings.Join(chosen(&Config{}, []deployment.Description{on}, suite), " ")
		}
		testkit.Equal(t, "with all features", runs(deployment.Description{Name: "single 4.9"}), "a on single 4.9")
		for _, f := range []deployment.Feature{deployment.JavaScript, deployment.Sessions, deployment.Transactions} {
			if without := runs(deployment.Description{Name: "single 4.9",
				Lacks: []deployment.Feature{f}}); without != "a on single 4.9" {
				facts = append(facts, strings.TrimSuffix(strings.TrimPrefix(without, "a: "), ", the deployment has none"))
			}
		}
		return cmp.Or(strings.Join(facts, ", "), "nothing")
	})
}

// A test that sets a fail point, or a field of its data, that the proxy cannot execute is skipped.
func TestProxiedFailPoints(t *testing.T) {
	const server, proxy = "single 8.0", "single 8.1"
	offers := []deployment.Description{{Name: proxy, FailPoints: []string{"failCommand", "onWrite"},
		LackingFields: []string{"failBefore"}}}
	for _, c := range []struct{ reason, failPoint, lacks string }{
		{"a fail point that the proxy has", "configureFailPoint: failCommand, mode: alwaysOn, data: {errorCode: 1}", ""},
		{"one that it has, without data", "configureFailPoint: onWrite, mode: alwaysOn", ""},
		{"one that it lacks", "configureFailPoint: hangInside, mode: alwaysOn", "hangInside"},
		{"a field that it lacks", "configureFailPoint: onWrite, mode: alwaysOn, data: {failBefore: 1}",
			"onWrite with failBefore"},
	} {
		suite := oneTest(t, "operations: [{name: failPoint, object: testRunner, arguments: {client: c, failPoint: {"+
			c.failPoint+"}}}]")
		want := "a on " + proxy
		if c.lacks != "" {
			want = "a: needs the fail point " + c.lacks + ", which takes effect inside a server: the proxy cannot execute it"
		}
		testkit.Equal(t, c.reason, strings.Join(chosen(&Config{}, offers, suite), " "), want)
		withServer := append([]deployment.Description{{Name: server}}, offers...)
		testkit.Equal(t, c.reason+", with a server that has all", strings.Join(chosen(&Config{}, withServer, suite), " "),
			"a on "+server)
	}
}

func TestRequirements(t *testing.T) {
	set := world{deployment: deployment.Description{
		Name: "replicaset 4.0", Topology: deployment.ReplicaSet, Version: [3]int{4, 0, 10},
		AuthMechanisms: []string{"SCRAM-SHA-256"},
		Parameters: mustRaw(bson.D{{Key: "enableTestCommands", Value: 1}, {Key: "failPointX", Value: int64(3)},
			{Key: "half", Value: 1.5}}),
	}}
	with := func(change func(*world)) world { w := set; change(&w); return w }
	recent := func(features ...string) world {
		return with(func(w *world) {
			w.deployment.Version, w.engine = [3]int{4, 2, 0}, engine.Description{Features: features}
		})
	}
	libmongocrypt := engine.FeatureLibmongocrypt + "1.9.0-rc1"
	worlds := map[string]world{
		"set":     set,
		"sharded": with(func(w *world) { w.deployment.Topology = deployment.Sharded }),
		"shardedSets": with(func(w *world) {
			w.deployment.Topology,
				w.deployment.ReplicaSetShards = deployment.Sharded, true
		}),
		"balanced": with(func(w *world) {
			w.deployment.Topology,
				w.deployment.ReplicaSetShards = deployment.LoadBalanced, true
		}),
		"secured":  with(func(w *world) { w.deployment.Auth = true }),
		"mute":     with(func(w *world) { w.deployment.Parameters = nil }),
		"recent":   recent(),
		"encrypts": recent(engine.FeatureEncryption, libmongocrypt),
		"somehow":  recent(engine.FeatureEncryption),
		"early":    with(func(w *world) { w.engine.Features = []string{engine.FeatureEncryption, libmongocrypt} }),
	}
	testkit.PlayCases(t, "testdata/cases/requirements.txt", func(t *testing.T, in string) string {
		on, list, _ := strings.Cut(in, ":")
		why, _ := unmet(oneTest(t, "runOnRequirements: ["+list+"], operations: []").Tests[0].Requirements, worlds[on])
		return cmp.Or(why, "met")
	})
}

// Results are position, pattern, reason, Until and Sometimes.
func TestParseKnownFailing(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/known.txt", func(t *testing.T, in string) string {
		text, err := strconv.Unquote(in)
		testkit.Check(t, err)
		list, err := ParseKnownFailing("k", strings.NewReader(text))
		if err != nil {
			return strings.ReplaceAll(err.Error(), "\n", "⏎")
		}
		until := ""
		if !list[0].Until.IsZero() {
			until = list[0].Until.Format(time.DateOnly)
		}
		text = fmt.Sprintf("%s %q %q %q %t", list[0].position, list[0].Pattern, list[0].Reason, until, list[0].sometimes)
		if list[0].since+list[0].before != "" {
			text += fmt.Sprintf(" from %q to before %q", list[0].since, list[0].before)
		}
		return text
	})
}

func TestKnownFailureExpires(t *testing.T) {
	k := KnownFailure{Until: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)}
	for now, want := range map[string]bool{"2027-01-31T23:59:59.999Z": false, "2027-02-01T00:00:00Z": true,
		"2027-02-01T03:00:00+04:00": false} {
		at, err := time.Parse(time.RFC3339Nano, now)
		testkit.Check(t, err)
		testkit.Equal(t, now, k.expired(at), want)
	}
	testkit.Equal(t, "without a day", (&KnownFailure{}).expired(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), false)
}

// A failure holds from the version since, up to and without the version before.
func TestKnownFailureHolds(t *testing.T) {
	for _, r := range []struct {
		reason, since, before, in string
		holds                     bool
	}{
		{"no limits", "", "", "4.20.0", true},
		{"the first version", "4.18", "", "4.18.0", true},
		{"an earlier one", "4.18", "", "4.9.2", false},
		{"a later one, by number", "4.9", "", "4.18.0", true},
		{"the version of the fix", "", "4.20.0", "4.20.0", false},
		{"the one before it", "", "4.20.0", "4.19.9", true},
		{"a candidate of the version of the fix", "", "4.20.0", "4.20.0-rc1", true},
		{"between both", "4.18", "4.20.0", "4.19.0", true},
		{"after both", "4.18", "4.20.0", "4.21.0", false},
		{"a build from source is newer than any", "4.18", "", "main", true},
		{"a build from source has the fix", "", "4.20.0", "", false},
	} {
		testkit.Equal(t, r.reason, (&KnownFailure{since: r.since, before: r.before}).holds(r.in), r.holds)
	}
}

func FuzzParseKnownFailing(f *testing.F) {
	for _, seed := range []string{"pattern # reason", "a# b # c\n\n# d", "("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := ParseKnownFailing("k", strings.NewReader(text))
		for _, k := range list {
			if k.Reason == "" || k.Pattern == nil || k.position.Line < 1 {
				t.Errorf("%q: %+v", text, k)
			}
		}
	})
}
