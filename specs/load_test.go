package specs_test

import (
	"cmp"
	"crypto/sha256"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
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

// A case of testdata/load.txt has files, paths to load, and the result. YAML, JSON and OTHER stand for
// valid suites; ! marks a suite whose tests must fail.
func TestLoad(t *testing.T) {
	suites := map[string]string{"YAML": yamlSuite, "JSON": jsonSuite, "OTHER": otherJSON,
		"LARGE": strings.Repeat("#", source.MaxBytes+1)}
	testkit.PlayCases(t, "testdata/load.txt", func(t *testing.T, in string) string {
		parts, files := strings.Split(in, " | "), map[string]string{}
		for _, file := range parts[:len(parts)-1] {
			name, content, _ := strings.Cut(file, ": ")
			files[name] = cmp.Or(suites[content], strings.ReplaceAll(content, "⏎", "\n"))
		}
		dir := write(t, files)
		load, text, stdin := strings.Cut(parts[len(parts)-1], " --stdin ")
		var options specs.Options
		if stdin {
			options.Stdin = strings.NewReader(cmp.Or(suites[text], text))
		}
		var paths []string
		for _, word := range strings.Fields(load)[1:] {
			switch {
			case word == "--twins":
				options.Twins = true
			case strings.HasPrefix(word, "/"):
				t.Chdir(dir)
				paths = append(paths, word[1:])
			case word == "-":
				paths = append(paths, word)
			case strings.HasPrefix(word, "official"): // in the folder
				options.Official = dir
				paths = append(paths, word)
			default:
				paths = append(paths, filepath.Join(dir, word))
			}
		}
		loaded, err := specs.Load(paths, options)
		var got []string
		for _, s := range loaded.Suites {
			got = append(got, testkit.Either(s.MustFail, "!", "")+s.File)
		}
		for _, f := range loaded.Others {
			got = append(got, "other format: "+f)
		}
		for _, f := range loaded.Rejected {
			got = append(got, "refused: "+f)
		}
		if all, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range all.Unwrap() {
				got = append(got, e.Error())
			}
		}
		return strings.NewReplacer(dir+string(filepath.Separator), "", dir, "the folder", "\n",
			"⏎").Replace(strings.Join(got, " | "))
	})
}

func TestOtherFiles(t *testing.T) {
	for want, l := range map[string]specs.Loaded{
		"":                                {},
		"skipped 1 file in other formats": {Others: []string{"a"}},
		"skipped 2 files in other formats; rejected 1 invalid suite, as expected": {Others: []string{"a", "b"},
			Rejected: []string{"c"}},
		"rejected 3 invalid suites, as expected": {Rejected: []string{"a", "b", "c"}},
	} {
		testkit.Equal(t, "the summary", l.Summary(false), want)
	}
}

// Every suite in the folders of this package is embedded.
func TestEmbedded(t *testing.T) {
	files, err := filepath.Glob("*/*.yml")
	testkit.Check(t, err)
	earlier, err := filepath.Glob("dated/*/*.yml")
	testkit.Check(t, err)
	if len(files) == 0 || len(earlier) == 0 {
		t.Fatal("no suites here")
	}
	onDisk := map[string]string{}
	for _, f := range append(files, earlier...) {
		onDisk[filepath.ToSlash(f)] = testkit.Read(t, f)
	}
	t.Chdir(t.TempDir()) // outside the checkout
	for name, text := range onDisk {
		loaded, err := specs.Load([]string{name}, specs.Options{})
		if err != nil || loaded.Suites[0].Digest != sha256.Sum256([]byte(text)) {
			t.Errorf("%s is not embedded: %v", name, err)
		}
	}
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

// A file of another format is not parsed: that would allocate each of its values.
func TestOtherFormatIsNotParsed(t *testing.T) {
	for name, content := range map[string]string{
		"schema.json": `{"$schema": "x", "description": "d", "values": [` + strings.Repeat("1, ", 50_000) + "2]}",
		"flow.yml":    "# a comment\n---\n'functions' :\n" + strings.Repeat("  - run\n", 50_000),
	} {
		dir := write(t, map[string]string{name: content})
		allocated := testing.AllocsPerRun(1, func() {
			loaded, err := specs.Load([]string{dir}, specs.Options{})
			if err == nil || loaded.Others[0] != filepath.Join(dir, name) {
				t.Errorf("%s: %v, %v", name, loaded.Others, err)
			}
		})
		if allocated > 500 {
			t.Errorf("%s: %v allocations", name, allocated)
		}
	}
}

// A check of thousands of files does not keep them in memory.
func TestOnlyCheck(t *testing.T) {
	dir := write(t, map[string]string{"a.yml": yamlSuite, "a.json": jsonSuite})
	loaded, err := specs.Load([]string{dir}, specs.Options{Twins: true, OnlyCheck: true})
	testkit.Check(t, err)
	if s := loaded.Suites[0]; s.Root != nil || s.Tests != nil || s.File == "" || len(s.Warnings) == 0 {
		t.Errorf("%+v", s)
	}
}

// Loading in parallel keeps the order.
func TestOrder(t *testing.T) {
	files := map[string]string{}
	for n := 'a'; n <= 'z'; n++ {
		files[string(n)+".yml"] = yamlSuite
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	loaded, err := specs.Load([]string{write(t, files)}, specs.Options{})
	testkit.Check(t, err)
	byFile := func(a, b *specs.Suite) int { return strings.Compare(a.File, b.File) }
	if len(loaded.Suites) != 26 || !slices.IsSortedFunc(loaded.Suites, byFile) {
		t.Errorf("%v", loaded.Suites)
	}
}

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
		"suite": s.File == "f.yml" && s.Description == "d" && s.SchemaVersion == specs.Version{Major: 1, Minor: 28} &&
			len(s.CreateEntities) == 6,
		"entity": s.CreateEntities[1].Kind == "database" && s.CreateEntities[1].ID == "database0" &&
			s.CreateEntities[1].Position.Line == 5,
		"versions": *r.MinServerVersion == specs.Version{Major: 4, Minor: 2} &&
			*r.MaxServerVersion == specs.Version{Major: 7, Patch: 1},
		"requirement": slices.Equal(r.Topologies, []string{"single", "sharded"}) && r.Serverless == "forbid" &&
			r.ServerParameters.Get("a").Int == 1 && !*r.Auth && r.AuthMechanism == "PLAIN",
		"csfle": *r.CSFLE && r.MinLibmongocrypt == "1.8.0" && !*s.Requirements[1].CSFLE &&
			s.Requirements[1].Auth == nil && s.Requirements[1].MinServerVersion == nil,
		"initial data": s.InitialData[0].DatabaseName == "db" && s.InitialData[0].CollectionName == "c" &&
			s.InitialData[0].CreateOptions.Get("capped").Bool && len(s.InitialData[0].Documents) == 1,
		"test": test.Description == "t" && *test.SkipReason == "why" && *test.Requirements[0].Auth &&
			test.Position.Line > 0,
		"operation 0": test.Operations[0].Name == "find" && test.Operations[0].Object == "collection0" &&
			test.Operations[0].ExpectResult != nil && test.Operations[0].SaveResultAsEntity == "r" &&
			test.Operations[0].Arguments.Get("filter") != nil,
		"operation 1": test.Operations[1].ExpectError.Get("isError").Bool && !test.Operations[1].IgnoreResultAndError,
		"operation 2": test.Operations[2].IgnoreResultAndError,
		"events":      len(test.ExpectEvents) == 2 && test.ExpectEvents[1].Get("ignoreExtraEvents").IsTrue(),
		"logs":        len(test.ExpectLogMessages) == 1 && test.ExpectTracing == nil,
		"outcome":     test.Outcome[0].CollectionName == "c" && test.Outcome[0].CreateOptions == nil,
	} {
		if !ok {
			t.Errorf("%s is wrong", what)
		}
	}
}
