package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// Annotated adds workflow commands of GitHub Actions to a report in the log of a
// job: "::error file=…,line=…,col=…,title=…::message" for every
// test that failed or broke, at the place of its first mismatch, and for every
// problem of the run. They come before what inner says of the same note, so
// that the last line stays inner's. Lines of inner that would be taken for
// commands, because a suite or a server says so, are made harmless.
func Annotated(inner Generator) Generator {
	return func(n result.Note) []byte {
		var out bytes.Buffer
		switch n := n.(type) {
		case result.TestFinished:
			if v := n.Verdict; v.Status.Red() {
				out.WriteString(Annotation("error", placeOf(v), string(v.Status)+" "+title(v.Test), messageOf(v)))
			}
		case result.RunFinished:
			for _, p := range n.Summary.Problems {
				out.WriteString(Annotation("error", source.Position{}, "utr", p))
			}
		}
		out.Write(harmless(inner(n)))
		return out.Bytes()
	}
}

// placeOf is where a reader of a failed test looks first.
func placeOf(v *result.Verdict) source.Position {
	for _, m := range v.Mismatches {
		if !m.Position.IsZero() {
			return m.Position
		}
	}
	return v.Position
}

// messageOf is all that is wrong with a test, a line for each mismatch.
func messageOf(v *result.Verdict) string {
	var lines []string
	if v.Reason != "" {
		lines = append(lines, clip(v.Reason, briefWidth))
	}
	for _, m := range v.Mismatches {
		line := m.Path + ": " + m.Message
		add(&line, m.Want != "" || m.Got != "", " (want %s, got %s)", orNothing(m.Want), orNothing(m.Got))
		lines = append(lines, clip(line, briefWidth))
	}
	return strings.Join(lines, "\n")
}

// Annotation is a workflow command of GitHub Actions in a line. The level is error or
// warning; the place may be unknown, or a file without a line.
func Annotation(level string, at source.Position, title, message string) string {
	properties := "title=" + commandProperty(oneLine(title))
	switch {
	case at.Line > 0:
		properties = fmt.Sprintf("file=%s,line=%d,col=%d,%s", commandProperty(at.File), at.Line, at.Column, properties)
	case at.File != "":
		properties = "file=" + commandProperty(at.File) + "," + properties
	}
	return "::" + level + " " + properties + "::" + commandData(strings.Map(visible, message)) + "\n"
}

// commandData and commandProperty escape as the runner of GitHub Actions
// reads: the data of a command up to its line's end, its properties up to a
// comma or colon.
func commandData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func commandProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

// harmless breaks what would be a command in the log of a job: "::" at the
// beginning of a line, and "##[" anywhere.
func harmless(text []byte) []byte {
	if !bytes.Contains(text, []byte("::")) && !bytes.Contains(text, []byte("##[")) {
		return text
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		line = bytes.ReplaceAll(line, []byte("##["), []byte("# #["))
		if rest := bytes.TrimSpace(line); bytes.HasPrefix(rest, []byte("::")) {
			i := bytes.Index(line, []byte("::"))
			out.Write(line[:i])
			out.WriteString(": :")
			line = line[i+2:]
		}
		out.Write(line)
	}
	return out.Bytes()
}
