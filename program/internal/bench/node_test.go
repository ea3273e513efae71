package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// peer is a program of Node.js with the packages with which the specifications repository checks and converts suites.
const peer = "testdata/peer.js"

// BenchmarkAuthors measures whole processes, from start to exit: the commands for
// authors of suites, and Node.js with js-yaml and ajv, which has neither positions nor
// semantic checks. Both validate the same folder with its twins; the files that they convert are the files of
// BenchmarkLoad.
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
	utr := command(b)
	run := func(name string, units int, unit string, env []string, command ...string) {
		b.Run(name, func(b *testing.B) {
			var out []byte
			var busy float64
			for b.Loop() {
				c := exec.Command(command[0], command[1:]...)
				c.Env = env
				var err error
				if out, err = c.CombinedOutput(); err != nil {
					b.Fatalf("%s: %s", err, out)
				}
				busy += float64((c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Nanoseconds())
			}
			b.Logf("%s", out[max(0, len(out)-100):])
			perUnit(b, units, unit)
			b.ReportMetric(busy/float64(b.N), "cpu-ns/op")
		})
	}
	reads := filepath.Join(testkit.Root(b), "specs", "retryable-reads")
	run("validate/files=1/who=utr", 1, "suite", os.Environ(), utr, "validate", files[0])
	run("validate/who=utr", len(files), "suite", os.Environ(), utr, "validate", dir)
	run("convert/who=utr", len(files), "suite", os.Environ(), "sh", "-c",
		"rm -f "+folder+"/*.json; exec "+utr+" convert "+folder)
	run("audit/tests=100/who=utr", 100, "test", os.Environ(), utr, "audit",
		filepath.Join(reads, "collection-aggregate.yml"))
	env := append(os.Environ(), "NODE_PATH="+os.Getenv("UTR_NODE_PATH"))
	probe := exec.Command("node", "-e", "require('js-yaml'); require('ajv')")
	if probe.Env = env; probe.Run() != nil {
		b.Skip("not verified: Node.js lacks js-yaml or ajv: npm install --prefix DIR js-yaml@5 ajv@8, UTR_NODE_PATH=DIR/node_modules")
	}
	run("validate/files=1/who=node", 1, "suite", env, "node", peer, "validate", schemas, files[0])
	run("validate/who=node", len(files), "suite", env, "node", peer, "validate", schemas, dir)
	run("convert/who=node", len(files), "suite", env, "sh", "-c", "rm -f "+folder+`/*.json; exec "$@"`, "sh",
		"node", peer, "convert", schemas, folder)
}
