package server

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Entry is one line of a server's log, in the parts of the server's structured
// logging.
type Entry struct {
	Severity  string // "I", "W", "E", "F"
	Component string // "NETWORK", "COMMAND", …
	ID        int    // of the message
	Context   string // the thread, such as "conn12"
	Message   string
	Attr      bson.D
}

// Journal takes what a server logs. Its methods are called concurrently.
type Journal interface {
	Log(Entry)
	// Commands says whether a command that took so long is to be logged.
	Commands(took time.Duration) bool
	// Lines are the latest ones, for getLog; total is how many there were.
	Lines() (lines []string, total int)
}

func (s *Server) log(e Entry) {
	if s.place.Journal != nil {
		e.Severity = "I"
		s.place.Journal.Log(e)
	}
}

func (k *conn) name() string { return fmt.Sprintf("conn%d", k.info.ID) }

func (k *conn) logOpened() {
	if k.server.place.Journal == nil {
		return
	}
	k.server.log(Entry{Component: "NETWORK", ID: 22943, Context: "listener", Message: "Connection accepted", Attr: bson.D{
		{Key: "remote", Value: k.socket.RemoteAddr().String()},
		{Key: "connectionId", Value: k.info.ID},
		{Key: "connectionCount", Value: k.server.connections()},
	}})
}

func (k *conn) logClosed() {
	if k.server.place.Journal == nil {
		return
	}
	k.server.log(Entry{Component: "NETWORK", ID: 22944, Context: k.name(), Message: "Connection ended", Attr: bson.D{
		{Key: "remote", Value: k.socket.RemoteAddr().String()},
		{Key: "connectionId", Value: k.info.ID},
		{Key: "connectionCount", Value: k.server.connections()},
	}})
}

func (k *conn) logMetadata(client bson.Raw) {
	if k.server.place.Journal == nil {
		return
	}
	k.server.log(Entry{Component: "NETWORK", ID: 51800, Context: k.name(), Message: "client metadata", Attr: bson.D{
		{Key: "remote", Value: k.socket.RemoteAddr().String()},
		{Key: "client", Value: k.name()},
		{Key: "doc", Value: client},
	}})
}

// mostLogged is how long a command may be that is logged whole, in bytes.
const mostLogged = 10000

// loggedCommand is a command as the log shows it.
func loggedCommand(body bson.Raw) any {
	name := firstKey(body)
	if credentials[name] {
		return bson.D{{Key: name, Value: "xxx"}}
	}
	if len(body) > mostLogged {
		return bson.D{{Key: name, Value: body.Index(0).Value()}, {Key: "$truncated", Value: fmt.Sprintf("%d bytes", len(body))}}
	}
	elements, err := body.Elements()
	if err != nil {
		return bson.D{{Key: name, Value: "xxx"}}
	}
	out := make(bson.D, 0, len(elements))
	for _, e := range elements {
		switch e.Key() {
		case "speculativeAuthenticate":
			out = append(out, bson.E{Key: e.Key(), Value: "xxx"})
		case "$clusterTime":
		default:
			out = append(out, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	return out
}

// loggedNamespace is what the command is about, database.$cmd if it is no
// collection.
func (x *exchange) loggedNamespace() string {
	if ns := namespaceOf(x.request.Body); ns != x.request.DB && !credentials[x.request.Name] {
		return ns
	}
	return x.request.DB + ".$cmd"
}

// logCommand logs a command that was answered, or cut off by a fail point.
func (x *exchange) logCommand(reply bson.Raw, failure error) {
	journal := x.conn.server.place.Journal
	took := time.Since(x.start)
	if journal == nil || !journal.Commands(took) {
		return
	}
	attr := bson.D{
		{Key: "type", Value: "command"},
		{Key: "ns", Value: x.loggedNamespace()},
	}
	if x.conn.info.AppName != "" {
		attr = append(attr, bson.E{Key: "appName", Value: x.conn.info.AppName})
	}
	attr = append(attr, bson.E{Key: "command", Value: loggedCommand(x.request.Body)})
	if ok, _ := reply.Lookup("ok").AsFloat64OK(); reply != nil && ok == 0 {
		message, _ := reply.Lookup("errmsg").StringValueOK()
		attr = append(attr, bson.E{Key: "ok", Value: 0}, bson.E{Key: "errMsg", Value: message})
		for _, f := range [][2]string{{"codeName", "errName"}, {"code", "errCode"}, {"errorLabels", "errorLabels"}} {
			if v, err := reply.LookupErr(f[0]); err == nil {
				attr = append(attr, bson.E{Key: f[1], Value: v})
			}
		}
	}
	if failure != nil {
		attr = append(attr, bson.E{Key: "ok", Value: 0}, bson.E{Key: "errMsg", Value: "the connection was closed without an answer"})
	}
	attr = append(attr,
		bson.E{Key: "reslen", Value: len(reply)},
		bson.E{Key: "remote", Value: x.conn.socket.RemoteAddr().String()},
		bson.E{Key: "protocol", Value: "op_msg"},
		bson.E{Key: "durationMillis", Value: took.Milliseconds()})
	x.conn.server.log(Entry{Component: "COMMAND", ID: 51803, Context: x.conn.name(), Message: "Slow query", Attr: attr})
}
