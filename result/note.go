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
	Files  int
	Jobs   int
	Seed   *int64 // of --shuffle
	Shard  string // the part of a run that this is, such as "2/5"; "" if whole
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

// RunFinished closes the stream; nothing comes after it.
type RunFinished struct {
	Time    time.Time
	Summary Summary
}

func (RunStarted) note()      {}
func (DeploymentReady) note() {}
func (TestStarted) note()     {}
func (TestFinished) note()    {}
func (RunFinished) note()     {}
