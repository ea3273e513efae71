package reference

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// model is one write of a bulk.
type model enginekit.Model

// group is the command that a model belongs to.
func (m model) group() string {
	switch m.Kind {
	case "insertOne":
		return "insert"
	case "deleteOne", "deleteMany":
		return "delete"
	}
	return "update"
}

func (m model) multi() bool { return m.Kind == "updateMany" || m.Kind == "deleteMany" }

// modelArgs lists what each kind of model may hold in an operation.
func modelArgs(operation, kind string) []operations.Argument {
	_, models := operations.Models(operation)
	i := slices.IndexFunc(models, func(m operations.Model) bool { return m.Name == kind })
	if i < 0 {
		return nil
	}
	return models[i].Arguments
}

// fields are what a model of an operation holds.
func (m model) fields(operation string) ([]bson.RawElement, *result.Error) {
	known := modelArgs(operation, m.Kind)
	if known == nil {
		return nil, unsupported("write model " + m.Kind)
	}
	elements, err := m.Args.Elements()
	if err != nil {
		return nil, argument(err.Error())
	}
	for _, e := range elements {
		if !slices.ContainsFunc(known, func(a operations.Argument) bool { return a.Name == e.Key() }) {
			return nil, unsupported("argument " + e.Key() + " of write model " + m.Kind)
		}
	}
	return elements, nil
}

// statement writes the model as a command has it: with the fields of an operation,
// but for a namespace, under the names that are given. An insert gets an _id if it
// has none.
func (m model) statement(operation string, names map[string]string) (d bson.D, id any, err *result.Error) {
	elements, err := m.fields(operation)
	for _, e := range elements {
		var value any = e.Value()
		switch e.Key() {
		case "namespace":
			continue
		case "document":
			value, id, err = withID(e.Value())
		case "update", "replacement":
			err = changes(e.Key(), e.Value())
		}
		if err != nil {
			break
		}
		d = append(d, bson.E{Key: cmp.Or(names[e.Key()], e.Key()), Value: value})
	}
	return d, id, err
}

// writeStatement writes the model for insert, update and delete.
func (m model) writeStatement() (bson.D, any, *result.Error) {
	d, id, err := m.statement("bulkWrite", map[string]string{"filter": "q", "update": "u", "replacement": "u"})
	switch {
	case err != nil:
		return nil, nil, err
	case m.group() == "insert" && len(d) == 0:
		return nil, nil, argument("an insert has no document")
	case m.group() == "insert":
		return d[0].Value.(bson.D), id, nil
	case m.group() == "delete" && !m.multi():
		d = append(d, bson.E{Key: "limit", Value: int32(1)})
	case m.group() == "delete":
		d = append(d, bson.E{Key: "limit", Value: int32(0)})
	case m.multi():
		d = append(d, bson.E{Key: "multi", Value: true})
	}
	return d, nil, nil
}

// withID gives a document its _id, at the front.
func withID(v bson.RawValue) (bson.D, any, *result.Error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, nil, argument("document is not a document")
	}
	var d bson.D
	if err := bson.Unmarshal(doc, &d); err != nil {
		return nil, nil, argument(err.Error())
	}
	if id, err := doc.LookupErr("_id"); err == nil {
		return d, id, nil
	}
	id := bson.NewObjectID()
	return append(bson.D{{Key: "_id", Value: id}}, d...), id, nil
}

// changes checks that an update has operators only, and that a replacement has
// none.
func changes(name string, v bson.RawValue) *result.Error {
	if name == "update" && v.Type == bson.TypeArray {
		return nil
	}
	doc, ok := v.DocumentOK()
	if !ok {
		return argument(name + " is not a document")
	}
	first, err := doc.IndexErr(0)
	operator := err == nil && strings.HasPrefix(first.Key(), "$")
	switch {
	case name == "update" && !operator:
		return argument("update must consist of operators")
	case name == "replacement" && operator:
		return argument("replacement must not have operators: " + first.Key())
	}
	return nil
}

// batch is the models that go into one command.
type batch struct {
	group  string
	models []int // indexes into the bulk
}

// limits are what a server takes in one command.
type limits struct {
	statements int // maxWriteBatchSize
	bytes      int // of all statements: they are sent inside one document
}

// limits are the least of the servers that are known, or the server's defaults.
func (c *client) limits() limits {
	l := limits{statements: 100_000, bytes: 16 << 20}
	for _, s := range c.topology.Description().Servers {
		if s.MaxBatchCount > 0 {
			l.statements = min(l.statements, int(s.MaxBatchCount))
		}
		if s.MaxDocumentSize > 0 {
			l.bytes = min(l.bytes, int(s.MaxDocumentSize))
		}
	}
	return l
}

// batches groups models, in order if ordered, and begins another batch where
// one is full. Sizes are those of the statements, in bytes.
func batches(models []model, sizes []int, ordered bool, l limits) []batch {
	var out []batch
	open, filled := map[string]int{}, map[int]int{}
	for i, m := range models {
		g := m.group()
		at, there := open[g]
		if ordered {
			there = there && at == len(out)-1
		}
		if there && (len(out[at].models) >= l.statements || filled[at]+sizes[i] > l.bytes) {
			there = false
		}
		if !there {
			at = len(out)
			open[g] = at
			out = append(out, batch{group: g})
		}
		out[at].models = append(out[at].models, i)
		filled[at] += sizes[i]
	}
	return out
}

// counts are how many documents a bulk has written.
type counts struct{ inserted, matched, modified, deleted, upserted int64 }

func (t counts) document() bson.D {
	return bson.D{{Key: "insertedCount", Value: t.inserted}, {Key: "matchedCount", Value: t.matched},
		{Key: "modifiedCount", Value: t.modified}, {Key: "deletedCount", Value: t.deleted}, {Key: "upsertedCount", Value: t.upserted}}
}

// tally is the result of a bulk.
type tally struct {
	counts
	insertedIDs, upsertedIDs bson.D
}

// document gives the tally as BulkWriteResult.
func (t *tally) document() bson.D {
	return append(t.counts.document(), bson.E{Key: "insertedIds", Value: append(bson.D{}, t.insertedIDs...)},
		bson.E{Key: "upsertedIds", Value: append(bson.D{}, t.upsertedIDs...)})
}

// wholeFields are arguments that apply to a whole command of a group.
func wholeFields(group string) []string {
	return map[string][]string{
		"insert": {"bypassDocumentValidation", "comment", "rawData"},
		"delete": {"comment", "let", "rawData"},
		"update": {"bypassDocumentValidation", "comment", "let", "rawData"},
	}[group]
}

// statementsField is the field of a write command that has its statements.
func statementsField(command string) string {
	return map[string]string{"insert": "documents", "update": "updates", "delete": "deletes"}[command]
}

// write performs models in as few commands as their order allows.
func (c *call) write(models []model, ordered bool) (*tally, *result.Error) {
	statements := make([]bson.D, len(models))
	ids, sizes := make([]any, len(models)), make([]int, len(models))
	for i, m := range models {
		var err *result.Error
		if statements[i], ids[i], err = m.writeStatement(); err != nil {
			return nil, err
		}
		raw, bad := bson.Marshal(statements[i])
		if bad != nil {
			return nil, argument(bad.Error())
		}
		sizes[i] = len(raw) + len("\x03100000\x00") // as an element of an array
	}
	if len(models) == 0 {
		return nil, argument("there is nothing to write")
	}
	sum := &tally{}
	var failure *result.Error
	for _, b := range batches(models, sizes, ordered, c.client.limits()) {
		err := c.writeBatch(b, models, statements, ids, ordered, sum)
		if err == nil {
			continue
		}
		failure = mergeErrors(failure, err)
		// What was to be retried interrupts unordered writes, too (Retryable
		// Writes, "Executing Retryable Write Commands").
		if ordered && len(err.WriteErrors) > 0 || err.Kind != "write" || err.HasLabel(labelWrite) {
			break
		}
	}
	return sum, failure
}

// mergeErrors joins the errors of several commands of one bulk.
func mergeErrors(a, b *result.Error) *result.Error {
	if a == nil {
		return b
	}
	joined := *b
	joined.WriteErrors = map[int]bson.Raw{}
	for _, e := range []*result.Error{a, b} {
		maps.Copy(joined.WriteErrors, e.WriteErrors)
	}
	joined.WriteConcernErrors = slices.Concat(a.WriteConcernErrors, b.WriteConcernErrors)
	joined.Labels = slices.Concat(a.Labels, without(b.Labels, a.Labels...))
	return &joined
}

func (c *call) writeBatch(b batch, models []model, statements []bson.D, ids []any, ordered bool, sum *tally) *result.Error {
	body, many := bson.A{}, false
	for _, i := range b.models {
		body = append(body, statements[i])
		many = many || models[i].multi()
	}
	name := b.group
	if many {
		name += " of many"
	}
	d := bson.D{{Key: b.group, Value: c.coll}, {Key: statementsField(b.group), Value: body}, {Key: "ordered", Value: ordered}}
	d = c.copyArgs(d, wholeFields(b.group)...)
	var cmd *command
	cmd = c.writing(b.group, name, func(t target) (bson.D, error) { return d, quietHint(cmd, t, hinted(statements, b.models)) })
	if err := c.override(cmd); err != nil {
		return err
	}
	r, err := c.do(cmd)
	if err != nil && r.doc == nil {
		return err
	}
	if r.write != nil {
		err = reindex(r.write.err, b.models)
	}
	if cmd.silent() {
		return nil
	}
	n, _ := enginekit.Integer(r.doc.Lookup("n"))
	switch b.group {
	case "insert":
		sum.inserted += n
		var failures map[int]bson.Raw
		if err != nil {
			failures = err.WriteErrors
		}
		for at, i := range b.models {
			_, failed := failures[i]
			if !failed && !(ordered && len(failures) > 0 && int64(at) >= n) {
				sum.insertedIDs = append(sum.insertedIDs, bson.E{Key: fmt.Sprint(i), Value: ids[i]})
			}
		}
	case "delete":
		sum.deleted += n
	case "update":
		upserts := 0
		if array, ok := r.doc.Lookup("upserted").ArrayOK(); ok {
			values, _ := array.Values()
			upserts = len(values)
			for _, v := range values {
				at, _ := lookupIn(v, "index")
				id, _ := lookupIn(v, "_id")
				if i, ok := enginekit.Integer(at); ok && int(i) < len(b.models) {
					sum.upsertedIDs = append(sum.upsertedIDs, bson.E{Key: fmt.Sprint(b.models[i]), Value: id})
				}
			}
		}
		modified, _ := enginekit.Integer(r.doc.Lookup("nModified"))
		sum.matched += n - int64(upserts)
		sum.modified += modified
		sum.upserted += int64(upserts)
	}
	return err
}

func hinted(statements []bson.D, at []int) bool {
	return slices.ContainsFunc(at, func(i int) bool {
		return slices.ContainsFunc(statements[i], func(e bson.E) bool { return e.Key == "hint" })
	})
}

// quietHint refuses a hint with an unacknowledged write that the server would
// refuse without saying so (CRUD, "hint" of the write models): updates since
// 4.2, deletes and findAndModify since 4.4 have it.
func quietHint(cmd *command, t target, hint bool) error {
	if !hint || !cmd.silent() {
		return nil
	}
	if cmd.name == "update" && t.wire >= wire42 || t.wire >= wire44 {
		return nil
	}
	return argument("the server is too old for hint with an unacknowledged write concern")
}

// reindex gives write errors their place in the whole bulk.
func reindex(e *result.Error, at []int) *result.Error {
	out := *e
	out.WriteErrors = nil
	for i, w := range e.WriteErrors {
		if i < 0 || i >= len(at) {
			continue
		}
		enginekit.AddWriteError(&out, at[i], w)
	}
	return &out
}

// single makes a row of one write that the operation's arguments describe.
func single(kind, lacks string, answer func(*tally) bson.D) row {
	return row{operations.Collection, kind, lacks, func(c *call) (any, *result.Error) {
		args := bson.D{}
		for _, a := range modelArgs("bulkWrite", kind) {
			args = c.copyArgs(args, a.Name)
		}
		raw, err := bson.Marshal(args)
		if err != nil {
			return nil, argument(err.Error())
		}
		sum, failure := c.write([]model{{kind, raw}}, true)
		if failure != nil {
			return nil, failure
		}
		return answer(sum), nil
	}}
}

// writeRows are the writes of collections and clients.
func writeRows() []row {
	inserted := func(t *tally) bson.D {
		d := bson.D{}
		if len(t.insertedIDs) > 0 {
			d = append(d, bson.E{Key: "insertedId", Value: t.insertedIDs[0].Value})
		}
		return d
	}
	deleted := func(t *tally) bson.D { return bson.D{{Key: "deletedCount", Value: t.deleted}} }
	updated := func(t *tally) bson.D {
		d := bson.D{{Key: "matchedCount", Value: t.matched}, {Key: "modifiedCount", Value: t.modified}, {Key: "upsertedCount", Value: t.upserted}}
		if len(t.upsertedIDs) > 0 {
			d = append(d, bson.E{Key: "upsertedId", Value: t.upsertedIDs[0].Value})
		}
		return d
	}
	return []row{
		single("deleteMany", "bypassDocumentValidation", deleted),
		single("deleteOne", "bypassDocumentValidation", deleted),
		single("insertOne", "", inserted),
		single("replaceOne", "", updated),
		single("updateMany", "", updated),
		single("updateOne", "", updated),
		{operations.Collection, "bulkWrite", "", bulkWrite},
		{operations.Collection, "insertMany", "", insertMany},
		{operations.Client, "clientBulkWrite", "", clientBulkWrite},
		{operations.Collection, "findOneAndDelete", "bypassDocumentValidation", findAndModify},
		{operations.Collection, "findOneAndReplace", "", findAndModify},
		{operations.Collection, "findOneAndUpdate", "", findAndModify},
	}
}

func bulkWrite(c *call) (any, *result.Error) {
	requests, err := c.Models("requests")
	if err != nil {
		return nil, err
	}
	models := make([]model, len(requests))
	for i, r := range requests {
		models[i] = model(r)
	}
	return c.bulk(models)
}

func insertMany(c *call) (any, *result.Error) {
	docs, err := c.Documents("documents")
	if err != nil {
		return nil, err
	}
	models := make([]model, len(docs))
	for i, d := range docs {
		args, err := bson.Marshal(bson.D{{Key: "document", Value: d}})
		if err != nil {
			return nil, argument(err.Error())
		}
		models[i] = model{"insertOne", args}
	}
	return c.bulk(models)
}

func (c *call) bulk(models []model) (any, *result.Error) {
	sum, err := c.write(models, c.ordered())
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

// ordered is the option of bulk writes.
func (c *call) ordered() bool { return !c.Has("ordered") || c.Flag("ordered") }

// withPartial gives an error what was done nevertheless.
func withPartial(err *result.Error, sum bson.D) *result.Error {
	out := *err
	if v, bad := enginekit.ValueOf(sum); bad == nil {
		out.Partial = v
	}
	return &out
}

func findAndModify(c *call) (any, *result.Error) {
	d := bson.D{{Key: "findAndModify", Value: c.coll}, {Key: "query", Value: c.document("filter")}}
	if c.Row.name == "findOneAndDelete" {
		d = append(d, bson.E{Key: "remove", Value: true})
	}
	for _, name := range []string{"replacement", "update"} {
		if c.Has(name) {
			if err := changes(name, c.Arg(name)); err != nil {
				return nil, err
			}
			d = append(d, bson.E{Key: "update", Value: c.Arg(name)})
		}
	}
	if c.Has("projection") {
		d = append(d, bson.E{Key: "fields", Value: c.Arg("projection")})
	}
	switch after := strings.ToLower(c.Text("returnDocument")); after {
	case "":
	case "before", "after":
		d = append(d, bson.E{Key: "new", Value: after == "after"})
	default:
		return nil, argument("returnDocument " + after + " does not exist")
	}
	d = c.options(d, "filter", "replacement", "update", "projection", "returnDocument")
	var cmd *command
	cmd = c.writing("findAndModify", "findAndModify", func(t target) (bson.D, error) { return d, quietHint(cmd, t, c.Has("hint")) })
	r, err := c.run(cmd)
	if err := raised(r, err); err != nil {
		return nil, err
	}
	if value, ok := r.doc.Lookup("value").DocumentOK(); ok {
		return value, nil
	}
	return nil, nil
}
