package server

import (
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
			r.name = value.TextAt(doc, "role")
			r.database = value.TextAt(doc, "db")
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
	"killSessions": true, "getMore": true, "killCursors": true, "commitTransaction": true, "abortTransaction": true,
	"listDatabases": true}

// ofMonitors are the commands that the role clusterMonitor permits.
var ofMonitors = map[string]bool{"serverStatus": true, "getCmdLineOpts": true, "getParameter": true,
	"replSetGetStatus": true, "replSetGetConfig": true, "listShards": true, "hostInfo": true, "getLog": true}

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
		x.request.Body.Index(0).Value()) // other fields could be secrets
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

// privilege permits actions on a resource: a collection, all collections of a database, or all of all databases.
type privilege struct {
	database, collection string
	actions              []string
}

// customRole is a role that createRole has created.
type customRole struct {
	privileges []privilege
	inherits   []role
}

// createRole creates a role from privileges and other roles.
func (x *exchange) createRole() (bson.D, error) {
	key := role{x.firstText(), x.request.DB}
	created := customRole{inherits: rolesOf(x.request.Body.Lookup("roles"), x.request.DB)}
	for _, doc := range value.Documents(x.request.Body.Lookup("privileges")) {
		created.privileges = append(created.privileges, privilege{value.TextAt(doc, "resource", "db"),
			value.TextAt(doc, "resource", "collection"), value.Strings(doc.Lookup("actions"))})
	}
	if _, exists := x.server.cluster.Users.roles.LoadOrStore(key, created); exists {
		return nil, fault.Errorf(fault.RoleAlreadyExists, "Role \"%s@%s\" already exists", key.name, key.database)
	}
	return nil, nil
}

func (x *exchange) dropRole() (bson.D, error) {
	key := role{x.firstText(), x.request.DB}
	if _, existed := x.server.cluster.Users.roles.LoadAndDelete(key); !existed {
		return nil, fault.Errorf(fault.RoleNotFound, "Role '%s@%s' not found", key.name, key.database)
	}
	return nil, nil
}

// actionsOf are the actions that commands need. Others need one of their own name.
var actionsOf = map[string][]string{"aggregate": {"find"}, "count": {"find"}, "distinct": {"find"}, "explain": {"find"},
	"delete": {"remove"}, "findAndModify": {"find", "update"}, "createIndexes": {"createIndex"},
	"dropIndexes": {"dropIndex"}, "create": {"createCollection"}, "drop": {"dropCollection"}}

// custom returns a role that createRole has created.
func (u *Users) custom(r role) (customRole, bool) {
	v, ok := u.roles.Load(r)
	found, _ := v.(customRole)
	return found, ok
}

// permits reports whether a role created by createRole permits the command.
func (r customRole) permits(x *exchange) bool {
	needed := actionsOf[x.row.Name]
	if needed == nil {
		needed = []string{x.row.Name}
	}
	collection := x.firstText()
	return !slices.ContainsFunc(needed, func(action string) bool {
		return !slices.ContainsFunc(r.privileges, func(p privilege) bool {
			return (p.database == "" || p.database == x.request.DB) && (p.collection == "" || p.collection == collection) &&
				slices.Contains(p.actions, action)
		})
	}) || slices.ContainsFunc(r.inherits, x.grants)
}
