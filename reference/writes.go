package reference

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

// writeRows lists the writes of collections and clients.
func writeRows() []row {
	inserted := func(t *tally) bson.D { return withFirst(bson.D{}, "insertedId", t.insertedIDs) }
	deleted := func(t *tally) bson.D { return document("deletedCount", t.deleted) }
	updated := func(t *tally) bson.D {
		d := document("matchedCount", t.matched, "modifiedCount", t.modified, "upsertedCount", t.upserted)
		return withFirst(d, "upsertedId", t.upsertedIDs)
	}
	return []row{
		single("deleteMany", "bypassDocumentValidation", deleted),
		single("deleteOne", "bypassDocumentValidation", deleted),
		single("insertOne", "", inserted),
		single("replaceOne", "", updated),
		single("updateMany", "", updated),
		single("updateOne", "", updated),
		{entities.Collection, "bulkWrite", "", bulkWrite},
		{entities.Collection, "insertMany", "", insertMany},
		{entities.Client, "clientBulkWrite", "", clientBulkWrite},
		{entities.Collection, "findOneAndDelete", "bypassDocumentValidation", findAndModify},
		{entities.Collection, "findOneAndReplace", "", findAndModify},
		{entities.Collection, "findOneAndUpdate", "", findAndModify},
	}
}

// withFirst appends the first value of a document to another document, if it has one.
func withFirst(d bson.D, key string, values bson.D) bson.D {
	if len(values) > 0 {
		d = append(d, bson.E{Key: key, Value: values[0].Value})
	}
	return d
}

// single returns a row for an operation with one write.
func single(kind, lacks string, answer func(*tally) bson.D) row {
	return row{entities.Collection, kind, lacks, func(c *call) (any, *result.Error) {
		args := bson.D{}
		for _, a := range modelArgs("bulkWrite", kind) {
			args = c.copyArgs(args, a.Name)
		}
		model, err := newModel(kind, args)
		if err != nil {
			return nil, err
		}
		sum, err := c.writeModels([]enginekit.Model{model}, true)
		if err != nil {
			return nil, err
		}
		return answer(sum), nil
	}}
}

func newModel(kind string, args bson.D) (enginekit.Model, *result.Error) {
	raw, err := bson.Marshal(args)
	if err != nil {
		return enginekit.Model{}, argument(err.Error())
	}
	return enginekit.Model{Kind: kind, Args: raw}, nil
}

func bulkWrite(c *call) (any, *result.Error) {
	models, err := c.Models("requests")
	if err != nil {
		return nil, err
	}
	return c.bulk(models)
}

func insertMany(c *call) (any, *result.Error) {
	docs, err := c.Documents("documents")
	if err != nil {
		return nil, err
	}
	models := make([]enginekit.Model, len(docs))
	for i, d := range docs {
		if models[i], err = newModel("insertOne", document("document", d)); err != nil {
			return nil, err
		}
	}
	return c.bulk(models)
}

func (c *call) bulk(models []enginekit.Model) (any, *result.Error) {
	sum, err := c.writeModels(models, c.ordered())
	if err == nil {
		return sum.document(), nil
	}
	if sum != nil {
		err = withPartial(err, sum.document())
		if err.Kind == "write" {
			err.Kind = "bulk write"
		}
	}
	return nil, err
}

// tally is the result of a bulk write.
type tally struct {
	counts
	insertedIDs, upsertedIDs bson.D
}

// document returns a BulkWriteResult.
func (t *tally) document() bson.D {
	return append(t.counts.document(), bson.E{Key: "insertedIds", Value: append(bson.D{}, t.insertedIDs...)},
		bson.E{Key: "upsertedIds", Value: append(bson.D{}, t.upsertedIDs...)})
}

// writeCommands lists the field with the statements of each write command, and the arguments that apply to all of them.
var writeCommands = map[string]struct {
	statements string
	arguments  []string
}{
	"insert": {"documents", []string{"bypassDocumentValidation", "comment", "rawData"}},
	"delete": {"deletes", []string{"comment", "let", "rawData"}},
	"update": {"updates", []string{"bypassDocumentValidation", "comment", "let", "rawData"}},
}

// writeModels performs models on a collection. The tally is nil if no command was built.
func (c *call) writeModels(models []enginekit.Model, ordered bool) (*tally, *result.Error) {
	writes, err := readWrites("bulkWrite", models)
	if err != nil {
		return nil, err
	}
	if c.client.driver.policy.WholeBulks && slices.ContainsFunc(writes, func(w *write) bool { return w.multi }) {
		for _, w := range writes {
			w.multi = true
		}
	}
	sum := &tally{}
	return sum, c.write(writes, ordered, func(b *batch) (bool, *result.Error) { return c.writeBatch(b, ordered, sum) })
}

// writeBatch sends a batch and adds its result to sum. It also reports whether an error interrupts the bulk write.
func (c *call) writeBatch(b *batch, ordered bool, sum *tally) (interrupts bool, err *result.Error) {
	cmd := c.writing(b.command(), nil)
	as := writeCommands[b.command()]
	d := c.copyArgs(document(b.command(), c.coll, "ordered", ordered), as.arguments...)
	bad := b.fit(cmd, d, func() bson.D {
		name := b.command()
		if b.many() {
			name = "multi-document " + name
		}
		cmd.op = retry.Lookup(name)
		cmd.checkHint(slices.ContainsFunc(b.writes, func(w *write) bool {
			return slices.ContainsFunc(w.statement, func(e bson.E) bool { return e.Key == "hint" })
		}))
		return document(as.statements, b.statements())
	})
	if bad != nil {
		return true, bad
	}
	r, err := c.run(cmd)
	switch {
	case err != nil && r.doc == nil:
		return true, err
	case cmd.silent():
		return false, nil
	case err != nil:
		err = reindex(err, b.places)
	}
	n, _ := enginekit.Integer(r.doc.Lookup("n"))
	switch b.command() {
	case "insert":
		sum.inserted += n
		var failures map[int]result.Document
		if err != nil {
			failures = err.WriteErrors
		}
		for at, i := range b.places {
			_, failed := failures[i]
			if !failed && !(ordered && len(failures) > 0 && int64(at) >= n) {
				sum.insertedIDs = append(sum.insertedIDs, bson.E{Key: fmt.Sprint(i), Value: b.writes[at].id})
			}
		}
	case "delete":
		sum.deleted += n
	case "update":
		sum.update(r.doc, n, b.places)
	}
	return r.interrupts, err
}

// update adds the reply of an update with n documents.
func (t *tally) update(reply bson.Raw, n int64, places []int) {
	upserts, _ := enginekit.NewArguments(reply).Documents("upserted")
	for _, u := range upserts {
		if i, ok := enginekit.Integer(u.Lookup("index")); ok && int(i) < len(places) {
			t.upsertedIDs = append(t.upsertedIDs, bson.E{Key: fmt.Sprint(places[i]), Value: u.Lookup("_id")})
		}
	}
	modified, _ := enginekit.Integer(reply.Lookup("nModified"))
	t.matched += n - int64(len(upserts))
	t.modified += modified
	t.upserted += int64(len(upserts))
}

// checkHint makes a command with a hint fail if it is unacknowledged, and the server would reject the hint without a
// reply (CRUD, "Bulk Write Models": hint): delete and findAndModify support it since 4.4.
func (cmd *command) checkHint(hinted bool) {
	cmd.adapt = func(a *attempt) (bson.D, error) {
		if hinted && a.silent && cmd.name() != "update" && a.wire < wire44 {
			return nil, argument("the server is too old for hint with an unacknowledged write concern")
		}
		return nil, nil
	}
}

// reindex replaces indexes in a batch by indexes in the bulk write.
func reindex(e *result.Error, at []int) *result.Error {
	out := *e
	out.WriteErrors = nil
	for i, w := range e.WriteErrors {
		if i >= 0 && i < len(at) {
			enginekit.AddWriteError(&out, at[i], bson.Raw(w))
		}
	}
	return &out
}

func findAndModify(c *call) (any, *result.Error) {
	d := document("findAndModify", c.coll, "query", c.filter())
	d = addIf(d, c.Row.name == "findOneAndDelete", "remove", true)
	for _, name := range []string{"replacement", "update"} {
		if c.Has(name) {
			if err := validateUpdate(name, c.Arg(name)); err != nil {
				return nil, err
			}
			d = append(d, bson.E{Key: "update", Value: c.Arg(name)})
		}
	}
	d = addIf(d, c.Has("projection"), "fields", c.Arg("projection"))
	switch after := strings.ToLower(c.Text("returnDocument")); after {
	case "":
	case "before", "after":
		d = append(d, bson.E{Key: "new", Value: after == "after"})
	default:
		return nil, argument("unknown returnDocument " + after)
	}
	cmd := c.writing("findAndModify", c.options(d, "filter", "replacement", "update", "projection", "returnDocument"))
	cmd.checkHint(c.Has("hint"))
	r, err := c.run(cmd)
	value, _ := r.doc.Lookup("value").DocumentOK() // or null
	return value, err
}
