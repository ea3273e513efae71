package retry

import (
	"math"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestDocumentIsTrue$ .

// Rule is one statement of a specification.
type Rule struct {
	// ID is stable: R for reads and rules of all retries, W for writes, B for client backpressure, T for
	// withTransaction, P for package pinning.
	ID        string `json:"rule,omitempty"`
	Statement string `json:"statement,omitempty"` // in our words
	Section   string `json:"section,omitempty"`   // of the specification
	Revision  string `json:"revision,omitempty"`  // date of the first version of the specification with this rule
	reason    string // of a decision, if this is the last rule with a reason
}

// Rules lists all rules in the order in which they are applied. The caller may modify the slice.
func Rules() []Rule {
	out := make([]Rule, len(table))
	for i, r := range table {
		out[i] = r.Rule
	}
	return out
}

// row is a rule for one kind of input. It applies if when, which does not modify the step, returns true.
type row struct {
	Rule
	on   InputKind
	when func(*step) bool
	then func(*step)
}

// step is the state of one call of Next.
type step struct {
	in Input
	State
	f      Failure // the failure of this input
	d      Decision
	tokens Tokens // in the client's bucket
	fired  RuleSet
	reason string
	done   bool

	read     bool // the failure is a retryable read error
	write    bool // the failure is a retryable write error
	overload bool // the failure is a retryable overload error
	gated    bool // the client's options do not allow an overload retry
	silent   bool // the failure has the label NoWritesPerformed
	labels   bool // labels determine the kind of an error of a write
}

func (st *step) finish(d Decision) {
	d.Attempt, d.Tokens, d.Rules, d.Reason = st.Attempt, st.tokens, st.fired, st.reason
	st.d, st.done = d, true
	st.ended = d.Action == ReturnResult || d.Action == ReturnError
}

func allowRead(st *step)   { st.read = true }
func forbidRead(st *step)  { st.read = false }
func allowWrite(st *step)  { st.write = true }
func forbidWrite(st *step) { st.write = false }

// late reports whether no time is left.
func (st *step) late() bool { return st.Timeout && st.in.Left <= 0 }

// expire raises the error because no time is left.
func (st *step) expire() {
	st.raise()
	st.d.Expired = true
}

func (st *step) raise() { st.finish(Decision{Action: ReturnError, Raise: st.raised}) }

func (st *step) selectServer() {
	st.Attempt++
	st.Chosen = Chosen{}
	st.finish(Decision{Action: Select, Deprioritized: slices.Clone(st.deprioritized)})
}

func (st *step) send() {
	st.Chosen = st.in.Chosen
	st.finish(Decision{Action: Send})
}

// retrying reports whether this is not the first attempt.
func (st *step) retrying() bool { return st.Attempt > 1 }

// attempted reports whether the failure shows that an attempt was made. For a write, a handshake error shows that
// nothing was written (Retryable Writes, "Executing Retryable Write Commands").
func (st *step) attempted() bool {
	if st.silent || st.f.Handshake && st.writes() {
		return false
	}
	return st.f.Kind == Network || st.f.Kind == Server
}

// reads reports whether the rules for read errors apply. Generic commands count as reads.
func (st *step) reads() bool { return st.Class != operations.Write }

// writeError reports whether the failure is a retryable write error, or would be labelled as one if the write were
// retried.
func (st *step) writeError() bool {
	return st.write || !st.reads() && st.labels && labelled(st.f)
}

// supported is writeError for supported write operations.
func (st *step) supported() bool { return st.writeError() && st.RetryableWrite }

// writes reports whether the rules for write errors determine which error is raised. Generic commands count as writes
// (Client Backpressure, "Overload retry policy", 6).
func (st *step) writes() bool { return st.Class != operations.Read }

// limit returns the maximum number of retries, or -1 for no limit.
func (st *step) limit() int {
	o := st.Policy.Overload
	if st.overloaded && o != nil {
		if m := st.MaxAdaptiveRetries; m != nil && !o.fixed {
			return *m
		}
		return o.MaxRetries
	}
	if st.Timeout {
		return -1
	}
	return 1
}

// delay returns the backoff before the next retry, 0 without client backpressure.
func (st *step) delay() time.Duration {
	o := st.Policy.Overload
	if o == nil {
		return 0
	}
	base := o.BaseBackoff
	if o.serverBase && st.f.BaseBackoff > 0 {
		base = st.f.BaseBackoff
	}
	ceiling := float64(base) * math.Pow(o.Growth, float64(st.Attempt+o.Exponent))
	return time.Duration(st.in.Jitter * math.Min(float64(o.MaxBackoff), ceiling))
}

func (st *step) deprioritize() {
	failed := st.f.Server
	if st.Policy.deprioritizeLastOnly {
		st.deprioritized = []string{failed}
		return
	}
	if !slices.Contains(st.deprioritized, failed) {
		st.deprioritized = append(slices.Clip(st.deprioritized), failed)
	}
}

func always(*step) bool { return true }

// old reports whether a server is older than the policy's minimum wire version.
func (st *step) old(at Chosen) bool { return st.Policy.minWireVersion > at.Wire }

// shed reports whether the server rejected the command because it is overloaded.
func (st *step) shed() bool { return st.f.has(codes.SystemOverloadedError) }

// listed reports whether the failure is a server error with one of the codes.
func (st *step) listed(codes []int32) bool {
	return st.f.Kind == Server && slices.Contains(codes, st.f.Code)
}

// table lists the rules in the order in which they are applied: the kind of failure, the error to raise, whether a
// retry is allowed, the deprioritized servers, and the backoff. It is never modified.
var table = []row{
	{Rule{"R1", "Select the first server as usual, without deprioritized servers.",
		"Retryable Reads, Selecting the initial server", "2019-03", "first attempt"},
		Begin, always, (*step).selectServer},
	{Rule{"R2", "A server selection error before any attempt is raised unchanged.",
		"Retryable Reads, Selecting the initial server", "2019-03", "no server could be selected, and nothing was attempted"},
		Failed, func(st *step) bool { return st.f.Kind == Selection && st.raised.Kind == 0 },
		func(st *step) { st.raised = st.f; st.raise() }},
	{Rule{"B12", "A retry that fails with an error other than an overload error adds a token to the bucket, because the server responds.",
		"Client Backpressure (2026-03-05), Adaptive retry requirements", "2025-12", ""},
		Failed, func(st *step) bool { return st.retrying() && !st.shed() }, func(st *step) { st.deposit(Token) }},
	{Rule{"R37", "When no time is left, an attempt that the driver ends raises the error of the previous attempt as a timeout.",
		"Client Side Operations Timeout, Retryability", "2022-10-18", "there is no time left"},
		Failed, func(st *step) bool {
			return st.late() && st.raised.Kind != 0 && st.f.Kind != Network && st.f.Kind != Server
		}, (*step).expire},
	{Rule{"R3", "If no server can be selected for a retry, raise the error of the previous attempt.",
		"Retryable Reads, Selecting the server for retry", "2019-03", "no server could be selected for the retry"},
		Failed, func(st *step) bool { return st.f.Kind == Selection }, (*step).raise},
	{Rule{"R4", "If the server selected for a retry does not support retryable reads, raise the error of the previous attempt.",
		"Retryable Reads, Selecting the server for retry", "2019-03", "the new server is too old for retryable reads"},
		Selected, func(st *step) bool {
			return st.retrying() && st.RetryableRead && st.old(st.in.Chosen) && !st.overloaded
		}, (*step).raise},
	{Rule{"B7", "After retryable overload errors only, a write is also retried on a server that does not support retryable writes, without a transaction number.",
		"Client Backpressure, Overload retry policy", "2026-01-09", "the server rejected all attempts unexecuted"},
		Selected, func(st *step) bool {
			return st.retrying() && st.RetryableWrite && !st.Policy.supports(st.in.Chosen) && st.overloaded && !st.numbered
		}, (*step).send},
	{Rule{"W4", "If the server selected for a retry does not support retryable writes, raise the error of the previous attempt.",
		"Retryable Writes, Executing Retryable Write Commands", "2017-08",
		"the new server does not support retryable writes"},
		Selected, func(st *step) bool {
			return st.retrying() && st.RetryableWrite && !st.Policy.supports(st.in.Chosen)
		}, (*step).raise},
	{Rule{"R5", "Build the command for the selected server, and send it.",
		"Retryable Reads, Sending an equivalent command for a retry attempt", "2019-03", "a server is selected"},
		Selected, always, (*step).send},
	{Rule{"B10", "A first attempt that succeeds adds RETRY_TOKEN_RETURN_RATE to the bucket.",
		"Client Backpressure (2026-03-05), Adaptive retry requirements", "2025-12", ""},
		Succeeded, func(st *step) bool { return !st.retrying() },
		func(st *step) { st.deposit(st.Policy.Bucket().perSuccess) }},
	{Rule{"B11", "A retry that succeeds adds RETRY_TOKEN_RETURN_RATE and one token.",
		"Client Backpressure (2026-03-05), Adaptive retry requirements", "2025-12", ""},
		Succeeded, (*step).retrying, func(st *step) { st.deposit(st.Policy.Bucket().perSuccess + Token) }},
	{Rule{"R6", "A successful attempt ends the operation.",
		"Retryable Reads, Executing Retryable Read Commands", "2019-03", "the attempt succeeded"},
		Succeeded, always, func(st *step) { st.finish(Decision{Action: ReturnResult}) }},
	{Rule{"R7", "If the command cannot be built for the new server, raise the error of the previous attempt.",
		"Retryable Reads, Sending an equivalent command for a retry attempt", "2019-03",
		"the command cannot be built for the new server"},
		Failed, func(st *step) bool { return st.f.Kind == NotBuilt && st.raised.Kind != 0 }, (*step).raise},

	// The kind of failure.
	{Rule{"R10", "A network error is retryable.",
		"Retryable Reads, Retryable Error", "2019-03", ""},
		Failed, func(st *step) bool { return st.reads() && st.f.Kind == Network && !st.f.Handshake }, allowRead},
	{Rule{"R11", "A server error with one of the listed codes is retryable.",
		"Retryable Reads, Retryable Error", "2019-03", ""},
		Failed, func(st *step) bool { return st.reads() && !st.f.Handshake && st.listed(st.Policy.ReadCodes) }, allowRead},
	{Rule{"R12", "A PoolClearedError is retryable.",
		"Retryable Reads, Retryable Error", "2021-03-23", ""},
		Failed, func(st *step) bool { return st.reads() && st.f.Kind == PoolCleared }, allowRead},
	{Rule{"R13", "These errors are also retryable during the handshake, authentication included.",
		"Retryable Reads, Retryable Error", "2022-01-25", ""},
		Failed, func(st *step) bool {
			return st.reads() && st.f.Handshake && (st.f.Kind == Network || st.listed(st.Policy.ReadCodes))
		}, allowRead},
	{Rule{"W10", "An error with the label RetryableWriteError is a retryable write error.",
		"Retryable Writes, Determining Retryable Write Errors", "2019-10", ""},
		Failed, func(st *step) bool { return !st.reads() && st.f.has(codes.RetryableWriteError) },
		func(st *step) {
			st.write = true
			st.numbered = st.numbered || !(st.shed() && st.f.has(codes.RetryableError))
		}},
	{Rule{"W11", "Before error labels, any network error is a retryable write error.",
		"Retryable Writes (2018-03-14), Terms", "2017-08", ""},
		Failed, func(st *step) bool { return !st.reads() && st.f.Kind == Network && !st.f.Handshake }, allowWrite},
	{Rule{"W12", "Before error labels, a server error or write concern error with one of the listed codes is a retryable write error.",
		"Retryable Writes (2018-03-14), Terms", "2017-10-18", ""},
		Failed, func(st *step) bool { return !st.reads() && !st.f.Handshake && st.listed(st.Policy.writeCodes) }, allowWrite},
	{Rule{"W13", "Before error labels, a server error or write concern error with any other code is a retryable write " +
		"error if its message contains \"not master\" or \"node is recovering\".",
		"Retryable Writes (2018-03-14), Terms", "2017-10-18", ""},
		Failed, func(st *step) bool {
			return !st.reads() && st.f.Kind == Server && !st.f.Handshake && !st.write && st.Policy.listedMessage(st.f)
		}, allowWrite},
	{Rule{"B1", "An error with the labels SystemOverloadedError and RetryableError is retryable, whatever the command.",
		"Client Backpressure, Overload retry policy", "2026-01-09", ""},
		Failed, func(st *step) bool { return st.shed() && st.f.has(codes.RetryableError) },
		func(st *step) { st.overload = true }},
	{Rule{"B2", "After an overload error, the number of retries is limited to MAX_RETRIES for every policy, even under timeoutMS.",
		"Client Backpressure, Interaction with Other Retry Policies", "2026-04-14", ""},
		Failed, (*step).shed, func(st *step) { st.overloaded = true }},

	// The error to raise.
	{Rule{"W20", "The newest error of a write does not indicate an attempt if it has the label NoWritesPerformed.",
		"Retryable Writes, Executing Retryable Write Commands", "2022-09-01", ""},
		Failed, func(st *step) bool { return st.raised.Kind != 0 && st.writes() && st.f.has(codes.NoWritesPerformed) },
		func(st *step) { st.silent = true }},
	{Rule{"R20", "The newest error is raised if it indicates that an attempt was made.",
		"Retryable Reads, If a retry attempt fails", "2019-03", ""},
		Failed, func(st *step) bool { return st.raised.Kind != 0 && st.attempted() },
		func(st *step) { st.raised = st.f }},
	{Rule{"R21", "An error that does not indicate an attempt leaves the previous error in place.",
		"Retryable Reads, If a retry attempt fails", "2019-03", "the earlier error says more"},
		Failed, func(st *step) bool { return st.raised.Kind != 0 && st.raised.Attempt != st.f.Attempt }, func(*step) {}},
	{Rule{"R22", "The first error is kept.",
		"Retryable Reads, Deciding to allow retry, encountering the initial retryable error, and selecting a server",
		"2019-03", ""},
		Failed, func(st *step) bool { return st.raised.Kind == 0 }, func(st *step) { st.raised = st.f }},

	// Whether a retry is allowed.
	{Rule{"R30", "With retryReads false, a read is attempted once.",
		"Retryable Reads, When not to allow retry", "2019-03", "retryReads is false"},
		Failed, func(st *step) bool { return st.read && st.RetryableRead && !st.RetryReads }, forbidRead},
	{Rule{"R31", "In a transaction, a read is attempted once.",
		"Retryable Reads, When not to allow retry", "2019-03", "the session is in a transaction"},
		Failed, func(st *step) bool { return st.read && st.RetryableRead && st.InTransaction }, forbidRead},
	{Rule{"R32", "On a server that does not support retryable reads, a read is attempted once.",
		"Retryable Reads, When not to allow retry", "2019-03", "the server is too old for retryable reads"},
		Failed, func(st *step) bool {
			return st.read && st.RetryableRead && st.Chosen.Address != "" && st.old(st.Chosen)
		},
		forbidRead},
	{Rule{"R33", "Operations that are not retryable reads are not retried: getMore, runCommand, mapReduce.",
		"Retryable Reads, Unsupported Read Operations", "2019-03", "the operation is never retried"},
		Failed, func(st *step) bool { return st.read && !st.RetryableRead }, forbidRead},
	{Rule{"W30", "With retryWrites false, a write is attempted once, except commitTransaction and abortTransaction.",
		"Retryable Writes, retryWrites", "2017-08", "retryWrites is false"},
		Failed, func(st *step) bool { return st.supported() && !st.RetryWrites && !st.EndsTransaction }, forbidWrite},
	{Rule{"W31", "In a transaction, a write is attempted once, except commitTransaction and abortTransaction.",
		"Retryable Writes, Retryable Writes Within Transactions", "2018-06", "the session is in a transaction"},
		Failed, func(st *step) bool { return st.supported() && st.InTransaction && !st.EndsTransaction }, forbidWrite},
	{Rule{"W32", "On a server that does not support retryable writes, a write is attempted once.",
		"Retryable Writes, Executing Retryable Write Commands", "2017-08", "the server does not support retryable writes"},
		Failed, func(st *step) bool {
			return st.supported() && st.Chosen.Address != "" && !st.Policy.supports(st.Chosen)
		},
		forbidWrite},
	{Rule{"W33", "The only writes that are retried are insert, update, delete and findAndModify.",
		"Retryable Writes, Unsupported Write Operations", "2017-08-25", "the command is not a supported write"},
		Failed, func(st *step) bool { return st.write && !slices.Contains(st.Policy.writeCommands, st.Name) },
		forbidWrite},
	{Rule{"W35", "Unsupported writes are not retried: multi-document and unacknowledged writes, aggregate and mapReduce that write, and schema changes.",
		"Retryable Writes, Unsupported Write Operations", "2017-08", "the operation is never retried"},
		Failed, func(st *step) bool { return st.writeError() && !st.RetryableWrite }, forbidWrite},
	{Rule{"B3", "Retries after overload errors require retryReads for reads, retryWrites for writes except " +
		"commitTransaction and abortTransaction, and both for runCommand and for other commands that are neither.",
		"Client Backpressure, Overload retry policy", "2026-03-30", "the client's options do not allow overload retries"},
		Failed, func(st *step) bool {
			switch st.Class {
			case operations.Read:
				return st.overload && !st.RetryReads
			case operations.Write:
				return st.overload && !st.RetryWrites && !st.EndsTransaction
			default:
				return st.overload && !(st.RetryReads && st.RetryWrites)
			}
		}, func(st *step) { st.gated = true }},
	{Rule{"R34", "Any other error is raised.",
		"Retryable Reads, When to allow retry", "2019-03", ""},
		Failed, func(st *step) bool { return !st.read && !st.write && (!st.overload || st.gated) }, func(st *step) {
			if st.reason == "" {
				st.reason = "the error is not retryable"
			}
			st.raise()
		}},
	{Rule{"R35", "Without timeoutMS, there is one retry.",
		"Retryable Reads, If a retry attempt fails", "2019-03", "one retry was made"},
		Failed, func(st *step) bool { return !st.overloaded && st.limit() >= 0 && st.Attempt > st.limit() }, (*step).raise},
	{Rule{"W34", "No write is retried more than once with one transaction number, even under timeoutMS.",
		"Retryable Writes, Executing Retryable Write Commands", "2017-08", "one retry was made"},
		Failed, (*step).retrying, (*step).raise},
	{Rule{"B4", "After an overload error, there are at most MAX_RETRIES retries.",
		"Client Backpressure, Overload retry policy", "2026-03-30", "the retries for an overloaded server are used up"},
		Failed, func(st *step) bool { return st.overloaded && st.Attempt > st.limit() }, (*step).raise},
	{Rule{"R36", "With timeoutMS, retries continue until the deadline.",
		"Client Side Operations Timeout, Retryability", "2022-10-18", "there is no time left"},
		Failed, (*step).late, (*step).expire},
	{Rule{"B5", "A backoff that would exceed the deadline is not started; the error is raised unchanged, because the deadline has not passed.",
		"Client Backpressure, Pseudocode", "2026-01-09", "the backoff would outlast the deadline"},
		Failed, func(st *step) bool { return st.Timeout && st.shed() && st.delay() > st.in.Left },
		(*step).raise},
	{Rule{"B13", "A retry after an overload error requires a token in the bucket.",
		"Client Backpressure (2026-03-05), Adaptive retry requirements", "2025-12", "there is no token left for a retry"},
		Failed, func(st *step) bool { return st.shed() && st.tokens < Token }, (*step).raise},
	{Rule{"B14", "Such a retry takes one token from the bucket.",
		"Client Backpressure (2026-03-05), Adaptive retry requirements", "2025-12", ""},
		Failed, (*step).shed, func(st *step) { st.tokens -= Token }},

	// The deprioritized servers, and the backoff.
	{Rule{"R40", "In a sharded cluster, the server that failed is deprioritized.",
		"Retryable Reads, Selecting the server for retry; Retryable Writes, Executing Retryable Write Commands",
		"2023-08-26", "retry on another mongos"},
		Failed, func(st *step) bool { return st.Chosen.Sharded && st.f.Server != "" }, (*step).deprioritize},
	{Rule{"R41", "In other topologies, the server that failed is deprioritized only after an overload error.",
		"Retryable Reads, Selecting the server for retry; Retryable Writes, Executing Retryable Write Commands",
		"2026-02-19", "retry away from the overloaded server"},
		Failed, func(st *step) bool {
			return !st.Chosen.Sharded && st.shed() && st.f.Server != "" &&
				(!st.Policy.retargetOption || st.OverloadRetargeting)
		}, (*step).deprioritize},
	{Rule{"R42", "Whatever the topology and the error, the server that failed is deprioritized.",
		"Retryable Reads, Selecting the server for retry", "2025-12-15", "retry away from the server that failed"},
		Failed, func(st *step) bool { return st.f.Server != "" }, (*step).deprioritize},
	{Rule{"B6", "After an overload error, wait jitter · min(MAX_BACKOFF, BASE_BACKOFF · 2^n) before retry n, counted from 1; a " +
		"positive baseBackoffMS of the server, which may be a fraction, replaces BASE_BACKOFF.",
		"Client Backpressure, Overload retry policy", "2026-07-08", "the server is overloaded"},
		Failed, (*step).shed, func(st *step) { st.finish(Decision{Action: BackOff, Delay: st.delay()}) }},
	{Rule{"R50", "Retry immediately.",
		"Retryable Reads, Why are read operations only retried once by default?", "2019-03", "the error is retryable"},
		Failed, always, (*step).selectServer},
	{Rule{"R36b", "No attempt is started after the deadline.",
		"Client Side Operations Timeout, Retryability", "2022-10-18", "there is no time left"},
		BackedOff, (*step).late, (*step).expire},
	{Rule{"R51", "Retry after the backoff.",
		"Client Backpressure, Overload retry policy", "2026-01-09", "the backoff is over"},
		BackedOff, always, (*step).selectServer},
}
