package process

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/server"
)

// remembered is how many lines getLog has.
const remembered = 1024

// journal writes the log of one process in mongod's structured form, one JSON
// document a line. Two processes may write one file: the process itself, and
// the host that serves its clients.
type journal struct {
	verbosity int
	slow      time.Duration

	mu    sync.Mutex
	out   io.Writer
	file  *os.File // what Close closes
	lines []string // a ring
	total int
}

// openJournal opens the log file of a process, or takes w if it has none.
func openJournal(path string, verbosity, slowMS int, w io.Writer) (*journal, error) {
	j := &journal{verbosity: verbosity, slow: time.Duration(slowMS) * time.Millisecond, out: w}
	if path == "" {
		return j, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	j.out, j.file = f, f
	return j, nil
}

// Close closes the file.
func (j *journal) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// Commands makes all commands be logged from the first level of verbosity on,
// otherwise the slow ones.
func (j *journal) Commands(took time.Duration) bool { return j.verbosity > 0 || took >= j.slow }

// Lines are what is remembered, oldest first.
func (j *journal) Lines() ([]string, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]string, 0, len(j.lines))
	for i := range j.lines {
		out = append(out, j.lines[(j.total+i)%len(j.lines)])
	}
	return out, j.total
}

// Log writes a line. That it can not be written is told to nobody: the log is
// where that would be told.
func (j *journal) Log(e server.Entry) {
	line := render(time.Now(), e)
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) < remembered {
		j.lines = append(j.lines, line)
	} else {
		j.lines[j.total%remembered] = line
	}
	j.total++
	if j.out != nil {
		_, _ = io.WriteString(j.out, line+"\n")
	}
}

// render writes an entry as mongod does.
func render(at time.Time, e server.Entry) string {
	attr := ""
	if len(e.Attr) > 0 {
		text, err := bson.MarshalExtJSON(e.Attr, false, false)
		if err != nil {
			text = []byte("{}")
		}
		attr = `,"attr":` + string(text)
	}
	pad := func(s string, n int) string { return strings.Repeat(" ", max(n-len(s), 0)) }
	id := fmt.Sprint(e.ID)
	return fmt.Sprintf(`{"t":{"$date":"%s"},"s":"%s",  "c":"%s",%s "id":%s,%s"ctx":"%s","msg":%s%s}`,
		at.Format("2006-01-02T15:04:05.000-07:00"), e.Severity, e.Component, pad(e.Component, 8), id, pad(id, 7)+" ",
		e.Context, quoted(e.Message), attr)
}

// quoted is a text as JSON.
func quoted(s string) string {
	text, err := bson.MarshalExtJSON(bson.D{{Key: "s", Value: s}}, false, false)
	if err != nil {
		return `""`
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"s":`), "}")
}

func (j *journal) info(component string, id int, context, message string, attr bson.D) {
	j.Log(server.Entry{Severity: "I", Component: component, ID: id, Context: context, Message: message, Attr: attr})
}

func (j *journal) fail(component string, id int, context, message string, attr bson.D) {
	j.Log(server.Entry{Severity: "E", Component: component, ID: id, Context: context, Message: message, Attr: attr})
}
