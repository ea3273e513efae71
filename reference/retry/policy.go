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

// Policies lists the policies, the current one first. The values are the
// caller's own.
func Policies() []*Policy {
	current, seed := rulesWithout("R4", "R32"), rulesWithout("R41", "B1", "B2", "B3", "B4", "B5", "B6", "R51", "R36b")
	plain := rulesWithout("R4", "R32", "B1", "B2", "B3", "B4", "B5", "B6", "R51", "R36b")
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

func rulesWithout(ids ...string) []string {
	var out []string
	for _, r := range Rules() {
		if !slices.Contains(ids, r.ID) {
			out = append(out, r.ID)
		}
	}
	return out
}
