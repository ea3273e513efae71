// Command page writes two tables of docs/performance.md from the output of make bench: peers, and tests side by side.
//
//	make bench | tee build/bench.txt
//	go run ./program/internal/bench/page docs/performance.md build/bench.txt
package main

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// comparison is a row of the table: two benchmarks of one run.
type comparison struct{ work, ours, peer, name string }

const (
	mocha  = "the Node driver's own runner"
	pytest = "PyMongo's own runner"
)

const node = "Node.js: js-yaml 5, JSON.parse, ajv 8"

var comparisons = []comparison{
	{"validate the specifications repository, twins compared", "Authors/validate/who=utr",
		"Authors/validate/who=node", node},
	{"validate one file, from start to exit", "Authors/validate/files=1/who=utr",
		"Authors/validate/files=1/who=node", node},
	{"convert YAML to JSON", "Authors/convert/who=utr", "Authors/convert/who=node", "Node.js: js-yaml 5"},
	{"decide after a failed read", "Retryable/who=utr", "Retryable/who=go-driver",
		"Go driver: `Error.RetryableRead`, a part of it"},
	{"match a document of 256 fields", "Match/fields=256/who=utr", "Match/fields=256/who=go-cmp", "go-cmp"},
	{"find a document", "RoundTrip/documents=1/who=embedded", "RoundTrip/documents=1/who=bare-socket", "a bare socket"},
	{"call an engine, which sends nothing", "Process/call=nothing/who=adapter", "Process/call=nothing/who=inside",
		"the same engine in the process"},
	{"call an engine, which sends a find", "Process/call=find/who=adapter", "Process/call=find/who=inside",
		"the same engine in the process"},
	{"play a test with the Node driver, on the same server", "Adapters/node/who=utr", "Adapters/node/who=driver", mocha},
	{"the same on embedded deployments", "Adapters/node/who=utr-embedded",
		"Adapters/node/who=driver", mocha},
	{"play a test with PyMongo, on the same server", "Adapters/pymongo/who=utr", "Adapters/pymongo/who=driver", pytest},
	{"the same on embedded deployments", "Adapters/pymongo/who=utr-embedded",
		"Adapters/pymongo/who=driver", pytest},
}

func main() {
	if err := update(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// update replaces the table in a page.
func update(page, output string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	measured, err := os.ReadFile(output)
	if err != nil {
		return err
	}
	for _, t := range []struct {
		begin string
		table func(results map[string]map[string]float64) string
	}{{"<!-- made by make bench -->\n", table}, {"<!-- made by make bench: side by side -->\n", beside}} {
		const end = "<!-- end -->"
		before, rest, found := strings.Cut(string(text), t.begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			return fmt.Errorf("%s has no %q and %q", page, t.begin, end)
		}
		text = []byte(before + t.begin + t.table(parse(string(measured))) + end + after)
	}
	return os.WriteFile(page, text, 0o666)
}

// beside renders how many times as fast tests run side by side: first on embedded servers, then on each release.
func beside(results map[string]map[string]float64) string {
	var b strings.Builder
	b.WriteString("| suites | one by one | 2 | 4 | 8 | 16 workers |\n|---|---|---|---|---|---|\n")
	var all []string
	for name := range results {
		if suites, found := strings.CutPrefix(name, "SideBySide/"); found && strings.HasSuffix(suites, "/jobs=1") {
			all = append(all, strings.TrimSuffix(suites, "/jobs=1"))
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	for _, suites := range all {
		result := func(jobs int) float64 { return results[fmt.Sprintf("SideBySide/%s/jobs=%d", suites, jobs)]["ns/op"] }
		label := strings.Replace(path.Base(suites), "-", " `", 1) + "`"
		if release := path.Dir(suites); release != "." {
			label += " on " + release
		}
		fmt.Fprintf(&b, "| %s | %s |", label, duration(result(1)))
		for _, jobs := range []int{2, 4, 8, 16} {
			fmt.Fprintf(&b, " %.2g |", result(1)/result(jobs))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// table renders the comparisons that a run of benchmarks has measured.
func table(results map[string]map[string]float64) string {
	var b strings.Builder
	b.WriteString("| work | `utr` | peer | the peer takes | times as long | CPU time |\n|---|---|---|---|---|---|\n")
	for _, c := range comparisons {
		ours, peer := results[c.ours], results[c.peer]
		if ours == nil || peer == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.2g | %s |\n", c.work, duration(ours["ns/op"]), c.name,
			duration(peer["ns/op"]),
			peer["ns/op"]/ours["ns/op"], busy(ours, peer))
	}
	return b.String()
}

// busy renders the CPU times of processes.
func busy(ours, peer map[string]float64) string {
	const metric = "cpu-ns/op"
	if ours[metric] == 0 || peer[metric] == 0 {
		return ""
	}
	return duration(ours[metric]) + ", " + duration(peer[metric])
}

// duration renders nanoseconds with two or three digits.
func duration(ns float64) string {
	d := time.Duration(ns)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// parse reads the lines of Go benchmarks: by name without the number of threads, the values by unit.
func parse(output string) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for line := range strings.Lines(output) {
		words := strings.Fields(line)
		name, is := strings.CutPrefix(strings.Join(words[:min(1, len(words))], ""), "Benchmark")
		if !is || len(words) < 4 {
			continue
		}
		if at := strings.LastIndexByte(name, '-'); at > 0 {
			if _, err := strconv.Atoi(name[at+1:]); err == nil {
				name = name[:at]
			}
		}
		values := map[string]float64{}
		for pair := range slices.Chunk(words[2:], 2) {
			if number, err := strconv.ParseFloat(pair[0], 64); err == nil && len(pair) == 2 {
				values[pair[1]] = number
			}
		}
		out[name] = values
	}
	return out
}
