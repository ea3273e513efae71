package driver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// streamRows watch. The same arguments are taken on every kind of entity.
func streamRows() []row {
	watch := func(open func(*call, options.Lister[options.ChangeStreamOptions]) (*mongo.ChangeStream, error)) func(*call) (any, error) {
		return func(c *call) (any, error) {
			s, err := open(c, optionsOf[options.ChangeStreamOptions](c))
			if err != nil {
				return nil, err
			}
			return c.hold(&entityCursor{stepper: s, current: func() bson.Raw { return s.Current }, client: c.client})
		}
	}
	type o = options.Lister[options.ChangeStreamOptions]
	taken := optionsFor[options.ChangeStreamOptions]()
	return []row{
		{operations.Client, "createChangeStream", "pipeline", taken, watch(func(c *call, o o) (*mongo.ChangeStream, error) {
			return c.client.Watch(c.ctx, c.any("pipeline"), o)
		})},
		{operations.Database, "createChangeStream", "pipeline" + readConcerns, taken, watch(func(c *call, o o) (*mongo.ChangeStream, error) {
			return c.db().Watch(c.ctx, c.any("pipeline"), o)
		})},
		{operations.Collection, "createChangeStream", "pipeline" + readConcerns, taken, watch(func(c *call, o o) (*mongo.ChangeStream, error) {
			return c.coll().Watch(c.ctx, c.any("pipeline"), o)
		})},
	}
}
