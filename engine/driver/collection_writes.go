package driver

import (
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// writeRows are the writes of collections that tell how many documents they
// have changed.
func writeRows() []row {
	return []row{
		{operations.Collection, "insertOne", "document" + writeConcerns, optionsFor[options.InsertOneOptions](), func(c *call) (any, error) {
			r, err := c.coll().InsertOne(c.ctx, c.any("document"), optionsOf[options.InsertOneOptions](c))
			if err != nil {
				return nil, err
			}
			return acknowledged(r.Acknowledged, bson.E{Key: "insertedId", Value: r.InsertedID}), nil
		}},
		{operations.Collection, "deleteOne", "filter" + writeConcerns, optionsFor[options.DeleteOneOptions](), func(c *call) (any, error) {
			return deleted(c.coll().DeleteOne(c.ctx, c.filter(), optionsOf[options.DeleteOneOptions](c)))
		}},
		{operations.Collection, "deleteMany", "filter" + writeConcerns, optionsFor[options.DeleteManyOptions](), func(c *call) (any, error) {
			return deleted(c.coll().DeleteMany(c.ctx, c.filter(), optionsOf[options.DeleteManyOptions](c)))
		}},
		{operations.Collection, "replaceOne", "filter replacement" + writeConcerns, optionsFor[options.ReplaceOptions](), func(c *call) (any, error) {
			return updated(c.coll().ReplaceOne(c.ctx, c.filter(), c.any("replacement"), optionsOf[options.ReplaceOptions](c)))
		}},
		{operations.Collection, "updateOne", "filter update" + writeConcerns, optionsFor[options.UpdateOneOptions](), func(c *call) (any, error) {
			return updated(c.coll().UpdateOne(c.ctx, c.filter(), c.any("update"), optionsOf[options.UpdateOneOptions](c)))
		}},
		{operations.Collection, "updateMany", "filter update" + writeConcerns, optionsFor[options.UpdateManyOptions](), func(c *call) (any, error) {
			return updated(c.coll().UpdateMany(c.ctx, c.filter(), c.any("update"), optionsOf[options.UpdateManyOptions](c)))
		}},
	}
}

// modifyRows are the operations that find a document and change it.
func modifyRows() []row {
	return []row{
		{operations.Collection, "findOneAndDelete", "filter" + writeConcerns, optionsFor[options.FindOneAndDeleteOptions](), func(c *call) (any, error) {
			return single(c.coll().FindOneAndDelete(c.ctx, c.filter(), optionsOf[options.FindOneAndDeleteOptions](c)))
		}},
		{operations.Collection, "findOneAndReplace", "filter replacement" + writeConcerns, optionsFor[options.FindOneAndReplaceOptions](), func(c *call) (any, error) {
			return single(c.coll().FindOneAndReplace(c.ctx, c.filter(), c.any("replacement"), optionsOf[options.FindOneAndReplaceOptions](c)))
		}},
		{operations.Collection, "findOneAndUpdate", "filter update" + writeConcerns, optionsFor[options.FindOneAndUpdateOptions](), func(c *call) (any, error) {
			return single(c.coll().FindOneAndUpdate(c.ctx, c.filter(), c.any("update"), optionsOf[options.FindOneAndUpdateOptions](c)))
		}},
	}
}

// acknowledged gives a result's fields, which mean something only if the write
// was acknowledged.
func acknowledged(is bool, fields ...bson.E) bson.D {
	if !is {
		return bson.D{{Key: "acknowledged", Value: false}}
	}
	return fields
}

func deleted(r *mongo.DeleteResult, err error) (any, error) {
	if r == nil {
		return nil, err
	}
	return acknowledged(r.Acknowledged, bson.E{Key: "deletedCount", Value: r.DeletedCount}), err
}

func updated(r *mongo.UpdateResult, err error) (any, error) {
	if r == nil {
		return nil, err
	}
	d := bson.D{{Key: "matchedCount", Value: r.MatchedCount}, {Key: "modifiedCount", Value: r.ModifiedCount},
		{Key: "upsertedCount", Value: r.UpsertedCount}}
	if r.UpsertedID != nil || r.UpsertedCount > 0 {
		d = append(d, bson.E{Key: "upsertedId", Value: r.UpsertedID})
	}
	return acknowledged(r.Acknowledged, d...), err
}
