package site

import (
	"fmt"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// history is a report of the releases 1.9, 1.10 and 2.0 of py, of a driver with one release, and of the reference
// engine. ends is how one test of official suites ended with each release of py.
func history(t *testing.T, ends ...*result.Verdict) *Releases {
	t.Helper()
	versions := []string{"1.10", "2.0", "1.9"} // the page sorts them
	var all []*result.Verdict
	var cells []result.CellFinished
	add := func(engine, suites, is string, v *result.Verdict) {
		v.Test.Cell = "single_" + engine + "_" + suites
		v.Rerun = []string{"utr", "run", "--engine", engine, "--run", "^a|b$", v.Test.File}
		all, cells = append(all, v), append(cells, result.CellFinished{Cell: v.Test.Cell, Engine: is})
	}
	known := func(file, reason string) *result.Verdict { return verdict("", file, result.KnownFailing, "", reason) }
	passed := func(file string) *result.Verdict { return verdict("", file, result.Passed, "", "") }
	for i, version := range versions {
		at, is := "py@"+version, "py "+version
		for n := range 2 { // two tests with one reason are one change
			add(at, "official", is, testkit.Either(version == "2.0",
				known(fmt.Sprint("new", n, ".yml"), "since 2.0: sends it twice; CRUD"),
				passed(fmt.Sprint("new", n, ".yml"))))
		}
		add(at, "official", is, testkit.Either(version == "1.9",
			known("old.yml", "until 1.10: sometimes: never sends | it; CRUD"), passed("old.yml")))
		add(at, "official", is, testkit.Either(version == "1.9", known("chance.yml", "sometimes: by chance; CRUD"),
			passed("chance.yml")))
		add(at, "official", is, testkit.Either(version == "1.9",
			verdict("", "lacks.yml", result.Skipped, result.SkipCapability,
				"the engine lacks x"), passed("lacks.yml")))
		add(at, "deviations", is, testkit.Either(version == "2.0", passed("x.yml"), known("x.yml", "until 1.11: departs")))
		add(at, "deviations", is, testkit.Either(version == "1.9",
			verdict("", "y.yml", result.Skipped, result.SkipCapability, "the engine lacks y"),
			known("y.yml", "permitted: differs")))
		if ends != nil && ends[i] != nil {
			one := *ends[i]
			add(at, "official", is, &one)
		}
	}
	add("py@2.0", "own", "py 2.0", passed("own.yml")) // the others do not run these suites
	add("one", "official", "one 3.1", passed("old.yml"))
	add("reference", "official", "reference current", passed("old.yml"))
	r, err := ReadReleases("memory.json", written(result.RunStarted{}, result.Summary{}, cells, all...))
	testkit.Check(t, err)
	return r
}

func TestReleases(t *testing.T) {
	r := history(t)
	page, err := r.Markdown(map[string]string{"x": "D1: does not end; CRUD"})
	testkit.Check(t, err)
	testkit.Golden(t, "testdata/releases.md", page)
	state, err := Markdown(r.Report)
	testkit.Check(t, err)
	testkit.Contains(t, state, "| py | official | 3 | 2 | 0 |\n| py | own | 1 | 0 | 0 |\n", "\n## py 2.0\n")
}

// Every change needs a line of known-failing.txt that dates it.
func TestReleasesAreRefused(t *testing.T) {
	known := func(reason string) *result.Verdict { return verdict("", "z.yml", result.KnownFailing, "", reason) }
	passed := verdict("", "z.yml", result.Passed, "", "")
	for _, r := range []struct {
		reason               string
		first, second, third *result.Verdict // with 1.9, 1.10 and 2.0
		says                 string          // "" if the page is made
	}{
		{"a failure is new without a reason", passed, passed, known("fails; CRUD"),
			"py, from 1.10 to 2.0: single_official, z.yml: a: the reason does not say in which release it is new: fails; CRUD"},
		{"another release began to fail", passed, passed, known("since 1.9.5: fails"),
			"the reason does not say in which release it is new"},
		{"a failure is gone without a reason", known("fails"), passed, passed,
			"py, from 1.9 to 1.10: single_official, z.yml: a: the reason does not say"},
		{"another release fixed it", known("until 2.0: fails"), passed, passed,
			"the reason does not say in which release it is fixed"},
		{"a test is missing", nil, passed, passed, "from 1.9 to 1.10: single_official, z.yml: a: it does not run with both"},
		{"a test is gone", passed, passed, nil, "from 1.10 to 2.0: single_official, z.yml: a: it does not run with both"},
		{"a test failed", passed, passed, verdict("", "z.yml", result.Failed, "", ""), "failed: "},
		{"a test fails for another reason", known("until 2.0: fails"), known("until 2.0: fails"),
			known("since 2.0: fails too"), ""},
	} {
		t.Run(r.reason, func(t *testing.T) {
			_, err := history(t, r.second, r.third, r.first).Markdown(nil)
			if r.says == "" {
				testkit.Check(t, err)
			} else {
				testkit.ErrorContains(t, err, r.says)
			}
		})
	}
}
