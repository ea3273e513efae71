package driver

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// models reads an array of {name: {…}} documents: read gets the name and the
// document of each.
func models[T any](c *call, of string, read func(name string, doc bson.Raw) (T, error)) ([]T, error) {
	array, ok := c.Arg(of).ArrayOK()
	if !ok {
		return nil, argument("%s is no array", of)
	}
	values, err := array.Values()
	if err != nil {
		return nil, argument("%s: %v", of, err)
	}
	var out []T
	for i, v := range values {
		doc, _ := v.DocumentOK()
		elements, err := doc.Elements()
		if err != nil || len(elements) != 1 {
			return nil, argument("%s[%d] is no document with one field", of, i)
		}
		inner, ok := elements[0].Value().DocumentOK()
		if !ok {
			return nil, argument("%s[%d].%s is no document", of, i, elements[0].Key())
		}
		model, err := read(elements[0].Key(), inner)
		if err != nil {
			return nil, err
		}
		out = append(out, model)
	}
	return out, nil
}

// modelOf fills a model of a kind.
func modelOf[T any](kinds map[string]func() T, name string, doc bson.Raw) (T, error) {
	made, known := kinds[name]
	if !known {
		var none T
		return none, unsupported("write model " + name)
	}
	model := made()
	return model, fill(model, name, doc)
}

// bulkRows are the bulk writes of collections and clients, and insertMany.
func bulkRows() []row {
	return []row{
		{operations.Collection, "bulkWrite", "requests" + writeConcerns, optionsFor[options.BulkWriteOptions](), func(c *call) (any, error) {
			kinds := map[string]func() mongo.WriteModel{
				"insertOne":  func() mongo.WriteModel { return mongo.NewInsertOneModel() },
				"deleteOne":  func() mongo.WriteModel { return mongo.NewDeleteOneModel() },
				"deleteMany": func() mongo.WriteModel { return mongo.NewDeleteManyModel() },
				"replaceOne": func() mongo.WriteModel { return mongo.NewReplaceOneModel() },
				"updateOne":  func() mongo.WriteModel { return mongo.NewUpdateOneModel() },
				"updateMany": func() mongo.WriteModel { return mongo.NewUpdateManyModel() },
			}
			requests, err := models(c, "requests", func(name string, doc bson.Raw) (mongo.WriteModel, error) {
				return modelOf(kinds, name, doc)
			})
			if err != nil {
				return nil, err
			}
			r, err := c.coll().BulkWrite(c.ctx, requests, optionsOf[options.BulkWriteOptions](c))
			return bulkResult(r, err), err
		}},
		{operations.Collection, "insertMany", "documents" + writeConcerns, optionsFor[options.InsertManyOptions](), func(c *call) (any, error) {
			r, err := c.coll().InsertMany(c.ctx, c.any("documents"), optionsOf[options.InsertManyOptions](c))
			return insertedResult(r, err), err
		}},
		{operations.Client, "clientBulkWrite", "models", optionsFor[options.ClientBulkWriteOptions](), clientBulkWrite},
	}
}

// bulkResult is the result of a bulk write. One that came with an error says
// what had been done by then, acknowledged or not.
func bulkResult(r *mongo.BulkWriteResult, err error) partial {
	if r == nil {
		return partial{}
	}
	return partial{acknowledged(r.Acknowledged || err != nil,
		bson.E{Key: "insertedCount", Value: r.InsertedCount}, bson.E{Key: "matchedCount", Value: r.MatchedCount},
		bson.E{Key: "modifiedCount", Value: r.ModifiedCount}, bson.E{Key: "deletedCount", Value: r.DeletedCount},
		bson.E{Key: "upsertedCount", Value: r.UpsertedCount}, bson.E{Key: "upsertedIds", Value: indexed(r.UpsertedIDs, itself)})}
}

func insertedResult(r *mongo.InsertManyResult, err error) partial {
	if r == nil {
		return partial{}
	}
	ids := map[int]any{}
	for i, id := range r.InsertedIDs {
		ids[i] = id
	}
	d := bson.D{{Key: "insertedCount", Value: int64(len(ids))}, {Key: "insertedIds", Value: indexed(ids, itself)}}
	if err != nil { // the partial result is a BulkWriteResult to the format
		d = append(d, bson.E{Key: "matchedCount", Value: 0}, bson.E{Key: "modifiedCount", Value: 0}, bson.E{Key: "deletedCount", Value: 0},
			bson.E{Key: "upsertedCount", Value: 0}, bson.E{Key: "upsertedIds", Value: bson.D{}})
	}
	return partial{acknowledged(r.Acknowledged || err != nil, d...)}
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

// clientBulkWrite: a model says its namespace beside what the driver's model
// has.
func clientBulkWrite(c *call) (any, error) {
	kinds := map[string]func() mongo.ClientWriteModel{
		"insertOne":  func() mongo.ClientWriteModel { return mongo.NewClientInsertOneModel() },
		"deleteOne":  func() mongo.ClientWriteModel { return mongo.NewClientDeleteOneModel() },
		"deleteMany": func() mongo.ClientWriteModel { return mongo.NewClientDeleteManyModel() },
		"replaceOne": func() mongo.ClientWriteModel { return mongo.NewClientReplaceOneModel() },
		"updateOne":  func() mongo.ClientWriteModel { return mongo.NewClientUpdateOneModel() },
		"updateMany": func() mongo.ClientWriteModel { return mongo.NewClientUpdateManyModel() },
	}
	writes, err := models(c, "models", func(name string, doc bson.Raw) (mongo.ClientBulkWrite, error) {
		rest, namespace, err := without(doc, "namespace")
		if err != nil {
			return mongo.ClientBulkWrite{}, err
		}
		text, _ := namespace.StringValueOK()
		database, collection, ok := strings.Cut(text, ".")
		if !ok {
			return mongo.ClientBulkWrite{}, argument("%s.namespace is no namespace", name)
		}
		model, err := modelOf(kinds, name, rest)
		return mongo.ClientBulkWrite{Database: database, Collection: collection, Model: model}, err
	})
	if err != nil {
		return nil, err
	}
	r, err := c.client.BulkWrite(c.ctx, writes, optionsOf[options.ClientBulkWriteOptions](c))
	if err != nil {
		return nil, err // the partial result is in the error, if there is one
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
