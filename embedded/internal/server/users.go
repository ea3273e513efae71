package server

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// The commands for users.

// setUser creates or changes a user. Users can authenticate even without access control.
func (x *exchange) setUser() (bson.D, error) {
	users, name := x.server.cluster.Users, x.firstText()
	password, given := x.request.Body.Lookup("pwd").StringValueOK()
	old := users.find(x.request.DB, name)
	names, digested, err := x.mechanisms(old, given)
	if err = cmp.Or(x.wrongUser(old), err); err != nil {
		return nil, err
	}
	user := User{Name: name, Database: x.request.DB, id: value.NewUUID()}
	if old != nil {
		user = *old
	}
	if given || old == nil {
		user.credentials, err = credentialsOf(name, password, digested, names)
	} else {
		user.credentials = maps.Clone(old.credentials)
		maps.DeleteFunc(user.credentials,
			func(name string, _ scram.StoredCredentials) bool { return !slices.Contains(names, name) })
	}
	if roles, err := x.request.Body.LookupErr("roles"); err == nil {
		user.roles = rolesOf(roles, x.request.DB)
	}
	if err == nil {
		users.store(&user)
	}
	return nil, err
}

// wrongUser returns an error if the user cannot be created or changed as the command says.
func (x *exchange) wrongUser(old *User) error {
	name, db, creates := x.firstText(), x.request.DB, x.row.Name == "createUser"
	password, given := x.request.Body.Lookup("pwd").StringValueOK()
	changes := given || slices.ContainsFunc([]string{"roles", "customData", "mechanisms", "authenticationRestrictions"},
		func(field string) bool { return value.Has(x.request.Body, field) })
	var p fault.First
	p.Refuse(creates && name == "", fault.BadValue, "User document needs 'user' field to be non-empty")
	p.Refuse(creates && !given && db != "$external", fault.BadValue,
		"Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db")
	p.Refuse(given && password == "", 50687, "Password cannot be empty")
	p.Refuse(!creates && !changes, fault.BadValue, "Must specify at least one field to update in updateUser")
	p.Refuse(creates && old != nil, fault.UserAlreadyExists, "User \"%s@%s\" already exists", name, db)
	p.Refuse(!creates && old == nil, fault.UserNotFound, "User '%s@%s' not found", name, db)
	return p.Err
}

// mechanisms returns the mechanisms with which the user may authenticate, and whether the password is digested.
func (x *exchange) mechanisms(old *User, password bool) (names []string, digested bool, _ error) {
	given, err := x.request.Body.LookupErr("mechanisms")
	digests, isSet := x.request.Body.Lookup("digestPassword").BooleanOK()
	digested, names = isSet && !digests, value.Strings(given)
	var p fault.First
	switch {
	case err != nil && old != nil && !password:
		names = old.mechanisms()
	case err != nil:
		names = slices.Collect(maps.Keys(mechanisms))
	}
	p.Refuse(len(names) == 0 && x.request.DB != "$external", fault.BadValue, "mechanisms field must not be empty")
	for _, name := range names {
		m, known := mechanisms[name]
		p.Refuse(!known, fault.BadValue, "Unknown auth mechanism '%s'", name)
		p.Refuse(digested && !m.digest, fault.BadValue, "Use of SCRAM-SHA-256 requires undigested passwords")
		p.Refuse(old != nil && !password && !slices.Contains(old.mechanisms(), name), fault.BadValue,
			"mechanisms field must be a subset of previously set mechanisms")
	}
	return names, digested, p.Err
}

// firstText returns the value of the first field of the command, "" if it is not a string.
func (x *exchange) firstText() string {
	name, _ := x.request.Body.Index(0).Value().StringValueOK()
	return name
}

func (x *exchange) dropUser() (bson.D, error) {
	users, name := x.server.cluster.Users, x.firstText()
	user := users.find(x.request.DB, name)
	if user == nil {
		return nil, fault.Errorf(fault.UserNotFound, "User '%s@%s' not found", name, x.request.DB)
	}
	users.users.Delete(user.key())
	return nil, nil
}

func (x *exchange) dropAllUsers() (bson.D, error) {
	users := x.server.cluster.Users
	dropped := users.list(func(u *User) bool { return u.Database == x.request.DB })
	for _, u := range dropped {
		users.users.Delete(u.key())
	}
	return value.Doc("n", int32(len(dropped))), nil
}

// usersInfo lists all users of a database (1), of all databases (forAllDBs), or those that are named.
func (x *exchange) usersInfo() (bson.D, error) {
	given := x.request.Body.Index(0).Value()
	doc, isDocument := given.DocumentOK()
	all := value.FlagAt(doc, "forAllDBs")
	_, isNumber := given.AsFloat64OK()
	_, isText := given.StringValueOK()
	named := []bson.RawValue{given}
	if given.Type == bson.TypeArray {
		named = value.Elements(given)
	} else if !isDocument && !isNumber && !isText {
		return nil, fault.Errorf(fault.BadValue, "UserName must be either a string or an object")
	}
	wanted := func(u *User) bool {
		return all || isNumber && u.Database == x.request.DB ||
			slices.ContainsFunc(named, func(v bson.RawValue) bool { return u.is(v, x.request.DB) })
	}
	out := bson.A{}
	for _, u := range x.server.cluster.Users.list(wanted) {
		out = append(out, value.Doc("_id", u.key(), "userId", u.id, "user", u.Name, "db", u.Database,
			"roles", u.rolesDocument(), "mechanisms", u.mechanisms()))
	}
	return value.Doc("users", out), nil
}

// is reports whether a value names the user: a name of the database, or a document with user and db.
func (u *User) is(v bson.RawValue, db string) bool {
	name, isText := v.StringValueOK()
	if doc, ok := v.DocumentOK(); ok {
		name, isText = doc.Lookup("user").StringValueOK()
		db = value.TextAt(doc, "db")
	}
	return isText && u.Name == name && u.Database == db
}

// list returns the users that are wanted, in the order of their databases and names.
func (u *Users) list(wanted func(*User) bool) (out []*User) {
	u.users.Range(func(_, v any) bool {
		if user := v.(*User); wanted(user) {
			out = append(out, user)
		}
		return true
	})
	slices.SortFunc(out, func(a, b *User) int { return strings.Compare(a.key(), b.key()) })
	return out
}

// knownUser returns an error if a document with user and db does not name a user.
func (x *exchange) knownUser(doc bson.Raw) error {
	name := value.TextAt(doc, "user")
	db := value.TextAt(doc, "db")
	switch {
	case x.server.cluster.Users.find(db, name) != nil:
		return nil
	case x.view.isMongos():
		return fault.Errorf(fault.UserNotFound, "User \"%s@%s\" not found", name, db)
	}
	return fault.Errorf(fault.UserNotFound, "Could not find user \"%s\" for db \"%s\"", name, db)
}
