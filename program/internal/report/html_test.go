package report_test

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

const evil = `</script><script>document.title="pwned"</script><img src=x onerror='document.title="pwned"'> <!-- & "`

// hostile is a run in which every text is markup.
func hostile() []result.Note {
	id := result.TestID{File: evil + ".yml", Suite: evil, Description: evil, Deployment: evil, Iteration: 1}
	failure := &result.Error{Message: evil}
	log := []result.ClientLog{{Client: evil, Events: []result.Event{
		{Sequence: 1, Type: result.CommandStarted, Address: evil, CommandName: evil},
		{Sequence: 2, Type: result.CommandFailed, Address: evil, CommandName: evil, Failure: failure},
	}}}
	v := &result.Verdict{Test: id, Status: result.Failed, Reason: evil, Rerun: []string{evil},
		Evidence: result.Evidence{Clients: log,
			Mismatches: []result.Mismatch{{Path: evil, Message: evil, Want: evil, Got: evil, Diff: evil}},
			Operations: []result.OperationLog{{Name: evil, Object: evil, Outcome: result.Outcome{Err: failure,
				Decisions: []result.Decision{{Action: evil, Reason: evil, Rules: []string{evil}}}}}}}}
	return []result.Note{result.RunStarted{Engine: evil}, finished(v),
		result.RunFinished{Summary: result.Summary{Failed: 1, Problems: []string{evil}}}}
}

// data returns the lines of a kind in a page.
func data(page []byte, kind string) (found []string) {
	_, text, _ := strings.Cut(string(page), `id="data">`)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `{"`+kind+`"`) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// Whatever suites and servers send, a page has only its two scripts, no angle
// brackets in its data, and no external references.
func TestHTMLIsSealed(t *testing.T) {
	for reason, notes := range map[string][]result.Note{"every note": run(), "markup": hostile()} {
		text := string(generate(report.HTML(), notes))
		testkit.Equal(t, reason+": scripts", fmt.Sprint(strings.Count(text, "<script"), strings.Count(text, "</script>")),
			"2 2")
		head, data, _ := strings.Cut(text, `id="data">`)
		data, rest, _ := strings.Cut(data, "</script>")
		testkit.Equal(t, reason+": the data has markup", strings.ContainsAny(data, "<>"), false)
		testkit.Equal(t, reason+": after the data", rest, "\n</body>\n</html>\n")
		outside := regexp.MustCompile(`(src|href)\s*=\s*["']?(http|//)|@import|url\(`)
		testkit.Equal(t, reason+": what refers to the outside", outside.FindString(head), "")
	}
}

// A page cuts long lists in the middle and omits heartbeats.
func TestHTMLIsBounded(t *testing.T) {
	events := make([]result.Event, 50_000)
	for i := range events {
		events[i] = result.Event{Sequence: int64(i), Type: result.CommandStarted, CommandName: "find"}
		if i%2 == 0 {
			events[i] = result.Event{Sequence: int64(i), Type: result.ServerHeartbeatStarted}
		}
	}
	v := &result.Verdict{Status: result.Failed,
		Evidence: result.Evidence{Clients: []result.ClientLog{{Client: "c", Events: events}},
			Operations: []result.OperationLog{{Outcome: result.Outcome{Decisions: make([]result.Decision, 10_000)}}}}}
	text := string(generate(report.HTML(), []result.Note{finished(v)}))
	testkit.Contains(t, text, `"omitted":{"after":300,"count":24600}`, `"heartbeats":25000`,
		`"omitted":{"after":75,"count":9900}`, `"sequence":49999`)
	testkit.Equal(t, "the page is short", len(text) < 200_000, true)
	kept := fmt.Sprint(len(v.Clients[0].Events), events[1].Sequence, len(v.Operations[0].Outcome.Decisions))
	testkit.Equal(t, "the verdict itself", kept, "50000 1 10000")
}

// In reports of many failures with long logs, later failures are cut shorter.
func TestManyFailuresAreBounded(t *testing.T) {
	v := &result.Verdict{Status: result.Failed, Evidence: result.Evidence{Clients: []result.ClientLog{{Client: "c"}}}}
	for i := range 400 {
		v.Clients[0].Events = append(v.Clients[0].Events,
			result.Event{Sequence: int64(i), Type: result.ConnectionCheckedOut, Address: strings.Repeat("a", 400)})
	}
	var notes []result.Note
	for range 400 {
		notes = append(notes, finished(v))
	}
	page := generate(report.HTML(), notes)
	last := page[bytes.LastIndexByte(page[:len(page)-1], '\n'):]
	if n := len(page); n < 32<<20 || n > 40<<20 || !bytes.Contains(last, []byte(`"omitted":{"after":15,"count":380}`)) {
		t.Errorf("%d bytes of HTML, the last failure has %.300s", n, last)
	}
	junit := string(generate(report.JUnit(), append(notes[:160:160], result.RunFinished{})))
	faults := strings.Split(junit, "<failure ")[1:]
	if n := len(junit); n < 8<<20 || n > 10<<20 || len(faults) != 160 {
		t.Errorf("%d bytes of JUnit, %d faults", n, len(faults))
	}
	for i, most := range map[int]int{0: 66 << 10, len(faults) - 1: 3 << 10} {
		if len(faults[i]) > most || !strings.Contains(faults[i], " lines left out\n") {
			t.Errorf("fault %d has %d bytes", i, len(faults[i]))
		}
	}
}

func TestHTMLInBrowser(t *testing.T) {
	link := func(file, test, where string) string { return "t=" + url.QueryEscape(file+"|"+test+"|"+where+"|1") }
	pages := map[string][]byte{
		"run.html": generate(report.HTML(), run()), "hostile.html": generate(report.HTML(), hostile()),
		"cut.html": generate(report.HTML(), run()[:6]),
		"trends.html": generate(report.HTML(
			earlier(t, evil, ended(3, "pbp-fffp")),
			earlier(t, "b.json", ended(4, "pfp--fpp")),
			earlier(t, "c.json", ended(5, "ppffff-p"))), ended(6, "pffffpf")),
	}
	wide := []result.Note{result.RunStarted{}}
	for i := range 13 {
		for _, file := range []string{"green.yml", "red.yml"} {
			v := &result.Verdict{Test: result.TestID{File: file, Description: "in " + file, Cell: fmt.Sprintf("cell-%d", i)},
				Status: result.Passed}
			if i == 3 && file == "red.yml" {
				v.Status = result.Failed
			}
			wide = append(wide, result.TestFinished{Verdict: v})
		}
	}
	explained := &result.Verdict{Test: result.TestID{File: "f.yml", Description: "t"}, Status: result.Passed,
		Evidence: result.Evidence{
			Operations: []result.OperationLog{{Name: "find",
				Outcome: result.Outcome{Decisions: []result.Decision{{Attempt: 1, Action: "send"}}}}},
			Clients: []result.ClientLog{{Client: "c",
				Events: []result.Event{{Sequence: 1, Type: result.CommandStarted, Address: "a:1", CommandName: "find"}}}}}}
	pages["explained.html"] = generate(report.HTML(), []result.Note{finished(explained), result.RunFinished{}})
	pages["green.html"] = generate(report.HTML(), ended(6, "pp"))
	var many []result.Note
	for i := range 15 {
		many = append(many, failing(fmt.Sprint("test ", i), "r"))
	}
	pages["many.html"] = generate(report.HTML(), append(many, result.RunFinished{}))
	pages["wide.html"] = generate(report.HTML(), append(wide, result.RunFinished{}))
	const long = "find returns all documents of the collection after "
	var named, longer []result.Note
	for _, name := range []string{"one", "two"} {
		for _, file := range []string{"retryable-reads/first.yml", "retryable-reads/second.yml"} {
			for _, version := range []string{"8.0", "8.2", "9.0", "9.1"} {
				named = append(named, finished(&result.Verdict{Status: result.Failed, Test: result.TestID{File: file,
					Description: long + name, Deployment: "replicaset of five members " + version}}))
			}
		}
	}
	for i := range 9 {
		longer = append(longer, finished(&result.Verdict{Status: result.Failed, Test: result.TestID{File: "f.yml",
			Description: "t", Deployment: fmt.Sprint(i, " is a deployment whose long name has more than forty characters")}}))
	}
	pages["long.html"] = generate(report.HTML(), append(named, result.RunFinished{}))
	pages["longer.html"] = generate(report.HTML(), append(longer, result.RunFinished{}))
	talk := &result.Verdict{Test: result.TestID{File: "f.yml", Description: "talk"}, Status: result.Failed}
	for _, server := range []string{"a.example.com:27017", "another-server-with-a-long-name.example.com:27017"} {
		talk.Clients = append(talk.Clients, result.ClientLog{Client: "a client with a very long name", Events: []result.Event{
			{Sequence: 1, Type: result.CommandStarted, Address: server, CommandName: "aCommandWithAVeryLongName"},
			{Sequence: 2, Type: result.CommandFailed, Address: server, CommandName: "find",
				Failure: &result.Error{Message: strings.Repeat("the reason is long ", 9)}},
			{Sequence: 3, Type: result.PoolCleared, Address: server}}})
	}
	pages["talk.html"] = generate(report.HTML(), []result.Note{finished(talk), result.RunFinished{}})
	trend := func(test string) string { return link("specs/find.yml", test, "replicaset 8.0") }
	rows := []struct {
		reason, page, fragment string
		has, lacks             []string
	}{
		{"the matrix first", "run", "",
			[]string{"2026-07-08 09:10 UTC", "data-ready=", `data-verdicts="12"`, "<title>✘ 3 red · utr report</title>", "✘ 1 failed", "– 5 skipped",
				">replicaset 8.0</span>",
				">sharded 8.0</span>", ">too old as well</div>", "--run xyz matches no test", "the run was interrupted"},
			[]string{"rerun"}},
		{"what is red, by its cause", "run", "",
			[]string{"3 causes of 3 red tests", `<b class="failed">✘ failed</b>`,
				`1 test</button><div class="why">find: a failure &lt;&amp;"'</div><div>expectEvents[0]`,
				"reference 1 · replicaset 8.0", `<span class="less">  - 1.5</span>`, "<pre>utr run --run ", "open it: a failure"}, nil},
		{"a page without red tests begins with the matrix", "green", "",
			[]string{`id="causes" aria-labelledby="cause" hidden=""`, ">t1</div>"}, nil},
		{"one cause of several", "many", "c=1", []string{"✕ only one cause", ">test 1</div>"}, []string{">test 2</div>"}},
		{"keys go from cause to cause", "many", " c ArrowRight l ArrowLeft Enter",
			[]string{"✕ only one cause", ">test 1</div>"}, []string{">test 2</div>"}},
		{"an explanation is open", "explained", "",
			[]string{`<section id="detail" tabindex="-1"`, "attempt 1: send", ">messages</h3>"}, nil},
		{"many causes end with a cue", "many", "",
			[]string{"show 3 more causes", "15 causes of 15 red tests", "↓ all 15 verdicts"}, nil},
		{"the line of the suite", "run", link("specs/find.yml", `a failure <&"'`, "replicaset 8.0"),
			[]string{`<span class="here"><span class="faint">   30 ▸ </span>            limit: 1.5</span>`, "all mismatches (3)",
				`<h3>rerun</h3>`}, nil},
		{"causes with what is new first", "trends", "",
			[]string{"of 5 red tests", `<b class="failed">✘ failed</b> <span class="is-new">2 new</span> 5 tests`,
				"failing since 2026-07-03 02:00 UTC"}, nil},
		{"a link to a failure", "run", link("specs/find.yml", `a failure <&"'`, "replicaset 8.0"),
			[]string{"numbers differ", "specs/find.yml:30:20", ">1.5</span>", ">R7</span>", "deprioritized a:27017",
				">messages</h3>", "<svg",
				"IngressRequestRateLimitExceeded", "events of client0 (9)", "… 90 events left out", "… 11 operations left out", "… 3 decisions left out",
				"… 4 mismatches left out", "logs (2 lines)", "rerun", "utr run --run "}, nil},
		{"a filter", "run", "q=k%6Eown&s=known-failing",
			[]string{">a known failure</div>", `class="chip known-failing" aria-pressed="true"`}, []string{">a pass</div>"}},
		{"attempts", "run", link("specs/find.yml", "by chance", "replicaset 8.0"),
			[]string{"≈ flaky", "attempt 1: ", "attempt 2: ", "an event is missing"}, nil},
		{"markup", "hostile", link(evil+".yml", evil, evil),
			[]string{"<title>✘ 1 red", "&lt;/script&gt;&lt;script&gt;"}, []string{"<img", "pwned</title>", "<title>pwned"}},
		{"a report that was cut off", "cut", "", []string{`data-verdicts="2"`, "This report was cut off"}, nil},
		{"trends of all together", "trends", "",
			[]string{"Since the last run (2026-07-05 02:00 UTC): ", ">2 new red</b>",
				", 3 red as before, 1 fixed, 1 gone · 3 earlier runs",
				"red tests: failed, broken, flaky: 07-03 4, 07-04 2, 07-05 4, 07-06 5", "duration: 07-03 8m", "✱ 2 new",
				`aria-label="earlier runs, oldest first: failed, absent, failed"`}, []string{"<img", "pwned</title>"}},
		{"red since this run", "trends", trend("t1"),
			[]string{"New since the last run; before: passed.", "✔ 2026-07-05 02:00 UTC", "✘ 2026-07-04 02:00 UTC", "‼ 2026-07-03 02:00 UTC"}, nil},
		{"red since the last run", "trends", trend("t2"),
			[]string{"Failing since 2026-07-05 02:00 UTC: in this run and the one before."}, nil},
		{"red in all known runs, with a gap", "trends", trend("t4"),
			[]string{"Failing since 2026-07-03 02:00 UTC or before: in this run and the 2 runs before.", "· 2026-07-04 02:00 UTC"}, nil},
		{"fixed", "trends", trend("t5"), []string{"Last run: failed."}, nil},
		{"not in the last run, passed before", "trends", trend("t6"),
			[]string{"New since the last run; before: passed."}, nil},
		{"the filter for what is new", "trends", "s=new", []string{">t1</div>"}, []string{">t2</div>"}},
		{"red columns of many, and files without red tests closed", "wide", "",
			[]string{">cell-3</span>", "show all 13 columns", `aria-expanded="false">▸ green.yml`,
				`aria-expanded="true">▾ red.yml`, ">in red.yml</div>"},
			[]string{">cell-4</span>", ">in green.yml</div>"}},
		{"a search opens files", "wide", "q=green", []string{">in green.yml</div>"}, []string{">in red.yml</div>"}},
		{"a chip hides the cards and rows of other verdicts", "run", " click=.chip.broken",
			[]string{"1 cause of 1 red test", ">‼ broken</b>"}, []string{`<b class="failed">✘ failed</b>`, ">a pass</div>"}},
		{"a chip without red tests hides all cards", "run", " click=.chip.passed",
			[]string{`id="causes" aria-labelledby="cause" hidden=""`, ">a pass</div>"}, nil},
		{"a search hides cards", "run", "q=nothing", []string{`id="causes" aria-labelledby="cause" hidden=""`}, nil},
		{"new red tests come first", "trends", " n n", []string{"t6</h2>", "New since the last run"}, nil},
		{"the last red test is an old one", "trends", " n p", []string{"t4</h2>", "Failing since"}, nil},
		{"only red rows on a phone", "run", " width=390",
			[]string{">by chance</div>", "show all rows"}, []string{">a pass</div>"}},
		{"all rows on a phone", "run", " width=390 click=#columns>:first-child>button", []string{">a pass</div>"},
			[]string{"show all rows"}},
		{"a chip shows its rows on a phone", "run", " width=390 click=.chip.passed", []string{">a pass</div>"}, nil},
		{"a link to a green test on a phone", "trends", trend("t5") + " width=390", []string{"t5</h2>"}, nil},
		{"names without their beginning", "long", "",
			[]string{`title="` + long + `one">…one</div>`, "▾ …first.yml ", `title="replicaset of five members 8.0">…8.0</span>`}, nil},
		{"no column is cut off", "long", " width=1300", []string{`data-cut=""`}, nil},
		{"nor one of many with long names", "longer", " width=1300", []string{`data-cut=""`, "a deployment whose long name"}, nil},
		{"nor one beside an open test", "long",
			link("retryable-reads/first.yml", long+"one", "replicaset of five members 8.0") + " width=1300",
			[]string{`data-cut=""`, `<body class="many"`}, nil},
		{"labels of diagrams do not overrun", "talk", link("f.yml", "talk", ""), []string{`data-cut=""`, "<svg", "a client with a very long name"}, nil},
		{"a link to a hidden test and column", "wide", link("green.yml", "in green.yml", "cell-4"),
			[]string{">in green.yml</div>", ">cell-4</span>"}, []string{"show all 13"}},
	}
	var addresses []string
	for _, r := range rows {
		addresses = append(addresses, r.page+".html#"+r.fragment)
	}
	documents := testkit.Browse(t, pages, addresses)
	for i, r := range rows {
		dom := documents[i]
		testkit.Contains(t, dom, r.has...)
		for _, not := range r.lacks {
			testkit.Equal(t, not+" is there", strings.Contains(dom, not), false)
		}
		if t.Failed() {
			t.Fatalf("%s: %.12000s", r.reason, dom[max(0, strings.Index(dom, "<body")):])
		}
	}
}

func TestHistory(t *testing.T) {
	runs := []*report.EarlierRun{
		earlier(t, "old/third.json", ended(5, "ppffk-")), earlier(t, "old/first.json", ended(3, "pbp-sp")),
		earlier(t, "old/second.json", ended(4, "pfpfkp")),
	}
	twice := func(day int, a, b string) []result.Note { return append(ended(day, a)[:2], ended(day, b)[1:]...) }
	var many []*report.EarlierRun
	for day := range 20 {
		many = append(many, earlier(t, fmt.Sprint(day), ended(20-day, "p")))
	}
	for _, r := range []struct {
		reason, kind string // of the lines
		now          []result.Note
		runs         []*report.EarlierRun
		want         string
	}{
		{"the earlier runs, oldest first", "earlier", ended(6, "pffpb"), runs,
			`{"counts":[0,1,0,3,0,1],"durationMS":360000,"name":"first.json","time":"2026-07-03T02:00:00Z"}} {"earlier":{"counts":[2,0,0,3,1,0]`},
		{"the histories", "verdict", ended(6, "pffpb"), runs, `"333" "103" "330" "-00" "544"`},
		{"t5 was not in the last run", "end", ended(6, "pffpb"), runs, `"gone":0`},
		{"four tests are gone", "end", ended(6, "p"), runs[:1], `"gone":4`},
		{"no earlier runs", "verdict", ended(6, "pf"), nil, `[0,0,"passed",60000]} {"verdict":[1,0,"failed",60000,"","",0]`},
		{"no list of earlier runs", "earlier", ended(6, "pf"), nil, "[]"},
		{"tests with the same name, in order", "verdict", twice(4, "p", "p"),
			[]*report.EarlierRun{earlier(t, "a", twice(3, "p", "f"))}, `"3" "0"`},
	} {
		got := fmt.Sprint(data(generate(report.HTML(r.runs...), r.now), r.kind))
		if found := regexp.MustCompile(`"verdict":\[\d+,\d+,"[a-z-]+",\d+,("[-0-9]+")`).FindAllStringSubmatch(got,
			-1); found != nil {
			got = ""
			for _, f := range found {
				got += f[1] + " "
			}
		}
		testkit.Contains(t, got, r.want)
	}
	testkit.Equal(t, "gone tests without earlier runs",
		strings.Contains(string(generate(report.HTML(), ended(6, "pf"))), `"gone"`), false)
	got := data(generate(report.HTML(many...), ended(21, "p")), "earlier")
	testkit.Equal(t, "runs shown of 20", len(got), 16)
	testkit.Contains(t, got[0]+got[15], "2026-07-05", "2026-07-20")
}
