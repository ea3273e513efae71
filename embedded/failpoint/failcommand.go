package failpoint

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// Command is what a fail point asks about a command.
type Command struct {
	Names     []string // the command's own name and its aliases
	Namespace string   // database.collection; the database alone if it has none
	AppName   string   // of the client, from its handshake
}

// Failure is what a fail point does to a command.
type Failure = command.Failure

// early reports whether it does anything before the command runs.
func early(f Failure) bool { return f.Block > 0 || f.CloseConnection || f.HasCode }

// The names of fail points that code asks for.
const (
	FailCommand                    = "failCommand"
	OnPrimaryTransactionalWrite    = "onPrimaryTransactionalWrite"
	FailGetMoreAfterCursorCheckout = "failGetMoreAfterCursorCheckout"
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

// kind is a fail point that servers have, and how its data is read.
type kind struct {
	name      string
	commands  []string // that it applies to; nil: those that failCommands names
	always    bool     // it applies to every command, application and namespace
	codeField string   // the field that has the error code
	code      int32    // the error code without that field; 0: no error
	closes    bool     // it closes the connection unless closeConnection is false
}

var kinds = []kind{
	{name: FailCommand, codeField: "errorCode"},
	{name: OnPrimaryTransactionalWrite, always: true, codeField: "failBeforeCommitExceptionCode", closes: true},
	{name: FailGetMoreAfterCursorCheckout, commands: []string{"getMore"}, codeField: "errorCode", code: command.CodeInternalError},
	// These can be set, and have no effect.
	{name: "failCursorNotFound"}, {name: "failReceivedGetmore"}, {name: "maxTimeAlwaysTimeOut"}, {name: "maxTimeNeverTimeOut"},
}

// sequence reads data, and each element of it, as failCommand does.
var sequence = kind{name: FailCommandSequence, codeField: "errorCode"}

// effect is the data of a fail point, read when it is configured.
type effect struct {
	kind     kind
	data     bson.Raw
	failure  Failure
	elements []Failure // of a sequence
	// err is an error in the data. A server finds it when the fail point strikes.
	err error
}

// readSequence reads the elements of a sequence.
func (e *effect) readSequence(m mode) error {
	list := e.data.Lookup("sequence")
	switch {
	case m != alwaysOn:
		return command.Errorf(command.CodeBadValue, "%s is 'off' or 'alwaysOn'", FailCommandSequence)
	case list.Type != bson.TypeArray:
		return command.Errorf(command.CodeTypeMismatch, "%s needs an array 'sequence' in its data", FailCommandSequence)
	}
	for i, v := range command.Items(list) {
		doc, ok := v.DocumentOK()
		if !ok {
			return command.Errorf(command.CodeTypeMismatch, "'sequence.%d' is a %s, not an object", i, command.TypeName(v))
		}
		element := e.kind.read(doc)
		if element.err != nil {
			return element.err
		}
		e.elements = append(e.elements, element.failure)
	}
	return nil
}

// read reads the data of a fail point, which it copies.
func (k kind) read(data bson.Raw) effect {
	data = append(bson.Raw(nil), data...)
	f := Failure{CloseConnection: isTrue(data, "closeConnection"), Labels: command.Texts(data.Lookup("errorLabels")), LoseReply: isTrue(data, "loseReply")}
	if _, given := data.Lookup("closeConnection").BooleanOK(); !given {
		f.CloseConnection = k.closes
	}
	if code, ok := data.Lookup(k.codeField).AsInt64OK(); ok {
		f.HasCode, f.Code = true, int32(code)
	} else if k.code != 0 {
		f.HasCode, f.Code = true, k.code
	}
	f.ExtraInfo, _ = data.Lookup("errorExtraInfo").DocumentOK()
	f.WriteConcernError, _ = data.Lookup("writeConcernError").DocumentOK()
	var err error
	if isTrue(data, "blockConnection") {
		ms, ok := data.Lookup("blockTimeMS").AsInt64OK()
		switch {
		case !ok:
			err = command.Errorf(command.CodeInvalidOptions, "must specify 'blockTimeMS' when 'blockConnection' is true")
		case ms < 0:
			err = command.Errorf(command.CodeInvalidOptions, "'blockTimeMS' must be non-negative")
		default:
			f.Block = time.Duration(min(ms, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
		}
	}
	return effect{kind: k, data: data, failure: f, err: err}
}

// exempt cannot be failed, or nobody could turn the fail point off.
const exempt = "configureFailPoint"

// appliesTo reports whether the fail point is for a command.
func (e *effect) appliesTo(c Command) bool {
	if slices.Contains(c.Names, exempt) {
		return false
	}
	if e.kind.always {
		return true
	}
	if app, ok := e.data.Lookup("appName").StringValueOK(); ok && app != c.AppName {
		return false
	}
	if ns, ok := e.data.Lookup("namespace").StringValueOK(); ok && ns != c.Namespace {
		return false
	}
	commands := e.kind.commands
	if commands == nil {
		commands = command.Texts(e.data.Lookup("failCommands"))
	}
	return slices.ContainsFunc(commands, func(name string) bool { return slices.Contains(c.Names, name) })
}

// Before asks whether failCommand strikes before the command runs. An error
// is one in the fail point's data, and the command's answer.
func (r *Registry) Before(c Command) (Failure, bool, error) {
	e, hit := r.strike(FailCommand, func(e *effect) bool {
		return e.appliesTo(c) && (e.err != nil || early(e.failure) || isTrue(e.data, "blockConnection"))
	})
	return e.failure, hit, e.err
}

// After asks whether failCommand adds a write concern error to the reply of a
// command that has run. The labels are nil if the server is to add its own.
func (r *Registry) After(c Command) (writeConcernError bson.Raw, labels []string, hit bool) {
	e, hit := r.strike(FailCommand, func(e *effect) bool { return e.failure.WriteConcernError != nil && e.appliesTo(c) })
	return e.failure.WriteConcernError, e.failure.Labels, hit
}

// Within asks whether a fail point strikes that a command meets while it runs,
// and what it does.
func (r *Registry) Within(name string, c Command) (Failure, bool) {
	e, hit := r.strike(name, func(e *effect) bool { return e.appliesTo(c) })
	return e.failure, hit
}

// Next takes the next element of a sequence for a command that its data means, and
// says whether there was one that does anything.
func (r *Registry) Next(c Command) (Failure, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.points[FailCommandSequence]
	if p.mode == off || p.next == len(p.effect.elements) || !p.effect.appliesTo(c) {
		return Failure{}, false
	}
	f := p.effect.elements[p.next]
	p.next++
	if !early(f) && !f.LoseReply && f.WriteConcernError == nil {
		return Failure{}, false
	}
	p.count++
	return f, true
}

func isTrue(data bson.Raw, name string) bool {
	b, ok := data.Lookup(name).BooleanOK()
	return ok && b
}
