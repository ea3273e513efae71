package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// clusteredIndex reads the option of create and fills in what it leaves out, as
// listCollections shows it; nil if the collection is not clustered.
func clusteredIndex(a *args) bson.D {
	if a.any("clusteredIndex") == any(false) || a.any("clusteredIndex") == nil {
		return nil
	}
	c := a.part("clusteredIndex")
	c.only(" v key name unique ")
	key, name := c.document("key"), c.str("name")
	c.need("key")
	c.need("unique")
	switch {
	case !c.flag("unique"):
		c.failf(5979700, "The clusteredIndex option requires unique: true to be specified")
	case !value.Equal(key, bson.D{{Key: "_id", Value: int32(1)}}):
		c.failf(command.CodeInvalidIndexSpecificationOption, "The clusteredIndex option is only supported for key: {_id: 1}")
	}
	if name == "" {
		name = "_id_"
	}
	return bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: key}, {Key: "name", Value: name}, {Key: "unique", Value: true}}
}

// cluster gives the index of _id the name that clusteredIndex has for it.
func (c *collection) cluster(spec bson.D) {
	id := c.idIndex()
	id.name = value.As[string](spec, "name")
	id.clustered = true
	id.spec = append(spec[:len(spec):len(spec)], bson.E{Key: "clustered", Value: true})
}
