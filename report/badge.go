package report

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/unified-test-runner/utr/result"
)

// Badge draws an SVG image at the end of the run: "utr" and the counts, green, red,
// or grey if no test passed. It has no external references.
func Badge() Generator {
	var out bytes.Buffer
	return hooks{finish: func(s result.Summary) { badge(&out, "utr", headline(s), badgeColor(s)) }}.generator(&out)
}

// The colors give white text a contrast of at least 4.5.
func badgeColor(s result.Summary) string {
	switch {
	case s.ExitCode() != 0:
		return "#b3261e"
	case s.Passed == 0:
		return "#6b7280"
	default:
		return "#1f7a33"
	}
}

// badge draws a label and a message. textLength makes the assumed letter width true in every font.
func badge(out *bytes.Buffer, label, message, color string) {
	const letter, padding, height = 7, 6, 20
	left := letter*utf8.RuneCountInString(label) + 2*padding
	right := letter*utf8.RuneCountInString(message) + 2*padding
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" role="img" aria-label="%[3]s: %[4]s">
<title>%[3]s: %[4]s</title>
<clipPath id="r"><rect width="%[1]d" height="%[2]d" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="%[5]d" height="%[2]d" fill="#444"/><rect x="%[5]d" width="%[6]d" height="%[2]d" fill="%[7]s"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="%[8]d" y="14" textLength="%[9]d">%[3]s</text>
<text x="%[10]d" y="14" textLength="%[11]d">%[4]s</text>
</g>
</svg>
`, left+right, height, label, message, left, right, color, padding, left-2*padding, left+padding, right-2*padding)
}
