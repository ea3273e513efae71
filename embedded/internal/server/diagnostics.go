package server

import (
	"cmp"
	"os"
	"runtime"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire"
)

func (x *exchange) whatsmyuri() (bson.D, error) {
	return value.Doc("you", x.conn.socket.RemoteAddr().String()), nil
}

func (x *exchange) buildInfo() (bson.D, error) {
	v, scripts := x.view.Version, "none"
	if x.server.cluster.Backend.Scripting() {
		scripts = "mozjs"
	}
	reply := value.Doc("version", v.Text(), "gitVersion", commands.GitVersion, "modules", bson.A{},
		"allocator", "tcmalloc", "javascriptEngine", scripts, "sysInfo", "deprecated",
		"versionArray", bson.A{int32(v.Numbers[0]), int32(v.Numbers[1]), int32(v.Numbers[2]), int32(0)},
		"openssl", value.Doc("running", "disabled", "compiled", "disabled"))
	reply = value.AddIf(reply, x.view.Has.CompilerInfo, "buildEnvironment", environment())
	reply = value.Append(reply, "bits", int32(64), "debug", false, "maxBsonObjectSize", int32(wire.MaxDocument))
	engines := bson.A{"devnull", "ephemeralForTest", "wiredTiger"}
	return value.AddIf(reply, !x.view.isMongos(), "storageEngines", engines), nil
}

// environment has the fields of buildInfo that describe a compiler. Go has none of its options.
func environment() bson.D {
	return value.Doc("distmod", "", "distarch", runtime.GOARCH, "cc", runtime.Version(), "ccflags", "", "cxx", "",
		"cxxflags", "", "linkflags", "", "target_arch", runtime.GOARCH, "target_os", runtime.GOOS, "cppdefines", "")
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
	reply := value.Doc("host", x.view.Address, "version", x.view.Text(), "process", x.view.process(),
		"pid", int64(cmp.Or(s.process.PID, os.Getpid())), "uptime", float64(int(time.Since(s.started).Seconds())),
		"localTime", bson.NewDateTimeFromTime(time.Now()))
	if x.view.isMember() {
		repl := append(value.Doc("topologyVersion", x.view.topologyVersion()), x.inSet("isWritablePrimary")...)
		reply = value.Append(reply, "repl", repl)
	}
	// Some tests require a storage engine with transactions.
	reply = value.AddIf(reply, !x.view.isMongos(), "storageEngine", value.Doc("name", "wiredTiger"))
	s.mu.Lock()
	current := len(s.conns)
	s.mu.Unlock()
	connections := value.Doc("current", int32(current), "available", int32(16000),
		"totalCreated", int32(s.lastConn.Load()))
	if x.view.Has.Overload {
		reply, connections = s.ingress.add(reply, connections)
	}
	return value.Append(reply, "connections", connections), nil
}

func (x *exchange) getCmdLineOpts() (bson.D, error) {
	p := x.server.process
	if p.Arguments == nil {
		p.Arguments, p.Settings = []string{x.view.process()}, bson.D{}
	}
	return value.Doc("argv", p.Arguments, "parsed", p.Settings), nil
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
	return value.Doc("count", count), nil
}
