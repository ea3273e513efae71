package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/specs"
)

// What a run has open at once. Connections are most of it.
const (
	filesOfRun    = 32 // standard streams, reports, the ledger, and what Go uses
	filesOfTest   = 16 // listeners of its deployment, and what its engine uses
	filesOfHost   = 8  // twice, because connections of the last test close late: two monitors, an operation, our client
	filesOfClient = 4  // of a host, for each client of a test beyond three
	filesIdle     = 48 // of the deployments that a worker keeps for other tests
)

// openFiles is what determines how many files, in the sense of the operating system, a run has open at once.
type openFiles struct {
	hosts   int // of a deployment
	ends    int // of a connection that this process has: both if the server is in this process, three with a proxy
	clients int // of the test with the most clients
	idle    bool
	late    bool // servers in this process also close late
}

// ofTest returns how many one of concurrent tests needs.
func (o openFiles) ofTest() int {
	n := filesOfTest + o.ends*o.hosts*(filesOfHost+filesOfClient*max(0, o.clients-3))
	if o.idle {
		n += filesIdle
	}
	return n
}

// of returns how many a number of concurrent tests need.
func (o openFiles) of(jobs int) int {
	if o.late {
		jobs++
	}
	return filesOfRun + jobs*o.ofTest()
}

// jobs returns how many concurrent tests a limit allows, or 0.
func (o openFiles) jobs(limit int) (n int) {
	for o.of(n+1) <= limit {
		n++
	}
	return n
}

// openFiles estimates what tests on embedded deployments need.
func (d *deploymentFlags) openFiles(suites []*specs.Suite) openFiles {
	o := openFiles{ends: 2, late: true}
	members, mongoses := cmp.Or(d.Members, 3), cmp.Or(d.Mongoses, 2)
	switch topologyOf(d.topology) {
	case deployment.Single:
		o.hosts = 1
	case deployment.Sharded, deployment.LoadBalanced:
		o.hosts = mongoses
	case deployment.ReplicaSet:
		o.hosts = members
	default:
		o.hosts, o.idle = max(members, mongoses), true
	}
	for _, s := range suites {
		for _, t := range s.Tests {
			o.clients = max(o.clients, len(slices.DeleteFunc(slices.Clone(t.Entities), func(e specs.Entity) bool {
				return e.Kind != "client" && e.Kind != "thread"
			})))
		}
	}
	return o
}

// openFiles estimates what tests need. offers is nil before the deployment is opened: then one host is assumed for an
// existing one.
func (r *runFlags) openFiles(suites []*specs.Suite, offers []deployment.Description) openFiles {
	o := r.deployment.openFiles(suites)
	target := r.flags.target()
	if target != onEmbedded {
		o.ends, o.late, o.idle = 1, false, false
	}
	if target == onURI {
		o.hosts = 1
	}
	proxied := r.failPoints == deployment.FailPointsProxy
	for _, offer := range offers {
		o.hosts = max(o.hosts, len(offer.Hosts))
		proxied = proxied || offer.FailPoints != nil || offer.Shared
	}
	if proxied {
		o.ends += 2
	}
	return o
}

// limitFiles compares what the run needs with what this process may open.
func (p *runPlan) limitFiles(offers []deployment.Description) error {
	r := p.run
	return p.inv.limitFiles(r.openFiles(p.suites, offers), &p.config.Jobs, r.flags.Changed("jobs"), max(1, r.sharers))
}

// limitFiles reduces concurrent tests that were not chosen to what this process may open, and refuses those that do not
// fit: servers and drivers without file descriptors give wrong verdicts.
func (c *invocation) limitFiles(use openFiles, jobs *int, chosen bool, sharers int) error {
	limit := c.program.Machine().Files / sharers
	if limit == 0 || use.of(*jobs) <= limit { // 0: unknown
		return nil
	}
	most, need, advice := use.jobs(limit), use.of(*jobs), ""
	switch {
	case most > 0 && !chosen:
		c.note(fmt.Sprintf("limit of %d file descriptors (ulimit -n): %s at once instead of %d", limit,
			plural.Of(most, "test"), *jobs))
		*jobs = most
		return nil
	case most > 0:
		advice = fmt.Sprintf(", or use --jobs %d", most)
	case !chosen:
		need = use.of(1)
	}
	return fmt.Errorf("the run needs up to %d file descriptors, and the limit is %d: raise it, for example with ulimit -n %d%s",
		need, limit, sharers*max(1024, need), advice)
}
