package compare

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// expectation is the behavior of an engine as fields of a suite.
type expectation struct {
	operations []bson.D // of each operation
	outcome    bson.D   // of the operation that reads the collection at the end
	test       bson.D
}

// anything accepts any result of n operations.
func anything(n int) *expectation {
	return &expectation{operations: slices.Repeat([]bson.D{doc("ignoreResultAndError", true)}, n)}
}

// expect converts the verdict of a schedule to expectations.
func expect(s Schedule, v *result.Verdict) (*expectation, error) {
	op := parts().Operations[s.Operation]
	performed, logs := len(op.Operations), v.Operations
	e := &expectation{}
	if !op.Blind && len(logs) > 0 {
		e.outcome = doc("expectResult", logs[len(logs)-1].Value.RawValue)
		logs = logs[:len(logs)-1]
	}
	if len(logs) < performed {
		return nil, fmt.Errorf("%s: performed only %s: %s %s", s, plural.Of(len(logs), "operation"), v.Status, v.Reason)
	}
	for _, log := range logs[len(logs)-performed:] {
		e.operations = append(e.operations, raises(log.Outcome.Err))
	}
	events := []bson.D{}
	for _, c := range v.Clients {
		if c.Client == "client" {
			events = expectedEvents(c.Events)
		}
	}
	e.test = doc("expectEvents", bson.A{doc("client", "client", "events", events)})
	return e, nil
}

// raises expects an error. For nil it needs no fields, since the runner fails a test for an unexpected error.
func raises(e *result.Error) bson.D {
	if e == nil {
		return nil
	}
	var has, lacks []string
	for _, l := range comparedLabels {
		if e.HasLabel(l) {
			has = append(has, l)
		} else {
			lacks = append(lacks, l)
		}
	}
	return doc("expectError", doc("isClientError", e.Client, "errorCode", when(e.Code != 0, e.Code),
		"errorLabelsContain", when(len(has) > 0, has), "errorLabelsOmit", when(len(lacks) > 0, lacks)))
}

func expectedEvents(events []result.Event) []bson.D {
	out := []bson.D{}
	for _, e := range events {
		switch e.Type {
		case result.CommandStarted:
			numbered := doc("txnNumber", doc("$$exists", e.Body.Lookup("txnNumber").Type != 0))
			out = append(out, doc(string(e.Type), doc("commandName", e.CommandName, "command", numbered)))
		case result.CommandSucceeded, result.CommandFailed:
			out = append(out, doc(string(e.Type), doc("commandName", e.CommandName)))
		}
	}
	return out
}

// Suite returns the text of a suite that runs a schedule and expects the behavior of
// the left side of the pair. It begins with the comments.
func (p Pair) Suite(s Schedule, comments ...string) (string, error) {
	e, err := expect(s, p.verdict)
	if err != nil {
		return "", err
	}
	text, err := bson.MarshalExtJSON(suite(s.String(), s.test(s.String(), e)), false, false)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s, err)
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return "", fmt.Errorf("%s: %w", s, err)
	}
	style(&n)
	var b strings.Builder
	for _, c := range append([]string{"SPDX-License-Identifier: Apache-2.0"}, comments...) {
		fmt.Fprintf(&b, "# %s\n", c)
	}
	b.WriteString(printed(&n))
	text, err = source.Format("", []byte(b.String()))
	return string(text), err
}
