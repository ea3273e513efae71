package reference

import (
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// schemaRows create and drop things.
func schemaRows() []row {
	createFields := []string{"capped", "size", "max", "validator", "validationLevel", "validationAction", "indexOptionDefaults",
		"viewOn", "pipeline", "collation", "timeseries", "expireAfterSeconds", "clusteredIndex",
		"changeStreamPreAndPostImages", "encryptedFields", "storageEngine", "comment", "maxTimeMS"}
	modifyFields := []string{"validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages", "index",
		"viewOn", "pipeline", "expireAfterSeconds", "timeseries", "comment", "maxTimeMS"}
	indexFields := []string{"unique", "sparse", "expireAfterSeconds", "partialFilterExpression", "collation",
		"hidden", "weights", "default_language", "wildcardProjection", "2dsphereIndexVersion", "background", "bits", "bucketSize",
		"language_override", "max", "min", "storageEngine", "textIndexVersion"}
	return []row{
		{operations.Collection, "createIndex", common(append([]string{"keys", "name", "version", "maxTimeMS", "commitQuorum", "comment", "rawData", "writeConcern"}, indexFields...)...),
			func(c *call) (any, *result.Error) {
				name := c.Text("name")
				if name == "" {
					var err *result.Error
					if name, err = indexName(c.Arg("keys")); err != nil {
						return nil, err
					}
				}
				index := c.copyArgs(bson.D{{Key: "key", Value: c.Arg("keys")}, {Key: "name", Value: name}}, indexFields...)
				if c.Has("version") {
					index = append(index, bson.E{Key: "v", Value: c.Arg("version")})
				}
				d := bson.D{{Key: "createIndexes", Value: c.coll}, {Key: "indexes", Value: bson.A{index}}}
				return name, c.perform("createIndexes", c.copyArgs(d, "maxTimeMS", "commitQuorum", "comment", "rawData"), 0)
			}},
		{operations.Collection, "dropIndex", common("name", "maxTimeMS", "comment", "rawData", "writeConcern"), func(c *call) (any, *result.Error) {
			d := bson.D{{Key: "dropIndexes", Value: c.coll}, {Key: "index", Value: c.Arg("name")}}
			return enginekit.Nothing{}, c.perform("dropIndexes", c.copyArgs(d, "maxTimeMS", "comment", "rawData"), namespaceNotFound)
		}},
		{operations.Collection, "dropIndexes", common("maxTimeMS", "comment", "rawData", "writeConcern"), func(c *call) (any, *result.Error) {
			d := bson.D{{Key: "dropIndexes", Value: c.coll}, {Key: "index", Value: "*"}}
			return enginekit.Nothing{}, c.perform("dropIndexes", c.copyArgs(d, "maxTimeMS", "comment", "rawData"), namespaceNotFound)
		}},
		{operations.Collection, "rename", common("to", "dropTarget", "comment", "maxTimeMS", "writeConcern"), func(c *call) (any, *result.Error) {
			d := bson.D{{Key: "renameCollection", Value: c.db + "." + c.coll}, {Key: "to", Value: c.db + "." + c.Text("to")}}
			d = c.copyArgs(d, "dropTarget", "comment", "maxTimeMS")
			c.db = "admin"
			return enginekit.Nothing{}, c.perform("renameCollection", d, 0)
		}},
		{operations.Database, "createCollection", common(append([]string{"collection", "writeConcern"}, createFields...)...), func(c *call) (any, *result.Error) {
			d := c.copyArgs(bson.D{{Key: "create", Value: c.Arg("collection")}}, createFields...)
			if err := c.perform("create", d, 0); err != nil {
				return nil, err
			}
			if c.op.SaveAs == "" {
				return enginekit.Nothing{}, nil
			}
			db := c.entity.(*database)
			if err := c.test.Entities.Put(c.op.SaveAs, &collection{db: db, name: c.Text("collection"), options: db.options}); err != nil {
				return nil, argument(err.Error())
			}
			return enginekit.Nothing{}, nil
		}},
		{operations.Database, "dropCollection", common("collection", "comment", "maxTimeMS", "writeConcern"), func(c *call) (any, *result.Error) {
			d := c.copyArgs(bson.D{{Key: "drop", Value: c.Arg("collection")}}, "comment", "maxTimeMS")
			return enginekit.Nothing{}, c.perform("drop", d, namespaceNotFound)
		}},
		{operations.Client, "dropDatabase", common("database", "writeConcern"), func(c *call) (any, *result.Error) {
			c.db = c.Text("database")
			return enginekit.Nothing{}, c.perform("dropDatabase", bson.D{{Key: "dropDatabase", Value: int32(1)}}, 0)
		}},
		{operations.Database, "modifyCollection", common(append([]string{"collection", "writeConcern"}, modifyFields...)...), func(c *call) (any, *result.Error) {
			d := c.copyArgs(bson.D{{Key: "collMod", Value: c.Arg("collection")}}, modifyFields...)
			r, err := c.answered("collMod", d)
			switch {
			case err != nil:
				return nil, err
			case r == nil: // of an unacknowledged write
				return enginekit.Nothing{}, nil
			}
			return r, nil
		}},
		{operations.Collection, "createSearchIndex", common("model"), func(c *call) (any, *result.Error) {
			return c.searchIndexes(bson.A{c.document("model")}, true)
		}},
		{operations.Collection, "createSearchIndexes", common("models"), func(c *call) (any, *result.Error) {
			models, err := c.documents("models")
			if err != nil {
				return nil, err
			}
			all := bson.A{}
			for _, m := range models {
				all = append(all, m)
			}
			return c.searchIndexes(all, false)
		}},
		{operations.Collection, "dropSearchIndex", common("name"), func(c *call) (any, *result.Error) {
			c.scope.writeConcern = nil
			return enginekit.Nothing{}, c.perform("dropSearchIndex", bson.D{{Key: "dropSearchIndex", Value: c.coll}, {Key: "name", Value: c.Arg("name")}},
				namespaceNotFound)
		}},
		{operations.Collection, "updateSearchIndex", common("name", "definition"), func(c *call) (any, *result.Error) {
			c.scope.writeConcern = nil
			return enginekit.Nothing{}, c.perform("updateSearchIndex", bson.D{{Key: "updateSearchIndex", Value: c.coll},
				{Key: "name", Value: c.Arg("name")}, {Key: "definition", Value: c.Arg("definition")}}, 0)
		}},
		{operations.Collection, "listSearchIndexes", common("name", "aggregationOptions"), func(c *call) (any, *result.Error) {
			stage := bson.D{}
			if c.Has("name") {
				stage = append(stage, bson.E{Key: "name", Value: c.Arg("name")})
			}
			options := bson.D{}
			var rest bson.D
			if doc, ok := c.Arg("aggregationOptions").DocumentOK(); ok {
				elements, _ := doc.Elements()
				for _, e := range elements {
					if e.Key() == "batchSize" {
						options = append(options, bson.E{Key: "batchSize", Value: e.Value()})
					} else {
						rest = append(rest, bson.E{Key: e.Key(), Value: e.Value()})
					}
				}
			}
			d := bson.D{{Key: "aggregate", Value: c.coll}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$listSearchIndexes", Value: stage}}}},
				{Key: "cursor", Value: options}}
			cmd := c.read("aggregate", fixed(append(d, rest...)))
			cmd.takesReadConcern = false
			return result2(c.documentsOf(cmd, cursorOptions{lifetime: true}))
		}},
	}
}

func (c *call) searchIndexes(models bson.A, one bool) (any, *result.Error) {
	c.scope.writeConcern = nil // the command takes none
	cmd := c.writing("createSearchIndexes", "createSearchIndexes",
		fixed(bson.D{{Key: "createSearchIndexes", Value: c.coll}, {Key: "indexes", Value: models}}))
	r, err := c.do(cmd)
	if err != nil {
		return nil, err
	}
	array, ok := r.doc.Lookup("indexesCreated").ArrayOK()
	if !ok {
		return enginekit.Nothing{}, nil
	}
	values, _ := array.Values()
	names := bson.A{}
	for _, v := range values {
		name, _ := lookupIn(v, "name")
		names = append(names, name)
	}
	if one && len(names) > 0 {
		return names[0], nil
	}
	return names, nil
}

// perform runs a command whose reply says nothing more. An error with the code
// of ignore counts as success.
func (c *call) perform(name string, d bson.D, ignore int32) *result.Error {
	_, err := c.answered(name, d)
	if err != nil && ignore != 0 && err.HasCode && err.Code == ignore {
		return nil
	}
	return err
}

// answered runs a command of a helper that writes and gives the reply.
func (c *call) answered(name string, d bson.D) (bson.Raw, *result.Error) {
	cmd := c.writing(name, name, fixed(d))
	cmd.primary = true
	r, err := c.run(cmd)
	if err := raised(r, err); err != nil {
		return nil, err
	}
	return r.doc, nil
}

// indexName joins keys and directions (Index Management, "Index name
// generation").
func indexName(keys bson.RawValue) (string, *result.Error) {
	doc, ok := keys.DocumentOK()
	if !ok {
		return "", argument("keys is no document")
	}
	elements, err := doc.Elements()
	if err != nil {
		return "", argument(err.Error())
	}
	var parts []string
	for _, e := range elements {
		direction := strings.Trim(e.Value().String(), `"`)
		if n, ok := enginekit.Integer(e.Value()); ok {
			direction = strconv.FormatInt(n, 10)
		}
		parts = append(parts, e.Key()+"_"+direction)
	}
	return strings.Join(parts, "_"), nil
}
