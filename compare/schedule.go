package compare

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/source"
)

// Schedule is an operation and what happens to its attempts.
type Schedule struct {
	Operation string // a name of the table in suite.yml
	Topology  string // as in runOnRequirements, "" for any
	Options   Options
	Faults    []Fault // of the first attempt, the second, …
}

// Options are the URI options of the client.
type Options map[string]any

// Fault is what happens to one attempt. The zero Fault lets it pass.
type Fault struct {
	Code              int // of an error, 0 for none
	WriteConcernError int // its code, 0 for none
	// Labels of either error: nil leaves them to the server.
	Labels    []string
	Backoff   int // baseBackoffMS of the error, 0 for none
	Close     bool
	LoseReply bool
	BlockMS   int
}

// faultPart is something that a fault does: in words, and as fields of an
// element of failCommandSequence.
type faultPart struct {
	present bool
	words   string
	fields  *source.Value
}

// parts lists what the fault does.
func (f Fault) parts() []faultPart {
	say := fmt.Sprintf
	return slices.DeleteFunc([]faultPart{
		{f.BlockMS > 0, say("blocked for %d ms", f.BlockMS), doc("blockConnection", true, "blockTimeMS", f.BlockMS)},
		{f.Code != 0, say("error %d", f.Code), doc("errorCode", f.Code)},
		{f.WriteConcernError != 0, say("write concern error %d", f.WriteConcernError),
			doc("writeConcernError", doc("code", f.WriteConcernError, "errmsg", "later"))},
		{f.Labels != nil, say("labels %v", f.Labels), doc("errorLabels", f.Labels)},
		{f.Backoff != 0, say("baseBackoffMS %d", f.Backoff), doc("errorExtraInfo", doc("baseBackoffMS", f.Backoff))},
		{f.Close, "closed", doc("closeConnection", true)},
		{f.LoseReply, "reply lost", doc("loseReply", true)},
	}, func(p faultPart) bool { return !p.present })
}

// value is the fault as an element of failCommandSequence.
func (f Fault) value() *source.Value {
	out := doc()
	for _, p := range f.parts() {
		out = join(out, p.fields)
	}
	return out
}

// String gives the fault in a few words.
func (f Fault) String() string {
	var words []string
	for _, p := range f.parts() {
		words = append(words, p.words)
	}
	return cmp.Or(strings.Join(words, " "), "passes")
}

// value is the options as uriOptions.
func (o Options) value() *source.Value {
	out := doc()
	for _, name := range slices.Sorted(maps.Keys(o)) {
		out = join(out, doc(name, o[name]))
	}
	return out
}

// String gives the schedule on one line. Different schedules give different lines.
func (s Schedule) String() string {
	words := s.Operation
	if s.Topology != "" {
		words += " on " + s.Topology
	}
	var options, faults []string
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		options = append(options, fmt.Sprintf("%s: %v", name, s.Options[name]))
	}
	if len(options) > 0 {
		words += " with " + strings.Join(options, ", ")
	}
	for _, f := range s.Faults {
		faults = append(faults, f.String())
	}
	return words + ": " + strings.Join(faults, "; ")
}

//go:embed suite.yml
var suiteFile []byte

// parts are what the suites of schedules consist of.
var parts = func() *source.Value {
	v, err := source.ParseYAML("suite.yml", suiteFile)
	if err != nil {
		panic(err) // every test of the package would fail
	}
	return v
}()

// operation is a row of the table in suite.yml, which explains the fields.
type operation struct {
	write, replicated, blind bool
	minServer                string
	commands                 *source.Value
	before, operations       []*source.Value
}

// operations is the table, by the name that schedules use.
var operations = func() map[string]operation {
	out := map[string]operation{}
	for _, f := range parts.Get("operations").Fields {
		get := func(key string) *source.Value { return cmp.Or(f.Value.Get(key), &source.Value{}) }
		out[f.Key] = operation{
			write: get("write").Bool, replicated: get("replicated").Bool, blind: get("blind").Bool, minServer: get("minServer").String,
			commands: get("commands"), before: get("before").Items, operations: get("operations").Items,
		}
	}
	return out
}()

// suite gives a suite of tests.
func suite(description string, tests ...*source.Value) *source.Value {
	return join(doc("description", description), parts.Get("suite"), doc("tests", list(tests...)))
}

// requirements are the runOnRequirements of the schedule, nil if it runs anywhere.
func (s Schedule) requirements(op operation) any {
	var topologies any
	switch {
	case s.Topology != "":
		topologies = []string{s.Topology}
	case op.replicated:
		topologies = []string{"replicaset", "sharded", "load-balanced"}
	}
	one := doc("topologies", topologies, "minServerVersion", when(op.minServer != "", op.minServer))
	return when(len(one.Fields) > 0, list(one))
}

// faultsOnly is the appname of the client that faults strike; no other client has it.
const faultsOnly = "utr-compare"

// test gives the schedule as a test of a suite, which accepts anything if expected
// is nil.
func (s Schedule) test(description string, expected *expectation) *source.Value {
	op := operations[s.Operation]
	if expected == nil {
		expected = anything(len(op.operations))
	}
	client := doc("id", "client",
		// After losing its mongos, a transaction continues with any other: chance.
		"useMultipleMongoses", !op.replicated,
		"observeEvents", []string{"commandStartedEvent", "commandSucceededEvent", "commandFailedEvent", "poolClearedEvent"},
		"uriOptions", join(doc("appname", faultsOnly), s.Options.value()))
	entities := append([]*source.Value{doc("client", client)}, parts.Get("entities").Items...)
	steps := []*source.Value{onRunner("createEntities", "entities", list(entities...))}
	steps = append(steps, op.before...)
	sequence := list()
	for _, f := range s.Faults {
		sequence.Items = append(sequence.Items, f.value())
	}
	steps = append(steps, onRunner("failPoint", "client", "setup", "failPoint", doc("configureFailPoint", "failCommandSequence",
		"mode", "alwaysOn", "data", doc("appName", faultsOnly, "failCommands", op.commands, "sequence", sequence))))
	for i, o := range op.operations {
		steps = append(steps, join(o, expected.operations[i]))
	}
	if !op.blind {
		steps = append(steps, join(parts.Get("outcome"), expected.outcome))
	}
	return join(doc("description", description, "runOnRequirements", s.requirements(op), "operations", list(steps...)), expected.test)
}

// onRunner is an operation on the test runner.
func onRunner(name string, arguments ...any) *source.Value {
	return doc("name", name, "object", "testRunner", "arguments", doc(arguments...))
}
