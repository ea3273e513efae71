package commands

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// explained describes a command that explain accepts: the fields of the find that reads its documents, and the stage of
// the plan that stands for what it does with them.
type explained struct{ fields, stage string }

var explainable = map[string]explained{
	"find":          {fields: "filter sort projection skip limit hint collation let min max"},
	"count":         {fields: "query skip limit hint collation", stage: "COUNT"},
	"distinct":      {fields: "query collation"},
	"findAndModify": {fields: "query sort hint collation", stage: "UPDATE"},
	"update":        {fields: "q hint collation", stage: "UPDATE"},
	"delete":        {fields: "q hint collation", stage: "DELETE"},
	"mapReduce":     {fields: "query sort limit"},
	"aggregate":     {fields: "hint"},
}

// pick returns the fields with some names.
func pick(doc bson.D, names ...string) (out bson.D) {
	for _, e := range doc {
		if slices.Contains(names, e.Key) {
			out = append(out, e)
		}
	}
	return out
}

// reading returns the fields of the find that reads the documents of a command.
func (x *explanation) reading(a *args, row *Row) bson.D {
	doc := a.doc
	if row.Statements != "" {
		statements := a.array(row.Statements)
		a.Refuse(len(statements) != 1, fault.InvalidLength, "explained write batches must be of size 1")
		if a.Err != nil {
			return nil
		}
		doc = statements[0].(bson.D)
	}
	out := pick(doc, strings.Fields(explainable[row.Name].fields)...)
	for i, e := range out {
		if e.Key == "query" || e.Key == "q" {
			out[i].Key = "filter"
		}
	}
	one := row.Name == "findAndModify" || row.Name == "update" && !value.Truthy(value.Get(doc, "multi")) ||
		row.Name == "delete" && value.Truthy(value.Get(doc, "limit"))
	out = value.AddIf(out, one, "limit", int32(1))
	if row.Name == "aggregate" {
		x.rest = a.array("pipeline")
		out = append(out, x.pushDown()...)
	}
	return out
}

// pushDown moves the first stages of a pipeline into a find.
func (x *explanation) pushDown() bson.D {
	out, names := bson.D{}, map[string]string{"$match": "filter", "$sort": "sort", "$skip": "skip", "$limit": "limit"}
	for len(x.rest) > 0 {
		stage, _ := x.rest[0].(bson.D)
		if len(stage) == 0 || names[stage[0].Key] == "" || value.Get(out, names[stage[0].Key]) != nil {
			break
		}
		out, x.rest = value.Append(out, names[stage[0].Key], stage[0].Value), x.rest[1:]
	}
	return out
}

// explanation is the plan of a command, and what its execution would do. Nothing is written.
type explanation struct {
	s       *call
	command bson.D
	q       *findCommand
	above   string // the stage of the command itself; "" if it has none
	rest    bson.A // stages of a pipeline that the plan does not contain
	bounds  bson.D // of the scan of an index
	read    []bson.D

	progress
}

// progress is what an execution has read, counted and returned.
type progress struct {
	examined, keys, counted, returned, works int64
	eof                                      int32 // 1 after the execution
}

func explain(s *call, a *args) action {
	verbosity := cmp.Or(a.str("verbosity"), "allPlansExecution")
	x := newExplanation(s, a, a.document("explain"))
	return func() (bson.D, error) { return x.run(verbosity) }
}

// newExplanation checks and plans the explained command.
func newExplanation(s *call, a *args, command bson.D) *explanation {
	x := &explanation{s: s, command: command}
	if len(command) == 0 {
		a.Fail(fault.CommandNotFound, "Explain failed due to unknown command: ")
		return x
	}
	name := command[0].Key
	rows := s.d.Rows()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name || slices.Contains(r.Aliases, name) })
	a.Refuse(i < 0, fault.CommandNotFound, "Explain failed due to unknown command: %s", name)
	row := &rows[max(i, 0)]
	of, known := explainable[row.Name]
	a.Refuse(!known, fault.IllegalOperation, "Cannot explain cmd: %s", name)
	req := *s.req
	req.Row, req.Body = row, value.Encode(command)
	a.Note(CheckDocument(&req, row.Name, command))
	inner := &args{of: row.Name, doc: command, First: a.First}
	fields := x.reading(inner, row)
	if x.above = of.stage; inner.flag("remove") {
		x.above = "DELETE"
	}
	// sic
	a.Refuse(row.Name == "aggregate" && inner.has("writeConcern"), fault.FailedToParse,
		"Aggregation explain does not support the'writeConcern' option")
	x.q = newFind(s, &args{of: "find", doc: append(value.Doc("find", command[0].Value), fields...), First: a.First})
	return x
}

func (x *explanation) run(verbosity string) (bson.D, error) {
	if x.q.match.Text() {
		return nil, fault.Errorf(fault.NotImplemented, "explain of $text is not implemented by the embedded deployment")
	}
	if err := x.q.choosePlan(); err != nil {
		return nil, err
	}
	if err := cmp.Or(x.execute(), x.bound()); err != nil {
		return nil, err
	}
	planner := value.Doc("namespace", x.q.canonical.ns, "indexFilterSet", false)
	planner = value.AddIf(planner, !x.counts(), "parsedQuery", parsed(x.q.filter))
	planner = value.AddIf(planner, x.aggregates(), "optimizedPipeline", true)
	planner = value.Append(planner, "maxIndexedOrSolutionsReached", false, "maxIndexedAndSolutionsReached", false,
		"maxScansToExplodeReached", false, "winningPlan", x.plan(false), "rejectedPlans", bson.A{})
	var stats bson.D
	if verbosity != "queryPlanner" {
		stats = value.Doc("executionSuccess", true, "nReturned", value.Int(x.returned), "executionTimeMillis", int32(0),
			"totalKeysExamined", value.Int(x.keys), "totalDocsExamined", value.Int(x.examined), "executionStages", x.plan(true))
		stats = value.AddIf(stats, verbosity == "allPlansExecution", "allPlansExecution", x.candidates())
	}
	return x.reply(planner, stats), nil
}

// candidates returns the plans that were compared: here only one. 5.0 shows it as it was before its execution.
func (x *explanation) candidates() bson.A {
	if !x.s.has.SlotEngine {
		return bson.A{}
	}
	idle := *x
	idle.progress = progress{}
	return bson.A{value.Doc("nReturned", int32(0), "executionTimeMillisEstimate", int32(0), "totalKeysExamined", int32(0),
		"totalDocsExamined", int32(0), "executionStages", idle.plan(true))}
}

// counts reports whether the plan counts all documents of a collection, without reading them.
func (x *explanation) counts() bool { return x.command[0].Key == "count" && len(x.q.filter) == 0 }

func (x *explanation) aggregates() bool { return x.command[0].Key == "aggregate" }

// execute computes what the execution reads and returns.
func (x *explanation) execute() error {
	records, err := x.q.records()
	x.works, x.eof, x.counted = 1, 1, int64(len(records))
	if err != nil || x.q.c == nil || x.counts() {
		return err
	}
	hits, err := x.q.hits(records)
	x.returned, x.examined = int64(len(hits)), int64(len(records))
	defer func() { x.works = x.examined + 1 }()
	if x.q.limit > 0 {
		x.returned = min(x.returned, x.q.limit)
	}
	if x.q.index == nil || err != nil {
		return err
	}
	x.read = store.Documents(records)
	bound, _ := query.Compile(pick(x.q.filter, x.q.index.Key[0].Key), query.Options{}) // valid: a part of the filter
	found, err := bound.Select(x.read)
	x.keys, x.examined = int64(len(found)), int64(len(found))
	return err
}

// parsed returns a filter as the server shows it: each condition has an operator.
func parsed(filter bson.D) bson.D {
	var all bson.A
	for _, e := range filter {
		if e.Key[0] == '$' {
			all = append(all, bson.D{e})
			continue
		}
		for _, op := range operators(e) {
			all = append(all, value.Doc(e.Key, bson.D{op}))
		}
	}
	switch len(all) {
	case 0:
		return bson.D{}
	case 1:
		return all[0].(bson.D)
	}
	return value.Doc("$and", all)
}

// plan returns the stages of the plan, the outermost first. Executed ones have statistics.
func (x *explanation) plan(executed bool) bson.D {
	var inner bson.D
	add := func(stage string, fields ...any) {
		out := value.Doc("stage", stage)
		if executed {
			out = value.Append(out, "nReturned", value.Int(x.returned), "executionTimeMillisEstimate", int32(0),
				"works", value.Int(x.works), "advanced", value.Int(x.returned), "needTime", value.Int(x.examined-x.returned),
				"needYield", int32(0), "saveState", int32(0), "restoreState", int32(0), "isEOF", x.eof)
		}
		out = value.Append(out, fields...)
		inner = value.AddIf(out, inner != nil, "inputStage", inner)
	}
	x.access(executed, add)
	q := x.q
	if q.blocking {
		add("SORT", "sortPattern", q.sort, "memLimit", maxMemory, "type", "simple")
	}
	if q.skip > 0 {
		add("SKIP", "skipAmount", value.Int(q.skip))
	}
	if q.limit > 0 && !q.blocking && (x.above == "" || x.above == "COUNT") {
		add("LIMIT", "limitAmount", value.Int(q.limit))
	}
	if q.proj != nil {
		add("PROJECTION_SIMPLE", "transformBy", q.canonical.projection)
	}
	if x.above != "" && !x.counts() {
		add(x.above)
	}
	return inner
}

// bound finds the bounds of the scan of an index. It refuses scans whose bounds, keys or filter a server computes in
// another way than these: forward, of an ascending index without arrays, with at most one condition, on the first field,
// that equals a string or compares with a number.
func (x *explanation) bound() error {
	q := x.q
	if _, byID := q.match.ID(); q.index == nil || x.counts() || byID && q.c.FindsByID() {
		return nil
	}
	exact := !slices.ContainsFunc(q.index.Key, func(k bson.E) bool {
		return strings.Contains(k.Key, ".") || value.Compare(k.Value, int32(0)) < 0 ||
			slices.ContainsFunc(x.read, func(d bson.D) bool { return value.Is[bson.A](value.Get(d, k.Key)) })
	}) && len(q.min)+len(q.max) == 0 && (!q.sortedBy(q.index) || value.Compare(q.sort[0].Value, int32(0)) > 0)
	for i, k := range q.index.Key {
		condition, given := value.Field(q.filter, k.Key)
		text := "[MinKey, MaxKey]"
		if given {
			ops := operators(bson.E{Value: condition})
			format, comparable := boundFormats[ops[0].Key]
			exact = exact && comparable && i == 0 && len(ops) == 1 &&
				(value.IsNumber(ops[0].Value) || ops[0].Key == "$eq" && value.Is[string](ops[0].Value))
			text = fmt.Sprintf(format, value.Text(ops[0].Value))
		}
		x.bounds = value.Append(x.bounds, k.Key, bson.A{text})
	}
	if exact && !slices.ContainsFunc(q.filter, func(e bson.E) bool { return e.Key[0] == '$' }) {
		return nil
	}
	return fault.Errorf(fault.NotImplemented,
		"explain of the bounds of index '%s' for this query is not implemented by the embedded deployment", q.index.Name)
}

// boundFormats are the bounds of an index for a condition.
var boundFormats = map[string]string{"$eq": "[%[1]s, %[1]s]", "$gt": "(%s, inf.0]", "$gte": "[%s, inf.0]",
	"$lt": "[-inf.0, %s)", "$lte": "[-inf.0, %s]"}

// access adds the stages that read documents.
func (x *explanation) access(executed bool, add func(string, ...any)) {
	q := x.q
	filter := []any{"filter", parsed(q.filter)}
	_, byID := q.match.ID()
	switch {
	case x.counts():
		var counted []any
		if executed {
			counted = []any{"nCounted", value.Int(x.counted), "nSkipped", value.Int(q.skip)}
		}
		add("RECORD_STORE_FAST_COUNT", counted...)
	case x.q.c == nil:
		add("EOF")
	case byID && x.q.c.FindsByID():
		add("IDHACK")
	case q.index != nil:
		paths, rest := bson.D{}, q.filter
		for _, k := range q.index.Key {
			paths, rest = value.Append(paths, k.Key, bson.A{}), value.Delete(rest, k.Key)
		}
		if len(rest) == 0 {
			filter = nil
		} else {
			filter[1] = parsed(rest)
		}
		add("IXSCAN", "keyPattern", q.index.Key, "indexName", q.index.Name, "isMultiKey", false, "multiKeyPaths", paths,
			"isUnique", q.index.Unique, "isSparse", q.index.Sparse, "isPartial", q.index.Partial != nil,
			"indexVersion", int32(2), "direction", "forward", "indexBounds", x.bounds)
		add("FETCH", filter...)
	default:
		direction := "forward"
		if natural(q.hint) < 0 || natural(q.sort) < 0 {
			direction = "backward"
		}
		if len(q.filter) == 0 {
			filter = nil
		}
		add("COLLSCAN", append(filter, "direction", direction)...)
	}
}

// reply composes the reply of a mongod or a mongos.
func (x *explanation) reply(planner, stats bson.D) bson.D {
	s := x.s
	server := func(address string) bson.D {
		host, port, _ := net.SplitHostPort(address)
		n, _ := strconv.Atoi(port)
		return value.Doc("host", host, "port", int32(n), "version", s.req.Server.Text(), "gitVersion", GitVersion)
	}
	command := slices.Clip(x.command)
	if mongos(s.req) && !x.aggregates() {
		command = append(command, pick(value.Must(s.req.Body), "apiVersion", "apiStrict", "apiDeprecationErrors")...)
	}
	command = value.Append(command, "$db", s.req.DB)
	about := value.Doc("serverInfo", server(address(s.req)))
	about = value.AddIf(about, s.has.ExplainVersion, "serverParameters", serverParameters)
	out := value.AddIf(bson.D{}, s.has.ExplainVersion, "explainVersion", "1")
	switch {
	case mongos(s.req) && !x.aggregates():
		shard := append(value.Doc("shardName", s.d.opts.ShardName, "connectionString", s.d.opts.ShardHost,
			"serverInfo", server(s.host())), planner...)
		out = value.Doc("queryPlanner", value.Doc("mongosPlannerVersion", int32(1),
			"winningPlan", value.Doc("stage", "SINGLE_SHARD", "shards", bson.A{shard})))
		if stats != nil {
			out = value.Append(out, "executionStats", s.sharded(stats))
		}
		return value.Append(append(out, about...), "command", command)
	case mongos(s.req):
		out = append(about, out...)
	}
	if len(x.rest) > 0 {
		cursor := value.AddIf(value.Doc("queryPlanner", planner), stats != nil, "executionStats", stats)
		out = value.Append(out, "stages", append(bson.A{value.Doc("$cursor", cursor)}, x.rest...))
	} else {
		out = value.AddIf(value.Append(out, "queryPlanner", planner), stats != nil, "executionStats", stats)
	}
	out = value.Append(out, "command", command)
	if mongos(s.req) {
		return out
	}
	return append(out, about...)
}

// sharded returns the statistics of a mongos, which contain the statistics of its only shard.
func (s *call) sharded(stats bson.D) bson.D {
	totals := pick(stats, "nReturned", "executionTimeMillis", "totalKeysExamined", "totalDocsExamined")
	shard := append(value.Doc("shardName", s.d.opts.ShardName), stats...)
	stages := value.Append(append(value.Doc("stage", "SINGLE_SHARD"), totals...), "totalChildMillis", int64(0),
		"shards", bson.A{shard})
	out := value.Append(totals, "executionStages", stages)
	return value.AddIf(out, value.Get(stats, "allPlansExecution") != nil, "allPlansExecution",
		bson.A{value.Doc("shardName", s.d.opts.ShardName, "allPlans", value.Get(stats, "allPlansExecution"))})
}

const maxMemory = int32(100 << 20) // of a server for a stage, in bytes

// serverParameters are the parameters that an explanation shows.
var serverParameters = value.Doc(
	"internalQueryFacetBufferSizeBytes", maxMemory, "internalQueryFacetMaxOutputDocSizeBytes", maxMemory,
	"internalLookupStageIntermediateDocumentMaxSizeBytes", maxMemory,
	"internalDocumentSourceGroupMaxMemoryBytes", maxMemory, "internalQueryMaxBlockingSortMemoryUsageBytes", maxMemory,
	"internalQueryProhibitBlockingMergeOnMongoS", int32(0), "internalQueryMaxAddToSetBytes", maxMemory,
	"internalDocumentSourceSetWindowFieldsMaxMemoryBytes", maxMemory)
