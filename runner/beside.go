package runner

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
)

// footprint returns the footprint of a job. On servers without sessions, a clean-up cannot end only what a test opened,
// so each test runs alone.
func (r *run) footprint(j *job) footprint {
	f := footprintOf(j.suite, j.test)
	if slices.Contains(r.offers[j.offer].Lacks, deployment.Sessions) {
		f.alone = noSessions
	}
	if r.cfg.Reseed == ReseedAlways {
		f.reads = ""
	}
	return f
}

// take returns the first job that may run beside those that run, marked as skipped if no more tests may start. It waits
// until there is one, and returns false if none is left.
func (r *run) take(ctx context.Context) (job, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.free.Signal() // another worker may find a job, too
	for len(r.jobs) > 0 {
		for i, j := range r.jobs {
			if j.skip == nil && ctx.Err() != nil {
				j.skip = r.interrupted(ctx)
			}
			j.skip = cmp.Or(j.skip, r.stop)
			if c := r.claims[j.offer]; j.skip != nil || c == nil || c.try(j.uses) {
				r.jobs = slices.Delete(r.jobs, i, i+1)
				return *j, true
			}
		}
		r.free.Wait()
	}
	return job{}, false
}

// leave lets the jobs begin that waited for a job.
func (r *run) leave(j job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.claims[j.offer]; c != nil && j.skip == nil {
		c.release(j.uses)
		r.free.Signal()
	}
}

// seed creates the initial data of a test. Afterwards, other tests may read it at the same time.
func (r *run) seed(ctx context.Context, s *site, j job) error {
	c := r.claims[j.offer]
	if c == nil {
		return s.seed(ctx, j.suite, j.test, r.cfg.Reseed, false)
	}
	r.mu.Lock()
	sole := c.sole(j.uses)
	r.mu.Unlock()
	err := s.seed(ctx, j.suite, j.test, r.cfg.Reseed, len(sole) < len(j.uses.names))
	if err == nil {
		r.fill(j, sole, true)
	}
	return err
}

// fill notes whether other tests may read the initial data of a test.
func (r *run) fill(j job, names []string, filled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.claims[j.offer]; c != nil {
		c.fill(names, filled)
		r.free.Signal()
	}
}

// again lets a job run again, alone, if it failed beside others and a delay can have failed it. Its verdict does not count.
func (r *run) again(ctx context.Context, j job, v *result.Verdict) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !j.uses.timed || j.uses.alone != "" || r.cfg.Jobs == 1 || r.stop != nil || ctx.Err() != nil {
		return false
	}
	if v.Status != result.Failed && v.Status != result.Flaky {
		return false
	}
	j.uses.alone = failedBeside
	r.jobs = append(r.jobs, &j)
	return true
}

// claims contains the footprints of the tests that run on servers at the same time.
type claims struct {
	running int
	alone   bool
	names   map[string]*claimed
}

// claimed is a namespace that tests use.
type claimed struct {
	users  int
	reads  string // of each user
	filled bool   // it has the initial data, and no user of it failed
}

// admits reports whether a test may use a namespace beside its users.
func (c *claimed) admits(f footprint) bool {
	return c == nil || c.filled && c.reads != "" && c.reads == f.reads
}

func newClaims() *claims { return &claims{names: map[string]*claimed{}} }

// try adds a footprint unless it overlaps with one of those that run.
func (c *claims) try(f footprint) bool {
	if c.alone || f.alone != "" && c.running > 0 ||
		slices.ContainsFunc(f.names, func(name string) bool { return !c.admits(name, f) }) {
		return false
	}
	c.running++
	c.alone = f.alone != ""
	for _, name := range f.names {
		if c.names[name] == nil {
			c.names[name] = &claimed{reads: f.reads}
		}
		c.names[name].users++
	}
	return true
}

// admits reports whether a test may use a namespace beside the users of those that overlap with it.
func (c *claims) admits(name string, f footprint) bool {
	database, collection, _ := strings.Cut(name, ".")
	for _, one := range []string{name, database + "." + wholeDatabase, wholeCluster} {
		if !c.names[one].admits(f) {
			return false
		}
	}
	if collection == wholeDatabase {
		for other, one := range c.names {
			if (name == wholeCluster || strings.HasPrefix(other, database+".")) && !one.admits(f) {
				return false
			}
		}
	}
	return true
}

// sole returns the namespaces of a running test that no other test uses.
func (c *claims) sole(f footprint) (names []string) {
	for _, name := range f.names {
		if c.names[name].users == 1 {
			names = append(names, name)
		}
	}
	return names
}

// fill notes whether namespaces have their initial data, so that tests that only read it may run side by side.
func (c *claims) fill(names []string, filled bool) {
	for _, name := range names {
		c.names[name].filled = filled
	}
}

// release removes a footprint.
func (c *claims) release(f footprint) {
	c.running--
	c.alone = false
	for _, name := range f.names {
		if c.names[name].users--; c.names[name].users == 0 {
			delete(c.names, name)
		}
	}
}
