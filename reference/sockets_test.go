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

	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// TestSockets plays what happens to the sockets of a client. A word is a verb of
// playSockets, a time that passes, or, with "=" in it, what the verb before it led
// to: "read=closed@1s" is the end of a read that took a second.
func TestSockets(t *testing.T) {
	for _, row := range []struct{ reason, script string }{
		// A socket is known as that of a monitor which streams from the first read after
		// an awaitable hello. If it were known from the hello on, it could be closed before
		// the monitor reads, which then sleeps for minHeartbeat.
		{"nothing was sent", "streams=false"},
		{"a read without a hello", "read byte read=ok streams=false"},
		{"an ordinary hello is what every connection sends", "hello read byte read=ok streams=false"},
		{"the hello alone does not stream", "await streams=false"},
		{"the read after it does", "await read byte read=ok streams=true"},
		{"and the reads after that", "hello read byte read=ok await read byte read=ok read byte read=ok streams=true"},
		{"it is forgotten when it is closed", "await read byte read=ok close streams=false"},
		{"and not known again by a late read", "await close read read=closed streams=false"},

		// Connections of a pool wait for the first check of its server, if they have to.
		{"its server is known", "patient discover discovered discovered=ok"},
		{"it may be empty", "discovered discovered=ok"},
		{"the time is over", "patient discover-b over discovered discovered=canceled"},
		{"the client is closed", "patient shut discovered discovered=closed"},
		{"its server becomes known", "patient discover-b discovered 1s discover discovered=ok@1s"},

		// A check that was cancelled is followed by rest; nothing else is.
		{"no check was cancelled", "rest rest=ok"},
		{"one was, and the next heartbeat is due", "cancel rest 2h rest=ok@1h0m0s"},
		{"an operation needs a server", "cancel rest 1s seek rest=ok@1s"},
		{"cancelled by the topology, whose cause is not known", "cancel-nil rest 2h rest=ok@1h0m0s"},
		{"for an immediate one", "cancel-now rest rest=ok"},
		{"that of another server", "cancel-b rest rest=ok"},
		{"an operation waits already", "cancel seek rest rest=ok"},
		{"one that waited has found a server", "seek found cancel rest 1s seek rest=ok@1s"},
		{"the client is closed, and nothing rests", "cancel shut rest rest=ok"},
		{"it has rested before", "cancel rest seek rest=ok found rest rest=ok"},

		// A stream is ended under its monitor while the condition holds, and what came
		// meanwhile is not read.
		{"it reads, and the server is Unknown", "await read fail-unknown read=EOF fail-unknown=ok"},
		{"it reads, and the server is known", "await read fail-known fail-known=ok byte read=ok"},
		{"it will read, and the server is Unknown by then", "await fail-unknown read fail-unknown=ok read=EOF"},
		{"it will read, and the server is known by then", "await fail-known read fail-known=ok byte read=ok"},
		{"it will not read: it is closed", "await fail-known close fail-known=ok"},

		// While a handshake with its server has failed, a monitor hears nothing.
		{"the server is known all the same", "await held read byte release-known read=ok"},
		{"the server is Unknown now", "await held read byte release-unknown read=closed"},
		{"one of two is over: the other holds it for a while", "await held held read byte release-known 1s read=ok@500ms"},
		{"two are over", "await held held read byte release-known release-known read=ok"},
		{"the topology cancels the check", "await held read byte close read=closed"},
		{"the client is closed while it is held", "await held read byte shut read=closed"},
		{"no more is heard", "await held read byte 1s read=ok@500ms"},

		// What a monitor has read takes effect before a handshake that failed does.
		{"it waits for the server", "await read hold hold=ok"},
		{"it comes back for more", "await read byte read=ok hold 10ms read 1ms hold=ok@10ms"},
		{"its stream ends", "await read byte read=ok hold 10ms close 1ms hold=ok@10ms"},
		{"it does not come back for long", "await read byte read=ok hold 1s hold=ok@500ms"},

		{"immediate checks of a server keep their distance, another has its own count, and one alone waits",
			"appoint=0s,true appoint-b=0s,true 30ms appoint=70ms,true 30ms appoint=0s,false 90ms appoint=50ms,true 850ms appoint=0s,true"},

		// The topology checks again at once after a time-out, which is not to be told.
		{"a time-out is repeated",
			"timeout checks=false again=true,true cancelled=true,true,false again=false,false checks=true cancelled=false,false,false"},
		{"another error is not: the topology acts on it at once", "broken checks=true again=false,false cancelled=false,false,false"},
		{"nor is a success", "fine checks=true again=false,false cancelled=false,false,false"},

		// One that waits for a handshake comes back with the event that says so.
		{"the connection is closed", "watch handled event-refused handled=ok"},
		{"another one failed otherwise, for longer than can be", "watch handled event-eof 9s handled=ok@5s"},
		{"one to another server", "watch handled event-other 9s handled=ok@5s"},
		{"an idle one was closed", "watch handled event-idle 9s handled=ok@5s"},
		{"it was closed when the pool was cleared", "watch handled event-stale handled=ok"},
		{"it was closed with the pool", "watch handled event-shut handled=ok"},
		{"the pool was closed", "watch handled event-pool handled=ok"},
		{"the pool of another server was closed", "watch handled event-pool-b 9s handled=ok@5s"},
		{"the check-out failed, which is told before the topology handles it", "watch handled event-failed 9s handled=ok@5s"},
		{"the pool was cleared, but the check is not cancelled yet", "watch handled event-cleared 9s handled=ok@5s"},
		{"it is too late to wait", "over watch handled handled=ok"},

		// A check-out fails after its connection is told to be closed.
		{"nothing was wrong with a connection", "watch closed-pool closed-pool=ok"},
		{"no error is told", "watch closed-nil closed-nil=ok"},
		{"no one watches", "closed closed=ok"},
		{"no one watches any more", "watch end closed closed=ok"},
		{"the connection of the check-out is closed", "watch closed event-eof event-refused closed=ok"},
		{"the pool of the check-out is closed", "watch closed event-pool closed=ok"},
		{"nothing is told: only for a while", "watch closed event-idle 9s closed=ok@5s"},
	} {
		synctest.Test(t, func(t *testing.T) { testkit.Equal(t, row.reason, playSockets(t, row.script), row.script) })
	}
}

func playSockets(t *testing.T, script string) string {
	const a, b, closed = "a:1", "b:1", event.ConnectionClosed
	near, far := net.Pipe()
	s := newSockets(func(context.Context, string, string) (net.Conn, error) { return near, nil })
	dialled, err := s.DialContext(t.Context(), "tcp", a)
	testkit.Check(t, err)
	go func() { _, _ = io.Copy(io.Discard, far) }()
	k, h, found := dialled.(*socket), newHandshakes(), func() {}
	w, refusal := (*watch)(nil), error(topology.ConnectionError{Wrapped: errors.New("refused")})
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); s.resting.close(); _, _ = k.Close(), far.Close() }()

	hello := func(flags wiremessage.MsgFlag) {
		_, err := k.Write(message(1, raw(t, d("hello", 1)), flags))
		testkit.Check(t, err)
	}
	is := func(unknown bool) func() bool { return func() bool { return unknown } }
	pool := func(kind, address, reason string, err error) func() {
		return func() { h.event(&event.PoolEvent{Type: kind, Address: address, Reason: reason, Error: err}) }
	}
	appoint := func(address string) func() any {
		return func() any {
			wait, ours := s.appoint(address, time.Now(), 100*time.Millisecond)
			return fmt.Sprintf("%v,%t", wait, ours)
		}
	}
	acts := map[string]func(){
		"hello": func() { hello(0) }, "await": func() { hello(wiremessage.ExhaustAllowed) }, "byte": func() { _, _ = far.Write([]byte{1}) },
		"close": func() { _ = k.Close() }, "held": func() { s.hold(a) }, "shut": s.resting.close, "over": cancel, "patient": func() { s.patient = true },
		"discover": func() { s.discover(a) }, "discover-b": func() { s.discover(b) },
		"cancel": func() { s.cancel(a, io.EOF) }, "cancel-b": func() { s.cancel(b, io.EOF) },
		"cancel-nil": func() { s.cancel(a, nil) }, "cancel-now": func() { s.cancel(a, checkNow{}) },
		"seek": func() { found = s.resting.seek() }, "found": func() { found() },
		"release-known": func() { s.release(a, is(false)) }, "release-unknown": func() { s.release(a, is(true)) },
		"timeout": func() { s.timedOut(a, os.ErrDeadlineExceeded) }, "broken": func() { s.timedOut(a, net.ErrClosed) },
		"fine": func() { s.timedOut(a, nil) }, "watch": func() { w = h.watch(a) }, "end": func() { h.end(w) },
		"event-refused": pool(closed, a, event.ReasonError, errors.New(refusal.Error())), "event-other": pool(closed, b, event.ReasonError, refusal),
		"event-eof": pool(closed, a, event.ReasonError, io.EOF), "event-idle": pool(closed, a, event.ReasonIdle, nil),
		"event-stale": pool(closed, a, event.ReasonStale, nil), "event-shut": pool(closed, a, event.ReasonPoolClosed, nil),
		"event-pool": pool(event.ConnectionPoolClosed, a, "", nil), "event-pool-b": pool(event.ConnectionPoolClosed, b, "", nil),
		"event-failed": pool(event.ConnectionCheckOutFailed, a, "", refusal), "event-cleared": pool(event.ConnectionPoolCleared, a, "", refusal),
	}
	asks := map[string]func() any{ // at once
		"streams": func() any { return s.monitors[a] == k }, "checks": func() any { return s.checks(a) },
		"cancelled": func() any { return fmt.Sprintf("%t,%t,%t", s.cancelled(a), s.cancelled(""), s.cancelled(b)) },
		"appoint":   appoint(a), "appoint-b": appoint(b),
		"again": func() any {
			err := s.again(a)
			return fmt.Sprintf("%t,%t", errors.As(err, new(repeated)), errors.Is(err, os.ErrDeadlineExceeded))
		},
	}
	waits := map[string]func() error{ // perhaps
		"read":         func() error { _, err := k.Read(make([]byte, 1)); return err },
		"discovered":   func() error { return s.discovered(ctx, a) },
		"rest":         func() error { s.resting.rest(a, time.Hour); return nil },
		"hold":         func() error { s.hold(a); return nil },
		"fail-known":   func() error { <-k.failWhile(io.EOF, is(false)); return nil },
		"fail-unknown": func() error { <-k.failWhile(io.EOF, is(true)); return nil },
		"handled":      func() error { h.handled(ctx, w, refusal); return nil }, "closed": func() error { h.closed(a, refusal); return nil },
		"closed-pool": func() error { h.closed(a, topology.ErrPoolClosed); return nil }, "closed-nil": func() error { h.closed(a, nil); return nil },
	}

	var told, going []string
	ends := map[string]chan string{} // of what goes on
	for word := range strings.FieldsSeq(script) {
		verb, _, answer := strings.Cut(word, "=")
		if ask, ok := asks[verb]; ok {
			told = append(told, fmt.Sprintf("%s=%v", verb, ask()))
			continue
		} else if answer {
			continue
		}
		told = append(told, word)
		if act, ok := acts[word]; ok {
			act()
		} else if wait, ok := waits[word]; ok {
			going, ends[word] = append(going, word), make(chan string, 1)
			end, begun := ends[word], time.Now()
			go func() {
				text, err := word+"=ok", wait()
				if err != nil {
					text = fmt.Sprintf("%s=%v", word, strings.NewReplacer("use of closed network connection", "closed", "context ", "").Replace(err.Error()))
				}
				if took := time.Since(begun).Truncate(time.Millisecond); took > 0 {
					text += "@" + took.String()
				}
				end <- text
			}()
		} else {
			pause, err := time.ParseDuration(word)
			testkit.Check(t, err)
			time.Sleep(pause)
		}
		synctest.Wait()
		going = slices.DeleteFunc(going, func(verb string) bool {
			select {
			case text := <-ends[verb]:
				told = append(told, text)
				return true
			default:
				return false
			}
		})
	}
	return strings.Join(told, " ")
}
