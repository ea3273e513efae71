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
	// Groups are expected in order. The steps of a group may be received in any order.
	Groups [][]Step
}

// Step is an expected message and its answer.
type Step struct {
	// Expect matches the command like an expected command in a suite, as a root document: the command may have more
	// fields.
	Expect *source.Value
	// After delays the answer. Other messages are answered meanwhile.
	After time.Duration
	// Answer is the server's action.
	Answer Answer
	// Reply is the document for AnswerReply and AnswerHalf.
	Reply bson.Raw
}

// Answer is the answer of a server to a message.
type Answer string

// The answers, as scripts spell them.
const (
	AnswerReply  Answer = "reply"  // send the document
	AnswerHalf   Answer = "half"   // send half of it and close the connection
	AnswerHangUp Answer = "hangUp" // close the connection
	AnswerStall  Answer = "stall"  // do nothing until the server is closed
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
				s.Groups = append(s.Groups, group)
			}
		default:
			return nil, noKey(f, "a script", "topology", "maxWireVersion", "hello", "steps")
		}
	}
	if len(s.Groups) == 0 {
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

func parseGroup(v *source.Value) ([]Step, error) {
	steps := []*source.Value{v}
	if anyOrder := v.Get("any"); anyOrder != nil {
		if steps = anyOrder.Elements(); len(v.Fields) > 1 || len(steps) == 0 {
			return nil, errorAt(v, "any must be the only key of its document, and a list of steps")
		}
	}
	group := make([]Step, len(steps))
	for i, step := range steps {
		var err error
		if group[i], err = parseStep(step); err != nil {
			return nil, err
		}
	}
	return group, nil
}

func parseStep(v *source.Value) (s Step, err error) {
	if v.Kind != source.Document {
		return s, errorAt(v, "a step is not a document")
	}
	for _, f := range v.Fields {
		switch answer := Answer(f.Key); answer {
		case "expect":
			if s.Expect = f.Value; f.Value.Kind != source.Document || len(f.Value.Fields) == 0 {
				return s, errorAt(f.Value, "expect is not a command")
			}
			if problems := specs.CheckMatched(f.Value, "expect"); len(problems) > 0 {
				return s, &source.Error{Position: problems[0].Position, Message: problems[0].Message}
			}
		case "after":
			if s.After, err = time.ParseDuration(f.Value.Text()); err != nil || s.After <= 0 {
				return s, errorAt(f.Value, "after is not a duration such as 200ms")
			}
		case AnswerReply, AnswerHalf, AnswerHangUp, AnswerStall:
			if err := s.answer(answer, f.Value); err != nil {
				return s, err
			}
		default:
			return s, noKey(f, "a step", "expect", "after", string(AnswerReply), string(AnswerHalf), string(AnswerHangUp),
				string(AnswerStall))
		}
	}
	switch {
	case s.Expect == nil:
		return s, errorAt(v, "the step has no expect")
	case s.Answer == "":
		return s, errorAt(v, "the step requires reply, half, hangUp or stall")
	}
	return s, nil
}

// answer reads how the server answers the command of a step.
func (s *Step) answer(answer Answer, v *source.Value) (err error) {
	document := answer == AnswerReply || answer == AnswerHalf
	switch {
	case s.Answer != "":
		return errorAt(v, "%s and %s are mutually exclusive", s.Answer, answer)
	case document && v.Kind != source.Document:
		return errorAt(v, "%s is not a document", answer)
	case !document && !v.IsTrue():
		return errorAt(v, "%s is not true", answer)
	case document:
		s.Reply, err = v.Raw()
	}
	s.Answer = answer
	return err
}
