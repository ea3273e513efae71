package main

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// serverDatabase is the database of the suites of what a server must do.
const serverDatabase = "utr-server"

// serverSuites returns the suites of what a server must do. They send commands as they are and check the replies, so
// that a driver has as little influence as possible.
func serverSuites() specification {
	return specification{Name: "server", Numbers: "S numbers are rules of docs/server/requirements.md.",
		Files: slices.Concat(helloFiles(), sessionFiles(), recordFiles(), labelFiles(), transactionFiles(), cursorFiles(),
			replyFiles(),
			codeFiles(), secondaryFiles(), failPointFiles())}
}

// demand is a test of a server. What it says begins with what the server does and ends with a rule.
type demand struct {
	Says    string
	Require requirement // further than that of the file
	Steps   []step
	Outcome []outcome
}

// step is a command and what the server must answer, or another operation.
type step struct {
	Other value // an operation that is not a command

	To        string // the entity that the command is sent through; "" for the database
	Command   value
	Arguments value // further arguments of the operation

	Replies value // fields of the reply, nil if Fails is not
	Carries bool  // the reply has ok: 1 and errors of writes
	Fails   value // expectError
}

// send returns a step with a command, whose fields are a YAML text.
func send(command string) step { return step{Command: flow("{ " + command + " }")} }

// do returns a step with an operation.
func do(operation value) step { return step{Other: operation} }

// to sends the command through another entity than the database.
func (s step) to(entity string) step { s.To = entity; return s }

// in uses a session.
func (s step) in(session string) step {
	s.Arguments = merge(s.Arguments, doc("session", session))
	return s
}

// preferring uses the mode of a read preference.
func (s step) preferring(mode string) step {
	s.Arguments = merge(s.Arguments, doc("readPreference", doc("mode", mode)))
	return s
}

// numbered makes the command a retryable write, with a transaction number of the session.
func (s step) numbered(n int) step {
	s.Command = merge(s.Command, doc("txnNumber", long(n)))
	return s.in("session")
}

// inside makes the command a part of a transaction of the session, and starts makes it the first.
func (s step) inside(n int) step {
	s = s.numbered(n)
	s.Command = merge(s.Command, doc("autocommit", false))
	return s
}

func (s step) starts(n int) step {
	s = s.inside(n)
	s.Command = merge(s.Command, doc("startTransaction", true))
	return s
}

// commit and abort end a transaction of the session.
func commit(n int) step { return send("commitTransaction: 1").to("admin").inside(n) }
func abort(n int) step  { return send("abortTransaction: 1").to("admin").inside(n) }

// gets expects a reply with ok: 1 and further fields.
func (s step) gets(fields string) step {
	s.Replies = merge(doc("ok", 1), flow("{ "+fields+" }"))
	return s
}

// grown are documents of replies, or lists of such, to which versions and kinds of servers have added fields.
var grown = []string{"cursor", "lastErrorObject", "lastWrite", "writeConcernError", "writeErrors"}

// flexible allows further fields in documents that have grown.
func flexible(reply value) value {
	out := doc()
	for i := 0; i+1 < len(reply.Content); i += 2 {
		name, v := reply.Content[i], reply.Content[i+1]
		switch {
		case !slices.Contains(grown, name.Value) || v.Kind == yaml.MappingNode && strings.HasPrefix(v.Content[0].Value, "$$"):
		case v.Kind == yaml.SequenceNode:
			items := list[value]()
			for _, item := range v.Content {
				items.Content = append(items.Content, doc("$$matchAsRoot", item))
			}
			v = items
		default:
			v = doc("$$matchAsRoot", v)
		}
		out.Content = append(out.Content, name, v)
	}
	return out
}

// carries expects a reply with ok: 1 and errors of writes. Some drivers raise these errors and others return the reply,
// so events show it.
func (s step) carries(fields string) step {
	s = s.gets(fields)
	s.Carries = true
	return s
}

// fails expects an error with a code and labels.
func (s step) fails(c code, contain ...string) step { return s.failsWithout(c, contain, nil) }

// failsWithout expects an error with a code and some labels, but not with others.
func (s step) failsWithout(c code, contain, omit labels) step {
	s.Fails = withLabels(coded(c), contain, omit)
	return s
}

// coded expects an error of the server with a code, and its name unless that is "".
func coded(c code) value {
	v := raisedCode(c)
	if c.Name != "" {
		v = merge(v, doc("errorCodeName", c.Name))
	}
	return v
}

// responds expects an error with fields in the reply, too.
func (s step) responds(fields string) step {
	s.Fails = merge(s.Fails, doc("errorResponse", flow("{ "+fields+" }")))
	return s
}

// name returns the name of the command.
func (s step) name() string { return s.Command.Content[0].Value }

func (s step) operation() value {
	if s.Other != nil {
		return s.Other
	}
	to := s.To
	if to == "" {
		to = "database"
	}
	v := runCommand(to, s.name(), s.Command, s.Arguments)
	switch {
	case s.Carries:
		return merge(v, doc("ignoreResultAndError", true))
	case s.Fails != nil:
		return merge(v, doc("expectError", s.Fails))
	}
	return merge(v, doc("expectResult", flexible(s.Replies)))
}

// event returns the event of the command's reply.
func (s step) event() value {
	if s.Fails != nil {
		return failedEvent(s.name())
	}
	return replied(s.name(), s.Replies)
}

// replied expects the reply of a command that succeeded.
func replied(name string, reply value) value {
	return doc("commandSucceededEvent", doc("commandName", name, "reply", flexible(reply)))
}

// serverFile returns a suite of demands. Its client observes replies, and has two sessions. They are not causally
// consistent, because some drivers would add a read concern to commands.
func serverFile(name, description string, require requirement, about []string, demands []demand) *file {
	f := newFile(name, description, require, about...)
	f.Clients = []client{{ID: "client", Observe: []string{"commandSucceededEvent", "commandFailedEvent"},
		Ignore: []string{"abortTransaction"}}}
	f.Objects = []string{"admin", "database", "collection"}
	for _, id := range []string{"session", "another"} {
		f.Entities = append(f.Entities,
			block(doc("session", doc("id", id, "client", "client", "sessionOptions", doc("causalConsistency", false)))))
	}
	for _, d := range demands {
		t := test{Description: d.Says, Require: d.Require, Outcome: d.Outcome, Steps: d.Steps}
		var events []value
		for _, s := range d.Steps {
			t.Operations = append(t.Operations, s.operation())
			if s.Command != nil {
				events = append(events, s.event())
			}
		}
		if slices.ContainsFunc(d.Steps, func(s step) bool { return s.Carries }) {
			t.Events = []expected{{Client: "client", Events: events}}
		}
		f.Tests = append(f.Tests, t)
	}
	return f
}

// seen adds a test of a cursor, which a driver operates: an operation and the replies that it causes.
func (f *file) seen(says string, require requirement, operations []value, replies ...value) {
	f.Tests = append(f.Tests, test{Description: says, Require: require, Operations: operations,
		Events: []expected{{Client: "client", Events: replies}}})
}
