package server

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// Where a command exists.
var (
	onMongod = []command.Role{command.Standalone, command.Primary, command.Secondary}
	onMongos = []command.Role{command.Mongos}
)

// protocolRows are the commands that need no data.
func protocolRows() []entry {
	row := func(name string, own func(*exchange) (bson.D, error), change func(*command.Row)) entry {
		e := entry{Row: command.Row{Name: name, OnSecondary: true}, own: own}
		if change != nil {
			change(&e.Row)
		}
		return e
	}
	free := func(r *command.Row) { r.BeforeAuth = true }
	admin := func(r *command.Row) { r.AdminOnly = true }
	write := func(r *command.Row) { r.Write = true }
	freeAdmin := func(r *command.Row) { r.AdminOnly, r.BeforeAuth = true, true }
	return []entry{
		// The handshake.
		row("hello", (*exchange).hello, func(r *command.Row) { r.BeforeAuth, r.MinWire = true, wire44 }),
		row("isMaster", (*exchange).hello, func(r *command.Row) { r.BeforeAuth, r.Aliases = true, []string{"ismaster"} }),
		row("saslStart", (*exchange).saslStart, free),
		row("saslContinue", (*exchange).saslContinue, free),
		row("authenticate", (*exchange).authenticate, free),
		row("logout", (*exchange).logout, free),
		row("connectionStatus", (*exchange).connectionStatus, free),
		row("whatsmyuri", (*exchange).whatsmyuri, free),

		row("getnonce", (*exchange).getnonce, func(r *command.Row) { r.BeforeAuth, r.MaxWire = true, 18 }),
		row("createUser", (*exchange).createUser, write),

		// Diagnostics.
		row("ping", (*exchange).ping, free),
		row("buildInfo", (*exchange).buildInfo, func(r *command.Row) { r.BeforeAuth, r.Aliases = true, []string{"buildinfo"} }),
		row("serverStatus", (*exchange).serverStatus, nil),
		row("getCmdLineOpts", (*exchange).getCmdLineOpts, admin),
		row("getParameter", (*exchange).getParameter, admin),
		row("setParameter", (*exchange).setParameter, admin),
		row("configureFailPoint", (*exchange).configureFailPoint, freeAdmin),
		row("testDeprecation", (*exchange).ping, func(r *command.Row) { r.MinWire = wire49 }),
		row("testDeprecationInVersion2", (*exchange).ping, func(r *command.Row) { r.MinWire = wire49 }),
		row("testVersion2", (*exchange).ping, func(r *command.Row) { r.MinWire = wire49 }),
		row("testVersions1And2", (*exchange).ping, func(r *command.Row) { r.MinWire = wire49 }),

		// Sessions.
		row("startSession", (*exchange).startSession, nil),
		row("refreshSessions", (*exchange).sessionList, nil),
		row("endSessions", (*exchange).endSessions, nil),
		row("killSessions", (*exchange).killSessions, nil),
		row("killAllSessions", (*exchange).killSessions, nil),
		row("killAllSessionsByPattern", (*exchange).killSessions, nil),

		row("refreshLogicalSessionCacheNow", (*exchange).ping, nil),

		// The replica set.
		row("replSetGetStatus", (*exchange).replSetGetStatus, admin),
		row("replSetGetConfig", (*exchange).replSetGetConfig, func(r *command.Row) { r.AdminOnly, r.Topologies = true, onMongod }),
		row("replSetStepDown", (*exchange).replSetStepDown, func(r *command.Row) { r.AdminOnly, r.Topologies = true, onMongod }),
		row("replSetFreeze", (*exchange).replSetFreeze, func(r *command.Row) { r.AdminOnly, r.Topologies = true, onMongod }),

		row("replSetInitiate", (*exchange).replSetInitiate, func(r *command.Row) { r.AdminOnly, r.Topologies = true, onMongod }),
		row("replSetReconfig", (*exchange).replSetReconfig, func(r *command.Row) { r.AdminOnly, r.Topologies = true, onMongod }),

		// The process.
		row("shutdown", (*exchange).shutdown, admin),

		// The sharded cluster.
		row("listShards", (*exchange).listShards, func(r *command.Row) { r.AdminOnly, r.Topologies = true, onMongos }),
		row("addShard", (*exchange).addShard, func(r *command.Row) { r.AdminOnly, r.Topologies = true, onMongos }),
	}
}
