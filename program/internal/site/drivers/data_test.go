package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/compare"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

const docs = "../../../../docs"

// The committed pages match the committed data and the table of deviations, and no other page of a deviation
// exists: go generate ./program/internal/site/drivers.
func TestPagesAreFresh(t *testing.T) {
	d, err := saved(docs)
	testkit.Check(t, err)
	pages, err := d.pages(compare.Deviations())
	testkit.Check(t, err)
	for name, text := range pages {
		testkit.Golden(t, filepath.Join(docs, filepath.FromSlash(name)), text)
	}
	files, err := os.ReadDir(filepath.Join(docs, "driver", "deviations"))
	testkit.Check(t, err)
	for _, f := range files {
		testkit.Equal(t, f.Name()+" belongs to a deviation", pages["driver/deviations/"+f.Name()] != "", true)
	}
}

func verdict(cell, file string, status result.Status, kind result.SkipKind, reason string) *result.Verdict {
	return &result.Verdict{Test: result.TestID{Cell: cell, File: file, Description: "a"}, Status: status, SkipKind: kind,
		Reason: reason}
}

// written is the JSON report of a run, with the engines of cells.
func written(started result.RunStarted, sum result.Summary, cells []result.CellFinished,
	verdicts ...*result.Verdict) *bytes.Buffer {
	var text bytes.Buffer
	r := report.New("memory", report.JSON(), &text)
	r.Note(started)
	for _, v := range verdicts {
		r.Note(result.TestFinished{Verdict: v})
	}
	for _, c := range cells {
		r.Note(c)
	}
	r.Note(result.RunFinished{Summary: sum})
	return &text
}

// pageOf returns a page of a report. The data is read back from its file.
func pageOf(t *testing.T, name string, known map[string]string, of *bytes.Buffer) string {
	t.Helper()
	d, err := read("memory.json", of, known)
	testkit.Check(t, err)
	text, err := json.Marshal(d)
	testkit.Check(t, err)
	var saved data
	testkit.Check(t, json.Unmarshal(text, &saved))
	pages, err := saved.pages(nil)
	testkit.Check(t, err)
	return pages[name]
}

func TestDrivers(t *testing.T) {
	page := pageOf(t, "drivers.md", nil, written(result.RunStarted{Engine: "py 4"}, result.Summary{},
		[]result.CellFinished{{Cell: "single_py_own", Engine: "py 4"}},
		verdict("single_reference_own", "a.yml", result.Passed, "", ""),
		verdict("single_reference_deviations", "specs/deviations/x.yml", result.Passed, "", ""),
		verdict("single_reference_deviations", "specs/deviations/y.yml", result.Skipped, result.SkipRequirement, ""),
		verdict("single_py_own", "a.yml", result.KnownFailing, "", "since 4.0 until 5.0: sends | twice; CRUD"),
		verdict("sharded_py_own", "a.yml", result.KnownFailing, "", "since 4.0 until 5.0: sends | twice; CRUD"),
		verdict("sharded_py_own", "b.yml", result.KnownFailing, "", "by chance: not always"),
		verdict("single_py_own", "b.yml", result.Skipped, result.SkipCapability,
			"the engine does not support collection.count"),
		verdict("single_py_own", "c.yml", result.Skipped, result.SkipRequirement, "server 9.0"),
		verdict("single_py_official", "a.yml", result.Passed, "", ""),
		verdict("sharded_py_deviations", "specs/deviations/x.yml", result.KnownFailing, "", "D1"),
		verdict("single_py_deviations", "specs/deviations/x.yml", result.Passed, "", ""),
		verdict("single_py_deviations", "specs/deviations/y.yml", result.Passed, "", ""),
		verdict("single_py_deviations", "specs/deviations/z.yml", result.KnownFailing, "",
			"until 2027-01-31: sometimes: permitted: D2"),
	))
	testkit.Golden(t, "testdata/drivers.md", page)
}

func TestReportsAreRefused(t *testing.T) {
	for _, r := range []struct {
		reason string
		of     []*result.Verdict
		breaks []result.Break
		says   string
	}{
		{"a failure is not explained", []*result.Verdict{verdict("single_py_own", "a.yml", result.Failed, "", "")}, nil,
			"failed: "},
		{"the night was interrupted", []*result.Verdict{verdict("single_py_own", "a.yml", result.Skipped, result.SkipNotRun,
			"interrupted")}, nil, "interrupted"},
		{"the run broke", []*result.Verdict{verdict("single_py_own", "a.yml", result.Passed, "", "")},
			[]result.Break{{Reason: "killed"}}, "the run broke: killed"},
		{"it is empty", nil, nil, "no tests"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			_, err := read("memory.json", written(result.RunStarted{}, result.Summary{Breaks: r.breaks}, nil, r.of...), nil)
			testkit.ErrorContains(t, err, r.says)
		})
	}
}

// history is a report of the releases 1.9, 1.10 and 2.0 of py, of a driver with one release, and of the reference
// engine. ends is how one test of official suites ended with each release of py.
func history(ends ...*result.Verdict) *bytes.Buffer {
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
	return written(result.RunStarted{}, result.Summary{}, cells, all...)
}

func TestReleases(t *testing.T) {
	page := pageOf(t, "driver/releases.md", map[string]string{"x": "D1: does not end; CRUD"}, history())
	testkit.Golden(t, "testdata/releases.md", page)
	testkit.Contains(t, pageOf(t, "drivers.md", nil, history()),
		"| py | official | 3 | 2 | 0 |\n| py | own | 1 | 0 | 0 |\n", "\n## py 2.0\n")
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
			_, err := read("memory.json", history(r.second, r.third, r.first), nil)
			if r.says == "" {
				testkit.Check(t, err)
			} else {
				testkit.ErrorContains(t, err, r.says)
			}
		})
	}
}

// A page says which releases of each driver differ.
func TestPageOfDeviation(t *testing.T) {
	at := func(version, word string) *release {
		return &release{Version: version, Deviations: map[string]string{"x": word}}
	}
	d := data{
		{"mine", []*release{at("2.1", "same"), at("2.0", "departs sometimes"), at("1.1", ""), at("1.0", "departs")}},
		{"same", []*release{at("1.0", "same")}},
		{"other", []*release{at("1.0", "differs")}},
	}
	pages, err := d.pages([]compare.Deviation{{ID: "D1", Suite: "x.yml", Engines: []string{"mine"}, Title: "does not end",
		Section: "CRUD", Code: map[string]string{"mine": "main (main.c)"},
		Example: compare.Schedule{Operation: "find", Topology: "replicaset"}}})
	testkit.Check(t, err)
	testkit.Contains(t, pages["driver/deviations/x.md"],
		"\n# D1: x\n\nWhat the drivers in the table do:\n\n> The driver does not end.\n\nIt departs from the specification:\n\n> CRUD.\n",
		"\nutr run --engine reference --topology replicaset deviations/x.yml\n"+
			"utr run --engine mine@2.0 --topology replicaset --known-failing /dev/null deviations/x.yml\n"+
			"utr run --engine other --topology replicaset --known-failing /dev/null deviations/x.yml\n```\n",
		"\n| mine | 2.0 (sometimes), 1.0 | 2.1, 1.1 | main (main.c) |\n| other | 1.0 |  | differs in another way |\n")
}
