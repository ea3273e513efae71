package process

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// The marks of messages from utr and from an adapter in transcripts.
const (
	FromRunner  = "->"
	FromAdapter = "<-"
)

// noteLine records a message that utr sends or receives.
type noteLine func(from string, line []byte) error

func unnoted(string, []byte) error { return nil }

// transcript writes the messages of all conversations to a writer, which may be nil.
func transcript(to io.Writer) noteLine {
	if to == nil {
		return unnoted
	}
	var mu sync.Mutex
	return func(from string, line []byte) error {
		mu.Lock()
		defer mu.Unlock()
		if _, err := fmt.Fprintf(to, "%s %s\n", from, bytes.TrimRight(line, "\n")); err != nil {
			return fmt.Errorf("cannot write the transcript: %w", err)
		}
		return nil
	}
}
