package matchers

import (
	"testing"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

func TestLogMessages(t *testing.T) {
	message := func(level, component, data string, redacted *bool) result.LogMessage {
		return result.LogMessage{Level: level, Component: component, Data: raw(t, data), FailureRedacted: redacted}
	}
	begun := message("debug", "command", `{"message":"Command started","command":"{\"ping\":1,\"x\":2}"}`, nil)
	ended := message("debug", "command", `{"message":"Command failed","failure":"x"}`, ptr(true))
	topology := message("info", "topology", `{"message":"Changed"}`, nil)
	const wantBegun = `{level: debug, component: command, data: {message: Command started}}`
	const wantEnded = `{level: debug, component: command, failureIsRedacted: true, data: {message: Command failed}}`
	rows := []struct {
		reason, expected string
		got              []result.LogMessage
		wrong            string
	}{
		{"in order, root-level", `{client: c, messages: [` + wantBegun + `, ` + wantEnded + `]}`, []result.LogMessage{begun, ended}, ""},
		{"out of order", `{client: c, messages: [` + wantEnded + `, ` + wantBegun + `]}`, []result.LogMessage{begun, ended}, "l.messages[0].data.message: the values differ"},
		{"none", `{client: c, messages: []}`, nil, ""},
		{"none wanted", `{client: c, messages: []}`, []result.LogMessage{begun}, "want 0 log messages, got 1"},
		{"one too many", `{client: c, messages: [` + wantBegun + `]}`, []result.LogMessage{begun, ended}, "unexpected: the observed log message 1"},
		{"one too many, ignored", `{client: c, ignoreExtraMessages: true, messages: [` + wantBegun + `]}`, []result.LogMessage{begun, ended}, ""},
		{"extra ones only at the end", `{client: c, ignoreExtraMessages: true, messages: [` + wantEnded + `]}`, []result.LogMessage{begun, ended}, "l.messages[0]"},
		{"one too few", `{client: c, messages: [` + wantBegun + `, ` + wantEnded + `]}`, []result.LogMessage{ended}, "l.messages[0]: missing"},
		{"ignored before matching", `{client: c, ignoreMessages: [{level: info, component: topology, data: {}}], messages: [` + wantBegun + `]}`, []result.LogMessage{topology, begun, topology}, ""},
		{"not ignored by another level", `{client: c, ignoreMessages: [{level: debug, component: topology, data: {}}], messages: [` + wantBegun + `]}`, []result.LogMessage{topology, begun}, "unexpected: the observed log message 0"},
		{"ignored by its data", `{client: c, ignoreMessages: [{level: debug, component: command, data: {message: Command started}}], messages: []}`, []result.LogMessage{begun}, ""},
		{"level differs", `{client: c, messages: [{level: info, component: command, data: {}}]}`, []result.LogMessage{begun}, "messages[0].level: the values differ"},
		{"component differs", `{client: c, messages: [{level: debug, component: topology, data: {}}]}`, []result.LogMessage{begun}, "messages[0].component: the values differ"},
		{"two fields differ", `{client: c, messages: [{level: info, component: topology, data: {}}]}`, []result.LogMessage{begun}, "l.messages[0].component: the values differ"},
		{"data differ", `{client: c, messages: [{level: debug, component: command, data: {command: {$$matchAsDocument: {$$matchAsRoot: {ping: 2}}}}}]}`, []result.LogMessage{begun}, "$$matchAsRoot.ping: the numbers differ"},
		{"data match", `{client: c, messages: [{level: debug, component: command, data: {command: {$$matchAsDocument: {$$matchAsRoot: {ping: 1}}}}}]}`, []result.LogMessage{begun}, ""},
		{"redacted, no failure", `{client: c, messages: [{level: debug, component: command, failureIsRedacted: false, data: {}}]}`, []result.LogMessage{begun}, "has no failure"},
		{"redacted against the wish", `{client: c, messages: [{level: debug, component: command, failureIsRedacted: false, data: {}}]}`, []result.LogMessage{ended}, "the failure is redacted"},
		{"not redacted, as wanted", `{client: c, messages: [{level: debug, component: command, failureIsRedacted: false, data: {}}]}`, []result.LogMessage{message("debug", "command", `{}`, ptr(false))}, ""},
		{"not redacted against the wish", `{client: c, messages: [{level: debug, component: command, failureIsRedacted: true, data: {}}]}`, []result.LogMessage{message("debug", "command", `{}`, ptr(false))}, "the failure is not redacted"},
		{"a field is lacking", `{client: c, messages: [{level: debug, component: command}]}`, []result.LogMessage{begun}, "needs data"},
		{"an unknown field", `{client: c, messages: [{level: debug, component: command, data: {}, x: 1}]}`, []result.LogMessage{begun}, `unknown field "x"`},
		{"an unknown field outside", `{client: c, messages: [], x: 1}`, nil, `unknown field "x"`},
		{"no messages", `{client: c}`, nil, "needs messages"},
		{"no document", `[]`, nil, "want a document"},
		{"a fault in what is ignored", `{client: c, ignoreMessages: [{level: 1, component: command, data: {}}], messages: []}`, nil, "want a string"},
	}
	for _, row := range rows {
		check(t, row.reason, New(nil).LogMessages("l", yaml(t, row.expected), row.got), row.wrong)
	}
}

func TestCollection(t *testing.T) {
	rows := []struct {
		reason    string
		want, got []string
		wrong     string
	}{
		{"the same", []string{`{_id: 1, x: [1, {a: b}]}`, `{_id: 2}`}, []string{`{"_id":1,"x":[1,{"a":"b"}]}`, `{"_id":2}`}, ""},
		{"empty", nil, nil, ""},
		{"empty wanted", nil, []string{`{"_id":1}`}, "want 0 documents, got 1"},
		{"key order is free", []string{`{_id: 1, x: {a: 1, b: 2}}`}, []string{`{"x":{"b":2,"a":1},"_id":1}`}, ""},
		{"an extra key (Node takes it for inclusion)", []string{`{_id: 1}`}, []string{`{"_id":1,"x":1}`}, `o[0]: unexpected key "x"`},
		{"an extra key below", []string{`{_id: 1, x: {}}`}, []string{`{"_id":1,"x":{"y":1}}`}, `o[0].x: unexpected key "y"`},
		{"a missing key", []string{`{_id: 1, x: 1}`}, []string{`{"_id":1}`}, "o[0].x: the value is missing"},
		{"documents of one _id are compared", []string{`{_id: 1}`, `{_id: 2, x: 1}`}, []string{`{"_id":2,"x":2}`}, "o[1].x: the values differ"},
		{"a missing document", []string{`{_id: 1}`, `{_id: 2}`}, []string{`{"_id":2}`}, "o[0]: missing"},
		{"an extra document", []string{`{_id: 2}`}, []string{`{"_id":1}`, `{"_id":2}`}, "unexpected: the observed document 0"},
		{"the order of documents", []string{`{_id: 2}`, `{_id: 1}`}, []string{`{"_id":1}`, `{"_id":2}`}, "o[0]._id: the values differ"},
		{"another number", []string{`{_id: 1, x: 1}`}, []string{`{"_id":1,"x":2}`}, "o[0].x: the values differ"},
		{"a half more", []string{`{_id: 1, x: 1}`}, []string{`{"_id":1,"x":1.5}`}, "o[0].x: want int, got double"},
		{"an int is no double", []string{`{_id: 1, x: 1}`}, []string{`{"_id":1,"x":1.0}`}, "o[0].x: want int, got double"},
		{"an int is no long", []string{`{_id: 1, x: 1}`}, []string{`{"_id":1,"x":{"$numberLong":"1"}}`}, "o[0].x: want int, got long"},
		{"Extended JSON", []string{`{_id: 1, x: {$numberLong: "1"}}`}, []string{`{"_id":1,"x":{"$numberLong":"1"}}`}, ""},
		{"operators mean nothing", []string{`{_id: 1, x: {$$exists: true}}`}, []string{`{"_id":1,"x":1}`}, "o[0].x: want a document, got int"},
		{"operators are data", []string{`{_id: 1, x: {$$exists: true}}`}, []string{`{"_id":1,"x":{"$$exists":true}}`}, ""},
		{"arrays in order", []string{`{_id: 1, x: [1, 2]}`}, []string{`{"_id":1,"x":[2,1]}`}, "o[0].x[0]: the values differ"},
		{"arrays of one length", []string{`{_id: 1, x: [1]}`}, []string{`{"_id":1,"x":[1,1]}`}, "o[0].x: want 1 element, got 2"},
		{"no document", []string{`1`}, []string{`{"_id":1}`}, "want a document"},
	}
	for _, row := range rows {
		var want []*source.Value
		for _, s := range row.want {
			want = append(want, yaml(t, s))
		}
		check(t, row.reason, New(nil).Collection("o", source.Position{File: "test.yml", Line: 1}, want, raws(t, row.got...)), row.wrong)
	}
}
