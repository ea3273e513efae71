package blackpipe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/result"
)

// Play is a running script.
type Play struct {
	server *Server
	stop   context.CancelFunc
	ended  chan struct{}
	done   chan struct{}
	late   sync.WaitGroup // delayed answers

	mu       sync.Mutex
	groups   [][]step // remaining steps
	received int      // number of expected messages
	failed   *Unexpected
}

// Unexpected reports an unexpected message, or an expected message that was not received.
type Unexpected struct {
	Position   source.Position // of the step; zero after the end of the script
	Message    string
	Mismatches []result.Mismatch // differences between the step and the command
}

// Error returns the position, the message and the mismatches.
func (u *Unexpected) Error() string {
	var b strings.Builder
	if !u.Position.IsZero() {
		fmt.Fprintf(&b, "%s: ", u.Position)
	}
	b.WriteString(u.Message)
	for _, m := range u.Mismatches {
		fmt.Fprintf(&b, "\n    %s: %s: want %s, got %s", m.Path, m.Message, m.Want, m.Got)
	}
	return b.String()
}

// Play runs the script on a server. note, if not nil, is called with a line for each received message, before
// it is answered. After an unexpected message the server closes the connection of each message.
func (s *Script) Play(server *Server, note func(line string)) *Play {
	ctx, stop := context.WithCancel(context.Background())
	p := &Play{server: server, stop: stop, ended: make(chan struct{}), done: make(chan struct{})}
	for _, g := range s.groups {
		p.groups = append(p.groups, slices.Clone(g))
	}
	go func() {
		defer close(p.ended)
		for {
			m, err := server.Next(ctx)
			if err != nil {
				return
			}
			line, reply := p.answer(ctx, m)
			if note != nil {
				note(line)
			}
			reply()
		}
	}()
	return p
}

// Done is closed after the last message of the script or an unexpected message.
func (p *Play) Done() <-chan struct{} { return p.done }

// End stops the script, without sending delayed answers. It returns an *Unexpected if a message was unexpected or
// missing.
func (p *Play) End() error {
	p.stop()
	<-p.ended
	p.late.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	if len(p.groups) > 0 {
		missing := p.groups[0][0]
		return &Unexpected{Position: missing.expect.Position,
			Message: fmt.Sprintf("expected %s; the application ended after %s",
				missing.expect.JSON(), plural.Of(p.received, "message"))}
	}
	return nil
}

// answer describes the answer to a message, and returns what sends it.
func (p *Play) answer(ctx context.Context, m *Message) (line string, reply func()) {
	step, failed := p.next(m)
	if failed != nil {
		return failed.Error(), m.HangUp
	}
	line = fmt.Sprintf("%s: %s: %s", step.expect.Position, m.Name, step.answer)
	answer := func() {
		switch step.answer {
		case answerReply:
			_ = m.Reply(step.reply)
		case answerHalf:
			_ = m.ReplyHalf(step.reply)
		case answerHangUp:
			m.HangUp()
		}
	}
	if step.after == 0 {
		return line, answer
	}
	return line + " after " + step.after.String(), func() {
		p.late.Go(func() {
			select {
			case <-time.After(step.after):
				answer()
			case <-p.server.open.Done():
			case <-ctx.Done():
			}
		})
	}
}

// next removes the step for a message from the script and returns it.
func (p *Play) next(m *Message) (step, *Unexpected) {
	p.mu.Lock()
	defer p.mu.Unlock()
	command := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: m.Command}
	if p.failed == nil && len(p.groups) > 0 {
		group := p.groups[0]
		var first []result.Mismatch
		for i, step := range group {
			found := matchers.New(nil).Value("expect", step.expect, command, operations.RootDocument)
			if len(found) > 0 {
				if i == 0 {
					first = found
				}
				continue
			}
			p.received++
			if p.groups[0] = slices.Delete(slices.Clone(group), i, i+1); len(p.groups[0]) == 0 {
				if p.groups = p.groups[1:]; len(p.groups) == 0 {
					close(p.done)
				}
			}
			return step, nil
		}
		p.failed = &Unexpected{Position: group[0].expect.Position, Mismatches: first,
			Message: fmt.Sprintf("message %d does not match: %s", p.received+1, matchers.ExtendedJSON(command, false))}
		close(p.done)
		return step{}, p.failed
	}
	more := &Unexpected{Message: fmt.Sprintf("received %s after the end of the script", m.Name)}
	if p.failed == nil {
		p.failed = more
	}
	return step{}, more
}
