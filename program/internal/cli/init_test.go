package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/scaffold"
)

// installed makes the programs and drivers of an adapter available as after the first command of its README, or ends
// the test.
func installed(t *testing.T, from string) {
	t.Helper()
	link := func(program, name string) {
		bin := t.TempDir()
		testkit.Check(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nexec '"+program+"' \"$@\"\n"), 0o755))
		t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	switch from {
	case "pymongo":
		link(testkit.Python(t, "pymongo", "gridfs"), "python3")
	case "node":
		_, environment := testkit.Node(t)
		for _, e := range environment {
			if path, is := strings.CutPrefix(e, "NODE_PATH="); is {
				t.Setenv("NODE_PATH", path)
			}
		}
	case "java":
		command := testkit.Java(t)
		testkit.Check(t, os.Symlink(filepath.Dir(command[len(command)-1]), "target"))
	case "rust":
		testkit.Check(t, os.Mkdir("bin", 0o755))
		testkit.Check(t, os.Symlink(testkit.Rust(t), filepath.Join("bin", "adapter")))
	case "ruby":
		link(testkit.Ruby(t), "ruby")
	}
}

// Each adapter to begin with runs a suite, and what was written for it is valid.
func TestStarters(t *testing.T) {
	for _, from := range scaffold.Kinds() {
		t.Run(from, func(t *testing.T) {
			b := realBench(t)
			b.Version, b.Commit = "v0.0.0-20261128220407-53878375", "5387"
			testkit.Check(t, os.Mkdir(".git", 0o755))
			b.expect(t, "init", "engine init mine --from "+from+" drivers/mine", 0,
				"next: the commands of drivers/mine/README.md")
			workflow := testkit.Read(t, filepath.Join(".github", "workflows", "utr-mine.yml"))
			testkit.Contains(t, workflow, "\n          working-directory: drivers/mine\n", "\n          engine: mine\n",
				"uses: unified-test-runner/utr@5387\n")
			readme := testkit.Read(t, filepath.Join("drivers", "mine", "README.md"))
			lines := append(commandLines(workflow), commandLines(readme)...)
			testkit.Equal(t, "a command line of the workflow, and three of the README", len(lines), 4)
			for _, line := range lines {
				testkit.Equal(t, line, accepts(line), nil)
			}
			t.Chdir(filepath.Join("drivers", "mine"))
			installed(t, from)
			write(t, "find.yml", plainFind)
			b.expect(t, "check", "engine check --run itself mine find.yml", 0, "✔ describes itself … 1 of 1 test would run")
			b.expect(t, "run", "run --engine mine find.yml", 0, "1 passed, 0 failed, 0 skipped")
		})
	}
}

// A workflow uses the release or the commit of utr, if these are known.
func TestRef(t *testing.T) {
	for _, r := range []struct{ reason, version, commit, want string }{
		{"a release", "v1.2.3", "5387", "v1.2.3"},
		{"a build in a checkout", "v0.0.0-20261128220407-538783751234", "5387", "5387"},
		{"a changed checkout after a release", "v1.2.4-0.20261128220407-538783751234+dirty", "5387", "5387"},
		{"a program that go run built", "devel", "", "COMMIT"},
	} {
		testkit.Equal(t, r.reason, (&Program{Version: r.version, Commit: r.commit}).ref(), r.want)
	}
}

// plainFind is a suite that every adapter to begin with can run.
const plainFind = `description: find
schemaVersion: "1.0"
createEntities:
  - client: {id: c, observeEvents: [commandStartedEvent]}
  - database: {id: d, client: c, databaseName: db}
  - collection: {id: x, database: d, collectionName: x}
initialData: [{databaseName: db, collectionName: x, documents: [{_id: 1}]}]
tests:
  - description: one document
    operations: [{object: x, name: find, arguments: {filter: {}}, expectResult: [{_id: 1}]}]
    expectEvents: [{client: c, events: [{commandStartedEvent: {commandName: find}}]}]
`
