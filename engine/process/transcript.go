package process

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// The sides of a conversation, as transcripts mark what they send.
const (
	FromRunner  = "->"
	FromAdapter = "<-"
)

// noteLine notes a message of a conversation that utr sends or gets.
type noteLine func(from string, line []byte) error

func unnoted(string, []byte) error { return nil }

// transcript writes down the messages of all conversations of an engine.
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
