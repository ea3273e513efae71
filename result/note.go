package result

import "time"

// Note is one thing that happened in a run. Reporters read one stream of
// notes; the set of implementations is sealed.
type Note interface{ note() }

// RunStarted opens the stream.
type RunStarted struct {
	Time   time.Time
	Engine string // name and version
	Total  int    // tests to run, times deployments, times iterations
	// Skipped of Total are known not to run.
	Skipped int
	Files   int
	// ByFile says how many of Total are of which file; nil if nobody knows.
	ByFile map[string]int
	Jobs   int
	Seed   *int64 // of --shuffle
	Shard  string // the part of a run that this is, such as "2/5"; "" if whole
	Cell   string // the cell of a matrix that this is; "" if it is none, or all
	// Servers are the versions that deployments on offer have, such as
	// "replicaset 8.0.4".
	Servers []string
}

// DeploymentReady says that a deployment is in use.
type DeploymentReady struct {
	Name string // as in TestID.Deployment
	Info string // topology, version, hosts; no secrets
	Took time.Duration
}

// TestStarted opens a test, and each further attempt at one. Tests of several
// workers interleave.
type TestStarted struct {
	Test TestID
	Time time.Time
}

// TestFinished closes a test. Skipped tests have no TestStarted.
type TestFinished struct{ Verdict *Verdict }

// CellFinished says how one cell of several went, once all its tests were told.
// It comes for every cell, also of one that has no test.
type CellFinished struct {
	Cell    string
	Summary Summary // of this cell alone
	// Broken says why the cell is not whole: its process died, or was cut off.
	// "" for a whole one.
	Broken string
	// Kept is when the cell began in an earlier run, of which this is the
	// result. It is zero for a cell that was run now.
	Kept time.Time
}

// RunFinished closes the stream; nothing comes after it.
type RunFinished struct {
	Time    time.Time
	Summary Summary
}

func (RunStarted) note()      {}
func (DeploymentReady) note() {}
func (TestStarted) note()     {}
func (TestFinished) note()    {}
func (CellFinished) note()    {}
func (RunFinished) note()     {}
