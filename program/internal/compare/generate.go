package compare

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// kindOfFault makes a random fault. Its weight is low if it changes the topology, since
// that costs a driver a heartbeat.
type kindOfFault struct {
	weight int
	make   func(r *rand.Rand) Fault
}

// Error codes by their treatment in the specifications.
var (
	retryableCodes = []int{
		codes.HostUnreachable, codes.HostNotFound, codes.NetworkTimeout,
		codes.ReadConcernMajorityNotAvailableYet, codes.ExceededTimeLimit, codes.SocketException,
	}
	stateChangeCodes = []int{
		codes.ShutdownInProgress, codes.PrimarySteppedDown, codes.NotWritablePrimary,
		codes.InterruptedAtShutdown, codes.InterruptedDueToReplStateChange, codes.NotPrimaryNoSecondaryOk,
		codes.NotPrimaryOrSecondary,
	}
	shutdownCodes     = []int{codes.ShutdownInProgress, codes.InterruptedAtShutdown}
	nonRetryableCodes = []int{
		codes.BadValue, codes.AtlasError, codes.MaxTimeMSExpired,
		codes.WriteConflict, codes.NoSuchTransaction, codes.LockTimeout,
		codes.KeyNotFound,
	}
	overloadCodes = []int{codes.IngressRequestRateLimitExceeded, codes.AdmissionQueueOverflow, codes.AtlasError}
)

// labelSets are labels that a server may attach to a command error.
var labelSets = [][]string{
	{}, {codes.RetryableWriteError}, {codes.RetryableWriteError, codes.NoWritesPerformed}, {codes.NoWritesPerformed},
	{codes.RetryableError},
	{codes.TransientTransactionError},
}

// overloadLabels are labels of overload errors.
var overloadLabels = [][]string{
	{codes.SystemOverloadedError, codes.RetryableError},
	{codes.SystemOverloadedError, codes.RetryableError},
	{codes.SystemOverloadedError, codes.RetryableError, codes.NoWritesPerformed},
	{codes.SystemOverloadedError, codes.RetryableError, codes.RetryableWriteError},
	{codes.SystemOverloadedError},
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

var kindsOfFaults = []kindOfFault{
	{4, func(r *rand.Rand) Fault { return Fault{Code: pick(r, retryableCodes)} }},
	{1, func(r *rand.Rand) Fault { return Fault{Code: pick(r, stateChangeCodes)} }},
	{2, func(r *rand.Rand) Fault { return Fault{Code: pick(r, nonRetryableCodes)} }},
	{3, func(r *rand.Rand) Fault { return Fault{Code: pick(r, nonRetryableCodes), Labels: pick(r, labelSets)} }},
	{2, func(r *rand.Rand) Fault { return Fault{Code: pick(r, retryableCodes), Labels: pick(r, labelSets)} }},
	{6, func(r *rand.Rand) Fault {
		return Fault{Code: pick(r, overloadCodes), Labels: pick(r, overloadLabels), Backoff: 1 + r.IntN(3)}
	}},
	{4, func(*rand.Rand) Fault { return Fault{Close: true} }},
	{3, func(*rand.Rand) Fault { return Fault{LoseReply: true} }},
	{2, func(r *rand.Rand) Fault { return Fault{WriteConcernError: pick(r, retryableCodes)} }},
	{1, func(r *rand.Rand) Fault { return Fault{WriteConcernError: pick(r, stateChangeCodes)} }},
	{1, func(r *rand.Rand) Fault {
		return Fault{WriteConcernError: codes.WriteConcernFailed, Labels: pick(r, labelSets)}
	}},
	{2, func(r *rand.Rand) Fault { return Fault{BlockMS: 1 + r.IntN(5), Close: r.IntN(2) == 0} }},
	{2, func(*rand.Rand) Fault { return Fault{} }},
}

// With timeoutMS, an attempt may block for longer than the timeout. The difference tolerates a busy machine.
const (
	someTimeMS = 1000
	blockedMS  = 2200
)

// clientOptions are the options of some schedules, with their values.
var clientOptions = []struct {
	name   string
	one    int // in this many schedules has the option
	values []any
}{
	{"retryReads", 12, []any{false}},
	{"retryWrites", 12, []any{false}},
	{"enableOverloadRetargeting", 12, []any{true}},
	{"readPreference", 12, []any{"secondaryPreferred"}},
	{"maxAdaptiveRetries", 10, []any{0, 1, 2, 3}},
	{"timeoutMS", 10, []any{someTimeMS}},
}

// Generator makes random schedules. They depend only on the seed.
type Generator struct {
	random     *rand.Rand
	topologies []string
	names      []string // of operations
	faults     []func(*rand.Rand) Fault
}

// NewGenerator returns a generator of schedules for topologies, named as in
// runOnRequirements. Without topologies, schedules run on any.
func NewGenerator(seed int64, topologies ...string) *Generator {
	g := &Generator{
		random:     rand.New(rand.NewPCG(uint64(seed), 0x7574725f)),
		topologies: topologies,
		names:      slices.Sorted(maps.Keys(parts().Operations)),
	}
	for _, k := range kindsOfFaults {
		g.faults = append(g.faults, slices.Repeat([]func(*rand.Rand) Fault{k.make}, k.weight)...)
	}
	return g
}

// Next returns the next schedule.
func (g *Generator) Next() Schedule {
	r := g.random
	s := Schedule{Operation: pick(r, g.names), Options: Options{}}
	if len(g.topologies) > 0 {
		if s.Topology = pick(r, g.topologies); s.Topology == "single" && parts().Operations[s.Operation].Replicated {
			s.Operation = "insertOne"
		}
	}
	for _, o := range clientOptions {
		if r.IntN(o.one) == 0 {
			s.Options[o.name] = pick(r, o.values)
		}
	}
	for range 1 + r.IntN(4) {
		f := pick(r, g.faults)(r)
		// Other operations have no write concern errors.
		for f.WriteConcernError != 0 && !parts().Operations[s.Operation].Write {
			f = pick(r, g.faults)(r)
		}
		s.Faults = append(s.Faults, f)
	}
	if s.timed() && r.IntN(5) == 0 {
		s.Faults[len(s.Faults)-1] = Fault{BlockMS: blockedMS}
	}
	return s
}
