package driver

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
)

// indexArguments are the options of an index. In the driver they are separate from the options of the command.
const indexArguments = "name expireAfterSeconds sparse storageEngine unique version default_language language_override " +
	"textIndexVersion weights 2dsphereIndexVersion bits max min bucketSize partialFilterExpression collation wildcardProjection hidden"

func indexRows() []row {
	const on = entities.Collection
	type creating = *filled[options.CreateIndexesOptions]
	type dropping = *filled[options.DropIndexesOptions]
	return []row{
		with(on, "createIndex", indexArguments+writeConcerns, func(c *call, o creating) (any, error) {
			index, err := setters[options.IndexOptions]("createIndex", only(c.Given, indexArguments))
			if err != nil {
				return nil, err
			}
			model := mongo.IndexModel{Keys: c.any("keys"), Options: &options.IndexOptionsBuilder{Opts: index}}
			return c.coll().Indexes().CreateOne(c.ctx, model, o)
		}),
		with(on, "dropIndex", writeConcerns, func(c *call, o dropping) (any, error) {
			return enginekit.Nothing{}, c.coll().Indexes().DropOne(c.ctx, c.Text("name"), o)
		}),
		with(on, "dropIndexes", writeConcerns, func(c *call, o dropping) (any, error) {
			return enginekit.Nothing{}, c.coll().Indexes().DropAll(c.ctx, o)
		}),
		with(on, "listIndexes", "", func(c *call, o *filled[options.ListIndexesOptions]) (any, error) {
			return c.result(c.coll().Indexes().List(c.ctx, o))
		}),
		with(on, "listIndexNames", "", func(c *call, o *filled[options.ListIndexesOptions]) (any, error) {
			indexes, err := c.coll().Indexes().ListSpecifications(c.ctx, o)
			names := make([]string, len(indexes))
			for i, index := range indexes {
				names[i] = index.Name
			}
			return c.result(names, err)
		}),
		plainly(on, "createSearchIndex", "", func(c *call) (any, error) {
			doc, _ := c.Arg("model").DocumentOK()
			m, err := searchModel(doc)
			if err != nil {
				return nil, err
			}
			return c.coll().SearchIndexes().CreateOne(c.ctx, m)
		}),
		plainly(on, "createSearchIndexes", "", func(c *call) (any, error) {
			docs, bad := c.Documents("models")
			if bad != nil {
				return nil, bad
			}
			models, err := each(docs, searchModel)
			if err != nil {
				return nil, err
			}
			return c.result(c.coll().SearchIndexes().CreateMany(c.ctx, models))
		}),
		silently(on, "dropSearchIndex", "", func(c *call) error {
			return c.coll().SearchIndexes().DropOne(c.ctx, c.Text("name"))
		}),
		plainly(on, "listSearchIndexes", "name aggregationOptions", func(c *call) (any, error) {
			o := options.SearchIndexes()
			if c.Has("name") {
				o.SetName(c.Text("name"))
			}
			aggregation, err := section[options.AggregateOptions](c.Given, "aggregationOptions")
			if err != nil {
				return nil, err
			}
			return c.result(c.coll().SearchIndexes().List(c.ctx, o,
				given(options.ListSearchIndexesOptions{AggregateOptions: &aggregation})))
		}),
		silently(on, "updateSearchIndex", "", func(c *call) error {
			return c.coll().SearchIndexes().UpdateOne(c.ctx, c.Text("name"), c.any("definition"))
		}),
	}
}

// searchModel converts a search index model.
func searchModel(doc bson.Raw) (mongo.SearchIndexModel, error) {
	definition, err := plain(doc.Lookup("definition"))
	if err != nil {
		return mongo.SearchIndexModel{}, enginekit.Argument("a search index's definition: %v", err)
	}
	o, err := setters[options.SearchIndexesOptions]("model", without(doc, "definition"))
	return mongo.SearchIndexModel{Definition: definition, Options: &options.SearchIndexesOptionsBuilder{Opts: o}}, err
}
