package reference

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// A check that was cancelled is followed by rest; nothing else is.
func TestRest(t *testing.T) {
	const address = "a:1"
	for _, row := range []struct {
		reason string
		before func(*sockets)
		rests  bool
	}{
		{"no check was cancelled", func(*sockets) {}, false},
		{"one was", func(s *sockets) { s.cancel(address, io.EOF) }, true},
		{"by the topology, whose cause is not known", func(s *sockets) { s.cancel(address, nil) }, true},
		{"for an immediate one", func(s *sockets) { s.cancel(address, checkNow{}) }, false},
		{"that of another server", func(s *sockets) { s.cancel("b:1", io.EOF) }, false},
		{"an operation waits already", func(s *sockets) { s.cancel(address, io.EOF); s.resting.seek() }, false},
		{"one that waited has found a server", func(s *sockets) { s.resting.seek()(); s.cancel(address, io.EOF) }, true},
		{"the client is closed", func(s *sockets) { s.cancel(address, io.EOF); s.resting.close() }, false},
		{"it has rested before", func(s *sockets) { s.cancel(address, io.EOF); s.resting.rest(address, 0) }, false},
	} {
		s := newSockets()
		row.before(s)
		over := make(chan struct{})
		go func() {
			s.resting.rest(address, time.Hour)
			close(over)
		}()
		if row.rests {
			for due := true; due; { // until it rests, at least until it has looked
				s.resting.mu.Lock()
				due = s.resting.due[address]
				s.resting.mu.Unlock()
			}
			select {
			case <-over:
				t.Errorf("%s: it does not rest", row.reason)
			default:
			}
			s.resting.seek()
		}
		select {
		case <-over:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it rests for long", row.reason)
		}
	}
	s := newSockets()
	s.cancel(address, io.EOF)
	s.resting.rest(address, time.Millisecond) // the next heartbeat is due
}

// A stream is ended under its monitor while the condition holds, and what came
// meanwhile is not read.
func TestFailWhile(t *testing.T) {
	hello, far := hello(t), listen(t)
	cause := errors.New("cause")
	for _, row := range []struct {
		reason         string
		reading, holds bool
	}{
		{"it reads, and the server is Unknown", true, true},
		{"it reads, and the server is known", true, false},
		{"it will read, and the server is Unknown by then", false, true},
		{"it will read, and the server is known by then", false, false},
	} {
		s := newSockets()
		k, server := far.dial(s)
		if _, err := k.Write(message(1, hello, wiremessage.ExhaustAllowed)); err != nil {
			t.Fatal(err)
		}
		read := make(chan error, 1)
		begin := func() {
			go func() {
				_, err := k.Read(make([]byte, 1))
				read <- err
			}()
		}
		if row.reading {
			begin()
			for reading := false; !reading; {
				k.mu.Lock()
				reading = k.reading
				k.mu.Unlock()
			}
		}
		over := k.failWhile(cause, func() bool { return row.holds })
		if !row.reading {
			select {
			case <-over:
				t.Errorf("%s: it is decided too early", row.reason)
			default:
			}
			begin()
		}
		select {
		case <-over:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it is not decided", row.reason)
		}
		if !row.holds {
			if _, err := server.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		var want error
		if row.holds {
			want = cause
		}
		if err := <-read; err != want {
			t.Errorf("%s: read %v, want %v", row.reason, err, want)
		}
		waits := k.failWhile(cause, func() bool { return false })
		_ = k.Close()
		select {
		case <-waits:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: a socket that is closed will not be read", row.reason)
		}
		_ = server.Close()
	}
}

// A pool that is paused is not cleared again.
func TestNews(t *testing.T) {
	l := &messageLog{paused: map[string]bool{}, failed: map[string][]driverMessage{}}
	pool := bson.D{{Key: "serverHost", Value: "a"}, {Key: "serverPort", Value: int64(1)}}
	other := bson.D{{Key: "serverHost", Value: "a"}, {Key: "serverPort", Value: int64(2)}}
	service := append(bson.D{{Key: "serviceId", Value: "s"}}, pool...)
	const ready, cleared = "Connection pool ready", "Connection pool cleared"
	for _, row := range []struct {
		reason, message string
		data            bson.D
		news            bool
	}{
		{"ready", ready, pool, true},
		{"cleared", cleared, pool, true},
		{"cleared again", cleared, pool, false},
		{"another pool", cleared, other, true},
		{"another message", "Connection closed", pool, true},
		{"a check-out that failed is told with its event", "Connection checkout failed", pool, false},
		{"ready again", ready, pool, true},
		{"so that it can be cleared", cleared, pool, true},
		{"ready once more", ready, pool, true},
		{"cleared for a service", cleared, service, true},
		{"which does not pause it", cleared, service, true},
	} {
		if got := l.news(row.message, "debug", row.data); got != row.news {
			t.Errorf("%s: got %t", row.reason, got)
		}
	}
}

// While a handshake with its server has failed, a monitor hears nothing.
func TestHold(t *testing.T) {
	hello, far := hello(t), listen(t)
	for _, row := range []struct {
		reason string
		holds  int
		end    func(*sockets, *socket)
		want   error
	}{
		{"nothing has failed", 0, func(*sockets, *socket) {}, nil},
		{"the server is known all the same", 1, func(s *sockets, _ *socket) { s.release(far.address, func() bool { return false }) }, nil},
		{"the server is Unknown now", 1, func(s *sockets, _ *socket) { s.release(far.address, func() bool { return true }) }, net.ErrClosed},
		{"two have failed", 2, func(s *sockets, _ *socket) {
			s.release(far.address, func() bool { return false })
			s.release(far.address, func() bool { return false })
		}, nil},
		{"the topology cancels the check", 1, func(_ *sockets, k *socket) { _ = k.Close() }, net.ErrClosed},
		{"the client is closed", 1, func(s *sockets, _ *socket) { s.resting.close() }, net.ErrClosed},
		{"no more is heard", 1, func(*sockets, *socket) {}, nil},
	} {
		s := newSockets()
		k, server := far.dial(s)
		if _, err := k.Write(message(1, hello, wiremessage.ExhaustAllowed)); err != nil {
			t.Fatal(err)
		}
		for range row.holds {
			s.hold(far.address)
		}
		read := make(chan error, 1)
		go func() {
			_, err := k.Read(make([]byte, 1))
			read <- err
		}()
		s.awaitStream(far.address)
		if _, err := server.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if row.holds > 0 {
			select {
			case err := <-read:
				t.Errorf("%s: it is not held: %v", row.reason, err)
			case <-time.After(20 * time.Millisecond): // it cannot be seen to do nothing for ever
			}
		}
		row.end(s, k)
		select {
		case err := <-read:
			if !errors.Is(err, row.want) || row.want == nil && err != nil {
				t.Errorf("%s: read %v, want %v", row.reason, err, row.want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it is held for long", row.reason)
		}
		_ = k.Close()
		_ = server.Close()
	}
}

// What a monitor has read takes effect before a handshake that failed does.
func TestHoldWaitsForWhatWasRead(t *testing.T) {
	s := newSockets()
	monitor := &socket{owner: s, address: "a", monitor: true}
	for _, row := range []struct {
		reason           string
		streams, reading bool
		then             func()
	}{
		{"there is no monitor", false, false, nil},
		{"it waits for the server", true, true, nil},
		{"it comes back for more", true, false, func() {
			monitor.mu.Lock()
			defer monitor.mu.Unlock()
			monitor.reading = true
		}},
		{"its stream ends", true, false, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.monitors, "a")
		}},
	} {
		delete(s.monitors, "a")
		if row.streams {
			s.monitors["a"] = monitor
		}
		monitor.reading = row.reading
		held := make(chan struct{})
		began := time.Now()
		go func() {
			s.hold("a")
			close(held)
		}()
		if row.then != nil {
			select {
			case <-held:
				if time.Since(began) < noticing {
					t.Errorf("%s: nothing was waited for", row.reason)
				}
			case <-time.After(20 * time.Millisecond): // it cannot be seen to wait for ever
			}
			row.then()
		}
		select {
		case <-held:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it waits on", row.reason)
		}
	}
}

// Events of the topology are told with the messages about them.
func TestEventsWaitForTheirMessages(t *testing.T) {
	observe := func(level string) *messageLog {
		l, err := newMessageLog(time.Now, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw(t, bson.D{{Key: "topology", Value: level}})})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, row := range []struct {
		reason        string
		log           *messageLog
		text, address string
		message       []any // text, and keys with values
		before, after bool
	}{
		{"nothing is observed", nil, heartbeatFailed, "a:1", nil, true, true},
		{"messages of no such level are", observe("info"), heartbeatFailed, "a:1", nil, true, true},
		{"its message", observe("debug"), heartbeatFailed, "a:1",
			[]any{heartbeatFailed, "topologyId", "t", "serverHost", "a", "serverPort", int64(1)}, false, true},
		{"that of another server", observe("debug"), heartbeatFailed, "a:1",
			[]any{heartbeatFailed, "topologyId", "t", "serverHost", "a", "serverPort", int64(2)}, false, false},
		{"another message", observe("debug"), heartbeatFailed, "a:1",
			[]any{heartbeatSucceeded, "topologyId", "t", "serverHost", "a", "serverPort", int64(1)}, false, false},
		{"that of a topology", observe("debug"), topologyChanged, "", []any{topologyChanged, "topologyId", "t"}, false, true},
	} {
		told := false
		row.log.with(row.text, row.address, func() { told = true })
		if told != row.before {
			t.Errorf("%s: told at once: %t", row.reason, told)
		}
		if row.message != nil {
			row.log.Info(1, row.message[0].(string), row.message[1:]...)
		}
		if told != row.after {
			t.Errorf("%s: told in the end: %t", row.reason, told)
		}
	}
}

// A client that is closed closes its pools, and clears none.
func TestClosingClearsNothing(t *testing.T) {
	b := onEmbedded(t, embedded.Options{Topology: embedded.ReplicaSet}, nil)
	b.must("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}})
	if err := b.Close(t.Context(), "client"); err != nil {
		t.Fatal(err)
	}
	events, err := b.Events(t.Context(), "client", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	closed := 0
	for _, e := range events {
		switch e.Type {
		case result.PoolCleared:
			t.Errorf("the pool of %s is cleared: %s", e.Address, e.Pool.Err)
		case result.PoolClosed:
			closed++
		}
	}
	if closed != 3 {
		t.Errorf("%d pools are closed, want 3", closed)
	}
}
