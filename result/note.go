package result

import "time"

// Note is an event of a run. Reporters read the stream of notes; only this package implements the interface.
type Note interface{ note() }

// RunStarted is the first note.
type RunStarted struct {
	Time    time.Time
	Engine  string // name and version
	Total   int    // tests, multiplied by deployments and iterations
	Skipped int    // of Total, already known to be skipped
	Files   int
	ByFile  map[string]int // Total by file; nil if unknown
	Jobs    int
	Seed    *int64   // of --shuffle
	Shard   string   // such as "2/5"; "" for the whole run
	Cell    string   // of a matrix; "" for none or all
	Commit  string   // of the repository that CI tested; "" if unknown
	Servers []string // of the offered deployments, such as "replicaset 8.0.4"
}

// DeploymentReady reports that the run connected to a deployment.
type DeploymentReady struct {
	Name string // as in TestID.Deployment
	Info string // topology, version, hosts; no secrets
	Took time.Duration
}

// TestStarted precedes each attempt at a test. Tests of several workers interleave.
type TestStarted struct{ Test TestID }

// TestFinished ends a test. Skipped tests have no TestStarted.
type TestFinished struct{ Verdict *Verdict }

// CellFinished follows the tests of each cell of a matrix, even if it has none.
type CellFinished struct {
	Cell     string
	Engine   string    // name and version that the cell found; "" if unknown
	Summary  Summary   // of this cell alone
	Broken   string    // why the cell is incomplete, such as a dead process; "" if complete
	KeptFrom time.Time // start of the earlier run that the result is kept from; zero for this run
}

// RunFinished is the last note.
type RunFinished struct{ Summary Summary }

func (RunStarted) note()      {}
func (DeploymentReady) note() {}
func (TestStarted) note()     {}
func (TestFinished) note()    {}
func (CellFinished) note()    {}
func (RunFinished) note()     {}
