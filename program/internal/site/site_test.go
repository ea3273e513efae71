package site

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// files returns the files of a site by path.
func files(t *testing.T, reports ...*Report) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range New(reports,
		map[string]string{"x": "D1: <b>"}).Files(func(to io.Writer, r *Report, earlier []*Report) error {
		_, err := fmt.Fprintf(to, "details of %s, after %d", r.Began, len(earlier))
		return err
	}) {
		var b bytes.Buffer
		testkit.Check(t, f.Write(&b))
		if all[f.Path] != "" {
			t.Errorf("two files have the path %s", f.Path)
		}
		all[f.Path] = b.String()
	}
	return all
}

func july(day int, engine string) result.RunStarted {
	return result.RunStarted{Time: time.Date(2026, 7, day, 2, 0, 0, 0, time.UTC), Engine: engine,
		Commit: fmt.Sprintf("%040d", day)}
}

// plain returns the verdicts of a run without cells: p passed, f failed, k known-failing, s not supported, n not run.
func plain(file, ends string) (all []*result.Verdict) {
	for _, end := range ends {
		switch end {
		case 'p':
			all = append(all, verdict("", file, result.Passed, "", ""))
		case 'f':
			all = append(all, verdict("", file, result.Failed, "", "it differs"))
		case 'k':
			all = append(all, verdict("", file, result.KnownFailing, "", `since 4.0: sends it twice; CRUD, "Error Handling"`))
		case 's':
			all = append(all, verdict("", file, result.Skipped, result.SkipCapability,
				"the engine does not support collection.count"))
		case 'n':
			all = append(all, verdict("", file, result.Skipped, result.SkipNotRun, "interrupted"))
		}
	}
	return all
}

func TestSite(t *testing.T) {
	none := result.Summary{}
	night := func(day int, ends string) *Report {
		return saved(t, july(day, "py 4.1"), none, plain("specs/retryable-reads/a.yml", ends)...)
	}
	cell := func(sum result.Summary, more ...*result.Verdict) *Report {
		return saved(t, july(1, "py 4.1 and js 7"), sum,
			append(more, verdict("single_py_own", "a.yml", result.Passed, "", ""),
				verdict("single_js_own_tls", "a.yml", result.Passed, "", ""))...)
	}
	const page = "engines/py.html"
	for _, r := range []struct {
		reason     string
		reports    []*Report
		file       string
		has, lacks []string
	}{
		{"engines and suites", []*Report{cell(none)}, "index.html",
			[]string{"<title>utr results</title>", "<th>own</th>", `<a href="engines/py.html">py</a> <span class="faint">4.1</span>`, ">js</a>", "✔ 1 passed",
				"1 report, the newest of 2026-07-01 02:00 UTC"},
			[]string{"failed<", "problem<"}},
		{"a run without cells: its engine, and the folder of the suite", []*Report{saved(t, july(1, "my driver 2"), none,
			plain("source/crud/tests/unified/a.yml", "p")...)}, "index.html",
			[]string{"<th>source/crud</th>", `>my driver</a> <span class="faint">2<`}, nil},
		{"all that can happen", []*Report{night(1, "ppfkks")}, "index.html",
			[]string{"✘ 1 failed", "✔ 2 passed", "○ 2 known to fail", "– 1 not supported"}, nil},
		{"the newest report counts, in any order", []*Report{night(3, "ppp"), night(1, "f"), night(2, "ff")}, "index.html",
			[]string{"✔ 3 passed"}, []string{"failed<"}},
		{"the newest report of each suites counts",
			[]*Report{night(3, "pp"), saved(t, july(2, "py 4"), none, plain("specs/crud/a.yml", "f")...)},
			"index.html", []string{"✔ 2 passed", "✘ 1 failed"}, nil},
		{"tests did not run", []*Report{night(1, "pn")}, "index.html", []string{"✔ 1 passed", "‼ 1 did not run"}, nil},
		{"a problem of a cell is not one of other engines",
			[]*Report{cell(result.Summary{Problems: []string{"cell single_py_own: x passed"}})},
			"engines/js.html", nil, []string{"x passed"}},
		{"a problem of a cell", []*Report{cell(result.Summary{Problems: []string{"cell single_py_own: x passed"}})}, page,
			[]string{"<title>py · utr results</title>", "<li>cell single_py_own: x passed</li>"}, nil},
		{"a cell broke before its first test",
			[]*Report{cell(result.Summary{Breaks: []result.Break{{Cell: "sharded_py_other", Reason: "no mongod"}}})},
			"index.html", []string{"<th>other</th>", "‼ 1 problem"}, nil},
		{"a run broke before its first test",
			[]*Report{night(1, "p"), saved(t, july(2, "py 4"), result.Summary{Breaks: []result.Break{{Reason: "no mongod"}}})},
			"index.html", []string{"<li>memory.json: the run broke: no mongod</li>", "✔ 1 passed"}, nil},
		{"a report was cut off", []*Report{parse(t,
			strings.NewReader(`{"file":"a.yml","cell":"single_py_own","status":"passed"}`))}, page,
			[]string{"<li>the run broke: the report was cut off</li>"}, nil},
		{"known failures with reasons, the most frequent first", []*Report{night(1, "kk")}, page, []string{
			`<td class="number">2</td><td>sends it twice; CRUD, &#34;Error Handling&#34;</td>`}, nil},
		{"what is not supported", []*Report{night(1, "s")}, page,
			[]string{`<td class="number">1</td><td>collection.count</td>`}, nil},
		{"deviations", []*Report{saved(t, july(1, "py 4"), none,
			verdict("", "specs/deviations/x.yml", result.KnownFailing, "", "permitted: D1"),
			verdict("", "specs/deviations/y.yml", result.Passed, "", ""))}, page,
			[]string{"<th>x</th><td>differs</td><td>D1: &lt;b&gt;</td><td>permitted: D1</td>",
				"<th>y</th><td>same</td><td></td><td></td>"}, nil},
		{"causes of failures", []*Report{night(1, "ff")}, page,
			[]string{`<b class="failed">failed</b> 2 tests of <a href="../reports/memory.html#q=retryable-reads%2F">`,
				"<div class=\"why\">a</div>\n<div>it differs</div>"}, nil},
		{"causes of failures in no folder: the report is not filtered",
			[]*Report{saved(t, july(1, "py 4"), none, plain("a.yml", "f")...)}, page,
			[]string{`<a href="../reports/memory.html#q=">suites</a>`}, nil},
		{"history, newest first, with commits", []*Report{night(1, "pf"), night(2, "ppk")}, page, []string{
			"<th class=\"when\">2026-07-02 02:00 UTC</th><td><code>000000000000</code></td><td>4.1</td><td class=\"number\">2</td>",
			`<a class="faint" href="../reports/memory.html#q=retryable-reads%2F">trend</a>`}, nil},
		{"of two reports of one run, the last one counts, once", []*Report{night(1, "pn"), night(1, "pp")}, page,
			[]string{"✔ 2 passed"},
			[]string{`</tr>` + "\n" + `<tr><th>2026-07-01`, "did not run"}},
		{"the report of the newest run, compared with the earlier ones",
			[]*Report{night(1, "p"), night(3, "p"), night(2, "p"), saved(t, july(2, "js 1"), none, plain("a.yml", "p")...)},
			"reports/memory.html", []string{"details of 2026-07-03 02:00:00 +0000 UTC, after 2"}, nil},
		{"a badge of an engine", []*Report{night(1, "ppk"),
			saved(t, july(2, "py 4"), none, plain("specs/crud/a.yml", "f")...)}, "badges/py.json",
			[]string{`{"schemaVersion":1,"label":"py","message":"1 failed, 2 passed","color":"b3261e"}`}, nil},
		{"a badge of suites", []*Report{night(1, "ppk")}, "badges/py/retryable-reads.json",
			[]string{`{"schemaVersion":1,"label":"py: retryable-reads","message":"2 passed","color":"1f7a33"}`}, nil},
		{"a badge of a run that did not end", []*Report{night(1, "pn")}, "badges/py.json",
			[]string{`"message":"unfinished, 1 passed","color":"b3261e"`}, nil},
	} {
		t.Run(r.reason, func(t *testing.T) {
			all := files(t, r.reports...)
			testkit.Contains(t, all[r.file], r.has...)
			for _, text := range r.lacks {
				testkit.Equal(t, fmt.Sprintf("%s has %q", r.file, text), strings.Contains(all[r.file], text), false)
			}
			linked(t, all)
		})
	}
}

// linked checks that every link has a target, and that no page refers to anything outside the site.
func linked(t *testing.T, all map[string]string) {
	t.Helper()
	for name, text := range all {
		if !strings.HasSuffix(name, ".html") || strings.HasPrefix(name, "reports/") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?:href|src)="([^"#]*)(?:#([^"]*))?"`).FindAllStringSubmatch(text, -1) {
			target := cmp.Or(path.Join(path.Dir(name), m[1]), name)
			if m[1] == "" {
				target = name
			}
			page, found := all[target]
			if !found || strings.HasPrefix(m[2], "suites-") && !strings.Contains(page, `id="`+m[2]+`"`) {
				t.Errorf("%s: the link %s has no target", name, m[0])
			}
		}
		if outside := regexp.MustCompile(`//|@import|url\(|<script`).FindString(strings.ReplaceAll(text, "</",
			"")); outside != "" {
			t.Errorf("%s refers to the outside: %s", name, outside)
		}
	}
}

// Without cells, suites are grouped by their folder, so that suites of the same specification stay apart.
func TestFolders(t *testing.T) {
	for _, r := range []struct{ reason, file, want string }{
		{"built-in suites", "retryable-reads/find.yml", "retryable-reads"},
		{"the same in a checkout", "specs/retryable-reads/find.yml", "retryable-reads"},
		{"dated suites", "specs/dated/retryable-reads/2019.yml", "dated/retryable-reads"},
		{"official suites", "official/retryable-reads/tests/unified/find.yml", "official/retryable-reads"},
		{"official suites in a checkout", "/work/specifications/source/crud/tests/find.yml", "source/crud"},
		{"a path of Windows", `C:\driver\suites\find.yml`, "driver/suites"},
		{"no folder", "find.yml", "suites"},
		{"the folder above", "../find.yml", "suites"},
		{"only folders without a name of their own", "tests/unified/find.yml", "suites"},
		{"the root", "/find.yml", "suites"},
		{"no file", "", "suites"},
	} {
		testkit.Equal(t, r.reason, folderOf(r.file), r.want)
	}
}

func TestShardIsRefused(t *testing.T) {
	_, err := Read("part.json", strings.NewReader(`{"file":"f","status":"passed","shard":"1/2"}`), time.Time{})
	testkit.ErrorContains(t, err, "part.json is a part of a run: merge its parts first")
}

// Names become names of files that are safe and differ on every file system.
func TestSlugs(t *testing.T) {
	var s slugs
	for _, r := range []struct{ reason, name, want string }{
		{"a plain name", "retryable-reads", "retryable-reads"},
		{"a path", "../../etc/passwd", "etc-passwd"},
		{"markup", `<b>"&`, "b"},
		{"nothing left", "…", "unnamed"},
		{"nothing left again", "/", "unnamed-2"},
		{"another letter case", "Retryable-Reads", "Retryable-Reads-2"},
		{"a hidden file", ".git", "git"},
		{"a long name", strings.Repeat("x", 300), strings.Repeat("x", 80)},
	} {
		testkit.Equal(t, r.reason, s.of(r.name), r.want)
	}
}

const evil = `</style></script><script>document.title="pwned"</script><img src=x onerror='document.title="pwned"'> & " {{.}} javascript:alert(1)`

// hostile is a report in which every text is markup.
func hostile(t *testing.T) *Report {
	text := func(s result.Status, kind result.SkipKind) *result.Verdict {
		v := verdict("", evil+"/"+evil, s, kind, evil)
		v.Test.Suite, v.Test.Description, v.Test.Deployment, v.Rerun = evil, evil, evil, []string{evil}
		v.Mismatches = []result.Mismatch{{Path: evil, Message: evil, Want: evil, Got: evil}}
		return v
	}
	started := result.RunStarted{Engine: evil + " " + evil, Commit: evil}
	r := saved(t, started, result.Summary{Problems: []string{evil}, Breaks: []result.Break{{Cell: evil, Reason: evil}}},
		text(result.Failed, ""), text(result.KnownFailing, ""), text(result.Skipped, result.SkipCapability),
		verdict(evil+"_"+evil+"_"+evil, evil, result.Broken, "", evil),
		verdict("a_"+evil+"_deviations", evil+".yml", result.KnownFailing, "", evil))
	r.Name = evil
	return r
}

// Whatever a report has, pages have no markup of it, and files no surprising name.
func TestSiteEscapes(t *testing.T) {
	all := files(t, hostile(t))
	safe := regexp.MustCompile(`^(index\.html|(engines|reports)/[\w.+-]+\.html|badges/([\w.+-]+/)?[\w.+-]+\.json)$`)
	for name, text := range all {
		testkit.Equal(t, "the name "+name, safe.MatchString(name), true)
		for _, markup := range []string{"<script", "<img", "{{", `href="javascript`} {
			testkit.Equal(t, name+" has "+markup, strings.Contains(strings.ReplaceAll(text, "{{.}}", ""), markup), false)
		}
	}
}
