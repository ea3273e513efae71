package retry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy is a dated state of the retry specifications: the rules that it has,
// and its constants. A policy is never changed once it is made.
type Policy struct {
	// Name is the name by which users choose it.
	Name string
	// Sources are the specifications with the revisions that it follows.
	Sources []string
	// Rules are the identifiers of its rules.
	Rules []string
	// ReadCodes are the server's error codes that make a read retryable.
	ReadCodes []int32
	// WriteCodes are those that make a write retryable, as before error labels
	// (2019-10-21). With them neither server nor driver labels.
	WriteCodes []int32
	// WriteMessages are parts of the messages that do, whatever the code.
	WriteMessages []string
	// WriteCommands are the only writes that W33 leaves to be retried.
	WriteCommands []string
	// RetryWritesOff tells that retryWrites is false if it is not set, as
	// before 2019-03-06.
	RetryWritesOff bool
	// MinWireVersion is the wire version that a server needs for retryable
	// reads; 0 means any.
	MinWireVersion int32
	// DeprioritizeLastOnly keeps only the newest failed server in the list,
	// as before 2025-12-08.
	DeprioritizeLastOnly bool
	// RetargetOption makes R41 depend on enableOverloadRetargeting.
	RetargetOption bool
	// Overload holds the constants of client backpressure, nil without it.
	Overload *Overload
}

// Overload holds the constants of client backpressure.
type Overload struct {
	MaxRetries              int
	BaseBackoff, MaxBackoff time.Duration
	// Exponent is added to the number of the retry to make the exponent of 2:
	// 0 since 2026-07-08, -1 before.
	Exponent int
	// ServerBase tells that baseBackoffMS of the server counts.
	ServerBase bool
	// Fixed tells that maxAdaptiveRetries does not replace MaxRetries.
	Fixed bool
	// Bucket is the token bucket, nil without one.
	Bucket *Bucket
}

func (p *Policy) has(id string) bool { return slices.Contains(p.Rules, id) }

// readCodes is the list of "Retryable Error" since 2023-11-30.
func readCodes() []int32 {
	return []int32{
		6,     // HostUnreachable
		7,     // HostNotFound
		89,    // NetworkTimeout
		91,    // ShutdownInProgress
		134,   // ReadConcernMajorityNotAvailableYet
		189,   // PrimarySteppedDown
		262,   // ExceededTimeLimit
		9001,  // SocketException
		10107, // NotWritablePrimary
		11600, // InterruptedAtShutdown
		11602, // InterruptedDueToReplStateChange
		13435, // NotPrimaryNoSecondaryOk
		13436, // NotPrimaryOrSecondary
	}
}

// writeCodes is the list of "Retryable Error" of Retryable Writes, 2018-03-14.
func writeCodes() []int32 {
	return []int32{
		6,     // HostUnreachable
		7,     // HostNotFound
		64,    // WriteConcernFailed, until 2018-06-07
		89,    // NetworkTimeout
		91,    // ShutdownInProgress
		189,   // PrimarySteppedDown
		9001,  // SocketException
		10107, // NotMaster
		11600, // InterruptedAtShutdown
		11602, // InterruptedDueToReplStateChange
		13435, // NotMasterNoSlaveOk
		13436, // NotMasterOrSecondary
	}
}

// Policies lists the policies, the current one first. The values are the
// caller's own.
func Policies() []*Policy {
	codes, bucket := []string{"W11", "W12", "W13", "W33", "W34"}, []string{"B10", "B11", "B12", "B13", "B14", "R42"}
	backpressure := []string{"B1", "B2", "B3", "B4", "B5", "B6", "R51", "R36b"}
	current := rulesWithout(codes, bucket, []string{"R4", "R32"})
	plain := rulesWithout(codes, bucket, backpressure, []string{"R4", "R32"})
	seed := rulesWithout(codes, bucket, backpressure, []string{"R41"})
	december := rulesWithout(codes, []string{"R4", "R32", "B3", "R40", "R41"})
	// W31 is younger than the revision, which knows no transactions; the engine
	// does, and nothing in them may be sent again.
	first := rulesWithout(bucket, backpressure, []string{"R4", "R10", "R11", "R12", "R13", "R30", "R31", "R32", "R33",
		"W10", "W20", "R35", "R36", "R37", "R40", "R41"})
	return []*Policy{
		{
			Name: "current",
			Sources: []string{"retryable-reads@2026-06-17", "retryable-writes@2026-06-17",
				"client-backpressure@2026-07-08"},
			Rules: current, ReadCodes: readCodes(), RetargetOption: true,
			Overload: &Overload{MaxRetries: 2, BaseBackoff: 100 * time.Millisecond,
				MaxBackoff: 10 * time.Second, ServerBase: true},
		},
		{
			Name:    "retryable-reads@2026",
			Sources: []string{"retryable-reads@2026-06-17", "retryable-writes@2026-06-17"},
			Rules:   plain, ReadCodes: readCodes(),
		},
		{
			Name:    "retryable-reads@2024",
			Sources: []string{"retryable-reads@2024-04-30", "retryable-writes@2024-05-08"},
			Rules:   seed, ReadCodes: readCodes(), MinWireVersion: 6, DeprioritizeLastOnly: true,
		},
		{
			Name:    "client-backpressure@2025-12",
			Sources: []string{"retryable-reads@2025-12-08", "retryable-writes@2025-12-08", "client-backpressure, the proposal of 2025-12"},
			Rules:   december, ReadCodes: readCodes(),
			Overload: &Overload{MaxRetries: 5, BaseBackoff: 100 * time.Millisecond, MaxBackoff: 10 * time.Second,
				Exponent: -1, Fixed: true, Bucket: &Bucket{Capacity: 1000 * Token, Return: Token / 10}},
		},
		{
			Name:    "retryable-writes@2018-03-14",
			Sources: []string{"retryable-writes@2018-03-14"},
			Rules:   first, WriteCodes: writeCodes(), WriteMessages: []string{"not master", "node is recovering"},
			WriteCommands: []string{"delete", "findAndModify", "insert", "update"}, RetryWritesOff: true,
		},
	}
}

// Named gives a policy by its name; "" is the current one.
func Named(name string) (*Policy, error) {
	all := Policies()
	if name == "" {
		return all[0], nil
	}
	var names []string
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("retry policy %q is not known: there are %s", name, strings.Join(names, ", "))
}

func rulesWithout(lists ...[]string) []string {
	without := slices.Concat(lists...)
	var out []string
	for _, r := range Rules() {
		if !slices.Contains(without, r.ID) {
			out = append(out, r.ID)
		}
	}
	return out
}
