//go:build unix

package acceptance

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// vendor is a server that utr's authors did not write. It has no fail points.
type vendor struct {
	program func(testing.TB) []string
	args    func(dir string) []string
	known   string // list of its known failures
	rows    []vendorRow
}

type vendorRow struct {
	name, engine, known string
	own, crud           []string // suites of ours, and official ones
	part                bool     // of suites: another part may have the known failures
}

var listens = regexp.MustCompile(`(?i)listen(?:s|ing) (?:at mongodb://|on TCP )(127\.0\.0\.1:\d+)\D`)

// start starts the server and returns its connection string.
func (v vendor) start(t *testing.T) string {
	t.Helper()
	command := append(v.program(t), v.args(t.TempDir())...)
	p := utrtest.NewPlace(t, "DO_NOT_TRACK=1").Launch(exec.Command(command[0], command[1:]...))
	var at []string
	testkit.Until(t, "the server listens", func() bool {
		at = listens.FindStringSubmatch(p.Errors())
		return at != nil || p.Ended()
	})
	if at == nil {
		t.Fatalf("the server ended: %s", p.Errors())
	}
	return "mongodb://" + at[1]
}

func vendors() map[string]vendor {
	const reads, driver = "specs/retryable-reads", "engine/driver/known-failing.txt"
	few := []string{reads + "/collection-find.yml", reads + "/database-aggregate.yml",
		reads + "/database-listCollections.yml"}
	ferret := vendor{
		program: func(t testing.TB) []string { return []string{testkit.FerretDB(t)} },
		args: func(dir string) []string {
			return []string{"--handler=sqlite", "--listen-addr=127.0.0.1:0",
				"--sqlite-url=file:" + dir + "/?_pragma=synchronous(off)",
				"--state-dir=" + dir, "--telemetry=disable", "--debug-addr=-"}
		},
		known: "deployment/known-failing/ferretdb.txt",
		rows: []vendorRow{
			{name: "crud", engine: "reference",
				crud: []string{"bulkWrite", "deleteOne", "distinct-comment", "estimatedDocumentCount",
					"find", "findOneAndUpdate", "insertOne-dots_and_dollars", "updateMany-pipeline"}},
			{name: "driver", engine: "driver", known: driver, own: few},
			{name: "pymongo", engine: "pymongo", known: "adapters/pymongo/known-failing.txt", own: few},
		},
	}
	// Most reads wait for a heartbeat, half a second after the last. So parts of them run side by side.
	for _, part := range []string{"1/6", "2/6", "3/6", "4/6", "5/6", "6/6"} {
		ferret.rows = append(ferret.rows,
			vendorRow{name: "reads " + part, engine: "reference", own: []string{reads, "--shard", part}, part: true})
	}
	return map[string]vendor{
		"FerretDB": ferret,
		"mongo-java-server": {
			program: testkit.MongoJavaServer,
			args:    func(string) []string { return nil },
			known:   "deployment/known-failing/mongo-java-server.txt",
			rows: []vendorRow{ // PyMongo and Node refuse its wire version
				{name: "crud", engine: "reference",
					crud: []string{"aggregate", "bulkWrite", "deleteOne-collation", "estimatedDocumentCount",
						"find", "findOneAndUpdate", "insertOne-dots_and_dollars", "updateMany-pipeline"}},
				{name: "reads", engine: "reference", own: few[:2]},
				{name: "driver", engine: "driver", known: driver, own: []string{reads + "/client-listDatabaseNames.yml"}},
			},
		},
	}
}

// Suites run on servers of other vendors, with their known failures. All engines have the same, and failures of their
// own.
func TestOtherVendors(t *testing.T) {
	for name, v := range vendors() {
		for _, row := range v.rows {
			t.Run(name+"/"+row.name, func(t *testing.T) { t.Parallel(); v.play(t, row) })
		}
	}
}

func (v vendor) play(t *testing.T, row vendorRow) {
	environment := os.Environ()
	if row.engine == "pymongo" {
		environment = append(environment, "UTR_PYTHON="+testkit.Python(t, "pymongo", "gridfs"))
	}
	suites := row.own
	for _, name := range row.crud {
		suites = append(suites, testkit.Official(t, "crud", "tests", "unified", name+".yml"))
	}
	place := utrtest.NewPlace(t)
	args := []string{"run", "--uri", v.start(t), "--engine", row.engine, "--quiet", "--known-failing", v.known}
	if row.known != "" {
		args = append(args, "--known-failing", row.known)
	}
	command := exec.CommandContext(t.Context(), utrtest.Command(t), append(args, suites...)...)
	command.Dir = testkit.Root(t)
	command.Env = append(environment, "TMPDIR="+place.Temp, ledger.EnvDir+"="+place.State)
	out, err := command.CombinedOutput()
	if err != nil || !row.part && !strings.Contains(string(out), " known-failing (-v shows why), 0 failed, ") {
		t.Errorf("%v\n%s", err, out)
	}
	place.Empty()
}
