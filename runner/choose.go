package runner

import (
	"cmp"
	"context"
	"fmt"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// job is one run of a test on an offered deployment.
type job struct {
	index int // position in the order of the run
	suite *specs.Suite
	test  *specs.Test
	id    result.TestID
	offer int              // index
	skip  *Skip            // why it is skipped, or nil
	fails *result.Mismatch // why it fails without running, or nil

	beside bool      // others use the servers at the same time
	uses   footprint // of servers that others use
}

// Skip is why a test is skipped.
type Skip struct {
	Kind   result.SkipKind
	Reason string
}

func choose(suites []*specs.Suite, cfg *Config, offers []deployment.Description, about engine.Description) []job {
	var jobs []job
	for _, j := range selected(suites, cfg) {
		jobs = append(jobs, place(j, cfg, offers, about)...)
	}
	if cfg.AllTopologies { // one deployment after the other
		slices.SortStableFunc(jobs, func(a, b job) int {
			return (a.id.Iteration-b.id.Iteration)*len(offers) + a.offer - b.offer
		})
	}
	jobs = cfg.Shard.of(jobs)
	if cfg.Shuffle != nil {
		random := rand.New(rand.NewSource(*cfg.Shuffle))
		random.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	}
	return jobs
}

// selected returns a job for each iteration of each test that the filter selects.
func selected(suites []*specs.Suite, cfg *Config) (jobs []job) {
	for iteration := 1; iteration <= max(1, cfg.Count); iteration++ {
		for _, s := range suites {
			for _, t := range s.Tests {
				if !cfg.Filter.Allows(s, t) {
					continue
				}
				j := job{suite: s, test: t, id: result.TestID{File: s.File, Suite: s.Description, Description: t.Description,
					Iteration: iteration, Cell: cfg.Cell}}
				if t.SkipReason != nil {
					j.skip = &Skip{result.SkipFile, *t.SkipReason}
				}
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// NotRun returns the verdicts of a run that broke before it had a deployment: every selected test is skipped. If the
// run is a shard, it returns nil, because the shard of a test depends on its deployment.
func NotRun(suites []*specs.Suite, cfg Config, why string) (verdicts []*result.Verdict) {
	if cfg.Shard.Count > 0 {
		return nil
	}
	for _, j := range selected(suites, &cfg) {
		verdicts = append(verdicts, j.skipped(cmp.Or(j.skip, &Skip{result.SkipNotRun, why})))
	}
	return verdicts
}

// place returns the jobs of a selected test: one, or one for each topology.
func place(base job, cfg *Config, offers []deployment.Description, about engine.Description) []job {
	s, t := base.suite, base.test
	if base.skip != nil {
		return []job{base}
	}
	if base.fails = incompatible(s, about); base.fails != nil {
		return []job{base}
	}
	missing := Missing(s, t, about)
	var jobs []job
	for _, group := range groups(offers, cfg.AllTopologies) {
		j := base
		j.offer = group[0]
		var closest []lack // offers of one version that lack least
		for _, i := range group {
			why, lacks := refusal(s, t, world{deployment: offers[i], engine: about})
			if lacks == 0 {
				j.offer, closest = i, nil
				break
			}
			if closest == nil || lacks < closest[0].lacks {
				closest = []lack{{offers[i], why, lacks}}
			} else if lacks == closest[0].lacks && closest[0].offer.Version == offers[i].Version {
				closest = append(closest, lack{offers[i], why, lacks})
			}
		}
		found := closest == nil
		switch {
		case !found:
			j.skip = &Skip{result.SkipRequirement, joinReasons(closest)}
		case len(missing) > 0:
			j.skip = &Skip{result.SkipCapability, "the engine does not support " + missing[0]}
		}
		if found || cfg.AllTopologies {
			j.id.Deployment = offers[j.offer].Name
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// refusal returns why a test cannot run, or "", and the number of unmet conditions.
func refusal(s *specs.Suite, t *specs.Test, w world) (why string, lacks int) {
	for _, requirements := range [][]specs.Requirement{s.Requirements, t.Requirements} {
		if why, lacks = unmet(requirements, w); lacks > 0 {
			return why, lacks
		}
	}
	for _, f := range w.deployment.Lacks {
		if needsFeature(t, f) {
			return needs(string(f), "none"), 1
		}
	}
	if name := lacksFailPoint(t, w.deployment); name != "" {
		return "needs the fail point " + name + ", which takes effect inside a server: the proxy cannot execute it", 1
	}
	if why = lacksMongoses(t, w.deployment); why != "" {
		return why, 1
	}
	return "", 0
}

// lacksMongoses returns why a deployment has too few mongoses for useMultipleMongoses, or "". Their number may be known
// only when the deployment runs.
func lacksMongoses(t *specs.Test, d deployment.Description) string {
	several := func(e specs.Entity) bool { return e.Value.Get("useMultipleMongoses").IsTrue() }
	if d.Topology != deployment.Sharded && d.Topology != deployment.ShardedReplicaSet || len(d.Hosts) != 1 ||
		!slices.ContainsFunc(t.Entities, several) {
		return ""
	}
	return needs("several mongoses (useMultipleMongoses)", "one")
}

// lacksFailPoint returns a fail point, or a field of its data, that a test sets and the deployment does not have, or
// "".
func lacksFailPoint(t *specs.Test, d deployment.Description) string {
	for _, point := range failPointsOf(t) {
		name := point.Get("configureFailPoint").Text()
		if d.FailPoints != nil && !slices.Contains(d.FailPoints, name) {
			return name
		}
		for _, field := range d.LackingFields {
			if point.Get("data").Get(field) != nil {
				return name + " with " + field
			}
		}
	}
	return ""
}

type lack struct {
	offer deployment.Description
	why   string
	lacks int // unmet conditions
}

// joinReasons joins the reasons against several offers. Each appears once, with the names of its offers unless it
// applies to all.
func joinReasons(all []lack) string {
	var reasons, names []string
	for _, l := range all {
		if i := slices.Index(reasons, l.why); i >= 0 {
			names[i] += ", " + l.offer.Name
		} else {
			reasons, names = append(reasons, l.why), append(names, l.offer.Name)
		}
	}
	if len(reasons) == 1 {
		return reasons[0]
	}
	for i := range reasons {
		reasons[i] = names[i] + ": " + reasons[i]
	}
	return strings.Join(reasons, "; ")
}

// groups returns the indexes of all offers, or of the offers of each topology. A test
// runs on the first suitable offer of a group.
func groups(offers []deployment.Description, byTopology bool) [][]int {
	var out [][]int
	for i, o := range offers {
		together := func(group []int) bool { return !byTopology || offers[group[0]].Topology == o.Topology }
		if g := slices.IndexFunc(out, together); g >= 0 {
			out[g] = append(out[g], i)
		} else {
			out = append(out, []int{i})
		}
	}
	return out
}

// subject is what the patterns of filters and known failures match.
func subject(s *specs.Suite, t *specs.Test) string { return s.File + ": " + t.Description }

// Allows reports whether the filter selects a test.
func (f Filter) Allows(s *specs.Suite, t *specs.Test) bool { return f.allows(subject(s, t)) }

func (f Filter) allows(subject string) bool {
	matches := func(p *regexp.Regexp) bool { return p.MatchString(subject) }
	return (len(f.Run) == 0 || slices.ContainsFunc(f.Run, matches)) && !slices.ContainsFunc(f.Skip, matches)
}

// Unused returns the problems that Run reports of the filter and the known failures: patterns that match no test, a
// filter that selects none, and known failures that have expired.
func Unused(suites []*specs.Suite, cfg Config, now time.Time) []string {
	var problems []string
	for i, p := range slices.Concat(cfg.Filter.Run, cfg.Filter.Skip) {
		kind := "run"
		if i >= len(cfg.Filter.Run) {
			kind = "skip"
		}
		if !anyTest(suites, p.MatchString) {
			problems = append(problems, fmt.Sprintf("the %s pattern %q matches no test", kind, p))
		}
	}
	if len(problems) == 0 && !anyTest(suites, cfg.Filter.allows) {
		problems = append(problems, "the run and skip patterns leave no test to run")
	}
	for _, k := range cfg.KnownFailing {
		applies := func(s *specs.Suite) bool { return k.suites.MatchString(s.File) }
		if len(cfg.Filter.Run) == 0 && (k.suites == nil || slices.ContainsFunc(suites, applies)) &&
			!anyTest(suites, k.Pattern.MatchString) {
			problems = append(problems, fmt.Sprintf("%s: the known failure %q matches no test", k.position, k.Pattern))
		}
		if k.expired(now) {
			problems = append(problems, fmt.Sprintf("%s: the known failure %q has expired: %s", k.position, k.Pattern, k.Reason))
		}
	}
	return problems
}

func anyTest(suites []*specs.Suite, holds func(subject string) bool) bool {
	return slices.ContainsFunc(suites, func(s *specs.Suite) bool {
		return slices.ContainsFunc(s.Tests, func(t *specs.Test) bool { return holds(subject(s, t)) })
	})
}

// known returns the first known failure of a test in a version of the engine that has not expired, or else the first.
func known(list []KnownFailure, subject, version string, now time.Time) (found *KnownFailure) {
	for _, k := range list {
		if k.holds(version) && k.Pattern.MatchString(subject) && (found == nil || found.expired(now) && !k.expired(now)) {
			found = &k
		}
	}
	return found
}

// Plan returns why each test would be skipped, or nil if it would run. It sends nothing to the servers.
func Plan(ctx context.Context, suites []*specs.Suite, cfg Config) (skips []*Skip, err error) {
	r, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, j := range choose(suites, &r.cfg, r.offers, r.about) {
		skips = append(skips, j.skip)
	}
	return skips, nil
}
