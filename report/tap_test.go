package report_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// perlReads has Perl's own parser read TAP: a line for each test point with
// what it made of it, then what it found wrong. The parser of Perl 5.36 knows
// version 13, which version 14 keeps to but for subtests and escapes.
const perlReads = `
use TAP::Parser;
local $/; my $tap = <STDIN>; $tap =~ s/^TAP version 14$/TAP version 13/m;
my $p = TAP::Parser->new({ tap => $tap });
my $last = "";
while (my $r = $p->next) {
	if ($r->is_test) {
		my $d = $r->has_skip ? "skip" : $r->has_todo ? "todo" : "";
		print join("|", $r->number, ($r->is_actual_ok ? "ok" : "not ok"), $d), "\n";
	} elsif ($r->is_yaml) {
		my $y = $r->data;
		print "yaml|", $y->{severity}, "|", scalar(@{$y->{mismatches} || []}), "|", ($y->{at} ? $y->{at}{line} : ""), "\n";
	} elsif ($r->is_unknown) {
		print "unknown|", $r->as_string, "\n";
	}
}
print "planned|", $p->tests_planned, "\n";
print "wrong|$_\n" for $p->parse_errors;
`

func readByPerl(t *testing.T, tap []byte) []string {
	t.Helper()
	perl, err := exec.LookPath("perl")
	if err != nil || exec.Command(perl, "-MTAP::Parser", "-e", "1").Run() != nil {
		t.Skip("perl with TAP::Parser is not there")
	}
	c := exec.Command(perl, "-e", perlReads)
	c.Stdin = bytes.NewReader(tap)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return lines(out)
}

func TestTAPIsReadByPerl(t *testing.T) {
	got := readByPerl(t, generate(report.TAP(), run()))
	want := []string{
		"1|ok|", "2|not ok|", "yaml|fail|2|10", "3|not ok|", "yaml|broken|0|50",
		"4|ok|skip", "5|ok|skip", "6|ok|skip", "7|ok|skip", "8|ok|skip", "9|not ok|todo", "10|ok|", "11|ok|",
		"12|not ok|", "13|not ok|", "planned|13",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	cut := generate(report.TAP(), run()[:6])
	if got := strings.Join(readByPerl(t, cut), "\n"); !strings.Contains(got, "wrong|No plan found") {
		t.Errorf("a run that was cut off is not noticed:\n%s", got)
	}
}

var tapPoint = regexp.MustCompile(`^(not )?ok (\d+) - (.*)$`)

// checkTAP reads what we write as the specification of TAP 14 says: the
// version, points counted from 1, directives behind a # without a backslash
// alone, YAML blocks that end, one plan at the end.
func checkTAP(text []byte) (points []string, err error) {
	all := lines(text)
	if all[0] != "TAP version 14" {
		return nil, fmt.Errorf("it begins with %q", all[0])
	}
	block := false
	for i, line := range all[1:] {
		point := tapPoint.FindStringSubmatch(line)
		switch {
		case block:
			block = line != "  ..."
			if block && !strings.HasPrefix(line, "  ") {
				return nil, fmt.Errorf("the block is left at %q", line)
			}
		case line == "  ---" && len(points) > 0:
			block = true
		case strings.HasPrefix(line, "#"):
		case point != nil:
			if point[2] != strconv.Itoa(len(points)+1) {
				return nil, fmt.Errorf("%q is not number %d", line, len(points)+1)
			}
			bare := regexp.MustCompile(`\\.`).ReplaceAllString(point[3], "")
			if _, directive, found := strings.Cut(bare, "#"); found && !strings.HasPrefix(directive, " SKIP ") && !strings.HasPrefix(directive, " TODO ") {
				return nil, fmt.Errorf("%q has an unknown directive", line)
			} else {
				points = append(points, strings.TrimSpace(point[1]+"ok "+strings.TrimSpace(directive + "     ")[:min(4, len(strings.TrimSpace(directive)))]))
			}
		case line == "1.."+strconv.Itoa(len(points)) && i == len(all)-2:
			return points, nil
		default:
			return nil, fmt.Errorf("what is %q?", line)
		}
	}
	return nil, fmt.Errorf("there is no plan at the end")
}

// A description is no directive, no point and no end of a block.
func FuzzTAP(f *testing.F) {
	for _, s := range []string{"a # SKIP b", "x\nok 99 - y", "\n  ...\n1..0", `back\`, `back\# TODO`, "\x00\xff", "Bail out!", "---", "'\"", "# TODO"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, description, reason string) {
		id := result.TestID{File: description, Suite: "s", Description: description}
		v := func(s result.Status) result.Note {
			return result.TestFinished{Verdict: &result.Verdict{Test: id, Status: s, SkipKind: result.SkipFile, Reason: reason, Position: at(1, 1),
				Mismatches: []result.Mismatch{{Path: reason, Message: description, Want: reason, Diff: reason + "\n" + description}}, Rerun: []string{reason}}}
		}
		text := generate(report.TAP(), []result.Note{result.RunStarted{Engine: description}, v(result.Passed), v(result.Failed), v(result.Skipped), v(result.KnownFailing), v(result.Broken), result.RunFinished{}})
		got, err := checkTAP(text)
		if want := []string{"ok", "not ok", "ok SKIP", "not ok TODO", "not ok"}; err != nil || cmp.Diff(want, got) != "" {
			t.Fatalf("%v %q\n%s", err, got, text)
		}
	})
}

// The check of the fuzz target can fail.
func TestTAPCheckCanFail(t *testing.T) {
	good := generate(report.TAP(), run())
	if _, err := checkTAP(good); err != nil {
		t.Fatal(err)
	}
	for reason, bad := range map[string][]byte{
		"no version":            bytes.Replace(good, []byte("version 14"), []byte("version 12"), 1),
		"a number left out":     bytes.Replace(good, []byte("ok 3 -"), []byte("ok 4 -"), 1),
		"a block without end":   bytes.ReplaceAll(good, []byte("\n  ...\n"), []byte("\n")),
		"a plan of another":     bytes.Replace(good, []byte("1..13"), []byte("1..12"), 1),
		"no plan":               bytes.Replace(good, []byte("1..13\n"), nil, 1),
		"a directive by chance": bytes.Replace(good, []byte("a pass"), []byte("a # pass"), 1),
	} {
		if _, err := checkTAP(bad); err == nil {
			t.Errorf("the check lets pass: %s", reason)
		}
	}
}
