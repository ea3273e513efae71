package server

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire"
)

// operation is a command in progress. It is immutable, because other connections read it.
type operation struct {
	conn    int64
	id      int32
	raw     net.Conn // of the client; nil: the server itself runs the command
	about   bson.Raw // the metadata of the client; nil if it has sent none
	appName string
	user    *User // nil without authentication
	body    bson.Raw
	start   time.Time
}

// inProgress makes the command visible to other connections, until its reply.
func (x *exchange) inProgress() {
	x.conn.current.Store(&operation{conn: x.conn.id, id: x.server.lastOperation.Add(1),
		raw: x.conn.raw, about: x.conn.about, appName: x.conn.appName, user: x.conn.user, body: x.request.Body,
		start: x.start})
}

// killSessions ends the blocked operations of sessions, or of all sessions if lsids is empty, and what the backend has
// of them. A mongos also ends operations of the shards, because shards execute the commands of all mongoses.
func (x *exchange) killSessions(lsids []bson.Raw) {
	var server any = x.server
	if x.view.isMongos() {
		server = nil
	}
	var ids []bson.RawValue
	for _, lsid := range lsids {
		ids = append(ids, lsid.Lookup("id"))
	}
	x.server.cluster.held.Kill(server, ids)
	x.server.cluster.Backend.KillSessions(lsids)
}

func (s *Server) operations() (out []*operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.conns {
		if o := k.current.Load(); o != nil {
			out = append(out, o)
		}
	}
	return out
}

// operations returns the commands in progress for $currentOp. A mongos without local reports the operations of its
// shards, because these execute the commands of all mongoses.
func (x *exchange) operations(local bool) (out []bson.Raw) {
	servers := []*Server{x.server}
	if x.view.isMongos() && !local {
		servers = x.server.cluster.Members()
	}
	for _, s := range servers {
		for _, o := range s.operations() {
			out = append(out, o.document(s.address))
		}
	}
	return out
}

func (o *operation) document(host string) bson.Raw {
	lasts, name := time.Since(o.start), firstKey(o.body)
	doc := value.Doc("type", "op", "host", host, "desc", fmt.Sprint("conn", o.conn), "connectionId", int32(o.conn))
	if o.raw != nil {
		doc = value.Append(doc, "client", o.raw.RemoteAddr().String())
	}
	doc = value.AddIf(doc, o.appName != "", "appName", o.appName)
	doc = value.AddIf(doc, o.about != nil, "clientMetadata", o.about)
	doc = value.Append(doc, "active", true, "currentOpTime", time.Now().UTC().Format("2006-01-02T15:04:05.000-07:00"),
		"threaded", true, "opid", o.id)
	if id, err := o.body.LookupErr("lsid", "id"); err == nil {
		user := ""
		if o.user != nil {
			user = o.user.Name + "@" + o.user.Database
		}
		doc = value.Append(doc, "lsid", value.Doc("id", id, "uid", store.UserDigest(user)))
	}
	doc = value.Append(doc, "secs_running", int64(lasts.Seconds()), "microsecs_running", lasts.Microseconds(),
		"op", cmp.Or(kinds[name], "command"), "ns", o.namespace())
	doc = value.AddIf(doc, !wire.Sensitive(name), "command", o.body)
	return value.Encode(value.Append(doc, "numYields", int32(0), "locks", bson.D{}, "waitingForLock", false,
		"lockStats", bson.D{}, "waitingForFlowControl", false, "flowControlStats", bson.D{}))
}

// kinds are the kinds of operations that are not "command" (MongoDB manual, "$currentOp" and "Database Profiler
// Output").
var kinds = map[string]string{"find": "query", "getMore": "getmore", "insert": "insert", "update": "update",
	"delete": "remove"}

// namespace returns the namespace of the operation. A command without a collection has a virtual one.
func (o *operation) namespace() string {
	ns := NamespaceOf(o.body)
	switch db := value.TextAt(o.body, "$db"); {
	case ns != db:
		return ns
	case slices.Contains([]string{"aggregate", "currentOp"}, firstKey(o.body)):
		return db + ".$cmd.aggregate"
	}
	return ns + ".$cmd"
}

// NamespaceOf returns the namespace of a command, or its database if it names no collection.
func NamespaceOf(body bson.Raw) string {
	db := value.TextAt(body, "$db")
	name := firstKey(body)
	first := body.Lookup(name)
	if name == "getMore" {
		first = body.Lookup("collection")
	}
	if collection, ok := first.StringValueOK(); ok && collection != "" && !wire.Sensitive(name) {
		return db + "." + collection
	}
	return db
}
