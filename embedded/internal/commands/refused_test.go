package commands

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/internal/testkit"
)

//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestRefusedPage$ .

// The lines of the page between which everything is generated.
const (
	generated = "<!-- What follows is made by go generate ./embedded/internal/commands. -->\n"
	written   = "<!-- What follows is written by hand. -->\n"
)

// kinds of names.txt, as the page calls them.
var kinds = [][2]string{{"command", "commands"}, {"mongod", "commands of a mongod"}, {"mongos", "commands of a mongos"},
	{"stage", "stages"}, {"accumulator", "accumulators"}, {"expression", "expressions"},
	{"condition", "conditions on a field"}, {"filter", "conditions on a document"},
	{"schema", "keywords of a JSON schema"}, {"update", "update operators"}}

// go generate ./embedded/internal/commands writes the tables of embedded.md.
func TestRefusedPage(t *testing.T) {
	page := filepath.Join(testkit.Root(t), "docs", "application", "embedded.md")
	before, rest, found := strings.Cut(testkit.Read(t, page), generated)
	_, after, ended := strings.Cut(rest, written)
	if !found || !ended {
		t.Fatal("the page lacks the marks of what is generated")
	}
	var b strings.Builder
	b.WriteString(before + generated + "| refused | |\n|---|---|\n")
	row := func(what string, names []string) {
		slices.Sort(names)
		if len(names) > 0 {
			fmt.Fprintf(&b, "| %s | `%s` |\n", what, strings.Join(slices.Compact(names), "`, `"))
		}
	}
	for _, kind := range kinds {
		var names []string
		for _, n := range fault.Names(kind[0]) {
			if n.Refused {
				names = append(names, n.Name)
			}
		}
		row(kind[1], names)
	}
	var fields []string
	for shape, s := range shapes() {
		for name, f := range s.fields {
			if f.later {
				fields = append(fields, shape+"."+name)
			}
		}
	}
	row("fields of commands", fields)
	row("also", refusals(t))
	b.WriteString("\n| accepted without a visible effect | because |\n|---|---|\n")
	reasons, of := []string{}, map[string][]string{}
	for _, c := range testkit.Cases(t, effects) {
		if c.Want != "by this reason" {
			continue
		}
		if of[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		of[c.Reason] = append(of[c.Reason], strings.Fields(c.In)...)
	}
	for _, reason := range reasons {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(of[reason], "`, `"), reason)
	}
	testkit.Golden(t, page, b.String()+written+after)
}

// notImplemented is the message of a refusal in the code.
var notImplemented = regexp.MustCompile(`"([^"]*[a-z][^"]*) (?:is|are) not implemented by the embedded deployment"`)

// refusals returns what the messages in the code name besides a name of names.txt or a field.
func refusals(t *testing.T) (texts []string) {
	testkit.Check(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range notImplemented.FindAllStringSubmatch(testkit.Read(t, path), -1) {
			name := regexp.MustCompile(`%[a-z]`).ReplaceAllString(m[1], "…")
			if strings.Trim(name, "….") != "" {
				texts = append(texts, name)
			}
		}
		return nil
	}))
	return texts
}
