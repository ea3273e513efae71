package bench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/runner"
)

// A subject is an engine, with the file of what is known to fail in it, or "".
type subject struct {
	name  string
	open  func() (engine.Engine, error)
	known string
}

func theReference() subject {
	return subject{"reference", func() (engine.Engine, error) { return reference.New(reference.Options{}) }, ""}
}

func theDriver() subject {
	return subject{"driver", func() (engine.Engine, error) { return driver.New(driver.Options{}), nil }, "../../known-failing/driver.txt"}
}

// knownFailing reads the subject's file.
func (s subject) knownFailing(b *testing.B) []runner.KnownFailure {
	b.Helper()
	if s.known == "" {
		return nil
	}
	f, err := os.Open(s.known)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	known, err := runner.ParseKnownFailing(filepath.Base(s.known), f)
	if err != nil {
		b.Fatal(err)
	}
	return known
}

// specifications are those of which all official tests are run, with what the
// Go driver's own runner takes for them against a replica set of real servers.
// That was not measured here.
var specifications = []struct {
	name  string
	named time.Duration
}{
	{"retryable-reads", 33 * time.Second},
	{"retryable-writes", 20 * time.Second},
	{"client-backpressure", 17 * time.Second},
}

// whole is what a subject took for the official tests of each specification.
type whole struct {
	who  string
	jobs int                      // 0: not known
	took map[string]time.Duration // by specification
}

// BenchmarkSpecifications runs all official tests of the specifications on an
// embedded replica set, with both engines, one and two tests at a time. Backoffs
// are slept. Nothing may fail but what is known to.
func BenchmarkSpecifications(b *testing.B) {
	dir := official(b)
	if dir == "" {
		b.Skip("official suites not there")
	}
	for _, who := range []subject{theReference(), theDriver()} {
		for _, jobs := range []int{1, 2} {
			w := whole{who.name, jobs, make(map[string]time.Duration)}
			for _, s := range specifications {
				suites := load(b, filepath.Join(dir, s.name))
				b.Run(fmt.Sprintf("%s/jobs=%d/%s", who.name, jobs, s.name), func(b *testing.B) {
					runAll(b, fmt.Sprintf("official %s, %s, %s", s.name, deployment.ReplicaSet, who.name), suites, jobs, who, fresh(deployment.ReplicaSet))
					w.took[s.name] = b.Elapsed() / time.Duration(b.N)
				})
			}
			if len(w.took) > 0 {
				figures.wholes = append(figures.wholes, w)
			}
		}
	}
}

// writeWholes prints what subjects took, and below them the named figures.
func writeWholes(w io.Writer, wholes []whole) {
	if len(wholes) == 0 {
		return
	}
	fmt.Fprint(w, "\nofficial tests on a replica set\tjobs\t")
	named := whole{"not measured here: the Go driver's own runner, real servers", 0, make(map[string]time.Duration)}
	for _, s := range specifications {
		fmt.Fprintf(w, "%s\t", s.name)
		named.took[s.name] = s.named
	}
	fmt.Fprintln(w, "together\t")
	for _, row := range append(wholes[:len(wholes):len(wholes)], named) {
		jobs := "–"
		if row.jobs > 0 {
			jobs = strconv.Itoa(row.jobs)
		}
		fmt.Fprintf(w, "%s\t%s\t", row.who, jobs)
		var together time.Duration
		for _, s := range specifications {
			took, there := row.took[s.name]
			if !there {
				fmt.Fprint(w, "–\t")
				continue
			}
			together += took
			fmt.Fprintf(w, "%s\t", short(took))
		}
		fmt.Fprintf(w, "%s\t\n", short(together))
	}
}

// The table has the named figures below those of this run, and says what was
// not run.
func TestWholes(t *testing.T) {
	for _, row := range []struct {
		reason string
		wholes []whole
		want   string
	}{
		{"nothing was run: no named figures either", nil, "[]"},
		{"all was run", []whole{{"utr", 2, map[string]time.Duration{"retryable-reads": time.Second, "retryable-writes": 2 * time.Second, "client-backpressure": 4 * time.Second}}},
			"[1.00 s 2.00 s 4.00 s 7.00 s]"},
		{"a part was run", []whole{{"utr", 2, map[string]time.Duration{"retryable-writes": 2 * time.Second}}}, "[– 2.00 s – 2.00 s]"},
	} {
		var out strings.Builder
		writeWholes(&out, row.wholes)
		var got []string
		for line := range strings.Lines(out.String()) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			switch {
			case fields[0] == "utr":
				got = fields[2:]
			case strings.HasPrefix(fields[0], "not measured here") && strings.Join(fields[2:], " ") != "33.0 s 20.0 s 17.0 s 70.0 s":
				t.Errorf("%s: the named figures are %q", row.reason, fields)
			}
		}
		if fmt.Sprint(got) != row.want || len(row.wholes) > 0 != strings.Contains(out.String(), "not measured here") {
			t.Errorf("%s: %v, want %s, in\n%s", row.reason, got, row.want, out.String())
		}
	}
}
