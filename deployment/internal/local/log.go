package local

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/embedded"
)

// Limits of what is read and quoted.
const (
	tailLines = 12
	tailWidth = 400       // characters of a line
	tailBytes = 64 << 10  // read for a tail
	scanBytes = 2 << 20   // read for the lines of a period
	maxLines  = 2_000     // returned for a period, of each log
	lineBytes = 256 << 10 // longest line
)

// tail returns the last lines of a log, shortened.
func tail(path string) string {
	text, err := lastBytes(path, tailBytes)
	if err != nil {
		return fmt.Sprintf("(cannot read its log: %v)", err)
	}
	return strings.Join(lastLines(string(text)), "\n")
}

func lastLines(text string) (kept []string) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines[max(0, len(lines)-tailLines):] {
		kept = append(kept, shorten(line))
	}
	return kept
}

func shorten(line string) string {
	line = strings.ToValidUTF8(strings.TrimRight(line, "\r"), "?")
	if runes := []rune(line); len(runes) > tailWidth {
		return string(runes[:tailWidth]) + "…"
	}
	return line
}

// quoted formats a program's output as the end of an error message.
func quoted(text string) string {
	if strings.TrimSpace(text) == "" {
		return "; no output"
	}
	return "; its last output:\n    " + strings.Join(lastLines(text), "\n    ")
}

// lastBytes reads the end of a file, starting at a line.
func lastBytes(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	from := max(0, size-most)
	text, err := io.ReadAll(io.NewSectionReader(f, from, size-from))
	if err != nil || from == 0 {
		return text, err
	}
	_, text, _ = bytes.Cut(text, []byte("\n"))
	return text, nil
}

// timeOf returns the timestamp of a line. Since 4.4 a line is a JSON document; before, it begins with the timestamp.
func timeOf(line string) (time.Time, bool) {
	if strings.HasPrefix(line, "{") {
		var doc struct {
			T struct {
				Date time.Time `json:"$date"`
			} `json:"t"`
		}
		err := json.Unmarshal([]byte(line), &doc)
		return doc.T.Date, err == nil && !doc.T.Date.IsZero()
	}
	word, _, _ := strings.Cut(line, " ")
	at, err := time.Parse("2006-01-02T15:04:05.000Z0700", word) // iso8601-local or iso8601-utc
	return at, err == nil
}

// ReadLogs returns the lines of some logs from one time to another, both included, oldest first. Keys are host:port.
// A line without a timestamp belongs to the line before it. Unreadable logs are omitted.
func ReadLogs(paths map[string]string, from, to time.Time) (out []embedded.LogLine) {
	for server, path := range paths {
		text, _ := lastBytes(path, scanBytes)
		var at time.Time
		scanner := bufio.NewScanner(bytes.NewReader(text))
		scanner.Buffer(nil, lineBytes)
		for left := maxLines; left > 0 && scanner.Scan(); {
			if t, ok := timeOf(scanner.Text()); ok {
				at = t
			}
			if !at.IsZero() && !at.Before(from) && !at.After(to) {
				out = append(out, embedded.LogLine{Time: at, Server: server, Text: shorten(scanner.Text())})
				left--
			}
		}
	}
	slices.SortStableFunc(out, func(a, b embedded.LogLine) int { return a.Time.Compare(b.Time) })
	return out
}
