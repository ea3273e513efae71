package commands

import (
	"cmp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/pipeline"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// clusteredIndex returns the option clusteredIndex of create with its defaults, as listCollections shows it. It returns
// nil if the collection is not clustered.
func clusteredIndex(req *Request, a *args) bson.D {
	if v := a.any("clusteredIndex"); v == any(false) || v == nil {
		return nil
	}
	c := a.part("clusteredIndex")
	a.Refuse(c.doc == nil, fault.TypeMismatch,
		"BSON field 'create.clusteredIndex' is the wrong type '%s', expected type 'object'",
		value.TypeName(a.any("clusteredIndex")))
	a.Note(CheckDocument(req, c.of, c.doc))
	key, name := c.document("key"), cmp.Or(c.str("name"), "_id_")
	c.Refuse(!c.flag("unique"), 5979700, "The clusteredIndex option requires unique: true to be specified")
	c.Refuse(!value.Equal(key, value.Doc("_id", int32(1))), fault.InvalidIndexSpecificationOption,
		"The clusteredIndex option is only supported for key: {_id: 1}")
	c.Refuse(c.number("v", 2) != 2, fault.NotImplemented, "clusteredIndex.v is not implemented by the embedded deployment")
	return value.Doc("v", int32(2), "key", key, "name", name, "unique", true)
}

// enableSharding only checks its argument: every database can be sharded.
func enableSharding(_ *call, a *args) action {
	name := a.str("enableSharding")
	a.Refuse(name == "" || strings.ContainsAny(name, ". $/\\"), fault.InvalidNamespace,
		"invalid db name specified: %s", name)
	return func() (bson.D, error) { return bson.D{}, nil }
}

// shardCollection creates and logs the collection. Its data stays on the only shard.
func shardCollection(s *call, a *args) action {
	ns, key := a.str("shardCollection"), a.document("key")
	db, name, _ := strings.Cut(ns, ".")
	a.checkName(db, name)
	a.Refuse(len(key) == 0, fault.BadValue, "Shard key is empty")
	return func() (bson.D, error) {
		return s.change(func(tx *store.Tx) (bson.D, error) {
			c, err := tx.Writable(db, name, true)
			if err != nil {
				return nil, err
			}
			tx.Log(c.Logged(store.Shard, value.Doc("shardKey", key, "unique", a.flag("unique"), "numInitialChunks", int64(1))))
			return value.AddIf(value.Doc("collectionsharded", ns), s.has.ShardedUUID, "collectionUUID", c.UUID), nil
		})
	}
}

// checkMetadataConsistency reports no inconsistencies: there is only one shard.
func checkMetadataConsistency(s *call, a *args) action {
	size := a.batchSize()
	return func() (bson.D, error) { return s.list(s.req.DB+".$cmd.aggregate", nil, size), nil }
}

func createCommand(s *call, a *args) action {
	c := a.newCollection(s)
	a.capped(c)
	a.Refuse(a.flag("temp"), fault.InvalidOptions, "the 'temp' field is an invalid option")
	a.Refuse(a.has("viewOn") && c.ViewOn == "", fault.BadValue, "'viewOn' cannot be empty")
	a.Refuse(c.ViewOn == "" && a.has("pipeline"), fault.InvalidOptions,
		"'pipeline' requires 'viewOn' to also be specified")
	a.timeSeries(s.req, c)
	a.expireAfter(s, c)
	a.idIndex(s, c)
	opts := s.options(nil, c.Collation)
	a.view(c, opts)
	if a.has("validator") {
		c.Validator = a.filter("validator", opts)
	}
	reply := value.AddIf(bson.D{}, a.has("autoIndexId") && !mongos(s.req), "note",
		"The autoIndexId option is deprecated and will be removed in a future release")
	return func() (bson.D, error) {
		err := s.Update(func(tx *store.Tx) error { return s.create(tx, c) })
		if e, ok := err.(*fault.Error); ok && e.Code == viewOverCollection { // the server has created it before
			return nil, cmp.Or(s.Update(func(tx *store.Tx) error {
				_, err := tx.Writable(c.DB, "system.views", true)
				return err
			}), err)
		}
		return reply, err
	}
}

// newCollection returns the collection to create, with its options as listCollections shows them.
func (a *args) newCollection(s *call) *store.Collection {
	options := bson.D{}
	for _, e := range a.doc[1:] {
		if doc, ok := e.Value.(bson.D); ok && len(doc) == 0 && (e.Key == "storageEngine" || e.Key == "indexOptionDefaults") {
			continue
		}
		if n, whole := value.Int64(e.Value); whole && (e.Key == "max" || e.Key == "flags") { // stored as an int if it is one
			e.Value = value.Int(n)
		}
		apart := Generic(e.Key) || e.Key == "idIndex" || e.Key == "autoIndexId" || e.Key == "clusteredIndex"
		options = value.AddIf(options, !apart, e.Key, e.Value)
	}
	clustered := clusteredIndex(s.req, a)
	options = value.AddIf(options, clustered != nil, "clusteredIndex", clustered)
	c := store.NewCollection(s.req.DB, a.collection(s.req.DB), options)
	if clustered != nil {
		id := c.IDIndex()
		id.Name, id.Clustered = value.As[string](clustered, "name"), true
		id.Spec = value.Append(slices.Clip(clustered), "clustered", true)
	}
	c.ViewOn, c.TimeSeries = a.str("viewOn"), len(a.document("timeseries")) > 0
	a.Note(c.SetCollation(a.document("collation")))
	return c
}

func (a *args) capped(c *store.Collection) {
	c.Capped, c.MaxSize, c.MaxDocs = a.flag("capped"), a.number("size", 0), a.number("max", 0)
	a.Refuse(c.Capped && !a.has("size"), fault.InvalidOptions, "the 'size' field is required when 'capped' is true")
	a.Refuse(!c.Capped && (a.has("size") || a.has("max")), fault.InvalidOptions,
		"the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
	if c.Capped {
		c.MaxSize = (c.MaxSize + 255) / 256 * 256
		c.Options = value.Set(c.Options, "size", value.Int(c.MaxSize))
	}
}

func (a *args) expireAfter(s *call, c *store.Collection) {
	expires := a.has("expireAfterSeconds") && !c.TimeSeries && !c.Clustered()
	a.Refuse(expires && s.has.Clustered, fault.InvalidOptions,
		"'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified")
	a.Refuse(expires, fault.InvalidOptions, "'expireAfterSeconds' is only supported on time-series collections")
	a.Refuse(value.IsNumber(a.any("expireAfterSeconds")) && a.number("expireAfterSeconds", 0) < 0, fault.InvalidOptions,
		"TTL index 'expireAfterSeconds' option cannot be less than 0")
}

// idIndex checks the specification of the index on _id.
func (a *args) idIndex(s *call, c *store.Collection) {
	id := a.part("idIndex")
	if id.doc == nil {
		return
	}
	p := &indexParser{args: id, server: s.req.Server.Version}
	for _, e := range id.doc {
		p.option(e)
	}
	p.refuse(!p.has("key"), fault.FailedToParse, "The 'key' field is a required property of an index specification")
	a.Refuse(c.IsView(), fault.InvalidOptions, "'idIndex' is not allowed with 'viewOn': %s", value.Text(id.doc))
	a.Refuse(!value.Equal(id.document("key"), value.Doc("_id", int32(1))), fault.BadValue,
		"The field 'key' for an _id index must be {_id: 1}, but got %s", value.Text(id.document("key")))
}

func (a *args) view(c *store.Collection, opts query.Options) {
	if !c.IsView() {
		return
	}
	p, err := pipeline.Compile(a.array("pipeline"), opts)
	a.Note(err)
	a.Refuse(err == nil && p.Writes != "", fault.OptionNotSupportedOnView,
		"%s cannot be used in a view definition", p.Writes)
	a.Refuse(err == nil && p.Source == "$changeStream", fault.OptionNotSupportedOnView,
		"$changeStream cannot be used in a view definition")
	c.Indexes = nil
	if a.any("pipeline") == nil {
		c.Options = value.Set(c.Options, "pipeline", bson.A{})
	}
}

// timeSeries checks the options of a time series collection.
func (a *args) timeSeries(req *Request, c *store.Collection) {
	if !c.TimeSeries {
		return
	}
	for _, e := range a.doc[1:] {
		switch e.Key {
		case "timeseries", "storageEngine", "indexOptionDefaults", "collation", "expireAfterSeconds":
		default:
			a.Refuse(!Generic(e.Key) && !(e.Key == "capped" && !c.Capped), fault.InvalidOptions,
				"%s: 'timeseries' is not allowed with '%s'", c.NS(), e.Key)
		}
	}
	ts := a.part("timeseries")
	for _, key := range []string{"timeField", "metaField"} {
		a.Refuse(strings.Contains(ts.str(key), "."), fault.InvalidOptions,
			"%s: '%s' must be a top-level field and not contain a '.'", c.NS(), key)
	}
	span, rounding := ts.any("bucketMaxSpanSeconds"), ts.any("bucketRoundingSeconds")
	a.Refuse(req.Server.Has.BucketRounding && !value.Equal(span, rounding), fault.InvalidOptions,
		"Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set alongside each other")
	a.Refuse(ts.str("metaField") == "_id", fault.InvalidOptions, "'metaField' cannot be \"_id\"")
	a.Refuse(ts.str("metaField") == ts.str("timeField"), fault.InvalidOptions,
		"'metaField' cannot be the same as 'timeField'")
}

// viewOverCollection is the error of 5.0 for a view with the name of a collection.
const viewOverCollection = 17399

func (s *call) create(tx *store.Tx, c *store.Collection) error {
	if source := tx.Collection(c.DB, c.ViewOn); source != nil && source.IsView() && !source.Collation.Same(c.Collation) {
		return fault.Errorf(fault.OptionNotSupportedOnView, "View %s has conflicting collation with view %s", c.NS(),
			source.NS())
	}
	old := tx.Collection(c.DB, c.Name)
	known := slices.ContainsFunc([]string{"system.js", "system.profile", "system.views", "system.users", "system.version",
		"system.roles", "system.buckets."},
		func(name string) bool { return strings.HasPrefix(c.Name, name) })
	switch {
	case strings.HasPrefix(c.Name, "system.") && !known && s.has.Namespaces:
		return fault.Errorf(fault.InvalidNamespace, "Invalid system namespace: %s", c.NS())
	case old == nil:
		return tx.Create(c)
	}
	return s.exists(old, c)
}

// exists returns the error for a collection that exists, nil if a mongos accepts it.
func (s *call) exists(old, c *store.Collection) error {
	switch {
	case mongos(s.req) && value.Equal(old.Options, c.Options) && !s.InTransaction() &&
		!(c.TimeSeries && s.has.FirstViews):
		return nil // on a mongos, create is idempotent
	case mongos(s.req) && c.TimeSeries && old.Definition() != nil && s.has.FirstViews && !s.InTransaction():
		return fault.Errorf(fault.NamespaceExists, "ns: %s already exists with different options: %s", c.NS(),
			value.Text(old.Definition()))
	case s.has.NamespaceExists:
		return fault.Errorf(fault.NamespaceExists, "Collection %s already exists.", c.NS())
	case c.IsView() && !old.IsView() && s.has.FirstViews && !mongos(s.req):
		return fault.Errorf(viewOverCollection, "Cannot create collection %s - collection already exists.", c.NS())
	case c.IsView() && s.has.FirstViews:
		return fault.Errorf(fault.NamespaceExists, "Namespace already exists")
	case c.TimeSeries:
		return fault.Errorf(fault.NamespaceExists, "A timeseries collection already exists. NS: %s", c.NS())
	}
	return fault.Errorf(fault.NamespaceExists, "Collection already exists. NS: %s", c.NS())
}

func drop(s *call, a *args) action {
	name, db := a.collection(s.req.DB), s.req.DB
	return func() (bson.D, error) {
		var c *store.Collection
		err := s.Update(func(tx *store.Tx) error {
			if c = tx.Main(db, name); c == nil {
				return nil
			}
			return tx.Drop(c)
		})
		switch {
		case err != nil:
			if mongos(s.req) && !s.Deadline.IsZero() { // the shard continues
				s.DropLater(db, name)
			}
			return nil, err
		case mongos(s.req), c == nil && s.has.DropsMissing:
			return bson.D{}, nil
		case c == nil:
			return nil, fault.Errorf(fault.NamespaceNotFound, "ns not found")
		case c.IsView():
			return value.Doc("ns", c.NS()), nil
		}
		return value.Doc("nIndexesWas", int32(c.Catalogued()), "ns", c.NS()), nil
	}
}

func dropDatabase(s *call, a *args) action {
	name := s.req.DB
	a.Refuse(internalDB(name), fault.IllegalOperation, "Dropping the '%s' database is prohibited.", name)
	return func() (bson.D, error) {
		return s.change(func(tx *store.Tx) (bson.D, error) {
			existed, err := tx.DropDatabase(name)
			switch {
			case err != nil:
				return nil, err
			case existed && !s.has.SilentDrops:
				return value.Doc("dropped", name), nil
			case mongos(s.req) && !s.has.SilentDrops:
				return value.Doc("info", "database does not exist"), nil
			}
			return bson.D{}, nil
		})
	}
}

func renameCollection(s *call, a *args) action {
	from, to, dropTarget := a.str("renameCollection"), a.str("to"), a.flag("dropTarget")
	fromDB, fromName, _ := strings.Cut(from, ".")
	toDB, toName, _ := strings.Cut(to, ".")
	a.checkName(fromDB, fromName)
	a.Refuse(toName == "" && s.has.Namespaces, fault.InvalidNamespace, "Invalid target namespace: %s", to)
	a.checkName(toDB, toName)
	a.Refuse(from == to, fault.IllegalOperation, "Can't rename a collection to itself")
	return func() (bson.D, error) {
		return bson.D{}, s.Update(func(tx *store.Tx) error {
			c, target := tx.Main(fromDB, fromName), tx.Main(toDB, toName)
			switch {
			case c == nil && mongos(s.req):
				return fault.Errorf(fault.NamespaceNotFound, "Collection %s doesn't exist.", from)
			case c == nil:
				return fault.Errorf(fault.NamespaceNotFound, "Source collection %s does not exist", from)
			case c.IsView():
				return fault.Errorf(fault.CommandNotSupportedOnView, "cannot rename view: %s", from)
			case target != nil && !dropTarget:
				return fault.Errorf(fault.NamespaceExists, "target namespace exists")
			}
			tx.Rename(c, toDB, toName, target)
			return nil
		})
	}
}

// namespace checks the syntax of a namespace.
func namespace(db, name string) error {
	var p fault.First
	p.Refuse(name == "" || strings.Contains(db+name, "\x00"), fault.InvalidNamespace,
		"Invalid namespace specified '%s.%s'", db, name)
	p.Refuse(strings.Contains(name, "$") && !(db == "local" && strings.HasPrefix(name, "oplog.$")), fault.InvalidNamespace,
		"Invalid collection name: %s", name)
	p.Refuse(len(db)+len(name)+1 > 255, fault.InvalidNamespace,
		"Fully qualified namespace is too long. Namespace: %s.%s Max: 255", db, name)
	return p.Err
}
