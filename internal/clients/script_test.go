package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// stepNames are the steps that every client goes through, in order.
var stepNames = []string{
	"connects", "insertMany", "insertOverSeveralCommands", "types", "updateOne", "bulkWrite", "clientBulkWrite", "find",
	"aggregate", "countAndDistinct", "indexes", "collectionsAndDatabases", "diagnostics", "getMore", "sessions",
	"transactions", "gridFS", "changeStream", "compressors",
	"failCommandWithCode", "failCommandRetriedRead", "failCommandRetriedWrite", "failCommandBlocks",
	"failCommandOfApplication", "failCommandOfNamespace", "failPointRefused",
	"authentication", "encryption",
}

// skips says whether a client may skip a step: what the setting has not. It
// must, as long as it is not said otherwise.
func (s setting) skips(step string) (may, must bool) {
	single := s.topology == "single"
	switch step {
	case "transactions", "changeStream", "failCommandRetriedWrite":
		return single, single
	case "clientBulkWrite":
		old := less(s.version, "8.0")
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

// judge wants every step of names, all without any, done or rightly left out;
// the closing line; and a good end.
func (r report) judge(s setting, names ...string) error {
	if len(names) == 0 {
		names = stepNames
	}
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
		{"nothing at all", "", errors.New("exit status 9"), set, nil, "exit status 9"},
		{"a bad end after all", "ok find 0.1s\ndone with X", errors.New("exit status 1"), set, []string{"find"}, "exit status 1"},
		{"chatter", "Warning: old\ndone with X", nil, set, []string{"find"}, "Warning"},
	} {
		err := newReport(row.text, "", row.exit).judge(row.setting, row.names...)
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%s: %v", row.reason, err)
		case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: got %v, want an error with %q", row.reason, err, row.want)
		}
	}
}

// pymongo does the steps with PyMongo.
func pymongo(t *testing.T, s *served, names ...string) report {
	t.Helper()
	python := os.Getenv("UTR_PYTHON")
	if python == "" {
		python = "python3"
	}
	probe, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if out, err := exec.CommandContext(probe, python, "-c", "import pymongo, gridfs").CombinedOutput(); err != nil {
		t.Skipf("PyMongo is not there: %s cannot import pymongo (UTR_PYTHON names one that can): %v: %s", python, err, lastLine(out))
	}
	return script(t, s, names, nil, python, "-X", "faulthandler", filepath.Join("testdata", "pymongo_client.py"))
}

// node does the steps with the Node driver.
func node(t *testing.T, s *served, names ...string) report {
	t.Helper()
	path := os.Getenv("UTR_NODE_PATH")
	if path == "" {
		path = os.Getenv("NODE_PATH")
	}
	environment := []string{"NODE_PATH=" + path}
	probe, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(probe, "node", "-e", "require('mongodb')")
	c.Env = append(os.Environ(), environment...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("the Node driver is not there: node cannot require mongodb (UTR_NODE_PATH names the folder that it is in): %v: %s", err, lastLine(out))
	}
	return script(t, s, names, environment, "node", filepath.Join("testdata", "node_client.cjs"))
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "Error") })
	return lines[max(i, 0)]
}

// script runs a client in a process of its own, and ends it if it takes too
// long.
func script(t *testing.T, s *served, names, environment []string, name string, args ...string) report {
	t.Helper()
	ctx := deadline(t)
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = 5 * time.Second
	c.Env = append(os.Environ(), environment...)
	c.Env = append(c.Env,
		"UTR_URI="+s.uri, "UTR_SINGLE_URI="+s.single, "UTR_TOPOLOGY="+s.topology, "UTR_VERSION="+s.version,
		"UTR_CA_FILE="+s.caFile, "UTR_STEPS="+strings.Join(names, ","))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("it was ended, for it took more than %s: %w", 2*patience, err)
	}
	return newReport(out.String(), errs.String(), err)
}

// printed gathers what a process prints, while it runs.
type printed struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines int
	found chan struct{}
}

// await gives a channel that is closed when so many lines have been printed.
// Ask before the process starts; the last wish counts.
func (p *printed) await(lines int) <-chan struct{} {
	p.lines, p.found = lines, make(chan struct{})
	return p.found
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.text.Write(b)
	if p.found != nil && bytes.Count(p.text.Bytes(), []byte("\n")) >= p.lines {
		close(p.found)
		p.found = nil
	}
	return n, err
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}
