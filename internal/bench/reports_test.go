package bench

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// size is how large a report of so many verdicts is.
type size struct {
	format   string
	verdicts int
	bytes    int64
	time     time.Duration
}

// writeSizes prints how reports grow: a line for each format, with the time
// and the bytes of each size, and the bytes that each verdict adds.
func writeSizes(w io.Writer, sizes []size) {
	if len(sizes) == 0 {
		return
	}
	var formats []string
	of := map[string][]size{}
	for _, s := range sizes {
		if of[s.format] == nil {
			formats = append(formats, s.format)
		}
		of[s.format] = append(of[s.format], s)
	}
	fmt.Fprint(w, "\nreport\t")
	for _, s := range of[formats[0]] {
		fmt.Fprintf(w, "%d verdicts\t\t", s.verdicts)
	}
	fmt.Fprintln(w, "bytes a verdict\texponent\t")
	for _, f := range formats {
		fmt.Fprintf(w, "%s\t", f)
		var points []point
		for _, s := range of[f] {
			fmt.Fprintf(w, "%s\t%s\t", short(s.time), bytesText(s.bytes))
			points = append(points, point{s.verdicts, s.time})
		}
		first, last := of[f][0], of[f][len(of[f])-1]
		each := float64(last.bytes) / float64(last.verdicts)
		if last.verdicts > first.verdicts {
			each = float64(last.bytes-first.bytes) / float64(last.verdicts-first.verdicts)
		}
		fmt.Fprintf(w, "%.0f\t%s\t\n", each, exponent(points))
	}
}

func bytesText(n int64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}

// counter counts what is written.
type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

// verdictsOf repeats the verdicts of a run, one in a hundred of which failed
// with all that explains it, as tests of other files and names.
func verdictsOf(n int) []*result.Verdict {
	failed := &result.Verdict{
		Status: result.Failed, Reason: "",
		Mismatches: []result.Mismatch{{Path: "expectEvents[0].events[1].commandStartedEvent.command.limit", Message: "the numbers differ", Want: "1", Got: "2", Diff: "- 1\n+ 2"}},
		Operations: []result.OperationLog{{Name: "find", Object: "collection0", Duration: time.Millisecond}},
		Rerun:      []string{"utr", "run", "--run", "^specs/find.yml: a test$", "specs/find.yml"},
	}
	var log result.ClientLog
	for i := range 40 {
		log.Events = append(log.Events, result.Event{Sequence: int64(i + 1), Time: time.Unix(1_700_000_000, 0).UTC(), Type: result.ConnectionCheckedOut, Address: "127.0.0.1:27017", Pool: &result.PoolEvent{ConnectionID: 4}})
	}
	failed.Clients = []result.ClientLog{log}
	list := make([]*result.Verdict, n)
	for i := range list {
		v := result.Verdict{Status: result.Passed}
		switch {
		case i%100 == 0:
			v = *failed
		case i%7 == 0:
			v = result.Verdict{Status: result.Skipped, SkipKind: result.SkipRequirement, Reason: "needs server 4.2.99 or earlier, the deployment has 8.0.12"}
		}
		v.Test = result.TestID{File: fmt.Sprintf("specs/file-%d.yml", i/200), Suite: fmt.Sprintf("suite %d", i/200), Description: fmt.Sprintf("operation %d is retried after an error", i), Deployment: "replicaset 8.0", Iteration: 1}
		v.Duration, v.Began = 12*time.Millisecond, time.Unix(1_700_000_000+int64(i), 0).UTC()
		list[i] = &v
	}
	return list
}

// BenchmarkReports writes reports of a thousand, ten thousand and fifty
// thousand verdicts in each form. One in a hundred failed.
func BenchmarkReports(b *testing.B) {
	forms := []struct {
		name     string
		generate func() report.Generator
	}{
		{"text", func() report.Generator { return report.Text(report.TextOptions{}) }},
		{"JSON lines", report.JSON}, {"JUnit", report.JUnit}, {"TAP", report.TAP}, {"Markdown", report.Markdown},
		{"HTML", func() report.Generator { return report.HTML() }},
	}
	for _, n := range []int{1000, 10_000, 50_000} {
		verdicts := verdictsOf(n)
		var s result.Summary
		for _, v := range verdicts {
			s.Add(v)
		}
		for _, f := range forms {
			b.Run(fmt.Sprintf("%s/verdicts=%d", f.name, n), func(b *testing.B) {
				b.ReportAllocs()
				var out counter
				for b.Loop() {
					out = counter{}
					r := report.New("nowhere", f.generate(), &out)
					r.Note(result.RunStarted{Total: n})
					for _, v := range verdicts {
						r.Note(result.TestFinished{Verdict: v})
					}
					r.Note(result.RunFinished{Summary: s})
				}
				b.ReportMetric(float64(out.bytes)/float64(n), "bytes/verdict")
				figures.size(size{f.name, n, out.bytes, b.Elapsed() / time.Duration(b.N)})
			})
		}
	}
}

// size notes a measurement down, over an earlier one of the same.
func (b *book) size(s size) {
	for i, other := range b.sizes {
		if other.format == s.format && other.verdicts == s.verdicts {
			b.sizes[i] = s
			return
		}
	}
	b.sizes = append(b.sizes, s)
}
