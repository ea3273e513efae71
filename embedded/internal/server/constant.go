package server

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// constantRows are commands with constant replies, on a mongod and on a mongos: what they report or change does not
// exist here. The replies are documents in relaxed Extended JSON.
func constantRows() (rows []command) {
	for _, c := range []struct {
		row            commands.Row
		mongod, mongos string
	}{
		{commands.Row{Name: "availableQueryOptions", Aliases: []string{"availablequeryoptions"}, Until: "5.0"},
			`{"options": 246}`, `{"options": 182}`},
		{commands.Row{Name: "features", Until: "5.0"}, `{"js": {"utf8": true}, "oidMachine": 1}`, ""},
		{commands.Row{Name: "isdbgrid", Roles: onMongos}, "", `{"isdbgrid": 1, "hostname": "localhost"}`},
		{commands.Row{Name: "top", AdminOnly: true, Roles: onMongod},
			`{"totals": {"note": "all times in microseconds"}}`, ""},
		{commands.Row{Name: "killOp", AdminOnly: true}, `{"info": "attempting to kill op"}`, `{}`},
		{commands.Row{Name: "logRotate", AdminOnly: true}, `{}`, ""},
		{commands.Row{Name: "fsync", AdminOnly: true}, `{"numFiles": 1}`,
			`{"numFiles": 1, "all": {"` + ShardName + `": {"numFiles": 1, "ok": 1.0}}}`},
		{commands.Row{Name: "connPoolStats"},
			`{"numClientConnections": 0, "numAScopedConnections": 0, "totalInUse": 0, "totalAvailable": 0,
			"totalCreated": 0, "totalRefreshing": 0, "pools": {}, "hosts": {}, "replicaSets": {}}`, ""},
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
		return bson.D{{Key: "shards", Value: bson.A{}}, {Key: "shardRawGLE", Value: bson.D{}}, {Key: "err", Value: nil}}, nil
	}
	return bson.D{
		{Key: "connectionId", Value: int32(x.conn.id)}, {Key: "n", Value: int32(0)}, {Key: "syncMillis", Value: int32(0)},
		{Key: "writtenTo", Value: nil},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: int32(1)}, {Key: "wtimeout", Value: int32(0)}}},
		{Key: "err", Value: nil},
	}, nil
}

func (x *exchange) driverOIDTest() (bson.D, error) {
	id, ok := x.request.Body.Index(0).Value().ObjectIDOK()
	if !ok {
		return nil, fault.Errorf(fault.BadValue, "not oid")
	}
	return bson.D{{Key: "oid", Value: id}, {Key: "str", Value: id.Hex()}}, nil
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
		return bson.D{{Key: "names", Value: bson.A{"global", "startupWarnings"}}}, nil
	case name == "global", name == "startupWarnings":
		return bson.D{{Key: "totalLinesWritten", Value: int32(0)}, {Key: "log", Value: bson.A{}}}, nil
	}
	return nil, fault.Errorf(fault.OperationFailed, "No log named '%s'", name)
}

// hostInfo describes the machine as far as Go reports it.
func (x *exchange) hostInfo() (bson.D, error) {
	system := bson.D{
		{Key: "currentTime", Value: bson.NewDateTimeFromTime(time.Now())}, {Key: "hostname", Value: x.view.Address},
		{Key: "cpuAddrSize", Value: int32(strconv.IntSize)}, {Key: "memSizeMB", Value: int64(0)},
		{Key: "memLimitMB", Value: int64(0)},
		{Key: "numCores", Value: int32(runtime.NumCPU())},
		{Key: "cpuArch", Value: cmp.Or(map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH],
			runtime.GOARCH)}, {Key: "numaEnabled", Value: false},
	}
	return bson.D{{Key: "system", Value: system},
		{Key: "os", Value: bson.D{{Key: "type", Value: runtime.GOOS}, {Key: "name", Value: runtime.GOOS},
			{Key: "version", Value: ""}}}, {Key: "extra", Value: bson.D{}}}, nil
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
	for _, v := range value.Elements(reply[0].Value.(bson.RawValue)) {
		doc, _ := v.DocumentOK()
		name, host := doc.Lookup("_id").StringValue(), doc.Lookup("host").StringValue()
		shards = append(shards, bson.E{Key: name, Value: host})
		names = append(names, bson.E{Key: host, Value: name})
		_, members, _ := strings.Cut(host, "/")
		for member := range strings.SplitSeq(members, ",") {
			hosts = append(hosts, bson.E{Key: member, Value: name})
		}
	}
	return bson.D{{Key: "map", Value: shards}, {Key: "hosts", Value: hosts}, {Key: "connStrings", Value: names}}, nil
}

// listCommands describes the commands of the server.
func (x *exchange) listCommands() (bson.D, error) {
	c, out := x.server.cluster, bson.D{}
	for _, name := range slices.Sorted(maps.Keys(c.commands)) {
		row := c.find(name, x.view.Role)
		if row == nil || row.Name != name {
			continue
		}
		of := bson.D{{Key: "help", Value: helpOf(name)}, {Key: "requiresAuth", Value: !row.BeforeAuth}}
		of = value.AddIf(of, !x.view.isMongos(), "secondaryOk", row.OnSecondary)
		of = append(of, bson.E{Key: "adminOnly", Value: row.AdminOnly})
		if x.view.Has.StableAPI {
			versions := bson.A{}
			for _, v := range row.API {
				versions = append(versions, string(v))
			}
			of = append(of, bson.E{Key: "apiVersions", Value: versions}, bson.E{Key: "deprecatedApiVersions", Value: bson.A{}})
		}
		out = append(out, bson.E{Key: name, Value: of})
	}
	return bson.D{{Key: "commands", Value: out}}, nil
}
