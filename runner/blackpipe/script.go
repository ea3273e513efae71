package blackpipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/specs"
)

// Script contains expected messages and their answers. Play does not change it.
type Script struct {
	// Options of the server.
	Options Options
	// groups are expected in order. The steps of a group may be received in any order.
	groups [][]step
}

// step is an expected message and its answer.
type step struct {
	// expect matches the command like an expected command in a suite, as a root document: the command may have more
	// fields.
	expect *source.Value
	// after delays the answer. Other messages are answered meanwhile.
	after time.Duration
	// answer is the server's action.
	answer answerKind
	// reply is the document for answerReply and answerHalf.
	reply bson.Raw
}

// answerKind is the answer of a server to a message.
type answerKind string

// The answers, as scripts spell them.
const (
	answerReply  answerKind = "reply"  // send the document
	answerHalf   answerKind = "half"   // send half of it and close the connection
	answerHangUp answerKind = "hangUp" // close the connection
	answerStall  answerKind = "stall"  // do nothing until the server is closed
)

// ParseScript parses a script in YAML or JSON:
//
//	topology: replicaset        # as in Options
//	maxWireVersion: 25
//	hello: true                 # expect hello like other commands
//	steps:
//	  - expect: { insert: events }
//	    reply: { n: 1 }         # or half: DOCUMENT, hangUp: true, stall: true
//	    after: 200ms
//	  - any: [ … ]              # steps in any order
//
// Errors are usually a *source.Error.
func ParseScript(file string, text []byte) (*Script, error) {
	root, err := source.Parse(file, text)
	if err != nil {
		return nil, err
	}
	var s Script
	for _, f := range root.Fields {
		switch n, whole := f.Value.Integer(); f.Key {
		case "topology":
			if s.Options.Topology = f.Value.Text(); !slices.Contains(topologies, s.Options.Topology) {
				return nil, errorAt(f.Value, "topology is not one of %s%s", strings.Join(topologies, ", "),
					suggest.Hint(f.Value.Text(), topologies))
			}
		case "maxWireVersion":
			if s.Options.MaxWireVersion = int32(n); !whole || n < 1 || n > 1000 {
				return nil, errorAt(f.Value, "maxWireVersion is not a wire version")
			}
		case "hello":
			if s.Options.Hello = f.Value.IsTrue(); f.Value.Kind != source.Bool {
				return nil, errorAt(f.Value, "hello is not true or false")
			}
		case "steps":
			for _, step := range f.Value.Elements() {
				group, err := parseGroup(step)
				if err != nil {
					return nil, err
				}
				s.groups = append(s.groups, group)
			}
		default:
			return nil, noKey(f, "a script", "topology", "maxWireVersion", "hello", "steps")
		}
	}
	if len(s.groups) == 0 {
		return nil, errorAt(root, "the script has no steps")
	}
	return &s, nil
}

func errorAt(v *source.Value, format string, args ...any) error {
	return &source.Error{Position: v.Position, Message: fmt.Sprintf(format, args...)}
}

// noKey returns the error of an unknown key.
func noKey(f source.Field, what string, known ...string) error {
	return &source.Error{Position: f.KeyPosition, Message: fmt.Sprintf("%s has no key %q%s", what, f.Key,
		cmp.Or(suggest.Hint(f.Key, known), "; it has "+strings.Join(known, ", ")))}
}

func parseGroup(v *source.Value) ([]step, error) {
	steps := []*source.Value{v}
	if anyOrder := v.Get("any"); anyOrder != nil {
		if steps = anyOrder.Elements(); len(v.Fields) > 1 || len(steps) == 0 {
			return nil, errorAt(v, "any must be the only key of its document, and a list of steps")
		}
	}
	group := make([]step, len(steps))
	for i, step := range steps {
		var err error
		if group[i], err = parseStep(step); err != nil {
			return nil, err
		}
	}
	return group, nil
}

func parseStep(v *source.Value) (s step, err error) {
	if v.Kind != source.Document {
		return s, errorAt(v, "a step is not a document")
	}
	for _, f := range v.Fields {
		switch answer := answerKind(f.Key); answer {
		case "expect":
			if s.expect = f.Value; f.Value.Kind != source.Document || len(f.Value.Fields) == 0 {
				return s, errorAt(f.Value, "expect is not a command")
			}
			if problems := specs.CheckMatched(f.Value, "expect"); len(problems) > 0 {
				return s, &source.Error{Position: problems[0].Position, Message: problems[0].Message}
			}
		case "after":
			if s.after, err = time.ParseDuration(f.Value.Text()); err != nil || s.after <= 0 {
				return s, errorAt(f.Value, "after is not a duration such as 200ms")
			}
		case answerReply, answerHalf, answerHangUp, answerStall:
			if err := s.readAnswer(answer, f.Value); err != nil {
				return s, err
			}
		default:
			return s, noKey(f, "a step", "expect", "after", string(answerReply), string(answerHalf), string(answerHangUp),
				string(answerStall))
		}
	}
	switch {
	case s.expect == nil:
		return s, errorAt(v, "the step has no expect")
	case s.answer == "":
		return s, errorAt(v, "the step requires reply, half, hangUp or stall")
	}
	return s, nil
}

// readAnswer reads how the server answers the command of a step.
func (s *step) readAnswer(answer answerKind, v *source.Value) (err error) {
	document := answer == answerReply || answer == answerHalf
	switch {
	case s.answer != "":
		return errorAt(v, "%s and %s are mutually exclusive", s.answer, answer)
	case document && v.Kind != source.Document:
		return errorAt(v, "%s is not a document", answer)
	case !document && !v.IsTrue():
		return errorAt(v, "%s is not true", answer)
	case document:
		s.reply, err = v.Raw()
	}
	s.answer = answer
	return err
}
