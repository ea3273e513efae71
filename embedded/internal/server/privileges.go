package server

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

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
	for _, v := range value.Elements(x.request.Body.Lookup("privileges")) {
		doc, _ := v.DocumentOK()
		p := privilege{actions: value.Strings(doc.Lookup("actions"))}
		p.database, _ = doc.Lookup("resource", "db").StringValueOK()
		p.collection, _ = doc.Lookup("resource", "collection").StringValueOK()
		created.privileges = append(created.privileges, p)
	}
	if _, exists := x.server.cluster.Users.roles.LoadOrStore(key, created); exists {
		return nil, fault.Errorf(codeRoleExists, "Role \"%s@%s\" already exists", key.name, key.database)
	}
	return nil, nil
}

func (x *exchange) dropRole() (bson.D, error) {
	key := role{x.firstText(), x.request.DB}
	if _, existed := x.server.cluster.Users.roles.LoadAndDelete(key); !existed {
		return nil, fault.Errorf(codeRoleNotFound, "Role '%s@%s' not found", key.name, key.database)
	}
	return nil, nil
}

const (
	codeRoleNotFound = 31
	codeRoleExists   = 51002
)

// actionsOf are the actions that commands need. Others need one of their own name.
var actionsOf = map[string][]string{"find": {"find"}, "aggregate": {"find"}, "count": {"find"}, "distinct": {"find"},
	"explain": {"find"},
	"insert":  {"insert"}, "update": {"update"}, "delete": {"remove"}, "findAndModify": {"find",
		"update"}, "createIndexes": {"createIndex"},
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
