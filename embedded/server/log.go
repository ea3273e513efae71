package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// LogLine is one line of what a server logs. It holds no secret: of commands
// that carry credentials it has the name and the code of an error alone.
type LogLine struct {
	Time   time.Time
	Server string // host:port
	Text   string
}

// logLines is how many lines a deployment remembers.
const logLines = 2048

// A serverLog keeps the last lines of all servers of a deployment. What is
// logged for every command costs no formatting: that is done on reading.
type serverLog struct {
	mu     sync.Mutex
	ring   []logEntry
	logged int64 // entries so far: the number of the last one
}

// logEntry is a line before it is written: of a command if row is not "", or a
// text.
type logEntry struct {
	at      time.Time
	server  *Server
	conn    int64  // 0: of the server itself
	text    string // unless it is of a command
	command string
	about   string // namespace
	outcome outcome
}

// outcome is how a command ended; the zero value that it has not.
type outcome struct {
	ended   bool
	closed  bool // its connection was closed without a reply
	took    time.Duration
	code    int32
	name    string // of the code
	message string
	concern bool // the code is that of a write concern error
	labels  []string
}

// add takes an entry in and gives its number.
func (l *serverLog) add(e logEntry) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(e)
}

// append stamps the entry, so that the lines are in the order of their times.
// Called with l.mu held.
func (l *serverLog) append(e logEntry) int64 {
	e.at = time.Now()
	e.report()
	if len(l.ring) < logLines {
		l.ring = append(l.ring, e)
	} else {
		l.ring[l.logged%logLines] = e
	}
	l.logged++
	return l.logged
}

// end notes how the command of entry number n ended. Where nothing has happened
// in between, its beginning and its end are one line.
func (l *serverLog) end(n int64, e logEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n == l.logged && n > 0 {
		e.at = time.Now()
		e.report()
		l.ring[(n-1)%logLines] = e
		return
	}
	l.append(e)
}

// report gives the line to whoever keeps the log of the server's process, who is
// not interested in the beginning of a command.
func (e logEntry) report() {
	if log := e.server.process.Log; log != nil && (e.command == "" || e.outcome.ended) {
		log(e.line())
	}
}

func (e logEntry) line() LogLine {
	return LogLine{Time: e.at, Server: e.server.address, Text: e.String()}
}

// between gives the lines of a window of time, oldest first.
func (l *serverLog) between(from, to time.Time) []LogLine {
	l.mu.Lock()
	var kept []logEntry
	for i := max(0, l.logged-logLines); i < l.logged; i++ {
		if e := l.ring[i%logLines]; !e.at.Before(from) && !e.at.After(to) {
			kept = append(kept, e)
		}
	}
	l.mu.Unlock()
	lines := make([]LogLine, len(kept))
	for i, e := range kept {
		lines[i] = e.line()
	}
	return lines
}

// String is the line for people.
func (e logEntry) String() string {
	var s strings.Builder
	if e.conn != 0 {
		fmt.Fprintf(&s, "conn %d: ", e.conn)
	}
	if e.command == "" {
		return s.String() + e.text
	}
	fmt.Fprintf(&s, "%s %s ", e.command, e.about)
	o := e.outcome
	switch {
	case !o.ended:
		s.WriteString("begins")
		return s.String()
	case o.closed:
		s.WriteString("gets no reply: the connection is closed")
	case o.concern:
		fmt.Fprintf(&s, "ok, with a write concern error %d %s", o.code, o.name)
	case o.name != "" || o.message != "" || o.code != 0:
		fmt.Fprintf(&s, "error %d %s", o.code, o.name)
	default:
		s.WriteString("ok")
	}
	if len(o.labels) > 0 {
		fmt.Fprintf(&s, " {%s}", strings.Join(o.labels, ", "))
	}
	fmt.Fprintf(&s, " (%s)", o.took.Round(10*time.Microsecond))
	if o.message != "" {
		s.WriteString(": " + oneLine(o.message))
	}
	return s.String()
}

// longestText of a message or a document in the log, in characters.
const longestText = 300

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > longestText {
		return string(r[:longestText-1]) + "…"
	}
	return s
}

// Log gives what the servers logged in a window of time, oldest first, as far
// as it is remembered.
func (c *Cluster) Log(from, to time.Time) []LogLine { return c.log.between(from, to) }

// logf logs an event of the server.
func (s *Server) logf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.cluster.log.add(logEntry{server: s, text: text})
}

// logEvent logs an event of the connection.
func (k *conn) logEvent(text string) {
	k.server.cluster.log.add(logEntry{server: k.server, conn: k.id, text: text})
}

// credentials are commands of whose requests and errors nothing is logged but
// their names and codes (Command Logging and Monitoring, "Security").
var credentials = map[string]bool{
	"authenticate": true, "saslStart": true, "saslContinue": true, "getnonce": true, "createUser": true, "updateUser": true,
	"copydbgetnonce": true, "copydbsaslstart": true, "copydb": true,
}

// entry is the line of the command, as far as it is known.
func (x *exchange) entry() logEntry {
	return logEntry{server: x.conn.server, conn: x.conn.id, command: x.request.Name, about: namespaceOf(x.request.Body)}
}

// logBegin logs that the command begins. Hello is logged if it fails alone:
// monitors say it all the time.
func (x *exchange) logBegin() {
	if !helloNames[x.request.Name] {
		x.logged = x.conn.server.cluster.log.add(x.entry())
	}
}

// logEnd logs how the command ended. closed is set if it gets no reply.
func (x *exchange) logEnd(failure *command.Error, closed bool) {
	if helloNames[x.request.Name] && failure == nil && (!closed || x.conn.ctx.Err() != nil) {
		return
	}
	e := x.entry()
	e.outcome = outcome{ended: true, closed: closed, took: time.Since(x.start), labels: x.extras.derived}
	if x.extras.labels != nil {
		e.outcome.labels = x.extras.labels
	}
	profile := x.conn.server.cluster.Profile
	switch {
	case failure != nil:
		e.outcome.code, e.outcome.name = failure.Code, failure.Name
		if e.outcome.name == "" {
			e.outcome.name = command.CodeNameIn(failure.Code, profile.Wire)
		}
		if !credentials[e.command] {
			e.outcome.message = failure.Message
		}
		if x.extras.labels == nil {
			e.outcome.labels = slices.Compact(slices.Sorted(slices.Values(slices.Concat(e.outcome.labels, failure.Labels))))
		}
	case x.extras.writeConcernError != nil:
		e.outcome.concern = true
		if _, data, err := bson.MarshalValue(x.extras.writeConcernError); err == nil {
			code, _ := bson.Raw(data).Lookup("code").AsInt64OK()
			e.outcome.code, e.outcome.name = int32(code), command.CodeNameIn(int32(code), profile.Wire)
		}
	}
	x.conn.server.cluster.log.end(x.logged, e)
}

// logHit logs what a fail point does to a command.
func (x *exchange) logHit(f failpoint.Failure, loseReply bool) {
	var does []string
	if f.Block > 0 {
		does = append(does, fmt.Sprintf("blocks for %v", f.Block))
	}
	if f.CloseConnection {
		does = append(does, "closes the connection")
	}
	if f.HasCode {
		does = append(does, fmt.Sprintf("error %d %s", f.Code, command.CodeNameIn(f.Code, x.view.Wire)))
	}
	if loseReply {
		does = append(does, "loses the reply")
	}
	if len(does) == 0 {
		return
	}
	x.conn.logEvent(fmt.Sprintf("fail point hits %s: %s", x.request.Name, strings.Join(does, ", ")))
}

// logFailPointSet logs that a fail point was set.
func (x *exchange) logFailPointSet() {
	name, _ := x.request.Body.Index(0).Value().StringValueOK()
	about := bson.D{}
	for _, field := range []string{"mode", "data"} {
		if v, err := x.request.Body.LookupErr(field); err == nil {
			about = append(about, bson.E{Key: field, Value: v})
		}
	}
	text, err := bson.MarshalExtJSON(about, false, false)
	if err != nil {
		return
	}
	x.conn.logEvent("fail point " + name + " set: " + oneLine(string(text)))
}

// logClient logs what the first hello of a connection says about the client.
func (k *conn) logClient(client bson.Raw) {
	driver, _ := client.Lookup("driver").DocumentOK()
	name, _ := driver.Lookup("name").StringValueOK()
	text := "is of driver " + oneLine(name)
	if k.appName != "" {
		text += ", application " + oneLine(k.appName)
	}
	k.logEvent(text)
}
