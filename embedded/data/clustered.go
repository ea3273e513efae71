package data

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// clusteredIndex reads the option of create and fills in what it leaves out, as
// listCollections shows it; nil if the collection is not clustered.
func clusteredIndex(name string, a *args) (bson.D, error) {
	v, ok := value.Field(a.doc, "clusteredIndex")
	if !ok || v == nil {
		return nil, nil
	}
	internal := strings.HasPrefix(name, "system.buckets.")
	doc, isDoc := v.(bson.D)
	legacy, isFlag := v.(bool)
	switch {
	case !isDoc && !isFlag:
		return nil, command.Errorf(14, "BSON field 'create.clusteredIndex' is the wrong type '%s', expected types '[bool, object]'", value.TypeName(v))
	case isFlag && !legacy, isFlag && internal:
		return nil, nil
	}
	c := &args{of: "create.clusteredIndex", doc: doc}
	key, unique := c.document("key"), c.flag("unique")
	called, version := c.str("name"), c.number("v", 2)
	if err := unknown(c.of, doc, " v key name unique "); isDoc && err != nil {
		return nil, err
	}
	for _, field := range []string{"key", "unique"} {
		if isDoc && !c.has(field) {
			return nil, command.Errorf(40414, "BSON field 'create.clusteredIndex.%s' is missing but a required field", field)
		}
	}
	switch {
	case c.err != nil:
		return nil, c.err
	case isFlag || internal:
		return nil, command.Errorf(5979703, "The 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for specific internal collections and vice versa")
	case a.has("autoIndexId") && !a.flag("autoIndexId"):
		return nil, command.Errorf(6026501, "The 'clusteredIndex' option does not support {autoIndexId: false}")
	case !unique:
		return nil, command.Errorf(5979700, "The clusteredIndex option requires unique: true to be specified")
	case !value.Equal(key, bson.D{{Key: "_id", Value: int32(1)}}):
		return nil, command.Errorf(197, "The clusteredIndex option is only supported for key: {_id: 1}")
	case version != 2:
		return nil, command.Errorf(5979704, "Invalid clusteredIndex specification %s; cannot create a clusteredIndex with v=%d", value.Text(doc), version)
	}
	if called == "" {
		called = "_id_"
	}
	return bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: key}, {Key: "name", Value: called}, {Key: "unique", Value: true}}, nil
}

// clusteredWith refuses options that a clustered collection cannot have.
func clusteredWith(a *args) error {
	expires, ok := value.Field(a.doc, "expireAfterSeconds")
	switch {
	case a.has("viewOn"):
		return command.Errorf(6026500, "The 'clusteredIndex' option is not supported with views")
	case a.has("size"):
		return command.Errorf(6049200, "'size' field for capped collections is not allowed on clustered collections. Did you mean 'capped: true' with 'expireAfterSeconds'?")
	case a.has("max"):
		return command.Errorf(6049204, "'max' field for capped collections is not allowed on clustered collections. Did you mean 'capped: true' with 'expireAfterSeconds'?")
	case a.flag("capped") && !ok:
		return command.Errorf(6049201, "A capped clustered collection requires the 'expireAfterSeconds' field")
	case a.has("pipeline"):
		return command.Errorf(72, "'pipeline' requires 'viewOn' to also be specified")
	case ok && value.IsNumber(expires) && value.Compare(expires, int32(0)) < 0:
		return command.Errorf(72, "TTL index 'expireAfterSeconds' option cannot be less than 0")
	}
	return nil
}

// cluster gives the index of _id the name that clusteredIndex has for it.
func (c *collection) cluster(spec bson.D) {
	id := c.idIndex()
	name, _ := value.Field(spec, "name")
	id.name, _ = name.(string)
	id.clustered = true
	id.spec = append(spec[:len(spec):len(spec)], bson.E{Key: "clustered", Value: true})
}

// clashClustered compares an index that is to be made with that of a clustered
// collection, and reports whether it is the same.
func (c *collection) clashClustered(x *index) (bool, error) {
	id := c.idIndex()
	same := c.clustered() && value.Equal(x.key, id.key)
	switch {
	case x.clustered && !same:
		return false, command.Errorf(6243700, "Cannot create index with option 'clustered' that does not match an existing clustered index")
	case c.clustered() && !same && x.name == id.name:
		return false, command.Errorf(6100906, "Cannot create an index where the name matches the clusteredIndex but the key does not - indexSpec: %s, clusteredIndex: %s",
			value.Text(x.spec), value.Text(value.Delete(id.spec, "clustered")))
	}
	return same, nil
}
