package server

import (
	"cmp"
	"os"
	"runtime"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire"
)

func (x *exchange) ping() (bson.D, error) { return nil, nil }

func (x *exchange) whatsmyuri() (bson.D, error) {
	return bson.D{{Key: "you", Value: x.conn.socket.RemoteAddr().String()}}, nil
}

func (x *exchange) buildInfo() (bson.D, error) {
	v, scripts := x.view.Version, "none"
	if x.server.cluster.Backend.Scripting() {
		scripts = "mozjs"
	}
	reply := bson.D{
		{Key: "version", Value: v.Text()},
		{Key: "gitVersion", Value: commands.GitVersion},
		{Key: "modules", Value: bson.A{}},
		{Key: "allocator", Value: "tcmalloc"},
		{Key: "javascriptEngine", Value: scripts},
		{Key: "sysInfo", Value: "deprecated"},
		{Key: "versionArray", Value: bson.A{int32(v.Numbers[0]), int32(v.Numbers[1]), int32(v.Numbers[2]), int32(0)}},
		{Key: "openssl", Value: bson.D{{Key: "running", Value: "disabled"}, {Key: "compiled", Value: "disabled"}}},
	}
	reply = append(value.AddIf(reply, x.view.Has.CompilerInfo, "buildEnvironment", environment()),
		bson.E{Key: "bits", Value: int32(64)}, bson.E{Key: "debug", Value: false},
		bson.E{Key: "maxBsonObjectSize", Value: int32(wire.MaxDocument)})
	if !x.view.isMongos() {
		reply = append(reply, bson.E{Key: "storageEngines", Value: bson.A{"devnull", "ephemeralForTest", "wiredTiger"}})
	}
	return reply, nil
}

// environment has the fields of buildInfo that describe a compiler. Go has none of its options.
func environment() (doc bson.D) {
	for _, name := range strings.Fields("distmod distarch cc ccflags cxx cxxflags linkflags target_arch target_os cppdefines") {
		doc = append(doc, bson.E{Key: name, Value: map[string]string{
			"distarch": runtime.GOARCH, "target_arch": runtime.GOARCH, "target_os": runtime.GOOS, "cc": runtime.Version(),
		}[name]})
	}
	return doc
}

// process returns the name of the server's program.
func (v view) process() string {
	if v.isMongos() {
		return "mongos"
	}
	return "mongod"
}

func (x *exchange) serverStatus() (bson.D, error) {
	s := x.server
	reply := bson.D{
		{Key: "host", Value: x.view.Address},
		{Key: "version", Value: x.view.Text()},
		{Key: "process", Value: x.view.process()},
		{Key: "pid", Value: int64(cmp.Or(s.process.PID, os.Getpid()))},
		{Key: "uptime", Value: float64(int(time.Since(s.started).Seconds()))},
		{Key: "localTime", Value: bson.NewDateTimeFromTime(time.Now())},
	}
	if x.view.isMember() {
		repl := append(bson.D{{Key: "topologyVersion", Value: x.view.topologyVersion()}}, x.inSet("isWritablePrimary")...)
		reply = append(reply, bson.E{Key: "repl", Value: repl})
	}
	if !x.view.isMongos() {
		// Some tests require a storage engine with transactions.
		reply = append(reply, bson.E{Key: "storageEngine", Value: bson.D{{Key: "name", Value: "wiredTiger"}}})
	}
	s.mu.Lock()
	current := len(s.conns)
	s.mu.Unlock()
	connections := bson.D{
		{Key: "current", Value: int32(current)},
		{Key: "available", Value: int32(16000)},
		{Key: "totalCreated", Value: int32(s.lastConn.Load())},
	}
	if x.view.Has.Overload {
		reply, connections = s.ingress.add(reply, connections)
	}
	return append(reply, bson.E{Key: "connections", Value: connections}), nil
}

func (x *exchange) getCmdLineOpts() (bson.D, error) {
	p := x.server.process
	if p.Arguments == nil {
		p.Arguments, p.Settings = []string{x.view.process()}, bson.D{}
	}
	return bson.D{{Key: "argv", Value: p.Arguments}, {Key: "parsed", Value: p.Settings}}, nil
}

func (x *exchange) configureFailPoint() (bson.D, error) {
	count, err := x.server.failPoints.Configure(x.request.Body)
	if err != nil {
		return nil, err
	}
	name, settings := x.firstText(), bson.D{}
	for _, field := range []string{"mode", "data"} {
		v, err := x.request.Body.LookupErr(field)
		settings = value.AddIf(settings, err == nil, field, v)
	}
	if text, err := bson.MarshalExtJSON(settings, false, false); err == nil {
		x.conn.logEvent("fail point " + name + " set: " + oneLine(string(text)))
	}
	return bson.D{{Key: "count", Value: count}}, nil
}
