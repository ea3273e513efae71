package retry

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// Policy is a dated revision of the retry specifications: a set of rules and constants. It is immutable.
type Policy struct {
	Name    string   // selects the policy in options and flags
	Sources []string // specifications and their revisions
	date    string   // of the newest revision: see Since
	Rules   RuleSet  // the rules in force, including the rules of withTransaction
	// wording overrides fields of rules that had another wording or date in this revision. Empty fields are ignored.
	wording   map[string]Rule
	ReadCodes []int32 // server error codes that make a read retryable
	// writeCodes are the codes that make a write retryable, before error labels (2019-10-21).
	writeCodes           []int32
	writeMessages        []string  // substrings of error messages that make a write retryable, regardless of the code
	writeCommands        []string  // the only commands that are retryable writes; nil: by the table of operations
	WholeBulks           bool      // a multi-document write excludes its whole bulkWrite, as before 2018-04-25
	RetryWritesOff       bool      // retryWrites defaults to false, as before 2019-03-06
	minWireVersion       int32     // of a server for retries, until 2026-06-17; 0: any
	deprioritizeLastOnly bool      // deprioritize only the last failed server, as before 2025-12-08
	retargetOption       bool      // R41 depends on enableOverloadRetargeting
	Overload             *Overload // client backpressure, or nil
	// Pinning is the revision of package pinning for reads on replica sets, as before Server Selection, or "".
	Pinning string
	// transactionExponent is added to the number of the attempt in the exponent of withTransaction's backoff: 0 since
	// 2026-07-08, -1 before.
	transactionExponent int
}

// Overload holds the constants of client backpressure.
type Overload struct {
	MaxRetries              int
	BaseBackoff, MaxBackoff time.Duration
	Growth                  float64 // factor from one backoff to the next
	// Exponent is added to the number of the retry in the exponent of Growth: 0 since 2026-07-08, -1 before.
	Exponent   int
	serverBase bool    // the server's baseBackoffMS replaces BaseBackoff
	fixed      bool    // maxAdaptiveRetries is ignored
	Bucket     *Bucket // or nil
	Handshake  any     // value of the field backpressure in handshakes, a string or a bool
}

// What the loop does apart from the rules, as dates for Since. The dates are in the changelogs.
const (
	// numberedWrites: writes have transaction numbers (Retryable Writes).
	numberedWrites = "2017-08-18"
	// StorageEngineMessage: the message of code 20 is replaced (Retryable Writes, "Executing Retryable Write Commands").
	StorageEngineMessage = "2019-07-30"
	// writeLabels: drivers add RetryableWriteError (Retryable Writes, "RetryableWriteError Labels").
	writeLabels = "2019-10-21"
	// ConnectionLabels: if a connection cannot be established, its network error has the labels SystemOverloadedError and
	// RetryableError, and does not clear the pool (Connection Monitoring and Pooling, "Connection Pool",
	// backpressure-enabled; Server Discovery and Monitoring, "Error handling pseudocode").
	ConnectionLabels = "2025-11-21"
	// ShedCommits: a commit keeps its write concern after overload errors (Transactions, "Interaction with Client
	// Backpressure").
	ShedCommits = "2026-01-09"
)

// Since reports whether the policy is of a date or a later one.
func (p *Policy) Since(date string) bool { return p.date >= date }

// supports reports whether a server supports retryable writes (Retryable Writes, "Supported Server Versions").
func (p *Policy) supports(at Chosen) bool {
	return p.Since(numberedWrites) && at.RetryableWrites && at.Wire >= p.minWireVersion
}

// Numbers reports whether a write has a transaction number on a server if retryWrites is true.
func (p *Policy) Numbers(o Operation, at Chosen) bool {
	return o.RetryableWrite && (p.writeCommands == nil || slices.Contains(p.writeCommands, o.Name)) && p.supports(at)
}

// RulesInForce lists the rules of the policy, with its wording.
func (p *Policy) RulesInForce() []Rule {
	var out []Rule
	for _, r := range slices.Concat(Rules(), TransactionRules()) {
		if !p.Rules.has(r.ID) {
			continue
		}
		then := p.wording[r.ID]
		r.Statement = cmp.Or(then.Statement, r.Statement)
		r.Section = cmp.Or(then.Section, r.Section)
		r.Revision = cmp.Or(then.Revision, r.Revision)
		out = append(out, r)
	}
	return out
}

// Constants describes the constants of the policy.
func (p *Policy) Constants() []string {
	var out []string
	add := func(holds bool, format string, args ...any) {
		if holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	less := map[int]string{-1: " minus 1"}
	add(len(p.ReadCodes) > 0, "%s", plural.Of(len(p.ReadCodes), "code"))
	add(len(p.writeCodes) > 0, "%s of writes, and messages with \"%s\"; only %s", plural.Of(len(p.writeCodes), "code"),
		strings.Join(p.writeMessages, "\" or \""), strings.Join(p.writeCommands, ", "))
	add(p.WholeBulks, "a bulkWrite with a multi-document write is not retried at all")
	add(!p.Since(writeLabels), "drivers do not add RetryableWriteError")
	add(!p.Since(ConnectionLabels), "a connection that cannot be established is not an overload error")
	add(p.RetryWritesOff, "`retryWrites` defaults to false")
	add(p.Pinning != "", "reads on replica sets follow only the P rules")
	add(p.minWireVersion > 0, "wire version %d for retries", p.minWireVersion)
	add(p.deprioritizeLastOnly, "only the last failed server is deprioritized")
	add(p.retargetOption, "R41 only with `enableOverloadRetargeting`")
	if o := p.Overload; o != nil {
		add(true, "MAX_RETRIES %d, BASE_BACKOFF %v, MAX_BACKOFF %v, the exponent is the number of the retry%s",
			o.MaxRetries, o.BaseBackoff, o.MaxBackoff, less[o.Exponent])
		add(!o.serverBase, "no `baseBackoffMS`")
		add(o.fixed, "no `maxAdaptiveRetries`")
		if b := o.Bucket; b != nil {
			add(true, "a token bucket for each client: capacity %v, RETRY_TOKEN_RETURN_RATE %v", b.Capacity, b.perSuccess)
		}
		add(true, "handshakes have `backpressure` %#v", o.Handshake)
	}
	add(p.Rules.has("T9"), "withTransaction backs off %v · %v^exponent, at most %v, the exponent is the number of the attempt%s",
		transactionBase, transactionGrowth, transactionCap, less[p.transactionExponent])
	return out
}

// RetryableWriteError reports whether an error in a reply is a retryable write error: by its label, or before labels by
// its code or message.
func (p *Policy) RetryableWriteError(f Failure) bool {
	return p.Since(writeLabels) && f.has(codes.RetryableWriteError) || slices.Contains(p.writeCodes, f.Code) ||
		p.listedMessage(f)
}

func (p *Policy) listedMessage(f Failure) bool {
	return slices.ContainsFunc(p.writeMessages, func(part string) bool { return strings.Contains(f.Message, part) })
}

// readCodes lists the codes of "Retryable Error" since 2023-11-30.
func readCodes() []int32 {
	return []int32{
		codes.HostUnreachable,
		codes.HostNotFound,
		codes.NetworkTimeout,
		codes.ShutdownInProgress,
		codes.ReadConcernMajorityNotAvailableYet,
		codes.PrimarySteppedDown,
		codes.ExceededTimeLimit,
		codes.SocketException,
		codes.NotWritablePrimary,
		codes.InterruptedAtShutdown,
		codes.InterruptedDueToReplStateChange,
		codes.NotPrimaryNoSecondaryOk,
		codes.NotPrimaryOrSecondary,
	}
}

// writeCodes lists the codes of "Retryable Error" of Retryable Writes, 2018-03-14: the codes of reads without the newer
// ReadConcernMajorityNotAvailableYet and ExceededTimeLimit, and with WriteConcernFailed, which was listed until
// 2018-06-07.
func writeCodes() []int32 {
	return append(slices.DeleteFunc(readCodes(), func(c int32) bool {
		return c == codes.ReadConcernMajorityNotAvailableYet || c == codes.ExceededTimeLimit
	}), codes.WriteConcernFailed)
}

// The sets of rules that policies consist of.
const (
	shared       = "R1 R2 R3 R5 R6 R7 R20 R21 R22 R34 R50"
	reads        = "R10 R11 R12 R13 R30 R31 R33 R35 R36 R37"
	writes       = "W4 W30 W31 W32"
	labels       = "W10 W20 W35"
	byCode       = "W11 W12 W13 W33 W34"
	oldReads     = "R4 R32"
	backpressure = "B1 B2 B4 B5 B6 B7 R36b R51"
	bucketRules  = "B10 B11 B12 B13 B14"
	transactions = "T1 T2 T3 T4 T5 T6 T7"
	atOnce       = "T12 T13"
	backedOff    = "T8 T9 T10"
)

// Policies lists the policies, the current one first. The caller may modify them.
func Policies() []*Policy {
	// T9 until 2026-07-08.
	oldTransactionBackoff := Rule{Revision: "2025-11-20",
		Statement: "Before retrying the transaction, wait jitter · min(500 ms, 5 ms · 1.5^(attempt − 1))."}
	return []*Policy{
		{
			Name: "current", date: "2026-07-08",
			Sources: []string{"retryable-reads@2026-06-17", "retryable-writes@2026-06-17",
				"client-backpressure@2026-07-08"},
			Rules:     ruleSet(shared, reads, writes, labels, backpressure, "B3 R40 R41", transactions, backedOff, "T11"),
			ReadCodes: readCodes(), retargetOption: true,
			Overload: &Overload{MaxRetries: 2, BaseBackoff: 100 * time.Millisecond,
				MaxBackoff: 10 * time.Second, Growth: 2, serverBase: true, Handshake: "2"},
		},
		{
			Name: "retryable-reads@2026", date: "2026-06-17",
			Sources:   []string{"retryable-reads@2026-06-17", "retryable-writes@2026-06-17"},
			Rules:     ruleSet(shared, reads, writes, labels, "R40 R41", transactions, backedOff, "T11"),
			wording:   map[string]Rule{"T9": oldTransactionBackoff},
			ReadCodes: readCodes(), transactionExponent: -1,
		},
		{
			Name: "retryable-reads@2024", date: "2024-05-08",
			Sources:   []string{"retryable-reads@2024-04-30", "retryable-writes@2024-05-08"},
			Rules:     ruleSet(shared, reads, oldReads, writes, labels, "R40", transactions, atOnce),
			ReadCodes: readCodes(), minWireVersion: 6, deprioritizeLastOnly: true,
		},
		{
			Name: "client-backpressure@2025-12", date: "2025-12-08",
			Sources: []string{"retryable-reads@2025-12-08", "retryable-writes@2025-12-08",
				"client-backpressure, the proposal of 2025-12"},
			Rules: ruleSet(shared, reads, oldReads, writes, labels, backpressure, bucketRules, "R42", transactions, backedOff),
			wording: map[string]Rule{
				"B1": {Revision: "2025-12"}, "B2": {Revision: "2025-12"}, "B4": {Revision: "2025-12"}, "B5": {Revision: "2025-12"},
				"B7":  {Revision: "2025-12"},
				"R42": {Revision: "2025-12"}, "R51": {Revision: "2025-12"},
				"B6": {Revision: "2025-12", Statement: "After an overload error, wait jitter · min(MAX_BACKOFF, BASE_BACKOFF · 2^(n − 1)) before retry n, counted from 1."},
				"T9": oldTransactionBackoff,
			},
			ReadCodes: readCodes(), minWireVersion: 6, transactionExponent: -1,
			Overload: &Overload{MaxRetries: 5, BaseBackoff: 100 * time.Millisecond, MaxBackoff: 10 * time.Second,
				Growth: 2, Exponent: -1, fixed: true, Bucket: &Bucket{Capacity: 1000 * Token, perSuccess: Token / 10}, Handshake: true},
		},
		{
			Name: "retryable-writes@2018-03-14", date: "2018-03-14",
			Sources: []string{"retryable-writes@2018-03-14"},
			// W31 and withTransaction are newer than the revision. It has no transactions. The engine has them, and
			// must not retry writes in them.
			Rules: ruleSet(shared, writes, byCode, transactions, atOnce), wording: writesWording(shared),
			writeCodes: writeCodes(), writeMessages: []string{"not master", "node is recovering"},
			writeCommands: []string{"delete", "findAndModify", "insert", "update"}, WholeBulks: true, RetryWritesOff: true,
			minWireVersion: 6,
		},
		{
			Name: "read-preferences@2014-02-14", date: "2014-02-14", Sources: []string{"read-preferences@2014-02-14"},
			Rules: ruleSet(shared, transactions, atOnce), Pinning: "read-preferences@2014-02-14", RetryWritesOff: true,
		},
		{
			Name: "read-preferences@2012-08", date: "2012-08",
			Sources: []string{"read-preferences of 2.2, in a note of 2014-02-14"},
			Rules:   ruleSet(shared, transactions, atOnce), Pinning: "read-preferences@2012-08", RetryWritesOff: true,
		},
	}
}

// writesWording is the wording of rules that Retryable Writes had two years before Retryable Reads.
func writesWording(rules string) map[string]Rule {
	out := map[string]Rule{}
	for _, id := range strings.Fields(rules) {
		out[id] = Rule{Section: "Retryable Writes, Executing Retryable Write Commands", Revision: "2017-08"}
	}
	return out
}

// Named returns the policy with a name, or the current one for "".
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
	return nil, fmt.Errorf("unknown retry policy %q: the policies are %s", name, strings.Join(names, ", "))
}

// Tokens is a number of tokens in tenths: a success returns a tenth, and sums stay exact.
type Tokens int

// Token is one token.
const Token Tokens = 10

// String formats the number, such as 999.1.
func (t Tokens) String() string {
	return strconv.FormatFloat(float64(t)/float64(Token), 'f', -1, 64)
}

// Bucket holds the constants of the token bucket that limits a client's retries after overload errors (Client
// Backpressure (2026-03-05), "Token Bucket"). The client stores the number of tokens, and passes it in Input.Tokens;
// Decision.Tokens is the new number.
type Bucket struct {
	Capacity   Tokens // maximum and initial number of tokens
	perSuccess Tokens // RETRY_TOKEN_RETURN_RATE, the number of tokens that a success adds
}

// Bucket returns the policy's token bucket, or nil.
func (p *Policy) Bucket() *Bucket {
	if p.Overload == nil {
		return nil
	}
	return p.Overload.Bucket
}

// deposit adds tokens, up to the capacity.
func (st *step) deposit(n Tokens) {
	st.tokens = min(st.Policy.Bucket().Capacity, st.tokens+n)
}
