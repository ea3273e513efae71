package clients

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// stepNames are the steps of PyMongo and the Node driver, in order.
var stepNames = []string{
	"connects", "insertMany", "insertOverSeveralCommands", "types", "updateOne", "bulkWrite", "clientBulkWrite", "find",
	"aggregate", "countAndDistinct", "indexes", "collectionsAndDatabases", "diagnostics", "getMore", "sessions",
	"transactions", "gridFS", "changeStream", "compressors",
	"failCommandWithCode", "failCommandRetriedRead", "failCommandRetriedWrite", "failCommandBlocks",
	"failCommandOfApplication", "failCommandOfNamespace", "failPointRefused",
	"authentication", "encryption",
}

// done returns the lines that a client must print. Steps that the setting does not support are skipped.
func (s setting) done(steps []string) (lines []string) {
	skipped := map[string]bool{
		"transactions": s.topology == "single", "changeStream": s.topology == "single",
		"failCommandRetriedWrite": s.topology == "single",
		"clientBulkWrite":         s.version < "8.0", // each component is one digit
		"authentication":          s.user == "", "encryption": !s.tls,
	}
	for _, step := range steps {
		lines = append(lines, testkit.Either(skipped[step], "skip ", "ok ")+step)
	}
	return append(lines, "done with")
}

type report struct {
	lines  []string
	errors string
	exit   error
}

// lackingCompressors returns the compressors that are not installed for a client.
func (r report) lackingCompressors() string {
	for _, line := range r.lines {
		if why, found := strings.CutPrefix(line, "skip compressors: "); found {
			return why
		}
	}
	return ""
}

// judge expects that the client did all steps or skipped them correctly, printed the last line, and succeeded.
func (r report) judge(s setting, steps []string) error {
	var got []string
	for _, line := range r.lines {
		words := append(strings.Fields(line), "", "")
		line = words[0] + " " + strings.TrimSuffix(words[1], ":")
		if line == "skip compressors" { // some are not installed
			line = "ok compressors"
		}
		got = append(got, line)
	}
	if want := s.done(steps); !slices.Equal(got, want) || r.exit != nil {
		return fmt.Errorf("%v, and the steps are\n%q, want\n%q\n%s\n%s", r.exit, got, want,
			strings.Join(r.lines, "\n"), r.errors)
	}
	return nil
}

func pymongo(t *testing.T, s *served, names []string) report {
	t.Helper()
	return script(t, s, names, nil, testkit.Python(t, "pymongo", "gridfs"), filepath.Join("testdata", "pymongo_client.py"))
}

func node(t *testing.T, s *served, names []string) report {
	t.Helper()
	program, env := testkit.Node(t)
	return script(t, s, names, env, program, filepath.Join("testdata", "node_client.cjs"))
}

func script(t *testing.T, s *served, names, environment []string, name string, args ...string) report {
	t.Helper()
	c := exec.CommandContext(testkit.Context(t), name, args...)
	c.Env = append(append(os.Environ(), environment...),
		"UTR_URI="+s.uri, "UTR_SINGLE_URI="+s.single, "UTR_TOPOLOGY="+s.topology, "UTR_VERSION="+s.version,
		"UTR_CA_FILE="+s.CAFile, "UTR_STEPS="+strings.Join(names, ","))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	return report{strings.Split(strings.TrimSpace(out.String()), "\n"), errs.String(), err}
}
