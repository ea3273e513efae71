package process

import (
	"encoding/json"
	"io"
	"os"
	"time"
)

// logFile is the log of a process, with a JSON document per line, in the format of mongod. Its methods may be called
// concurrently.
type logFile struct {
	out  io.Writer
	file *os.File // nil if the log is not a file
}

// openLog opens a log for appending. Without a path the log is written to otherwise, which may be nil.
func openLog(path string, otherwise io.Writer) (*logFile, error) {
	if path == "" {
		return &logFile{out: otherwise}, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &logFile{out: f, file: f}, err
}

func (l *logFile) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}

type attributes map[string]any

func (l *logFile) add(message string, attr attributes) {
	if l.out == nil {
		return
	}
	text, err := json.Marshal(struct {
		T         map[string]string `json:"t"`
		Severity  string            `json:"s"`
		Component string            `json:"c"`
		ID        int               `json:"id"`
		Context   string            `json:"ctx"`
		Message   string            `json:"msg"`
		Attr      attributes        `json:"attr,omitempty"`
	}{map[string]string{"$date": time.Now().Format("2006-01-02T15:04:05.000-07:00")}, "I", "-", 0, "utr", message, attr})
	if err == nil {
		_, _ = l.out.Write(append(text, '\n'))
	}
}
