package report_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

const evil = `</script><script>document.title="pwned"</script><img src=x onerror='document.title="pwned"'> <!-- & "`

// hostile is a run in which everything that can be a text is markup.
func hostile() []result.Note {
	id := result.TestID{File: evil + ".yml", Suite: evil, Description: evil, Deployment: evil, Iteration: 1}
	log := []result.ClientLog{{Client: evil, Events: []result.Event{
		{Sequence: 1, Type: result.CommandStarted, Address: evil, Command: &result.CommandEvent{CommandName: evil}},
		{Sequence: 2, Type: result.CommandFailed, Address: evil, Command: &result.CommandEvent{CommandName: evil, Failure: &result.Error{Message: evil}}},
	}}}
	v := &result.Verdict{Test: id, Status: result.Failed, Reason: evil, Rerun: []string{evil}, Clients: log,
		Mismatches: []result.Mismatch{{Path: evil, Message: evil, Want: evil, Got: evil, Diff: evil}},
		Operations: []result.OperationLog{{Name: evil, Object: evil, Outcome: result.Outcome{Err: &result.Error{Message: evil}, Decisions: []result.Decision{{Action: evil, Reason: evil, Rules: []string{evil}}}}}}}
	return []result.Note{result.RunStarted{Engine: evil}, result.TestFinished{Verdict: v}, result.RunFinished{Summary: result.Summary{Failed: 1, Problems: []string{evil}}}}
}

// Whatever suites and servers say, a page has the two scripts that it is made
// of, the data has no angle bracket, and nothing refers to the outside.
func TestHTMLIsSealed(t *testing.T) {
	for reason, notes := range map[string][]result.Note{"every note": run(), "markup": hostile(), "attempts": flaky()} {
		text := string(generate(report.HTML(), notes))
		if n := strings.Count(text, "<script"); n != 2 || strings.Count(text, "</script>") != 2 {
			t.Errorf("%s: %d scripts", reason, n)
		}
		_, data, _ := strings.Cut(text, `id="data">`)
		data, rest, _ := strings.Cut(data, "</script>")
		if strings.ContainsAny(data, "<>") || rest != "\n</body>\n</html>\n" {
			t.Errorf("%s: data with markup", reason)
		}
		if found := regexp.MustCompile(`(src|href)\s*=\s*["']?(http|//)|@import|url\(`).FindString(text[:strings.Index(text, `id="data">`)]); found != "" {
			t.Errorf("%s: it refers to the outside: %s", reason, found)
		}
	}
}

// Long lists are cut in the middle, and heartbeats left out: the page of a test
// that went round in circles can be opened.
func TestHTMLIsBounded(t *testing.T) {
	var events []result.Event
	for i := range 50_000 {
		e := result.Event{Sequence: int64(i), Type: result.CommandStarted, Command: &result.CommandEvent{CommandName: "find"}}
		if i%2 == 0 {
			e = result.Event{Sequence: int64(i), Type: result.ServerHeartbeatStarted, SDAM: &result.SDAMEvent{}}
		}
		events = append(events, e)
	}
	v := &result.Verdict{Status: result.Failed, Clients: []result.ClientLog{{Client: "c", Events: events}},
		Operations: []result.OperationLog{{Outcome: result.Outcome{Decisions: make([]result.Decision, 10_000)}}}}
	text := string(generate(report.HTML(), []result.Note{result.TestFinished{Verdict: v}}))
	if len(text) > 200_000 || !strings.Contains(text, `"omitted":{"after":300,"count":24600}`) || !strings.Contains(text, `"heartbeats":25000`) || !strings.Contains(text, `"omitted":{"after":75,"count":9900}`) || !strings.Contains(text, `"sequence":49999`) {
		t.Errorf("%d bytes", len(text))
	}
	if len(v.Clients[0].Events) != 50_000 || v.Clients[0].Events[1].Sequence != 1 || len(v.Operations[0].Outcome.Decisions) != 10_000 {
		t.Error("the verdict itself was cut")
	}
}

// browse opens a page in a real browser and gives the document that it made.
func browse(t *testing.T, text []byte, fragment string) string {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		t.Skip("no chromium on the PATH: the page is not opened in a browser")
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"),
		"--virtual-time-budget=2000", "--dump-dom", "file://"+path+"#"+fragment)
	c.Env = append(os.Environ(), "TZ=UTC")
	c.WaitDelay = 5 * time.Second
	out, err := c.Output()
	switch {
	case ctx.Err() != nil:
		t.Skip("chromium did not answer within 90 s: the page is not judged")
	case err != nil:
		t.Skipf("chromium cannot run here: %v", err)
	}
	return string(out)
}

// scripts are the page's script and its data: what is left of a document
// without them is what a reader sees.
var scripts = regexp.MustCompile(`(?s)<script.*?</script>`)

func TestHTMLInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	id := url.QueryEscape(`specs/find.yml|a failure <&"'|replicaset 8.0|1`)
	for _, r := range []struct {
		reason, fragment string
		text             []byte
		has, lacks       []string
	}{
		{"the matrix first", "", generate(report.HTML(), run()),
			[]string{`data-verdicts="11"`, "<title>✘ 2 red · utr report</title>", "✘ 1 failed", "– 5 skipped", ">replicaset 8.0</span>", ">sharded 8.0</span>", ">too old as well</div>", "--run xyz matches no test", "The run was interrupted."},
			[]string{"this test again"}},
		{"a link to a failure", "t=" + id, generate(report.HTML(), run()),
			[]string{"numbers differ", "specs/find.yml:30:20", ">1.5</span>", ">R7</span>", "deprioritized a:27017", "who sent what", "<svg", "IngressRequestRateLimitExceeded", "events of client0 (9)", "… 90 events left out", "… 11 operations left out", "… 3 decisions left out", "… 4 mismatches left out", "logs (2 lines)", "this test again", "utr run --run "},
			nil},
		{"a filter", "q=known&s=known-failing", generate(report.HTML(), run()),
			[]string{">a known failure</div>", `class="chip known-failing" aria-pressed="true"`}, []string{">a pass</div>"}},
		{"attempts", "t=" + url.QueryEscape("specs/find.yml|by chance||1"), generate(report.HTML(), flaky()),
			[]string{"≈ flaky", "attempt 1: ", "attempt 2: ", "an event is missing"}, nil},
		{"markup", "t=" + url.QueryEscape(evil+".yml|"+evil+"|"+evil+"|1"), generate(report.HTML(), hostile()),
			[]string{"<title>✘ 1 red", "&lt;/script&gt;&lt;script&gt;"}, []string{"<img", "pwned</title>", "<title>pwned"}},
		{"a report that was cut off", "", generate(report.HTML(), run()[:6]),
			[]string{`data-verdicts="2"`, "This report was cut off"}, nil},
	} {
		dom := scripts.ReplaceAllString(browse(t, r.text, r.fragment), "")
		if strings.Contains(r.reason, "matrix") && !strings.Contains(dom, "data-ready=") {
			t.Fatalf("%s: the page's script did not run:\n%.2000s", r.reason, dom)
		}
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
	}
}

// large is the page of a run of so many verdicts, of which one in a hundred
// failed, with so many earlier runs of the same tests.
func large(t *testing.T, verdicts, earlierRuns int) []byte {
	t.Helper()
	var failed *result.Verdict
	for _, n := range run() {
		if f, ok := n.(result.TestFinished); ok && f.Verdict.Status == result.Failed {
			failed = f.Verdict
		}
	}
	notes := []result.Note{result.RunStarted{Engine: "reference 1", Total: verdicts}}
	older := make([]bytes.Buffer, earlierRuns)
	for i := range verdicts {
		v := &result.Verdict{Test: result.TestID{File: fmt.Sprintf("specs/file-%d.yml", i/200), Suite: fmt.Sprintf("suite %d", i/200),
			Description: fmt.Sprintf("operation %d is retried after an error with the label RetryableWriteError", i/5), Deployment: fmt.Sprintf("replicaset %d.0", 4+i%5), Iteration: 1},
			Position: at(i%200+1, 5), Status: result.Passed, Duration: 12 * time.Millisecond}
		if i%100 == 0 {
			v.Status, v.Mismatches, v.Clients, v.Operations = result.Failed, failed.Mismatches, failed.Clients, failed.Operations
		}
		notes = append(notes, result.TestFinished{Verdict: v})
		for n := range older {
			if i%10 > 0 && (i+n)%5 > 0 { // tests come and go; fewer records are read in less time
				continue
			}
			status := result.Passed
			if (i*7919+n*104729)%53 == 0 { // many different histories
				status = result.Failed
			}
			fmt.Fprintf(&older[n], `{"file":%q,"test":%q,"deployment":%q,"iteration":1,"status":%q,"time":"2026-07-%02dT00:00:00Z"}`+"\n", v.Test.File, v.Test.Description, v.Test.Deployment, status, n+1)
		}
	}
	var runs []*report.Earlier
	for n := range older {
		runs = append(runs, earlier(t, fmt.Sprint(n), older[n].Bytes()))
	}
	return generate(report.HTML(runs...), append(notes, result.RunFinished{}))
}

// A page of 50,000 verdicts, with ten earlier runs, opens. How long it takes is told, not judged: that
// depends on the machine.
func TestHTMLOfManyVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	text := large(t, 50_000, 10)
	dom := scripts.ReplaceAllString(browse(t, text, "s=failed"), "")
	ready := regexp.MustCompile(`data-ready="(\d+)"`).FindStringSubmatch(dom)
	if ready == nil || !strings.Contains(dom, `data-verdicts="50000"`) {
		t.Fatalf("it did not open:\n%.2000s", dom)
	}
	if rows := strings.Count(dom, `class="row`); rows < 10 || rows > 200 {
		t.Errorf("%d rows are in the document: those that can be seen should be", rows)
	}
	t.Logf("%d bytes, ready after %s ms", len(text), ready[1])
}

// A page of very many failures does not grow as they do.
func TestHTMLOfManyFailures(t *testing.T) {
	v := &result.Verdict{Status: result.Failed, Clients: []result.ClientLog{{Client: "c"}}}
	for i := range 400 {
		v.Clients[0].Events = append(v.Clients[0].Events, result.Event{Sequence: int64(i), Type: result.ConnectionCheckedOut, Address: strings.Repeat("a", 400), Pool: &result.PoolEvent{}})
	}
	var notes []result.Note
	for range 400 {
		notes = append(notes, result.TestFinished{Verdict: v})
	}
	text := generate(report.HTML(), notes)
	if n := len(text); n < 32<<20 || n > 40<<20 {
		t.Errorf("%d bytes", n)
	}
	last := text[bytes.LastIndexByte(text[:len(text)-1], '\n'):]
	if !bytes.Contains(last, []byte(`"omitted":{"after":15,"count":380}`)) {
		t.Errorf("the last failure tells %.300s", last)
	}
}
