package processgroup

import (
	"fmt"
	"strings"
	"sync"
)

// Tail keeps the end of a program's output. Its methods may be called concurrently.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// tailBytes is how much of the output is kept.
const tailBytes = 4 << 10

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(p), nil
}

// String returns what is kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// Line returns the last line.
func (t *Tail) Line() string {
	all := t.String()
	return all[strings.LastIndexAny(all, "\r\n")+1:]
}

// Explain adds the output, if there is any, to an error.
func (t *Tail) Explain(err error) error {
	if words := t.String(); words != "" {
		err = fmt.Errorf("%w; its last output:\n%s", err, words)
	}
	return err
}
