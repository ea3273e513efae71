package report

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/source"
)

// Annotated adds workflow commands of GitHub Actions to a report in a job log: an
// "::error file=…,line=…,col=…,title=…::message" for every red test, at the position of its first mismatch, and for
// every problem and break of the run. They precede the text of inner, whose last line stays last. Text of inner that looks like a
// command, for instance because it comes from a server, is altered.
func Annotated(inner Generator) Generator {
	return func(n result.Note) []byte {
		var out bytes.Buffer
		switch n := n.(type) {
		case result.TestFinished:
			if v := n.Verdict; v.Status.FailsRun() {
				out.WriteString(Annotation("error", placeOf(v), string(v.Status)+" "+title(v.Test), messageOf(v)))
			}
		case result.RunFinished:
			for _, p := range faults(n.Summary) {
				out.WriteString(Annotation("error", source.Position{}, "utr", p))
			}
		}
		text := bytes.ReplaceAll(inner(n), []byte("##["), []byte("# #["))
		out.Write(leadingColons.ReplaceAll(text, []byte("${1}: :")))
		return out.Bytes()
	}
}

// placeOf is the position of the first mismatch that has one, or of the test.
func placeOf(v *result.Verdict) source.Position {
	for _, m := range v.Mismatches {
		if !m.Position.IsZero() {
			return m.Position
		}
	}
	return v.Position
}

// messageOf is the reason of a verdict and a line for each mismatch.
func messageOf(v *result.Verdict) string {
	var lines []string
	if v.Reason != "" {
		lines = append(lines, clip(v.Reason, briefWidth))
	}
	for _, m := range v.Mismatches {
		line := m.Path + ": " + m.Message
		add(&line, m.Want != "" || m.Got != "", " (want %s, got %s)", cmp.Or(m.Want, nothing), cmp.Or(m.Got, nothing))
		lines = append(lines, clip(line, briefWidth))
	}
	return strings.Join(lines, "\n")
}

// Annotation returns a line with a workflow command of GitHub Actions. The level is
// error or warning. The position may be zero or have only a file.
func Annotation(level string, at source.Position, title, message string) string {
	properties := "title=" + commandProperty.Replace(oneLine(title))
	switch {
	case at.Line > 0:
		properties = fmt.Sprintf("file=%s,line=%d,col=%d,%s", commandProperty.Replace(at.File), at.Line, at.Column, properties)
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

// leadingColons matches "::" at the beginning of a line, after any white space. Like "##[" anywhere, it begins a command.
var leadingColons = regexp.MustCompile(`(?m)^([\s\v\x{85}\pZ]*)::`)
