package clients

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// stepNames are the steps that PyMongo and the Node driver take, in order.
var stepNames = []string{
	"connects", "insertMany", "insertOverSeveralCommands", "types", "updateOne", "bulkWrite", "clientBulkWrite", "find",
	"aggregate", "countAndDistinct", "indexes", "collectionsAndDatabases", "diagnostics", "getMore", "sessions",
	"transactions", "gridFS", "changeStream", "compressors",
	"failCommandWithCode", "failCommandRetriedRead", "failCommandRetriedWrite", "failCommandBlocks",
	"failCommandOfApplication", "failCommandOfNamespace", "failPointRefused",
	"authentication", "encryption",
}

func goStepNames() (names []string) {
	for _, s := range goSteps {
		names = append(names, s.name)
	}
	return names
}

// skips says whether a client may skip a step: what the setting has not. It
// must, as long as it is not said otherwise.
func (s setting) skips(step string) (may, must bool) {
	single := s.topology == "single"
	switch step {
	case "transactions", "changeStream", "failCommandRetriedWrite":
		return single, single
	case "clientBulkWrite":
		old := s.version < "8.0" // each part has one digit
		return old, old
	case "authentication":
		return s.user == "", s.user == ""
	case "encryption":
		return !s.tls, !s.tls
	case "compressors": // those that could not be installed
		return true, false
	}
	return false, false
}

// report is what a client printed.
type report struct {
	lines   []string
	errors  string
	exit    error
	skipped map[string]string // the steps left out, and why
}

func (r report) everything() string { return strings.Join(r.lines, "\n") + "\n" + r.errors }

// judge expects every step of names, done or rightly left out; the closing line;
// and a good end.
func (r report) judge(s setting, names []string) error {
	rest := names
	for _, line := range r.lines {
		word, tail, _ := strings.Cut(line, " ")
		step, _, _ := strings.Cut(tail, " ")
		step = strings.TrimSuffix(step, ":")
		switch word {
		case "done":
			if len(rest) > 0 {
				return fmt.Errorf("it was done before step %s", rest[0])
			}
			return r.exit
		case "ok", "skip":
			if len(rest) == 0 || step != rest[0] {
				return fmt.Errorf("step %s came, want %s", step, strings.Join(rest[:min(1, len(rest))], ""))
			}
			rest = rest[1:]
			if may, must := s.skips(step); word == "skip" && !may || word == "ok" && must {
				return fmt.Errorf("step %s: %s, which does not fit %s", step, line, s)
			}
		default:
			return errors.New(line)
		}
	}
	where := "the end"
	if len(rest) > 0 {
		where = "step " + rest[0]
	}
	return fmt.Errorf("it broke off at %s: %w", where, errors.Join(r.exit, errors.New("no closing line")))
}

func newReport(text, errorText string, exit error) report {
	r := report{errors: errorText, exit: exit, skipped: map[string]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		r.lines = append(r.lines, line)
		if tail, ok := strings.CutPrefix(line, "skip "); ok {
			step, why, _ := strings.Cut(tail, ": ")
			r.skipped[step] = why
		}
	}
	return r
}

func TestJudge(t *testing.T) {
	standalone := setting{topology: "single", version: "8.0"}
	set := setting{topology: "replicaset", version: "8.0"}
	for _, row := range []struct {
		reason, text string
		exit         error
		setting      setting
		names        []string
		want         string // in the error; empty: there is none
	}{
		{"all well", "ok find 0.1s\nok types 0.1s\ndone with X", nil, set, []string{"find", "types"}, ""},
		{"a step that the setting has not", "skip transactions: no\ndone with X", nil, standalone, []string{"transactions"}, ""},
		{"a step left out that the setting has", "skip transactions: no\ndone with X", nil, set, []string{"transactions"}, "transactions"},
		{"a step done that the setting cannot have", "ok transactions 1s\ndone with X", nil, standalone, []string{"transactions"}, "transactions"},
		{"a failed step", "ok find 0.1s\nFAILED types: TypeError: x", errors.New("exit 1"), set, []string{"find", "types"}, "FAILED types: TypeError: x"},
		{"a step forgotten in the middle", "ok types 0.1s\ndone with X", nil, set, []string{"find", "types"}, "find"},
		{"a step forgotten at the end", "ok find 0.1s\ndone with X", nil, set, []string{"find", "types"}, "types"},
		{"a step too many", "ok find 0.1s\nok find 0.1s\ndone with X", nil, set, []string{"find"}, "find"},
		{"a client that broke off", "ok find 0.1s", nil, set, []string{"find", "types"}, "step types"},
		{"no closing line", "ok find 0.1s", nil, set, []string{"find"}, "no closing line"},
		{"nothing at all", "", errors.New("exit status 9"), set, []string{"find"}, "exit status 9"},
		{"a bad end after all", "ok find 0.1s\ndone with X", errors.New("exit status 1"), set, []string{"find"}, "exit status 1"},
		{"chatter", "Warning: old\ndone with X", nil, set, []string{"find"}, "Warning"},
	} {
		err := newReport(row.text, "", row.exit).judge(row.setting, row.names)
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%s: %v", row.reason, err)
		case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: got %v, want an error with %q", row.reason, err, row.want)
		}
	}
}

// pymongo takes the steps with PyMongo.
func pymongo(t *testing.T, s *served, names []string) report {
	t.Helper()
	return script(t, s, names, nil, testkit.Python(t, "pymongo", "gridfs"), filepath.Join("testdata", "pymongo_client.py"))
}

// node takes the steps with the Node driver.
func node(t *testing.T, s *served, names []string) report {
	t.Helper()
	program, env := testkit.Node(t)
	return script(t, s, names, env, program, filepath.Join("testdata", "node_client.cjs"))
}

// script runs a client in a process of its own.
func script(t *testing.T, s *served, names, environment []string, name string, args ...string) report {
	t.Helper()
	c := exec.CommandContext(testkit.Context(t), name, args...)
	c.Env = append(append(os.Environ(), environment...),
		"UTR_URI="+s.uri, "UTR_SINGLE_URI="+s.single, "UTR_TOPOLOGY="+s.topology, "UTR_VERSION="+s.version,
		"UTR_CA_FILE="+s.CAFile, "UTR_STEPS="+strings.Join(names, ","))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	return newReport(out.String(), errs.String(), err)
}
