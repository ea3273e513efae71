package server

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
)

// Values of Row.Roles.
var (
	onMongod = []commands.Role{commands.Standalone, commands.Primary, commands.Secondary}
	onMongos = []commands.Role{commands.Mongos}
)

// command is a command of a server: a row and the function that executes it.
type command struct {
	commands.Row
	execute func(*exchange) (bson.D, error)
}

// Commands returns the rows of the commands of all versions and roles, and of a backend, by their names and aliases.
func Commands(backend []commands.Row) map[string]*commands.Row {
	all := map[string]*commands.Row{}
	for name, c := range allCommands(backend) {
		all[name] = &c.Row
	}
	return all
}

func allCommands(backend []commands.Row) map[string]*command {
	rows, all := protocolRows(), map[string]*command{}
	for _, row := range backend {
		rows = append(rows, command{Row: row})
	}
	for _, row := range rows {
		for _, name := range append([]string{row.Name}, row.Aliases...) {
			all[name] = &row
		}
	}
	return all
}

func protocolRows() []command {
	rows := []command{
		// The handshake.
		{commands.Row{Name: "hello", BeforeAuth: true, Since: "4.4", API: "1"}, (*exchange).hello},
		{commands.Row{Name: "isMaster", Aliases: []string{"ismaster"}, BeforeAuth: true}, (*exchange).hello},
		{commands.Row{Name: "saslStart", BeforeAuth: true, API: "1"},
			func(x *exchange) (bson.D, error) { return x.conn.saslStart(x.request.Body, x.request.DB) }},
		{commands.Row{Name: "saslContinue", BeforeAuth: true, API: "1"}, (*exchange).saslContinue},
		{commands.Row{Name: "authenticate", BeforeAuth: true, API: "1"}, (*exchange).authenticate},
		{commands.Row{Name: "logout", BeforeAuth: true}, (*exchange).logout},
		{commands.Row{Name: "connectionStatus", BeforeAuth: true}, (*exchange).connectionStatus},
		{commands.Row{Name: "whatsmyuri", BeforeAuth: true}, (*exchange).whatsmyuri},
		{commands.Row{Name: "getnonce", BeforeAuth: true, Until: "6.1"}, (*exchange).getnonce},
		{commands.Row{Name: "createUser", Write: true, LocalhostException: true}, (*exchange).setUser},
		{commands.Row{Name: "updateUser", Write: true}, (*exchange).setUser},
		{commands.Row{Name: "dropUser", Write: true}, (*exchange).dropUser},
		{commands.Row{Name: "dropAllUsersFromDatabase", Write: true}, (*exchange).dropAllUsers},
		{commands.Row{Name: "usersInfo"}, (*exchange).usersInfo},
		{commands.Row{Name: "createRole", Write: true}, (*exchange).createRole},
		{commands.Row{Name: "dropRole", Write: true}, (*exchange).dropRole},

		// Diagnostics.
		{commands.Row{Name: "ping", BeforeAuth: true, NoAfterClusterTime: true, API: "1"}, (*exchange).ping},
		{commands.Row{Name: "buildInfo", Aliases: []string{"buildinfo"}, BeforeAuth: true}, (*exchange).buildInfo},
		{commands.Row{Name: "serverStatus"}, (*exchange).serverStatus},
		{commands.Row{Name: "getCmdLineOpts", AdminOnly: true}, (*exchange).getCmdLineOpts},
		{commands.Row{Name: "getParameter", AdminOnly: true}, (*exchange).getParameter},
		{commands.Row{Name: "setParameter", AdminOnly: true}, (*exchange).setParameter},
		{commands.Row{Name: "configureFailPoint", AdminOnly: true, BeforeAuth: true}, (*exchange).configureFailPoint},
		{commands.Row{Name: "getLastError", Aliases: []string{"getlasterror"}, Until: "5.0"},
			(*exchange).getLastError},
		{commands.Row{Name: "driverOIDTest", Roles: onMongod}, (*exchange).driverOIDTest},
		{commands.Row{Name: "profile"}, (*exchange).profile},
		{commands.Row{Name: "getLog", AdminOnly: true}, (*exchange).getLog},
		{commands.Row{Name: "hostInfo"}, (*exchange).hostInfo},
		{commands.Row{Name: "listCommands"}, (*exchange).listCommands},

		// For tests of the stable API.
		{commands.Row{Name: "testDeprecationInVersion2", Since: "4.9", API: "12", Deprecated: "2"},
			(*exchange).apiParameters},
		{commands.Row{Name: "testVersions1And2", Since: "4.9", API: "12"}, (*exchange).apiParameters},
		{commands.Row{Name: "testDeprecation", Since: "4.9", API: "1", Deprecated: "1"},
			(*exchange).apiParameters},
		{commands.Row{Name: "testRemoval", Since: "4.9", API: "1"}, (*exchange).apiParameters},
		{commands.Row{Name: "testVersion2", Since: "4.9", API: "2"}, (*exchange).apiParameters},

		// Sessions.
		{commands.Row{Name: "startSession"}, (*exchange).startSession},
		{commands.Row{Name: "refreshSessions", API: "1"}, (*exchange).sessionList},
		{commands.Row{Name: "endSessions", API: "1"}, (*exchange).sessionList},
		{commands.Row{Name: "killSessions", Retryable: true, Transactional: true}, (*exchange).sessionList},
		{commands.Row{Name: "killAllSessions"}, (*exchange).sessionList},
		{commands.Row{Name: "killAllSessionsByPattern"}, (*exchange).sessionList},

		// The replica set.
		{commands.Row{Name: "replSetGetStatus", AdminOnly: true, LocalhostException: true},
			onMember((*exchange).replSetGetStatus)},
		{commands.Row{Name: "replSetGetConfig", AdminOnly: true, Roles: onMongod},
			onMember((*exchange).replSetGetConfig)},
		{commands.Row{Name: "replSetStepDown", AdminOnly: true, Roles: onMongod}, onMember((*exchange).replSetStepDown)},
		{commands.Row{Name: "replSetFreeze", AdminOnly: true, Roles: onMongod}, onMember((*exchange).replSetFreeze)},
		{commands.Row{Name: "replSetInitiate", AdminOnly: true, LocalhostException: true, Roles: onMongod},
			(*exchange).replSetInitiate},
		{commands.Row{Name: "shutdown", AdminOnly: true}, (*exchange).shutdown},

		// The sharded cluster.
		{commands.Row{Name: "listShards", AdminOnly: true, Roles: onMongos}, (*exchange).listShards},
		{commands.Row{Name: "getShardMap", AdminOnly: true}, (*exchange).getShardMap},
		{commands.Row{Name: "addShard", AdminOnly: true, LocalhostException: true, Roles: onMongos},
			(*exchange).addShard},
	}
	rows = append(rows, constantRows()...)
	for i := range rows {
		rows[i].OnSecondary = true
	}
	return rows
}
