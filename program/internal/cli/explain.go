package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/specs"
)

func explainCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "explain [RULE...|PATH...]",
		Short: "Print the rules of a retry policy, or what it decides",
		Long: `Without --try, prints the numbered rules of a retry policy: all of them, or only
those named. Reports refer to the rules by these numbers.

With suites, runs their tests with the reference engine on embedded deployments, and
prints what was selected, sent and decided in each attempt, and by which rules, also for
tests that pass. --html writes a page with a sequence diagram of each test.

With --try, simulates an operation: each --try is the result of one attempt, and utr
prints what the retry core decides and by which rules. The results are

    ok                    success
    network               a network error
    CODE                  a server error with that code, such as 91
    handshake[,CODE]      a failed hello, with that code or a network error
    authentication[,CODE] a failed authentication, with that code or a network error
    pool-cleared          no connection, because the pool was cleared
    selection             no server could be selected

Labels of the error may follow, as in 462,SystemOverloadedError,RetryableError, and so
may the message of a server error if it has a space, as in '1,not master'.

With --select, explains server selection: a YAML file in the format of the Server
Selection tests describes the topology, and utr prints which servers remain after each
step.

Under a policy of read preferences, the P rules choose the members of a replica set
for a read: --try and --select can be combined, and without --select, the set has the
primary a and the secondaries b and c.`,
		Example: `# all rules of the current policy
utr explain
# two rules
utr explain R11 R40
# a find whose first attempt fails with a network error
utr explain --operation find --topology sharded --try network --try ok
# which server a read is sent to
utr explain --select topology.yml --read-preference '{mode: secondary, tag_sets: [{dc: ny}]}'
# a read of 2014, which is tried on other members
utr explain --policy read-preferences@2014-02-14 --read-preference nearest --try network --try ok
# the differences between two policies
utr explain --policy retryable-reads@2024 --diff current
# a test, attempt by attempt
utr explain --run 'after two' client-backpressure/collection-find.yml
# the policies
utr explain --list`,
		ValidArgsFunction: cobra.FixedCompletions(
			mapSlice(allRules(), func(r retry.Rule) string { return r.ID }), cobra.ShellCompDirectiveNoFileComp),
	}, func(f *flags) action {
		e := &explainFlags{flags: f, operation: "find", topology: "replicaset", left: time.Minute, jitter: 0.5,
			tokens: math.Inf(1), wire: 25}
		e.declare(f)
		return e.act
	})
}

func (e *explainFlags) declare(f *flags) {
	f.policy(&e.policy, "policy", "retry policy (default the current one)")
	f.toggle(&e.list, "list", "list the policies")
	f.policy(&e.other, "diff", "list the rules and constants that differ in another policy")
	set(f, &e.operation, "operation", "NAME", "operation to simulate, by the name of its command or its name in suites",
		operationName, operationNames()...)
	choice(f, &e.topology, "topology", "NAME", "topology to simulate", "replicaset", "sharded")
	f.toggle(&e.noRetry, "no-retry", "the client sets retryReads and retryWrites to false")
	f.toggle(&e.retryWrites, "retry-writes",
		"the client sets retryWrites to true, which is not the default of the first revision")
	f.toggle(&e.settings.InTransaction, "transaction", "the session is in a transaction")
	f.toggle(&e.settings.Timeout, "csot", "timeoutMS is set")
	f.duration(&e.left, "left", "time until the deadline of timeoutMS, at the end of each attempt")
	numberUpTo(f, &e.jitter, "jitter", "NUMBER", 1,
		"jitter of backoffs, from 0 to 1; under a policy of read preferences, which of the near members is chosen")
	numberUpTo(f, &e.tokens, "tokens", "NUMBER", math.Inf(1),
		"tokens in the client's bucket (default a full bucket)").DefValue = ""
	f.within(&e.wire, "wire", "VERSION", 0, math.MaxInt32, "maxWireVersion of the servers")
	list(f, &e.results, "try", "RESULT", "result of the next attempt", attemptResult,
		append(slices.Sorted(maps.Keys(attemptKinds)), "ok")...)
	f.file(&e.topologyFile, "select", "explain server selection in the topology that this file describes")
	set(f, &e.preference, "read-preference", "PREFERENCE",
		"read preference of the selection: a mode, or a document with mode, tag_sets, maxStalenessSeconds",
		preference, modes...)
	f.texts(&e.deprioritized, "deprioritized", "ADDRESS", "deprioritized server")
	var run []*regexp.Regexp
	f.patterns(&run, "run", "with suites: only tests that match")
	html := ""
	f.file(&html, "html", "with suites: write a page", ".yml", ".yaml")
	f.toggle(&e.out.asJSON, "json",
		"print a JSON line for each policy, rule, decision or step; with suites, for each test")
}

func (e *explainFlags) act(ctx context.Context, c *invocation) error {
	switch {
	case e.topologyFile != "":
		return e.selectServer(c)
	case slices.ContainsFunc(c.paths, isSuite):
		return e.run(ctx, c)
	case e.flags.Changed("run") || e.flags.Changed("html"):
		return usage("--run and --html require suites")
	}
	return e.explain(c)
}

// run runs suites with a line, and with the events, for each test.
func (e *explainFlags) run(ctx context.Context, c *invocation) error {
	args := append([]string{"--events", "--backoff", "none"}, e.flags.args("policy", "topology", "run", "html")...)
	if e.out.asJSON {
		args = append(args, "--json", reportToOutput)
	} else {
		args = append(args, "--verbose")
	}
	r, err := c.parseRun(args)
	if err != nil {
		return err
	}
	return r.act(ctx, c)
}

// isSuite reports whether an argument names suites and not a rule.
func isSuite(argument string) bool {
	_, err := os.Stat(argument)
	return err == nil || specs.IsSuiteName(argument) ||
		slices.Contains(specs.BuiltIn(), strings.TrimPrefix(argument, "specs/"))
}

func numberUpTo(f *flags, to *float64, name, placeholder string, most float64, summary string) *pflag.Flag {
	return set(f, to, name, placeholder, summary, func(s string) (float64, error) {
		n, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil:
			return n, errNumber
		case math.IsInf(n, 0) || !(n >= 0 && n <= most): // NaN is not in any range
			if math.IsInf(most, 1) {
				return n, errors.New("must be a finite number of at least 0")
			}
			return n, fmt.Errorf("must be from 0 to %v", most)
		}
		return n, nil
	})
}

var modes = mapSlice(selection.Modes(), func(m selection.Mode) string { return string(m) })

// preference parses a value of --read-preference.
func preference(text string) (selection.Preference, error) {
	p, err := selection.ParsePreference(text)
	if err != nil {
		return p, errors.New("must be a mode, or a document such as {mode: secondary, tag_sets: [{dc: ny}]}")
	}
	if p.Mode == "" || slices.Contains(modes, string(pinning.ModeOf(string(p.Mode)))) {
		return p, nil
	}
	_, err = oneOf[string](modes)(string(p.Mode))
	if string(p.Mode) != text {
		err = fmt.Errorf("the mode %w%s", err, suggest.Hint(string(p.Mode), modes))
	}
	return p, err
}

type explainFlags struct {
	flags                       *flags
	policy, operation, topology string
	list, noRetry, retryWrites  bool
	other                       string
	left                        time.Duration
	jitter, tokens              float64
	wire                        int
	settings                    retry.Settings
	results                     []retry.Input
	topologyFile                string
	preference                  selection.Preference
	deprioritized               []string
	out                         lines
}

type policyRecord struct {
	Policy    string   `json:"policy"`
	Sources   []string `json:"sources"`
	Constants []string `json:"constants"`
	Rules     int      `json:"rules"`
}

func recordOf(p *retry.Policy) policyRecord {
	return policyRecord{p.Name, p.Sources, p.Constants(), len(rulesOf(p))}
}

// ruleRecord is a rule, or a constant that differs between policies. Policy is set for differences.
type ruleRecord struct {
	Policy   string `json:"policy,omitempty"`
	Constant string `json:"constant,omitempty"`
	retry.Rule
}

// readsAs replaces a constant of Driver Read Preferences, such as PRIMARY_PREFERRED, by the name of its mode.
func (e *explainFlags) readsAs(p *retry.Policy) error {
	given := e.preference.Mode
	e.preference.Mode = pinning.ModeOf(string(given))
	if e.preference.Mode != given && p.Pinning == "" {
		return usage("--read-preference: the mode %s exists only under a policy of read preferences; its name is %s", given,
			e.preference.Mode)
	}
	return nil
}

func (e *explainFlags) explain(c *invocation) error {
	out := &e.out
	if e.list {
		for _, p := range retry.Policies() {
			out.add(recordOf(p), "%s: %s, from %s\n", p.Name, plural.Of(len(rulesOf(p)), "rule"), strings.Join(p.Sources, ", "))
		}
		return c.print(out.String())
	}
	policy := policyNamed(e.policy)
	if e.other != "" {
		other := policyNamed(e.other)
		out.difference("-", policy, other)
		out.difference("+", other, policy)
		return c.print(out.String())
	}
	if err := e.readsAs(policy); err != nil {
		return err
	}
	switch {
	case e.flags.Changed("read-preference") && (policy.Pinning == "" || len(e.results) == 0):
		return usage("--read-preference requires --select, or --try under a policy of read preferences")
	case len(e.results) > 0 && len(c.paths) > 0:
		return usage("--try cannot be used with rules")
	case len(e.results) > 0:
		return e.simulate(c, policy)
	}
	rules := rulesOf(policy)
	if len(c.paths) == 0 {
		out.add(recordOf(policy), "%s: %s\n", policy.Name, strings.Join(policy.Sources, ", "))
		for _, constant := range policy.Constants() {
			out.add(nil, "      %s\n", constant)
		}
	} else {
		var err error
		if rules, err = namedRules(rules, c.paths); err != nil {
			return err
		}
	}
	for _, r := range rules {
		out.add(r, "%-5s %s\n      %s (%s)\n", r.ID, r.Statement, r.Section, r.Revision)
	}
	return c.print(out.String())
}

// difference adds what one policy has and the other does not.
func (l *lines) difference(sign string, of, other *retry.Policy) {
	l.add(nil, "%s %s\n", sign, of.Name)
	for _, constant := range of.Constants() {
		if !slices.Contains(other.Constants(), constant) {
			l.add(ruleRecord{Policy: of.Name, Constant: constant}, "%s     %s\n", sign, constant)
		}
	}
	for _, r := range rulesOf(of) {
		if !slices.ContainsFunc(rulesOf(other),
			func(o retry.Rule) bool { return o.ID == r.ID && o.Statement == r.Statement }) {
			l.add(ruleRecord{Policy: of.Name, Rule: r}, "%s %-5s %s\n", sign, r.ID, r.Statement)
		}
	}
}

// namedRules returns rules by their numbers, in the words of the policy if it has them.
func namedRules(policy []retry.Rule, ids []string) (rules []retry.Rule, err error) {
	all := slices.Concat(policy, allRules())
	for _, id := range ids {
		at := slices.IndexFunc(all, func(r retry.Rule) bool { return r.ID == id })
		if at < 0 {
			names := mapSlice(all, func(r retry.Rule) string { return r.ID })
			slices.Sort(names)
			return nil, usage("unknown rule %q: utr explain lists them%s", id, suggest.Hint(id, slices.Compact(names)))
		}
		rules = append(rules, all[at])
	}
	return rules, nil
}

// allRules returns every rule that a decision may name.
func allRules() []retry.Rule {
	return slices.Concat(retry.Rules(), retry.TransactionRules(), pinning.Rules(), pinning.PassingRules())
}

func rulesOf(p *retry.Policy) []retry.Rule {
	if p.Pinning == "" {
		return p.RulesInForce()
	}
	return append(p.RulesInForce(), pinning.RulesInForce(p.Pinning)...)
}

// attemptKinds are the results of an attempt that are words.
var attemptKinds = map[string]retry.Kind{
	"network": retry.Network, "pool-cleared": retry.PoolCleared, "selection": retry.Selection,
	"handshake": retry.Network, "authentication": retry.Network,
}

// attemptResult parses a value of --try.
func attemptResult(text string) (in retry.Input, err error) {
	words := strings.Split(text, ",")
	kind, named := attemptKinds[words[0]]
	hello := words[0] == "handshake"
	failure := retry.Failure{Kind: kind, Handshake: hello || words[0] == "authentication"}
	if text == "ok" {
		return retry.Input{Kind: retry.Succeeded}, nil
	}
	if named {
		words = words[1:]
	}
	if (!named || failure.Handshake) && len(words) > 0 {
		code, invalid := strconv.ParseInt(words[0], 10, 32)
		if invalid == nil {
			failure.Kind, failure.Code, words = retry.Server, int32(code), words[1:]
		} else if !named {
			return in, errors.New("must be one of the results that utr help explain lists")
		}
	}
	if slices.Contains(words, "") {
		return in, errors.New("has an empty label")
	}
	// A label is one word.
	if i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, " ") }); i >= 0 {
		if failure.Kind != retry.Server {
			return in, errors.New("has a message, which only a server error can have")
		}
		failure.Message = words[i]
		words = slices.Delete(words, i, i+1)
	}
	failure.Labels, failure.Connecting = words, hello && failure.Kind == retry.Network
	return retry.Input{Kind: retry.Failed, Failure: failure}, nil
}

// simulate runs the retry core over the results. Each attempt selects the first server not deprioritized: a, b, c, …
func (e *explainFlags) simulate(c *invocation, policy *retry.Policy) error {
	operation := operationNamed(e.operation)
	if e.topology == "replicaset" && e.pins(policy, operation) {
		one := threeMembers()
		one.Preference = e.preference
		return e.simulateRead(c, policy.Pinning, operation, one)
	}
	inputs, settings := e.results, e.settings
	settings.Operation = operation
	settings.RetryReads = !e.noRetry
	settings.RetryWrites = !e.noRetry && (e.retryWrites || !policy.RetryWritesOff)
	state, out := retry.Start(policy, settings), &e.out
	in := retry.Input{Kind: retry.Begin}
	var tokens retry.Tokens
	if bucket := policy.Bucket(); bucket != nil {
		tokens = retry.Tokens(min(e.tokens*float64(retry.Token), float64(bucket.Capacity)))
	}
	for {
		var d retry.Decision
		in.Tokens, in.Jitter, in.Left = tokens, e.jitter, e.left
		state, d = retry.Next(state, in)
		out.add(reference.DecisionOf(d, "", policy.Bucket()), "attempt %d: %s%s [%s] %s\n", d.Attempt, d.Action,
			detail(d, tokens), d.Rules, d.Reason)
		tokens = d.Tokens
		switch d.Action {
		case retry.Select:
			if len(inputs) > 0 && inputs[0].Failure.Kind == retry.Selection {
				in, inputs = inputs[0], inputs[1:]
				continue
			}
			in = retry.Input{Kind: retry.Selected, Chosen: retry.Chosen{
				Address: address(d.Deprioritized), Sharded: e.topology == "sharded", Wire: int32(e.wire), RetryableWrites: true}}
		case retry.Send:
			if len(inputs) == 0 {
				out.add(nil, "no --try results left\n")
				return c.print(out.String())
			}
			in, inputs = inputs[0], inputs[1:]
			if f := &in.Failure; in.Kind == retry.Failed {
				f.Labels = append(f.Labels, retry.Labels(policy, state.Settings, state.Chosen, *f)...)
			}
		case retry.BackOff:
			in = retry.Input{Kind: retry.BackedOff}
		default:
			if len(inputs) > 0 {
				out.add(nil, "%d --try unused\n", len(inputs))
			}
			return c.print(out.String())
		}
	}
}

func detail(d retry.Decision, before retry.Tokens) (text string) {
	switch {
	case len(d.Deprioritized) > 0:
		text = ", deprioritized " + strings.Join(d.Deprioritized, " ")
	case d.Action == retry.BackOff:
		text = " " + d.Delay.String()
	case d.Action == retry.ReturnError:
		text = fmt.Sprintf(" of attempt %d: %s", d.Raise.Attempt, d.Raise.Kind)
		if d.Raise.Kind == retry.Server {
			text += fmt.Sprintf(" %d", d.Raise.Code)
		}
	}
	if d.Tokens != before {
		text += fmt.Sprintf(", %v tokens left", d.Tokens)
	}
	return text
}

// address returns the first server that is not deprioritized.
func address(deprioritized []string) string {
	name := 'a'
	for slices.Contains(deprioritized, string(name)) {
		name++
	}
	return string(name)
}

// selection reads the topology file, with the flags that change its case. Without an operation, the file decides
// between read and write.
func (e *explainFlags) selection() (one selection.Case, err error) {
	text, err := os.ReadFile(e.topologyFile)
	if err == nil {
		err = checkTopologyFile(e.topologyFile, text)
	}
	if err != nil {
		return one, invalid(err)
	}
	if one, err = selection.ParseCase(text); err != nil {
		return one, invalid(fmt.Errorf("%s: %w", e.topologyFile, err))
	}
	if e.flags.Changed("read-preference") {
		one.Preference = e.preference
	}
	if len(e.deprioritized) > 0 {
		one.Deprioritized = e.deprioritized
	}
	for _, address := range one.Deprioritized {
		if !slices.ContainsFunc(one.Topology.Servers, func(v selection.Server) bool { return v.Address == address }) {
			return one, usage("%s has no server %q", e.topologyFile, address)
		}
	}
	if o := operationNamed(e.operation); e.flags.Changed("operation") {
		one.Options.Write = o.Class == operations.Write && !ignores(o)
	}
	return one, nil
}

// selectServer explains the selection of a server, or of the members for a read.
func (e *explainFlags) selectServer(c *invocation) error {
	if len(c.paths) > 0 {
		return usage("--select cannot be used with rules")
	}
	policy := policyNamed(e.policy)
	if err := e.readsAs(policy); err != nil {
		return err
	}
	one, err := e.selection()
	if err != nil {
		return err
	}
	simulated := operationNamed(e.operation)
	members := one.Topology.Type == selection.ReplicaSetWithPrimary || one.Topology.Type == selection.ReplicaSetNoPrimary
	if members && !one.Options.Write && len(one.Deprioritized) == 0 && e.pins(policy, simulated) {
		return e.simulateRead(c, policy.Pinning, simulated, one)
	}
	for _, name := range []string{"policy", "try"} {
		if e.flags.Changed(name) {
			return usage("--select cannot be used with --%s: it is about the selection of one server, except for reads from a "+
				"replica set under a policy of read preferences", name)
		}
	}
	steps, err := selection.Explain(one.Topology, one.Preference, one.Deprioritized, one.Options)
	if err != nil {
		return invalid(err)
	}
	e.addSteps(one.Topology, steps)
	return c.print(e.out.String())
}

// addSteps adds the servers of a topology, and those left after each step.
func (e *explainFlags) addSteps(of selection.Topology, steps []selection.Step) {
	e.out.add(nil, "%s\n", of.Type)
	for _, v := range of.Servers {
		tags := ""
		for _, name := range slices.Sorted(maps.Keys(v.Tags)) {
			tags += ", " + name + ": " + v.Tags[name]
		}
		e.out.add(nil, "    %s %s, %s%s\n", v.Address, v.Type, v.RTT.Round(time.Millisecond/10), tags)
	}
	for _, step := range steps {
		left := mapSlice(step.Servers, func(v selection.Server) string { return v.Address })
		e.out.add(map[string]any{"rule": step.Rule, "servers": left}, "%s: %s\n", step.Rule,
			cmp.Or(strings.Join(left, " "), "none"))
	}
	switch left := steps[len(steps)-1].Servers; len(left) {
	case 0:
		e.out.add(nil, "no server is suitable: the operation waits until the topology changes, or serverSelectionTimeoutMS has passed\n")
	case 1:
		e.out.add(nil, "selected: %s\n", left[0].Address)
	default:
		e.out.add(nil, "selected: two of these are drawn at random, and the less busy one wins\n")
	}
}
