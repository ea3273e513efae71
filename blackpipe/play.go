package blackpipe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// Play is a script that a server follows.
type Play struct {
	server *Server
	stop   context.CancelFunc
	ended  chan struct{}
	done   chan struct{}
	late   sync.WaitGroup // answers that take their time

	mu     sync.Mutex
	groups [][]Step // those that have not come
	came   int
	failed *Unexpected
}

// Unexpected says that a message came that the script does not expect, or that one did not
// come.
type Unexpected struct {
	Position source.Position // of the step, if there is one
	Message  string
	// Mismatches are what a command lacks of what the step expects.
	Mismatches []result.Mismatch
}

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

// Play lets a server follow the script. note, if it is not nil, is called with a line for
// each message that came. After a message that is not expected, the server hangs up on
// every message.
func (s *Script) Play(server *Server, note func(line string)) *Play {
	ctx, stop := context.WithCancel(context.Background())
	p := &Play{server: server, stop: stop, ended: make(chan struct{}), done: make(chan struct{})}
	for _, g := range s.Groups {
		p.groups = append(p.groups, slices.Clone(g))
	}
	go func() {
		defer close(p.ended)
		for {
			m, err := server.Next(ctx)
			if err != nil {
				return
			}
			if line := p.take(ctx, m); note != nil {
				note(line)
			}
		}
	}()
	return p
}

// Done is closed once the last message of the script has come, or one that it does not
// expect.
func (p *Play) Done() <-chan struct{} { return p.done }

// End ends the play, and reports what was not as the script says: an *Unexpected. An answer
// that is still to come is not sent.
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
		return &Unexpected{Position: missing.Expect.Position, Message: fmt.Sprintf("%s did not come, after %d messages", missing.Expect.JSON(), p.came)}
	}
	return nil
}

// take answers a message, and says how.
func (p *Play) take(ctx context.Context, m *Message) string {
	step, failed := p.find(m)
	if failed != nil {
		m.HangUp()
		return failed.Error()
	}
	answer := func() {
		switch step.Answer {
		case Replies:
			_ = m.Reply(step.Reply)
		case Halves:
			_ = m.ReplyHalf(step.Reply)
		case HangsUp:
			m.HangUp()
		}
	}
	if step.After == 0 {
		answer()
	} else {
		p.late.Go(func() {
			select {
			case <-time.After(step.After):
				answer()
			case <-p.server.open.Done():
			case <-ctx.Done():
			}
		})
	}
	line := fmt.Sprintf("%s: %s: %s", step.Expect.Position, m.Name, step.Answer)
	if step.After > 0 {
		line += " after " + step.After.String()
	}
	return line
}

// find takes the step of a message out of the script.
func (p *Play) find(m *Message) (Step, *Unexpected) {
	p.mu.Lock()
	defer p.mu.Unlock()
	command := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: m.Command}
	if p.failed == nil && len(p.groups) > 0 {
		group := p.groups[0]
		var first []result.Mismatch
		for i, step := range group {
			found := matchers.New(nil).Value("expect", step.Expect, command, matchers.RootDocument)
			if len(found) > 0 {
				if i == 0 {
					first = found
				}
				continue
			}
			p.came++
			if p.groups[0] = slices.Delete(slices.Clone(group), i, i+1); len(p.groups[0]) == 0 {
				if p.groups = p.groups[1:]; len(p.groups) == 0 {
					close(p.done)
				}
			}
			return step, nil
		}
		p.failed = &Unexpected{Position: group[0].Expect.Position, Mismatches: first,
			Message: fmt.Sprintf("message %d is not the one that is expected: %s", p.came+1, matchers.Extended(command, false))}
		close(p.done)
		return Step{}, p.failed
	}
	more := &Unexpected{Message: fmt.Sprintf("%s came after the end of the script", m.Name)}
	if p.failed == nil {
		p.failed = more
	}
	return Step{}, more
}
