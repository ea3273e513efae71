package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// peer is a program of Node.js with the packages with which the specifications
// repository checks and converts suites: js-yaml, which must have version 5, and ajv.
const peer = `
const fs = require("fs"), yaml = require("js-yaml"), Ajv = require("ajv").default;
const options = {schema: yaml.CORE_SCHEMA.withTags(yaml.mergeTag)};
const [task, schemas, ...files] = process.argv.slice(1);
const ajv = new Ajv({strict: false}), compiled = {};
let valid = 0;
for (const file of files) {
	try {
		const suite = yaml.load(fs.readFileSync(file, "utf8"), options);
		if (task === "convert") {
			fs.writeFileSync(file.replace(/yml$/, "json"), JSON.stringify(suite, null, 2) + "\n");
		} else {
			const version = suite.schemaVersion.split(".").slice(0, 2).join(".");
			compiled[version] ??= ajv.compile(JSON.parse(fs.readFileSync(schemas + "/schema-" + version + ".json", "utf8")));
			if (!compiled[version](suite)) continue;
		}
		valid++;
	} catch (error) {
		if (process.env.PEER_DEBUG) console.error(file, error.message);
	}
}
console.log(valid);
`

// BenchmarkAuthors measures whole processes, from start to exit: the commands for
// authors of suites, and Node.js with js-yaml and ajv, which has neither positions nor
// semantic checks. The files are those of BenchmarkLoad.
func BenchmarkAuthors(b *testing.B) {
	dir := corpus(b)
	schemas := filepath.Dir(testkit.OfficialSchema(b, "1.0"))
	folder := b.TempDir()
	var files []string
	for _, s := range loaded(b, dir) {
		if filepath.Ext(s.File) != ".yml" {
			continue
		}
		data, err := os.ReadFile(s.File)
		testkit.Check(b, err)
		name := filepath.Join(folder, strings.ReplaceAll(strings.TrimPrefix(s.File, dir), string(filepath.Separator), "-"))
		testkit.Check(b, os.WriteFile(name, data, 0o666))
		files = append(files, name)
	}
	utr := filepath.Join(b.TempDir(), "utr")
	out, err := exec.Command("go", "build", "-o", utr, filepath.Join(testkit.Root(b), "cmd", "utr")).CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %s", err, out)
	}
	run := func(name string, units int, unit string, env []string, command ...string) {
		b.Run(name, func(b *testing.B) {
			var out []byte
			for b.Loop() {
				c := exec.Command(command[0], command[1:]...)
				c.Env = env
				if out, err = c.CombinedOutput(); err != nil {
					b.Fatalf("%s: %s", err, out)
				}
			}
			b.Logf("%s", out[max(0, len(out)-100):])
			perUnit(b, units, unit)
		})
	}
	reads := filepath.Join(testkit.Root(b), "specs", "retryable-reads")
	run("validate/files=1/who=utr", 1, "suite", os.Environ(), utr, "validate", files[0])
	run("validate/who=utr", len(files), "suite", os.Environ(), utr, "validate", folder)
	run("convert/who=utr", len(files), "suite", os.Environ(), "sh", "-c", "rm -f "+folder+"/*.json; exec "+utr+" convert "+folder)
	run("audit/tests=100/who=utr", 100, "test", os.Environ(), utr, "audit", filepath.Join(reads, "collection-aggregate.yml"))
	node, env := testkit.Node(b)
	probe := exec.Command(node, "-e", "require('js-yaml'); require('ajv')")
	if probe.Env = env; probe.Run() != nil {
		b.Skip("not verified: Node.js lacks js-yaml or ajv")
	}
	for _, task := range []string{"validate", "convert"} {
		script := "rm -f " + folder + `/*.json; exec "$@"`
		command := []string{"sh", "-c", script, "sh", node, "-e", peer, "--", task, schemas}
		run(task+"/who=node", len(files), "suite", env, append(command, files...)...)
	}
}
