package main

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// step is a command and what the server must answer, or another operation.
type step struct {
	Other value // an operation that is not a command

	To        string // the entity that the command is sent through
	Command   value
	Arguments value // further arguments of the operation

	Replies value // fields of the reply, nil if Fails is not
	Carries bool  // the reply has ok: 1 and errors of writes. Some drivers raise these errors, so events show it
	Fails   value // expectError
}

// name returns the name of the command.
func (s step) name() string { return s.Command.Content[0].Value }

// operation returns the step as an operation of a suite.
func (s step) operation() value {
	if s.Other != nil {
		return s.Other
	}
	v := runCommand(s.To, s.name(), s.Command, s.Arguments)
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

// grown lists documents of replies, or lists of documents, to which versions and kinds of servers have added fields.
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
