package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xeipuuv/gojsonschema"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/text/jsonerror"
	"github.com/unified-test-runner/utr/result"
)

// For tests in package process_test.
const (
	FromRunner  = fromRunner
	FromAdapter = fromAdapter
)

// definition is a definition of the schema.
type definition struct {
	Ref         string `json:"$ref"`
	Description string
	Required    []string
	Enum        []string
	Properties  map[string]definition
}

func readSchema() (text []byte, definitions map[string]definition, err error) {
	text, err = os.ReadFile("protocol.schema.json")
	if err != nil {
		return nil, nil, err
	}
	var s struct{ Definitions map[string]definition }
	return text, s.Definitions, json.Unmarshal(text, &s)
}

// Conformity checks the messages of one conversation against the schema. Methods may be
// called concurrently.
type Conformity struct {
	line    *gojsonschema.Schema
	results map[string]*gojsonschema.Schema // by call

	mu    sync.Mutex
	calls map[string]string // by side and id
}

// NewConformity compiles the schema.
func NewConformity() (*Conformity, error) {
	text, definitions, err := readSchema()
	if err != nil {
		return nil, err
	}
	compile := func(ref string) *gojsonschema.Schema {
		root := bytes.Replace(text, []byte(`"#/definitions/message"`), []byte(`"`+ref+`"`), 1)
		schema, problem := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(root))
		if err == nil {
			err = problem
		}
		return schema
	}
	c := &Conformity{line: compile("#/definitions/message"), results: map[string]*gojsonschema.Schema{},
		calls: map[string]string{}}
	for call, d := range definitions["results"].Properties {
		c.results[call] = compile(d.Ref)
	}
	return c, err
}

// Check checks a line from one side.
func (c *Conformity) Check(from, line string) error {
	if err := conforms(c.line, line); err != nil {
		return err
	}
	var m message
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Method != "" && (m.Method == callCallback) != (from == fromAdapter):
		return fmt.Errorf("%s from the wrong side: %s", m.Method, line)
	case m.ID == nil:
		return nil
	case m.Method != "":
		c.calls[fmt.Sprint(from, *m.ID)] = m.Method
		return nil
	}
	request := fmt.Sprint(fromRunner, *m.ID)
	if from == fromRunner {
		request = fmt.Sprint(fromAdapter, *m.ID)
	}
	call := c.calls[request]
	delete(c.calls, request)
	switch {
	case call == "":
		return fmt.Errorf("a reply without a request: %s", line)
	case m.Error != nil:
		return nil
	}
	return conforms(c.results[call], string(m.Result))
}

func conforms(schema *gojsonschema.Schema, text string) error {
	r, err := schema.Validate(gojsonschema.NewStringLoader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", jsonerror.Excerpt([]byte(text)), err)
	}
	if !r.Valid() {
		return fmt.Errorf("%s: %v", jsonerror.Excerpt([]byte(text)), r.Errors())
	}
	return nil
}

// Lines returns a writer that checks the lines from one side.
func (c *Conformity) Lines(from string, failed func(error)) *Lines {
	return &Lines{each: func(line string) {
		if err := c.Check(from, line); err != nil {
			failed(fmt.Errorf("%s %w", from, err))
		}
	}}
}

// Lines is a writer that calls a function for each line.
type Lines struct {
	each func(line string)
	rest []byte
}

// Write never fails.
func (l *Lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.rest = rest
		l.each(string(line))
	}
}

// The schema defines every struct in a message, with the same members, and describes
// each member.
func TestSchemaMembers(t *testing.T) {
	_, definitions, err := readSchema()
	testkit.Check(t, err)
	seen := map[string]bool{"results": true, "document": true, "value": true, "objectID": true}
	for _, m := range []any{message{}, nothing{}, inTest{}, helloParams{}, helloResult{}, openParams{}, raised{}, doParams{},
		doResult{}, callbackParams{},
		callbackResult{}, eventsParams{}, eventsResult{}, clientParams{}, logsResult{}, spansResult{}, closeParams{}, cancelParams{}} {
		compareMembers(t, definitions, seen, reflect.TypeOf(m))
	}
	for name := range definitions {
		testkit.Equal(t, "a struct for the definition "+name, seen[name], true)
	}
	var types []string
	for _, m := range []result.Monitor{result.MonitorCommand, result.MonitorCMAP, result.MonitorSDAM} {
		for _, e := range result.EventTypes(m) {
			types = append(types, string(e))
		}
	}
	testkit.Equal(t, "types of events", definitions["event"].Properties["type"].Enum, types)
}

// compareMembers compares a struct and the structs in it with their definitions.
func compareMembers(t *testing.T, definitions map[string]definition, seen map[string]bool, s reflect.Type) {
	for s.Kind() == reflect.Pointer || s.Kind() == reflect.Slice || s.Kind() == reflect.Map {
		s = s.Elem()
	}
	if s.Kind() != reflect.Struct || s == reflect.TypeFor[value]() || s == reflect.TypeFor[bson.RawValue]() {
		return
	}
	name := strings.ToLower(s.Name()[:1]) + s.Name()[1:]
	if seen[name] {
		return
	}
	seen[name] = true
	var members, required []string
	for _, f := range reflect.VisibleFields(s) {
		member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || member == "-" { // its fields follow, or it is not in messages
			continue
		}
		members = append(members, member)
		if options == "" {
			required = append(required, member)
		}
		compareMembers(t, definitions, seen, f.Type)
	}
	slices.Sort(members)
	testkit.Equal(t, "members of "+name, slices.Sorted(maps.Keys(definitions[name].Properties)), members)
	testkit.Equal(t, "required members of "+name, definitions[name].Required, required)
	for member, d := range definitions[name].Properties {
		if !strings.HasSuffix(d.Description, ".") {
			t.Errorf("%s.%s has no description", name, member)
		}
	}
}

// The schema rejects invalid messages.
func TestConformity(t *testing.T) {
	const greeting = `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"runner":"utr"}}`
	for _, r := range []struct {
		reason, from, line string
		says               string // "" if the line conforms
	}{
		{"a request", fromRunner, greeting, ""},
		{"a reply", fromAdapter, `{"jsonrpc":"2.0","id":1,"result":{"protocol":1,"name":"n","version":"1","schemaVersion":"1.0","operations":[]}}`, ""},
		{"an error of JSON-RPC", fromAdapter, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no driver"}}`, ""},
		{"an error of an invalid line has no id", fromAdapter,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, ""},
		{"a notification", fromRunner, `{"jsonrpc":"2.0","method":"cancel","params":{"id":1}}`, ""},
		{"a notification has no id", fromRunner, `{"jsonrpc":"2.0","id":2,"method":"cancel","params":{"id":1}}`,
			"Must validate one"},
		{"an unknown member", fromRunner, strings.Replace(greeting, `"runner"`, `"color":"red","runner"`, 1), "color"},
		{"a missing member", fromRunner, strings.Replace(greeting, `"protocol":1,`, "", 1), "Must validate one"},
		{"an unknown call", fromRunner, strings.Replace(greeting, "hello", "tickle", 1), "method"},
		{"a call from the wrong side", fromAdapter, greeting, "wrong side"},
		{"the result of another call", fromAdapter, `{"jsonrpc":"2.0","id":1,"result":{"messages":[]}}`,
			"messages is not allowed"},
		{"a result and an error", fromAdapter, `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}`,
			"Must validate one"},
		{"a reply without a request", fromAdapter, `{"jsonrpc":"2.0","id":7,"result":{}}`, "without a request"},
		{"an ObjectId as a string", fromAdapter, `{"jsonrpc":"2.0","id":2,"result":{"serviceId":"0123456789abcdef01234567"}}`,
			""},
		{"an ObjectId as Extended JSON", fromAdapter,
			`{"jsonrpc":"2.0","id":2,"result":{"serviceId":{"$oid":"0123456789abcdef01234567"}}}`, ""},
		{"a service that is not an ObjectId", fromAdapter, `{"jsonrpc":"2.0","id":2,"result":{"serviceId":"here"}}`,
			"pattern"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			c, err := NewConformity()
			testkit.Check(t, err)
			for _, before := range []string{greeting,
				`{"jsonrpc":"2.0","id":2,"method":"do","params":{"object":"c","name":"find"}}`} {
				testkit.Check(t, c.Check(fromRunner, before))
			}
			switch err := c.Check(r.from, r.line); {
			case r.says != "":
				testkit.ErrorContains(t, err, r.says)
			case err != nil:
				t.Error(err)
			}
		})
	}
}
