package failpoint

import (
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

// Failure is what failCommand does to a command, in this order: it blocks,
// then it closes the connection, or it returns an error.
type Failure struct {
	Block           time.Duration
	CloseConnection bool
	HasCode         bool
	Code            int32
	// Labels replace the labels that the server would have added. Nil: they do not;
	// empty: there are none.
	Labels    []string
	ExtraInfo bson.Raw // of the error, if not nil
}

// exempt can not be failed, or no one could turn the fail point off.
const exempt = "configureFailPoint"

// Before asks whether failCommand strikes before the command runs. An *Error
// is an error in the fail point's data, and the command's answer.
func (r *Registry) Before(c Command) (Failure, bool, error) {
	data, hit := r.Strike(FailCommand, func(data bson.Raw) bool {
		_, hasCode := integer(data.Lookup("errorCode"))
		return applies(data, c) && (hasCode || isTrue(data, "closeConnection") || isTrue(data, "blockConnection"))
	})
	if !hit {
		return Failure{}, false, nil
	}
	f, err := failure(data)
	return f, true, err
}

// failure reads what failCommand's data does before the command runs.
func failure(data bson.Raw) (Failure, error) {
	f := Failure{CloseConnection: isTrue(data, "closeConnection"), Labels: labels(data)}
	if code, ok := integer(data.Lookup("errorCode")); ok {
		f.HasCode, f.Code = true, int32(code)
	}
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
	if info, ok := data.Lookup("errorExtraInfo").DocumentOK(); ok {
		f.ExtraInfo = info
	}
	return f, nil
}

// After asks whether failCommand adds a write concern error to the reply of a
// command that has run. The labels are nil if the server is to add its own.
func (r *Registry) After(c Command) (writeConcernError bson.Raw, wanted []string, hit bool) {
	data, hit := r.Strike(FailCommand, func(data bson.Raw) bool {
		_, ok := data.Lookup("writeConcernError").DocumentOK()
		return ok && applies(data, c)
	})
	if !hit {
		return nil, nil, false
	}
	return data.Lookup("writeConcernError").Document(), labels(data), true
}

// applies says whether the data means this command at all.
func applies(data bson.Raw, c Command) bool {
	if slices.Contains(c.Names, exempt) {
		return false
	}
	if app, ok := data.Lookup("appName").StringValueOK(); ok && app != c.AppName {
		return false
	}
	if ns, ok := data.Lookup("namespace").StringValueOK(); ok && ns != c.Namespace {
		return false
	}
	list, ok := data.Lookup("failCommands").ArrayOK()
	if !ok {
		return false
	}
	values, err := list.Values()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(values, func(v bson.RawValue) bool {
		name, ok := v.StringValueOK()
		return ok && slices.Contains(c.Names, name)
	})
}

func isTrue(data bson.Raw, name string) bool {
	b, ok := data.Lookup(name).BooleanOK()
	return ok && b
}

func labels(data bson.Raw) []string {
	list, ok := data.Lookup("errorLabels").ArrayOK()
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
