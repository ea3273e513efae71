package report

import (
	"bytes"
	"fmt"

	"github.com/unified-test-runner/utr/result"
)

// Progress adds a status line to a report that goes to a terminal. The line is
// wiped before the report goes on and drawn anew below it, and is gone at the
// end. width gives the terminal's columns at the moment.
func Progress(inner Generator, width func() int) Generator {
	const wipe = "\r\x1b[K"
	var (
		total, done, failed int
		current             string
		drawn               bool
	)
	return func(n result.Note) []byte {
		var out bytes.Buffer
		body := inner(n)
		if drawn {
			out.WriteString(wipe)
			drawn = false
		}
		out.Write(body)
		switch n := n.(type) {
		case result.RunStarted:
			total = n.Total
		case result.TestStarted:
			current = title(n.Test)
		case result.TestFinished:
			done++
			if n.Verdict.Status.Red() {
				failed++
			}
		case result.RunFinished:
			return out.Bytes()
		}
		line := fmt.Sprintf("%d/%d", done, total)
		if failed > 0 {
			line += fmt.Sprintf(", %d failed", failed)
		}
		// One column stays free, so that no terminal wraps the line.
		if w := width() - 1; w > 1 {
			out.WriteString(fit(line+"  "+current, w))
			drawn = true
		}
		return out.Bytes()
	}
}
