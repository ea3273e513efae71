// Package bench measures what utr does, beside peers that do the same work in
// the same run, and how each figure grows with the work. It asserts nothing
// about time. `make bench` runs it, docs/performance.md tells what came of it.
package bench

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/unified-test-runner/utr/internal/shared"
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

// book holds measurements in the order in which they were first made.
type book struct {
	groups  []*group
	wholes  []whole
	runs    []run
	sizes   []size
	missing []string // what was not measured, and why
}

// A group is a kind of work, done by several at several sizes.
type group struct {
	name, unit string // what is done; what its size counts
	series     []*series
}

// A series is one who does the work, or one way to do it.
type series struct {
	name   string
	peer   bool // something else than utr, to hold the first series against
	points []point
}

type point struct {
	size int
	time time.Duration // of one operation
}

// note writes a measurement down, over an earlier one of the same.
func (b *book) note(work, unit, who string, peer bool, p point) {
	g := find(&b.groups, func(g *group) bool { return g.name == work }, &group{name: work, unit: unit})
	s := find(&g.series, func(s *series) bool { return s.name == who }, &series{name: who, peer: peer})
	for i := range s.points {
		if s.points[i].size == p.size {
			s.points[i] = p
			return
		}
	}
	s.points = append(s.points, p)
}

// find gives the element that is wanted, or appends one.
func find[T any](list *[]*T, wanted func(*T) bool, other *T) *T {
	for _, v := range *list {
		if wanted(v) {
			return v
		}
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
	writeWholes(t, b.wholes)
	writeRuns(t, b.runs)
	writeSizes(t, b.sizes)
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
// ratio of utr to it. The exponent is that of the size by which the time grows:
// 1 is linear.
func (g *group) write(w io.Writer) {
	if len(g.series[0].points) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\t", g.name)
	for _, p := range g.series[0].points {
		fmt.Fprintf(w, "%d %s\t", p.size, g.unit)
	}
	fmt.Fprintln(w, "exponent\t")
	for _, s := range g.series {
		fmt.Fprintf(w, "%s\t", s.name)
		for _, p := range s.points {
			fmt.Fprintf(w, "%s\t", short(p.time))
		}
		fmt.Fprintf(w, "%s\t\n", exponent(s.points))
		if !s.peer {
			continue
		}
		fmt.Fprintf(w, "%s ÷ %s\t", g.series[0].name, s.name)
		for i, p := range s.points {
			fmt.Fprintf(w, "%s\t", ratio(g.series[0].points[i].time, p.time))
		}
		fmt.Fprintln(w, "\t")
	}
}

// exponent is that of the power of the size by which time grows, between the
// smallest and the largest.
func exponent(points []point) string {
	if len(points) < 2 {
		return ""
	}
	first, last := points[0], points[len(points)-1]
	if first.size >= last.size || first.time <= 0 || last.time <= 0 {
		return ""
	}
	x := math.Log(float64(last.time)/float64(first.time)) / math.Log(float64(last.size)/float64(first.size))
	return strconv.FormatFloat(x, 'f', 2, 64)
}

func ratio(a, b time.Duration) string {
	if b <= 0 {
		return "–"
	}
	return strconv.FormatFloat(float64(a)/float64(b), 'f', 2, 64)
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
			figures.note(work, unit, who, peer, point{n, b.Elapsed() / time.Duration(b.N)})
		})
	}
}

// official is the folder of the official suites, or "" if they are not there,
// which the tables then say.
func official(b *testing.B, elements ...string) string {
	b.Helper()
	dir, found := shared.Find(b, append([]string{"specifications"}, elements...)...)
	if !found {
		figures.missing = append(figures.missing, b.Name()+" of the official suites, which are not there")
		return ""
	}
	return dir
}

// ownSuites is the folder of the suites that utr carries.
const ownSuites = "../../specs"

// corpus is the folder of the official suites, or that of our own instead.
func corpus(b *testing.B) string {
	b.Helper()
	if dir := official(b); dir != "" {
		return dir
	}
	return ownSuites
}

// The tables say what was measured.
func TestBook(t *testing.T) {
	var b book
	for _, n := range []int{10, 40, 160} {
		b.note("work", "files", "utr", false, point{n, time.Duration(n) * time.Millisecond})
		b.note("work", "files", "peer", true, point{n, 2 * time.Duration(n*n) * time.Microsecond})
	}
	b.note("work", "files", "utr", false, point{160, 320 * time.Millisecond})
	b.note("work", "files", "utr otherwise", false, point{10, time.Second})
	for _, n := range []int{10, 1000} {
		b.size(size{"JSON lines", n, 999, time.Second})
		b.size(size{"JSON lines", n, int64(100 + 300*n), time.Duration(n) * time.Millisecond})
	}
	b.missing = append(b.missing, "more")
	var out strings.Builder
	if err := b.write(&out); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 0 {
			got = append(got, fields)
		}
	}
	want := "[[work 10 files 40 files 160 files exponent] [utr 10.0 ms 40.0 ms 320 ms 1.25] [peer 200 µs 3.20 ms 51.2 ms 2.00] [utr ÷ peer 50.00 12.50 6.25] [utr otherwise 1.00 s] [report 10 verdicts 1000 verdicts bytes a verdict exponent] [JSON lines 10.0 ms 3 kB 1.00 s 300 kB 300 1.00] [not measured: more]]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestShort(t *testing.T) {
	for _, row := range []struct {
		d            time.Duration
		want, reason string
	}{
		{0, "0 ns", "nothing"},
		{999, "999 ns", "below a microsecond"},
		{1234, "1.23 µs", "three digits"},
		{12345678, "12.3 ms", "one place less for each digit"},
		{1500 * time.Second, "1500 s", "never fewer than the digits before the point"},
	} {
		if got := short(row.d); got != row.want {
			t.Errorf("%s: %s, want %s", row.reason, got, row.want)
		}
	}
}
