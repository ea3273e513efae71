package cli

import (
	"os"
	"regexp"
	"runtime"
	"strconv"

	"github.com/unified-test-runner/utr/deployment"
)

// Limits of concurrent tests. Tests mostly wait, so each core can run several on embedded deployments, whose servers
// need little. An adapter can need a process for each worker, and most drivers compute a lot until they are warm.
// A worker on local binaries can have a cluster of each topology: some ten servers of 0.4 GB each.
const (
	jobsPerCore     = 8
	adaptersPerCore = 4
	mostJobs        = 16
	localMemory     = 4 << 30 // bytes for each worker
)

// Machine is what limits concurrent tests.
type Machine struct {
	Files  int // that a process may open; 0 if not known
	Cores  int
	Memory int64 // available bytes; 0 if not known
}

// jobs returns the default of --jobs.
func (r *runFlags) jobs(m Machine) int {
	switch r.flags.target() {
	case onEmbedded:
		if r.named.adapter.Command != nil {
			return min(adaptersPerCore*m.Cores, mostJobs)
		}
		return min(jobsPerCore*m.Cores, mostJobs)
	case onLocal:
		return max(1, min(m.Cores, int(m.Memory/localMemory)))
	default: // one test on each cluster
		return r.clusters()
	}
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
	if r.config.Jobs > most && (target == onURI || target == onOrchestration) && r.failPoints == deployment.FailPointsServer {
		return usage("--jobs %d: with --fail-points server, a cluster runs one test at a time, because a fail point "+
			"affects all tests; leave out one of the flags", r.config.Jobs)
	}
	return nil
}

func thisMachine() Machine {
	text, _ := os.ReadFile("/proc/meminfo") // Linux only
	return Machine{Cores: runtime.GOMAXPROCS(0), Memory: availableMemory(text), Files: mostFiles()}
}

var available = regexp.MustCompile(`(?m)^MemAvailable: +(\d+) kB$`)

// availableMemory returns the available memory in bytes by Linux's /proc/meminfo, or 0.
func availableMemory(text []byte) int64 {
	if found := available.FindSubmatch(text); found != nil {
		kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64) // digits; 0 if out of range
		return kilobytes << 10
	}
	return 0
}
