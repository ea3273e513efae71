package server

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire"
)

// profiling is what a server writes to system.profile of a database: nothing, slow commands, or all.
type profiling struct {
	level      int64
	slow       time.Duration
	sampleRate float64
}

// profilingOf returns the settings of a database. The caller holds s.mu.
func (s *Server) profilingOf(db string) profiling {
	if p, ok := s.profiling[db]; ok {
		return p
	}
	return profiling{slow: 100 * time.Millisecond, sampleRate: 1}
}

// profile changes the level of the profiler, if it is 0, 1 or 2, and returns the old settings.
func (x *exchange) profile() (bson.D, error) {
	body, s := x.request.Body, x.server
	level, _ := body.Index(0).Value().AsInt64OK()
	if x.view.isMongos() && level > 0 {
		return nil, fault.Errorf(fault.BadValue, "Profiling is not allowed on mongos: the profiling level must be 0")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.profilingOf(x.request.DB)
	next := old
	if level >= 0 && level <= 2 {
		next.level = level
	}
	if ms, ok := body.Lookup("slowms").AsInt64OK(); ok {
		next.slow = time.Duration(ms) * time.Millisecond
	}
	if rate, ok := body.Lookup("sampleRate").AsFloat64OK(); ok {
		next.sampleRate = rate
	}
	s.profiling[x.request.DB] = next
	slow := int32(old.slow.Milliseconds())
	return value.Doc("was", int32(old.level), "slowms", slow, "sampleRate", old.sampleRate), nil
}

// note writes an entry about the command and its reply to system.profile, if the settings of the database require it.
// The entries of a server have more fields, about plans and locks, and each statement of a write has an entry.
func (x *exchange) note(fields bson.D, failure *fault.Error, size int) {
	s, db, took := x.server, x.request.DB, time.Since(x.start)
	s.mu.Lock()
	p := s.profilingOf(db)
	s.mu.Unlock()
	if x.row == nil || wire.Sensitive(x.request.Name) || p.level == 0 || took < p.slow && p.level == 1 ||
		rand.Float64() >= p.sampleRate {
		return
	}
	op, ns := cmp.Or(kinds[x.row.Name], "command"), x.namespace()
	if !strings.Contains(ns, ".") {
		ns += ".$cmd"
	}
	doc := value.Doc("op", op, "ns", ns, "command", x.request.Body)
	if cursor, ok := value.Get(fields, "cursor").(bson.D); ok {
		for _, key := range []string{"firstBatch", "nextBatch"} {
			if docs, ok := value.Get(cursor, key).([]bson.Raw); ok {
				doc = value.Append(doc, "nreturned", int32(len(docs)))
			}
		}
	}
	if failure != nil {
		doc = value.Append(doc, "ok", int32(0), "errMsg", failure.Message,
			"errName", fault.NameIn(failure.Code, x.view.Wire), "errCode", failure.Code)
	}
	doc = value.Append(doc, "responseLength", int32(size), "protocol", "op_msg", "millis", int32(took.Milliseconds()),
		"ts", bson.NewDateTimeFromTime(time.Now()), "client", x.conn.socket.RemoteAddr().String())
	doc = value.AddIf(doc, x.conn.appName != "", "appName", x.conn.appName)
	_, _ = s.internally(db, value.Doc("create", profileCollection, "capped", true, "size", int32(1<<20)))
	_, _ = s.internally(db, value.Doc("insert", profileCollection, "documents", bson.A{doc}))
}

const profileCollection = "system.profile"

// internally runs a command of the backend for the server itself.
func (s *Server) internally(db string, command bson.D) (bson.D, error) {
	k := &conn{server: s, ctx: s.cluster.ctx, client: s.cluster.ctx}
	x := k.begin(value.Encode(value.Append(command, "$db", db)), false)
	x.request.DB = db
	if err := x.lookUp(); err != nil {
		return nil, err
	}
	if err := x.parse(); err != nil {
		return nil, err
	}
	return x.execute()
}
