package reference

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/result"
)

// schemaRows lists the operations on collections, indexes and databases.
func schemaRows() []row {
	return []row{
		{entities.Collection, "createIndex", "", createIndex},
		noResult(entities.Collection, "dropIndex", "", func(c *call) *result.Error {
			if c.Text("name") == "*" { // (Index Management, "Standard API")
				return argument("dropIndex cannot drop all indexes: use dropIndexes")
			}
			d := document("dropIndexes", c.coll, "index", c.Arg("name"))
			return c.perform(c.options(d, "name"), codes.NamespaceNotFound)
		}),
		noResult(entities.Collection, "dropIndexes", "", func(c *call) *result.Error {
			return c.perform(c.options(document("dropIndexes", c.coll, "index", "*")), codes.NamespaceNotFound)
		}),
		noResult(entities.Collection, "rename", "", func(c *call) *result.Error {
			d := document("renameCollection", c.db+"."+c.coll, "to", c.db+"."+c.Text("to"))
			c.db = "admin"
			return c.perform(c.options(d, "to"), 0)
		}),
		noResult(entities.Database, "createCollection", "", func(c *call) *result.Error {
			err := c.perform(c.options(document("create", c.Arg("collection")), "collection"), 0)
			if err != nil || c.Operation.SaveAs == "" {
				return err
			}
			created := c.namespace
			created.coll = c.Text("collection")
			return c.Save(c.ctx, entities.Collection, created)
		}),
		noResult(entities.Database, "dropCollection", "encryptedFields", func(c *call) *result.Error {
			return c.perform(c.options(document("drop", c.Arg("collection")), "collection"), codes.NamespaceNotFound)
		}),
		noResult(entities.Client, "dropDatabase", "", func(c *call) *result.Error {
			c.db = c.Text("database")
			return c.perform(document("dropDatabase", int32(1)), 0)
		}),
		{entities.Database, "modifyCollection", "", func(c *call) (any, *result.Error) {
			return c.runWrite(c.options(document("collMod", c.Arg("collection")), "collection"))
		}},
		{entities.Collection, "createSearchIndex", "", func(c *call) (any, *result.Error) {
			return c.searchIndexes(bson.A{c.Arg("model")}, true)
		}},
		{entities.Collection, "createSearchIndexes", "", func(c *call) (any, *result.Error) {
			return c.searchIndexes(c.Arg("models"), false)
		}},
		noResult(entities.Collection, "dropSearchIndex", "", func(c *call) *result.Error {
			return c.perform(c.options(document("dropSearchIndex", c.coll)), codes.NamespaceNotFound)
		}),
		noResult(entities.Collection, "updateSearchIndex", "", func(c *call) *result.Error {
			return c.perform(c.options(document("updateSearchIndex", c.coll)), 0)
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
	index := c.options(document("key", c.Arg("keys"), "name", name), append(command, "keys", "name", "version")...)
	index = addIf(index, c.Has("version"), "v", c.Arg("version"))
	if c.timeout { // timeoutMS replaces maxTimeMS
		command = command[1:]
	}
	cmd := c.schemaCommand(c.copyArgs(document("createIndexes", c.coll, "indexes", bson.A{index}), command...))
	cmd.adapt = func(a *attempt) (bson.D, error) {
		// Some older servers would use it without an error (Index Management, "Q & A").
		if c.Has("commitQuorum") && a.wire < wire44 {
			return nil, argument("the server is too old for commitQuorum")
		}
		return nil, nil
	}
	_, err := c.run(cmd)
	return name, err
}

func (c *call) searchIndexes(models any, one bool) (any, *result.Error) {
	r, err := c.runWrite(document("createSearchIndexes", c.coll, "indexes", models))
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
	if err != nil && ignore != 0 && err.Code == ignore {
		return nil
	}
	return err
}

// runWrite runs a command of a helper that writes, and returns the reply.
func (c *call) runWrite(d bson.D) (bson.Raw, *result.Error) {
	r, err := c.run(c.schemaCommand(d))
	return r.doc, err
}

// schemaCommand returns the command of a helper that writes. Search index commands have no write concern.
func (c *call) schemaCommand(d bson.D) *command {
	cmd := c.writing(d[0].Key, d)
	cmd.primary = true
	if strings.Contains(cmd.name(), "SearchIndex") {
		cmd.writeConcern = nil
	}
	return cmd
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
