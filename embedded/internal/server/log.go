package server

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/internal/wire"
)

// LogLine is a line of a server's log. It contains no secrets: of commands with credentials only the name and the error
// code are logged.
type LogLine struct {
	Time   time.Time
	Server string // host:port
	Text   string
}

const logLines = 2048 // lines that a deployment keeps

// A serverLog keeps the last lines of all servers of a deployment.
type serverLog struct {
	mu    sync.Mutex
	lines []LogLine
}

func (l *serverLog) add(server, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, LogLine{time.Now(), server, text})
	l.lines = l.lines[max(0, len(l.lines)-logLines):]
}

func (l *serverLog) between(from, to time.Time) (lines []LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !line.Time.Before(from) && !line.Time.After(to) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Log returns the log lines from one time to another, oldest first, and after them a line for each command of that time
// that is still running.
func (c *Cluster) Log(from, to time.Time) []LogLine {
	lines := c.log.between(from, to)
	for _, s := range c.Members() {
		for _, o := range s.operations() {
			if !wire.IsHello(firstKey(o.body)) && !o.start.Before(from) && !o.start.After(to) {
				lines = append(lines, LogLine{o.start, s.address,
					fmt.Sprintf("conn %d: %s %s has not ended", o.conn, firstKey(o.body), NamespaceOf(o.body))})
			}
		}
	}
	return lines
}

const maxText = 300 // maximum length of a message or a document, in characters

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxText {
		return string(r[:maxText-1]) + "…"
	}
	return s
}

func (s *Server) logf(format string, args ...any) {
	s.cluster.log.add(s.address, fmt.Sprintf(format, args...))
}

func (k *conn) logEvent(text string) { k.server.logf("conn %d: %s", k.id, text) }

// logEnd logs the result of the command. closed is set if the command gets no reply. Successful hellos are not logged,
// because monitors send them continuously.
func (x *exchange) logEnd(failure *fault.Error, closed bool) {
	if wire.IsHello(x.request.Name) && failure == nil && (!closed || x.conn.ctx.Err() != nil) {
		return
	}
	how, message := "ok", ""
	switch {
	case closed:
		how = "gets no reply: the connection is closed"
	case failure != nil:
		how = fmt.Sprintf("error %d %s", failure.Code, fault.NameIn(failure.Code, x.view.Wire))
		if !wire.Sensitive(x.request.Name) {
			message = ": " + oneLine(failure.Message)
		}
	case x.out.Concern != nil:
		code := x.out.ConcernCode
		how = fmt.Sprintf("ok, with a write concern error %d %s", code, fault.NameIn(code, x.view.Wire))
	}
	if len(x.out.Labels) > 0 {
		how += " {" + strings.Join(x.out.Labels, ", ") + "}"
	}
	took := time.Since(x.start).Round(10 * time.Microsecond)
	x.conn.logEvent(fmt.Sprintf("%s %s %s (%s)%s", x.request.Name, x.namespace(), how, took, message))
}

func (x *exchange) logHit(f failpoint.Failure) {
	var effects []string
	add := func(when bool, format string, args ...any) {
		if when {
			effects = append(effects, fmt.Sprintf(format, args...))
		}
	}
	add(f.Block > 0, "blocks for %v", f.Block)
	add(f.CloseConnection, "closes the connection")
	add(f.HasCode, "error %d %s", f.Code, fault.NameIn(f.Code, x.view.Wire))
	add(f.LoseReply, "loses the reply")
	if len(effects) > 0 {
		x.conn.logEvent(fmt.Sprintf("fail point hits %s: %s", x.request.Name, strings.Join(effects, ", ")))
	}
}
