package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of `go test -json` (go doc test2json; go help buildjson).
type event struct {
	Action      string
	Package     string
	Test        string
	ImportPath  string // of build-output and build-fail
	Elapsed     float64
	Output      string
	FailedBuild string
}

// log gathers events and writes what is worth reading.
type log struct {
	out      io.Writer
	packages map[string]*pack
	order    []*pack // as they appeared
	builds   map[string]*strings.Builder
	stray    []string // lines that are no events: what go has to say itself
}

// pack is a package with its tests.
type pack struct {
	name   string
	status string // pass, fail or skip; empty while it runs
	build  string // the build that failed
	output strings.Builder
	tests  map[string]*test
	order  []*test // as they appeared
}

// test is a test or a subtest.
type test struct {
	name   string
	status string // pass, fail or skip; empty while it runs
	output strings.Builder
}

func newLog(out io.Writer) *log {
	return &log{out: out, packages: map[string]*pack{}, builds: map[string]*strings.Builder{}}
}

// read takes events until the end of r.
func (l *log) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				l.stray = append(l.stray, string(line))
			} else {
				l.add(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (l *log) add(e event) {
	if e.Action == "build-output" {
		if l.builds[e.ImportPath] == nil {
			l.builds[e.ImportPath] = &strings.Builder{}
		}
		l.builds[e.ImportPath].WriteString(e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := l.packages[e.Package]
	if p == nil {
		p = &pack{name: e.Package, tests: map[string]*test{}}
		l.packages[e.Package] = p
		l.order = append(l.order, p)
	}
	if e.Test == "" {
		p.add(e)
		if p.status == "pass" || p.status == "fail" {
			word := map[string]string{"pass": "ok  ", "fail": "FAIL"}[p.status]
			if e.Action == p.status && (len(p.tests) > 0 || p.status == "fail") {
				_, _ = fmt.Fprintf(l.out, "%s %7.1fs  %s\n", word, e.Elapsed, p.name)
			}
		}
		return
	}
	t := p.tests[e.Test]
	if t == nil {
		t = &test{name: e.Test}
		p.tests[e.Test] = t
		p.order = append(p.order, t)
	}
	switch e.Action {
	case "pass", "fail", "skip":
		t.status = e.Action
	case "output":
		if !framing(e.Output) {
			t.output.WriteString(e.Output)
		}
	}
}

func (p *pack) add(e event) {
	switch e.Action {
	case "pass", "fail", "skip":
		p.status, p.build = e.Action, e.FailedBuild
	case "output":
		p.output.WriteString(e.Output)
	}
}

// framing tells the lines that say which test goes on.
func framing(line string) bool {
	for _, word := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(line, word) {
			return true
		}
	}
	return false
}

// failed tells that a test failed, or was running when its package ended.
func (t *test) failed() bool { return t.status == "fail" || t.status == "" }

func (p *pack) failed() bool { return p.status != "pass" && p.status != "skip" }

// close writes what was held back, and tells whether all is well.
func (l *log) close() bool {
	l.writeSkipped()
	l.writeFailed()
	return l.writeTotals()
}

// maxReasons bounds the list of reasons to skip.
const maxReasons = 40

func (l *log) writeSkipped() {
	count := map[string]int{}
	for _, p := range l.order {
		for _, t := range p.order {
			if t.status == "skip" {
				count[t.reason()]++
			}
		}
	}
	if len(count) == 0 {
		return
	}
	reasons := make([]string, 0, len(count))
	for r := range count {
		reasons = append(reasons, r)
	}
	slices.SortFunc(reasons, func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	l.line("\n-- skipped")
	for _, r := range reasons[:min(maxReasons, len(reasons))] {
		l.line(fmt.Sprintf("%5d  %s", count[r], r))
	}
	if more := len(reasons) - maxReasons; more > 0 {
		l.line(fmt.Sprintf("       and %d reasons more", more))
	}
}

var place = regexp.MustCompile(`^\s*[^\s:]+\.go:\d+: `)

// reason is the last thing that a skipped test said.
func (t *test) reason() string {
	said := ""
	for line := range strings.Lines(t.output.String()) {
		if at := place.FindString(line); at != "" {
			said = strings.TrimSpace(line[len(at):])
		}
	}
	return cmp.Or(said, "(no reason)")
}

func (l *log) writeFailed() {
	for _, line := range l.stray {
		_, _ = io.WriteString(l.out, line)
	}
	built := map[string]bool{}
	for _, p := range l.order {
		if !p.failed() {
			continue
		}
		l.line("\n-- failed: " + p.name)
		if b := l.builds[p.build]; b != nil && !built[p.build] {
			built[p.build] = true
			_, _ = io.WriteString(l.out, b.String())
		}
		for _, t := range p.order {
			if t.failed() {
				_, _ = io.WriteString(l.out, t.output.String())
				if t.status == "" {
					l.line("--- UNFINISHED: " + t.name)
				}
			}
		}
		_, _ = io.WriteString(l.out, p.output.String())
	}
}

// writeTotals counts top-level tests. A package that failed without a failed
// test (it does not build, leaks, exits) counts as one.
func (l *log) writeTotals() bool {
	var passed, failed, skipped int
	for _, p := range l.order {
		before := failed
		for _, t := range p.order {
			switch {
			case strings.Contains(t.name, "/"):
			case t.failed():
				failed++
			case t.status == "skip":
				skipped++
			default:
				passed++
			}
		}
		if p.failed() && failed == before {
			failed++
		}
	}
	l.line(fmt.Sprintf("\n%d passed, %d failed, %d skipped", passed, failed, skipped))
	return failed == 0 && passed > 0
}

func (l *log) line(s string) { _, _ = fmt.Fprintln(l.out, s) }
