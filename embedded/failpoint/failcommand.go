package failpoint

import (
	"cmp"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Command is what failCommand wants to know of a command.
type Command struct {
	Names     []string // the command's own name and its aliases
	Namespace string   // database.collection; the database alone if it has none
	AppName   string   // of the client, from its handshake
}

// Failure is what a fail point does to a command, in this order: it blocks, then
// it closes the connection, or it returns an error.
type Failure struct {
	Block           time.Duration
	CloseConnection bool
	HasCode         bool
	Code            int32
	// Labels replace the labels that the server would have added. Nil: they do not;
	// empty: there are none.
	Labels            []string
	ExtraInfo         bson.Raw // of the error, if not nil
	WriteConcernError bson.Raw // for the reply of the command, if not nil
	LoseReply         bool     // the command runs, and its reply is not sent
}

// early says whether it does anything before the command runs.
func (f Failure) early() bool { return f.Block > 0 || f.CloseConnection || f.HasCode }

// exempt can not be failed, or no one could turn the fail point off.
const exempt = "configureFailPoint"

// terms are how the data of a fail point is read. The zero value is how that of
// failCommand is.
type terms struct {
	commands []string // that it is for; nil: those that failCommands names
	everyone bool     // it asks for neither application nor namespace
	code     string   // the name of the field errorCode
	failing  int32    // the code if data has none; 0: it does not fail then
	closes   bool     // unless closeConnection is false
}

// readings are the fail points whose data is not read as that of failCommand.
var readings = map[string]terms{
	OnPrimaryTransactionalWrite:    {everyone: true, code: "failBeforeCommitExceptionCode", closes: true},
	FailGetMoreAfterCursorCheckout: {commands: []string{"getMore"}, failing: codeInternalError},
}

// Before asks whether failCommand strikes before the command runs. An *Error
// is an error in the fail point's data, and the command's answer.
func (r *Registry) Before(c Command) (Failure, bool, error) {
	data, hit := r.Strike(FailCommand, func(data bson.Raw) bool {
		f, err := terms{}.read(data)
		return terms{}.mean(data, c) && (err != nil || f.early() || isTrue(data, "blockConnection"))
	})
	if !hit {
		return Failure{}, false, nil
	}
	f, err := terms{}.read(data)
	return f, true, err
}

// After asks whether failCommand adds a write concern error to the reply of a
// command that has run. The labels are nil if the server is to add its own.
func (r *Registry) After(c Command) (writeConcernError bson.Raw, wanted []string, hit bool) {
	data, hit := r.Strike(FailCommand, func(data bson.Raw) bool {
		f, _ := terms{}.read(data)
		return f.WriteConcernError != nil && terms{}.mean(data, c)
	})
	if !hit {
		return nil, nil, false
	}
	f, _ := terms{}.read(data)
	return f.WriteConcernError, f.Labels, true
}

// Within asks whether a fail point strikes that a command meets while it runs,
// and what it does.
func (r *Registry) Within(name string, c Command) (Failure, bool) {
	t := readings[name]
	data, hit := r.Strike(name, func(data bson.Raw) bool { return t.mean(data, c) })
	if !hit {
		return Failure{}, false
	}
	f, _ := t.read(data)
	return f, true
}

// read reads what the data does. An *Error is an error in it.
func (t terms) read(data bson.Raw) (Failure, error) {
	f := Failure{CloseConnection: isTrue(data, "closeConnection"), Labels: texts(data, "errorLabels"), LoseReply: isTrue(data, "loseReply")}
	if _, told := data.Lookup("closeConnection").BooleanOK(); !told {
		f.CloseConnection = t.closes
	}
	if code, ok := integer(data.Lookup(cmp.Or(t.code, "errorCode"))); ok {
		f.HasCode, f.Code = true, int32(code)
	} else if t.failing != 0 {
		f.HasCode, f.Code = true, t.failing
	}
	f.ExtraInfo, _ = data.Lookup("errorExtraInfo").DocumentOK()
	f.WriteConcernError, _ = data.Lookup("writeConcernError").DocumentOK()
	if isTrue(data, "blockConnection") {
		ms, ok := integer(data.Lookup("blockTimeMS"))
		if !ok {
			return f, refuse(codeInvalidOptions, "must specify 'blockTimeMS' when 'blockConnection' is true")
		}
		if ms < 0 {
			return f, refuse(codeInvalidOptions, "'blockTimeMS' must be non-negative")
		}
		f.Block = time.Duration(min(ms, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
	}
	return f, nil
}

// mean says whether the data means this command at all.
func (t terms) mean(data bson.Raw, c Command) bool {
	if slices.Contains(c.Names, exempt) {
		return false
	}
	if t.everyone {
		return true
	}
	if app, ok := data.Lookup("appName").StringValueOK(); ok && app != c.AppName {
		return false
	}
	if ns, ok := data.Lookup("namespace").StringValueOK(); ok && ns != c.Namespace {
		return false
	}
	commands := t.commands
	if commands == nil {
		commands = texts(data, "failCommands")
	}
	return slices.ContainsFunc(commands, func(name string) bool { return slices.Contains(c.Names, name) })
}

func isTrue(data bson.Raw, name string) bool {
	b, ok := data.Lookup(name).BooleanOK()
	return ok && b
}

// texts are the strings of an array, nil if it is not one.
func texts(data bson.Raw, name string) []string {
	list, ok := data.Lookup(name).ArrayOK()
	if !ok {
		return nil
	}
	values, err := list.Values()
	if err != nil {
		return nil
	}
	out := make([]string, 0, len(values))
	for _, v := range values {
		if s, ok := v.StringValueOK(); ok {
			out = append(out, s)
		}
	}
	return out
}
