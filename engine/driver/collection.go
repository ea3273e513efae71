package driver

import (
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func collectionRows() []row {
	const on = entities.Collection
	return []row{
		one(on, "aggregate", "pipeline"+readConcerns+writeConcerns, (*mongo.Collection).Aggregate),
		one(on, "countDocuments", "filter"+readConcerns, (*mongo.Collection).CountDocuments),
		one(on, "createChangeStream", "pipeline"+readConcerns, (*mongo.Collection).Watch),
		one(on, "createFindCursor", "filter"+readConcerns, (*mongo.Collection).Find),
		one(on, "deleteMany", "filter"+writeConcerns, (*mongo.Collection).DeleteMany),
		one(on, "deleteOne", "filter"+writeConcerns, (*mongo.Collection).DeleteOne),
		one(on, "find", "filter"+readConcerns, (*mongo.Collection).Find),
		one(on, "findOne", "filter"+readConcerns, oneFound((*mongo.Collection).FindOne)),
		one(on, "findOneAndDelete", "filter"+writeConcerns, oneFound((*mongo.Collection).FindOneAndDelete)),
		two(on, "findOneAndReplace", "filter replacement"+writeConcerns, twoFound((*mongo.Collection).FindOneAndReplace)),
		two(on, "findOneAndUpdate", "filter update"+writeConcerns, twoFound((*mongo.Collection).FindOneAndUpdate)),
		one(on, "insertMany", "documents"+writeConcerns, (*mongo.Collection).InsertMany),
		one(on, "insertOne", "document"+writeConcerns, (*mongo.Collection).InsertOne),
		two(on, "replaceOne", "filter replacement"+writeConcerns, (*mongo.Collection).ReplaceOne),
		two(on, "updateMany", "filter update"+writeConcerns, (*mongo.Collection).UpdateMany),
		two(on, "updateOne", "filter update"+writeConcerns, (*mongo.Collection).UpdateOne),
		with(on, "distinct", "fieldName filter"+readConcerns, func(c *call, o *filled[options.DistinctOptions]) (any, error) {
			return c.coll().Distinct(c.ctx, c.Text("fieldName"), c.any("filter"), o).Raw()
		}),
		with(on, "estimatedDocumentCount", readConcerns, func(c *call, o *filled[options.EstimatedDocumentCountOptions]) (any, error) {
			return c.coll().EstimatedDocumentCount(c.ctx, o)
		}),
		with(on, "bulkWrite", "requests"+writeConcerns, func(c *call, o *filled[options.BulkWriteOptions]) (any, error) {
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
