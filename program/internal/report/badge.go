package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/unified-test-runner/utr/result"
)

// Badge draws an SVG image at the end of the run: "utr" and the counts, green, red,
// or gray if no test passed. It has no external references.
func Badge() Generator {
	var out bytes.Buffer
	return hooks{finish: func(s result.Summary) { badge(&out, headline(s), badgeColor(s)) }}.generator(&out)
}

// Endpoint returns a badge as JSON for the endpoint of shields.io, with the text and the color of Badge.
func Endpoint(label string, s result.Summary) []byte {
	text, _ := json.Marshal(struct {
		SchemaVersion int    `json:"schemaVersion"`
		Label         string `json:"label"`
		Message       string `json:"message"`
		Color         string `json:"color"`
	}{1, label, headline(s), strings.TrimPrefix(badgeColor(s), "#")}) // strings can be marshaled
	return append(text, '\n')
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

// badge draws the label "utr" and a message. textLength makes the assumed letter width true in every font.
func badge(out *bytes.Buffer, message, color string) {
	const letter, padding, height = 7, 6, 20
	const left = letter*len("utr") + 2*padding
	right := letter*utf8.RuneCountInString(message) + 2*padding
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" role="img" aria-label="utr: %[3]s">
<title>utr: %[3]s</title>
<clipPath id="r"><rect width="%[1]d" height="%[2]d" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="%[4]d" height="%[2]d" fill="#444"/><rect x="%[4]d" width="%[5]d" height="%[2]d" fill="%[6]s"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="%[7]d" y="14" textLength="%[8]d">utr</text>
<text x="%[9]d" y="14" textLength="%[10]d">%[3]s</text>
</g>
</svg>
`, left+right, height, message, left, right, color, padding, left-2*padding, left+padding, right-2*padding)
}
