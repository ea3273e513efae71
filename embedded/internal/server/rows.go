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
	type row = commands.Row
	rows := []command{
		// The handshake.
		{row{Name: "hello", BeforeAuth: true, Since: "4.4", API: "1"}, (*exchange).hello},
		{row{Name: "isMaster", Aliases: []string{"ismaster"}, BeforeAuth: true}, (*exchange).hello},
		{row{Name: "saslStart", BeforeAuth: true, API: "1"},
			func(x *exchange) (bson.D, error) { return x.conn.saslStart(x.request.Body, x.request.DB) }},
		{row{Name: "saslContinue", BeforeAuth: true, API: "1"}, (*exchange).saslContinue},
		{row{Name: "authenticate", BeforeAuth: true, API: "1"}, (*exchange).authenticate},
		{row{Name: "logout", BeforeAuth: true}, (*exchange).logout},
		{row{Name: "connectionStatus", BeforeAuth: true}, (*exchange).connectionStatus},
		{row{Name: "whatsmyuri", BeforeAuth: true}, (*exchange).whatsmyuri},
		{row{Name: "getnonce", BeforeAuth: true, Until: "6.1"}, (*exchange).getnonce},
		{row{Name: "createUser", Write: true, LocalhostException: true}, (*exchange).setUser},
		{row{Name: "updateUser", Write: true}, (*exchange).setUser},
		{row{Name: "dropUser", Write: true}, (*exchange).dropUser},
		{row{Name: "dropAllUsersFromDatabase", Write: true}, (*exchange).dropAllUsers},
		{row{Name: "usersInfo"}, (*exchange).usersInfo},
		{row{Name: "createRole", Write: true}, (*exchange).createRole},
		{row{Name: "dropRole", Write: true}, (*exchange).dropRole},

		// Diagnostics.
		{row{Name: "buildInfo", Aliases: []string{"buildinfo"}, BeforeAuth: true}, (*exchange).buildInfo},
		{row{Name: "serverStatus"}, (*exchange).serverStatus},
		{row{Name: "getCmdLineOpts", AdminOnly: true}, (*exchange).getCmdLineOpts},
		{row{Name: "getParameter", AdminOnly: true}, (*exchange).getParameter},
		{row{Name: "setParameter", AdminOnly: true}, (*exchange).setParameter},
		{row{Name: "configureFailPoint", AdminOnly: true, BeforeAuth: true}, (*exchange).configureFailPoint},
		{row{Name: "getLastError", Aliases: []string{"getlasterror"}, Until: "5.0"}, (*exchange).getLastError},
		{row{Name: "driverOIDTest", Roles: onMongod}, (*exchange).driverOIDTest},
		{row{Name: "profile"}, (*exchange).profile},
		{row{Name: "getLog", AdminOnly: true}, (*exchange).getLog},
		{row{Name: "hostInfo"}, (*exchange).hostInfo},

		// For tests of the stable API.
		{row{Name: "testDeprecationInVersion2", Since: "4.9", API: "12", Deprecated: "2"}, (*exchange).apiParameters},
		{row{Name: "testVersions1And2", Since: "4.9", API: "12"}, (*exchange).apiParameters},
		{row{Name: "testDeprecation", Since: "4.9", API: "1", Deprecated: "1"}, (*exchange).apiParameters},
		{row{Name: "testRemoval", Since: "4.9", API: "1"}, (*exchange).apiParameters},
		{row{Name: "testVersion2", Since: "4.9", API: "2"}, (*exchange).apiParameters},

		// Sessions.
		{row{Name: "startSession"}, (*exchange).startSession},
		{row{Name: "refreshSessions", API: "1"}, (*exchange).sessionList},
		{row{Name: "endSessions", API: "1"}, (*exchange).sessionList},
		{row{Name: "killSessions", Retryable: true, Transactional: true}, (*exchange).sessionList},
		{row{Name: "killAllSessions"}, (*exchange).sessionList},
		{row{Name: "killAllSessionsByPattern"}, (*exchange).sessionList},

		// The replica set.
		{row{Name: "replSetGetStatus", AdminOnly: true, LocalhostException: true}, onMember((*exchange).replSetGetStatus)},
		{row{Name: "replSetGetConfig", AdminOnly: true, Roles: onMongod}, onMember((*exchange).replSetGetConfig)},
		{row{Name: "replSetStepDown", AdminOnly: true, Roles: onMongod}, onMember((*exchange).replSetStepDown)},
		{row{Name: "replSetFreeze", AdminOnly: true, Roles: onMongod}, onMember((*exchange).replSetFreeze)},
		{row{Name: "replSetInitiate", AdminOnly: true, LocalhostException: true, Roles: onMongod},
			(*exchange).replSetInitiate},

		// The sharded cluster.
		{row{Name: "listShards", AdminOnly: true, Roles: onMongos}, (*exchange).listShards},
		{row{Name: "getShardMap", AdminOnly: true}, (*exchange).getShardMap},
	}
	rows = append(rows, constantRows()...)
	for i := range rows {
		rows[i].OnSecondary = true
	}
	return rows
}
