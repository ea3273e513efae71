package selection

// Revision is a dated state of the rules that differ between specifications.
type Revision struct {
	// Name is the specification and the date of its text.
	Name string
	// MaxStaleness: maxStalenessSeconds counts.
	MaxStaleness bool
	// Reuse: when only deprioritized servers are left, they are used again.
	// Without it a server that failed is not tried twice.
	Reuse bool
	// Attempts is how many servers a read may be tried on by the selection
	// rules themselves; 0 leaves that to the rules of retrying.
	Attempts int
	// DirectPrimary: a read with mode primary over a direct connection to a
	// secondary is refused.
	DirectPrimary bool
}

// Current is the Server Selection specification with the order of filtering
// of 2025-12-08: deprioritized servers are filtered out first, on every
// topology, and come back if nothing else is suitable.
func Current() Revision {
	return Revision{Name: "server-selection@2025-12-08", MaxStaleness: true, Reuse: true}
}

// ReadPreferences2014 is the Driver Read Preferences specification of
// 2014-02-14, which Server Selection replaced. A read whose member fails by a
// socket error goes to another member that fits mode and tags: three members
// at most, none of them twice ("Requests", "Auto-retry"). It knows no maximum
// staleness. The caller remembers the members that failed and hands them over
// as deprioritized.
func ReadPreferences2014() Revision {
	return Revision{Name: "read-preferences@2014-02-14", Attempts: 3, DirectPrimary: true}
}
