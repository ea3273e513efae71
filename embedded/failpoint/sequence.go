package failpoint

import (
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// FailCommandSequence is a fail point that no server of MongoDB's has. It
// gives each attempt a failure of its own, whichever server of the deployment
// the attempt goes to:
//
//	{configureFailPoint: "failCommandSequence", mode: "alwaysOn", data: {
//	    failCommands: [...], appName: ..., namespace: ...,
//	    sequence: [{errorCode: 91}, {}, {loseReply: true}]}}
//
// The first command that the data means gets the first element, the next one
// the second, and those after the last one nothing. An element has the fields
// of failCommand's data, of which none are needed, and loseReply: the command
// runs, and its connection is closed instead of an answer. With blockConnection
// it is closed first, and the command goes on after the delay.
const FailCommandSequence = "failCommandSequence"

// Sequence is the fail point FailCommandSequence of one deployment. Its
// methods may be called concurrently. The zero value is off.
type Sequence struct {
	mu       sync.Mutex
	on       bool
	effect   effect // which has the data; its failure is not used
	elements []Failure
	next     int
	count    int32
}

// Configure carries out a configureFailPoint command, and gives how often the
// fail point had struck before. An error refuses it.
func (s *Sequence) Configure(request bson.Raw) (int32, error) {
	mode, ok := request.Lookup("mode").StringValueOK()
	if !ok || mode != "off" && mode != "alwaysOn" {
		return 0, command.Errorf(command.CodeBadValue, "%s is 'off' or 'alwaysOn'", FailCommandSequence)
	}
	data, _ := request.Lookup("data").DocumentOK()
	elements, err := elements(data)
	if mode == "alwaysOn" && err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on, s.elements, s.next = mode == "alwaysOn", elements, 0
	s.effect = failCommand.read(data)
	return s.count, nil
}

// State is how the sequence is set now.
func (s *Sequence) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Data: orEmpty(s.effect.data), Entered: s.count}
	if s.on {
		state.Mode = numbers[alwaysOn]
	}
	return state
}

// elements reads the array of the data.
func elements(data bson.Raw) ([]Failure, error) {
	list, ok := data.Lookup("sequence").ArrayOK()
	if !ok {
		return nil, command.Errorf(command.CodeTypeMismatch, "%s needs an array 'sequence' in its data", FailCommandSequence)
	}
	values, err := list.Values()
	if err != nil {
		return nil, command.Errorf(command.CodeBadValue, "'sequence' can not be read: %v", err)
	}
	out := make([]Failure, 0, len(values))
	for i, v := range values {
		doc, ok := v.DocumentOK()
		if !ok {
			return nil, command.Errorf(command.CodeTypeMismatch, "'sequence.%d' is a %s, not an object", i, command.TypeName(v))
		}
		e := failCommand.read(doc)
		if e.err != nil {
			return nil, e.err
		}
		out = append(out, e.failure)
	}
	return out, nil
}

// Next takes the next element for a command that the data means, and says
// whether there was one that does anything.
func (s *Sequence) Next(c Command) (Failure, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on || s.next == len(s.elements) || !s.effect.appliesTo(c) {
		return Failure{}, false
	}
	f := s.elements[s.next]
	s.next++
	if !early(f) && !f.LoseReply && f.WriteConcernError == nil {
		return Failure{}, false
	}
	s.count++
	return f, true
}
