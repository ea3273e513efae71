package driver

import (
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// readRows are the reads of collections that make no entity.
func readRows() []row {
	return []row{
		{operations.Collection, "aggregate", "pipeline" + readConcerns + writeConcerns, optionsFor[options.AggregateOptions](), func(c *call) (any, error) {
			cursor, err := c.coll().Aggregate(c.ctx, c.any("pipeline"), optionsOf[options.AggregateOptions](c))
			return all(c.ctx, cursor, err)
		}},
		{operations.Collection, "countDocuments", "filter" + readConcerns, optionsFor[options.CountOptions](), func(c *call) (any, error) {
			return c.coll().CountDocuments(c.ctx, c.filter(), optionsOf[options.CountOptions](c))
		}},
		{operations.Collection, "distinct", "fieldName filter" + readConcerns, optionsFor[options.DistinctOptions](), func(c *call) (any, error) {
			return c.coll().Distinct(c.ctx, c.Text("fieldName"), c.filter(), optionsOf[options.DistinctOptions](c)).Raw()
		}},
		{operations.Collection, "estimatedDocumentCount", readConcerns, optionsFor[options.EstimatedDocumentCountOptions](), func(c *call) (any, error) {
			return c.coll().EstimatedDocumentCount(c.ctx, optionsOf[options.EstimatedDocumentCountOptions](c))
		}},
		{operations.Collection, "find", "filter" + readConcerns, optionsFor[options.FindOptions](), func(c *call) (any, error) {
			cursor, err := c.coll().Find(c.ctx, c.filter(), optionsOf[options.FindOptions](c))
			return all(c.ctx, cursor, err)
		}},
		{operations.Collection, "findOne", "filter" + readConcerns, optionsFor[options.FindOneOptions](), func(c *call) (any, error) {
			return single(c.coll().FindOne(c.ctx, c.filter(), optionsOf[options.FindOneOptions](c)))
		}},
	}
}
