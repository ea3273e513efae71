package cli

import (
	"runtime"

	"github.com/unified-test-runner/utr/deployment"
)

// Limits of concurrent tests. Tests mostly wait, so each core can run several on embedded deployments, whose servers
// need little. An adapter can need a process for each worker, and most drivers compute a lot until they are warm.
const (
	jobsPerCore     = 8
	adaptersPerCore = 4
	mostJobs        = 16
)

// Machine is what limits concurrent tests.
type Machine struct {
	Files int // that a process may open; 0 if not known
	Cores int
}

// jobs returns the default of --jobs: one for each cluster, more on embedded deployments.
func (r *runFlags) jobs(m Machine) int {
	switch {
	case r.flags.target() != onEmbedded:
		return r.clusters()
	case r.named.adapter.Command != nil:
		return min(adaptersPerCore*m.Cores, mostJobs)
	}
	return min(jobsPerCore*m.Cores, mostJobs)
}

// clusters returns the number of clusters of the run, if the deployment has a number of them.
func (r *runFlags) clusters() int {
	if r.flags.target() != onOrchestration {
		return 1
	}
	return len(r.orchestration.names(&r.deployment)) * r.orchestration.Each
}

// checkJobs refuses more tests at the same time than there are clusters if the servers execute fail points.
func (r *runFlags) checkJobs() error {
	target, most := r.flags.target(), r.clusters()
	shared := target == onURI || target == onOrchestration
	if r.config.Jobs > most && shared && r.failPoints == deployment.FailPointsServer {
		return usage("--jobs %d: with --fail-points server, a cluster runs one test at a time, because a fail point "+
			"affects all tests; leave out one of the flags", r.config.Jobs)
	}
	return nil
}

func thisMachine() Machine { return Machine{Cores: runtime.GOMAXPROCS(0), Files: mostFiles()} }
