package compare

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
)

// Schedule is an operation and the faults of its attempts.
type Schedule struct {
	Operation string // a name in the table of suite.yml
	Topology  string // as in runOnRequirements, "" for any
	Options   Options
	Faults    []Fault // of the first attempt, the second, …
}

// Options are the URI options of the client.
type Options map[string]any

// Fault is the fault of one attempt. The zero Fault does nothing.
type Fault struct {
	Code              int      // error code, 0 for none
	WriteConcernError int      `yaml:"writeConcernError"` // its code, 0 for none
	Labels            []string // of either error; nil leaves them to the server
	Inner             []string `yaml:"innerLabels"`   // labels inside the write concern error, where they have no meaning
	Backoff           int      `yaml:"baseBackoffMS"` // of the error, 0 for none
	Close             bool     `yaml:"closed"`
	LoseReply         bool     `yaml:"replyLost"`
	BlockMS           int      `yaml:"blockMS"`
}

// faultPart is a part of a fault in words and as fields of an element of failCommandSequence.
type faultPart struct {
	present bool
	words   string
	fields  bson.D
}

func (f Fault) parts() []faultPart {
	say := fmt.Sprintf
	return slices.DeleteFunc([]faultPart{
		{f.BlockMS > 0, say("blocked for %d ms", f.BlockMS), doc("blockConnection", true, "blockTimeMS", f.BlockMS)},
		{f.Code != 0, say("error %d", f.Code), doc("errorCode", f.Code)},
		{f.WriteConcernError != 0, say("write concern error %d", f.WriteConcernError),
			doc("writeConcernError", doc("code", f.WriteConcernError, "errmsg", "later", "errorLabels",
				when(f.Inner != nil, f.Inner)))},
		{f.Inner != nil, say("with labels %v inside", f.Inner), nil},
		{f.Labels != nil, say("labels %v", f.Labels), doc("errorLabels", f.Labels)},
		{f.Backoff != 0, say("baseBackoffMS %d", f.Backoff), doc("errorExtraInfo", doc("baseBackoffMS", f.Backoff))},
		{f.Close, "closed", doc("closeConnection", true)},
		{f.LoseReply, "reply lost", doc("loseReply", true)},
	}, func(p faultPart) bool { return !p.present })
}

// value returns the fault as an element of failCommandSequence.
func (f Fault) value() bson.D {
	out := bson.D{}
	for _, p := range f.parts() {
		out = append(out, p.fields...)
	}
	return out
}

// String describes the fault.
func (f Fault) String() string {
	var words []string
	for _, p := range f.parts() {
		words = append(words, p.words)
	}
	return cmp.Or(strings.Join(words, " "), "passes")
}

// value returns the options as uriOptions.
func (o Options) value() bson.D {
	out := bson.D{}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		out = append(out, bson.E{Key: name, Value: o[name]})
	}
	return out
}

// String describes the schedule on one line. The line is unique to it.
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

// operation is a row of the table in suite.yml. The file explains the fields.
type operation struct {
	Write, Replicated, Blind bool
	MinServer                string `bson:"minServer"`
	Commands                 bson.A
	Before, Operations       []bson.D
}

// A partition has the parts of the suites of schedules.
type partition struct {
	Suite, Outcome bson.D
	Entities       bson.A
	Operations     map[string]operation
}

// parts reads suite.yml on first use, because most commands do not need it.
var parts = sync.OnceValue(func() (p partition) {
	v, err := source.ParseYAML("suite.yml", suiteFile)
	if err == nil {
		raw, failed := v.Raw()
		err = cmp.Or(failed, bson.Unmarshal(raw, &p))
	}
	if err != nil {
		panic(err)
	}
	for name, op := range p.Operations {
		p.Operations[name] = op.derived()
	}
	return p
})

// derived returns the operation with what the list of operations says.
func (op operation) derived() operation {
	name := ""
	for _, e := range op.Operations[0] {
		if e.Key == "name" {
			name, _ = e.Value.(string)
		}
	}
	if op.Commands == nil {
		op.Commands = bson.A{cmp.Or(operations.Sent()[name], name)}
	}
	c, _ := operations.LookupCommand(operations.Core(name))
	op.Write = op.Write || c.Class == operations.Write
	return op
}

// suite returns a suite of tests.
func suite(description string, tests ...bson.D) bson.D {
	return slices.Concat(doc("description", description), parts().Suite, doc("tests", tests))
}

// requirements returns the runOnRequirements of the schedule, or nil.
func (s Schedule) requirements(op operation) any {
	var topologies any
	switch {
	case s.Topology != "":
		topologies = []string{s.Topology}
	case op.Replicated:
		topologies = []string{"replicaset", "sharded", "load-balanced"}
	}
	one := doc("topologies", topologies, "minServerVersion", when(op.MinServer != "", op.MinServer))
	return when(len(one) > 0, bson.A{one})
}

// faultsOnly is the appname that limits faults to the client of the schedule.
const faultsOnly = "utr-compare"

// test returns the schedule as a test. It accepts any behavior if expected is nil.
func (s Schedule) test(description string, expected *expectation) bson.D {
	op := parts().Operations[s.Operation]
	if expected == nil {
		expected = anything(len(op.Operations))
	}
	observed := []string{"commandStartedEvent", "commandSucceededEvent", "commandFailedEvent", "poolClearedEvent"}
	many := !op.Replicated // after losing its mongos, a transaction continues on a random one
	var discovered []bson.D
	if many && s.Topology == "sharded" { // otherwise a first retry goes to the mongos that failed if the other is not yet known
		observed = append(observed, "serverDescriptionChangedEvent")
		discovered = append(discovered, onRunner("waitForEvent", "client", "client", "event",
			doc("serverDescriptionChangedEvent", doc("newDescription", doc("type", "Mongos"))), "count", 2))
	}
	client := doc("id", "client", "useMultipleMongoses", many, "observeEvents", observed,
		"uriOptions", append(doc("appname", faultsOnly), s.Options.value()...))
	entities := append(bson.A{doc("client", client)}, parts().Entities...)
	steps := slices.Concat([]bson.D{onRunner("createEntities", "entities", entities)}, discovered, op.Before)
	sequence := bson.A{}
	for _, f := range s.Faults {
		sequence = append(sequence, f.value())
	}
	steps = append(steps, onRunner("failPoint", "client", "setup", "failPoint",
		doc("configureFailPoint", "failCommandSequence",
			"mode", "alwaysOn", "data", doc("appName", faultsOnly, "failCommands", op.Commands, "sequence", sequence))))
	for i, o := range op.Operations {
		steps = append(steps, slices.Concat(o, expected.operations[i]))
	}
	if !op.Blind {
		steps = append(steps, slices.Concat(parts().Outcome, expected.outcome))
	}
	test := doc("description", description, "runOnRequirements", s.requirements(op), "operations", steps)
	return append(test, expected.test...)
}

// onRunner returns an operation of the test runner.
func onRunner(name string, arguments ...any) bson.D {
	return doc("name", name, "object", "testRunner", "arguments", doc(arguments...))
}
