//go:build unix

package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

var listens = regexp.MustCompile(`Listening on TCP (127\.0\.0\.1:\d+)`)

// ferretDB starts FerretDB, a server of another vendor, and returns its connection string.
func ferretDB(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	p := utrtest.NewPlace(t, "DO_NOT_TRACK=1").Launch(exec.Command(testkit.FerretDB(t), "--handler=sqlite", "--listen-addr=127.0.0.1:0",
		"--sqlite-url=file:"+dir+"/?_pragma=synchronous(off)", "--state-dir="+dir, "--telemetry=disable", "--debug-addr=-"))
	p.WaitStderr("Listening on TCP")
	return "mongodb://" + listens.FindStringSubmatch(p.Errors())[1]
}

type ferretRow struct {
	name, engine, known string
	own, crud           []string // suites of ours, and official ones
}

// Suites run on a server that utr's authors did not write, which has no fail points. Its failures are listed, and all
// engines have the same.
func TestFerretDB(t *testing.T) {
	const reads, server = "specs/retryable-reads", "deployment/known-failing/ferretdb.txt"
	few := []string{reads + "/collection-find.yml", reads + "/database-aggregate.yml", reads + "/database-listCollections.yml"}
	rows := []ferretRow{
		{"crud", "reference", "", nil, []string{"bulkWrite", "deleteOne", "distinct-comment", "estimatedDocumentCount", "find",
			"findOneAndUpdate", "insertOne-dots_and_dollars", "updateMany-pipeline"}},
		{"driver", "driver", "engine/driver/known-failing.txt", few, nil},
		{"pymongo", "pymongo", "adapters/pymongo/known-failing.txt", few, nil},
	}
	// Most reads wait for a heartbeat, half a second after the last. So parts of them run side by side.
	for _, part := range []string{"1/6", "2/6", "3/6", "4/6", "5/6", "6/6"} {
		rows = append(rows, ferretRow{"reads " + part, "reference", "", []string{reads, "--shard", part}, nil})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			environment := os.Environ()
			if row.engine == "pymongo" {
				environment = append(environment, "UTR_PYTHON="+testkit.Python(t, "pymongo", "gridfs"))
			}
			suites := row.own
			for _, name := range row.crud {
				suites = append(suites, testkit.Official(t, "crud", "tests", "unified", name+".yml"))
			}
			place, known := utrtest.NewPlace(t), filepath.Join(t.TempDir(), "known-failing.txt")
			var list string
			for _, file := range []string{row.known, server} {
				if file != "" {
					list += testkit.Read(t, filepath.Join(testkit.Root(t), file))
				}
			}
			testkit.Check(t, os.WriteFile(known, []byte(list), 0o600))
			args := append([]string{"run", "--uri", ferretDB(t), "--engine", row.engine, "--known-failing", known, "--quiet"}, suites...)
			command := exec.CommandContext(t.Context(), utrtest.Command(t), args...)
			command.Dir = testkit.Root(t)
			command.Env = append(environment, "TMPDIR="+place.Temp, ledger.EnvDir+"="+place.State)
			out, err := command.CombinedOutput()
			listed := strings.Contains(string(out), " known-failing\n") || strings.HasPrefix(row.name, "reads ") // not in each part
			if err != nil || !listed {
				t.Errorf("%v\n%s", err, out)
			}
			place.Empty()
		})
	}
}
