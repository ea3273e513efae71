package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/unified-test-runner/utr/result"
)

// Annotated adds workflow commands of GitHub Actions to a report in a job log, at its end: an
// "::error file=…,line=…,col=…,title=…::message" for each cause of failures, at the position of a first mismatch, and
// for every problem and break of the run. A job shows ten of them, so new causes come first, then those with the most
// tests. They precede the text of inner, whose last line stays last. Text of inner that looks like a command, for
// instance because it comes from a server, is altered.
func Annotated(inner Generator, earlier ...*EarlierRun) Generator {
	causes := NewCauses(earlier)
	return func(n result.Note) []byte {
		var out bytes.Buffer
		switch n := n.(type) {
		case result.TestFinished:
			causes.Add(n.Verdict)
			if n.Verdict.Status == result.Passed {
				for _, w := range n.Verdict.Warnings {
					out.WriteString(Annotation("warning", n.Verdict.Position, title(n.Verdict.Test), w))
				}
			}
		case result.RunFinished:
			for _, c := range causes.Sorted() {
				out.WriteString(Annotation("error", c.At, string(c.Status)+" "+c.headline(), strings.Join(c.lines(), "\n")))
			}
			for _, p := range Faults(n.Summary) {
				out.WriteString(Annotation("error", result.Position{}, "utr", p))
			}
		}
		text := bytes.ReplaceAll(inner(n), []byte("##["), []byte("# #["))
		out.Write(leadingColons.ReplaceAll(text, []byte("${1}: :")))
		return out.Bytes()
	}
}

// Annotation returns a line with a workflow command of GitHub Actions. The level is
// error or warning. The position may be zero or have only a file.
func Annotation(level string, at result.Position, title, message string) string {
	properties := "title=" + commandProperty.Replace(oneLine(title))
	switch {
	case at.Line > 0:
		properties = fmt.Sprintf("file=%s,line=%d,col=%d,%s", commandProperty.Replace(at.File), at.Line, at.Column,
			properties)
	case at.File != "":
		properties = "file=" + commandProperty.Replace(at.File) + "," + properties
	}
	return "::" + level + " " + properties + "::" + commandData.Replace(strings.Map(visible, message)) + "\n"
}

// The runner of GitHub Actions ends data at the end of the line, and a property at a comma or colon.
var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// leadingColons matches "::" at the beginning of a line, after any white space. Like "##[" anywhere, it begins a
// command.
var leadingColons = regexp.MustCompile(`(?m)^([\s\v\x{85}\pZ]*)::`)
