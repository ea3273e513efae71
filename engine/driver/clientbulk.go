package driver

import (
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// clientBulkWrite reads models that name their namespace, beside what the driver's
// models have.
func clientBulkWrite(c *call, o *filled[options.ClientBulkWriteOptions]) (any, error) {
	models, err := c.Models("models")
	if err != nil {
		return nil, err
	}
	writes := make([]mongo.ClientBulkWrite, len(models))
	for i, m := range models {
		rest, err := without(m.Args, "namespace")
		if err != nil {
			return nil, err
		}
		text, _ := m.Args.Lookup("namespace").StringValueOK()
		database, collection, ok := strings.Cut(text, ".")
		if !ok {
			return nil, enginekit.Argument("%s.namespace is not a namespace", m.Kind)
		}
		model, err := modelOf(map[string]mongo.ClientWriteModel{
			"insertOne": mongo.NewClientInsertOneModel(), "replaceOne": mongo.NewClientReplaceOneModel(),
			"deleteOne": mongo.NewClientDeleteOneModel(), "deleteMany": mongo.NewClientDeleteManyModel(),
			"updateOne": mongo.NewClientUpdateOneModel(), "updateMany": mongo.NewClientUpdateManyModel(),
		}, m.Kind, rest)
		if err != nil {
			return nil, err
		}
		writes[i] = mongo.ClientBulkWrite{Database: database, Collection: collection, Model: model}
	}
	r, failure := c.client.BulkWrite(c.ctx, writes, o)
	if failure != nil {
		return nil, failure // the partial result is in the error, if there is one
	}
	return c.result(r, nil)
}
