package server

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// Values of Row.Topologies.
var (
	onMongod = []command.Role{command.Standalone, command.Primary, command.Secondary}
	onMongos = []command.Role{command.Mongos}
)

// entry is a command of a server: a row and the function that executes it.
type entry struct {
	command.Row
	execute func(*exchange) (bson.D, error)
}

func protocolRows() []entry {
	rows := []entry{
		// The handshake.
		{command.Row{Name: "hello", BeforeAuth: true, MinWire: helloCommand.since, API: "1"}, (*exchange).hello},
		{command.Row{Name: "isMaster", Aliases: []string{"ismaster"}, BeforeAuth: true}, (*exchange).hello},
		{command.Row{Name: "saslStart", BeforeAuth: true, API: "1"}, func(x *exchange) (bson.D, error) { return x.conn.saslStart(x.request.Body, x.request.DB) }},
		{command.Row{Name: "saslContinue", BeforeAuth: true, API: "1"}, (*exchange).saslContinue},
		{command.Row{Name: "authenticate", BeforeAuth: true, API: "1"}, (*exchange).authenticate},
		{command.Row{Name: "logout", BeforeAuth: true}, (*exchange).logout},
		{command.Row{Name: "connectionStatus", BeforeAuth: true}, (*exchange).connectionStatus},
		{command.Row{Name: "whatsmyuri", BeforeAuth: true}, (*exchange).whatsmyuri},
		{command.Row{Name: "getnonce", BeforeAuth: true, MaxWire: 18}, (*exchange).getnonce},
		{command.Row{Name: "createUser", Write: true, LocalhostException: true}, (*exchange).setUser},
		{command.Row{Name: "updateUser", Write: true}, (*exchange).setUser},

		// Diagnostics.
		{command.Row{Name: "ping", BeforeAuth: true, API: "1"}, (*exchange).ping},
		{command.Row{Name: "buildInfo", Aliases: []string{"buildinfo"}, BeforeAuth: true}, (*exchange).buildInfo},
		{command.Row{Name: "serverStatus"}, (*exchange).serverStatus},
		{command.Row{Name: "getCmdLineOpts", AdminOnly: true}, (*exchange).getCmdLineOpts},
		{command.Row{Name: "getParameter", AdminOnly: true}, (*exchange).getParameter},
		{command.Row{Name: "setParameter", AdminOnly: true}, (*exchange).setParameter},
		{command.Row{Name: "configureFailPoint", AdminOnly: true, BeforeAuth: true}, (*exchange).configureFailPoint},

		// For tests of the stable API.
		{command.Row{Name: "testDeprecationInVersion2", MinWire: stableAPI.since, API: "12", Deprecated: "2"}, (*exchange).ping},
		{command.Row{Name: "testVersion2", MinWire: stableAPI.since, API: "2"}, (*exchange).ping},

		// Sessions.
		{command.Row{Name: "startSession"}, (*exchange).startSession},
		{command.Row{Name: "refreshSessions", API: "1"}, (*exchange).sessionList},
		{command.Row{Name: "endSessions", API: "1"}, (*exchange).sessionList},
		{command.Row{Name: "killSessions"}, (*exchange).sessionList},
		{command.Row{Name: "killAllSessions"}, (*exchange).sessionList},

		// The replica set.
		{command.Row{Name: "replSetGetStatus", AdminOnly: true, LocalhostException: true}, onMember((*exchange).replSetGetStatus)},
		{command.Row{Name: "replSetGetConfig", AdminOnly: true, Topologies: onMongod}, onMember((*exchange).replSetGetConfig)},
		{command.Row{Name: "replSetStepDown", AdminOnly: true, Topologies: onMongod}, onMember((*exchange).replSetStepDown)},
		{command.Row{Name: "replSetFreeze", AdminOnly: true, Topologies: onMongod}, onMember((*exchange).replSetFreeze)},
		{command.Row{Name: "replSetInitiate", AdminOnly: true, LocalhostException: true, Topologies: onMongod}, (*exchange).replSetInitiate},
		{command.Row{Name: "shutdown", AdminOnly: true}, (*exchange).shutdown},

		// The sharded cluster.
		{command.Row{Name: "listShards", AdminOnly: true, Topologies: onMongos}, (*exchange).listShards},
		{command.Row{Name: "addShard", AdminOnly: true, LocalhostException: true, Topologies: onMongos}, (*exchange).addShard},
	}
	for i := range rows {
		rows[i].OnSecondary, rows[i].NoTransaction = true, true
	}
	return rows
}
