package report_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

func failing(description, reason string) result.Note {
	return result.TestFinished{Verdict: &result.Verdict{
		Test: result.TestID{File: "a,b:c.yml", Suite: "s", Description: description}, Status: result.Failed, Reason: reason, Position: at(1, 2),
		Mismatches: []result.Mismatch{{Path: "p", Message: reason, Want: reason, Got: description, Diff: reason}}, Rerun: []string{description},
	}}
}

// workflowCommand reads a line as the runner of GitHub Actions does: name,
// properties between commas, data.
func workflowCommand(line string) (name string, properties map[string]string, data string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "::")
	if !ok {
		return "", nil, "", false
	}
	head, data, ok := strings.Cut(rest, "::")
	if !ok {
		return "", nil, "", false
	}
	unescape := func(s string) string {
		s, err := url.PathUnescape(s)
		if err != nil {
			s = "% that is no escape"
		}
		return s
	}
	name, list, _ := strings.Cut(head, " ")
	properties = map[string]string{}
	for _, p := range strings.Split(list, ",") {
		k, v, _ := strings.Cut(p, "=")
		properties[k] = unescape(v)
	}
	return name, properties, unescape(data), true
}

func TestAnnotations(t *testing.T) {
	inner := func(result.Note) []byte { return nil }
	text := string(generate(report.Annotated(inner), []result.Note{failing("100%: a,b", "one\ntwo, three"), result.RunFinished{Summary: result.Summary{Problems: []string{"stale"}}}}))
	name, p, data, ok := workflowCommand(lines([]byte(text))[0])
	if !ok || name != "error" || p["file"] != "specs/find.yml" || p["line"] != "1" || p["col"] != "2" || p["title"] != "failed s: 100%: a,b" ||
		!strings.HasPrefix(data, "one two, three\np: ") {
		t.Errorf("%s %v %q", name, p, data)
	}
	if !strings.Contains(text, "\n::error title=utr::stale\n") {
		t.Errorf("no annotation of the problem:\n%s", text)
	}
	whole := lines(generate(report.Annotated(report.Text(report.TextOptions{})), run()))
	if last := whole[len(whole)-1]; last != "3 passed, 1 failed, 5 skipped" {
		t.Errorf("the last line is %q", last)
	}
	errors := 0
	for _, l := range whole {
		if name, p, _, ok := workflowCommand(l); ok && name == "error" {
			errors++
			if p["title"] == `failed find: a failure <&"' [replicaset 8.0]` && p["line"] != "30" {
				t.Errorf("a failure is annotated where its first mismatch is, not in line %s", p["line"])
			}
		}
	}
	if errors != 3 {
		t.Errorf("%d annotations for a failed test, a broken one and a problem", errors)
	}
}

// What suites and servers say steers neither a job nor its log.
func FuzzAnnotations(f *testing.F) {
	for _, s := range []string{"::add-mask::x", "a\n::stop-commands::x", "  ::error::x", "##[add-mask]x", "100%0A::debug::", "\r::error::"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, description, reason string) {
		text := generate(report.Annotated(report.Text(report.TextOptions{Verbose: true})), []result.Note{failing(description, reason),
			result.DeploymentReady{Name: description, Info: reason}, result.RunFinished{Summary: result.Summary{Problems: []string{reason}}}})
		commands := 0
		for _, line := range regexp.MustCompile(`[\r\n]`).Split(string(text), -1) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") {
				commands++
				if name, _, _, ok := workflowCommand(line); !ok || name != "error" {
					t.Fatalf("a command: %q", line)
				}
			} else if strings.Contains(line, "##[") {
				t.Fatalf("an old command: %q", line)
			}
		}
		if commands != 2 {
			t.Fatalf("%d commands\n%s", commands, text)
		}
	})
}

// Nothing of a suite is markup: no tag, no heading, no row of a table of its own.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"<script>alert(1)</script>", "# heading", "a | b", "```\n<img>", "`", "``` ```", "[x](javascript:1)", "@octocat", "1. one", "- a", "*b*", "a\n\n<b>"} {
		f.Add(s, s)
	}
	tag := regexp.MustCompile(`<[^>]*>?`)
	f.Fuzz(func(t *testing.T, description, reason string) {
		text := string(generate(report.Markdown(), []result.Note{failing(description, reason), result.RunFinished{Summary: result.Summary{Failed: 1, Problems: []string{reason}}}}))
		fence := ""
		for line := range strings.SplitSeq(text, "\n") {
			bare := strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "<details "):
				// A block of HTML up to the next empty line: no spans.
			case fence == "" && strings.HasPrefix(bare, "```"):
				fence = bare[:len(bare)-len(strings.TrimLeft(bare, "`"))]
				continue
			case fence != "":
				if bare == fence {
					fence = ""
				}
				continue
			}
			for strings.Contains(line, "`") && !strings.HasPrefix(line, "<details ") { // spans: n backticks to the next n
				open := line[strings.Index(line, "`"):]
				ticks := open[:len(open)-len(strings.TrimLeft(open, "`"))]
				if strings.HasSuffix(line[:strings.Index(line, "`")], `\`) {
					line = strings.Replace(line, "\\`", "", 1)
					continue
				}
				_, after, found := strings.Cut(open[len(ticks):], ticks)
				if !found {
					t.Fatalf("a span without end: %q", line)
				}
				line = line[:strings.Index(line, "`")] + after
			}
			for _, found := range tag.FindAllString(line, -1) {
				if found != "<details open>" && found != "<summary>" && found != "<b>" && found != "</b>" && found != "</summary>" && found != "</details>" {
					t.Fatalf("markup %q in %q", found, line)
				}
			}
			if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "## ✘ utr") && line != "### Problems of the run" && line != "### What went wrong" && line != "### Slowest tests" {
				t.Fatalf("a heading: %q", line)
			}
		}
		if fence != "" {
			t.Fatalf("a block without end\n%s", text)
		}
	})
}

// A summary stays below what a CI system takes, however much fails, and says
// what it left out.
func TestMarkdownIsBounded(t *testing.T) {
	var notes []result.Note
	for i := range 200 {
		notes = append(notes, failing(fmt.Sprintf("test %d", i), strings.Repeat("long ", 3000)))
	}
	text := generate(report.Markdown(), append(notes, result.RunFinished{Summary: result.Summary{Failed: 200}}))
	if len(text) > 1<<20 || !regexp.MustCompile(`\nand [0-9]+ more, which`).Match(text) {
		t.Errorf("%d bytes", len(text))
	}
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
		{"an interruption is red", result.Summary{Passed: 3, Interrupted: true}, "interrupted, 3 passed", "#b3261e"},
		{"nothing ran", result.Summary{Skipped: 9}, "0 passed", "#6b7280"},
	} {
		svg := string(generate(report.Badge(), []result.Note{result.RunFinished{Summary: r.summary}}))
		if !strings.Contains(svg, ">"+r.text+"</text>") || !strings.Contains(svg, r.color) {
			t.Errorf("%s: %s", r.reason, svg)
		}
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", r.reason, err)
			}
		}
	}
}
