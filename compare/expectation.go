package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// expectation is the behavior of an engine as fields of a suite.
type expectation struct {
	operations []*source.Value // of each operation
	outcome    *source.Value   // of the operation that reads the collection at the end
	test       *source.Value
}

// anything accepts any result of n operations.
func anything(n int) *expectation {
	return &expectation{operations: slices.Repeat([]*source.Value{doc("ignoreResultAndError", true)}, n), outcome: doc(), test: doc()}
}

// expect converts the verdict of a schedule to expectations.
func expect(s Schedule, v *result.Verdict) (*expectation, error) {
	op := operations[s.Operation]
	performed, logs := len(op.operations), v.Operations
	e := &expectation{outcome: doc()}
	if !op.blind && len(logs) > 0 {
		documents, err := extended(logs[len(logs)-1].Outcome.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		e.outcome = doc("expectResult", documents)
		logs = logs[:len(logs)-1]
	}
	if len(logs) < performed {
		return nil, fmt.Errorf("%s: only %d operations were performed: %s %s", s, len(logs), v.Status, v.Reason)
	}
	for _, log := range logs[len(logs)-performed:] {
		e.operations = append(e.operations, raises(log.Outcome.Err))
	}
	var events []*source.Value
	for _, c := range v.Clients {
		if c.Client == "client" {
			events = expectedEvents(c.Events)
		}
	}
	e.test = doc("expectEvents", list(doc("client", "client", "events", list(events...))))
	return e, nil
}

// raises expects an error. For nil it needs no fields, since the runner fails a test
// for an unexpected error.
func raises(e *result.Error) *source.Value {
	if e == nil {
		return doc()
	}
	var has, lacks []string
	for _, l := range comparedLabels {
		if e.HasLabel(l) {
			has = append(has, l)
		} else {
			lacks = append(lacks, l)
		}
	}
	return doc("expectError", doc("isClientError", e.Client, "errorCode", when(e.HasCode, int(e.Code)),
		"errorLabelsContain", when(len(has) > 0, has), "errorLabelsOmit", when(len(lacks) > 0, lacks)))
}

func expectedEvents(events []result.Event) (out []*source.Value) {
	for _, e := range events {
		switch e.Type {
		case result.CommandStarted:
			_, err := e.Command.Command.LookupErr("txnNumber")
			numbered := doc("txnNumber", doc("$$exists", err == nil))
			out = append(out, doc(string(e.Type), doc("commandName", e.Command.CommandName, "command", numbered)))
		case result.CommandSucceeded, result.CommandFailed:
			out = append(out, doc(string(e.Type), doc("commandName", e.Command.CommandName)))
		}
	}
	return out
}

// extended converts a BSON value to relaxed Extended JSON.
func extended(v bson.RawValue) (*source.Value, error) {
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, false, false)
	if err != nil {
		return nil, err
	}
	root, err := source.ParseJSON("", text)
	return root.Get("v"), err
}

// Suite returns the text of a suite that runs a schedule and expects the behavior of
// the left side of the pair. It begins with the comments.
func (p Pair) Suite(s Schedule, comments ...string) (string, error) {
	e, err := expect(s, p.verdict)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range append([]string{"SPDX-License-Identifier: Apache-2.0"}, comments...) {
		fmt.Fprintf(&b, "# %s\n", c)
	}
	b.WriteString(printed(node(suite(s.String(), s.test(s.String(), e)))))
	text, err := source.Format("", []byte(b.String()))
	return string(text), err
}
