package counter

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// The layout in units of the view box.
const (
	plotWidth  = 900
	rowHeight  = 34
	leftMargin = 130
	topMargin  = 52
)

// SVG draws the error of each counter in percent of the events, in the reader's color scheme.
func (r Report) SVG(w io.Writer) error {
	strategies := names(r.Cells)
	faults := slices.DeleteFunc(Faults(), func(f Fault) bool {
		return !slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Fault == f })
	})
	height := topMargin + rowHeight*len(strategies) + 12
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="counter-title counter-what">`, plotWidth, height)
	fmt.Fprintf(&b, "\n<title id=\"counter-title\">What a counter says after faults</title>\n<desc id=\"counter-what\">%s</desc>\n<style>\n%s</style>\n",
		html.EscapeString(r.describe()), svgStyle)
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d"/>`+"\n", plotWidth, height)
	text(&b, 8, 18, "start", "head", "Events counted too little (left) or too much (right), in percent of the events")
	column := float64(plotWidth-leftMargin-14) / float64(max(1, len(faults)))
	for i, f := range faults {
		text(&b, leftMargin+column*(float64(i)+.5), topMargin-10, "middle", "tick", string(f))
	}
	for y, s := range strategies {
		top := float64(topMargin + rowHeight*y)
		text(&b, 8, top+rowHeight/2+4, "start", "", s)
		for x, f := range faults {
			i := slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Strategy == s && c.Fault == f })
			if i >= 0 {
				r.Cells[i].bar(&b, leftMargin+column*(float64(x)+.5), top, column/2-14)
			}
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// svgStyle works in pages and in separate files.
//
//go:embed plot.css
var svgStyle string

// wrong is the error of the counter in percent of the events. With lasting faults, events
// for which the application received an error may be missing.
func (c Cell) wrong() float64 {
	least := c.Events
	if c.Fault.lasts() {
		least -= c.Errors
	}
	off := max(0, c.Counter-c.Events) + min(0, c.Counter-least)
	return 100 * float64(off) / float64(max(1, c.Events))
}

// bar draws a cell around the middle of its column.
func (c Cell) bar(b *strings.Builder, middle, top, reach float64) {
	wrong := c.wrong()
	length := min(100, max(-100, wrong)) / 100 * reach
	fmt.Fprintf(b, `<line class="zero" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, middle, top+3, middle, top+rowHeight-3)
	class, anchor, at := "over", "start", middle+length+4
	if wrong < 0 {
		class, anchor, at = "under", "end", middle+length-4
	}
	if wrong != 0 {
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%d"/>`, class, min(middle, middle+length),
			top+9, max(length, -length), rowHeight-18)
	}
	text(b, at, top+rowHeight/2+4, anchor, "tick", signed(wrong)+"%")
}

// describe returns the text alternative of the plot.
func (r Report) describe() string {
	var parts []string
	for _, c := range r.Cells {
		parts = append(parts, fmt.Sprintf("%s, %s: %s percent", c.Strategy, c.Fault, signed(c.wrong())))
	}
	return strings.Join(parts, "; ")
}

func text(b *strings.Builder, x, y float64, anchor, class, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class,
		html.EscapeString(s))
}

// signed is a number with its sign; 0 has none.
func signed(v float64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.0f", v)
}
