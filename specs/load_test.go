package specs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
)

const (
	yamlSuite = "description: d\nschemaVersion: '1.0'\ntests: [{description: t, operations: []}]\n"
	jsonSuite = `{"description": "d", "schemaVersion": "1.0", "tests": [{"description": "t", "operations": []}]}`
	otherJSON = `{"description": "e", "schemaVersion": "1.0", "tests": [{"description": "t", "operations": []}]}`
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Check(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

func TestLoad(t *testing.T) {
	builtIn := fstest.MapFS{
		"some-reads/find.yml": {Data: []byte(yamlSuite)},
		"some-reads/more.yml": {Data: []byte(yamlSuite)},
		"other/x.yml":         {Data: []byte(yamlSuite)},
	}
	for _, tt := range []struct {
		reason  string
		files   map[string]string
		paths   []string // below the directory, but for - and those after /
		options specs.Options
		want    []string // suites, below the directory; ! marks those that must fail
		others  []string
		refused []string
		errors  []string // words of each error
	}{
		{reason: "a file", files: map[string]string{"a.yml": yamlSuite}, paths: []string{"a.yml"}, want: []string{"a.yml"}},
		{reason: "a JSON file", files: map[string]string{"a.json": jsonSuite}, paths: []string{"a.json"}, want: []string{"a.json"}},
		{reason: "a directory, with those below it, in order", files: map[string]string{"b.yml": yamlSuite, "a/c.yaml": yamlSuite, "a/d/e.json": jsonSuite}, paths: []string{""}, want: []string{"a/c.yaml", "a/d/e.json", "b.yml"}},
		{reason: "other extensions and hidden files", files: map[string]string{"a.yml": yamlSuite, "README.md": "#", ".hidden.yml": "[", ".git/x.yml": "["}, paths: []string{""}, want: []string{"a.yml"}},
		{reason: "several, each once", files: map[string]string{"a.yml": yamlSuite, "b.yml": yamlSuite}, paths: []string{"b.yml", "", "a.yml"}, want: []string{"b.yml", "a.yml"}},
		{reason: "twins load once", files: map[string]string{"a.yml": yamlSuite, "a.json": jsonSuite}, paths: []string{""}, want: []string{"a.yml"}},
		{reason: "a run does not read twins", files: map[string]string{"a.yml": yamlSuite, "a.json": "["}, paths: []string{""}, want: []string{"a.yml"}},
		{reason: "equal twins", files: map[string]string{"a.yml": yamlSuite, "a.json": jsonSuite}, paths: []string{""}, options: specs.Options{Twins: true}, want: []string{"a.yml"}},
		{reason: "a twin that differs", files: map[string]string{"a.yml": yamlSuite, "a.json": otherJSON}, paths: []string{""}, options: specs.Options{Twins: true}, errors: []string{"description: differs from the JSON twin at"}},
		{reason: "a twin that differs, of a file", files: map[string]string{"a.yml": yamlSuite, "a.json": otherJSON}, paths: []string{"a.yml"}, options: specs.Options{Twins: true}, errors: []string{"differs from the JSON twin"}},
		{reason: "a twin that has more", files: map[string]string{"a.yml": yamlSuite, "a.json": `{"x": 1, ` + jsonSuite[1:]}, paths: []string{""}, options: specs.Options{Twins: true}, errors: []string{"of which this is the JSON twin"}},
		{reason: "a twin that has less", files: map[string]string{"a.yml": yamlSuite, "a.json": `{"description": "d", "schemaVersion": "1.0"}`}, paths: []string{""}, options: specs.Options{Twins: true}, errors: []string{"is not in the JSON twin"}},
		{reason: "a twin that is broken", files: map[string]string{"a.yml": yamlSuite, "a.json": "["}, paths: []string{""}, options: specs.Options{Twins: true}, errors: []string{"a.json:1:2"}},
		{reason: "what is not a suite, beside suites", files: map[string]string{"a.yml": yamlSuite, "schema.json": `{"type": "object"}`}, paths: []string{""}, want: []string{"a.yml"}, others: []string{"schema.json"}},
		{reason: "what is not a suite, named", files: map[string]string{"schema.json": `{"type": "object"}`}, paths: []string{"schema.json"}, errors: []string{"schema.json:1:1: error: this is not a unified suite: it has no schemaVersion"}},
		{reason: "a suite without its version is not left out", files: map[string]string{"a.yml": yamlSuite, "b.yml": "description: d\ntests: [{operations: []}]"}, paths: []string{""}, want: []string{"a.yml"}, errors: []string{"schemaVersion is missing"}},
		{reason: "tests of other formats: no operations, other keys, a list", files: map[string]string{"a.yml": yamlSuite,
			"b.yml": "tests: [{uri: 'mongodb://a'}]", "c.yml": "database_name: d\ntests: [{operations: []}]", "d.yml": "[{operations: []}]", "e.yml": "tests: 1"},
			paths: []string{""}, want: []string{"a.yml"}, others: []string{"b.yml", "c.yml", "d.yml", "e.yml"}},
		{reason: "tests of another format, named", files: map[string]string{"b.yml": "tests: [{uri: 'mongodb://a'}]"}, paths: []string{"b.yml"}, errors: []string{"this is not a unified suite"}},
		{reason: "the format's own tests", files: map[string]string{"t/valid-pass/a.yml": yamlSuite, "t/valid-fail/b.yml": yamlSuite, "t/valid-fail/c.yml": "schemaVersion: '0.1'",
			"t/invalid/d.yml": "schemaVersion: '1.0'", "t/invalid/e/f.yml": "[", "t/invalid/g.yml": yamlSuite},
			paths: []string{""}, want: []string{"!t/valid-fail/b.yml", "t/valid-pass/a.yml"}, refused: []string{"t/invalid/d.yml", "t/invalid/e/f.yml", "t/valid-fail/c.yml"},
			errors: []string{"t/invalid/g.yml:1:1: error: this suite is valid"}},
		{reason: "one of their folders, named", files: map[string]string{"t/valid-pass/a.yml": yamlSuite, "t/valid-fail/b.yml": yamlSuite, "t/invalid/d.yml": "schemaVersion: '1.0'"},
			paths: []string{"t/valid-fail", "t/invalid"}, want: []string{"t/valid-fail/b.yml"}, errors: []string{"t/invalid/d.yml:1:1"}},
		{reason: "a folder of somebody else that has such a name", files: map[string]string{"invalid/d.yml": "schemaVersion: '1.0'", "valid-fail/b.yml": yamlSuite},
			paths: []string{""}, want: []string{"valid-fail/b.yml"}, errors: []string{"invalid/d.yml:1:1"}},
		{reason: "a suite without tests is not left out", files: map[string]string{"a.yml": yamlSuite, "b.yml": "schemaVersion: '1.0'"}, paths: []string{""}, want: []string{"a.yml"}, errors: []string{"tests"}},
		{reason: "a suite with neither is not left out", files: map[string]string{"a.yml": yamlSuite, "b.yml": "createEntities: []"}, paths: []string{""}, want: []string{"a.yml"}, errors: []string{"schemaVersion is missing"}},
		{reason: "what does not parse is not left out", files: map[string]string{"a.yml": yamlSuite, "b.json": "{"}, paths: []string{""}, want: []string{"a.yml"}, errors: []string{"b.json:1:2"}},
		{reason: "every file's errors", files: map[string]string{"a.yml": "[", "b.yml": "{", "c.yml": yamlSuite}, paths: []string{""}, want: []string{"c.yml"}, errors: []string{"a.yml:", "b.yml:"}},
		{reason: "another extension, named", files: map[string]string{"a.txt": yamlSuite}, paths: []string{"a.txt"}, errors: []string{"the extension must be .yml, .yaml or .json"}},
		{reason: "no suite found", files: map[string]string{"README.md": "#", "schema.json": "{}"}, paths: []string{""}, others: []string{"schema.json"}, errors: []string{"no suite found"}},
		{reason: "no paths", errors: []string{"no suite found"}},
		{reason: "no such path", paths: []string{"nope"}, errors: []string{"no such file or directory"}},
		{reason: "too large", files: map[string]string{"a.yml": yamlSuite}, paths: []string{"a.yml"}, options: specs.Options{Limits: source.Limits{Bytes: 10, Depth: 10, Nodes: 10}}, errors: []string{"larger than the limit of 10"}},
		{reason: "standard input, YAML", paths: []string{"-"}, options: specs.Options{Stdin: strings.NewReader(yamlSuite)}, want: []string{"<stdin>"}},
		{reason: "standard input, JSON", paths: []string{"-"}, options: specs.Options{Stdin: strings.NewReader(jsonSuite)}, want: []string{"<stdin>"}},
		{reason: "standard input, twice", paths: []string{"-", "-"}, options: specs.Options{Stdin: strings.NewReader(jsonSuite)}, want: []string{"<stdin>"}},
		{reason: "standard input that is not there", paths: []string{"-"}, errors: []string{"standard input"}},
		{reason: "standard input that is too large", paths: []string{"-"}, options: specs.Options{Stdin: strings.NewReader(yamlSuite), Limits: source.Limits{Bytes: 10, Depth: 10, Nodes: 10}}, errors: []string{"larger than the limit"}},
		{reason: "a built-in directory", paths: []string{"/some-reads"}, options: specs.Options{Suites: builtIn}, want: []string{"some-reads/find.yml", "some-reads/more.yml"}},
		{reason: "as in a checkout", paths: []string{"/specs/some-reads"}, options: specs.Options{Suites: builtIn}, want: []string{"some-reads/find.yml", "some-reads/more.yml"}},
		{reason: "a built-in file", paths: []string{"/some-reads/find.yml"}, options: specs.Options{Suites: builtIn}, want: []string{"some-reads/find.yml"}},
		{reason: "neither on disk nor built in", paths: []string{"/some-raeds"}, options: specs.Options{Suites: builtIn}, errors: []string{"other, some-reads"}},
	} {
		dir := write(t, tt.files)
		var paths []string
		for _, p := range tt.paths {
			switch {
			case p == "-":
			case strings.HasPrefix(p, "/"):
				p = p[1:]
			default:
				p = filepath.Join(dir, p)
			}
			paths = append(paths, p)
		}
		below := func(file string) string {
			if r, err := filepath.Rel(dir, file); err == nil {
				return filepath.ToSlash(r)
			}
			return file
		}
		loaded, err := specs.Load(paths, tt.options)
		var suites, others, refused, problems []string
		for _, s := range loaded.Suites {
			mark := map[bool]string{true: "!"}[s.MustFail]
			suites = append(suites, mark+below(s.File))
		}
		for _, f := range loaded.Others {
			others = append(others, below(f))
		}
		for _, f := range loaded.Refused {
			refused = append(refused, below(f))
		}
		var all *specs.LoadError
		if errors.As(err, &all) {
			for _, e := range all.Errors {
				problems = append(problems, e.Error())
			}
		}
		if !slices.Equal(suites, tt.want) || !slices.Equal(others, tt.others) || !slices.Equal(refused, tt.refused) {
			t.Errorf("%s: suites %v, others %v, refused %v", tt.reason, suites, others, refused)
		}
		if len(problems) != len(tt.errors) {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		for i, words := range tt.errors {
			if !strings.Contains(problems[i], words) {
				t.Errorf("%s: got %s, want %s", tt.reason, problems[i], words)
			}
		}
	}
}

func TestLeft(t *testing.T) {
	for want, l := range map[string]specs.Loaded{
		"":                                     {},
		"1 file of another format is left out": {Others: []string{"a"}},
		"2 files of other formats are left out; 1 invalid suite is refused, as it must be": {Others: []string{"a", "b"}, Refused: []string{"c"}},
		"3 invalid suites are refused, as they must be":                                    {Refused: []string{"a", "b", "c"}},
	} {
		if got := l.Left(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The embedded suites are the files beside this test: what is put into a
// directory is there.
func TestEmbedded(t *testing.T) {
	files, err := filepath.Glob("*/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no suites here", err)
	}
	for _, f := range files {
		onDisk, err := os.ReadFile(f)
		testkit.Check(t, err)
		embedded, err := specs.FS.ReadFile(filepath.ToSlash(f))
		if err != nil || string(embedded) != string(onDisk) {
			t.Errorf("%s is not embedded: %v", f, err)
		}
	}
	t.Chdir(t.TempDir()) // no checkout at hand
	loaded, err := specs.Load([]string{"smoke"}, specs.Options{})
	if err != nil || len(loaded.Suites) != 1 || loaded.Suites[0].File != "smoke/find.yml" {
		t.Errorf("%v, %v", loaded, err)
	}
	for _, s := range loaded.Suites {
		if len(s.Warnings) > 0 {
			t.Errorf("%v", s.Warnings)
		}
	}
}

// Files that are loaded at the same time come in the same order.
func TestOrderDoesNotDependOnJobs(t *testing.T) {
	files := map[string]string{}
	for _, n := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		files[n+".yml"] = yamlSuite
	}
	dir := write(t, files)
	var orders [2][]string
	for k, jobs := range []int{1, 8} {
		loaded, err := specs.Load([]string{dir}, specs.Options{Jobs: jobs})
		testkit.Check(t, err)
		for _, s := range loaded.Suites {
			orders[k] = append(orders[k], s.File)
		}
	}
	if !slices.Equal(orders[0], orders[1]) || len(orders[0]) != 26 {
		t.Errorf("%v, %v", orders[0], orders[1])
	}
}

// Every field of the typed form is decoded.
func TestDecode(t *testing.T) {
	s, err := specs.Parse("f.yml", []byte(head+`runOnRequirements:
  - { minServerVersion: "4.2", maxServerVersion: 7.0.1, topologies: [single, sharded], serverless: forbid, serverParameters: {a: 1}, auth: false, authMechanism: PLAIN, csfle: {minLibmongocryptVersion: 1.8.0} }
  - { csfle: false }
initialData: [{ databaseName: db, collectionName: c, createOptions: {capped: true}, documents: [{_id: 1}] }]
tests:
  - description: t
    skipReason: why
    runOnRequirements: [{auth: true}]
    operations:
      - { name: find, object: collection0, arguments: {filter: {}}, expectResult: [], saveResultAsEntity: r }
      - { name: find, object: collection0, arguments: {filter: {}}, expectError: {isError: true} }
      - { name: find, object: collection0, arguments: {filter: {}}, ignoreResultAndError: true }
    expectEvents: [{ client: client0, events: [] }, { client: client0, eventType: cmap, events: [], ignoreExtraEvents: true }]
    expectLogMessages: [{ client: client0, messages: [] }]
    outcome: [{ databaseName: db, collectionName: c, documents: [] }]
`))
	testkit.Check(t, err)
	r, test := s.Requirements[0], s.Tests[0]
	for what, ok := range map[string]bool{
		"suite":        s.File == "f.yml" && s.Description == "d" && s.SchemaVersion == specs.Version{Major: 1, Minor: 28} && len(s.CreateEntities) == 6,
		"entity":       s.CreateEntities[1].Kind == "database" && s.CreateEntities[1].ID == "database0" && s.CreateEntities[1].Position.Line == 5,
		"versions":     *r.MinServerVersion == specs.Version{Major: 4, Minor: 2} && *r.MaxServerVersion == specs.Version{Major: 7, Patch: 1},
		"requirement":  slices.Equal(r.Topologies, []string{"single", "sharded"}) && r.Serverless == "forbid" && r.ServerParameters.Get("a").Int == 1 && !*r.Auth && r.AuthMechanism == "PLAIN",
		"csfle":        *r.CSFLE && r.MinLibmongocrypt == "1.8.0" && !*s.Requirements[1].CSFLE && s.Requirements[1].Auth == nil && s.Requirements[1].MinServerVersion == nil,
		"initial data": s.InitialData[0].DatabaseName == "db" && s.InitialData[0].CollectionName == "c" && s.InitialData[0].CreateOptions.Get("capped").Bool && len(s.InitialData[0].Documents) == 1,
		"test":         test.Description == "t" && *test.SkipReason == "why" && *test.Requirements[0].Auth && test.Position.Line > 0,
		"operation 0":  test.Operations[0].Name == "find" && test.Operations[0].Object == "collection0" && test.Operations[0].ExpectResult != nil && test.Operations[0].SaveResultAsEntity == "r" && test.Operations[0].Arguments.Get("filter") != nil,
		"operation 1":  test.Operations[1].ExpectError.Get("isError").Bool && !test.Operations[1].IgnoreResultAndError,
		"operation 2":  test.Operations[2].IgnoreResultAndError,
		"events":       test.ExpectEvents[0].EventType == "command" && !test.ExpectEvents[0].IgnoreExtraEvents && test.ExpectEvents[1].EventType == "cmap" && test.ExpectEvents[1].IgnoreExtraEvents,
		"logs":         len(test.ExpectLogMessages) == 1 && test.ExpectTracing == nil,
		"outcome":      test.Outcome[0].CollectionName == "c" && test.Outcome[0].CreateOptions == nil,
	} {
		if !ok {
			t.Errorf("%s is wrong", what)
		}
	}
}
