package main

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// serverFiles has the demands on servers. servers/rules.yml explains the fields.
//
//go:embed servers
var serverFiles embed.FS

// demands describes what a server must do.
type demands struct {
	Conditions map[string]requirement // by name; a test can combine them
	Documents  map[string]yaml.Node   // lists of documents
	Rules      []serverRule
	Files      []string // in the order of docs/server/requirements.md

	suites []*file
}

// serverRule is a rule of what a server must do.
type serverRule struct {
	ID, Says   string
	Section    string
	Recordings string // the scenarios of recordings that show it
}

type suiteRow struct {
	Name            yaml.Node
	Description     string
	When            yaml.Node
	About, Ignore   []string
	Entities, Tests []yaml.Node
}

// demandRow is a test of a server.
type demandRow struct {
	Says       string
	When, Left yaml.Node
	Steps      []stepRow
	Events     []yaml.Node
}

// stepRow is a step of a test.
type stepRow struct {
	Send                     yaml.Node
	To, Prefers, In          string
	Numbered, Inside, Starts *int
	Gets, Carries, Fails     yaml.Node

	Fail       []string
	FailPoint  string `yaml:"failPoint"`
	Mode, Data yaml.Node

	Do yaml.Node
}

// serverSuites returns the suites of what a server must do. They send commands as they are and check the replies, so
// that a driver has as little influence as possible.
func serverSuites() specification {
	return specification{Name: "server", Numbers: "S numbers are rules of docs/server/requirements.md.",
		Files: embeddedDemands().suites}
}

func embeddedDemands() *demands {
	d, err := readDemands(serverFiles)
	if err != nil {
		panic(err) // cannot fail: the files are embedded
	}
	return d
}

// readDemands reads and checks the folder servers.
func readDemands(files fs.FS) (*demands, error) {
	d := &demands{}
	if err := load(files, "rules", d); err != nil {
		return nil, err
	}
	for _, name := range d.Files {
		var rows []suiteRow
		if err := load(files, name, &rows); err != nil {
			return nil, err
		}
		for _, row := range rows {
			f, err := d.suite(row)
			if err != nil {
				return nil, fmt.Errorf("servers/%s.yml: %w", name, err)
			}
			d.suites = append(d.suites, f)
		}
	}
	return d, nil
}

// load reads a file that may not have unknown fields.
func load(files fs.FS, name string, into any) error {
	text, err := fs.ReadFile(files, "servers/"+name+".yml")
	if err == nil {
		err = yaml.Load(text, into, yaml.WithKnownFields())
	}
	if err != nil {
		return fmt.Errorf("servers/%s.yml: %w", name, err)
	}
	return nil
}

// suite returns the suite of a row. Its client observes replies, and has two sessions. They are not causally
// consistent, because some drivers would add a read concern to commands.
func (d *demands) suite(row suiteRow) (*file, error) {
	require, err := d.requirement(&row.When)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(d.suites, func(f *file) bool { return f.Name == row.Name.Value }) {
		return nil, mistake(&row.Name, "another suite has the name %s", row.Name.Value)
	}
	f := newFile(row.Name.Value, row.Description, require, row.About...)
	f.Clients = []client{{ID: "client", Observe: []string{"commandSucceededEvent", "commandFailedEvent"},
		Ignore: row.Ignore}}
	if row.Ignore == nil {
		f.Clients[0].Ignore = []string{"abortTransaction"}
	}
	f.Objects = []string{"admin", "database", "collection"}
	for _, id := range []string{"session", "another"} {
		f.Entities = append(f.Entities,
			block(doc("session", doc("id", id, "client", "client", "sessionOptions", doc("causalConsistency", false)))))
	}
	for _, e := range row.Entities {
		f.Entities = append(f.Entities, block(&e))
	}
	for _, t := range row.Tests {
		filled, err := fillEach(&t)
		if err != nil {
			return nil, err
		}
		for _, one := range filled {
			if err := d.add(f, one); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// ruleOf finds the rule at the end of the text of a test.
var ruleOf = regexp.MustCompile(`\((S\d+)\)$`)

// add adds a test to a suite.
func (d *demands) add(f *file, n value) error {
	var row demandRow
	err := n.Load(&row, yaml.WithKnownFields())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(f.Tests, func(t test) bool { return t.Description == row.Says }) {
		return mistake(n, "another test of %s says %q", f.Name, row.Says)
	}
	m := ruleOf.FindStringSubmatch(row.Says)
	if m == nil || !slices.ContainsFunc(d.Rules, func(r serverRule) bool { return r.ID == m[1] }) {
		return mistake(n, "%q does not end with a rule", row.Says)
	}
	t := test{Description: row.Says}
	if t.Require, err = d.requirement(&row.When); err != nil {
		return err
	}
	if t.Outcome, err = d.left(&row.Left); err != nil {
		return err
	}
	var replies []value
	shown := false // in events, because drivers differ in the results
	for _, r := range row.Steps {
		s, err := r.step(n)
		if err != nil {
			return err
		}
		t.Operations = append(t.Operations, s.operation())
		if s.Command != nil {
			replies = append(replies, s.event())
		}
		shown = shown || s.Carries
		t.Steps = append(t.Steps, s)
	}
	if row.Events != nil {
		t.Steps, shown, replies = nil, true, nil
		for _, e := range row.Events {
			replies = append(replies, replied(e.Content[0].Value, e.Content[1]))
		}
	}
	if shown {
		t.Events = []expected{{Client: "client", Events: replies}}
	}
	f.Tests = append(f.Tests, t)
	return nil
}

// requirement combines the named conditions.
func (d *demands) requirement(when value) (r requirement, err error) {
	for _, name := range items(when) {
		c, found := d.Conditions[name.Value]
		if !found {
			return r, mistake(name, "unknown condition %q", name.Value)
		}
		r.Min, r.Max = cmp.Or(c.Min, r.Min), cmp.Or(c.Max, r.Max)
		r.Topologies, r.Commands = cmp.Or(c.Topologies, r.Topologies), c.Commands || r.Commands
	}
	return r, nil
}

// left returns the outcome of a test: documents, a name of documents, or nothing.
func (d *demands) left(documents value) ([]outcome, error) {
	switch documents.Kind {
	case 0:
		return nil, nil
	case yaml.SequenceNode:
		return left(documents.Content...), nil
	}
	named, found := d.Documents[documents.Value]
	if !found {
		return nil, mistake(documents, "unknown documents %q", documents.Value)
	}
	return left(named.Content...), nil
}

// step converts a row of the test at a node.
func (r stepRow) step(at value) (step, error) {
	kinds := 0
	for _, is := range []bool{!r.Do.IsZero(), r.FailPoint != "" || r.Fail != nil, !r.Gets.IsZero(), !r.Carries.IsZero(),
		!r.Fails.IsZero()} {
		if is {
			kinds++
		}
	}
	answered := !r.Gets.IsZero() || !r.Carries.IsZero() || !r.Fails.IsZero()
	switch {
	case kinds != 1 || answered == r.Send.IsZero():
		return step{}, mistake(at, "a step of the test has none or several of do, fail, and send with an answer")
	case !r.Do.IsZero():
		return step{Other: &r.Do}, nil
	case !answered:
		return step{Other: r.failPoint()}, nil
	}
	s := step{To: cmp.Or(r.To, "database"), Command: &r.Send, Carries: !r.Carries.IsZero()}
	if r.Prefers != "" {
		s.Arguments = doc("readPreference", doc("mode", r.Prefers))
	}
	session := r.In
	if n := cmp.Or(r.Numbered, r.Inside, r.Starts); n != nil {
		session, s.Command = "session", merge(s.Command, doc("txnNumber", long(*n)))
		if r.Numbered == nil {
			s.Command = merge(s.Command, doc("autocommit", false))
		}
		if r.Starts != nil {
			s.Command = merge(s.Command, doc("startTransaction", true))
		}
	}
	if session != "" {
		s.Arguments = merge(s.Arguments, doc("session", session))
	}
	switch {
	case r.Fails.IsZero():
		s.Replies = merge(doc("ok", 1), given(r.Gets), given(r.Carries))
	case r.Fails.Content[0].Value == "isClientError":
		s.Fails = &r.Fails
	default:
		s.Fails = merge(serverError, &r.Fails)
	}
	return s, nil
}

// failPoint returns the operation that sets a fail point, once unless the row has another mode.
func (r stepRow) failPoint() value {
	mode := cmp.Or(given(r.Mode), times(1))
	if r.Fail != nil {
		return failPoint(mode, given(r.Data), r.Fail...)
	}
	return setFailPoint(r.FailPoint, mode, given(r.Data))
}

// items returns the items of a list, or a value as the only item.
func items(v value) []value {
	switch v.Kind {
	case 0:
		return nil
	case yaml.SequenceNode:
		return v.Content
	}
	return []value{v}
}

func mistake(at value, format string, arguments ...any) error {
	return fmt.Errorf("line %d: %s", at.Line, fmt.Sprintf(format, arguments...))
}

//go:embed servers/requirements.md
var introduction string

// requirementsPage is the page of the rules, relative to package specs.
const requirementsPage = "../docs/server/requirements.md"

// page returns the text of the page. Its table shows how many tests each rule has, and in which suites.
func (d *demands) page() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, r := range d.Rules {
		tests := 0
		var suites []string
		for _, f := range d.suites {
			n := 0
			for _, t := range f.Tests {
				if strings.HasSuffix(t.Description, "("+r.ID+")") {
					n++
				}
			}
			if n > 0 {
				suites = append(suites, "`"+f.Name+"`")
			}
			tests += n
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d |\n", r.ID, r.Says, r.Section, r.Recordings,
			strings.Join(suites, ", "), tests)
	}
	return b.String()
}
