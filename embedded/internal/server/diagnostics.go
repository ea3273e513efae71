package server

import (
	"cmp"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
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
	if text, err := bson.MarshalExtJSON(value.Pick(x.request.Body, "mode", "data"), false, false); err == nil {
		x.conn.logEvent("fail point " + x.firstText() + " set: " + oneLine(string(text)))
	}
	return value.Doc("count", count), nil
}

// constantRows are commands with constant replies, on a mongod and on a mongos: what they report or change does not
// exist here. The replies are documents in relaxed Extended JSON.
func constantRows() (rows []command) {
	for _, c := range []struct {
		row            commands.Row
		mongod, mongos string
	}{
		{commands.Row{Name: "ping", BeforeAuth: true, NoAfterClusterTime: true, API: "1"}, `{}`, ""},
		{commands.Row{Name: "availableQueryOptions", Aliases: []string{"availablequeryoptions"}, Until: "5.0"},
			`{"options": 246}`, `{"options": 182}`},
		{commands.Row{Name: "features", Until: "5.0"}, `{"js": {"utf8": true}, "oidMachine": 1}`, ""},
		{commands.Row{Name: "isdbgrid", Roles: onMongos}, "", `{"isdbgrid": 1, "hostname": "localhost"}`},
		{commands.Row{Name: "top", AdminOnly: true, Roles: onMongod},
			`{"totals": {"note": "all times in microseconds"}}`, ""},
		{commands.Row{Name: "killOp", AdminOnly: true}, `{"info": "attempting to kill op"}`, `{}`},
		{commands.Row{Name: "fsync", AdminOnly: true}, `{"numFiles": 1}`,
			`{"numFiles": 1, "all": {"` + ShardName + `": {"numFiles": 1, "ok": 1.0}}}`},
	} {
		rows = append(rows, command{c.row, func(x *exchange) (reply bson.D, err error) {
			text := cmp.Or(c.mongod, c.mongos)
			if x.view.isMongos() {
				text = cmp.Or(c.mongos, c.mongod)
			}
			err = bson.UnmarshalExtJSON([]byte(text), false, &reply)
			return reply, err
		}})
	}
	return rows
}

// getLastError reports no error: only OP_MSG has writes without replies here.
func (x *exchange) getLastError() (bson.D, error) {
	if x.view.isMongos() {
		return value.Doc("shards", bson.A{}, "shardRawGLE", bson.D{}, "err", nil), nil
	}
	return value.Doc("connectionId", int32(x.conn.id), "n", int32(0), "syncMillis", int32(0), "writtenTo", nil,
		"writeConcern", value.Doc("w", int32(1), "wtimeout", int32(0)), "err", nil), nil
}

func (x *exchange) driverOIDTest() (bson.D, error) {
	id, ok := x.request.Body.Index(0).Value().ObjectIDOK()
	if !ok {
		return nil, fault.Errorf(fault.BadValue, "not oid")
	}
	return value.Doc("oid", id, "str", id.Hex()), nil
}

// getLog lists the logs. They are empty.
func (x *exchange) getLog() (bson.D, error) {
	given := x.request.Body.Index(0).Value()
	name, ok := given.StringValueOK()
	switch {
	case !ok:
		return nil, fault.Errorf(fault.TypeMismatch, "Argument to getLog must be of type String; found %s of type %s", given,
			value.RawTypeName(given))
	case name == "*":
		return value.Doc("names", bson.A{"global", "startupWarnings"}), nil
	case name == "global", name == "startupWarnings":
		return value.Doc("totalLinesWritten", int32(0), "log", bson.A{}), nil
	}
	return nil, fault.Errorf(fault.OperationFailed, "No log named '%s'", name)
}

// hostInfo describes the machine as far as Go reports it.
func (x *exchange) hostInfo() (bson.D, error) {
	system := value.Doc("currentTime", bson.NewDateTimeFromTime(time.Now()), "hostname", x.view.Address,
		"cpuAddrSize", int32(strconv.IntSize), "memSizeMB", int64(0), "memLimitMB", int64(0),
		"numCores", int32(runtime.NumCPU()),
		"cpuArch", cmp.Or(map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH], runtime.GOARCH),
		"numaEnabled", false)
	return value.Doc("system", system, "os", value.Doc("type", runtime.GOOS, "name", runtime.GOOS, "version", ""),
		"extra", bson.D{}), nil
}

// getShardMap returns the connection strings of the shards in config.shards.
func (x *exchange) getShardMap() (bson.D, error) {
	if !x.view.isMongos() {
		return nil, fault.Errorf(203, "Sharding is not enabled")
	}
	reply, err := x.listShards()
	if err != nil {
		return nil, err
	}
	shards, hosts, names := bson.D{}, bson.D{}, bson.D{}
	for _, doc := range value.Documents(reply[0].Value.(bson.RawValue)) {
		name, host := doc.Lookup("_id").StringValue(), doc.Lookup("host").StringValue()
		shards = value.Append(shards, name, host)
		names = value.Append(names, host, name)
		_, members, _ := strings.Cut(host, "/")
		for member := range strings.SplitSeq(members, ",") {
			hosts = value.Append(hosts, member, name)
		}
	}
	return value.Doc("map", shards, "hosts", hosts, "connStrings", names), nil
}
