package counter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Operation is one of the article's other operations: an application performs it, and tries
// again once after a network error.
type Operation struct {
	Name, What string
	command    string
	// prepare fills the collection; between comes after the first attempt, from somebody else.
	prepare, between func(context.Context, *mongo.Collection) error
	perform          func(context.Context, *mongo.Collection) error
	// again treats the error of the second attempt.
	again func(error) error
	// left is what the collection must hold then, by _id.
	left []string
	// raises reports whether the application must see an error.
	raises bool
}

// Outcome is what became of an operation in a fault.
type Outcome struct {
	Operation string `json:"operation"`
	Fault     Fault  `json:"fault"`
	// Verdict is "correct", or what is wrong.
	Verdict string `json:"verdict"`
}

// RunOperations performs each operation in a lost request and in a lost reply, each in a
// collection of its own, which it drops.
func RunOperations(ctx context.Context, c Config) ([]Outcome, error) {
	host, err := c.server(ctx)
	if err != nil {
		return nil, err
	}
	operations, faults := Operations(), []Fault{LostRequest, LostReply}
	outcomes, errs := make([]Outcome, len(operations)*len(faults)), make([]error, len(operations)*len(faults))
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() { outcomes[i], errs[i] = c.perform(ctx, host, operations[i/len(faults)], faults[i%len(faults)]) })
	}
	all.Wait()
	return outcomes, errors.Join(errs...)
}

func (c Config) perform(ctx context.Context, host string, o Operation, f Fault) (out Outcome, err error) {
	out = Outcome{Operation: o.Name, Fault: f, Verdict: "correct"}
	server, disconnect, err := c.connect(ctx, host, c.Selection, false)
	if err != nil {
		return out, err
	}
	defer disconnect()
	name := collection + "-" + bson.NewObjectID().Hex()
	theirs := server.Database(database).Collection(name)
	defer func() { err = errors.Join(err, theirs.Drop(context.WithoutCancel(ctx))) }()
	if _, err := theirs.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "key", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		return out, err
	}
	if o.prepare != nil {
		if err := o.prepare(ctx, theirs); err != nil {
			return out, err
		}
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
	p.arm(f, strike{command: o.command})
	failed := sent(ctx, func() error { return o.perform(ctx, ours) })
	if !mongo.IsNetworkError(failed) {
		return out, fmt.Errorf("%s: the fault did not strike: %v", o.Name, failed)
	}
	if o.between != nil {
		if err := o.between(ctx, theirs); err != nil {
			return out, err
		}
	}
	failed = sent(ctx, func() error { return o.perform(ctx, ours) })
	if failed != nil && o.again != nil {
		failed = o.again(failed)
	}
	var left []struct {
		ID string `bson:"_id"`
	}
	found, err := theirs.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err == nil {
		err = found.All(ctx, &left)
	}
	ids := []string{}
	for _, d := range left {
		ids = append(ids, d.ID)
	}
	switch {
	case err != nil:
		return out, err
	case o.raises && failed == nil:
		out.Verdict = "hides the error"
	case !o.raises && failed != nil:
		out.Verdict = "raises an error: " + failed.Error()
	case len(ids) < len(o.left):
		out.Verdict = "removes what came meanwhile"
	case !slices.Equal(ids, o.left):
		out.Verdict = fmt.Sprintf("leaves %v", ids)
	}
	return out, nil
}

// Operations lists them, in the order of the article.
func Operations() []Operation {
	insert := func(docs ...bson.D) func(context.Context, *mongo.Collection) error {
		return func(ctx context.Context, c *mongo.Collection) error {
			for _, d := range docs {
				if _, err := c.InsertOne(ctx, d); err != nil {
					return err
				}
			}
			return nil
		}
	}
	doc := func(id, key string) bson.D { return bson.D{{Key: "_id", Value: id}, {Key: "key", Value: key}} }
	find := func(ctx context.Context, c *mongo.Collection) error { return c.FindOne(ctx, doc("a", "1")).Err() }
	deleteOne := func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.DeleteOne(ctx, doc("a", "1"))
		return err
	}
	deleteMany := func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.DeleteMany(ctx, bson.D{{Key: "key", Value: bson.D{{Key: "$gt", Value: ""}}}})
		return err
	}
	// A duplicate key says that the first attempt has succeeded, if it is the one of _id.
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
	set := func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.UpdateByID(ctx, "a", bson.D{{Key: "$set", Value: bson.D{{Key: "sunny", Value: true}}}}, options.UpdateOne().SetUpsert(true))
		return err
	}
	return []Operation{
		{Name: "find", What: "the same document, however often it is read", command: "find", prepare: insert(doc("a", "1")), perform: find, left: []string{"a"}},
		{Name: "insert", What: "a duplicate key at the second attempt says that the first has succeeded", command: "insert",
			perform: insert(doc("a", "1")), again: succeededByID, left: []string{"a"}},
		{Name: "insert into a collection with another unique index", What: "a duplicate key may be that of another document: the application must look at which one",
			command: "insert", prepare: insert(doc("b", "1")), perform: insert(doc("a", "1")), again: succeededByID, left: []string{"b"}, raises: true},
		{Name: "the same, whatever the key", What: "the application takes the other document for its own", command: "insert",
			prepare: insert(doc("b", "1")), perform: insert(doc("a", "1")), again: succeeded, left: []string{"b"}, raises: true},
		{Name: "deleteOne", What: "a second delete matches nothing", command: "delete", prepare: insert(doc("a", "1"), doc("b", "2")), perform: deleteOne, left: []string{"b"}},
		{Name: "deleteMany", What: "a second delete matches nothing", command: "delete", prepare: insert(doc("a", "1"), doc("b", "2")), perform: deleteMany},
		{Name: "deleteMany, and an insert meanwhile", What: "the second attempt deletes what another process has inserted: no worse than a delete that came later", command: "delete",
			prepare: insert(doc("a", "1")), between: insert(doc("b", "2")), perform: deleteMany, left: []string{"b"}},
		{Name: "$set", What: "the same value, however often it is set", command: "update", perform: set, left: []string{"a"}},
	}
}
