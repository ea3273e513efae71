package server

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// codeUserExists is what the server answers if a user is made twice.
const codeUserExists = 51003

// createUser makes a user. It can authenticate even without access control.
func (x *exchange) createUser() (bson.D, error) {
	users, name, err := x.aboutUser()
	if err != nil {
		return nil, err
	}
	password, ok := x.request.Body.Lookup("pwd").StringValueOK()
	if !ok && x.request.DB != "$external" {
		return nil, refuse(codeBadValue, "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db")
	}
	roles, err := x.roles()
	if err != nil {
		return nil, err
	}
	if users.find(x.request.DB, name) != nil {
		return nil, refuse(codeUserExists, "User \"%s@%s\" already exists", name, x.request.DB)
	}
	return nil, users.add(x.request.DB, name, password, roles)
}

// updateUser changes a user's password or roles.
func (x *exchange) updateUser() (bson.D, error) {
	users, name, err := x.aboutUser()
	if err != nil {
		return nil, err
	}
	old := users.find(x.request.DB, name)
	if old == nil {
		return nil, x.noUser(name)
	}
	roles := old.roles
	if _, err := x.request.Body.LookupErr("roles"); err == nil {
		if roles, err = x.roles(); err != nil {
			return nil, err
		}
	}
	if password, ok := x.request.Body.Lookup("pwd").StringValueOK(); ok {
		return nil, users.add(x.request.DB, name, password, roles)
	}
	next := *old
	next.roles = roles
	users.mu.Lock()
	defer users.mu.Unlock()
	users.users[x.request.DB+"."+name] = &next
	return nil, nil
}

func (x *exchange) dropUser() (bson.D, error) {
	users, name, err := x.aboutUser()
	if err != nil {
		return nil, err
	}
	if users.find(x.request.DB, name) == nil {
		return nil, x.noUser(name)
	}
	users.mu.Lock()
	defer users.mu.Unlock()
	delete(users.users, x.request.DB+"."+name)
	return nil, nil
}

// usersInfo tells of one user, by name or document, or of all of the database.
func (x *exchange) usersInfo() (bson.D, error) {
	value := x.request.Body.Index(0).Value()
	database, name := x.request.DB, ""
	if doc, ok := value.DocumentOK(); ok {
		name, _ = doc.Lookup("user").StringValueOK()
		if db, ok := doc.Lookup("db").StringValueOK(); ok {
			database = db
		}
	} else {
		name, _ = value.StringValueOK()
	}
	users := x.conn.server.cluster.users
	users.mu.Lock()
	defer users.mu.Unlock()
	list := bson.A{}
	for _, u := range users.sorted() {
		if u.Database == database && (name == "" || u.Name == name) {
			list = append(list, bson.D{
				{Key: "_id", Value: u.Database + "." + u.Name},
				{Key: "userId", Value: u.id},
				{Key: "user", Value: u.Name},
				{Key: "db", Value: u.Database},
				{Key: "roles", Value: u.roleDocs()},
				{Key: "mechanisms", Value: mechanismNames()},
			})
		}
	}
	return bson.D{{Key: "users", Value: list}}, nil
}

// sorted are the users by database and name. The caller holds mu.
func (u *Users) sorted() []*User {
	var out []*User
	for _, user := range u.users {
		out = append(out, user)
	}
	slices.SortFunc(out, func(a, b *User) int {
		return strings.Compare(a.Database+"."+a.Name, b.Database+"."+b.Name)
	})
	return out
}

func (x *exchange) aboutUser() (*Users, string, error) {
	name, ok := x.request.Body.Index(0).Value().StringValueOK()
	if !ok || name == "" {
		return nil, "", refuse(codeBadValue, "User document needs 'user' field to be non-empty")
	}
	return x.conn.server.cluster.users, name, nil
}

func (x *exchange) noUser(name string) error {
	return refuse(codeUserNotFound, "User '%s@%s' not found", name, x.request.DB)
}

// roles are those that the command names.
func (x *exchange) roles() ([]any, error) {
	list, ok := x.request.Body.Lookup("roles").ArrayOK()
	if !ok {
		return nil, refuse(codeBadValue, "\"%s\" command requires a \"roles\" array", x.row.Name)
	}
	values, err := list.Values()
	if err != nil {
		return nil, err
	}
	var out []any
	for _, v := range values {
		if name, ok := v.StringValueOK(); ok {
			out = append(out, name)
			continue
		}
		doc, ok := v.DocumentOK()
		if !ok {
			return nil, refuse(codeTypeMismatch, "Role names must be either strings or objects")
		}
		out = append(out, slices.Clone(doc))
	}
	return out, nil
}
