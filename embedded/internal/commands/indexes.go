package commands

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/pipeline"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

func createIndexes(s *call, a *args) action {
	name, list := a.collection(s.req.DB), a.array("indexes")
	a.Refuse(len(list) == 0, fault.BadValue, "Must specify at least one index to create")
	a.Refuse(a.has("commitQuorum") && !s.d.Logged(), fault.BadValue, "Standalones can't specify commitQuorum")
	quorum := a.quorum(s)
	specs, invalid := make([]*store.Index, len(list)), new(fault.First) // the shard finds what is invalid
	for i, v := range list {
		doc := v.(bson.D)
		if a.flag("ignoreUnknownIndexOptions") {
			doc = slices.DeleteFunc(slices.Clone(doc), func(e bson.E) bool { _, known := indexOptions[e.Key]; return !known })
		}
		p := &indexParser{args: &args{of: "createIndexes.indexes", doc: doc, First: invalid}, server: s.req.Server.Version,
			strict: a.flag("apiStrict")}
		specs[i] = p.parse(p.collation(s, s.req.DB, name))
	}
	if !mongos(s.req) {
		a.Note(invalid.Err)
	}
	return func() (bson.D, error) {
		if invalid.Err != nil {
			return s.onShard(nil, invalid.Err)
		}
		return s.onShard(s.buildIndexes(name, specs, quorum))
	}
}

// quorum returns the commit quorum of an index build. A replica set must be able to satisfy it.
func (a *args) quorum(s *call) any {
	given := a.any("commitQuorum")
	n := int64(value.Float(given))
	name, isName := given.(string)
	a.Refuse(isName && name == "", fault.FailedToParse, "commitQuorum can't be an empty string")
	a.Refuse(n < 0 || n > 50, fault.FailedToParse, "commitQuorum has to be a non-negative number and not greater than 50")
	a.Refuse(isName && name != "votingMembers" && name != "majority", fault.UnknownReplWriteConcern,
		"No write concern mode named '%s' found in replica set configuration", name)
	a.Refuse(s.req.Server.DataBearing > 0 && n > int64(s.req.Server.DataBearing), 278,
		"Not enough data-bearing voting nodes to satisfy commit quorum")
	if value.IsNumber(given) {
		return value.Int(n)
	}
	return cmp.Or(given, any("votingMembers"))
}

// indexOption describes an option of an index: its type, "bool" also for a number, and the release that added it.
type indexOption struct{ kind, since string }

var indexOptions = map[string]indexOption{
	"v": {kind: "number"}, "key": {kind: "object"}, "name": {kind: "string"}, "ns": {}, "dropDups": {},
	"unique": {kind: "bool"}, "background": {kind: "bool"}, "sparse": {kind: "bool"}, "expireAfterSeconds": {},
	"hidden": {kind: "bool", since: "4.4"}, "partialFilterExpression": {kind: "object"}, "collation": {kind: "object"},
	"storageEngine": {kind: "object"}, "wildcardProjection": {kind: "object"}, "weights": {},
	"default_language": {kind: "string"}, "language_override": {kind: "string"}, "textIndexVersion": {kind: "number"},
	"2dsphereIndexVersion": {kind: "number"}, "bits": {kind: "number"}, "min": {kind: "number"}, "max": {kind: "number"},
	"bucketSize": {kind: "number"}, "clustered": {kind: "bool", since: "6.0"},
	"prepareUnique": {kind: "bool", since: "6.0"},
}

// indexTypes are the types of indexes other than an ascending or a descending one, with the fields that complete a
// spec.
var indexTypes = map[string]bson.D{
	"text": value.Doc("weights", nil, "default_language", "english", "language_override", "language",
		"textIndexVersion", int32(3)),
	"2dsphere": value.Doc("2dsphereIndexVersion", int32(3)), "2d": {}, "hashed": {},
}

type indexParser struct {
	*args
	server *version.Version
	strict bool // apiStrict
}

func (p *indexParser) refuse(when bool, code int32, format string, values ...any) {
	p.Refuse(when, code, "Error in specification %s :: caused by :: %s", value.Text(p.doc), fmt.Sprintf(format, values...))
}

func (p *indexParser) parse(collation value.Collation) *store.Index {
	for _, e := range p.doc {
		p.option(e)
	}
	p.refuse(!p.has("key"), fault.FailedToParse, "The 'key' field is a required property of an index specification")
	p.refuse(!p.has("name"), fault.FailedToParse, "The 'name' field is a required property of an index specification")
	x := &store.Index{Key: p.document("key"), Name: p.str("name"), Unique: p.flag("unique"), Sparse: p.flag("sparse"),
		Collation: collation, Prepared: p.flag("prepareUnique") && !p.flag("unique"), Clustered: p.flag("clustered")}
	p.refuse(len(x.Key) == 0, fault.CannotCreateIndex, "Index keys cannot be an empty object")
	p.refuse(x.Name == "*", fault.BadValue, "The index name '*' is not valid.")
	for _, k := range x.Key {
		p.key(k, collation.Spec() != nil)
	}
	if p.has("partialFilterExpression") {
		x.Partial = p.filter("partialFilterExpression", query.Options{Options: expression.Options{Collation: x.Collation, Wire: p.server.Wire}})
		p.refuse(x.Sparse, fault.CannotCreateIndex, "cannot mix \"partialFilterExpression\" and \"sparse\" options")
		p.partial(p.document("partialFilterExpression"))
	}
	p.expiry(x)
	p.special(x)
	if isID := len(x.Key) == 1 && x.Key[0].Key == "_id" && value.IsNumber(x.Key[0].Value); isID && !x.Clustered {
		for _, e := range p.doc {
			p.refuse(e.Key == "sparse" || e.Key == "unique" || e.Key == "partialFilterExpression" ||
				e.Key == "expireAfterSeconds" || e.Key == "hidden", fault.InvalidIndexSpecificationOption,
				"The field '%s' is not valid for an _id index specification. Specification: %s", e.Key, value.Text(p.doc))
		}
	}
	x.Spec = p.spec(x)
	return x
}

// partial checks that the conditions of a partial index are of the kinds that it supports.
func (p *indexParser) partial(filter bson.D) {
	for _, e := range filter {
		list, _ := e.Value.(bson.A)
		logical := strings.HasPrefix(e.Key, "$")
		for _, v := range list {
			if d, ok := v.(bson.D); ok && logical {
				p.partial(d)
			}
		}
		if logical && fault.Exists("partial", e.Key, p.server.Wire) {
			continue
		}
		for _, op := range operators(e) {
			unknown := logical || !fault.Exists("partial", op.Key, p.server.Wire)
			p.refuse(unknown || op.Key == "$exists" && !value.Truthy(op.Value),
				fault.CannotCreateIndex, "Expression not supported in partial index: %s", value.Text(bson.D{e}))
		}
	}
}

// option checks an option of an index. The type of a collation is not checked here.
func (p *indexParser) option(e bson.E) {
	o, known := indexOptions[e.Key]
	found := value.TypeName(e.Value)
	p.refuse(!known || !version.Range{Since: o.since}.Has(p.server.Wire), fault.InvalidIndexSpecificationOption,
		"The field '%s' is not valid for an index specification. Specification: %s", e.Key, value.Text(p.doc))
	switch number := value.IsNumber(e.Value); o.kind {
	case "bool":
		p.refuse(found != "bool" && !number, fault.TypeMismatch,
			"The field '%s' has value %s: %s, which is not convertible to bool", e.Key, e.Key, value.Text(e.Value))
	case "number":
		p.refuse(!number, fault.TypeMismatch, "The field '%s' must be a number, but got %s", e.Key, found)
	case "object", "string":
		p.refuse(found != o.kind, fault.TypeMismatch, "The field '%s' must be %s %s, but got %s", e.Key,
			map[string]string{"object": "an", "string": "a"}[o.kind], o.kind, found)
	}
}

func (p *indexParser) key(k bson.E, collated bool) {
	name, plugin := k.Value.(string)
	p.refuse(plugin && name == "", fault.CannotCreateIndex, "Index key plugin can't be empty")
	p.refuse(!plugin && !value.IsNumber(k.Value), fault.CannotCreateIndex,
		"Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings are allowed.",
		value.TypeName(k.Value))
	p.refuse(value.Equal(k.Value, int32(0)), fault.CannotCreateIndex, "Values in the index key pattern cannot be 0.")
	p.refuse(collated && (name == "text" || name == "2d"), fault.CannotCreateIndex,
		"Index type '%s' does not support collation", name)
	p.refuse(plugin && name != "" && indexTypes[name] == nil, fault.CannotCreateIndex, "Unknown index plugin '%s'", name)
	p.refuse(name == "text" && p.strict, fault.APIStrictError, "text indexes cannot be created with apiStrict: true")
	p.refuse(k.Key == "", fault.CannotCreateIndex, "Index keys cannot be an empty field.")
}

// special checks the version, and what indexes of special types do not support.
func (p *indexParser) special(x *store.Index) {
	v, whole := value.Int64(p.any("v"))
	p.refuse(p.has("v") && !whole, fault.BadValue, "Index version must be representable as a 32-bit integer, but got %s",
		value.Text(p.any("v")))
	p.refuse(p.has("v") && v != 1 && v != 2, fault.CannotCreateIndex, "cannot create an index with v=%d", v)
	isWildcard := func(k bson.E) bool { return k.Key == "$**" || strings.HasSuffix(k.Key, ".$**") }
	wildcard := slices.ContainsFunc(x.Key, isWildcard) && x.Ascends()
	p.refuse(p.has("wildcardProjection") && !wildcard, fault.BadValue,
		"The field 'wildcardProjection' is only allowed in an 'wildcard' index")
	for _, option := range []string{"sparse", "unique", "expireAfterSeconds"} {
		p.refuse(wildcard && value.Truthy(p.any(option)), fault.CannotCreateIndex,
			"Index type 'wildcard' does not support the %s option", option)
	}
	hashed := slices.ContainsFunc(x.Key, func(k bson.E) bool { return k.Value == "hashed" })
	p.refuse(hashed && x.Unique, 16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
}

func (p *indexParser) expiry(x *store.Index) {
	if !p.has("expireAfterSeconds") {
		return
	}
	v, spec := p.any("expireAfterSeconds"), value.Text(p.doc)
	p.refuse(!value.IsNumber(v), fault.CannotCreateIndex,
		"TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'. Index spec: %s",
		value.TypeName(v), spec)
	p.refuse(value.Float(v) < 0, fault.CannotCreateIndex,
		"TTL index 'expireAfterSeconds' option cannot be less than 0. Index spec: %s", spec)
	p.refuse(value.Float(v) > math.MaxInt32, fault.CannotCreateIndex,
		"TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number. Index spec: %s", spec)
	p.refuse(len(x.Key) != 1, fault.CannotCreateIndex,
		"TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: %s", spec)
}

// spec returns the index as listIndexes shows it.
func (p *indexParser) spec(x *store.Index) bson.D {
	key, rest := bson.D{}, bson.D{}
	weights, text := bson.D{}, false
	for _, k := range x.Key {
		name, _ := k.Value.(string)
		if name != "text" {
			key = append(key, k)
		} else if weights = value.Append(weights, k.Key, int32(1)); !text {
			text = true
			key = value.Append(key, "_fts", "text", "_ftsx", int32(1))
		}
		for _, e := range indexTypes[name] {
			if !p.has(e.Key) {
				rest = value.Set(rest, e.Key, e.Value)
			}
		}
	}
	if text { // a field of the index without a weight has 1
		for _, e := range p.document("weights") {
			weights = value.Set(weights, e.Key, e.Value)
		}
		slices.SortFunc(weights, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
		rest = value.Set(rest, "weights", weights)
	}
	x.Key = key
	flags := value.AddIf(value.AddIf(nil, x.Unique, "unique", true), p.flag("hidden"), "hidden", true)
	names := value.Doc("key", key, "name", x.Name)
	if p.server.Has.ReplyOrder {
		flags, names = names, flags
	}
	spec := slices.Concat(value.Doc("v", value.Int(p.number("v", 2))), flags, names)
	apart := strings.Fields("v key name unique hidden ns dropDups weights collation")
	for _, e := range p.doc {
		spec = value.AddIf(spec, !slices.Contains(apart, e.Key), e.Key, e.Value)
	}
	spec = value.AddIf(spec, x.Collation.Spec() != nil, "collation", x.Collation.Spec())
	return append(spec, rest...)
}

func (s *call) buildIndexes(name string, specs []*store.Index, quorum any) (bson.D, error) {
	return s.change(func(tx *store.Tx) (bson.D, error) {
		created := tx.Collection(s.req.DB, name) == nil
		c, err := tx.Writable(s.req.DB, name, true)
		if err != nil {
			return nil, err
		}
		before := len(c.Indexes)
		added, err := s.newIndexes(c, specs)
		switch {
		case err != nil || len(added) == 0:
		case !s.InTransaction():
			err = tx.Unlocked(c.DB, c.Name)
		case !tx.Created(c):
			err = fault.Errorf(fault.OperationNotSupportedInTransaction,
				"Cannot create new indexes on existing collection %s in a multi-document transaction.", c.NS())
		}
		if err != nil {
			return nil, err
		}
		// Readers may hold the list of indexes, so it is replaced, not changed.
		c.Indexes = slices.Concat(c.Indexes, added)
		counts := value.Doc("numIndexesBefore", int32(before), "numIndexesAfter", int32(len(c.Indexes)))
		if len(added) == 0 {
			return value.Append(counts, "note", "all indexes already exist"), nil
		}
		automatically := value.Doc("createdCollectionAutomatically", created)
		reply := slices.Concat(automatically, counts)
		if s.has.ReplyOrder {
			reply = slices.Concat(counts, automatically)
		}
		if !s.InTransaction() {
			tx.Log(c.Logged(store.CreateIndexes, value.Doc("indexes", specsOf(added))))
		}
		hasQuorum := s.d.Logged() && (!s.InTransaction() || s.has.TransactionErrors)
		return value.AddIf(reply, hasQuorum, "commitQuorum", quorum), nil
	})
}

// newIndexes fills the indexes that a collection lacks.
func (s *call) newIndexes(c *store.Collection, specs []*store.Index) (added []*store.Index, _ error) {
	for _, x := range specs {
		exists, err := hasIndex(c, x, s.has.IndexOptions)
		if err != nil {
			return nil, err
		}
		for _, y := range added { // in the same command
			if e, conflict := hasName(y, x).(*fault.Error); conflict {
				return nil, buildFailed(c, e)
			}
		}
		if exists {
			continue
		}
		x = x.Empty()
		for _, r := range c.Current() {
			if err := x.Place(r.Document()); err != nil {
				return nil, err
			}
		}
		key, err := x.Fill(c.Current())
		if e, ok := err.(*fault.Error); ok {
			return nil, buildFailed(c, e)
		} else if key != nil {
			return nil, c.Duplicate(x, key)
		}
		added = append(added, x)
	}
	return added, nil
}

func specsOf(indexes []*store.Index) (specs bson.A) {
	for _, x := range indexes {
		specs = append(specs, x.Spec)
	}
	return specs
}

func buildFailed(c *store.Collection, e *fault.Error) error {
	return fault.Within(fmt.Sprintf("Index build failed: %s: Collection %s ( %s )", value.UUIDText(value.NewUUID().Data),
		c.NS(), value.UUIDText(c.UUID.Data)), e)
}

// hasIndex reports whether an index exists. An existing index that conflicts with it is an error.
func hasIndex(c *store.Collection, x *store.Index, options bool) (bool, error) {
	for _, y := range c.Indexes {
		sameKey := value.Equal(x.Key, y.Key) && sameOption(x.Spec, y.Spec, "collation") &&
			(!options || x.Unique == y.Unique && x.Sparse == y.Sparse) &&
			sameOption(x.Spec, y.Spec, "partialFilterExpression")
		sameRest := x.Unique == y.Unique && sameOption(x.Spec, y.Spec, "expireAfterSeconds")
		switch {
		case sameKey && (x.Name == y.Name && sameRest || y == c.IDIndex()):
			return true, nil
		case sameKey && !sameRest && x.Name != y.Name:
			return false, fault.Errorf(fault.IndexOptionsConflict,
				"An equivalent index already exists with a different name and options. Requested index: %s, existing index: %s",
				value.Text(x.Spec), value.Text(y.Spec))
		case sameKey && !sameRest:
			return false, fault.Errorf(fault.IndexOptionsConflict,
				"An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s", value.Text(x.Spec), value.Text(y.Spec))
		case sameKey:
			return false, fault.Errorf(fault.IndexOptionsConflict, "Index already exists with a different name: %s", y.Name)
		case x.Name == y.Name:
			return false, hasName(y, x)
		}
	}
	return false, nil
}

// hasName returns an error if an index has the name of another one.
func hasName(y, x *store.Index) error {
	if x.Name != y.Name {
		return nil
	}
	return fault.Errorf(fault.IndexKeySpecsConflict,
		"An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: %s, existing index: %s", value.Text(x.Spec), value.Text(y.Spec))
}

func sameOption(a, b bson.D, key string) bool {
	return value.Equal(value.Get(a, key), value.Get(b, key))
}

func dropIndexes(s *call, a *args) action {
	name := a.collection(s.req.DB)
	names, ok := a.any("index").(bson.A)
	for _, v := range names {
		a.Refuse(!value.Is[string](v), fault.TypeMismatch,
			"BSON field 'dropIndexes.index' is the wrong type 'array', expected types '[string]'")
	}
	if !ok {
		names = bson.A{a.any("index")}
	}
	return func() (bson.D, error) {
		return s.onShard(s.change(func(tx *store.Tx) (bson.D, error) { return removeIndexes(tx, s.req.DB, name, names) }))
	}
}

// removeIndexes removes indexes by name or key; "*" means all except _id.
func removeIndexes(tx *store.Tx, db, name string, which bson.A) (bson.D, error) {
	c := tx.Main(db, name)
	if c == nil || c.IsView() {
		return nil, fault.Errorf(fault.NamespaceNotFound, "ns not found %s.%s", db, name)
	}
	reply := value.Doc("nIndexesWas", int32(c.Catalogued()))
	var dropped []*store.Index
	for _, n := range which {
		if n == "*" {
			dropped = append(dropped, c.Indexes[1:]...)
			reply = value.Append(reply, "msg", "non-_id indexes dropped for collection")
			continue
		}
		x, err := indexNamed(c, n)
		if err != nil {
			return nil, err
		}
		dropped = append(dropped, x)
	}
	if len(dropped) > 0 {
		tx.Log(c.Logged(store.DropIndexes, value.Doc("indexes", specsOf(dropped))))
	}
	c.Indexes = slices.DeleteFunc(slices.Clone(c.Indexes),
		func(x *store.Index) bool { return slices.Contains(dropped, x) })
	return reply, nil
}

// indexNamed returns the index with a name or a key. It must not be the _id index.
func indexNamed(c *store.Collection, which any) (*store.Index, error) {
	x := c.Index(which)
	name, isName := which.(string)
	switch {
	case x == c.Indexes[0]:
		return nil, fault.Errorf(fault.InvalidOptions, "cannot drop _id index")
	case x != nil:
		return x, nil
	case isName:
		return nil, fault.Errorf(fault.IndexNotFound, "index not found with name [%s]", name)
	case value.Is[bson.D](which):
		return nil, fault.Errorf(fault.IndexNotFound, "can't find index with key: %s", value.Text(which))
	}
	return nil, fault.Errorf(fault.TypeMismatch,
		"BSON field 'dropIndexes.index' is the wrong type '%s', expected types '[string, object']", value.TypeName(which))
}

func listIndexes(s *call, a *args) action {
	name, size := a.collection(s.req.DB), a.batchSize()
	return func() (bson.D, error) {
		var c *store.Collection
		var specs []bson.Raw
		s.View(func(tx *store.Tx) {
			if c = tx.Collection(s.req.DB, name); c == nil {
				return
			}
			for _, x := range c.Indexes {
				specs = append(specs, value.Encode(x.Spec))
			}
		})
		switch {
		case c == nil:
			return nil, fault.Errorf(fault.NamespaceNotFound, "ns does not exist: %s.%s", s.req.DB, name)
		case c.IsView():
			return nil, store.OnView(c)
		}
		return s.list(c.NS(), specs, size), nil
	}
}

func collMod(s *call, a *args) action {
	name := a.collection(s.req.DB)
	index := parseIndexChange(a)
	opts := s.options(nil, a.collation(s, s.req.DB, name))
	validator := a.filter("validator", opts)
	_, invalid := pipeline.Compile(a.array("pipeline"), opts)
	a.Refuse(a.has("viewOn") && a.str("viewOn") == "", fault.BadValue, "'viewOn' cannot be empty")
	options := slices.DeleteFunc(slices.Clone(a.doc[1:]),
		func(e bson.E) bool { return Generic(e.Key) || e.Key == "index" })
	return func() (bson.D, error) {
		return s.onShard(s.change(func(tx *store.Tx) (bson.D, error) {
			c := tx.Main(s.req.DB, name)
			if c == nil {
				return nil, fault.Errorf(fault.NamespaceNotFound, "ns does not exist")
			}
			for _, e := range options {
				if ofView := e.Key == "viewOn" || e.Key == "pipeline"; ofView != c.IsView() {
					return nil, fault.Errorf(fault.InvalidOptions, "'%s' option %ssupported on a view", e.Key,
						map[bool]string{true: "only ", false: "not "}[ofView])
				}
			}
			if invalid != nil {
				return nil, invalid
			}
			next, reply := *c, bson.D{}
			if index != nil {
				err := tx.Unlocked(c.DB, c.Name)
				if err != nil {
					return nil, err
				}
				if reply, err = index.apply(&next); err != nil {
					return nil, err
				}
			}
			next.Options = slices.Clone(c.Options)
			for _, e := range options {
				next.Options = value.Set(next.Options, e.Key, e.Value)
			}
			if a.has("validationLevel") || a.has("validationAction") {
				for _, e := range value.Doc("validationLevel", "strict", "validationAction", "error") {
					next.Options = value.Set(next.Options, e.Key, cmp.Or(value.Get(next.Options, e.Key), e.Value))
				}
			}
			if c.IsView() {
				next.ViewOn = cmp.Or(a.str("viewOn"), c.ViewOn)
			}
			if a.has("validator") {
				next.Validator = validator
			}
			tx.Modify(c, &next)
			return reply, nil
		}))
	}
}

// indexChange is the field index of collMod.
type indexChange struct {
	*args
	which any // name or key
}

// parseIndexChange parses the field index of collMod. It returns nil if the field is missing.
func parseIndexChange(a *args) *indexChange {
	if !a.has("index") {
		return nil
	}
	x := a.part("index")
	ch := &indexChange{args: x, which: x.document("keyPattern")}
	if name := x.str("name"); name != "" {
		ch.which = name
	}
	x.Refuse(x.has("name") && x.has("keyPattern"), fault.InvalidOptions, "Cannot specify both key pattern and name.")
	x.Refuse(!x.has("name") && !x.has("keyPattern"), fault.InvalidOptions,
		"Must specify either index name or key pattern.")
	x.Refuse(!x.has("prepareUnique") && !x.has("unique") && !x.has("hidden") && !x.has("expireAfterSeconds"),
		fault.InvalidOptions, "no expireAfterSeconds, hidden, unique or prepareUnique field")
	x.Refuse(x.has("unique") && !x.has("prepareUnique") && !x.flag("unique"), fault.BadValue,
		"Cannot make index non-unique")
	return ch
}

// options changes hidden and expireAfterSeconds of an index and returns the fields of the reply.
func (ch *indexChange) options(x *store.Index) (reply bson.D, err error) {
	old, expires := value.Field(x.Spec, "expireAfterSeconds")
	hidden, _ := value.Get(x.Spec, "hidden").(bool)
	switch {
	case ch.has("hidden") && x.Name == "_id_":
		return nil, fault.Errorf(fault.BadValue, "can't hide _id index")
	case ch.has("expireAfterSeconds") && !expires:
		return nil, fault.Errorf(fault.InvalidOptions, "no expireAfterSeconds field to update")
	case ch.has("expireAfterSeconds") && !value.Equal(old, ch.any("expireAfterSeconds")):
		was, _ := value.Int64(old)
		now := ch.number("expireAfterSeconds", 0)
		setOption(x, "expireAfterSeconds", value.Int(now))
		reply = value.Doc("expireAfterSeconds_old", was, "expireAfterSeconds_new", now)
	}
	if ch.has("hidden") && hidden != ch.flag("hidden") {
		setOption(x, "hidden", ch.flag("hidden"))
		reply = value.Append(reply, "hidden_old", hidden, "hidden_new", ch.flag("hidden"))
	}
	return reply, nil
}

// apply replaces the index by a changed copy and returns the fields of the reply. On an error it changes nothing.
func (ch *indexChange) apply(c *store.Collection) (bson.D, error) {
	if c.IsView() {
		return nil, fault.Errorf(fault.InvalidOptions, "option not supported on a view: index")
	}
	x := c.Index(ch.which)
	if x == nil {
		what, ok := ch.which.(string)
		if !ok {
			what = value.Text(ch.which)
		}
		return nil, fault.Errorf(fault.IndexNotFound, "cannot find index %s for ns %s", what, c.NS())
	}
	y, unique, prepared := *x, ch.flag("unique"), ch.flag("prepareUnique")
	reply, err := ch.options(&y)
	switch {
	case err != nil:
		return nil, err
	case !ch.has("prepareUnique") && !unique, x.Unique:
	case unique && !x.Prepared:
		return nil, fault.Errorf(fault.InvalidOptions,
			"Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.")
	case unique:
		if found := violations(x, c); len(found) > 0 {
			e := fault.Errorf(fault.CannotConvertIndexToUnique,
				"Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.")
			e.Extra = value.Doc("violations", found)
			return nil, e
		}
		y.Unique, y.Prepared = true, false
		reply = value.Append(reply, "unique_new", true)
		setOption(&y, "unique", true)
		setOption(&y, "prepareUnique", false)
	case x.Prepared != prepared:
		reply = value.Append(reply, "prepareUnique_old", x.Prepared, "prepareUnique_new", prepared)
		y.Prepared = prepared
		setOption(&y, "prepareUnique", prepared)
		y = *y.Empty()
		_, _ = y.Fill(c.Current()) // cannot fail: the documents have been indexed
	}
	c.Indexes = slices.Clone(c.Indexes)
	c.Indexes[slices.Index(c.Indexes, x)] = &y
	return append(bson.D{}, reply...), nil
}

// violations returns the groups of _ids of documents that share a key.
func violations(x *store.Index, c *store.Collection) (groups bson.A) {
	for _, records := range x.Violations(c.Current()) {
		var ids bson.A
		for _, r := range records {
			ids = append(ids, value.Get(r.Document(), "_id"))
		}
		groups = append(groups, value.Doc("ids", ids))
	}
	return groups
}

// setOption sets an option of a copied index in its spec. A spec omits false options.
func setOption(x *store.Index, key string, v any) {
	x.Spec = slices.Clone(value.Delete(x.Spec, key))
	x.Spec = value.AddIf(x.Spec, v != false, key, v)
}
