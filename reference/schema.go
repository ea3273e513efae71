package reference

import (
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// schemaRows lists the operations on collections, indexes and databases.
func schemaRows() []row {
	return []row{
		{operations.Collection, "createIndex", "", createIndex},
		noResult(operations.Collection, "dropIndex", "", func(c *call) *result.Error {
			d := bson.D{{Key: "dropIndexes", Value: c.coll}, {Key: "index", Value: c.Arg("name")}}
			return c.perform(c.options(d, "name"), namespaceNotFound)
		}),
		noResult(operations.Collection, "dropIndexes", "", func(c *call) *result.Error {
			return c.perform(c.options(bson.D{{Key: "dropIndexes", Value: c.coll}, {Key: "index", Value: "*"}}), namespaceNotFound)
		}),
		noResult(operations.Collection, "rename", "", func(c *call) *result.Error {
			d := bson.D{{Key: "renameCollection", Value: c.db + "." + c.coll}, {Key: "to", Value: c.db + "." + c.Text("to")}}
			c.db = "admin"
			return c.perform(c.options(d, "to"), 0)
		}),
		noResult(operations.Database, "createCollection", "", func(c *call) *result.Error {
			err := c.perform(c.options(bson.D{{Key: "create", Value: c.Arg("collection")}}, "collection"), 0)
			if err != nil || c.Operation.SaveAs == "" {
				return err
			}
			created := c.namespace
			created.coll = c.Text("collection")
			return c.Save(c.ctx, operations.Collection, created)
		}),
		noResult(operations.Database, "dropCollection", "encryptedFields", func(c *call) *result.Error {
			return c.perform(c.options(bson.D{{Key: "drop", Value: c.Arg("collection")}}, "collection"), namespaceNotFound)
		}),
		noResult(operations.Client, "dropDatabase", "", func(c *call) *result.Error {
			c.db = c.Text("database")
			return c.perform(bson.D{{Key: "dropDatabase", Value: int32(1)}}, 0)
		}),
		{operations.Database, "modifyCollection", "", func(c *call) (any, *result.Error) {
			r, err := c.runWrite(c.options(bson.D{{Key: "collMod", Value: c.Arg("collection")}}, "collection"))
			if err != nil || r == nil { // nil: unacknowledged
				return enginekit.Nothing{}, err
			}
			return r, nil
		}},
		{operations.Collection, "createSearchIndex", "", func(c *call) (any, *result.Error) {
			return c.searchIndexes(bson.A{c.document("model")}, true)
		}},
		{operations.Collection, "createSearchIndexes", "", func(c *call) (any, *result.Error) {
			return c.searchIndexes(c.Arg("models"), false)
		}},
		noResult(operations.Collection, "dropSearchIndex", "", func(c *call) *result.Error {
			return c.perform(c.options(bson.D{{Key: "dropSearchIndex", Value: c.coll}}), namespaceNotFound)
		}),
		noResult(operations.Collection, "updateSearchIndex", "", func(c *call) *result.Error {
			return c.perform(c.options(bson.D{{Key: "updateSearchIndex", Value: c.coll}}), 0)
		}),
	}
}

func createIndex(c *call) (any, *result.Error) {
	name := c.Text("name")
	if name == "" {
		var err *result.Error
		if name, err = indexName(c.Arg("keys")); err != nil {
			return nil, err
		}
	}
	command := []string{"maxTimeMS", "commitQuorum", "comment", "rawData"}
	index := c.options(bson.D{{Key: "key", Value: c.Arg("keys")}, {Key: "name", Value: name}}, append(command, "keys", "name", "version")...)
	if c.Has("version") {
		index = append(index, bson.E{Key: "v", Value: c.Arg("version")})
	}
	d := bson.D{{Key: "createIndexes", Value: c.coll}, {Key: "indexes", Value: bson.A{index}}}
	if c.timeout { // timeoutMS replaces maxTimeMS
		command = command[1:]
	}
	return name, c.perform(c.copyArgs(d, command...), 0)
}

func (c *call) searchIndexes(models any, one bool) (any, *result.Error) {
	r, err := c.runWrite(bson.D{{Key: "createSearchIndexes", Value: c.coll}, {Key: "indexes", Value: models}})
	if err != nil {
		return nil, err
	}
	created, err := enginekit.NewArguments(r).Documents("indexesCreated")
	if err != nil {
		return enginekit.Nothing{}, nil
	}
	names := fieldOf(created, "name")
	if one && len(names) > 0 {
		return names[0], nil
	}
	return names, nil
}

// perform runs a command like runWrite, and ignores the reply and errors with the code ignore.
func (c *call) perform(d bson.D, ignore int32) *result.Error {
	_, err := c.runWrite(d)
	if err != nil && ignore != 0 && err.HasCode && err.Code == ignore {
		return nil
	}
	return err
}

// runWrite runs a command of a helper that writes, and returns the reply. Search index commands have no write concern.
func (c *call) runWrite(d bson.D) (bson.Raw, *result.Error) {
	cmd := c.writing(d[0].Key, d[0].Key, fixed(d))
	cmd.primary = true
	if strings.Contains(cmd.name, "SearchIndex") {
		cmd.writeConcern = nil
	}
	r, err := c.run(cmd)
	return r.doc, withWriteError(r, err)
}

// indexName joins keys and directions (Index Management, "Index name generation").
func indexName(keys bson.RawValue) (string, *result.Error) {
	doc, ok := keys.DocumentOK()
	if !ok {
		return "", argument("keys is not a document")
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
