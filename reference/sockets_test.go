package reference

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

// TestSockets plays the stories in testdata/sockets.txt.
func TestSockets(t *testing.T) {
	testkit.PlayStories(t, "testdata/sockets.txt", func(t *testing.T, s testkit.Story) (transcript string) {
		synctest.Test(t, func(t *testing.T) { transcript = playSockets(t, s.Text) + "\n" })
		return transcript
	})
}

// TestFirstRTT checks that the first connection to a server that measures round trip times is delayed: until then, the
// handshake of the monitor is the only measurement.
func TestFirstRTT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		dials := 0
		s := newSockets(func(context.Context, string, string) (net.Conn, error) { dials++; return nil, os.ErrDeadlineExceeded })
		s.firstRTT = time.Second
		for _, c := range []struct {
			reason, address string
			ctx             context.Context
			dials           int
			after           time.Duration
		}{
			{"the monitor has just measured", "a:1", t.Context(), 1, time.Second},
			{"a failed connection is replaced without a delay", "a:1", t.Context(), 2, 0},
			{"each server has its own monitor", "b:1", t.Context(), 3, time.Second},
			{"a client that is closed does not wait", "c:1", ended, 3, 0},
		} {
			began := time.Now()
			_, err := s.DialContext(c.ctx, "tcp", c.address)
			testkit.Equal(t, c.reason, []any{err != nil, dials, time.Since(began)}, []any{true, c.dials, c.after})
		}
	})
}

func playSockets(t *testing.T, script string) string {
	const a, b, closed = "a:1", "b:1", event.ConnectionClosed
	near, far := net.Pipe()
	s := newSockets(func(context.Context, string, string) (net.Conn, error) { return near, nil })
	k, err := s.Connect(t.Context(), "tcp", a, false)
	testkit.Check(t, err)
	go func() { _, _ = io.Copy(io.Discard, far) }()
	done, end, begun := func() {}, func() {}, time.Now()
	refusal := error(topology.ConnectionError{Wrapped: errors.New("refused")})
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); s.Shut(); _, _ = k.Close(), far.Close() }()

	hello := func(flags wiremessage.MsgFlag) {
		_, err := k.Write(wire.AppendMsg(nil, 1, 0, wire.Flags(flags), raw(t, d("hello", 1))))
		testkit.Check(t, err)
	}
	pool := func(kind, address, reason string, err error) func() {
		return func() { s.poolEvent(&event.PoolEvent{Type: kind, Address: address, Reason: reason, Error: err}) }
	}
	// due is the limit of a check-out, with a round trip of a second.
	due := func(left time.Duration) waitLimit { return waitLimit{begun.Add(left), time.Second} }
	known := func(w *serverState) { w.known = true }
	canceled := func(address string) func() { return func() { s.Update(func() { s.cancel(address) }) } }
	acts := map[string]func(){
		"hello": func() { hello(0) }, "await": func() { hello(wiremessage.ExhaustAllowed) }, "byte": func() { _, _ = far.Write([]byte{1}) },
		"close": func() { _ = k.Close() }, "held": func() { s.Hold(a) }, "shut": s.Shut, "pool-gone": func() { s.PoolClosed(a) },
		"over": cancel, "patient": func() { s.afterCheck = true },
		"discover": func() { s.change(a, known) }, "discover-b": func() { s.change(b, known) },
		"cancel": canceled(a), "cancel-b": canceled(b),
		"wait": func() { done = s.addWaiter() }, "done": func() { done() },
		"release-known": func() { s.Release(a, false) }, "release-unknown": func() { s.Release(a, true) },
		"timeout": func() { s.timedOut(a, os.ErrDeadlineExceeded) }, "broken": func() { s.timedOut(a, net.ErrClosed) },
		"fine": func() { s.timedOut(a, nil) }, "watch": func() { end = s.watch(a, waitLimit{}) }, "end": func() { end() },
		"event-refused": pool(closed, a, event.ReasonError, errors.New(refusal.Error())), "event-other": pool(closed, b, event.ReasonError, refusal),
		"event-eof": pool(closed, a, event.ReasonError, io.EOF), "event-idle": pool(closed, a, event.ReasonIdle, nil),
		"event-stale": pool(closed, a, event.ReasonStale, nil), "event-shut": pool(closed, a, event.ReasonPoolClosed, nil),
		"event-pool": pool(event.ConnectionPoolClosed, a, "", nil), "event-pool-b": pool(event.ConnectionPoolClosed, b, "", nil),
		"monitor": func() { k.Monitor = true }, "failed": func() { s.failed(a, limit{}) },
		"reported": func() { s.change(a, func(w *serverState) { w.reported = true }) },
		"watch-1s": func() { end = s.watch(a, due(time.Second)) }, "watch-2s": func() { end = s.watch(a, due(2*time.Second)) },
		"event-failed": pool(event.ConnectionCheckOutFailed, a, "", refusal), "event-cleared": pool(event.ConnectionPoolCleared, a, "", refusal),
	}
	asks := map[string]func() any{ // return at once
		"streams": func() any { return k.Streams() && !k.Closed() }, "check": func() any { return s.beginCheck(a) },
		"canceled": func() any { return fmt.Sprintf("%t,%t,%t", s.canceled(a), s.canceled(""), s.canceled(b)) },
		"repeat": func() any {
			err := s.repeatFailure(a)
			return fmt.Sprintf("%t,%t", errors.As(err, new(repeated)), errors.Is(err, os.ErrDeadlineExceeded))
		},
	}
	waits := map[string]func() error{ // may block
		"read":           func() error { _, err := k.Read(make([]byte, 1)); return err },
		"first-check":    func() error { return s.awaitFirstCheck(ctx, a) },
		"pause":          func() error { s.pause(a, time.Hour); return nil },
		"hold":           func() error { s.Hold(a); return nil },
		"settle-1s":      func() error { s.settle(a, limit{waitLimit: due(time.Second)}); return nil },
		"settle-2s":      func() error { s.settle(a, limit{waitLimit: due(2 * time.Second)}); return nil },
		"handle-known":   func() error { s.handle(a, func() bool { return false }); return nil },
		"handle-unknown": func() error { s.handle(a, func() bool { return true }); return nil },
		"handle-closing": func() error { s.handle(a, func() bool { return k.Close() == nil }); return nil },
		"closed":         func() error { s.awaitClosed(a, refusal); return nil },
		"closed-pool":    func() error { s.awaitClosed(a, topology.ErrPoolClosed); return nil }, "closed-nil": func() error { s.awaitClosed(a, nil); return nil },
	}

	var transcript, running []string
	ends := map[string]chan string{} // of running verbs
	for word := range strings.FieldsSeq(script) {
		verb, _, answer := strings.Cut(word, "=")
		if ask, ok := asks[verb]; ok {
			transcript = append(transcript, fmt.Sprintf("%s=%v", verb, ask()))
			continue
		} else if answer {
			continue
		}
		transcript = append(transcript, word)
		if act, ok := acts[word]; ok {
			act()
		} else if wait, ok := waits[word]; ok {
			running, ends[word] = append(running, word), make(chan string, 1)
			end, begun := ends[word], time.Now()
			go func() {
				text, err := word+"=ok", wait()
				if err != nil {
					text = fmt.Sprintf("%s=%v", word,
						strings.NewReplacer("use of closed network connection", "closed", "context ", "").Replace(err.Error()))
				}
				if took := time.Since(begun).Truncate(time.Millisecond); took > 0 {
					text += "@" + took.String()
				}
				end <- text
			}()
		} else {
			d, err := time.ParseDuration(word)
			testkit.Check(t, err)
			time.Sleep(d)
		}
		synctest.Wait()
		running = slices.DeleteFunc(running, func(verb string) bool {
			select {
			case text := <-ends[verb]:
				transcript = append(transcript, text)
				return true
			default:
				return false
			}
		})
	}
	return strings.Join(transcript, " ")
}
