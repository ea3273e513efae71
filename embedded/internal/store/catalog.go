package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// collection returns a collection of the deployment, or nil.
func (s *Store) collection(db, name string) *Collection {
	if isOplog(db, name) && s.logged {
		return s.oplog.collection()
	}
	for _, c := range s.databases[db] {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (s *Store) add(c *Collection) { s.databases[c.DB] = append(s.databases[c.DB], c) }

func (s *Store) remove(c *Collection) {
	s.databases[c.DB] = slices.DeleteFunc(s.databases[c.DB], func(x *Collection) bool { return x == c })
	if len(s.databases[c.DB]) == 0 {
		delete(s.databases, c.DB)
	}
}

// Databases returns the names of the databases in order.
func (tx *Tx) Databases() []string { return slices.Sorted(maps.Keys(tx.store.databases)) }

// Collections returns the collections of a database in order of creation.
func (tx *Tx) Collections(db string) []*Collection { return tx.store.databases[db] }

// Collection returns a collection as the work sees it, or nil.
func (tx *Tx) Collection(db, name string) *Collection {
	if tx.txn != nil {
		tx.txn.used[db+"."+name] = true
		return tx.txn.collections[db+"."+name]
	}
	return tx.store.collection(db, name)
}

// Main returns a collection of the deployment, even in a transaction, or nil.
func (tx *Tx) Main(db, name string) *Collection { return tx.store.collection(db, name) }

// WithUUID returns the collection of a database with a UUID, or nil.
func (w *Work) WithUUID(db string, uuid bson.Binary) *Collection {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()
	for _, c := range w.store.databases[db] {
		if value.Equal(c.UUID, uuid) {
			return c
		}
	}
	return nil
}

// Records returns a collection and its current records. They may be read without the lock.
func (w *Work) Records(db, name string) (*Collection, []*Record) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	c := (&Tx{Work: w}).Collection(db, name)
	return c, c.Snapshot()
}

// Writable returns a collection to write to. A missing one is created or, without create, nil.
func (tx *Tx) Writable(db, name string, create bool) (*Collection, error) {
	c := tx.Collection(db, name)
	if err := tx.Seen(db, name); err != nil {
		return nil, err
	}
	switch {
	case c == nil && create:
		c = NewCollection(db, name, bson.D{})
		if err := tx.Create(c); err != nil {
			return nil, err
		}
		tx.settle()
	case c == nil:
	case isOplog(db, name) && tx.store.logged:
		return nil, fault.Errorf(fault.NotImplemented, "writes to the oplog are not implemented by the embedded deployment")
	case c.IsView():
		return nil, OnView(c)
	case c.frozen:
		c = c.private()
		tx.txn.collections[c.NS()] = c
	}
	return c, nil
}

// Created reports whether the transaction has created a collection.
func (tx *Tx) Created(c *Collection) bool { return slices.Contains(tx.txn.created, c) }

// Create adds a new collection. In a transaction, others see it after the commit.
func (tx *Tx) Create(c *Collection) error {
	k := lockKey{ns: c.NS()}
	if err := tx.blocked(k); err != nil {
		return err
	}
	if tx.txn != nil {
		if tx.store.collection(c.DB, c.Name) != nil {
			return errWriteConflict
		}
		tx.lock(k)
		tx.txn.collections[c.NS()] = c
		tx.txn.created = append(tx.txn.created, c)
		return nil
	}
	tx.store.add(c)
	tx.define(nil, c)
	tx.logCreation(c)
	return nil
}

func (tx *Tx) logCreation(c *Collection) {
	c.created = tx.store.tick()
	tx.store.log(c.creation())
	tx.wrote = true
}

// creation returns the oplog entry of a new collection.
func (c *Collection) creation() Entry {
	e := Entry{TS: c.created, Kind: Create, DB: c.DB, Coll: c.Name, UUID: c.UUID, NSType: c.Kind()}
	switch {
	case c.Clustered():
		e.Detail = c.Options
	case !c.IsView():
		e.Detail = append(value.Doc("idIndex", c.Indexes[0].Spec), c.Options...)
	}
	return e
}

// Unlocked blocks the attempt while a transaction uses a collection or, if name is empty, one in a database.
func (tx *Tx) Unlocked(db, name string) error {
	for _, known := range tx.store.sessions {
		if known.txn == nil || known.txn.state != running {
			continue
		}
		for ns := range known.txn.used {
			if ns == db+"."+name || name == "" && strings.HasPrefix(ns, db+".") {
				return errBlocked
			}
		}
	}
	return nil
}

// DropLater removes a collection as soon as no transaction uses it. A mongos does so after its time limit.
func (w *Work) DropLater(db, name string) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.dropping = append(w.store.dropping, [2]string{db, name})
	w.store.dropUnlocked()
}

func (s *Store) dropUnlocked() {
	s.dropping = slices.DeleteFunc(s.dropping, func(ns [2]string) bool {
		c := s.collection(ns[0], ns[1])
		return c == nil || (&Tx{Work: &Work{store: s}}).Drop(c) == nil
	})
}

// Drop removes a collection.
func (tx *Tx) Drop(c *Collection) error {
	err := tx.Unlocked(c.DB, c.Name)
	if err == nil {
		tx.store.remove(c)
		tx.define(c, nil)
		tx.Log(c.Logged(Drop, nil))
	}
	return err
}

// DropDatabase removes a database and reports whether it existed.
func (tx *Tx) DropDatabase(name string) (bool, error) {
	collections := tx.store.databases[name]
	if len(collections) == 0 {
		return false, nil
	}
	if err := tx.Unlocked(name, ""); err != nil {
		return false, err
	}
	for _, c := range collections {
		tx.Log(c.Logged(Drop, nil))
	}
	delete(tx.store.databases, name)
	tx.Log(Entry{Kind: DropDatabase, DB: name})
	return true, nil
}

// Rename renames a collection. It drops target, unless that is nil.
func (tx *Tx) Rename(c *Collection, db, name string, target *Collection) {
	e := Entry{Kind: Rename, DB: c.DB, Coll: c.Name, UUID: c.UUID, To: db + "." + name}
	if target != nil {
		tx.store.remove(target)
		e.Dropped = &target.UUID
	}
	tx.store.remove(c)
	moved := *c
	moved.DB, moved.Name = db, name
	tx.store.add(&moved)
	tx.Log(e)
	moved.created = tx.store.Now()
}

// Modify replaces a collection by a changed copy, because readers may hold it.
func (tx *Tx) Modify(old, changed *Collection) {
	collections := tx.store.databases[old.DB]
	collections[slices.Index(collections, old)] = changed
	tx.define(old, changed)
	tx.Log(old.Logged(Modify, nil))
}

// Exchange stores a new collection in the place of old, unless that is nil. Its documents must begin with _id.
func (tx *Tx) Exchange(old, c *Collection, docs []bson.D) error {
	for _, doc := range docs {
		if err := cmp.Or(c.check(doc, 0), tx.valid(c, nil, doc)); err != nil {
			return err
		}
		c.swap(nil, c.newRecord(value.Encode(doc)))
	}
	if old != nil {
		tx.store.remove(old)
		tx.Log(old.Logged(Drop, nil))
	}
	tx.store.add(c)
	tx.logCreation(c)
	for _, r := range c.docs {
		tx.Log(Entry{Kind: Insert, DB: c.DB, Coll: c.Name, UUID: c.UUID, New: r})
	}
	return nil
}

// Seed stores a collection without logging it. Its documents must begin with _id.
func (s *Store) Seed(db, name string, docs ...bson.D) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := NewCollection(db, name, bson.D{})
	s.add(c)
	for _, doc := range docs {
		c.swap(nil, c.newRecord(value.Encode(doc)))
	}
}
