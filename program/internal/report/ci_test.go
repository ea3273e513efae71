package report_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

func failing(description, reason string) result.Note {
	return finished(&result.Verdict{
		Test: result.TestID{File: "a,b:c.yml", Suite: "s", Description: description}, Status: result.Failed, Reason: reason,
		Position: at(1, 2),
		Evidence: result.Evidence{Mismatches: []result.Mismatch{{Path: "p", Message: reason, Want: reason, Got: description,
			Diff: reason}}}, Rerun: []string{description},
	})
}

func TestAnnotations(t *testing.T) {
	text := string(generate(report.Annotated(func(result.Note) []byte { return nil }),
		[]result.Note{failing("100%: a,b", "one\ntwo, three"),
			result.RunFinished{Summary: result.Summary{Problems: []string{"stale"}}}}))
	testkit.Contains(t, text,
		"::error file=specs/find.yml,line=1,col=2,title=failed s%3A 100%25%3A a%2Cb::  one%0A  two, three%0A  p: ",
		"\n::error title=utr::stale\n")
}

// workflowCommand matches lines that the runner of GitHub Actions treats as commands.
var workflowCommand = regexp.MustCompile(`^\s*(::[a-z-]*|.*##\[)`)

// Text from suites and servers cannot issue workflow commands.
func FuzzAnnotations(f *testing.F) {
	for _, s := range []string{"::add-mask::x", "a\n::stop-commands::x", "  ::error::x", "##[add-mask]x",
		"100%0A::debug::", "\r::error::"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, description, reason string) {
		text := generate(report.Annotated(report.Text(report.TextOptions{Verbose: true})),
			[]result.Note{failing(description, reason),
				result.DeploymentReady{Name: description,
					Info: reason}, result.RunFinished{Summary: result.Summary{Problems: []string{reason}}}})
		var commands []string
		for _, line := range regexp.MustCompile(`[\r\n]`).Split(string(text), -1) {
			commands = append(commands, workflowCommand.FindString(line))
		}
		commands = slices.DeleteFunc(commands, func(c string) bool { return c == "" })
		testkit.Equal(t, "the commands in "+string(text), commands, []string{"::error", "::error"})
	})
}

// Text from suites cannot add tags, headings or blocks.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"<script>alert(1)</script>", "# heading", "a | b", "```\n<img>", "`", "``` ```",
		"[x](javascript:1)", "@octocat", "1. one", "- a", "*b*", "a\n\n<b>"} {
		f.Add(s, s)
	}
	tag, ours := regexp.MustCompile(`<[^>]*>?`), regexp.MustCompile(`^(<details open>|</?summary>|</?b>|<br>|</details>)$`)
	heading := regexp.MustCompile(`^(## ✘ utr.*|### Problems of the run|### What went wrong|### Slowest tests)$`)
	ticks := func(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "`"))] }
	f.Fuzz(func(t *testing.T, description, reason string) {
		text := string(generate(report.Markdown(),
			[]result.Note{failing(description, reason),
				result.RunFinished{Summary: result.Summary{Failed: 1, Problems: []string{reason}}}}))
		fence := ""
		for line := range strings.SplitSeq(text, "\n") {
			bare := strings.TrimSpace(line)
			details := strings.HasPrefix(line, "<details ") // an HTML block up to the next empty line has no spans
			switch {
			case details:
			case fence == "" && strings.HasPrefix(bare, "```"):
				fence = ticks(bare)
				continue
			case fence != "":
				if bare == fence {
					fence = ""
				}
				continue
			}
			for !details && strings.Contains(line, "`") { // spans: n backticks to the next n
				before, _, _ := strings.Cut(line, "`")
				if strings.HasSuffix(before, `\`) {
					line = strings.Replace(line, "\\`", "", 1)
					continue
				}
				open := ticks(line[len(before):])
				_, after, found := strings.Cut(line[len(before)+len(open):], open)
				if !found {
					t.Fatalf("a span without end: %q", line)
				}
				line = before + after
			}
			for _, found := range tag.FindAllString(line, -1) {
				if !ours.MatchString(found) {
					t.Fatalf("markup %q in %q", found, line)
				}
			}
			if strings.HasPrefix(line, "#") && !heading.MatchString(line) {
				t.Fatalf("a heading: %q", line)
			}
		}
		testkit.Equal(t, "a block without end", fence, "")
	})
}

// A summary stays below the limit of CI systems and reports what it omits.
func TestMarkdownIsBounded(t *testing.T) {
	var notes []result.Note
	for i := range 200 {
		notes = append(notes, failing(fmt.Sprintf("test %d", i), strings.Repeat("long ", 3000)))
	}
	text := generate(report.Markdown(), append(notes, result.RunFinished{Summary: result.Summary{Failed: 200}}))
	testkit.Equal(t, "the summary is short", len(text) <= 1<<20 &&
		regexp.MustCompile(`\nand [0-9]+ more causes in`).Match(text), true)
}

func TestBadge(t *testing.T) {
	for _, r := range []struct {
		reason      string
		summary     result.Summary
		text, color string
	}{
		{"all well", result.Summary{Passed: 3, Skipped: 1, KnownFailing: 1}, "3 passed", "#1f7a33"},
		{"failures come first", result.Summary{Passed: 3, Failed: 2, Broken: 1}, "2 failed, 1 broken, 3 passed", "#b3261e"},
		{"a problem is red", result.Summary{Passed: 3, Problems: []string{"<stale>"}}, "1 problem, 3 passed", "#b3261e"},
		{"an unfinished run is red", result.Summary{Passed: 3, Breaks: []result.Break{{Reason: "r"}, {Cell: "c"}}},
			"1 cell broke, unfinished, 3 passed", "#b3261e"},
		{"an interruption is red", result.Summary{Passed: 3, Interrupted: true}, "interrupted, 3 passed", "#b3261e"},
		{"nothing ran", result.Summary{Skipped: 9}, "0 passed", "#6b7280"},
	} {
		svg := string(generate(report.Badge(), []result.Note{result.RunFinished{Summary: r.summary}}))
		testkit.Contains(t, svg, ">"+r.text+"</text>", r.color)
		testkit.Equal(t, r.reason, xml.Unmarshal([]byte(svg), new(struct{})), nil)
	}
}

// tapForm matches our TAP reports, a subset of TAP 13: the version, comments, points
// with a directive after an unescaped #, complete YAML blocks, why the run broke, the plan at the end.
func tapForm() *regexp.Regexp {
	const point = `(not )?ok \d+ - ([^\\#\n]|\\.)*( # (SKIP|TODO) .*)?\n`
	const block = `(  ---\n(  .*\n)*?  \.\.\.\n)?`
	const bailout = `(Bail out! .*\n)*`
	return regexp.MustCompile(`^TAP version 13\n((#.*\n)*` + point + block + `)*(#.*\n)*` + bailout + `1\.\.\d+\n$`)
}

// tapProblem describes the first error in the syntax, numbers or points of a report,
// or returns "".
func tapProblem(text []byte, want ...string) string {
	if !tapForm().Match(text) {
		return "syntax"
	}
	var points []string
	for _, p := range regexp.MustCompile(`(?m)^((?:not )?ok) (\d+)(?:[^\\#\n]|\\.)*(?:# (\w+))?`).FindAllStringSubmatch(string(text), -1) {
		if points = append(points, strings.TrimSpace(p[1]+" "+p[3])); p[2] != fmt.Sprint(len(points)) {
			return "point " + p[2] + " is out of order"
		}
	}
	if plan := fmt.Sprintf("\n1..%d\n", len(points)); !strings.HasSuffix(string(text), plan) {
		return "the plan is not" + plan
	}
	return cmp.Diff(want, points)
}

// tapProblem and junitProblem detect errors.
func TestProblemsAreDetected(t *testing.T) {
	points := strings.Fields("ok not_ok not_ok ok_SKIP ok_SKIP ok_SKIP ok_SKIP ok_SKIP not_ok_TODO ok ok not_ok not_ok")
	for i, p := range points {
		points[i] = strings.ReplaceAll(p, "_", " ")
	}
	tap, junit := string(generate(report.TAP(), run())), string(generate(report.JUnit(), run()))
	testkit.Equal(t, "a run", tapProblem([]byte(tap), points...)+junitProblem(junit), "")
	for _, r := range []struct{ old, broken, problem string }{
		{"TAP version 13", "TAP 12", "syntax"},
		{"\nok 4 - ", "\nok 5 - ", "point 5 is out of order"},
		{"1..13\n", "1..12\n", "the plan is not"},
		{"\nok 4 ", "\nnot ok 4 ", "not ok SKIP"},
		{"</testcase>", "", "XML syntax error"},
		{" classname=", " class=", "syntax"},
		{` failures="3"`, ` failures="2"`, "the document counts {14 2 "},
		{` skipped="6"`, ` skipped="5"`, "a suite counts {11 2 1 5}"},
	} {
		got := tapProblem([]byte(strings.Replace(tap, r.old, r.broken, 1)), points...) +
			junitProblem(strings.Replace(junit, r.old, r.broken, 1))
		testkit.Contains(t, r.broken+": "+got, r.problem)
	}
}

// A description cannot add a directive, a point or the end of a block.
func FuzzTAP(f *testing.F) {
	for _, s := range []string{"a # SKIP b", "x\nok 99 - y", "\n  ...\n1..0", `back\`, `back\# TODO`, "\x00\xff",
		"Bail out!",
		"---", "'\"", "# TODO", "\u0085\u2028\ufeff\ufffe\uffff"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, description, reason string) {
		notes := []result.Note{result.RunStarted{Engine: description}}
		for _, s := range []result.Status{result.Passed, result.Failed, result.Skipped, result.KnownFailing, result.Broken} {
			notes = append(notes, finished(&result.Verdict{Test: result.TestID{File: description, Suite: "s",
				Description: description},
				Status: s, SkipKind: result.SkipFile, Reason: reason, Position: at(1, 1), Rerun: []string{reason},
				Evidence: result.Evidence{Mismatches: []result.Mismatch{{Path: reason, Message: description, Want: reason,
					Diff: reason + "\n" + description}}}}))
		}
		text := generate(report.TAP(), append(notes, result.RunFinished{}))
		testkit.Equal(t, string(text), tapProblem(text, "ok", "not ok", "ok SKIP", "not ok TODO", "not ok"), "")
		for _, block := range regexp.MustCompile(`(?m)^  ---\n((  .*\n)*?)  \.\.\.$`).FindAllSubmatch(text, -1) {
			_, err := source.ParseYAML("block", block[1])
			testkit.Equal(t, "the block is YAML", err, nil)
			testkit.Equal(t, "characters that must be escaped", bytes.ContainsAny(block[1], "\u0085\u2028\ufeff\ufffe\uffff"),
				false)
		}
	})
}
