package reference

import (
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// readRows lists the reads, the change streams, and the generic commands.
func readRows() []row {
	names := func(docs []bson.Raw) any { return fieldOf(docs, "name") }
	first := func(docs []bson.Raw) any {
		if len(docs) == 0 {
			return nil
		}
		return docs[0]
	}
	count := func(docs []bson.Raw) any {
		if len(docs) == 0 {
			return int64(0)
		}
		n, _ := enginekit.Integer(docs[0].Lookup("n"))
		return n
	}
	return []row{
		cursorRow(operations.Collection, "find", "maxScan modifiers snapshot", find, documents),
		cursorRow(operations.Collection, "createFindCursor", "maxScan modifiers snapshot", find, nil),
		cursorRow(operations.Collection, "findOne", "batchSize cursorType limit maxAwaitTimeMS maxScan modifiers oplogReplay snapshot timeoutMode", findOne, first),
		cursorRow(operations.Collection, "aggregate", "", aggregate, documents),
		cursorRow(operations.Database, "aggregate", "", aggregate, documents),
		cursorRow(operations.Collection, "countDocuments", "", countDocuments, count),
		cursorRow(operations.Collection, "listSearchIndexes", "", listSearchIndexes, documents),
		cursorRow(operations.Database, "listCollectionNames", "maxAwaitTimeMS", listCollections, names),
		cursorRow(operations.Database, "listCollectionObjects", "maxAwaitTimeMS", listCollections, documents),
		cursorRow(operations.Database, "listCollections", "maxAwaitTimeMS", listCollections, documents),
		cursorRow(operations.Collection, "listIndexNames", "maxAwaitTimeMS", listIndexes, names),
		cursorRow(operations.Collection, "listIndexes", "maxAwaitTimeMS", listIndexes, documents),
		cursorRow(operations.Database, "createCommandCursor", "", cursorCommand, nil),
		cursorRow(operations.Database, "runCursorCommand", "", cursorCommand, documents),
		{operations.Client, "listDatabaseNames", "rawData", listDatabases},
		{operations.Client, "listDatabaseObjects", "rawData", listDatabases},
		{operations.Client, "listDatabases", "rawData", listDatabases},
		{operations.Database, "runCommand", "writeConcern", runCommand},
		{operations.Collection, "count", "", func(c *call) (any, *result.Error) {
			d := bson.D{{Key: "count", Value: c.coll}, {Key: "query", Value: c.document("filter")}}
			return c.runCount(c.options(d, "filter"))
		}},
		{operations.Collection, "estimatedDocumentCount", "", func(c *call) (any, *result.Error) {
			return c.runCount(c.options(bson.D{{Key: "count", Value: c.coll}}))
		}},
		{operations.Collection, "distinct", "", func(c *call) (any, *result.Error) {
			d := bson.D{{Key: "distinct", Value: c.coll}, {Key: "key", Value: c.Arg("fieldName")}, {Key: "query", Value: c.document("filter")}}
			return c.replyField(c.read("distinct", fixed(c.options(d, "fieldName", "filter"))), "values")
		}},
		{operations.Client, "createChangeStream", "", openStream},
		{operations.Collection, "createChangeStream", "", openStream},
		{operations.Database, "createChangeStream", "", openStream},
		{operations.Collection, "mapReduce", "bypassDocumentValidation comment rawData writeConcern", mapReduce},
	}
}

// cursorRow returns a row for an operation whose command opens a cursor. If documents is nil, the cursor becomes an
// entity; otherwise documents converts all its documents to the result.
func cursorRow(kind operations.Kind, name, lacks string, prepare func(*call) (*command, cursorOptions, *result.Error),
	documents func([]bson.Raw) any) row {
	return row{kind, name, lacks, func(c *call) (any, *result.Error) {
		cmd, o, err := prepare(c)
		if err != nil {
			return nil, err
		}
		if documents == nil {
			k, err := c.open(cmd, o)
			if err != nil {
				return nil, err
			}
			return enginekit.Nothing{}, c.Save(c.ctx, operations.Cursor, k)
		}
		docs, err := c.documentsOf(cmd, o)
		if err != nil {
			return nil, err
		}
		return documents(docs), nil
	}}
}

// documents is for operations whose result is all documents.
func documents(docs []bson.Raw) any { return docs }

// cursorOptions reads the cursor arguments. For tailable cursors, timeoutMS applies to each iteration.
func (c *call) cursorOptions() (cursorOptions, *result.Error) {
	o := cursorOptions{batchSize: c.Number("batchSize"), comment: c.Arg("comment")}
	switch kind := strings.ToLower(c.Text("cursorType")); kind {
	case "", "nontailable":
	case "tailable", "tailableawait":
		o.tailable, o.await = true, kind == "tailableawait"
	default:
		return o, argument("unknown cursorType " + kind)
	}
	o.lifetime = !o.tailable
	mode := c.Text("timeoutMode")
	switch {
	case mode == "":
	case !c.timeout:
		return o, argument("timeoutMode requires timeoutMS")
	case mode == "iteration":
		o.lifetime = false
	case mode != "cursorLifetime":
		return o, argument("unknown timeoutMode " + mode)
	case o.tailable:
		return o, argument("a tailable cursor cannot have timeoutMode cursorLifetime")
	}
	return o, nil
}

// find returns the command of find and createFindCursor.
func find(c *call) (*command, cursorOptions, *result.Error) {
	limit, size := c.Number("limit"), c.Number("batchSize")
	o, err := c.cursorOptions()
	if err != nil {
		return nil, o, err
	}
	o.limit = limit
	if o.await {
		o.maxTime = c.Number("maxAwaitTimeMS")
		if err := c.checkMaxAwait(o.maxTime); err != nil {
			return nil, o, err
		}
	}
	d := bson.D{{Key: "find", Value: c.coll}, {Key: "filter", Value: c.document("filter")}}
	d = c.options(d, "filter", "limit")
	if c.Has("limit") {
		d = append(d, bson.E{Key: "limit", Value: max(limit, -limit)})
	}
	single := limit < 0
	if c.Has("batchSize") {
		first := max(size, -size)
		if first == limit { // so that the server closes the cursor (CRUD, "find")
			first++
		}
		d = append(d, bson.E{Key: "batchSize", Value: int32(first)})
		single = single || size < 0
	}
	for _, flag := range (bson.D{{Key: "singleBatch", Value: single}, {Key: "tailable", Value: o.tailable}, {Key: "awaitData", Value: o.await}}) {
		if flag.Value == true {
			d = append(d, flag)
		}
	}
	cmd := c.read("find", fixed(d))
	cmd.noMaxTime = !o.lifetime && !o.await
	return cmd, o, nil
}

func findOne(c *call) (*command, cursorOptions, *result.Error) {
	d := bson.D{{Key: "find", Value: c.coll}, {Key: "filter", Value: c.document("filter")},
		{Key: "limit", Value: int32(1)}, {Key: "singleBatch", Value: true}}
	return c.read("find", fixed(c.options(d, "filter"))), cursorOptions{}, nil
}

// checkMaxAwait returns an error if maxAwaitTimeMS is not less than timeoutMS.
func (c *call) checkMaxAwait(maxAwait int64) *result.Error {
	if c.timeout && c.limit != nil && *c.limit > 0 && maxAwait >= c.limit.Milliseconds() {
		return argument("maxAwaitTimeMS must be less than timeoutMS")
	}
	return nil
}

func aggregate(c *call) (*command, cursorOptions, *result.Error) {
	pipeline, err := c.Documents("pipeline")
	if err != nil {
		return nil, cursorOptions{}, err
	}
	writes := false
	if len(pipeline) > 0 {
		if first, err := pipeline[len(pipeline)-1].IndexErr(0); err == nil {
			writes = first.Key() == "$out" || first.Key() == "$merge"
		}
	}
	o, err := c.cursorOptions()
	if err != nil {
		return nil, o, err
	}
	o.maxTime = c.Number("maxAwaitTimeMS")
	if err := c.checkMaxAwait(o.maxTime); err != nil {
		return nil, o, err
	}
	if writes && !o.lifetime {
		return nil, o, argument("an aggregate with a write stage cannot have timeoutMode iteration")
	}
	batch := c.batchOption()
	if writes {
		batch = bson.D{}
	}
	d := bson.D{{Key: "aggregate", Value: c.aggregateValue()}, {Key: "pipeline", Value: c.Arg("pipeline")}, {Key: "cursor", Value: batch}}
	cmd := c.read("aggregate", fixed(c.options(d, "pipeline")))
	cmd.noMaxTime = !o.lifetime
	if writes {
		cmd.op = retry.Lookup(opWritingAggregate)
		cmd.writeConcern = c.scope.writeConcern
	}
	return cmd, o, nil
}

// aggregateValue returns the value of the field aggregate: a collection, or 1.
func (c *call) aggregateValue() any {
	if c.Kind == operations.Collection {
		return c.coll
	}
	return int32(1)
}

func (c *call) runCount(d bson.D) (any, *result.Error) {
	r, err := c.run(c.read("count", fixed(d)))
	if err != nil {
		return nil, err
	}
	n, ok := enginekit.Integer(r.doc.Lookup("n"))
	if !ok {
		return nil, r.lacks("n")
	}
	return n, nil
}

// replyField runs a command and returns a field of the reply.
func (c *call) replyField(cmd *command, field string) (any, *result.Error) {
	r, err := c.run(cmd)
	if err != nil {
		return nil, err
	}
	return r.doc.Lookup(field), nil
}

func countDocuments(c *call) (*command, cursorOptions, *result.Error) {
	pipeline := bson.A{bson.D{{Key: "$match", Value: c.document("filter")}}}
	for _, name := range []string{"skip", "limit"} {
		if c.Has(name) {
			pipeline = append(pipeline, bson.D{{Key: "$" + name, Value: c.Arg(name)}})
		}
	}
	pipeline = append(pipeline, bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: int32(1)},
		{Key: "n", Value: bson.D{{Key: "$sum", Value: int32(1)}}}}}})
	d := bson.D{{Key: "aggregate", Value: c.coll}, {Key: "pipeline", Value: pipeline}, {Key: "cursor", Value: bson.D{}}}
	return c.read("aggregate", fixed(c.options(d, "filter", "skip", "limit"))), cursorOptions{lifetime: true}, nil
}

// mapReduce may write its result to a collection.
func mapReduce(c *call) (any, *result.Error) {
	var out any = bson.D{{Key: "inline", Value: int32(1)}}
	inline := true
	if c.Has("out") {
		out = c.Arg("out")
		_, inline = lookupIn(c.Arg("out"), "inline")
	}
	cmd := c.read("mapReduce", fixed(c.options(bson.D{{Key: "mapReduce", Value: c.coll}, {Key: "out", Value: out}}, "out")))
	cmd.write, cmd.primary = !inline, !inline
	results, err := c.replyField(cmd, "results")
	if err == nil && !inline {
		return enginekit.Nothing{}, nil
	}
	return results, err
}

func lookupIn(v bson.RawValue, key string) (bson.RawValue, bool) {
	doc, _ := v.DocumentOK()
	found, err := doc.LookupErr(key)
	return found, err == nil
}

// enumerate returns a command that enumerates databases, collections or indexes. It runs on the primary, or on the
// server of a direct connection.
func (c *call) enumerate(name string, d bson.D) *command {
	cmd := c.read(name, fixed(d))
	cmd.takesReadConcern, cmd.readConcern = false, nil
	cmd.preference = selection.Preference{Hedge: cmd.preference.Hedge}
	return cmd
}

// withNameOnly appends the options to a command, with nameOnly true for operations that return names.
func (c *call) withNameOnly(d bson.D) bson.D {
	if strings.HasSuffix(c.Row.name, "Names") {
		return append(c.options(d, "nameOnly"), bson.E{Key: "nameOnly", Value: true})
	}
	return c.options(d)
}

func listDatabases(c *call) (any, *result.Error) {
	r, err := c.do(c.enumerate("listDatabases", c.withNameOnly(bson.D{{Key: "listDatabases", Value: int32(1)}})))
	if err != nil {
		return nil, err
	}
	if c.Row.name != "listDatabaseNames" {
		return r.doc.Lookup("databases"), nil
	}
	docs, err := enginekit.NewArguments(r.doc).Documents("databases")
	if err != nil {
		return nil, r.lacks("databases")
	}
	return fieldOf(docs, "name"), nil
}

func listCollections(c *call) (*command, cursorOptions, *result.Error) {
	return c.listing(c.withNameOnly(bson.D{{Key: "listCollections", Value: int32(1)}}))
}

func listIndexes(c *call) (*command, cursorOptions, *result.Error) {
	return c.listing(c.options(bson.D{{Key: "listIndexes", Value: c.coll}}))
}

// listing returns a command that enumerates with a cursor.
func (c *call) listing(d bson.D) (*command, cursorOptions, *result.Error) {
	o, err := c.cursorOptions()
	d = slices.Insert(d, 1, bson.E{Key: "cursor", Value: c.batchOption()})
	cmd := c.enumerate(d[0].Key, d)
	cmd.noMaxTime = !o.lifetime
	return cmd, o, err
}

func (c *call) batchOption() bson.D {
	if !c.Has("batchSize") {
		return bson.D{}
	}
	return bson.D{{Key: "batchSize", Value: int32(c.Number("batchSize"))}}
}

func fieldOf(docs []bson.Raw, field string) bson.A {
	out := bson.A{}
	for _, d := range docs {
		out = append(out, d.Lookup(field))
	}
	return out
}

func listSearchIndexes(c *call) (*command, cursorOptions, *result.Error) {
	stage, cursor, rest := bson.D{}, bson.D{}, bson.D{}
	if c.Has("name") {
		stage = append(stage, bson.E{Key: "name", Value: c.Arg("name")})
	}
	doc, _ := c.Arg("aggregationOptions").DocumentOK()
	elements, _ := doc.Elements()
	for _, e := range elements {
		to := &rest
		if e.Key() == "batchSize" {
			to = &cursor
		}
		*to = append(*to, bson.E{Key: e.Key(), Value: e.Value()})
	}
	d := bson.D{{Key: "aggregate", Value: c.coll}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$listSearchIndexes", Value: stage}}}},
		{Key: "cursor", Value: cursor}}
	cmd := c.read("aggregate", fixed(append(d, rest...)))
	cmd.takesReadConcern = false
	return cmd, cursorOptions{lifetime: true}, nil
}

// generic returns the command argument with the field commandName first.
func (c *call) generic() (*command, *result.Error) {
	doc, ok := c.Arg("command").DocumentOK()
	if !ok {
		return nil, argument("command is not a document")
	}
	var d bson.D
	if err := bson.Unmarshal(doc, &d); err != nil {
		return nil, argument("command: " + err.Error())
	}
	name := c.Text("commandName")
	if name == "" && len(d) > 0 {
		name = d[0].Key
	}
	i := slices.IndexFunc(d, func(e bson.E) bool { return e.Key == name })
	if i < 0 {
		return nil, argument("command has no field " + name)
	}
	cmd := c.enumerate(name, append(bson.D{d[i]}, slices.Delete(slices.Clone(d), i, i+1)...))
	cmd.op = retry.Lookup("runCommand")
	return cmd, nil
}

func cursorCommand(c *call) (*command, cursorOptions, *result.Error) {
	cmd, err := c.generic()
	if err != nil {
		return nil, cursorOptions{}, err
	}
	o, err := c.cursorOptions()
	o.maxTime = c.Number("maxTimeMS")
	cmd.noMaxTime = !o.lifetime
	return cmd, o, err
}

func runCommand(c *call) (any, *result.Error) {
	cmd, err := c.generic()
	if err != nil {
		return nil, err
	}
	cmd.takesReadConcern = c.Has("readConcern")
	r, err := c.run(cmd)
	if err != nil {
		return nil, err
	}
	return r.doc, nil
}
