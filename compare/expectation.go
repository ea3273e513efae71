package compare

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// expectation is what one engine showed, as a suite expects it. A nil
// expectation leaves all open.
type expectation struct {
	operations []string // flow YAML behind an operation, with the comma in front
	documents  string   // flow YAML of the collection afterwards
	lines      []string // of expectEvents
}

func (e *expectation) operation(i int) string {
	if e == nil {
		return ", ignoreResultAndError: true"
	}
	return e.operations[i]
}

func (e *expectation) outcome() string {
	if e == nil {
		return ""
	}
	return ", expectResult: " + e.documents
}

func (e *expectation) events() string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("    expectEvents:\n      - client: client\n        events:\n")
	for _, l := range e.lines {
		b.WriteString("          - " + l + "\n")
	}
	return b.String()
}

// expect turns the verdict of a schedule's test into expectations.
func expect(s Schedule, v *result.Verdict) (*expectation, error) {
	op := operations[s.Operation]
	performed, logs := len(op.operations), v.Operations
	var e expectation
	if !op.blind && len(logs) > 0 {
		documents, err := flow(logs[len(logs)-1].Outcome.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		e.documents = documents
		logs = logs[:len(logs)-1]
	}
	if len(logs) < performed {
		return nil, fmt.Errorf("%s: only %d operations were performed: %s %s", s, len(logs), v.Status, v.Reason)
	}
	for _, log := range logs[len(logs)-performed:] {
		e.operations = append(e.operations, raises(log.Outcome.Err))
	}
	for _, c := range v.Clients {
		if c.Client == "client" {
			e.lines = expectedEvents(c.Events)
		}
	}
	return &e, nil
}

// raises is the expectation of an error, or nothing: a test fails of itself
// when an operation raises an error that no one expects.
func raises(e *result.Error) string {
	if e == nil {
		return ""
	}
	fields := []string{fmt.Sprintf("isClientError: %t", e.Client)}
	if e.HasCode {
		fields = append(fields, fmt.Sprintf("errorCode: %d", e.Code))
	}
	var has, lacks []string
	for _, l := range comparedLabels {
		if e.HasLabel(l) {
			has = append(has, l)
		} else {
			lacks = append(lacks, l)
		}
	}
	if len(has) > 0 {
		fields = append(fields, "errorLabelsContain: [ "+strings.Join(has, ", ")+" ]")
	}
	if len(lacks) > 0 {
		fields = append(fields, "errorLabelsOmit: [ "+strings.Join(lacks, ", ")+" ]")
	}
	return ", expectError: { " + strings.Join(fields, ", ") + " }"
}

func expectedEvents(events []result.Event) []string {
	var out []string
	for _, e := range events {
		switch e.Type {
		case result.CommandStarted:
			_, err := e.Command.Command.LookupErr("txnNumber")
			out = append(out, fmt.Sprintf("commandStartedEvent: { commandName: %s, command: { txnNumber: { $$exists: %t } } }", e.Command.CommandName, err == nil))
		case result.CommandSucceeded, result.CommandFailed:
			out = append(out, fmt.Sprintf("%s: { commandName: %s }", e.Type, e.Command.CommandName))
		}
	}
	return out
}

// flow writes a value as relaxed Extended JSON, which is YAML in flow style.
func flow(v bson.RawValue) (string, error) {
	wrapped, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	if err != nil {
		return "", err
	}
	text, err := bson.MarshalExtJSON(bson.Raw(wrapped), false, false)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"v":`), "}"), nil
}
