package counter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// operation is another operation of the article, which an application performs and
// retries once after a network error.
type operation struct {
	name    string
	command string
	// before are the initial documents. Another client inserts between after the first attempt.
	before, between []any
	perform         func(context.Context, *mongo.Collection) (any, error)
	recover         func(error) error // handles the error of the second attempt
	left            []string          // expected _ids in the collection
	raises          bool              // the application must see an error
}

// Outcome is the result of an operation with a fault.
type Outcome struct {
	Operation string `json:"operation"`
	Fault     Fault  `json:"fault"`
	// Verdict is "correct" or describes the error.
	Verdict string `json:"verdict"`
}

// RunOperations performs each operation with a lost request and with a lost reply, each
// in its own collection, and drops it.
func RunOperations(ctx context.Context, c Config) ([]Outcome, error) {
	host, err := c.server(ctx)
	if err != nil {
		return nil, err
	}
	return each(operations(), []Fault{LostRequest, LostReply}, func(o operation, f Fault) (Outcome, error) {
		return c.perform(ctx, host, o, f)
	})
}

func (c Config) perform(ctx context.Context, host string, o operation, f Fault) (out Outcome, err error) {
	out = Outcome{Operation: o.name, Fault: f, Verdict: "correct"}
	server, disconnect, err := c.connect(ctx, host, c.Selection, false)
	if err != nil {
		return out, err
	}
	defer disconnect()
	name := collection + "-" + bson.NewObjectID().Hex()
	theirs := server.Database(database).Collection(name)
	defer func() { err = errors.Join(err, theirs.Drop(context.WithoutCancel(ctx))) }()
	if _, err := theirs.Indexes().CreateOne(ctx,
		mongo.IndexModel{Keys: bson.D{{Key: "key", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		return out, err
	}
	if err := insert(ctx, theirs, o.before...); err != nil {
		return out, err
	}
	p, err := listen(host)
	if err != nil {
		return out, err
	}
	defer p.close()
	client, disconnect, err := c.connect(ctx, p.Address(), c.Selection, false)
	if err != nil {
		return out, err
	}
	defer disconnect()
	ours := client.Database(database).Collection(name)
	p.arm(f, point{command: o.command})
	var got any // by the last attempt
	try := func() (err error) {
		got, err = o.perform(ctx, ours)
		return err
	}
	failed := sent(ctx, try)
	if !mongo.IsNetworkError(failed) {
		return out, fmt.Errorf("%s: the fault was not injected: %w", o.name, failed)
	}
	if err := insert(ctx, theirs, o.between...); err != nil {
		return out, err
	}
	failed = sent(ctx, try)
	if failed != nil && o.recover != nil {
		failed = o.recover(failed)
	}
	var ids []string
	if err := theirs.Distinct(ctx, "_id", bson.D{}).Decode(&ids); err != nil {
		return out, err
	}
	slices.Sort(ids)
	deleted, _ := got.(*mongo.DeleteResult)
	switch {
	case o.raises && failed == nil:
		out.Verdict = "hides the error"
	case !o.raises && failed != nil:
		out.Verdict = "raises an error: " + failed.Error()
	case deleted != nil && deleted.DeletedCount > 0 && len(ids) < len(o.left):
		out.Verdict = "removes documents inserted meanwhile"
	case !slices.Equal(ids, o.left):
		out.Verdict = fmt.Sprintf("leaves %v", ids)
	}
	return out, nil
}

// insert inserts documents one by one.
func insert(ctx context.Context, c *mongo.Collection, documents ...any) error {
	for _, d := range documents {
		if _, err := c.InsertOne(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// operations lists the operations in the order of the article.
func operations() []operation {
	doc := func(id, key string) bson.D { return bson.D{{Key: "_id", Value: id}, {Key: "key", Value: key}} }
	a1, b1, b2 := doc("a", "1"), doc("b", "1"), doc("b", "2")
	find := func(ctx context.Context, c *mongo.Collection) (any, error) { return c.FindOne(ctx, a1).Raw() }
	insertOne := func(ctx context.Context, c *mongo.Collection) (any, error) { return c.InsertOne(ctx, a1) }
	deleteOne := func(ctx context.Context, c *mongo.Collection) (any, error) { return c.DeleteOne(ctx, a1) }
	deleteMany := func(ctx context.Context, c *mongo.Collection) (any, error) {
		return c.DeleteMany(ctx, bson.D{{Key: "key", Value: bson.D{{Key: "$gt", Value: ""}}}})
	}
	set := func(ctx context.Context, c *mongo.Collection) (any, error) {
		sunny := bson.D{{Key: "$set", Value: bson.D{{Key: "sunny", Value: true}}}}
		return c.UpdateByID(ctx, "a", sunny, options.UpdateOne().SetUpsert(true))
	}
	// A duplicate key of _id means that the first attempt succeeded.
	succeeded := func(err error) error {
		if mongo.IsDuplicateKeyError(err) {
			return nil
		}
		return err
	}
	succeededByID := func(err error) error {
		var failed mongo.WriteException
		if errors.As(err, &failed) && len(failed.WriteErrors) == 1 {
			if _, found := failed.WriteErrors[0].Raw.Lookup("keyPattern", "_id").AsInt64OK(); found {
				return nil
			}
		}
		return err
	}
	return []operation{
		// Reads are idempotent.
		{name: "find", command: "find", before: bson.A{a1}, perform: find, left: []string{"a"}},
		// A duplicate key in the second attempt means that the first succeeded.
		{name: "insert", command: "insert", perform: insertOne, recover: succeededByID, left: []string{"a"}},
		// A duplicate key may belong to another document, so the application must check the index.
		{name: "insert into a collection with another unique index", command: "insert", before: bson.A{b1},
			perform: insertOne,
			recover: succeededByID, left: []string{"b"}, raises: true},
		// The application mistakes the other document for its own.
		{name: "the same, whatever the key", command: "insert", before: bson.A{b1}, perform: insertOne, recover: succeeded,
			left: []string{"b"}, raises: true},
		// A second delete matches nothing.
		{name: "deleteOne", command: "delete", before: bson.A{a1, b2}, perform: deleteOne, left: []string{"b"}},
		{name: "deleteMany", command: "delete", before: bson.A{a1, b2}, perform: deleteMany},
		// The second attempt deletes another client's document, as a later delete would.
		{name: "deleteMany, and an insert meanwhile", command: "delete", before: bson.A{a1}, between: bson.A{b2},
			perform: deleteMany,
			left:    []string{"b"}},
		// $set is idempotent.
		{name: "$set", command: "update", perform: set, left: []string{"a"}},
	}
}
