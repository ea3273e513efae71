package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/process/cputime"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// Run runs suites and returns a summary. Every selected test gets one verdict for each deployment and iteration. If
// ctx ends, running tests are stopped and cleaned up, and the remaining ones are skipped: see Summary.Interrupt.
// An error means that the run could not start or continue: an invalid Config, an engine without a description, a
// deployment without enableTestCommands.
func Run(ctx context.Context, suites []*specs.Suite, cfg Config) (result.Summary, error) {
	cfg.KnownFailing = slices.Concat(cfg.KnownFailing, failing(suites))
	r, err := prepare(ctx, cfg)
	if err != nil {
		return result.Summary{}, err
	}
	return r.all(ctx, suites)
}

func (r *run) all(ctx context.Context, suites []*specs.Suite) (result.Summary, error) {
	jobs := choose(suites, &r.cfg, r.offers, r.about)
	skipped, byFile := 0, map[string]int{}
	for _, j := range jobs {
		byFile[j.id.File]++
		if j.skip != nil {
			skipped++
		}
	}
	started := r.cfg.Now()
	r.day = started
	r.notify(result.RunStarted{
		Time: started, Engine: r.about.Name + " " + r.about.Version,
		Total: len(jobs), Skipped: skipped, ByFile: byFile, Files: len(suites), Jobs: r.cfg.Jobs, Seed: r.cfg.Shuffle,
		Shard: r.cfg.Shard.String(), Cell: r.cfg.Cell, Servers: deployment.Servers(r.offers),
	})
	for _, p := range Unused(suites, r.cfg, r.day) {
		r.problem("%s", p)
	}
	end, before := r.stalls.watch(), cputime.Used()
	r.work(ctx, jobs)
	end()
	for _, s := range r.sites {
		s.commands.close()
	}
	r.summary.Duration, r.summary.CPU = r.cfg.Now().Sub(started), cputime.Used()-before
	r.summary.RequireTests(r.cfg.MinTests)
	r.notify(result.RunFinished{Summary: r.summary})
	return r.summary, r.err
}

type run struct {
	cfg    Config
	about  engine.Description
	offers []deployment.Description
	day    time.Time // for the expiry of all known failures
	dial   func(deployment.Deployment) (commands, error)
	stalls stalls

	mu      sync.Mutex // guards the following fields
	jobs    []*job     // that wait, in the order of execution
	claims  []*claims  // of the tests that run, by offer; nil if each test has servers of its own
	free    *sync.Cond // a waiting job may begin, or none is left
	stop    *Skip      // why the remaining tests are skipped
	err     error
	sites   map[deployment.Deployment]*site
	shared  map[string]*servers // of several sites, by their addresses
	summary result.Summary

	notes    sync.Mutex              // held while Notify runs; also guards the following fields
	early    map[int]*result.Verdict // verdicts of jobs that ended before earlier ones
	reported int                     // the number of jobs whose verdicts are reported
}

// prepare checks the configuration and reads the descriptions of engine and deployments.
func prepare(ctx context.Context, cfg Config) (*run, error) {
	if cfg.Engine == nil || cfg.Source == nil {
		return nil, errors.New("runner: a Config requires an Engine and a Source")
	}
	cfg.Jobs = max(1, cfg.Jobs)
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &run{cfg: cfg, dial: dialer(cfg.ServerAPI), sites: make(map[deployment.Deployment]*site),
		shared: make(map[string]*servers), early: make(map[int]*result.Verdict)}
	r.free = sync.NewCond(&r.mu)
	var err error
	if r.about, err = guarded(ctx, "the engine's description of itself", cfg.Engine.Describe); err != nil {
		return nil, fmt.Errorf("the engine cannot be used: %w", err)
	}
	if r.offers = cfg.Source.Offers(); len(r.offers) == 0 {
		return nil, errors.New("runner: the source offers no deployment")
	}
	for _, o := range r.offers {
		if enabled := o.TestCommands(); o.FailPoints == nil && enabled != nil && !*enabled {
			return nil, noTestCommands(o.Name)
		}
		var c *claims
		if o.Shared {
			c = newClaims()
		}
		r.claims = append(r.claims, c)
	}
	return r, nil
}

// sleep waits for d, or for the end of the context, and then returns its cause.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *run) work(ctx context.Context, jobs []job) {
	for i := range jobs {
		j := &jobs[i]
		j.index = i
		if j.beside = r.claims[j.offer] != nil; j.beside && j.skip == nil && j.fails == nil {
			j.uses = r.footprint(j)
		}
	}
	for _, i := range execution(jobs, &r.cfg) {
		r.jobs = append(r.jobs, &jobs[i])
	}
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.free.Broadcast()
	})()
	var workers sync.WaitGroup
	for range min(r.cfg.Jobs, len(jobs)) {
		workers.Go(func() {
			for j, found := r.take(ctx); found; j, found = r.take(ctx) {
				v := r.attempt(ctx, j)
				r.leave(j)
				if !r.again(ctx, j, v) {
					r.finish(j.index, v)
				}
			}
		})
	}
	workers.Wait()
}

// do runs a job on a deployment that it acquires.
func (r *run) do(ctx context.Context, j job) *result.Verdict {
	if j.skip != nil {
		return j.skipped(j.skip)
	}
	if j.fails != nil {
		v := j.verdict(result.Failed, "")
		v.Mismatches = []result.Mismatch{*j.fails}
		r.expectFailure(v, subject(j.suite, j.test))
		return v
	}
	began := r.cfg.Now()
	d, err := r.cfg.Source.Acquire(ctx, j.offer)
	if err != nil {
		return r.unavailable(ctx, j, nil, err)
	}
	var v *result.Verdict
	reusable := false
	defer func() { r.cfg.Source.Release(d, !reusable) }()
	v, reusable = r.on(ctx, d, j, began)
	return v
}

// on runs a job on a deployment, and reports whether another job may use the deployment. began is when the wait for the
// deployment began.
func (r *run) on(ctx context.Context, d deployment.Deployment, j job, began time.Time) (*result.Verdict, bool) {
	s, err := r.siteOf(d)
	if err != nil {
		return r.unavailable(ctx, j, d, err), false
	}
	defer r.leaveSite(s)
	ctx, unwatch := s.watch(ctx)
	defer unwatch()
	if err := r.open(ctx, s, began); err != nil {
		if s.othersAnswer(ctx) {
			d = nil
		}
		return r.unavailable(ctx, j, d, err), false
	}
	if why := r.stopped(); why != nil { // while waiting for the deployment
		return j.skipped(why), true
	}
	if why := lacksMongoses(j.test, s.about); why != "" {
		return j.skipped(&Skip{result.SkipRequirement, why}), true
	}
	r.notify(result.TestStarted{Test: j.id})
	v, reusable, lost := r.runTest(ctx, s, j)
	if lost != nil {
		r.abandon(d, s.about.Name, lost)
	}
	if !reusable {
		r.retire(s)
	}
	return v, reusable
}

// unavailable returns the verdict of a job that got no usable deployment. It abandons d if that is not nil.
func (r *run) unavailable(ctx context.Context, j job, d deployment.Deployment, err error) *result.Verdict {
	switch {
	case errors.Is(err, errNoTestCommands):
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		r.halt(err.Error())
		return j.verdict(result.Broken, err.Error())
	case ctx.Err() != nil && lostDuring(ctx) == nil:
		r.mu.Lock()
		defer r.mu.Unlock()
		return j.skipped(r.interrupted(ctx))
	}
	name := r.offers[j.offer].Name
	if d != nil {
		r.abandon(d, name, err)
	}
	return j.verdict(result.Broken, fmt.Sprintf("no deployment for the test (%s): %s", name, err))
}

// verdict returns a verdict without a run.
func (j *job) verdict(status result.Status, reason string) *result.Verdict {
	return &result.Verdict{Test: j.id, Position: j.test.Position, Status: status, Reason: reason}
}

func (j *job) skipped(why *Skip) *result.Verdict {
	v := j.verdict(result.Skipped, why.Reason)
	v.SkipKind = why.Kind
	return v
}

// siteOf returns the site of a deployment. It is open if an earlier test used it.
func (r *run) siteOf(d deployment.Deployment) (*site, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sites[d]
	if s == nil {
		c, err := r.dial(d)
		if err != nil {
			return nil, err
		}
		s = &site{deployment: d, about: d.Description(), commands: c}
		s.servers = r.serversOf(s.about)
	}
	s.inUse = true
	return s, nil
}

// serversOf returns the state of the servers of a new site. It requires that mu is held.
func (r *run) serversOf(about deployment.Description) *servers {
	if !about.Shared {
		return &servers{seeded: make(map[string]*collection)}
	}
	key := strings.Join(about.Servers, ",")
	if r.shared[key] == nil {
		r.shared[key] = &servers{seeded: make(map[string]*collection)}
	}
	return r.shared[key]
}

// open opens a site unless it is open.
func (r *run) open(ctx context.Context, s *site, began time.Time) error {
	if s.opened {
		return nil
	}
	opening, cancel := limited(ctx, r.cfg.Timeout, "the time limit for connecting to the deployment")
	defer cancel()
	if err := s.open(opening); err != nil {
		r.retire(s)
		return cmp.Or(lostDuring(ctx), err)
	}
	r.mu.Lock()
	r.sites[s.deployment] = s
	r.mu.Unlock()
	about := s.about
	info := fmt.Sprintf("%s %d.%d.%d on %s", about.Topology, about.Version[0], about.Version[1], about.Version[2],
		plural.Of(len(about.Hosts), "host"))
	for _, host := range about.Hosts {
		if s.before[host].err != nil {
			info += fmt.Sprintf("; %s does not answer, so tests may take ten times as long", host)
		}
	}
	r.notify(result.DeploymentReady{Name: about.Name, Took: r.cfg.Now().Sub(began), Info: info})
	return nil
}

// retire discards the state of the servers of a site, so that the next test starts without it.
func (r *run) retire(s *site) {
	r.mu.Lock()
	s.gone = true
	r.mu.Unlock()
}

// leaveSite ends the use of a site by a test, and closes the sites of servers that are gone and that no test uses.
func (r *run) leaveSite(s *site) {
	var closing []*site
	r.mu.Lock()
	s.inUse = false
	if s.gone {
		maps.DeleteFunc(r.shared, func(_ string, shared *servers) bool { return shared == s.servers })
		for _, other := range r.sites {
			if other.servers == s.servers && other != s && !other.inUse {
				closing = append(closing, other)
			}
		}
		for _, one := range append(closing, s) {
			delete(r.sites, one.deployment)
		}
		closing = append(closing, s)
	}
	r.mu.Unlock()
	for _, one := range closing {
		one.commands.close()
	}
}

// interrupted records that ctx has ended and returns why the remaining tests are skipped. It requires that mu is held.
func (r *run) interrupted(ctx context.Context) *Skip {
	why := Interruption(ctx)
	r.summary.Interrupt(why)
	return &Skip{result.SkipNotRun, why}
}

// Interruption returns why a context has ended: "interrupted", or its cause.
func Interruption(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause.Error()
	}
	return "interrupted"
}

// abandon skips the remaining tests unless the source can replace the deployment:
// each of them would wait for it until its timeout. err is why it cannot be used.
func (r *run) abandon(d deployment.Deployment, name string, err error) {
	if d.Owned() || r.cfg.Source.Repairs() {
		return
	}
	why := stopped
	if lost := new(lostError); errors.As(err, &lost) {
		why = lost.what
	} else if direct.CodeOf(err) == codes.Unauthorized {
		why = "cannot be used: " + err.Error()
	}
	r.halt(fmt.Sprintf("the deployment (%s) %s", name, why))
}

// halt skips the remaining tests because the run is broken.
func (r *run) halt(why string) {
	r.mu.Lock()
	if r.stop == nil {
		r.stop, r.summary.Breaks = &Skip{result.SkipNotRun, why}, append(r.summary.Breaks, result.Break{Reason: why})
		r.free.Broadcast()
	}
	r.mu.Unlock()
}

// finish counts the verdict of a job. It reports it after the verdicts of all earlier jobs, so that the order of
// reports does not depend on Config.Jobs.
func (r *run) finish(index int, v *result.Verdict) {
	r.mu.Lock()
	r.summary.Add(v)
	if r.cfg.FailFast && r.stop == nil && (v.Status == result.Failed || v.Status == result.Broken) {
		r.stop = &Skip{result.SkipFilter, fmt.Sprintf("not run: fail-fast after %q", v.Test.Description)}
		r.free.Broadcast()
	}
	r.mu.Unlock()
	r.notes.Lock()
	defer r.notes.Unlock()
	r.early[index] = v
	for v = r.early[r.reported]; v != nil; v = r.early[r.reported] {
		delete(r.early, r.reported)
		r.reported++
		r.note(result.TestFinished{Verdict: v})
	}
}

// stopped returns why the remaining tests are skipped, or nil.
func (r *run) stopped() *Skip {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop
}

func (r *run) problem(format string, args ...any) {
	r.mu.Lock()
	r.summary.Problems = append(r.summary.Problems, fmt.Sprintf(format, args...))
	r.mu.Unlock()
}

func (r *run) notify(n result.Note) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.note(n)
}

// note requires that notes is held.
func (r *run) note(n result.Note) {
	if r.cfg.Notify != nil {
		r.cfg.Notify(n)
	}
}
