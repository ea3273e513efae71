package report_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// differs is a mismatch of an expected event, as the matchers write it, with a reply that no two servers send.
func differs(line int, want, got, command, reply string) result.Mismatch {
	return result.Mismatch{
		Path: "expectEvents[0].events[1]", Position: at(line, 13),
		Message: fmt.Sprintf("expected a %s, got a %s", want, got), Want: fmt.Sprintf("{%q:{}}", want),
		Got: fmt.Sprintf("%s %s on db %s", got, command, reply),
		List: &result.List{Name: "events of client", Rows: []result.Row{
			{Want: "commandStartedEvent " + command, Got: "commandStartedEvent " + command},
			{Want: want + " " + command, Got: got + " " + command, Differs: true},
		}},
	}
}

// eight are eight cells with one changed expectation. Their servers reply differently.
func eight(place func(cell string) result.TestID) []result.Note {
	replies := []string{
		`{"ok":1.0,"electionId":{"$oid":"7fffffff0000000000000002"}}`, `{"electionId":{"$oid":"7fffffff000000000000000a"},"ok":1}`,
		`{"opTime":{"ts":{"$timestamp":{"t":1,"i":3}},"t":1}}`, `{"opTime":{"ts":{"$timestamp":{"t":1,"i":4}},"t":2}}`,
		`{"$clusterTime":{"clusterTime":{"$timestamp":{"t":9,"i":1}}}}`, `{"n":1,"ok":1}`, "", `{"lsid":{"id":"x"}} at h7:27017`,
	}
	notes, s := []result.Note{result.RunStarted{Total: len(replies), Files: 1}}, result.Summary{}
	for i, reply := range replies {
		v := &result.Verdict{Test: place(fmt.Sprintf("cell%d", i)), Position: at(1, 1), Status: result.Failed}
		v.Mismatches = []result.Mismatch{differs(21, "commandFailedEvent", "commandSucceededEvent", "find", reply)}
		s.Add(v)
		notes = append(notes, finished(v))
	}
	return append(notes, result.RunFinished{Summary: s})
}

func inCell(cell string) result.TestID {
	return result.TestID{File: "specs/find.yml", Suite: "find", Description: "a", Deployment: "single 8.0", Cell: cell}
}

func onDeployment(name string) result.TestID {
	return result.TestID{File: "specs/find.yml", Suite: "find", Description: "a", Deployment: name}
}

// Every format has one entry for one cause. Its headline is the name of the test, and then what was expected and
// observed, without a reply.
func TestOneCauseIsOneEntry(t *testing.T) {
	const why = "want commandFailedEvent, got commandSucceededEvent (find) at expectEvents[0].events[1]"
	read := func(text []byte) string { // what utr site reads
		causes := report.NewCauses(nil)
		_, err := report.Scan("r", strings.NewReader(string(text)), func(v *result.Verdict) { causes.Add(v) })
		testkit.Check(t, err)
		shown := ""
		for _, c := range causes.Sorted() {
			shown += fmt.Sprintf("%s, %s, %s, %s, %s\n", c.Status, c.Why, c.Scope(), c.Test(), c.Rerun)
		}
		return shown
	}
	for _, r := range []struct {
		reason, text, want string // a regular expression
	}{
		{"the list at the end", plain(report.TextOptions{Quiet: true}, eight(inCell)...),
			`\n8 failures, 1 cause:\n  failed \S+:21:13  find: a \[cell0, single 8.0\] \(8 tests in 8 cells\)\n      ` + why + `\n\n`},
		{"deployments outside a matrix", plain(report.TextOptions{Quiet: true}, eight(onDeployment)...),
			`find: a \[cell0\] \(8 tests in 8 deployments\)\n      ` + why + `\n\n`},
		{"a run that has ended", plain(report.TextOptions{Past: true}, eight(inCell)...),
			`^\nfailed find: a \[cell0, single 8.0\] \(8 tests in 8 cells\)\n  \S+  ` + why + `\n`},
		{"Markdown", string(generate(report.Markdown(), eight(inCell))),
			`<summary><b>failed</b> find: a \[cell0, single 8.0\]<br>` + why + `<br>8 tests in 8 cells</summary>`},
		{"annotations", string(generate(report.Annotated(report.Text(report.TextOptions{Quiet: true})), eight(inCell))),
			`title=failed find%3A a \[cell0%2C single 8.0\] \(8 tests in 8 cells\)::  \S+  ` + why},
		{"SARIF", string(generate(report.SARIF(), eight(inCell))), `"text": "find: a \[cell0, single 8.0\]\\n  \S+  ` + why},
		{"SARIF counts the tests", string(generate(report.SARIF(), eight(inCell))), `"occurrenceCount": 8,`},
		{"the page", fmt.Sprint(data(generate(report.HTML(), eight(inCell)), "detail")[0]), `"why":"` + why + `"`},
		{"the site", read(generate(report.JSON(), eight(inCell))),
			`^failed, ` + why + `, 8 tests in 8 cells, find: a \[cell0, single 8.0\], \n$`},
	} {
		r.want = strings.NewReplacer(why, regexp.QuoteMeta(why)).Replace(r.want)
		if n := len(regexp.MustCompile(r.want).FindAllString(r.text, -1)); n != 1 {
			t.Errorf("%s: %d of %s in\n%s", r.reason, n, r.want, r.text)
		}
	}
	testkit.Equal(t, "equal messages in JUnit",
		strings.Count(string(generate(report.JUnit(), eight(inCell))), `<failure message="`+why+`"`), 8)
	testkit.Equal(t, "causes on the page", strings.Count(fmt.Sprint(data(generate(report.HTML(), eight(inCell)), "verdict")),
		`,"","",0]`), 8)
}

// A single failure is explained and not listed again, except with -q: then it is not explained.
func TestASingleFailureIsPrintedOnce(t *testing.T) {
	one := eight(inCell)[:2]
	for _, r := range []struct {
		reason  string
		options report.TextOptions
	}{
		{"a run", report.TextOptions{}}, {"-v", report.TextOptions{Verbose: true}}, {"-q", report.TextOptions{Quiet: true}},
		{"a run that has ended", report.TextOptions{Past: true}},
	} {
		text := plain(r.options, append(one, result.RunFinished{})...)
		testkit.Equal(t, r.reason, strings.Count(text, "find: a [cell0"), 1)
	}
}

// What has the same cause, and what does not.
func TestCauses(t *testing.T) {
	verdict := func(status result.Status, reason string, m ...result.Mismatch) *result.Verdict {
		return &result.Verdict{Status: status, Reason: reason, Evidence: result.Evidence{Mismatches: m}}
	}
	value := func(line int, path, message, got string) *result.Verdict {
		return verdict(result.Failed, "", result.Mismatch{Path: path, Position: at(line, 1), Message: message, Want: "1", Got: got})
	}
	event := func(line int, want, got, command string) *result.Verdict {
		return verdict(result.Failed, "", differs(line, want, got, command, "{}"))
	}
	count := func(line, got int, missing string) *result.Verdict {
		return verdict(result.Failed, "", result.Mismatch{Path: "expectEvents[0].events", Position: at(line, 1),
			Message: fmt.Sprintf("expected at least 2 events, got %d", got),
			List:    &result.List{Rows: []result.Row{{Want: missing, Differs: true}}}})
	}
	broke := func(reason string) *result.Verdict { return verdict(result.Broken, reason) }
	const failed, succeeded, started = "commandFailedEvent", "commandSucceededEvent", "commandStartedEvent"
	const client, server = "client-side error (network), from h1:27017: EOF", "server-side error, code 91 ShutdownInProgress: "
	for _, r := range []struct {
		reason string
		a, b   *result.Verdict
		causes int
	}{
		{"two tests fail alike", event(1, failed, succeeded, "find"), event(2, failed, succeeded, "find"), 1},
		{"another command", event(1, failed, succeeded, "find"), event(2, failed, succeeded, "insert"), 2},
		{"another expected type", event(1, failed, succeeded, "find"), event(1, started, succeeded, "find"), 2},
		{"another observed type", event(1, failed, succeeded, "find"), event(1, failed, started, "find"), 2},
		{"the number of observed events", count(1, 0, started+" find"), count(2, 17, started+" find"), 1},
		{"another missing event", count(1, 1, started+" find"), count(1, 1, started+" count"), 2},
		{"tests with other expected values get the same one", value(1, "operations[0].expectResult", "the values differ", "7"),
			value(2, "operations[3].expectResult", "the values differ", "7"), 1},
		{"another value elsewhere", value(1, "operations[0].expectResult", "the values differ", "7"),
			value(2, "operations[0].expectResult", "the values differ", "8"), 2},
		{"servers reply differently at one place", value(1, "operations[0].expectResult", "the values differ", "7"),
			value(1, "operations[0].expectResult", "the values differ", "8"), 1},
		{"documents with volatile values", value(1, "operations[0].expectResult", "unexpected key", `{"t":1,"i":2}`),
			value(2, "operations[0].expectResult", "unexpected key", `{"t":1,"i":3}`), 1},
		{"two engines describe an error", value(1, "operations[0]", "the operation raised an error", client),
			value(1, "operations[0]", "the operation raised an error", "client-side error: socket was closed"), 1},
		{"two servers describe an error", value(1, "operations[0]", "the operation raised an error", server+"bye"),
			value(1, "operations[0]", "the operation raised an error", server+"see you"), 1},
		{"another code at one place", value(1, "operations[0]", "the operation raised an error", server),
			value(1, "operations[0]", "the operation raised an error", client), 2},
		{"another message at one place", value(1, "operations[0]", "the value is missing", ""),
			value(1, "operations[0]", "expected no value, got one", ""), 2},
		{"hosts and ports", broke("a-1.internal:27017: refused"), broke("b.internal:27018: refused"), 1},
		{"durations", broke("no answer within 1m30s"), broke("no answer within 2.5s"), 1},
		{"ids", broke("session 0b5b6bc5-9d27-4b13-9d4c-5f8a9c9c0c77 ended"),
			broke("session 1c5b6bc5-9d27-4b13-9d4c-5f8a9c9c0c78 ended"), 1},
		{"documents", broke(`set-up: {"ok":0,"electionId":1}`), broke(`set-up: {"electionId":2,"ok":0}`), 1},
		{"other reasons", broke("no primary"), broke("no answer"), 2},
		{"another verdict", verdict(result.Failed, "x"), broke("x"), 2},
	} {
		c := report.NewCauses(nil)
		c.Add(r.a)
		c.Add(r.b)
		testkit.Equal(t, r.reason, len(c.Sorted()), r.causes)
	}
}

// A list has the places of the tests of a cause, and since when they fail.
func TestListedCause(t *testing.T) {
	notes := []result.Note{result.RunStarted{}}
	for i := range 7 {
		v := &result.Verdict{Test: onDeployment("single"), Status: result.Failed}
		v.Mismatches = []result.Mismatch{differs(10+i/2, "commandFailedEvent", "commandSucceededEvent", "find", "")}
		notes = append(notes, finished(v))
	}
	text := plain(report.TextOptions{Quiet: true}, append(notes, result.RunFinished{})...)
	testkit.Contains(t, text, "(7 tests)\n", "\n      also at specs/find.yml:11:13, specs/find.yml:12:13, specs/find.yml:13:13\n")

	nights := []*report.EarlierRun{earlier(t, "3", ended(3, "pfpf")), earlier(t, "4", ended(4, "pf-f")), earlier(t, "5", ended(5, "pf-f"))}
	since := func(o report.TextOptions, endings string) string {
		return string(generate(report.Text(o, nights...), ended(6, endings)))
	}
	for _, r := range []struct {
		reason, text, want string
	}{
		{"the oldest", since(report.TextOptions{Quiet: true}, "-f"), "t1 [replicaset 8.0] (1 test, failing since 2026-07-03 02:00 UTC)\n"},
		{"new ones and others", since(report.TextOptions{Quiet: true}, "ff"), "t0 [replicaset 8.0] (2 tests, 1 new, failing since 2026-07-03 02:00 UTC)\n"},
		{"explained", since(report.TextOptions{}, "-f"), "t1 [replicaset 8.0]\n  specs/find.yml:2:5\n  failing since 2026-07-03 02:00 UTC\n"},
		{"explained, new", since(report.TextOptions{}, "f"), "t0 [replicaset 8.0]\n  specs/find.yml:1:5\n  new since the last run\n"},
		{"passed, absent, red", since(report.TextOptions{}, "--f"), "  new since the last run\n"},
	} {
		testkit.Contains(t, r.reason+": "+r.text, r.want)
	}
}
