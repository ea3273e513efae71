package server

import (
	"cmp"
	"fmt"
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

// A serverLog keeps the last lines of all servers of a deployment.
type serverLog struct {
	mu     sync.Mutex
	ring   []LogLine
	logged int // lines so far
}

func (l *serverLog) add(server, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := LogLine{time.Now(), server, text}
	if len(l.ring) < logLines {
		l.ring = append(l.ring, line)
	} else {
		l.ring[l.logged%logLines] = line
	}
	l.logged++
}

// between gives the lines of a window of time, oldest first.
func (l *serverLog) between(from, to time.Time) (lines []LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := max(0, l.logged-logLines); i < l.logged; i++ {
		if line := l.ring[i%logLines]; !line.Time.Before(from) && !line.Time.After(to) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Log gives what the servers logged in a window of time, oldest first, as far
// as it is remembered, and the commands of that time that have not ended yet.
func (c *Cluster) Log(from, to time.Time) []LogLine {
	lines := c.log.between(from, to)
	for _, s := range c.Members() {
		for _, o := range s.operations() {
			if !helloNames[firstKey(o.body)] && !o.start.Before(from) && !o.start.After(to) {
				lines = append(lines, LogLine{o.start, s.address, fmt.Sprintf("conn %d: %s has not ended", o.conn, titleOf(o.body))})
			}
		}
	}
	return lines
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

// logf logs an event of the server.
func (s *Server) logf(format string, args ...any) {
	s.cluster.log.add(s.address, fmt.Sprintf(format, args...))
}

// logEvent logs an event of the connection.
func (k *conn) logEvent(text string) { k.server.logf("conn %d: %s", k.id, text) }

// credentials are commands of whose requests and errors nothing is logged but
// their names and codes (Command Logging and Monitoring, "Security").
var credentials = map[string]bool{
	"authenticate": true, "saslStart": true, "saslContinue": true, "getnonce": true, "createUser": true, "updateUser": true,
	"copydbgetnonce": true, "copydbsaslstart": true, "copydb": true,
}

// logEnd logs how the command ended. closed is set if it gets no reply. Hello is logged
// only if it fails: monitors say it all the time.
func (x *exchange) logEnd(failure *command.Error, closed bool) {
	if helloNames[x.request.Name] && failure == nil && (!closed || x.conn.ctx.Err() != nil) {
		return
	}
	how, message := "ok", ""
	switch {
	case closed:
		how = "gets no reply: the connection is closed"
	case failure != nil:
		name := cmp.Or(failure.Name, command.CodeNameIn(failure.Code, x.view.Wire))
		how = fmt.Sprintf("error %d %s", failure.Code, name)
		if !credentials[x.request.Name] {
			message = ": " + oneLine(failure.Message)
		}
	case x.extras.writeConcernError != nil:
		code := x.extras.concern
		how = fmt.Sprintf("ok, with a write concern error %d %s", code, command.CodeNameIn(code, x.view.Wire))
	}
	if len(x.extras.labels) > 0 {
		how += " {" + strings.Join(x.extras.labels, ", ") + "}"
	}
	took := time.Since(x.start).Round(10 * time.Microsecond)
	x.conn.logEvent(fmt.Sprintf("%s %s (%s)%s", titleOf(x.request.Body), how, took, message))
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
