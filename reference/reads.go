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

// findFields are the arguments of find that the command takes as they are.
func findFields() []string {
	return []string{"sort", "projection", "hint", "skip", "comment", "maxTimeMS", "max", "min", "returnKey",
		"showRecordId", "noCursorTimeout", "allowPartialResults", "collation", "allowDiskUse", "let", "rawData"}
}

func findArgs() []string {
	return common(append(findFields(), "filter", "limit", "batchSize", "cursorType", "maxAwaitTimeMS",
		"timeoutMode", "readConcern", "readPreference", "oplogReplay")...)
}

func findRows() []row {
	return []row{
		{operations.Collection, "find", findArgs(), func(c *call) (any, *result.Error) {
			r, o, err := c.find()
			if err != nil {
				return nil, err
			}
			return result2(c.iterate(r, o))
		}},
		{operations.Collection, "createFindCursor", findArgs(), func(c *call) (any, *result.Error) {
			r, o, err := c.find()
			if err != nil {
				return nil, err
			}
			k, err := c.openCursor(r, o)
			if err != nil {
				return nil, err
			}
			return c.keep(k)
		}},
		{operations.Collection, "findOne", common(append(findFields(), "filter", "readConcern", "readPreference")...),
			func(c *call) (any, *result.Error) {
				cmd := c.read("find", func(target) (bson.D, error) {
					d := bson.D{{Key: "find", Value: c.coll}, {Key: "filter", Value: c.document("filter")}}
					return append(c.copyArgs(d, findFields()...),
						bson.E{Key: "limit", Value: int32(1)}, bson.E{Key: "singleBatch", Value: true}), nil
				})
				docs, err := c.documentsOf(cmd, cursorOptions{})
				if err != nil || len(docs) == 0 {
					return nil, err
				}
				return docs[0], nil
			}},
	}
}

// result2 makes an untyped result of documents.
func result2(docs []bson.Raw, err *result.Error) (any, *result.Error) {
	if err != nil {
		return nil, err
	}
	return docs, nil
}

// find sends the command and gives the options of the cursor.
func (c *call) find() (reply, cursorOptions, *result.Error) {
	limit, size := c.Number("limit"), c.Number("batchSize")
	o := cursorOptions{batchSize: size, limit: limit, comment: c.Arg("comment"), lifetime: true}
	switch kind := c.Text("cursorType"); strings.ToLower(kind) {
	case "", "nontailable":
	case "tailable":
		o.tailable = true
	case "tailableawait":
		o.tailable, o.await = true, true
	default:
		return reply{}, o, argument("there is no cursorType " + kind)
	}
	if err := c.timeoutMode(&o); err != nil {
		return reply{}, o, err
	}
	if c.Has("maxAwaitTimeMS") && o.await {
		o.maxTime = c.Number("maxAwaitTimeMS")
	}
	if o.await && c.outlasted(o.maxTime) {
		return reply{}, o, errOutlasts()
	}
	cmd := c.read("find", func(target) (bson.D, error) {
		d := bson.D{{Key: "find", Value: c.coll}, {Key: "filter", Value: c.document("filter")}}
		d = c.copyArgs(d, findFields()...)
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
		if single {
			d = append(d, bson.E{Key: "singleBatch", Value: true})
		}
		if c.Has("oplogReplay") {
			d = append(d, bson.E{Key: "oplogReplay", Value: c.Arg("oplogReplay")})
		}
		if o.tailable {
			d = append(d, bson.E{Key: "tailable", Value: true})
		}
		if o.await {
			d = append(d, bson.E{Key: "awaitData", Value: true})
		}
		return d, nil
	})
	cmd.noMaxTime = !o.lifetime && !o.await
	if err := c.override(cmd); err != nil {
		return reply{}, o, err
	}
	cmd.pin = true
	r, err := c.do(cmd)
	return r, o, err
}

// outlasted reports whether a maxAwaitTimeMS is not less than timeoutMS.
func (c *call) outlasted(maxAwait int64) bool {
	return c.timeout && c.limit != nil && *c.limit > 0 && maxAwait >= c.limit.Milliseconds()
}

func errOutlasts() *result.Error { return argument("maxAwaitTimeMS must be less than timeoutMS") }

// timeoutMode reads the argument; tailable cursors time each iteration.
func (c *call) timeoutMode(o *cursorOptions) *result.Error {
	o.lifetime = !o.tailable
	mode := c.Text("timeoutMode")
	if mode != "" && !c.timeout {
		return argument("timeoutMode needs timeoutMS")
	}
	switch mode {
	case "":
	case "iteration":
		o.lifetime = false
	case "cursorLifetime":
		if o.tailable {
			return argument("a tailable cursor cannot have timeoutMode cursorLifetime")
		}
		o.lifetime = true
	default:
		return argument("there is no timeoutMode " + mode)
	}
	return nil
}

// aggregateFields are the arguments of aggregate that the command takes as
// they are.
func aggregateFields() []string {
	return []string{"allowDiskUse", "maxTimeMS", "bypassDocumentValidation", "collation", "comment", "hint", "let", "rawData"}
}

func aggregateRows() []row {
	args := common(append(aggregateFields(), "pipeline", "batchSize", "maxAwaitTimeMS", "timeoutMode",
		"readConcern", "readPreference", "writeConcern")...)
	run := func(c *call) (any, *result.Error) {
		var on any = c.coll
		if c.kind == operations.Database {
			on = int32(1)
		}
		return c.aggregate(on)
	}
	return []row{
		{operations.Collection, "aggregate", args, run},
		{operations.Database, "aggregate", args, run},
	}
}

// aggregate runs a pipeline and gives all its documents.
func (c *call) aggregate(on any) (any, *result.Error) {
	pipeline, err := c.documents("pipeline")
	if err != nil {
		return nil, err
	}
	writes := false
	if len(pipeline) > 0 {
		if first, err := pipeline[len(pipeline)-1].IndexErr(0); err == nil {
			writes = retry.WriteStage(first.Key())
		}
	}
	o := cursorOptions{batchSize: c.Number("batchSize"), comment: c.Arg("comment"), lifetime: true,
		maxTime: c.Number("maxAwaitTimeMS")}
	if err := c.timeoutMode(&o); err != nil {
		return nil, err
	}
	if c.outlasted(o.maxTime) {
		return nil, errOutlasts()
	}
	if writes && !o.lifetime {
		return nil, argument("an aggregate with a write stage cannot have timeoutMode iteration")
	}
	cmd := c.read("aggregate", func(target) (bson.D, error) {
		options := bson.D{}
		if c.Has("batchSize") && !writes {
			options = append(options, bson.E{Key: "batchSize", Value: int32(o.batchSize)})
		}
		d := bson.D{{Key: "aggregate", Value: on}, {Key: "pipeline", Value: c.Arg("pipeline")}, {Key: "cursor", Value: options}}
		return c.copyArgs(d, aggregateFields()...), nil
	})
	cmd.noMaxTime = !o.lifetime
	if writes {
		cmd.op = retry.Lookup(opWritingAggregate)
		cmd.writeConcern = c.scope.writeConcern
	}
	return result2(c.documentsOf(cmd, o))
}

func countRows() []row {
	return []row{
		{operations.Collection, "count", common("filter", "skip", "limit", "maxTimeMS", "hint", "collation", "comment",
			"rawData", "readConcern", "readPreference"), func(c *call) (any, *result.Error) {
			d := bson.D{{Key: "count", Value: c.coll}, {Key: "query", Value: c.document("filter")}}
			return c.counted(c.copyArgs(d, "skip", "limit", "maxTimeMS", "hint", "collation", "comment", "rawData"))
		}},
		{operations.Collection, "estimatedDocumentCount", common("maxTimeMS", "comment", "rawData", "readConcern", "readPreference"),
			func(c *call) (any, *result.Error) {
				return c.counted(c.copyArgs(bson.D{{Key: "count", Value: c.coll}}, "maxTimeMS", "comment", "rawData"))
			}},
		{operations.Collection, "countDocuments", common("filter", "skip", "limit", "maxTimeMS", "hint", "collation", "comment",
			"rawData", "readConcern", "readPreference"), countDocuments},
		{operations.Collection, "distinct", common("fieldName", "filter", "maxTimeMS", "collation", "comment", "hint", "rawData",
			"readConcern", "readPreference"), func(c *call) (any, *result.Error) {
			d := bson.D{{Key: "distinct", Value: c.coll}, {Key: "key", Value: c.Arg("fieldName")}, {Key: "query", Value: c.document("filter")}}
			cmd := c.read("distinct", fixed(c.copyArgs(d, "maxTimeMS", "collation", "comment", "hint", "rawData")))
			r, err := c.run(cmd)
			if err != nil {
				return nil, err
			}
			return r.doc.Lookup("values"), nil
		}},
		{operations.Collection, "mapReduce", common("map", "reduce", "out", "query", "sort", "limit", "finalize", "scope",
			"jsMode", "verbose", "maxTimeMS", "collation", "readConcern", "readPreference"), mapReduce},
	}
}

func (c *call) counted(d bson.D) (any, *result.Error) {
	cmd := c.read("count", fixed(d))
	r, err := c.run(cmd)
	if err != nil {
		return nil, err
	}
	n, ok := enginekit.Integer(r.doc.Lookup("n"))
	if !ok {
		return nil, r.lacks("n")
	}
	return n, nil
}

func countDocuments(c *call) (any, *result.Error) {
	pipeline := bson.A{bson.D{{Key: "$match", Value: c.document("filter")}}}
	if c.Has("skip") {
		pipeline = append(pipeline, bson.D{{Key: "$skip", Value: c.Arg("skip")}})
	}
	if c.Has("limit") {
		pipeline = append(pipeline, bson.D{{Key: "$limit", Value: c.Arg("limit")}})
	}
	pipeline = append(pipeline, bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: int32(1)},
		{Key: "n", Value: bson.D{{Key: "$sum", Value: int32(1)}}}}}})
	d := bson.D{{Key: "aggregate", Value: c.coll}, {Key: "pipeline", Value: pipeline}, {Key: "cursor", Value: bson.D{}}}
	cmd := c.read("aggregate", fixed(c.copyArgs(d, "maxTimeMS", "hint", "collation", "comment", "rawData")))
	docs, err := c.documentsOf(cmd, cursorOptions{lifetime: true})
	if err != nil || len(docs) == 0 {
		return int64(0), err
	}
	n, _ := enginekit.Integer(docs[0].Lookup("n"))
	return n, nil
}

// mapReduce is never retried, and may write its result.
func mapReduce(c *call) (any, *result.Error) {
	d := bson.D{{Key: "mapReduce", Value: c.coll}, {Key: "map", Value: c.Arg("map")}, {Key: "reduce", Value: c.Arg("reduce")}}
	out, inline := c.Arg("out"), true
	if c.Has("out") {
		_, inline = lookupIn(out, "inline")
		d = append(d, bson.E{Key: "out", Value: out})
	} else {
		d = append(d, bson.E{Key: "out", Value: bson.D{{Key: "inline", Value: int32(1)}}})
	}
	cmd := c.read("mapReduce", fixed(c.copyArgs(d, "query", "sort", "limit", "finalize", "scope", "jsMode", "verbose",
		"maxTimeMS", "collation")))
	cmd.write, cmd.primary = !inline, !inline
	r, err := c.run(cmd)
	if err != nil {
		return nil, err
	}
	if inline {
		return r.doc.Lookup("results"), nil
	}
	return enginekit.Nothing{}, nil
}

func lookupIn(v bson.RawValue, key string) (bson.RawValue, bool) {
	doc, ok := v.DocumentOK()
	if !ok {
		return bson.RawValue{}, false
	}
	found, err := doc.LookupErr(key)
	return found, err == nil
}

func listRows() []row {
	databases := func(names bool) func(*call) (any, *result.Error) {
		return func(c *call) (any, *result.Error) { return c.listDatabases(names) }
	}
	collections := func(names bool) func(*call) (any, *result.Error) {
		return func(c *call) (any, *result.Error) { return c.listCollections(names) }
	}
	indexes := func(names bool) func(*call) (any, *result.Error) {
		return func(c *call) (any, *result.Error) { return c.listIndexes(names) }
	}
	dbArgs := common("filter", "nameOnly", "authorizedDatabases", "comment", "maxTimeMS")
	collArgs := common("filter", "nameOnly", "authorizedCollections", "comment", "batchSize", "maxTimeMS", "timeoutMode", "rawData")
	indexArgs := common("batchSize", "comment", "maxTimeMS", "timeoutMode", "rawData")
	return []row{
		{operations.Client, "listDatabaseNames", dbArgs, databases(true)},
		{operations.Client, "listDatabaseObjects", dbArgs, databases(false)},
		{operations.Client, "listDatabases", dbArgs, databases(false)},
		{operations.Database, "listCollectionNames", collArgs, collections(true)},
		{operations.Database, "listCollectionObjects", collArgs, collections(false)},
		{operations.Database, "listCollections", collArgs, collections(false)},
		{operations.Collection, "listIndexNames", indexArgs, indexes(true)},
		{operations.Collection, "listIndexes", indexArgs, indexes(false)},
	}
}

// enumerate is the read of an enumeration. Where the specifications leave the
// server free it is the primary; a direct connection overrides that.
func (c *call) enumerate(name string, d bson.D) *command {
	cmd := c.read(name, fixed(d))
	cmd.takesReadConcern, cmd.readConcern = false, nil
	cmd.preference = selection.Preference{Hedge: cmd.preference.Hedge}
	cmd.pin = true
	return cmd
}

func (c *call) listDatabases(names bool) (any, *result.Error) {
	d := c.copyArgs(bson.D{{Key: "listDatabases", Value: int32(1)}}, "filter", "authorizedDatabases", "comment", "maxTimeMS")
	if names {
		d = append(d, bson.E{Key: "nameOnly", Value: true})
	} else {
		d = c.copyArgs(d, "nameOnly")
	}
	r, err := c.do(c.enumerate("listDatabases", d))
	if err != nil {
		return nil, err
	}
	if !names {
		return r.doc.Lookup("databases"), nil
	}
	array, ok := r.doc.Lookup("databases").ArrayOK()
	if !ok {
		return nil, r.lacks("databases")
	}
	values, bad := array.Values()
	if bad != nil {
		return nil, argument(bad.Error())
	}
	out := bson.A{}
	for _, v := range values {
		name, _ := lookupIn(v, "name")
		out = append(out, name)
	}
	return out, nil
}

func (c *call) listCollections(names bool) (any, *result.Error) {
	o := cursorOptions{batchSize: c.Number("batchSize"), comment: c.Arg("comment")}
	if err := c.timeoutMode(&o); err != nil {
		return nil, err
	}
	d := bson.D{{Key: "listCollections", Value: int32(1)}, {Key: "cursor", Value: c.batchOption()}}
	d = c.copyArgs(d, "filter", "authorizedCollections", "comment", "maxTimeMS", "rawData")
	if names {
		d = append(d, bson.E{Key: "nameOnly", Value: true})
	} else {
		d = c.copyArgs(d, "nameOnly")
	}
	cmd := c.enumerate("listCollections", d)
	cmd.noMaxTime = !o.lifetime
	docs, err := c.documentsOf(cmd, o)
	if err != nil || !names {
		return result2(docs, err)
	}
	return fieldOf(docs, "name"), nil
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

func (c *call) listIndexes(names bool) (any, *result.Error) {
	o := cursorOptions{batchSize: c.Number("batchSize"), comment: c.Arg("comment")}
	if err := c.timeoutMode(&o); err != nil {
		return nil, err
	}
	d := bson.D{{Key: "listIndexes", Value: c.coll}, {Key: "cursor", Value: c.batchOption()}}
	cmd := c.enumerate("listIndexes", c.copyArgs(d, "comment", "maxTimeMS", "rawData"))
	cmd.noMaxTime = !o.lifetime
	r, err := c.do(cmd)
	docs := []bson.Raw{}
	switch {
	case err != nil && err.Code == namespaceNotFound: // without a collection there are no indexes
	case err != nil:
		return nil, err
	default:
		if docs, err = c.iterate(r, o); err != nil {
			return nil, err
		}
	}
	if names {
		return fieldOf(docs, "name"), nil
	}
	return docs, nil
}

// generic puts the named key of a command first, whatever the order in
// which the suite was read.
func (c *call) generic() (bson.D, *result.Error) {
	doc, ok := c.Arg("command").DocumentOK()
	if !ok {
		return nil, argument("command is no document")
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
	first := d[i]
	return append(bson.D{first}, slices.Delete(d, i, i+1)...), nil
}

func commandRows() []row {
	generic := func(c *call) (*command, *result.Error) {
		d, err := c.generic()
		if err != nil {
			return nil, err
		}
		cmd := c.read(d[0].Key, fixed(d))
		cmd.op = retry.Lookup("runCommand")
		cmd.takesReadConcern, cmd.readConcern = false, nil
		cmd.preference = selection.Preference{Hedge: cmd.preference.Hedge}
		if err := c.override(cmd); err != nil {
			return nil, err
		}
		return cmd, nil
	}
	cursor := func(c *call) (*cursor, *result.Error) {
		cmd, err := generic(c)
		if err != nil {
			return nil, err
		}
		o := cursorOptions{batchSize: c.Number("batchSize"), maxTime: c.Number("maxTimeMS"), comment: c.Arg("comment")}
		switch strings.ToLower(c.Text("cursorType")) {
		case "tailable":
			o.tailable = true
		case "tailableawait":
			o.tailable, o.await = true, true
		}
		if err := c.timeoutMode(&o); err != nil {
			return nil, err
		}
		cmd.noMaxTime = !o.lifetime
		cmd.pin = true
		r, err := c.do(cmd)
		if err != nil {
			return nil, err
		}
		return c.openCursor(r, o)
	}
	cursorArgs := common("command", "commandName", "readPreference", "batchSize", "maxTimeMS", "comment", "cursorType", "timeoutMode")
	return []row{
		{operations.Database, "createCommandCursor", cursorArgs, func(c *call) (any, *result.Error) {
			k, err := cursor(c)
			if err != nil {
				return nil, err
			}
			return c.keep(k)
		}},
		{operations.Database, "runCommand", common("command", "commandName", "readPreference", "readConcern"),
			func(c *call) (any, *result.Error) {
				cmd, err := generic(c)
				if err != nil {
					return nil, err
				}
				cmd.takesReadConcern = c.Has("readConcern")
				r, err := c.do(cmd)
				if err != nil {
					return nil, err
				}
				return r.doc, nil
			}},
		{operations.Database, "runCursorCommand", cursorArgs, func(c *call) (any, *result.Error) {
			k, err := cursor(c)
			if err != nil {
				return nil, err
			}
			return result2(k.all(c.base, &c.trace))
		}},
	}
}
