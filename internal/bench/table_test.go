// Package bench measures what utr does, beside peers that do the same work in
// the same run, and how each figure grows with the work. It asserts nothing
// about time. `make bench` runs it, docs/performance.md has what came of it.
package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestMain prints the tables of the measurements below Go's own lines.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := figures.write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// figures is what the benchmarks of this run have measured: they have no other
// way to hand it to TestMain.
var figures book

// A book holds measurements in the order in which they were first made.
type book struct {
	groups  []*group
	runs    []run
	missing []string // what was not measured, and why
}

// A group is a kind of work, done by several at several sizes.
type group struct {
	name   string
	unit   string   // what its size counts
	labels []string // of what stands in for sizes, where these do not grow: times are added up
	series []*series
}

// A series is one who does the work, or one way to do it.
type series struct {
	name   string
	peer   bool // something else than utr, to compare the first series with
	points []point
}

// A point is a measurement. What has bytes is a report of so many verdicts.
type point struct {
	size  int
	time  time.Duration // of one operation
	bytes int64
}

// note writes a measurement down, over an earlier one of the same.
func (b *book) note(work group, who string, peer bool, p point) {
	g := find(&b.groups, func(g *group) bool { return g.name == work.name }, &work)
	s := find(&g.series, func(s *series) bool { return s.name == who }, &series{name: who, peer: peer})
	s.points = append(slices.DeleteFunc(s.points, func(q point) bool { return q.size == p.size }), p)
}

// find gives the element that is meant, or appends one.
func find[T any](list *[]*T, meant func(*T) bool, other *T) *T {
	if i := slices.IndexFunc(*list, meant); i >= 0 {
		return (*list)[i]
	}
	*list = append(*list, other)
	return other
}

// write prints the tables, and nothing if nothing was measured.
func (b *book) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, g := range b.groups {
		g.write(t)
	}
	writeRuns(t, b.runs)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range b.missing {
		if _, err := fmt.Fprintf(w, "\nnot measured: %s\n", m); err != nil {
			return err
		}
	}
	return nil
}

// write prints a group: a line for each series, and one for each peer with the
// ratio of the first to it. The exponent is that of the size by which the time
// grows: 1 is linear.
func (g *group) write(w io.Writer) {
	head, first := slices.Clone(g.labels), g.series[0].points
	if g.labels == nil {
		for _, p := range first {
			head = append(head, fmt.Sprintf("%d %s", p.size, g.unit))
			if p.bytes > 0 {
				head = append(head, "")
			}
		}
	}
	switch {
	case g.labels != nil:
		head = append(head, "together")
	case first[0].bytes > 0:
		head = append(head, "bytes each", "exponent")
	default:
		head = append(head, "exponent")
	}
	fmt.Fprintf(w, "\n%s\t%s\t\n", g.name, strings.Join(head, "\t"))
	for _, s := range g.series {
		fmt.Fprintf(w, "%s\t%s\t\n", s.name, strings.Join(g.cells(s), "\t"))
		if s.peer && g.labels == nil {
			fmt.Fprintf(w, "%s ÷ %s\t", g.series[0].name, s.name)
			for i, p := range s.points {
				fmt.Fprintf(w, "%.2f\t", float64(first[i].time)/float64(max(1, p.time)))
			}
			fmt.Fprintln(w)
		}
	}
}

// cells are those of a series: its times, and what comes of them together.
func (g *group) cells(s *series) (cells []string) {
	var together time.Duration
	for _, p := range s.points {
		together += p.time
	}
	for label := range g.labels {
		i := slices.IndexFunc(s.points, func(p point) bool { return p.size == label })
		if i < 0 {
			cells = append(cells, "–")
		} else {
			cells = append(cells, short(s.points[i].time))
		}
	}
	if g.labels != nil {
		return append(cells, short(together))
	}
	for _, p := range s.points {
		cells = append(cells, short(p.time))
		if p.bytes > 0 {
			cells = append(cells, fmt.Sprintf("%d kB", p.bytes/1000))
		}
	}
	first, last := s.points[0], s.points[len(s.points)-1]
	if more := last.size - first.size; first.bytes > 0 && more > 0 {
		cells = append(cells, fmt.Sprint((last.bytes-first.bytes)/int64(more)))
	}
	return append(cells, exponent(first, last))
}

// exponent is that of the power of the size by which time grows.
func exponent(first, last point) string {
	if first.size >= last.size || first.time <= 0 || last.time <= 0 {
		return ""
	}
	x := math.Log(float64(last.time)/float64(first.time)) / math.Log(float64(last.size)/float64(first.size))
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// short gives a duration in three digits.
func short(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= u.unit {
			v := float64(d) / float64(u.unit)
			return strconv.FormatFloat(v, 'f', max(0, 2-int(math.Log10(v))), 64) + " " + u.name
		}
	}
	return fmt.Sprintf("%d ns", d)
}

// measure does some work at several sizes, as sub-benchmarks. do loops.
func measure(b *testing.B, work, unit, who string, sizes []int, do func(b *testing.B, size int)) {
	measured(b, work, unit, who, false, sizes, do)
}

// measurePeer has another do the work of the first series of the group, at the
// same sizes.
func measurePeer(b *testing.B, work, unit, who string, sizes []int, do func(b *testing.B, size int)) {
	measured(b, work, unit, who, true, sizes, do)
}

func measured(b *testing.B, work, unit, who string, peer bool, sizes []int, do func(b *testing.B, size int)) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%s/%s=%d", strings.ReplaceAll(who, " ", "_"), unit, n), func(b *testing.B) {
			b.ReportAllocs()
			do(b, n)
			figures.note(group{name: work, unit: unit}, who, peer, point{size: n, time: b.Elapsed() / time.Duration(b.N)})
		})
	}
}

// perUnit reports the time of one of n that each turn of a loop does.
func perUnit(b *testing.B, n int, unit string) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/"+unit)
}

// ownSuites is the folder of the suites that utr carries.
const ownSuites = "../../specs"

// official is the folder of the official suites, or "" if they are not there,
// which the tables then say.
func official(b *testing.B, elements ...string) string {
	b.Helper()
	dir, found := testkit.FindOfficial(b, elements...)
	if !found {
		figures.missing = append(figures.missing, b.Name()+" of the official suites, which are not there")
		return ""
	}
	return dir
}

// corpus is the folder of the official suites, or that of our own instead.
func corpus(b *testing.B) string {
	b.Helper()
	return cmp.Or(official(b), ownSuites)
}

// The tables say what was measured.
func TestBook(t *testing.T) {
	var b book
	work := group{name: "work", unit: "files"}
	for _, n := range []int{10, 40, 160} {
		b.note(work, "utr", false, point{size: n, time: time.Duration(n) * time.Millisecond})
		b.note(work, "peer", true, point{size: n, time: 2 * time.Duration(n*n) * time.Microsecond})
	}
	b.note(work, "utr", false, point{size: 160, time: 320 * time.Millisecond})
	b.note(work, "utr otherwise", false, point{size: 10, time: time.Second})
	for _, n := range []int{10, 1000} {
		b.note(group{name: "report", unit: "verdicts"}, "JSON", false, point{n, time.Duration(n) * time.Millisecond, int64(100_000 + 300*n)})
	}
	whole := group{name: "tests", labels: []string{"reads", "writes"}}
	b.note(whole, "reference", false, point{size: 1, time: time.Second})
	b.note(whole, "named", true, point{size: 0, time: 33 * time.Second})
	b.note(whole, "named", true, point{size: 1, time: 20 * time.Second})
	b.missing = append(b.missing, "more")
	var out strings.Builder
	if err := b.write(&out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 0 {
			got = append(got, strings.Join(fields, " "))
		}
	}
	for i, want := range []string{"work 10 files 40 files 160 files exponent", "utr 10.0 ms 40.0 ms 320 ms 1.25", "peer 200 µs 3.20 ms 51.2 ms 2.00",
		"utr ÷ peer 50.00 12.50 6.25", "utr otherwise 1.00 s", "report 10 verdicts 1000 verdicts bytes each exponent",
		"JSON 10.0 ms 103 kB 1.00 s 400 kB 300 1.00", "tests reads writes together", "reference – 1.00 s 1.00 s", "named 33.0 s 20.0 s 53.0 s",
		"not measured: more"} {
		if i >= len(got) || got[i] != want {
			t.Fatalf("line %d is not %q in\n%s", i, want, out.String())
		}
	}
	for d, want := range map[time.Duration]string{0: "0 ns", 999: "999 ns", 1234: "1.23 µs", 12345678: "12.3 ms", 1500 * time.Second: "1500 s"} {
		if got := short(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}
