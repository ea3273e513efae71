package data

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// modifications are the fields of collMod of which each changes something.
var modifications = []string{"validator", "validationLevel", "validationAction", "pipeline", "viewOn", "recordPreImages",
	"changeStreamPreAndPostImages", "expireAfterSeconds", "timeseries"}

func (d *Data) collMod(s *scope, a *args) (bson.D, error) {
	name := a.name()
	if err := unknown("collMod", a.doc, " index viewOn pipeline validator validationLevel validationAction recordPreImages changeStreamPreAndPostImages expireAfterSeconds timeseries cappedSize cappedMax dryRun isTimeseriesNamespace "); err != nil {
		return nil, err
	}
	validator := a.document("validator")
	images := a.document("changeStreamPreAndPostImages")
	index, err := parseIndexChange(s.req, a)
	if err != nil {
		return nil, err
	}
	if a.err != nil {
		return nil, a.err
	}
	if err := namespace(s.req.DB, name); err != nil {
		return nil, err
	}
	var f *query.Filter
	if len(validator) > 0 {
		if f, err = d.compileValidator(validator); err != nil {
			return nil, err
		}
	}
	reply := bson.D{}
	err = s.locked(func() error {
		c := d.collection(s.req.DB, name)
		if c == nil {
			return command.Errorf(26, "ns does not exist")
		}
		// Readers may hold the collection: another takes its place.
		next := *c
		if index != nil {
			for k := range d.locks {
				if k.ns == c.ns() {
					return errBlocked
				}
			}
			var err error
			if reply, err = index.apply(&next); err != nil || index.dryRun {
				return err
			}
		}
		d.substitute(c, &next)
		c = &next
		c.options = slices.Clone(c.options)
		for _, e := range a.doc[1:] {
			switch e.Key {
			case "validator":
				c.validator = f
				c.options = value.Set(c.options, e.Key, e.Value)
			case "validationLevel", "validationAction", "expireAfterSeconds":
				c.options = value.Set(c.options, e.Key, e.Value)
			case "changeStreamPreAndPostImages":
				c.options = value.Set(c.options, e.Key, images)
			case "recordPreImages":
				on := bson.D{{Key: "enabled", Value: value.Truthy(e.Value)}}
				c.options = value.Set(c.options, "changeStreamPreAndPostImages", on)
			case "viewOn":
				c.view, _ = e.Value.(string)
				c.options = value.Set(c.options, e.Key, e.Value)
			case "pipeline":
				c.pipeline, _ = e.Value.(bson.A)
				c.options = value.Set(c.options, e.Key, e.Value)
			}
		}
		d.log(entry{ts: d.tick(), kind: opModify, db: c.db, coll: c.name, uuid: c.uuid})
		s.writes = true
		return nil
	})
	return d.onShard(s, reply, err)
}

// indexChange is what the field index of collMod asks for. What is nil stays.
type indexChange struct {
	name                               string
	key                                bson.D
	expireAfterSeconds                 *int64
	hidden, unique, prepare, nonUnique *bool
	others                             int  // modifications of the same command that are none of the index
	dryRun                             bool // look for violations, and change nothing
}

// parseIndexChange reads the field index of collMod; nil if it is not there.
func parseIndexChange(req *command.Request, a *args) (*indexChange, error) {
	dryRun := a.flag("dryRun")
	if !a.has("index") {
		if dryRun {
			return nil, command.Errorf(72, "dry run mode requires an valid index modification.")
		}
		return nil, nil
	}
	x := &args{of: "collMod.index", doc: a.document("index")}
	if err := unknown(x.of, x.doc, " name keyPattern expireAfterSeconds hidden unique prepareUnique forceNonUnique "); err != nil {
		return nil, err
	}
	if err := tooNew(req, x.of, x.doc); err != nil {
		return nil, err
	}
	flag := func(key string) *bool {
		if !x.has(key) {
			return nil
		}
		b := x.flag(key)
		return &b
	}
	ch := &indexChange{name: x.str("name"), key: x.document("keyPattern"), hidden: flag("hidden"), unique: flag("unique"),
		prepare: flag("prepareUnique"), nonUnique: flag("forceNonUnique"), dryRun: dryRun}
	if x.has("expireAfterSeconds") {
		n := x.number("expireAfterSeconds", 0)
		ch.expireAfterSeconds = &n
	}
	for _, m := range modifications {
		if a.has(m) {
			ch.others++
		}
	}
	if err := cmpErr(a.err, x.err); err != nil {
		return nil, err
	}
	switch {
	case x.has("name") && x.has("keyPattern"):
		return nil, command.Errorf(72, "Cannot specify both key pattern and name.")
	case !x.has("name") && !x.has("keyPattern"):
		return nil, command.Errorf(72, "Must specify either index name or key pattern.")
	case ch.count() == 0 && wire(req) > 0 && wire(req) < wire60:
		return nil, command.Errorf(72, "no expireAfterSeconds or hidden field")
	case ch.count() == 0:
		return nil, command.Errorf(72, "no expireAfterSeconds, hidden, unique, or prepareUnique field")
	case ch.unique != nil && ch.nonUnique != nil:
		return nil, command.Errorf(72, "collMod does not support 'unique' and 'forceNonUnique' options at the same time")
	case ch.expireAfterSeconds != nil && *ch.expireAfterSeconds < 0:
		return nil, command.Errorf(72, "TTL index 'expireAfterSeconds' option cannot be less than 0")
	case dryRun && (ch.unique == nil || !*ch.unique):
		return nil, command.Errorf(72, "dry run mode requires an index modification with unique: true.")
	}
	return ch, nil
}

// count is the number of modifications of the index.
func (ch *indexChange) count() int {
	n := 0
	for _, there := range []bool{ch.expireAfterSeconds != nil, ch.hidden != nil, ch.unique != nil, ch.prepare != nil, ch.nonUnique != nil} {
		if there {
			n++
		}
	}
	return n
}

// apply puts a changed index in the place of the one that is named, and gives the
// fields of the reply. On failure the collection is as it was.
func (ch *indexChange) apply(c *collection) (bson.D, error) {
	if c.isView() {
		return nil, command.Errorf(72, "option not supported on a view: index")
	}
	at, err := ch.find(c)
	if err != nil {
		return nil, err
	}
	x := c.indexes[at]
	id := x == c.idIndex()
	y := *x
	reply := bson.D{}
	tell := func(key string, v any) { reply = append(reply, bson.E{Key: key, Value: v}) }

	if n := ch.expireAfterSeconds; n != nil {
		old, expires := value.Field(x.spec, "expireAfterSeconds")
		switch {
		case id:
			return nil, command.Errorf(72, "the _id field does not support TTL indexes")
		case c.capped:
			return nil, command.Errorf(72, "TTL indexes are not supported for capped collections.")
		case !expires && len(x.key) != 1:
			return nil, command.Errorf(72, "TTL indexes are single-field indexes, compound indexes do not support TTL")
		}
		if expires {
			was, _ := value.Whole(old)
			tell("expireAfterSeconds_old", was)
		}
		tell("expireAfterSeconds_new", *n)
		y.option("expireAfterSeconds", value.Int(*n))
	}
	if ch.hidden != nil {
		was, _ := value.Field(x.spec, "hidden")
		switch {
		case id && x.clustered:
			return nil, command.Errorf(6011800, "The 'hidden' option is not supported for a clusteredIndex")
		case id:
			return nil, command.Errorf(2, "can't hide _id index")
		}
		if value.Truthy(was) != *ch.hidden {
			tell("hidden_old", value.Truthy(was))
			tell("hidden_new", *ch.hidden)
			y.option("hidden", *ch.hidden)
		}
	}
	if ch.unique != nil {
		if !*ch.unique {
			return nil, command.Errorf(2, "Cannot make index non-unique")
		}
		if !x.unique {
			if err := ch.convert(c, x); err != nil {
				return nil, err
			}
			tell("unique_new", true)
			y.unique, y.prepared = true, false
			y.option("unique", true)
			y.option("prepareUnique", false)
		}
	}
	if ch.prepare != nil && !x.unique && x.prepared != *ch.prepare {
		if ch.count()+ch.others > 1 {
			return nil, command.Errorf(72, "prepareUnique cannot be combined with any other modification.")
		}
		tell("prepareUnique_old", x.prepared)
		tell("prepareUnique_new", *ch.prepare)
		y.prepared = *ch.prepare
		y.option("prepareUnique", *ch.prepare)
	}
	if ch.nonUnique != nil {
		if !*ch.nonUnique {
			return nil, command.Errorf(2, "'forceNonUnique: false' is not supported")
		}
		if x.unique && !id {
			tell("forceNonUnique_new", true)
			y.unique = false
			y.option("unique", false)
		}
	}
	if y.unique != x.unique {
		y = *y.fresh()
		for _, r := range c.docs {
			for _, k := range y.keysIfUnique(r) {
				y.entries[value.Key(bson.A(k))] = r
			}
		}
	}
	c.indexes = slices.Clone(c.indexes)
	c.indexes[at] = &y
	if ch.dryRun {
		return bson.D{}, nil
	}
	return reply, nil
}

// find is the place of the index that is named by its name or its key.
func (ch *indexChange) find(c *collection) (int, error) {
	what, at := ch.name, -1
	if ch.key != nil {
		what = value.Text(ch.key)
	}
	for i, x := range c.indexes {
		if x.name != ch.name && (ch.key == nil || !value.Equal(x.key, ch.key)) {
			continue
		}
		if at >= 0 {
			return 0, command.Errorf(181, "index keyPattern %s matches 2 indexes, must use index name. Conflicting indexes:%s, %s",
				what, value.Text(c.indexes[at].spec), value.Text(x.spec))
		}
		at = i
	}
	if at < 0 {
		return 0, command.Errorf(27, "cannot find index %s for ns %s", what, c.ns())
	}
	return at, nil
}

// convert says whether an index may become unique.
func (ch *indexChange) convert(c *collection, x *index) error {
	switch {
	case !x.prepared:
		return command.Errorf(72, "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.")
	case ch.dryRun && ch.count()+ch.others > 1:
		return command.Errorf(72, "unique: true cannot be combined with any other modification in dry run mode.")
	}
	found, all := x.violations(c.docs, mostViolations)
	if len(found) == 0 {
		return nil
	}
	e := command.Errorf(359, "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.")
	if !all {
		e.Message = "Cannot convert the index to unique. Too many conflicting documents were detected. Please resolve them and rerun collMod."
	}
	e.Extra = bson.D{{Key: "violations", Value: found}}
	return e
}

// mostViolations is how many bytes of _ids are told of violations.
const mostViolations = maxDocument / 2

// violations groups the _ids of documents that have the same key in an index, in
// the order of the index, up to so many bytes but at least one of them. It says
// whether these are all.
func (x *index) violations(docs []*record, most int) (groups bson.A, all bool) {
	type holders struct {
		key     []any
		records []*record
	}
	byKey := map[string]*holders{}
	var shared []*holders
	for _, r := range docs {
		for _, k := range x.keys(r.doc()) {
			text := value.Key(bson.A(k))
			h := byKey[text]
			if h == nil {
				h = &holders{key: k}
				byKey[text] = h
			}
			if h.records = append(h.records, r); len(h.records) == 2 {
				shared = append(shared, h)
			}
		}
	}
	slices.SortStableFunc(shared, func(a, b *holders) int {
		for i, k := range x.key {
			order := value.Compare(a.key[i], b.key[i])
			if value.IsNumber(k.Value) && value.Compare(k.Value, int32(0)) < 0 {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
	size := 0
	for _, h := range shared {
		ids := bson.A{}
		for _, r := range h.records {
			id, _ := value.Field(r.doc(), "_id")
			if size += len(value.Encode(bson.D{{Key: "_id", Value: id}})); size > most {
				if len(groups) == 0 && len(ids) == 0 {
					ids = append(ids, id)
				}
				if len(ids) > 0 {
					groups = append(groups, bson.D{{Key: "ids", Value: ids}})
				}
				return groups, false
			}
			ids = append(ids, id)
		}
		groups = append(groups, bson.D{{Key: "ids", Value: ids}})
	}
	return groups, true
}

// option sets an option of a copied index in what listIndexes shows of it. One
// that is false is not shown.
func (x *index) option(key string, v any) {
	x.spec = slices.Clone(value.Delete(x.spec, key))
	if v != false {
		x.spec = append(x.spec, bson.E{Key: key, Value: v})
	}
}
