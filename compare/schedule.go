package compare

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/specs"
)

// Schedule is an operation with what happens to its attempts.
type Schedule struct {
	Operation string // a row of the table of operations
	Topology  string // as in runOnRequirements, "" for any
	Options   Options
	Faults    []Fault // of the first attempt, the second, …
}

// Options are what a client is told. The zero value tells it nothing.
type Options struct {
	RetryReadsOff, RetryWritesOff bool
	TimeoutMS                     int  // 0: none
	MaxAdaptiveRetries            *int // nil: the default
	Retargeting                   bool // enableOverloadRetargeting
	SecondaryPreferred            bool
}

// Fault is what happens to one attempt. The zero Fault lets it pass.
type Fault struct {
	Code              int // of an error, 0 for none
	WriteConcernError int // code of one, 0 for none
	// Labels of either error: nil leaves them to the server.
	Labels    []string
	Backoff   int // baseBackoffMS of the error, 0 for none
	Close     bool
	LoseReply bool
	BlockMS   int
}

// None says whether the fault is none.
func (f Fault) None() bool { return f.yaml() == "{}" }

// yaml is the fault as an element of failCommandSequence.
func (f Fault) yaml() string {
	var fields []string
	add := func(format string, args ...any) { fields = append(fields, fmt.Sprintf(format, args...)) }
	if f.BlockMS > 0 {
		add("blockConnection: true, blockTimeMS: %d", f.BlockMS)
	}
	if f.Code != 0 {
		add("errorCode: %d", f.Code)
	}
	if f.WriteConcernError != 0 {
		add(`writeConcernError: { code: %d, errmsg: "later" }`, f.WriteConcernError)
	}
	if f.Labels != nil {
		add("errorLabels: [ %s ]", strings.Join(f.Labels, ", "))
	}
	if f.Backoff != 0 {
		add("errorExtraInfo: { baseBackoffMS: %d }", f.Backoff)
	}
	if f.Close {
		add("closeConnection: true")
	}
	if f.LoseReply {
		add("loseReply: true")
	}
	if len(fields) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(fields, ", ") + " }"
}

// String tells the fault in a few words.
func (f Fault) String() string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if f.BlockMS > 0 {
		add("blocked for %d ms", f.BlockMS)
	}
	if f.Code != 0 {
		add("error %d", f.Code)
	}
	if f.WriteConcernError != 0 {
		add("write concern error %d", f.WriteConcernError)
	}
	if f.Labels != nil {
		add("labels [%s]", strings.Join(f.Labels, " "))
	}
	if f.Backoff != 0 {
		add("baseBackoffMS %d", f.Backoff)
	}
	if f.Close {
		add("closed")
	}
	if f.LoseReply {
		add("reply lost")
	}
	if len(words) == 0 {
		return "passes"
	}
	return strings.Join(words, " ")
}

// String tells the schedule in a line: no two have the same.
func (s Schedule) String() string {
	words := []string{s.Operation}
	if s.Topology != "" {
		words = append(words, "on", s.Topology)
	}
	if o := s.Options.yaml(); o != "" {
		words = append(words, "with", o)
	}
	var faults []string
	for _, f := range s.Faults {
		faults = append(faults, f.String())
	}
	return strings.Join(words, " ") + ": " + strings.Join(faults, "; ")
}

// yaml is uriOptions without braces.
func (o Options) yaml() string {
	var out []string
	add := func(yes bool, format string, args ...any) {
		if yes {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(o.RetryReadsOff, "retryReads: false")
	add(o.RetryWritesOff, "retryWrites: false")
	add(o.TimeoutMS > 0, "timeoutMS: %d", o.TimeoutMS)
	if o.MaxAdaptiveRetries != nil {
		add(true, "maxAdaptiveRetries: %d", *o.MaxAdaptiveRetries)
	}
	add(o.Retargeting, "enableOverloadRetargeting: true")
	add(o.SecondaryPreferred, "readPreference: secondaryPreferred")
	return strings.Join(out, ", ")
}

// requires is the schedule's runOnRequirement without braces.
func (s Schedule) requires(op operation) string {
	var out []string
	switch {
	case s.Topology != "":
		out = append(out, "topologies: [ "+s.Topology+" ]")
	case op.replicated:
		out = append(out, "topologies: [ replicaset, sharded, load-balanced ]")
	}
	if op.minServer != "" {
		out = append(out, fmt.Sprintf("minServerVersion: %q", op.minServer))
	}
	return strings.Join(out, ", ")
}

// Suite is a suite with a test for each schedule. Each is expected to do
// nothing in particular: it is there to be compared.
func Suite(file string, schedules []Schedule) (*specs.Suite, error) {
	var tests strings.Builder
	for i, s := range schedules {
		text, err := s.test(fmt.Sprintf("%d: %s", i, s), nil)
		if err != nil {
			return nil, err
		}
		tests.WriteString(text)
	}
	return specs.Parse(file, []byte(head("generated schedules", nil)+tests.String()))
}

// databaseName and collectionName are what operations work on; faults are for
// the client of this name alone.
const (
	appName        = "utr-compare"
	databaseName   = "utr-compare"
	collectionName = "documents"
)

// head is a suite up to its tests.
func head(description string, comments []string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# SPDX-License-Identifier: Apache-2.0")
	for _, c := range comments {
		line("# %s", c)
	}
	line("description: %q", description)
	line(`schemaVersion: "1.21"`)
	line("runOnRequirements:")
	line(`  - { minServerVersion: "4.4", serverParameters: { failCommandSequence: true } }`)
	line("createEntities:")
	line("  - client: { id: setup, useMultipleMongoses: false }")
	line("  - database: { id: setupDatabase, client: setup, databaseName: %s }", databaseName)
	line("  - collection: { id: outcome, database: setupDatabase, collectionName: %s }", collectionName)
	line("initialData:")
	line("  - databaseName: %s", databaseName)
	line("    collectionName: %s", collectionName)
	line("    documents: [ { _id: 1, x: 11 }, { _id: 2, x: 22 }, { _id: 3, x: 33 } ]")
	line("  - { databaseName: %s, collectionName: copy, documents: [] }", databaseName)
	line("  - { databaseName: %s, collectionName: late, documents: [] }", databaseName)
	line("tests:")
	return b.String()
}

// test renders the schedule as a test. Expected are the operations' own
// expectations and the lines of expectEvents; nil leaves all open.
func (s Schedule) test(description string, expected *expectation) (string, error) {
	op, known := operations[s.Operation]
	if !known {
		return "", fmt.Errorf("there is no operation %q", s.Operation)
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("  - description: %q", description)
	if requires := s.requires(op); requires != "" {
		line("    runOnRequirements: [ { %s } ]", requires)
	}
	line("    operations:")
	line("      - name: createEntities")
	line("        object: testRunner")
	line("        arguments:")
	line("          entities:")
	options := "appname: " + appName
	if o := s.Options.yaml(); o != "" {
		options += ", " + o
	}
	// A transaction that has lost its mongos goes on with any: chance.
	many := !op.replicated
	line("            - client: { id: client, useMultipleMongoses: %t, observeEvents: [ commandStartedEvent, commandSucceededEvent, commandFailedEvent, poolClearedEvent ], uriOptions: { %s } }", many, options)
	line("            - database: { id: database, client: client, databaseName: %s }", databaseName)
	line("            - collection: { id: collection, database: database, collectionName: %s }", collectionName)
	// What is not acknowledged may come late, in the middle of another test.
	line("            - collection: { id: unacknowledged, database: database, collectionName: late, collectionOptions: { writeConcern: { w: 0 } } }")
	line("            - session: { id: session, client: client }")
	for _, o := range op.before {
		line("      - %s", o)
	}
	var faults []string
	for _, f := range s.Faults {
		faults = append(faults, f.yaml())
	}
	line("      - { name: failPoint, object: testRunner, arguments: { client: setup, failPoint: { configureFailPoint: failCommandSequence, mode: alwaysOn, data: { appName: %s, failCommands: [ %s ], sequence: [ %s ] } } } }",
		appName, op.commands, strings.Join(faults, ", "))
	for i, o := range op.operations {
		line("      - %s }", strings.TrimSuffix(strings.TrimSpace(o), "}")+expected.operation(i))
	}
	if !op.blind {
		line("      - { name: find, object: outcome, arguments: { filter: {}, sort: { _id: 1 } }%s }", expected.outcome())
	}
	if events := expected.events(); events != "" {
		b.WriteString(events)
	}
	return b.String(), nil
}
