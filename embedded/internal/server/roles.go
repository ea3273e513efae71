package server

import (
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

type role struct{ name, database string }

// rolesDocument returns the roles of the user as in replies.
func (u *User) rolesDocument() bson.A {
	out := bson.A{}
	for _, r := range u.roles {
		out = append(out, value.Doc("role", r.name, "db", r.database))
	}
	return out
}

// rolesOf reads roles. A name is a role of the user's database.
func rolesOf(given bson.RawValue, db string) (roles []role) {
	for _, one := range value.Elements(given) {
		r := role{database: db}
		if doc, ok := one.DocumentOK(); ok {
			r.name, _ = doc.Lookup("role").StringValueOK()
			r.database, _ = doc.Lookup("db").StringValueOK()
		} else {
			r.name, _ = one.StringValueOK()
		}
		roles = append(roles, r)
	}
	return roles
}

// limited are the roles that do not have all privileges (MongoDB manual, "Built-In Roles"), and what they permit.
var limited = map[string]struct{ reads, writes, everywhere, monitors bool }{
	"read":                 {reads: true},
	"readWrite":            {reads: true, writes: true},
	"readAnyDatabase":      {reads: true, everywhere: true},
	"readWriteAnyDatabase": {reads: true, writes: true, everywhere: true},
	"clusterMonitor":       {monitors: true},
}

// ofAnyUser are the commands that every user may run: on the user's own sessions, cursors and transactions.
var ofAnyUser = map[string]bool{"startSession": true, "refreshSessions": true, "endSessions": true,
	"killSessions": true, "getMore": true,
	"killCursors": true, "listCommands": true, "commitTransaction": true, "abortTransaction": true, "listDatabases": true}

// ofMonitors are the commands that the role clusterMonitor permits.
var ofMonitors = map[string]bool{"serverStatus": true, "getCmdLineOpts": true, "getParameter": true,
	"replSetGetStatus": true,
	"replSetGetConfig": true, "listShards": true, "hostInfo": true, "getLog": true}

// reads reports whether a role permits to read a database, or with "" all of them.
func (u *Users) reads(r role, db string) bool {
	if custom, ok := u.custom(r); ok {
		return slices.ContainsFunc(custom.privileges,
			func(p privilege) bool { return db != "" && (p.database == "" || p.database == db) }) ||
			slices.ContainsFunc(custom.inherits, func(r role) bool { return u.reads(r, db) })
	}
	may, some := limited[r.name]
	return !some || may.monitors || may.reads && (may.everywhere || r.database == db)
}

// permitted rejects a command for which the user has no role.
func (x *exchange) permitted() error {
	if x.row.BeforeAuth || ofAnyUser[x.row.Name] {
		return nil
	}
	if slices.ContainsFunc(x.conn.user.roles, x.grants) {
		return nil
	}
	return fault.Errorf(fault.Unauthorized, "not authorized on %s to execute command { %s: %s }", x.request.DB, x.row.Name,
		operand(x.request.Body))
}

// grants reports whether a role permits the command.
func (x *exchange) grants(r role) bool {
	if custom, ok := x.server.cluster.Users.custom(r); ok {
		return custom.permits(x)
	}
	may, some := limited[r.name]
	onData := may.reads && x.row.Parse != nil && (may.everywhere || r.database == x.request.DB) &&
		(may.writes || !x.row.Write)
	return !some || onData || may.monitors && ofMonitors[x.row.Name]
}

// operand is the value of the first field of a command in a message. Other fields could be secrets.
func operand(body bson.Raw) string {
	if e, err := body.IndexErr(0); err == nil {
		return fmt.Sprint(e.Value())
	}
	return ""
}
