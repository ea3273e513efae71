package driver

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// clientBulkWrite reads models that name their namespace, beside what the driver's
// models have.
func clientBulkWrite(c *call, o options.Lister[options.ClientBulkWriteOptions]) (any, error) {
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
	return clientBulkResult(r, nil), nil
}

// clientBulkResult is nil if there is no result.
func clientBulkResult(r *mongo.ClientBulkWriteResult, err error) any {
	if r == nil {
		return nil
	}
	d := bson.D{{Key: "insertedCount", Value: r.InsertedCount}, {Key: "matchedCount", Value: r.MatchedCount},
		{Key: "modifiedCount", Value: r.ModifiedCount}, {Key: "deletedCount", Value: r.DeletedCount},
		{Key: "upsertedCount", Value: r.UpsertedCount}}
	if r.HasVerboseResults {
		d = append(d,
			bson.E{Key: "insertResults", Value: indexed(r.InsertResults, func(r mongo.ClientBulkWriteInsertResult) any {
				return bson.D{{Key: "insertedId", Value: r.InsertedID}}
			})},
			bson.E{Key: "updateResults", Value: indexed(r.UpdateResults, func(r mongo.ClientBulkWriteUpdateResult) any {
				d := bson.D{{Key: "matchedCount", Value: r.MatchedCount}, {Key: "modifiedCount", Value: r.ModifiedCount}}
				if r.UpsertedID != nil {
					d = append(d, bson.E{Key: "upsertedId", Value: r.UpsertedID})
				}
				return d
			})},
			bson.E{Key: "deleteResults", Value: indexed(r.DeleteResults, func(r mongo.ClientBulkWriteDeleteResult) any {
				return bson.D{{Key: "deletedCount", Value: r.DeletedCount}}
			})})
	}
	return acknowledged(r.Acknowledged || err != nil, d...)
}

// indexed writes a map by index as a document.
func indexed[K int | int64, V any](m map[K]V, write func(V) any) bson.D {
	out := bson.D{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, bson.E{Key: strconv.FormatInt(int64(k), 10), Value: write(m[k])})
	}
	return out
}

// itself is how indexed writes what needs no writing.
func itself(v any) any { return v }
