package failpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// Command describes a command that a fail point may affect.
type Command struct {
	Name      string
	Aliases   []string // other names of the command
	Namespace string   // database.collection, or only the database
	AppName   string   // of the client, from its handshake
	// Connection is the number of the connection. The thread of the connection has it in its name.
	Connection int64
	Internal   bool // the client is a server
}

// Failure is the effect of a fail point on a command, in this order: it blocks the command, then closes the connection
// or returns an error.
type Failure struct {
	Block           time.Duration
	CloseConnection bool
	HasCode         bool
	Code            int32
	// Labels, unless nil, replace the labels that the server would add.
	Labels            []string
	ExtraInfo         bson.Raw // of the error, if not nil
	WriteConcernError bson.Raw // for the reply, if not nil
	LoseReply         bool     // the command runs, but its reply is not sent
	Err               error    // an error in the fail point's data. The command fails with it
}

// early reports whether the failure has an effect before the command runs.
func early(f Failure) bool { return f.Block > 0 || f.CloseConnection || f.HasCode }

// ErrClose closes the connection in place of a reply.
var ErrClose = errors.New("close the connection")

// Error returns the error of a command that the failure affects, on a server of a wire version. It is ErrClose if the
// server closes the connection, and nil if the command runs.
func (f Failure) Error(wire int) error {
	switch {
	case f.Err != nil:
		return f.Err
	case f.CloseConnection || f.HasCode && fault.CloseConnection.In(f.Code, wire):
		return ErrClose
	case !f.HasCode:
		return nil
	}
	info, err := parseExtraInfo(f.Code, f.ExtraInfo, wire)
	if err != nil {
		return err
	}
	failure := fault.Errorf(f.Code, "Failing command due to 'failCommand' failpoint")
	if version.Of(wire).ViaText {
		failure.Message = "Failing command via 'failCommand' failpoint"
	}
	failure.Extra = info
	return failure
}

// Names of fail points.
const (
	FailCommand                    = "failCommand"
	OnPrimaryTransactionalWrite    = "onPrimaryTransactionalWrite"
	FailGetMoreAfterCursorCheckout = "failGetMoreAfterCursorCheckout"
	MaxTimeAlwaysTimeOut           = "maxTimeAlwaysTimeOut"
	MaxTimeNeverTimeOut            = "maxTimeNeverTimeOut"
	StopReplProducer               = "stopReplProducer"
)

// FailCommandSequence is a fail point that only utr has. It belongs to the deployment, and gives each attempt its own
// failure, on whichever server the attempt arrives:
//
//	{configureFailPoint: "failCommandSequence", mode: "alwaysOn", data: {
//	    failCommands: [...], appName: ..., namespace: ...,
//	    sequence: [{errorCode: 91}, {}, {loseReply: true}]}}
//
// The first matching command gets the first element, the next one the second. After the last element commands are
// unaffected. An element has the fields of failCommand's data, all optional, and loseReply: the command runs, but the
// connection is closed instead of a reply. With blockConnection the connection is closed first, and the command runs
// after the delay.
const FailCommandSequence = "failCommandSequence"

// kind describes how a fail point reads its data.
type kind struct {
	name      string
	commands  []string // affected commands; nil: those in failCommands
	always    bool     // affects all commands, applications and namespaces
	codeField string   // name of the field with the error code
	code      int32    // default error code; 0: no error
	closes    bool     // closes the connection unless closeConnection is false
}

var kinds = []kind{
	{name: FailCommandSequence, codeField: "errorCode"},
	{name: FailCommand, codeField: "errorCode"},
	{name: OnPrimaryTransactionalWrite, always: true, codeField: "failBeforeCommitExceptionCode", closes: true},
	{name: FailGetMoreAfterCursorCheckout, commands: []string{"getMore"}, codeField: "errorCode",
		code: fault.InternalError},
	{name: MaxTimeAlwaysTimeOut, always: true}, {name: MaxTimeNeverTimeOut, always: true},
	{name: StopReplProducer, always: true},
}

// effect is the parsed data of a fail point.
type effect struct {
	kind     kind
	data     bson.Raw
	failure  Failure
	elements []Failure // of a sequence
}

func (e *effect) readSequence(m mode) error {
	list := e.data.Lookup("sequence")
	switch {
	case m != alwaysOn:
		return fault.Errorf(fault.BadValue, "%s is 'off' or 'alwaysOn'", FailCommandSequence)
	case list.Type != bson.TypeArray:
		return fault.Errorf(fault.TypeMismatch, "%s needs an array 'sequence' in its data", FailCommandSequence)
	}
	for i, v := range value.Elements(list) {
		doc, ok := v.DocumentOK()
		if !ok {
			return fault.Errorf(fault.TypeMismatch, "'sequence.%d' is a %s, not an object", i, value.RawTypeName(v))
		}
		element := e.kind.read(doc).failure
		if element.Err != nil {
			return element.Err
		}
		e.elements = append(e.elements, element)
	}
	return nil
}

// read reads a copy of the data of a fail point.
func (k kind) read(data bson.Raw) effect {
	data = append(bson.Raw(nil), data...)
	f := Failure{CloseConnection: value.FlagAt(data, "closeConnection"), Labels: value.Strings(data.Lookup("errorLabels")),
		LoseReply: k.name == FailCommandSequence && value.FlagAt(data, "loseReply")}
	if _, given := data.Lookup("closeConnection").BooleanOK(); !given {
		f.CloseConnection = k.closes
	}
	code, hasCode := integer(data, k.codeField)
	if f.Code, f.HasCode = int32(code), hasCode; !hasCode {
		f.Code, f.HasCode = k.code, k.code != 0
	}
	f.ExtraInfo = value.DocAt(data, "errorExtraInfo")
	f.WriteConcernError = value.DocAt(data, "writeConcernError")
	if value.FlagAt(data, "blockConnection") {
		ms, ok := integer(data, "blockTimeMS")
		switch {
		case !ok:
			f.Err = fault.Errorf(fault.InvalidOptions, "must specify 'blockTimeMS' when 'blockConnection' is true")
		case ms < 0:
			f.Err = fault.Errorf(fault.InvalidOptions, "'blockTimeMS' must be non-negative")
		default:
			f.Block = time.Duration(min(ms, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
		}
	}
	return effect{kind: k, data: data, failure: f}
}

func (e *effect) appliesTo(c Command) bool {
	if c.Name == "configureFailPoint" { // must always be able to turn the fail point off
		return false
	}
	if e.kind.always {
		return true
	}
	if !e.allows("appName", c.AppName) || !e.allows("namespace", c.Namespace) ||
		!e.allows("threadName", fmt.Sprint("conn", c.Connection)) || c.Internal && !value.FlagAt(e.data, "failInternalCommands") {
		return false
	}
	commands := e.kind.commands
	if commands == nil {
		given := e.data.Lookup("failCommands")
		if given.Type == bson.TypeEmbeddedDocument { // a server ignores the names of the fields
			given.Type = bson.TypeArray
		}
		commands = value.Strings(given)
	}
	return slices.ContainsFunc(commands,
		func(name string) bool { return name == c.Name || slices.Contains(c.Aliases, name) })
}

// Before evaluates failCommand before the command runs, and failCommandSequence if failCommand does not affect it.
func (r *Registry) Before(c Command) (Failure, bool) {
	f, hit := r.hit(FailCommand, c, func(e *effect) bool {
		return e.failure.Err != nil || early(e.failure) || value.FlagAt(e.data, "blockConnection")
	})
	if hit {
		f.WriteConcernError = nil // After evaluates it
		return f, true
	}
	return r.deployment.next(c)
}

// After evaluates failCommand after the command, for a write concern error in the reply. One that Before has returned
// precedes it.
func (r *Registry) After(c Command, before Failure) (Failure, bool) {
	f, hit := r.hit(FailCommand, c, func(e *effect) bool { return e.failure.WriteConcernError != nil })
	if before.WriteConcernError != nil {
		return before, true
	}
	return f, hit
}

// During evaluates a fail point that is checked while a command runs.
func (r *Registry) During(name string, c Command) (Failure, bool) {
	return r.hit(name, c, func(*effect) bool { return true })
}

// next consumes the next element of the sequence if it affects the command, and reports whether the element has an
// effect.
func (r *Registry) next(c Command) (Failure, bool) {
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
	p.entered++
	return f, true
}

// allows reports whether a field of the data is missing or has the value. One that is not a string is like an empty
// one.
func (e *effect) allows(field, own string) bool {
	return value.TextAt(e.data, field) == own || !value.Has(e.data, field)
}

// integer returns a field whose value is exactly an integer.
func integer(data bson.Raw, name string) (int64, bool) {
	return value.Int64(value.FromRaw(data.Lookup(name)))
}
