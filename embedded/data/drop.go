package data

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// drop removes a collection.
func drop(s *scope, a *args) action {
	a.only(" collectionUUID encryptedFields ")
	name, db, d := a.name(), s.req.DB, s.d
	a.checkName(db, name)
	return func() (bson.D, error) {
		var c *collection
		err := s.locked(func() error {
			if c = d.collection(db, name); c == nil {
				return nil
			}
			if d.lockedIn(db, name) {
				return errBlocked
			}
			d.removeCollection(c)
			s.changed(entry{kind: opDrop, db: db, coll: name, uuid: c.uuid})
			return nil
		})
		switch {
		case err != nil:
			return nil, err
		case mongos(s.req), c == nil && wire(s.req) >= wire70:
			return bson.D{}, nil
		case c == nil:
			return nil, command.Errorf(command.CodeNamespaceNotFound, "ns not found")
		case c.isView():
			return bson.D{{Key: "ns", Value: c.ns()}}, nil
		}
		return bson.D{{Key: "nIndexesWas", Value: int32(c.catalogued())}, {Key: "ns", Value: c.ns()}}, nil
	}
}

// dropDatabase removes a database.
func dropDatabase(s *scope, a *args) action {
	name, d := s.req.DB, s.d
	a.Refuse(internalDB(name), command.CodeIllegalOperation, "Dropping the '%s' database is prohibited.", name)
	return func() (bson.D, error) {
		exists := false
		err := s.locked(func() error {
			collections := d.databases[name]
			if exists = len(collections) > 0; !exists {
				return nil
			}
			if d.lockedIn(name, "") {
				return errBlocked
			}
			for _, c := range collections {
				s.changed(entry{kind: opDrop, db: name, coll: c.name, uuid: c.uuid})
			}
			delete(d.databases, name)
			s.changed(entry{kind: opDropDatabase, db: name})
			return nil
		})
		switch {
		case err != nil:
			return nil, err
		case exists:
			return bson.D{{Key: "dropped", Value: name}}, nil
		case mongos(s.req):
			return bson.D{{Key: "info", Value: "database does not exist"}}, nil
		}
		return bson.D{}, nil
	}
}

// renameCollection renames a collection.
func renameCollection(s *scope, a *args) action {
	a.only(" to dropTarget stayTemp collectionUUID encryptedFields ")
	from, to, dropTarget, d := a.str("renameCollection"), a.str("to"), a.flag("dropTarget"), s.d
	a.need("to")
	fromDB, fromName, _ := strings.Cut(from, ".")
	toDB, toName, _ := strings.Cut(to, ".")
	a.checkName(fromDB, fromName)
	a.checkName(toDB, toName)
	a.Refuse(from == to, command.CodeIllegalOperation, "Can't rename a collection to itself")
	return func() (bson.D, error) {
		return bson.D{}, s.locked(func() error {
			c, target := d.collection(fromDB, fromName), d.collection(toDB, toName)
			e := entry{kind: opRename, db: fromDB, coll: fromName, to: to}
			switch {
			case c == nil:
				return command.Errorf(command.CodeNamespaceNotFound, "Source collection %s does not exist", from)
			case c.isView():
				return command.Errorf(command.CodeCommandNotSupportedOnView, "cannot rename view: %s", from)
			case target != nil && !dropTarget:
				return command.Errorf(command.CodeNamespaceExists, "target namespace exists")
			case target != nil:
				d.removeCollection(target)
				e.dropped = &target.uuid
			}
			d.removeCollection(c)
			moved := *c
			moved.db, moved.name = toDB, toName
			d.addCollection(&moved)
			e.uuid = c.uuid
			s.changed(e)
			return nil
		})
	}
}
