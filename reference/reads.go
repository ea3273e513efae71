package reference

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
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
		cursorRow(entities.Collection, "find", "maxScan modifiers snapshot", find, documents),
		cursorRow(entities.Collection, "createFindCursor", "maxScan modifiers snapshot", find, nil),
		cursorRow(entities.Collection, "findOne",
			"batchSize cursorType limit maxAwaitTimeMS maxScan modifiers oplogReplay snapshot timeoutMode", findOne, first),
		cursorRow(entities.Collection, "aggregate", "", aggregate, documents),
		cursorRow(entities.Database, "aggregate", "", aggregate, documents),
		cursorRow(entities.Collection, "countDocuments", "", countDocuments, count),
		cursorRow(entities.Collection, "listSearchIndexes", "", listSearchIndexes, documents),
		cursorRow(entities.Database, "listCollectionNames", "maxAwaitTimeMS", listCollections, names),
		cursorRow(entities.Database, "listCollectionObjects", "maxAwaitTimeMS", listCollections, documents),
		cursorRow(entities.Database, "listCollections", "maxAwaitTimeMS", listCollections, documents),
		cursorRow(entities.Collection, "listIndexNames", "maxAwaitTimeMS", listIndexes, names),
		cursorRow(entities.Collection, "listIndexes", "maxAwaitTimeMS", listIndexes, documents),
		cursorRow(entities.Database, "createCommandCursor", "", cursorCommand, nil),
		cursorRow(entities.Database, "runCursorCommand", "", cursorCommand, documents),
		{entities.Client, "listDatabaseNames", "rawData", listDatabases},
		{entities.Client, "listDatabaseObjects", "rawData", listDatabases},
		{entities.Client, "listDatabases", "rawData", listDatabases},
		{entities.Database, "runCommand", "writeConcern", runCommand},
		{entities.Collection, "count", "", func(c *call) (any, *result.Error) {
			return c.runCount(c.options(document("count", c.coll, "query", c.filter()), "filter"))
		}},
		{entities.Collection, "estimatedDocumentCount", "", func(c *call) (any, *result.Error) {
			return c.runCount(c.options(document("count", c.coll)))
		}},
		{entities.Collection, "distinct", "", func(c *call) (any, *result.Error) {
			d := document("distinct", c.coll, "key", c.Arg("fieldName"), "query", c.filter())
			return c.replyField(c.read(c.options(d, "fieldName", "filter")), "values")
		}},
		{entities.Client, "createChangeStream", "", openStream},
		{entities.Collection, "createChangeStream", "", openStream},
		{entities.Database, "createChangeStream", "", openStream},
		{entities.Collection, "mapReduce", "bypassDocumentValidation comment rawData writeConcern", mapReduce},
	}
}

// cursorRow returns a row for an operation whose command opens a cursor. If documents is nil, the cursor becomes an
// entity; otherwise documents converts all its documents to the result.
func cursorRow(kind entities.Kind, name, lacks string, prepare func(*call) (*command, *result.Error),
	documents func([]bson.Raw) any) row {
	return row{kind, name, lacks, func(c *call) (any, *result.Error) {
		if err := c.readCursorOptions(); err != nil {
			return nil, err
		}
		cmd, err := prepare(c)
		if err != nil {
			return nil, err
		}
		cmd.noMaxTime = !c.cursor.lifetime && !(c.cursor.await && cmd.op.Name == "find")
		if documents == nil {
			k, err := c.open(cmd, c.cursor)
			if err != nil {
				return nil, err
			}
			return enginekit.Nothing{}, c.Save(c.ctx, entities.Cursor, k)
		}
		docs, err := c.documentsOf(cmd, c.cursor)
		return documents(docs), err
	}}
}

// documents is for operations whose result is all documents.
func documents(docs []bson.Raw) any { return docs }

// readCursorOptions reads the cursor arguments. For tailable cursors, timeoutMS applies to each iteration.
func (c *call) readCursorOptions() *result.Error {
	o := cursorOptions{batchSize: c.Number("batchSize"), limit: c.Number("limit"), comment: c.Arg("comment")}
	switch kind := strings.ToLower(c.Text("cursorType")); kind {
	case "", "nontailable":
	case "tailable", "tailableawait":
		o.tailable, o.await = true, kind == "tailableawait"
	default:
		return argument("unknown cursorType " + kind)
	}
	o.lifetime = !o.tailable
	switch mode := c.Text("timeoutMode"); {
	case mode == "":
	case !c.timeout:
		return argument("timeoutMode requires timeoutMS")
	case mode == "iteration":
		o.lifetime = false
	case mode != "cursorLifetime":
		return argument("unknown timeoutMode " + mode)
	case o.tailable:
		return argument("a tailable cursor cannot have timeoutMode cursorLifetime")
	}
	if o.await || c.Row.name == "aggregate" {
		o.maxTime = c.Number("maxAwaitTimeMS")
	}
	c.cursor = o
	return c.checkMaxAwait(o.maxTime)
}

// find returns the command of find and createFindCursor.
func find(c *call) (*command, *result.Error) {
	return c.read(c.findIn(c.coll)), nil
}

// findIn returns the find command for a collection (Find, getMore and killCursors Commands, "Mapping OP_QUERY behavior
// to the find command limit and batchSize fields"; CRUD, "Setting limit and batchSize options for find commands").
func (c *call) findIn(collection string) bson.D {
	limit, size := c.Number("limit"), c.Number("batchSize")
	single := limit < 0 || size < 0
	limit, size = max(limit, -limit), max(size, -size)
	switch {
	case single && limit != 0:
		size = limit
	case !single && limit == size && limit != 0: // so that the server closes the cursor
		size++
	}
	d := c.options(document("find", collection, "filter", c.filter()), "filter", "limit")
	d = addIf(d, limit != 0, "limit", limit)
	d = addIf(d, size != 0, "batchSize", int32(size))
	d = addIf(d, single, "singleBatch", true)
	d = addIf(d, c.cursor.tailable, "tailable", true)
	return addIf(d, c.cursor.await, "awaitData", true)
}

func findOne(c *call) (*command, *result.Error) {
	d := document("find", c.coll, "filter", c.filter(), "limit", int32(1), "singleBatch", true)
	return c.read(c.options(d, "filter")), nil
}

// checkMaxAwait returns an error if maxAwaitTimeMS is not less than timeoutMS.
func (c *call) checkMaxAwait(maxAwait int64) *result.Error {
	if c.timeout && c.limit != nil && *c.limit > 0 && maxAwait >= c.limit.Milliseconds() {
		return argument("maxAwaitTimeMS must be less than timeoutMS")
	}
	return nil
}

func aggregate(c *call) (*command, *result.Error) {
	pipeline, err := c.Documents("pipeline")
	if err != nil {
		return nil, err
	}
	last := ""
	if n := len(pipeline); n > 0 {
		if e, err := pipeline[n-1].IndexErr(0); err == nil {
			last = e.Key()
		}
	}
	batch, writes := c.batchOption(), last == "$out" || last == "$merge"
	if writes {
		batch = bson.D{}
	}
	if writes && !c.cursor.lifetime {
		return nil, argument("an aggregate with a write stage cannot have timeoutMode iteration")
	}
	d := document("aggregate", c.aggregateValue(), "pipeline", c.Arg("pipeline"), "cursor", batch)
	cmd := c.read(c.options(d, "pipeline"))
	if writes {
		cmd.op = retry.Lookup(opWritingAggregate)
		cmd.writeConcern = c.scope.writeConcern
	}
	return cmd, nil
}

// aggregateValue returns the value of the field aggregate: a collection, or 1.
func (c *call) aggregateValue() any {
	if c.Kind == entities.Collection {
		return c.coll
	}
	return int32(1)
}

func (c *call) runCount(d bson.D) (any, *result.Error) {
	r, err := c.run(c.read(d))
	if err != nil {
		return nil, err
	}
	n, ok := enginekit.Integer(r.doc.Lookup("n"))
	if !ok {
		err = r.lacks("n")
	}
	return n, err
}

// replyField runs a command and returns a field of the reply.
func (c *call) replyField(cmd *command, field string) (any, *result.Error) {
	r, err := c.run(cmd)
	return r.doc.Lookup(field), err
}

func countDocuments(c *call) (*command, *result.Error) {
	pipeline := bson.A{document("$match", c.filter())}
	for _, name := range []string{"skip", "limit"} {
		if c.Number(name) != 0 {
			pipeline = append(pipeline, document("$"+name, c.Arg(name)))
		}
	}
	pipeline = append(pipeline, document("$group", document("_id", int32(1), "n", document("$sum", int32(1)))))
	d := document("aggregate", c.coll, "pipeline", pipeline, "cursor", bson.D{})
	return c.read(c.options(d, "filter", "skip", "limit")), nil
}

// mapReduce may write its result to a collection. Then it is a write, and has a write concern instead of a read concern
// (Read and Write Concern, "Other commands that write").
func mapReduce(c *call) (any, *result.Error) {
	var out any = document("inline", int32(1))
	inline := true
	if c.Has("out") {
		_, err := c.Given.LookupErr("out", "inline")
		out, inline = c.Arg("out"), err == nil
	}
	body := c.options(document("mapReduce", c.coll, "out", out), "out")
	cmd := c.read(body)
	if !inline {
		cmd = c.writing("mapReduce into a collection", body)
		cmd.primary = true
	}
	results, err := c.replyField(cmd, "results")
	if err == nil && !inline {
		return enginekit.Nothing{}, nil
	}
	return results, err
}

// enumerate returns a command that enumerates databases, collections or indexes. It runs on the primary, or on the
// server of a direct connection.
func (c *call) enumerate(d bson.D) *command {
	cmd := c.read(d)
	cmd.takesReadConcern, cmd.readConcern = false, nil
	cmd.preference = selection.Preference{Hedge: cmd.preference.Hedge}
	return cmd
}

// withNameOnly appends the options to a command, with nameOnly true for operations that need only names. The server
// applies nameOnly of listCollections before the filter, so a filter on other keys excludes it (Enumerating
// Collections, "Getting Collection Names"; "Returning a List of Collection Objects").
func (c *call) withNameOnly(d bson.D) bson.D {
	if !strings.HasSuffix(c.Row.name, "Names") && !strings.HasSuffix(c.Row.name, "Objects") {
		return c.options(d)
	}
	filter, _ := c.Arg("filter").DocumentOK()
	elements, _ := filter.Elements()
	other := slices.ContainsFunc(elements, func(e bson.RawElement) bool { return e.Key() != "name" })
	return addIf(c.options(d, "nameOnly"), !other || d[0].Key != "listCollections", "nameOnly", true)
}

func listDatabases(c *call) (any, *result.Error) {
	r, err := c.run(c.enumerate(c.withNameOnly(document("listDatabases", int32(1)))))
	if err != nil || c.Row.name != "listDatabaseNames" {
		return r.doc.Lookup("databases"), err
	}
	docs, err := enginekit.NewArguments(r.doc).Documents("databases")
	if err != nil {
		err = r.lacks("databases")
	}
	return fieldOf(docs, "name"), err
}

func listCollections(c *call) (*command, *result.Error) {
	return c.enumerate(c.withNameOnly(document("listCollections", int32(1), "cursor", c.batchOption()))), nil
}

func listIndexes(c *call) (*command, *result.Error) {
	return c.enumerate(c.options(document("listIndexes", c.coll, "cursor", c.batchOption()))), nil
}

func (c *call) batchOption() bson.D {
	return addIf(bson.D{}, c.Has("batchSize"), "batchSize", int32(c.Number("batchSize")))
}

func fieldOf(docs []bson.Raw, field string) bson.A {
	out := bson.A{}
	for _, d := range docs {
		out = append(out, d.Lookup(field))
	}
	return out
}

func listSearchIndexes(c *call) (*command, *result.Error) {
	options, _ := c.Arg("aggregationOptions").DocumentOK()
	elements, _ := options.Elements()
	cursor, rest := bson.D{}, bson.D{}
	for _, e := range elements {
		size := e.Key() == "batchSize"
		cursor, rest = addIf(cursor, size, e.Key(), e.Value()), addIf(rest, !size, e.Key(), e.Value())
	}
	stage := document("$listSearchIndexes", c.copyArgs(bson.D{}, "name"))
	cmd := c.read(append(document("aggregate", c.coll, "pipeline", bson.A{stage}, "cursor", cursor), rest...))
	cmd.takesReadConcern = false
	return cmd, nil
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
	cmd := c.enumerate(append(bson.D{d[i]}, slices.Delete(slices.Clone(d), i, i+1)...))
	cmd.op = retry.Lookup("runCommand")
	return cmd, nil
}

func cursorCommand(c *call) (*command, *result.Error) {
	c.cursor.maxTime = c.Number("maxTimeMS")
	return c.generic()
}

func runCommand(c *call) (any, *result.Error) {
	cmd, err := c.generic()
	if err != nil {
		return nil, err
	}
	r, err := c.run(cmd)
	return r.doc, err
}
