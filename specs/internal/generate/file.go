package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
)

// File is a suite.
type File struct {
	Name        string   // without extension
	Description string   // after the specification's title
	About       []string // comment lines
	Require     []string // flow YAML of runOnRequirements
	Clients     []Client // besides setup
	Objects     []string // kinds of entities of each client
	Sessions    bool     // whether each client has a session
	Entities    []string // flow YAML of further entities
	Bucket      bool     // whether there is a GridFS file to download
	Empty       []string // empty collections
	Tests       []Test
}

// NewFile returns a suite for servers that meet a requirement, with comment lines about it. It has one
// client, which observes commands, and a collection.
func NewFile(name, description, require string, about ...string) *File {
	return &File{Name: name, Description: description, Require: []string{require}, About: about,
		Clients: []Client{Observed("client", "")}, Objects: []string{"collection"}}
}

// Of returns a suite with a test for each story of one operation.
func Of(o Operation, require string, clients []Client, stories []Story, about ...string) *File {
	f := NewFile(o.File(), o.Title(), AtLeast(o.Since, require), about...)
	f.Clients, f.Objects, f.Bucket = clients, []string{o.Object}, o.Object == "bucket"
	f.Tell(o, stories...)
	return f
}

// Test is a test of a suite. All but the description are flow YAML.
type Test struct {
	Description string
	Require     string
	Operations  []string
	Events      []Expected
	Outcome     []Outcome

	Says, Today string // as in its story
}

// Expected are the events of one client.
type Expected struct {
	Client    string
	EventType string // "" for command
	Events    []string
	Extra     bool // ignoreExtraEvents
}

// Outcome is what a collection holds after a test.
type Outcome struct {
	Collection string
	Documents  []string
}

// After returns the outcome of a test that leaves these documents in Collection.
func After(documents ...string) []Outcome { return []Outcome{{Collection, documents}} }

// Collection is a collection of every suite.
const Collection = "documents"

// Initial returns the documents of Collection before each test.
func Initial() []string { return []string{first, second, third} }

// render returns the text of the file with the lowest possible schemaVersion.
func (f *File) render(s Specification) ([]byte, error) {
	text := f.text(s, "1.0")
	root, err := source.Parse(f.Name, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	version, err := Lowest(f.Name, root, text)
	if err != nil {
		return nil, err
	}
	return source.Format(f.Name, f.text(s, version.String()))
}

// Lowest returns the lowest schemaVersion of a suite. It knows an operation and an option that the format's
// changelog does not mention.
func Lowest(name string, root *source.Value, text []byte) (specs.Version, error) {
	version, _, err := specs.Lowest(name, root)
	for with, minor := range map[string]int{"name: clientBulkWrite": 21, " timeoutMS:": 9} {
		if bytes.Contains(text, []byte(with)) {
			version.Minor = max(version.Minor, minor)
		}
	}
	return version, err
}

//go:embed file.tmpl
var layout string

var page = template.Must(template.New("suite").Funcs(template.FuncMap{
	"initial": Initial,
	"list":    func(of []string) string { return "[ " + strings.Join(of, ", ") + " ]" },
}).Parse(layout))

func (f *File) text(s Specification, version string) []byte {
	var b bytes.Buffer
	if err := page.Execute(&b, struct {
		Specification
		*File
		Version string
	}{s, f, version}); err != nil {
		panic(err) // cannot fail: the template is constant
	}
	return b.Bytes()
}

// below returns the entities below a client.
func (f *File) below(database, client string) []string {
	out := Objects(database, client, f.Objects...)
	if f.Sessions {
		out = append(out, Session(client))
	}
	return out
}

// Shared returns the clients that each test has, and Below the entities below them. Rare returns the others, with
// theirs: the tests that use one of them create it, since each client costs every test its monitors and connections.
func (f *File) Shared() []Client {
	return slices.DeleteFunc(slices.Clone(f.Clients), f.rare)
}

func (f *File) Below(database string) (out []string) {
	for _, c := range f.Shared() {
		out = append(out, f.below(database, c.ID)...)
	}
	return out
}

func (f *File) Rare(database string) (out []Created) {
	for _, c := range f.Clients {
		if f.rare(c) {
			out = append(out, Created{c, f.below(database, c.ID)})
		}
	}
	return out
}

// Created is a client with the entities below it.
type Created struct {
	Client
	Below []string
}

func (f *File) rare(c Client) bool {
	unused := func(t Test) bool { return !t.uses(c.ID) }
	return c.ID != "client" && slices.ContainsFunc(f.Tests, unused) && !uses(f.Entities, c.ID)
}

// Creates returns the rare clients that a test uses.
func (f *File) Creates(t Test) (out []string) {
	for _, c := range f.Clients {
		if f.rare(c) && t.uses(c.ID) {
			out = append(out, c.ID)
		}
	}
	return out
}

var entity = regexp.MustCompile(`\b(?:client|database|object|session|\$\$sessionLsid): ([\w-]+)`)

// uses reports whether flow YAML names a client or an entity below it.
func uses(texts []string, client string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(entity.FindAllStringSubmatch(text, -1), func(m []string) bool {
			return m[1] == client || strings.HasSuffix(m[1], "-"+client)
		})
	})
}

func (t Test) uses(client string) bool {
	return uses(t.Operations, client) || slices.ContainsFunc(t.Events, func(e Expected) bool { return e.Client == client })
}

// Topologies in flow YAML.
const (
	Single    = "single"
	Sets      = "replicaset"
	Sharded   = "sharded"
	Clusters  = "replicaset, sharded"
	Monitored = "single, replicaset, sharded"        // with monitors
	Retrying  = "replicaset, sharded, load-balanced" // with retryable writes and change streams
	Balanced  = "load-balanced"                      // whose connections carry the id of a service
)

// Servers requires a minimum server version and one of the topologies, "" for any.
func Servers(version, topologies string) string {
	if topologies != "" {
		topologies = ", topologies: [ " + topologies + " ]"
	}
	return fmt.Sprintf("{ minServerVersion: %q%s }", version, topologies)
}

// Before44 requires a server that does not add error labels.
func Before44(topologies string) string {
	return `{ minServerVersion: "4.2", maxServerVersion: "4.2.99", topologies: [ ` + topologies + ` ] }`
}

// Authenticated requires authentication, behind a load balancer as well.
func Authenticated(version, topologies string) []string {
	return []string{fmt.Sprintf("{ minServerVersion: %q, auth: true, topologies: [ %s ] }", version, topologies),
		`{ minServerVersion: "5.0", auth: true, topologies: [ load-balanced ] }`}
}

// Sequences requires the fail point of Sequence.
func Sequences(topologies string) string {
	return Merge(Servers("4.4", topologies), "serverParameters: { failCommandSequence: true }")
}

// Quiet are the options of a client whose monitors send no hello during a test, so that a fail point for
// hello only affects the connections of its pool.
const Quiet = "heartbeatFrequencyMS: 600000, serverMonitoringMode: poll"

var minimum = regexp.MustCompile(`minServerVersion: "[^"]*"`)

// AtLeast replaces the version of a requirement, unless version is "".
func AtLeast(version, require string) string {
	if version == "" {
		return require
	}
	return minimum.ReplaceAllString(require, fmt.Sprintf("minServerVersion: %q", version))
}

// requires adapts a requirement to the first server version with the operation. It reports whether a
// server can meet both.
func (o Operation) requires(r string) (string, bool) {
	return AtLeast(o.Since, r), o.Since == "" || !strings.Contains(r, "maxServerVersion")
}
