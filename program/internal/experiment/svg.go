package experiment

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// The layout in units of the view box.
const (
	plotWidth  = 640
	leftMargin = 58
	rightEdge  = plotWidth - 14
	panel      = 84  // height of one policy's goodput
	gap        = 40  // between panels, with the heading of the next
	attempts   = 190 // height of the plot of attempts
)

// strokes distinguish policies without color.
var strokes = []string{"none", "2 3", "7 3", "9 3 2 3", "1 3", "none"}

// SVG writes the plots as an image that follows the reader's color scheme.
func (r *Report) SVG(w io.Writer) error {
	_, err := io.WriteString(w, r.svg())
	return err
}

func (r *Report) svg() string {
	goodput := 30 + len(r.Runs)*(panel+gap)
	legend := 22 * ((len(r.Runs) + 4) / 5)
	height := goodput + 70 + legend + attempts + 40
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="overload-title overload-what">`, plotWidth, height)
	fmt.Fprintf(&b, "\n<title id=\"overload-title\">%s</title>\n<desc id=\"overload-what\">%s</desc>\n",
		html.EscapeString(r.title()), html.EscapeString(r.describe()))
	b.WriteString("<style>\n" + svgStyle + "</style>\n")
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d"/>`+"\n", plotWidth, height)
	label(&b, 8, 18, "start", "head", "Goodput: successful operations per second. The line shows operations started.")
	top := 0.0
	for _, run := range r.Runs {
		top = max(top, peak(run.Series.Begun), peak(run.Series.Goodput))
	}
	top = roundUp(top)
	for i := range r.Runs {
		r.goodputPanel(&b, i, 30+i*(panel+gap)+22, top)
	}
	r.attemptsPlot(&b, goodput+14, legend)
	b.WriteString("</svg>\n")
	return b.String()
}

// describe returns the text alternative of the plots.
func (r *Report) describe() string {
	var parts []string
	for i := range r.Runs {
		run := &r.Runs[i]
		parts = append(parts, fmt.Sprintf("%s: goodput %s, %s and %s per second before, during and after the spike, back: %s",
			run.Policy.Name, whole(run.Phases[0].Goodput), whole(run.Phases[1].Goodput), whole(run.Phases[2].Goodput),
			run.back()))
	}
	return strings.Join(parts, "; ")
}

// svgStyle works in pages and in separate files.
//
//go:embed plot.css
var svgStyle string

// x returns the horizontal position of a time.
func (r *Report) x(at time.Duration) float64 {
	return leftMargin + float64(rightEdge-leftMargin)*float64(at)/float64(r.Config.Duration)
}

func (r *Report) goodputPanel(b *strings.Builder, i, y int, top float64) {
	run := &r.Runs[i]
	scale := func(v float64) float64 { return float64(y+panel) - float64(panel)*v/top }
	name := run.Policy.Name + ": " + run.Policy.What
	if before, rest := wrap(name, titleWidth); rest != "" {
		label(b, leftMargin, float64(y-21), "start", "", before)
		name = rest
	}
	label(b, leftMargin, float64(y-7), "start", "", name)
	r.spike(b, y, panel)
	for _, v := range []float64{0, top / 2, top} {
		r.gridLine(b, scale(v), whole(v))
	}
	line := r.points(run.Series.Goodput, scale)
	fmt.Fprintf(b, `<polygon class="area p%d" points="%.1f,%.1f %s %.1f,%.1f"/>`+"\n", i%len(strokes),
		r.x(step/2), scale(0), line, r.x(r.middle(len(run.Series.Goodput)-1)), scale(0))
	fmt.Fprintf(b, `<polyline class="begun" points="%s"/>`+"\n", r.points(run.Series.Begun, scale))
	if i == len(r.Runs)-1 {
		r.times(b, float64(y+panel))
	}
}

// attemptsPlot draws all policies in one plot with a logarithmic scale.
func (r *Report) attemptsPlot(b *strings.Builder, y, legend int) {
	label(b, 8, float64(y+18), "start", "head", "Requests reaching the server per second, by policy (logarithmic)")
	for i := range r.Runs {
		x, at := float64(leftMargin+110*(i%5)), float64(y+40+22*(i/5))
		fmt.Fprintf(b, `<line class="line p%d" stroke-dasharray="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`,
			i%len(strokes), strokes[i%len(strokes)], x, at-4, x+28, at-4)
		label(b, x+34, at, "start", "", r.Runs[i].Policy.Name)
	}
	most, least := 1.0, math.Inf(1)
	for i := range r.Runs {
		most = max(most, peak(r.Runs[i].Series.Attempts))
		for _, v := range r.Runs[i].Series.Attempts {
			if v > 0 {
				least = min(least, v)
			}
		}
	}
	low, high := math.Floor(math.Log10(min(least, most))), math.Ceil(math.Log10(most))
	if high <= low {
		high = low + 1
	}
	from := y + 34 + legend
	scale := func(v float64) float64 {
		part := 0.0
		if v > 0 {
			part = (math.Log10(v) - low) / (high - low)
		}
		return float64(from+attempts) - float64(attempts)*max(0, part)
	}
	r.spike(b, from, attempts)
	for e := low; e <= high; e++ {
		r.gridLine(b, scale(math.Pow(10, e)), whole(math.Pow(10, e)))
	}
	for i := range r.Runs {
		fmt.Fprintf(b, `<polyline class="line p%d" stroke-dasharray="%s" points="%s"/>`+"\n",
			i%len(strokes), strokes[i%len(strokes)], r.points(r.Runs[i].Series.Attempts, scale))
	}
	r.times(b, float64(from+attempts))
}

// titleWidth is how many characters of a title fit, in wide fonts.
const titleWidth = 78

// wrap splits a text at the last space that leaves at most width characters before it.
func wrap(s string, width int) (line, rest string) {
	if len(s) <= width {
		return s, ""
	}
	at := strings.LastIndexByte(s[:width+1], ' ')
	if at < 0 {
		return s, ""
	}
	return s[:at], s[at+1:]
}

func (r *Report) spike(b *strings.Builder, y, height int) {
	from, to := r.x(r.Config.spikeStart()), r.x(r.Config.spikeEnd())
	fmt.Fprintf(b, `<rect class="spike" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", from, y, to-from, height)
}

func (r *Report) gridLine(b *strings.Builder, y float64, text string) {
	fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, leftMargin, y, rightEdge, y)
	label(b, leftMargin-6, y+4, "end", "tick", text)
}

// times writes the labels of the time axis.
func (r *Report) times(b *strings.Builder, y float64) {
	for i := 0; i <= 6; i++ {
		at := r.Config.Duration * time.Duration(i) / 6
		anchor := "middle"
		if i == 6 {
			anchor = "end"
		}
		label(b, r.x(at), y+15, anchor, "tick", fmt.Sprintf("%.4g s", at.Seconds()))
	}
}

func (r *Report) middle(i int) time.Duration {
	return min(time.Duration(i)*step+step/2, r.Config.Duration)
}

func (r *Report) points(series []float64, scale func(float64) float64) string {
	out := make([]string, len(series))
	for i, v := range series {
		out[i] = fmt.Sprintf("%.1f,%.1f", r.x(r.middle(i)), scale(v))
	}
	return strings.Join(out, " ")
}

func label(b *strings.Builder, x, y float64, anchor, class, text string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class,
		html.EscapeString(text))
}

func peak(values []float64) float64 { return slices.Max(append([]float64{0}, values...)) }

// roundUp returns the next round number.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 4, 6, 8, 10} {
		if f*unit >= v {
			return f * unit
		}
	}
	return 10 * unit
}
