package report_test

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// night is a run of tests "t0", "t1", … that ended as told, a letter each: p
// passed, f failed, b broken, k known to fail, s skipped; a minus is not there.
func night(day int, endings string) []result.Note {
	began := time.Date(2026, 7, day, 2, 0, 0, 0, time.UTC)
	statuses := map[rune]result.Status{'p': result.Passed, 'f': result.Failed, 'b': result.Broken, 'k': result.KnownFailing, 's': result.Skipped}
	notes := []result.Note{result.RunStarted{Time: began, Engine: "reference 1"}}
	var s result.Summary
	for i, c := range endings {
		if c == '-' {
			continue
		}
		v := &result.Verdict{Test: result.TestID{File: "specs/find.yml", Suite: "find", Description: fmt.Sprintf("t%d", i), Deployment: "replicaset 8.0", Iteration: 1},
			Position: at(i+1, 5), Status: statuses[c], Began: began.Add(time.Duration(i) * time.Minute), Duration: time.Minute}
		s.Add(v)
		notes = append(notes, result.TestFinished{Verdict: v})
	}
	s.Duration = time.Duration(len(endings)) * time.Minute
	return append(notes, result.RunFinished{Summary: s})
}

func earlier(t *testing.T, name string, text []byte) *report.Earlier {
	t.Helper()
	e, err := report.ReadEarlier(name, bytes.NewReader(text), time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// data gives the lines of a page that are of one kind.
func data(page []byte, kind string) (found []string) {
	_, text, _ := strings.Cut(string(page), `id="data">`)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `["`+kind+`"`) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func TestHistory(t *testing.T) {
	runs := []*report.Earlier{
		earlier(t, "old/third.json", generate(report.JSON(), night(5, "ppffk-"))),
		earlier(t, "old/first.json", generate(report.JSON(), night(3, "pbp-sp"))),
		earlier(t, "old/second.json", generate(report.JSON(), night(4, "pfpfkp"))),
	}
	page := generate(report.HTML(runs...), night(6, "pffpb"))
	if got := fmt.Sprint(data(page, "p")); !strings.HasPrefix(got, `[["p",{"counts":[0,1,0,3,0,1],"durationMS":360000,"name":"first.json","time":"2026-07-03T02:00:00Z"}] ["p",{"counts":[2,0,0,3,1,0]`) {
		t.Errorf("the earlier runs, oldest first, are %s", got)
	}
	if got, want := fmt.Sprint(data(page, "h")), `[["h","333"] ["h","103"] ["h","330"] ["h","-00"] ["h","544"]]`; got != want {
		t.Errorf("the histories are %s, want %s", got, want)
	}
	if got := data(page, "e")[0]; !strings.Contains(got, `"gone":0`) {
		t.Error(got) // t5 was not in the last run
	}
	if got := data(generate(report.HTML(runs[:1]...), night(6, "p")), "e")[0]; !strings.Contains(got, `"gone":4`) {
		t.Error(got)
	}
	if without := string(generate(report.HTML(), night(6, "pf"))); len(data([]byte(without), "p"))+len(data([]byte(without), "h")) > 0 || strings.Contains(without, `"gone"`) {
		t.Error("a page without earlier runs has trends")
	}
}

// Tests of one name are told apart by their order, as in utr diff.
func TestHistoryOfRepeatedNames(t *testing.T) {
	twice := func(day int, a, b string) []result.Note {
		notes := append(night(day, a), night(day, b)...)
		return append(notes[:2:2], notes[4:]...) // started, a's verdict; b's verdict, finished
	}
	page := generate(report.HTML(earlier(t, "a", generate(report.JSON(), twice(3, "p", "f")))), twice(4, "p", "p"))
	if got, want := fmt.Sprint(data(page, "h")), `[["h","3"] ["h","0"]]`; got != want {
		t.Errorf("the histories are %s, want %s", got, want)
	}
}

// Of many earlier runs the last ones are shown.
func TestHistoryIsBounded(t *testing.T) {
	var runs []*report.Earlier
	for day := range 20 {
		runs = append(runs, earlier(t, fmt.Sprint(day), generate(report.JSON(), night(20-day, "p"))))
	}
	page := generate(report.HTML(runs...), night(21, "p"))
	if got := data(page, "p"); len(got) != 16 || !strings.Contains(got[0], "2026-07-05") || !strings.Contains(got[15], "2026-07-20") {
		t.Errorf("%d runs: %v", len(got), got)
	}
}

func TestReadEarlier(t *testing.T) {
	record := `{"file":"f","suite":"s","test":"t","iteration":1,"status":"passed","durationMS":1500,"timings":{}}` + "\n"
	for _, r := range []struct{ reason, text, want, err string }{
		{"a report that tells no time", record + strings.Replace(record, `"t"`, `"u"`, 1), `"durationMS":3000,"name":"r.json","time":"2026-07-01T00:00:00Z"`, ""},
		{"a field of a later form", strings.Replace(record, `"file"`, `"colour":1,"file"`, 1), `"durationMS":1500`, ""},
		{"times of tests", strings.Replace(record, `"file"`, `"time":"2026-06-30T10:00:00+02:00","file"`, 1), `"durationMS":1500,"name":"r.json","time":"2026-06-30T08:00:00Z"`, ""},
		{"the line about its run", record + `{"run":{"time":"2026-06-29T00:00:00Z","durationMS":9000,"shard":"1/1","engine":"","files":1}}`, `"durationMS":9000,"name":"r.json","time":"2026-06-29T00:00:00Z"`, ""},
		{"no report", "<xml>", "", "r.json:1: no record of a test: "},
		{"a record of no test", record + `{"a":1}`, "", "r.json:2: no record of a test: the status is"},
		{"half a line", record[:30], "", "r.json:1: no record of a test: "},
	} {
		e, err := report.ReadEarlier("r.json", strings.NewReader(r.text), time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC))
		if r.err != "" || err != nil {
			if err == nil || !strings.HasPrefix(err.Error(), r.err) || r.err == "" {
				t.Errorf("%s: the error is %v", r.reason, err)
			}
			continue
		}
		if got := fmt.Sprint(data(generate(report.HTML(e), night(2, "p")), "p")); !strings.Contains(got, r.want) {
			t.Errorf("%s: %s, want %s", r.reason, got, r.want)
		}
	}
}

func TestTrendsInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	runs := []*report.Earlier{
		earlier(t, evil, generate(report.JSON(), night(3, "pbp-fffp"))),
		earlier(t, "b.json", generate(report.JSON(), night(4, "pfp--fpp"))),
		earlier(t, "c.json", generate(report.JSON(), night(5, "ppffff-p"))),
	}
	page := generate(report.HTML(runs...), night(6, "pffffpf"))
	for _, r := range []struct {
		reason, test string
		has, lacks   []string
	}{
		{"all together", "", []string{
			"Since the last run (2026-07-05): ", ">2 new red</b>", ", 3 red as before, 1 mended, 1 gone · 3 earlier runs",
			"red tests: failed, broken, flaky: 07-03 4, 07-04 2, 07-05 4, 07-06 5", "duration: 07-03 8m", "✱ 2 new",
			`aria-label="earlier runs, oldest first: failed, not there, failed"`}, []string{"<img", "pwned</title>"}},
		{"red since this run", "t1", []string{"New since the last run; before: passed.", "✔ 07-05", "✘ 07-04", "‼ 07-03"}, nil},
		{"red since the last run", "t2", []string{"Failing since 2026-07-05: in this run and the one before."}, nil},
		{"red as long as it is known, with a gap", "t4", []string{"Failing since 2026-07-03 or before: in this run and the 2 runs before.", "· 07-04"}, nil},
		{"mended", "t5", []string{"It was failed in the last run."}, nil},
		{"not in the last run, good before that", "t6", []string{"New since the last run; before: passed."}, nil},
	} {
		fragment := ""
		if r.test != "" {
			fragment = "t=" + url.QueryEscape("specs/find.yml|"+r.test+"|replicaset 8.0|1")
		}
		dom := scripts.ReplaceAllString(browse(t, page, fragment), "")
		for _, want := range r.has {
			if !strings.Contains(dom, want) {
				t.Errorf("%s: %q is missing", r.reason, want)
			}
		}
		for _, not := range r.lacks {
			if strings.Contains(dom, not) {
				t.Errorf("%s: %q is there", r.reason, not)
			}
		}
		if t.Failed() {
			t.Fatalf("%s", dom[max(0, strings.Index(dom, "<body")):min(len(dom), strings.Index(dom, "<body")+12000)])
		}
	}
	only := scripts.ReplaceAllString(browse(t, page, "s=new"), "")
	if !strings.Contains(only, ">t1</div>") || strings.Contains(only, ">t2</div>") {
		t.Error("the filter for what is new shows something else")
	}
}

func FuzzReadEarlier(f *testing.F) {
	for _, notes := range [][]result.Note{run(), flaky(), night(3, "pfbks"), shard("1/2", night(4, "pf"))} {
		f.Add(generate(report.JSON(), notes))
	}
	f.Add([]byte(`{"status":"passed","iteration":-3,"durationMS":-1e300}`))
	f.Add([]byte(`{"run":{"time":"0001-01-01T00:00:00Z"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := report.ReadEarlier("r.json", bytes.NewReader(text), time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC))
		if err != nil {
			return
		}
		page := generate(report.HTML(e), night(5, "pf"))
		if n := len(data(page, "p")); n != 1 || len(data(page, "v")) != 2 || len(data(page, "e")) != 1 {
			t.Errorf("%d earlier runs, %d verdicts in\n%s", n, len(data(page, "v")), page[bytes.Index(page, []byte(`id="data">`)):])
		}
	})
}

// A merged run began when its first test did, and took as long as from there
// to the end of its last one, where its reports do not tell.
func TestMergeKnowsTheTime(t *testing.T) {
	past := read(t, generate(report.JSON(), night(3, "pfp")))
	notes := report.Merge([]*report.Past{past})
	started, over := notes[0].(result.RunStarted), notes[len(notes)-1].(result.RunFinished)
	if want := time.Date(2026, 7, 3, 2, 0, 0, 0, time.UTC); !started.Time.Equal(want) || over.Summary.Duration != 3*time.Minute {
		t.Errorf("it began at %v and took %v, want %v and 3m", started.Time, over.Summary.Duration, want)
	}
	for _, v := range past.Verdicts {
		v.Began = time.Time{}
	}
	notes = report.Merge([]*report.Past{past})
	if started, over = notes[0].(result.RunStarted), notes[len(notes)-1].(result.RunFinished); !started.Time.IsZero() || over.Summary.Duration != 3*time.Minute {
		t.Errorf("without times: it began at %v and took %v", started.Time, over.Summary.Duration)
	}
}
