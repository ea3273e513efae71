package driver

import (
	"reflect"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// indexArguments are the options of an index itself, which the driver keeps
// apart from those of the command.
const indexArguments = "keys name expireAfterSeconds sparse storageEngine unique version default_language language_override " +
	"textIndexVersion weights 2dsphereIndexVersion bits max min bucketSize partialFilterExpression collation wildcardProjection hidden"

// indexRows manage indexes. The driver gives no list of names alone.
func indexRows() []row {
	listOptions, dropOptions := optionsFor[options.ListIndexesOptions](), optionsFor[options.DropIndexesOptions]()
	return []row{
		{operations.Collection, "createIndex", indexArguments + writeConcerns, optionsFor[options.CreateIndexesOptions](), func(c *call) (any, error) {
			model := mongo.IndexModel{Keys: c.any("keys")}
			var o options.IndexOptions
			elements, _ := c.Given.Elements()
			for _, e := range elements {
				if e.Key() == "keys" || !strings.Contains(" "+indexArguments+" ", " "+e.Key()+" ") {
					continue
				}
				f, _ := fieldOf(optionsFor[options.IndexOptions](), e.Key())
				if err := assign(reflect.ValueOf(&o).Elem().FieldByIndex(f.Index), e.Value()); err != nil {
					return nil, argument("%s: %v", e.Key(), err)
				}
			}
			model.Options = &options.IndexOptionsBuilder{Opts: given(o).List()}
			return c.coll().Indexes().CreateOne(c.ctx, model, optionsOf[options.CreateIndexesOptions](c))
		}},
		{operations.Collection, "dropIndex", "name" + writeConcerns, dropOptions, func(c *call) (any, error) {
			return enginekit.Nothing{}, c.coll().Indexes().DropOne(c.ctx, c.Text("name"), optionsOf[options.DropIndexesOptions](c))
		}},
		{operations.Collection, "dropIndexes", writeConcerns, dropOptions, func(c *call) (any, error) {
			return enginekit.Nothing{}, c.coll().Indexes().DropAll(c.ctx, optionsOf[options.DropIndexesOptions](c))
		}},
		{operations.Collection, "listIndexes", "", listOptions, func(c *call) (any, error) {
			cursor, err := c.coll().Indexes().List(c.ctx, optionsOf[options.ListIndexesOptions](c))
			return all(c.ctx, cursor, err)
		}},
	}
}

// searchModel is an index model of Search.
func searchModel(v bson.RawValue) (mongo.SearchIndexModel, error) {
	var m mongo.SearchIndexModel
	doc, ok := v.DocumentOK()
	if !ok {
		return m, argument("a search index's model is no document")
	}
	rest, definition, err := without(doc, "definition")
	if err != nil {
		return m, err
	}
	if m.Definition, err = plain(definition); err != nil {
		return m, argument("a search index's definition: %v", err)
	}
	if err := fill(new(options.SearchIndexesOptions), "model", rest); err != nil {
		return m, err
	}
	m.Options = &options.SearchIndexesOptionsBuilder{Opts: filled[options.SearchIndexesOptions]("model", rest).List()}
	return m, nil
}

// searchIndexRows manage search indexes.
func searchIndexRows() []row {
	return []row{
		{operations.Collection, "createSearchIndex", "model", nil, func(c *call) (any, error) {
			m, err := searchModel(c.Arg("model"))
			if err != nil {
				return nil, err
			}
			return c.coll().SearchIndexes().CreateOne(c.ctx, m)
		}},
		{operations.Collection, "createSearchIndexes", "models", nil, func(c *call) (any, error) {
			array, ok := c.Arg("models").ArrayOK()
			if !ok {
				return nil, argument("models is no array")
			}
			values, err := array.Values()
			if err != nil {
				return nil, argument("models: %v", err)
			}
			models := make([]mongo.SearchIndexModel, len(values))
			for i, v := range values {
				if models[i], err = searchModel(v); err != nil {
					return nil, err
				}
			}
			return list(c.coll().SearchIndexes().CreateMany(c.ctx, models))
		}},
		{operations.Collection, "dropSearchIndex", "name", nil, func(c *call) (any, error) {
			return enginekit.Nothing{}, c.coll().SearchIndexes().DropOne(c.ctx, c.Text("name"))
		}},
		{operations.Collection, "listSearchIndexes", "name aggregationOptions", nil, func(c *call) (any, error) {
			o := options.SearchIndexes()
			if c.Has("name") {
				o.SetName(c.Text("name"))
			}
			var aggregation options.AggregateOptions
			if v := c.Arg("aggregationOptions"); v.Type != 0 {
				if err := fillDocument(&aggregation, "aggregationOptions", v); err != nil {
					return nil, err
				}
			}
			cursor, err := c.coll().SearchIndexes().List(c.ctx, o, given(options.ListSearchIndexesOptions{AggregateOptions: &aggregation}))
			return all(c.ctx, cursor, err)
		}},
		{operations.Collection, "updateSearchIndex", "name definition", nil, func(c *call) (any, error) {
			return enginekit.Nothing{}, c.coll().SearchIndexes().UpdateOne(c.ctx, c.Text("name"), c.any("definition"))
		}},
	}
}
