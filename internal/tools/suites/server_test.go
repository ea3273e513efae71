package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// recorded is a command that a real server got, and its answer.
type recorded struct {
	Scenario string
	Send     json.RawMessage
	Reply    json.RawMessage
	Closed   bool
	doc      bson.D // the reply, once it is parsed
}

// significant lists the fields of a command that an expectation depends on.
var significant = []string{"txnNumber", "autocommit", "startTransaction", "apiVersion", "apiStrict", "topologyVersion",
	"maxAwaitTimeMS", "helloOk",
	"singleBatch", "tailable", "awaitData", "writeConcern", "multi", "remove", "new", "stmtIds", "$changeStream", "writeErrors", "noSuchField"}

// firstName finds the name of a command.
var firstName = regexp.MustCompile(`^\{\s*"([^"]+)"`)

// signature returns the name of a command and its significant fields.
func signature(send []byte) string {
	m := firstName.FindSubmatch(send)
	if m == nil {
		return ""
	}
	out := string(m[1])
	for _, name := range significant {
		if bytes.Contains(send, []byte(`"`+name+`":`)) {
			out += " " + name
		}
	}
	return out
}

// recordings contains the recorded commands by version, topology and signature.
type recordings map[string][]*recorded

func place(version string, t topologies, signature string) string {
	return fmt.Sprint(version, " ", t, " ", signature)
}

// recordedBy returns the topology of a recording.
func recordedBy(file string) topologies {
	switch name := filepath.Base(file); {
	case strings.Contains(name, "sharded"):
		return sharded
	case strings.Contains(name, "replica-set"), strings.HasPrefix(name, "writes"):
		return sets
	case strings.Contains(name, "standalone"):
		return single
	}
	return 0
}

func readRecordings(t *testing.T) (recordings, map[string]bool) {
	all, scenarios := recordings{}, map[string]bool{}
	folder := testkit.Recordings(t)
	for version, pattern := range map[string]string{"4.9": "*.jsonl", "5.0": "5.0/*.jsonl",
		"5.0+": "5.0/scenarios/*.jsonl"} {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		testkit.Check(t, err)
		for _, file := range files {
			topology := recordedBy(file)
			if topology == 0 {
				continue
			}
			text, err := os.ReadFile(file)
			testkit.Check(t, err)
			in := bufio.NewScanner(bytes.NewReader(text))
			in.Buffer(nil, 1<<24)
			for in.Scan() {
				var r recorded
				testkit.Check(t, json.Unmarshal(in.Bytes(), &r))
				scenarios[r.Scenario] = true
				key := place(strings.TrimSuffix(version, "+"), topology, signature(r.Send))
				all[key] = append(all[key], &r)
			}
		}
	}
	return all, scenarios
}

// reply returns the document of the answer.
func (r *recorded) reply(t *testing.T) bson.D {
	if r.doc == nil {
		var whole struct{ Doc json.RawMessage }
		_ = json.Unmarshal(r.Reply, &whole) // the document itself has no such field
		text := whole.Doc
		if text == nil {
			text = r.Reply
		}
		r.doc = testkit.Extended[bson.D](t, text)
	}
	return r.doc
}

func field(d bson.D, name string) (any, bool) {
	i := slices.IndexFunc(d, func(e bson.E) bool { return e.Key == name })
	if i < 0 {
		return nil, false
	}
	return d[i].Value, true
}

// answers reports whether a recorded answer meets the expectation of a step.
func answers(t *testing.T, s step, r *recorded) bool {
	if s.Fails != nil && get(s.Fails, "isClientError") == "true" {
		return r.Closed
	}
	if len(r.Reply) == 0 || string(r.Reply) == "null" {
		return false
	}
	if s.Fails == nil {
		return shows("", s.Replies, r.reply(t))
	}
	code := get(s.Fails, "errorCode")
	if !bytes.Contains(r.Reply, []byte(`"code": {"$numberInt": "`+code+`"`)) {
		return false
	}
	reply := r.reply(t)
	ok, _ := field(reply, "ok")
	name, _ := field(reply, "codeName")
	got, _ := field(reply, "code")
	labels, _ := field(reply, "errorLabels")
	has := func(label string) bool {
		list, _ := labels.(bson.A)
		return slices.Contains(list, any(label))
	}
	wantName := get(s.Fails, "errorCodeName")
	return ok == 0.0 && fmt.Sprint(got) == code && (wantName == "" || wantName == name) &&
		!slices.ContainsFunc(texts(s.Fails, "errorLabelsContain"), func(l string) bool { return !has(l) }) &&
		!slices.ContainsFunc(texts(s.Fails, "errorLabelsOmit"), has) &&
		(child(s.Fails, "errorResponse") == nil || shows("", child(s.Fails, "errorResponse"), reply))
}

func child(v value, name string) value {
	for i := 0; i+1 < len(v.Content); i += 2 {
		if v.Content[i].Value == name {
			return v.Content[i+1]
		}
	}
	return nil
}

func get(v value, name string) string {
	if c := child(v, name); c != nil {
		return c.Value
	}
	return ""
}

func texts(v value, name string) (out []string) {
	if c := child(v, name); c != nil {
		for _, item := range c.Content {
			out = append(out, item.Value)
		}
	}
	return out
}

// bsonTypes are the Go types by the names of BSON types.
var bsonTypes = map[string]any{"int": int32(0), "long": int64(0), "double": 0.0, "string": "", "date": bson.DateTime(0),
	"timestamp": bson.Timestamp{},
	"objectId":  bson.ObjectID{}, "array": bson.A{}, "object": bson.D{}, "binData": bson.Binary{}}

// shows reports whether a recorded value has what a field of that name is expected to have. Our documents and names
// differ from the recordings. Of data, it therefore compares only whether there are any.
func shows(name string, want value, got any) bool {
	switch {
	case want.Kind == yaml.MappingNode && len(want.Content) == 2 && strings.HasPrefix(want.Content[0].Value, "$"):
		operand := want.Content[1]
		switch want.Content[0].Value {
		case "$$matchAsRoot":
			return shows(name, operand, got)
		case "$numberLong":
			n, ok := got.(int64)
			return ok && (n == 0) == (operand.Value == "0")
		case "$$type":
			types := texts(want, "$$type")
			if operand.Kind == yaml.ScalarNode {
				types = []string{operand.Value}
			}
			return slices.ContainsFunc(types,
				func(n string) bool { return fmt.Sprintf("%T", bsonTypes[n]) == fmt.Sprintf("%T", got) })
		}
		return false
	case want.Kind == yaml.MappingNode && (name == "value" || name == "keyValue" || name == "keyPattern"):
		_, ok := got.(bson.D)
		return ok
	case want.Kind == yaml.MappingNode:
		d, ok := got.(bson.D)
		for i := 0; i+1 < len(want.Content) && ok; i += 2 {
			v, exists := field(d, want.Content[i].Value)
			if absent := child(want.Content[i+1], "$$exists"); absent != nil {
				ok = exists == (absent.Value == "true")
				continue
			}
			ok = exists && shows(want.Content[i].Value, want.Content[i+1], v)
		}
		return ok
	case want.Kind == yaml.SequenceNode:
		list, ok := got.(bson.A)
		if !ok || (len(list) == 0) != (len(want.Content) == 0) {
			return false
		}
		data := name == "firstBatch" || name == "nextBatch" || strings.HasPrefix(name, "cursors") || name == "values" ||
			name == "upserted"
		for i, item := range want.Content {
			if !data && (i >= len(list) || !shows("", item, list[i])) {
				return false
			}
		}
		return true
	case name == "ns" || name == "errmsg":
		_, ok := got.(string)
		return ok
	case name == "_id" || name == "upserted":
		return got != nil
	case want.Value == "null":
		return got == nil
	}
	if n, err := strconv.ParseFloat(want.Value, 64); err == nil && want.Style == 0 {
		g, err := strconv.ParseFloat(fmt.Sprint(got), 64)
		if name == "n" || name == "nModified" { // of our documents: none, one or several
			n, g = min(n, 2), min(g, 2)
		}
		return err == nil && n == g
	}
	return fmt.Sprint(got) == want.Value
}

// steps returns what a test expects of the server: the commands of a demand, or the replies that events show.
func (x test) steps() []step {
	if x.Steps != nil {
		return slices.DeleteFunc(slices.Clone(x.Steps), func(s step) bool { return s.Command == nil })
	}
	var out []step
	for _, events := range x.Events {
		for _, e := range events.Events {
			succeeded := child(e, "commandSucceededEvent")
			out = append(out, step{Command: doc(get(succeeded, "commandName"), 1), Replies: child(succeeded, "reply")})
		}
	}
	return out
}

// signature is the signature of the command.
func (s step) signature() string {
	names := map[string]bool{}
	var walk func(value)
	walk = func(v value) {
		for i, c := range v.Content {
			if v.Kind == yaml.MappingNode && i%2 == 0 {
				names[c.Value] = true
			}
			walk(c)
		}
	}
	walk(s.Command)
	out := s.name()
	for _, name := range significant {
		if names[name] {
			out += " " + name
		}
	}
	return out
}

// The page of the rules is up to date, and each rule has a test.
func TestRequirementsPage(t *testing.T) {
	page := embeddedDemands().page()
	testkit.Golden(t, filepath.Join("..", "..", "..", "specs", requirementsPage), page)
	if strings.Contains(page, "| 0 |") {
		t.Error("a rule has no test")
	}
}

// Each expectation of the server's suites is the answer of a real server to such a command, on each topology for which
// the answer is required. Where 4.9 is required, the answer is from 4.9. Wire versions of other releases come from
// their table.
func TestServersAnsweredSo(t *testing.T) {
	all, scenarios := readRecordings(t)
	for _, r := range embeddedDemands().Rules {
		for name := range strings.SplitSeq(r.Recordings, "; ") {
			if !scenarios[name] {
				t.Errorf("there is no scenario %q", name)
			}
		}
	}
	for _, f := range serverSuites().Files {
		for _, x := range f.Tests {
			if x.Require.Max != "" && x.Require.Min != "5.0" || f.Require[0].Max != "" {
				continue
			}
			versions := []string{"5.0", "4.9"}
			if x.Require.Min == "4.9" {
				versions = versions[1:]
			}
			for _, topology := range []topologies{single, sets, sharded} {
				if cmp.Or(f.Require[0].Topologies, topology)&cmp.Or(x.Require.Topologies, topology)&topology == 0 {
					continue
				}
				for i, s := range x.steps() {
					if !slices.ContainsFunc(all.like(x.Steps == nil, s, topology, versions),
						func(r *recorded) bool { return answers(t, s, r) }) {
						command, _ := printed(s.Command)
						t.Errorf("%s: %s: step %d on %s: no such answer is recorded to %s", f.Name, x.Description, i+1,
							topology.value().Content[0].Value, command)
					}
				}
			}
		}
	}
}

// like returns the recorded commands with the signature of a step or, by name, all recorded commands with its name.
func (all recordings) like(byName bool, s step, topology topologies, versions []string) (out []*recorded) {
	for _, version := range versions {
		if !byName {
			out = append(out, all[place(version, topology, s.signature())]...)
			continue
		}
		for key, list := range all {
			if strings.HasPrefix(key, place(version, topology, s.name())) {
				out = append(out, list...)
			}
		}
	}
	return out
}
