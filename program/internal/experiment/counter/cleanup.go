package counter

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// nightly is the pipeline of the nightly task: it adds the number of pending tokens to a counter.
func nightly(counter any) mongo.Pipeline {
	return mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "pending.0", Value: bson.D{{Key: "$exists", Value: true}}}}}},
		{{Key: "$project", Value: bson.D{{Key: "counter", Value: bson.D{{Key: "$add",
			Value: bson.A{counter, bson.D{{Key: "$size", Value: "$pending"}}}}}}}}},
	}
}

// verbatim is the pipeline of the article. If the first event of a day has left a token, there is no counter yet, and
// the sum is null.
func verbatim() mongo.Pipeline { return nightly("$counter") }

// corrected takes a missing counter for 0. The strategies use it.
func corrected() mongo.Pipeline {
	return nightly(bson.D{{Key: "$ifNull", Value: bson.A{"$counter", 0}}})
}

// cleanUp is the nightly task: a pipeline computes the counters, and an update that can be repeated sets them and
// removes the tokens.
func cleanUp(ctx context.Context, counters *mongo.Collection, p mongo.Pipeline) error {
	found, err := counters.Aggregate(ctx, p)
	if err != nil {
		return err
	}
	var days []struct {
		ID      string `bson:"_id"`
		Counter bson.RawValue
	}
	if err := found.All(ctx, &days); err != nil {
		return err
	}
	for _, day := range days {
		_, err := counters.UpdateByID(ctx, day.ID, bson.D{{Key: "$set", Value: bson.D{{Key: "counter", Value: day.Counter}}},
			{Key: "$unset", Value: bson.D{{Key: "pending", Value: true}}}})
		if err != nil {
			return err
		}
	}
	return nil
}

// CleanUp is the result of the nightly task with a pipeline: of a day without a counter, and of another one.
type CleanUp struct {
	Pipeline string `json:"pipeline"`
	First    string `json:"firstEvent"`
	Later    string `json:"laterEvent"`
}

// RunCleanUps runs the nightly task with the article's pipeline and the corrected one, each on its own collection,
// which it drops.
func RunCleanUps(ctx context.Context, c Config) ([]CleanUp, error) {
	host, err := c.server(ctx)
	if err != nil {
		return nil, err
	}
	client, disconnect, err := c.connect(ctx, host, c.Selection, false)
	if err != nil {
		return nil, err
	}
	defer disconnect()
	out := []CleanUp{{Pipeline: "as in the article"}, {Pipeline: "a missing counter is 0"}}
	for i, p := range []mongo.Pipeline{verbatim(), corrected()} {
		if err := out[i].run(ctx, client.Database(database).Collection(collection+"-"+bson.NewObjectID().Hex()),
			p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (u *CleanUp) run(ctx context.Context, days *mongo.Collection, p mongo.Pipeline) (err error) {
	defer func() { err = errors.Join(err, days.Drop(context.WithoutCancel(ctx))) }()
	token := bson.E{Key: "pending", Value: bson.A{bson.NewObjectID()}}
	if err := insert(ctx, days, bson.D{{Key: "_id", Value: "first"}, token},
		bson.D{{Key: "_id", Value: "later"}, {Key: "counter", Value: 5}, token}); err != nil {
		return err
	}
	if err := cleanUp(ctx, days, p); err != nil {
		return err
	}
	for _, day := range []struct {
		id      string
		verdict *string
		want    int64
	}{{"first", &u.First, 1}, {"later", &u.Later, 6}} {
		doc, err := days.FindOne(ctx, bson.D{{Key: "_id", Value: day.id}}).Raw()
		if err != nil {
			return err
		}
		*day.verdict = "correct"
		if counter := doc.Lookup("counter"); counter.Type == bson.TypeNull {
			*day.verdict = "the counter is null"
		} else if n, ok := counter.AsInt64OK(); !ok || n != day.want {
			*day.verdict = "the counter is " + counter.String()
		}
	}
	return nil
}
