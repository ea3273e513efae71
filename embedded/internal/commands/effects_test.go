package commands

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// examples are commands that read every field with an effect, if it is there or not.
var examples = []string{
	`{"insert":"c","documents":[{"_id":1}]}`,
	`{"update":"c","updates":[{"q":{},"u":{"$set":{"a":1}}},{"q":{},"u":{"$set":{"a":1}},"multi":true}]}`,
	`{"delete":"c","deletes":[{"q":{"_id":9},"limit":1}]}`,
	`{"findAndModify":"c","query":{"_id":9},"update":{"$set":{"a":1}}}`,
	`{"findAndModify":"c","query":{"_id":9},"remove":true}`,
	`{"bulkWrite":1,"$db":"admin","nsInfo":[{"ns":"db.c"}],"ops":[{"insert":0,"document":{}},
		{"update":0,"filter":{},"updateMods":{"$set":{"a":1}}},{"delete":0,"filter":{"_id":9}}]}`,
	`{"find":"c"}`, `{"aggregate":"c","pipeline":[],"cursor":{}}`,
	`{"explain":{"find":"c"}}`, `{"count":"c"}`, `{"distinct":"c","key":"a"}`, `{"killCursors":"c","cursors":[]}`,
	`{"getMore":{"$numberLong":"5"},"collection":"c"}`, `{"validate":"c"}`, `{"drop":"nosuch"}`,
	`{"mapReduce":"c","map":"function(){}","reduce":"function(){}","out":{"inline":1}}`, `{"dropDatabase":1,"$db":"nosuch"}`,
	`{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a"}]}`, `{"dropIndexes":"c","index":"a"}`,
	`{"listIndexes":"c"}`, `{"listCollections":1}`, `{"listDatabases":1,"$db":"admin"}`,
	`{"renameCollection":"db.c","to":"db.d","$db":"admin"}`, `{"collStats":"c"}`, `{"dbStats":1}`,
}

// What the deployment refuses is listed in the documentation, by commands, names and options.
func TestRefusedPage(t *testing.T) {
	const page, begin, end = "../../../docs/application/embedded.md", "<!-- made by UTR_UPDATE=1 go test -run TestRefusedPage ./embedded/internal/commands -->\n",
		"<!-- end -->\n"
	var b strings.Builder
	b.WriteString("| what | refused |\n|---|---|\n")
	row := func(what string, names []string) {
		if len(names) > 0 {
			b.WriteString("| " + what + " | `" + strings.Join(names, "`, `") + "` |\n")
		}
	}
	for _, kind := range [][2]string{{"stage", "stages"}, {"accumulator", "accumulators"}, {"expression", "expressions"},
		{"condition", "conditions on a field"}, {"filter", "operators of a filter"}, {"update", "update operators"},
		{"command", "commands"}, {"mongod", "commands of a mongod"}, {"mongos", "commands of a mongos"}} {
		var names []string
		for _, n := range fault.Names(kind[0]) {
			if n.Refused && !strings.HasPrefix(strings.TrimPrefix(n.Name, "$"), "_") { // servers send those each other
				names = append(names, n.Name)
			}
		}
		row(kind[1], names)
	}
	for _, mark := range []struct {
		what string
		is   func(field) bool
	}{{"options of ", func(f field) bool { return f.later }}, {"without effect: options of ", func(f field) bool { return f.idle }}} {
		for _, name := range slices.Sorted(maps.Keys(shapes())) {
			var names []string
			for _, key := range slices.Sorted(maps.Keys(shapes()[name].fields)) {
				if mark.is(shapes()[name].fields[key]) {
					names = append(names, key)
				}
			}
			row(mark.what+"`"+name+"`", names)
		}
	}
	head, rest, _ := strings.Cut(testkit.Read(t, page), begin)
	_, tail, _ := strings.Cut(rest, end)
	testkit.Golden(t, page, head+begin+b.String()+end+tail)
}

// Each field that a command accepts is read, or marked in fields.txt as one without effect, and not both. The loops of
// create, collMod and currentOp read all fields.
func TestFieldsHaveEffects(t *testing.T) {
	read := map[string]bool{}
	for _, b := range []*bench{replicaSet(t), newBench(t, Options{})} {
		b.d.reads = func(field string) { read[field] = true }
		for _, command := range examples {
			_, _ = b.do(command) // some fail after they have read their fields
		}
	}
	sources, err := filepath.Glob("../*/*.go")
	testkit.Check(t, err)
	lookup := regexp.MustCompile(`Lookup(?:Err)?\("([^"]+)"`)
	raw := map[string]bool{}
	for _, name := range sources {
		if text, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, "_test.go") {
			for _, m := range lookup.FindAllSubmatch(text, -1) {
				raw[string(m[1])] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shapes())) {
		command, inner, _ := strings.Cut(name, ".")
		if !slices.ContainsFunc(examples, func(e string) bool { return strings.HasPrefix(e, `{"`+command+`"`) }) ||
			inner == "indexes" || inner == "exchange" || inner == "nsInfo" {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(shapes()[name].fields)) {
			f, used := shapes()[name].fields[key], read[name+"."+key] || raw[key] || generic(key)
			if f.later || name == key || strings.HasSuffix(name, "."+key) { // refused, or the name of the command
				continue
			}
			testkit.Equal(t, name+"."+key+" has an effect", used, !f.idle)
		}
	}
}
