package driver

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
)

func collectionRows() []row {
	const on = entities.Collection
	return []row{
		calling(on, "aggregate", readConcerns+writeConcerns, "pipeline", (*call).coll, (*mongo.Collection).Aggregate),
		calling(on, "countDocuments", readConcerns, "filter", (*call).coll, (*mongo.Collection).CountDocuments),
		calling(on, "createChangeStream", readConcerns, "pipeline", (*call).coll, (*mongo.Collection).Watch),
		calling(on, "createFindCursor", readConcerns, "filter", (*call).coll, (*mongo.Collection).Find),
		calling(on, "deleteMany", writeConcerns, "filter", (*call).coll, (*mongo.Collection).DeleteMany),
		calling(on, "deleteOne", writeConcerns, "filter", (*call).coll, (*mongo.Collection).DeleteOne),
		calling(on, "find", readConcerns, "filter", (*call).coll, (*mongo.Collection).Find),
		with(on, "findOne", "filter"+readConcerns, func(c *call, o *filled[options.FindOneOptions]) (any, error) {
			return c.result(c.coll().FindOne(c.ctx, c.any("filter"), o), nil)
		}),
		with(on, "findOneAndDelete", writeConcerns,
			func(c *call, o *filled[options.FindOneAndDeleteOptions]) (any, error) {
				return c.result(c.coll().FindOneAndDelete(c.ctx, c.any("filter"), o), nil)
			}),
		with(on, "findOneAndReplace", writeConcerns,
			func(c *call, o *filled[options.FindOneAndReplaceOptions]) (any, error) {
				return c.result(c.coll().FindOneAndReplace(c.ctx, c.any("filter"), c.any("replacement"), o), nil)
			}),
		with(on, "findOneAndUpdate", writeConcerns,
			func(c *call, o *filled[options.FindOneAndUpdateOptions]) (any, error) {
				return c.result(c.coll().FindOneAndUpdate(c.ctx, c.any("filter"), c.any("update"), o), nil)
			}),
		calling(on, "insertMany", writeConcerns, "documents", (*call).coll, (*mongo.Collection).InsertMany),
		calling(on, "insertOne", writeConcerns, "document", (*call).coll, (*mongo.Collection).InsertOne),
		with(on, "replaceOne", writeConcerns,
			func(c *call, o *filled[options.ReplaceOptions]) (any, error) {
				return c.result(c.coll().ReplaceOne(c.ctx, c.any("filter"), c.any("replacement"), o))
			}),
		with(on, "updateMany", writeConcerns,
			func(c *call, o *filled[options.UpdateManyOptions]) (any, error) {
				return c.result(c.coll().UpdateMany(c.ctx, c.any("filter"), c.any("update"), o))
			}),
		with(on, "updateOne", writeConcerns, func(c *call, o *filled[options.UpdateOneOptions]) (any, error) {
			return c.result(c.coll().UpdateOne(c.ctx, c.any("filter"), c.any("update"), o))
		}),
		with(on, "distinct", "filter"+readConcerns, func(c *call, o *filled[options.DistinctOptions]) (any, error) {
			return c.coll().Distinct(c.ctx, c.Text("fieldName"), c.any("filter"), o).Raw()
		}),
		with(on, "estimatedDocumentCount", readConcerns,
			func(c *call, o *filled[options.EstimatedDocumentCountOptions]) (any, error) {
				return c.coll().EstimatedDocumentCount(c.ctx, o)
			}),
		with(on, "bulkWrite", writeConcerns, func(c *call, o *filled[options.BulkWriteOptions]) (any, error) {
			models, err := models(c, "requests", func(m enginekit.Model) (mongo.WriteModel, error) {
				return modelOf(m.Kind, m.Args, map[string]mongo.WriteModel{
					"insertOne": mongo.NewInsertOneModel(), "replaceOne": mongo.NewReplaceOneModel(),
					"deleteOne": mongo.NewDeleteOneModel(), "deleteMany": mongo.NewDeleteManyModel(),
					"updateOne": mongo.NewUpdateOneModel(), "updateMany": mongo.NewUpdateManyModel(),
				})
			})
			if err != nil {
				return nil, err
			}
			return c.result(c.coll().BulkWrite(c.ctx, models, o))
		}),
	}
}

// models converts an argument that is an array of write models.
func models[T any](c *call, argument string, convert func(enginekit.Model) (T, error)) ([]T, error) {
	given, bad := c.Models(argument)
	if bad != nil {
		return nil, bad
	}
	return each(given, convert)
}

// modelOf fills a write model, one of the kinds, with the fields of a document.
func modelOf[T any](kind string, doc bson.Raw, kinds map[string]T) (T, error) {
	model, known := kinds[kind]
	if !known {
		return model, unsupported("write model " + kind)
	}
	return model, fill(model, kind, doc)
}

// clientBulkWrite performs a client bulk write. In the format, each model includes its namespace.
func clientBulkWrite(c *call, o *filled[options.ClientBulkWriteOptions]) (any, error) {
	writes, err := models(c, "models", func(m enginekit.Model) (write mongo.ClientBulkWrite, err error) {
		text, _ := m.Args.Lookup("namespace").StringValueOK()
		var ok bool
		if write.Database, write.Collection, ok = strings.Cut(text, "."); !ok {
			return write, enginekit.Argument("%s.namespace is not a namespace", m.Kind)
		}
		write.Model, err = modelOf(m.Kind, without(m.Args, "namespace"), map[string]mongo.ClientWriteModel{
			"insertOne": mongo.NewClientInsertOneModel(), "replaceOne": mongo.NewClientReplaceOneModel(),
			"deleteOne": mongo.NewClientDeleteOneModel(), "deleteMany": mongo.NewClientDeleteManyModel(),
			"updateOne": mongo.NewClientUpdateOneModel(), "updateMany": mongo.NewClientUpdateManyModel(),
		})
		return write, err
	})
	if err != nil {
		return nil, err
	}
	return c.result(c.client.BulkWrite(c.ctx, writes, o)) // the error contains the partial result
}
