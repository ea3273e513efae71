package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
)

// print writes to standard output.
func (c *invocation) print(text string) error {
	if _, err := io.WriteString(c.out(), text); err != nil {
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}

// conclude prints the final output of a command. The command may have failed.
func (c *invocation) conclude(text string, failed bool) error {
	if err := c.print(text); err != nil || !failed {
		return err
	}
	return exit(ExitFailed)
}

// lines is the output of a command: text, or JSON lines.
type lines struct {
	strings.Builder
	asJSON bool
}

// add adds a record. A nil record is for people only.
func (l *lines) add(record any, format string, args ...any) {
	switch {
	case !l.asJSON:
		fmt.Fprintf(l, format, args...)
	case record != nil:
		l.WriteString(jsonLine(record))
	}
}

// jsonLine formats a value as a line of JSON. Every type here can be marshaled.
func jsonLine(v any) string {
	text, _ := json.Marshal(v)
	return string(text) + "\n"
}

func jsonPage(v any) string {
	text, _ := json.MarshalIndent(v, "", "  ")
	return string(text) + "\n"
}

func jsonLines[T any](all []T) string {
	return strings.Join(mapSlice(all, func(one T) string { return jsonLine(one) }), "")
}

func mapSlice[T, U any](all []T, apply func(T) U) (results []U) {
	for _, one := range all {
		results = append(results, apply(one))
	}
	return results
}

// note prints a message. On a terminal it takes the place of the status line, and that is drawn again below it.
func (c *invocation) note(line string) {
	if c.statusLine {
		_, _ = io.WriteString(c.out(), report.Wipe)
	}
	_, _ = fmt.Fprintf(c.errors, "utr: %s\n", line)
}

// fileReport is a report file, unless the name is "".
type fileReport struct {
	name  string
	write func(io.Writer) error
}

func (c *invocation) printResults(text func(io.Writer) error, files ...fileReport) error {
	for _, f := range files {
		if err := reportfile.Write(f.name, f.write); err != nil {
			return err
		}
	}
	var b strings.Builder
	if err := text(&b); err != nil {
		return err
	}
	return c.print(b.String())
}

// progress returns a function that replaces a status line on a terminal; "" clears it.
func (c *invocation) progress(to io.Writer) func(line string) {
	_, terminal := c.program.Terminal()
	last := ""
	return func(line string) {
		if terminal && line != last {
			_, _ = fmt.Fprintf(to, "\r\x1b[K%s", line)
		}
		last = line
	}
}
