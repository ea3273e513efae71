package reference

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	official "github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

// wireVariant is a set of client options, and the session of every operation: "", causal, notCausal, snapshot.
type wireVariant struct {
	name, uri, session string
	api                bool
}

var wireVariants = []wireVariant{
	{"default", "", "", false},
	{"secondaryPreferred", "readPreference=secondaryPreferred", "", false},
	{"tags", "readPreference=secondaryPreferred&readPreferenceTags=dc:ny&readPreferenceTags=", "", false},
	{"nearest", "readPreference=nearest&maxStalenessSeconds=120", "", false},
	{"concerns", "readConcernLevel=majority&w=majority&journal=true", "", false},
	{"timeoutMS", "timeoutMS=60000", "", false},
	{"api", "", "", true},
	{"causal", "", "causal", false},
	{"notCausal", "readConcernLevel=local", "notCausal", false},
	{"snapshot", "", "snapshot", false},
	{"retriesOff", "retryReads=false&retryWrites=false", "", false},
}

// wireOp is an operation in the format of stories. how is "save" for an operation that creates a cursor, which is
// closed at once, or "commit" or "abort" for an operation in a transaction.
type wireOp struct{ name, how, do string }

// wireReads and wireWrites are performed in order. The last write restores the collection.
var wireReads = []wireOp{
	{"find", "", `find`},
	{"findBatches", "", `find {"batchSize":2}`},
	{"findLimit", "", `find {"limit":4,"batchSize":3}`},
	{"findNegative", "", `find {"limit":-2}`},
	{"findOne", "", `collection.findOne {"filter":{}}`},
	{"aggregate", "", `collection.aggregate {"pipeline":[{"$match":{}}],"batchSize":2}`},
	{"aggregateDatabase", "", `database.aggregate {"pipeline":[{"$listLocalSessions":{}}]}`},
	{"countDocuments", "", `collection.countDocuments {"filter":{}}`},
	{"estimatedDocumentCount", "", `collection.estimatedDocumentCount`},
	{"distinct", "", `collection.distinct {"fieldName":"_id","filter":{}}`},
	{"listDatabases", "", `client.listDatabases`},
	{"listDatabaseNames", "", `client.listDatabaseNames`},
	{"listCollections", "", `database.listCollections`},
	{"listCollectionNames", "", `database.listCollectionNames`},
	{"listIndexes", "", `collection.listIndexes`},
	{"watch", "save", `watch`},
	{"watchDatabase", "save", `database.createChangeStream {"pipeline":[]}`},
	{"watchClient", "save", `client.createChangeStream {"pipeline":[]}`},
	{"cursorClose", "save", `cursor {"batchSize":2}`},
	{"runCommand", "", `ping`},
	{"runCursorCommand", "", `database.runCursorCommand {"commandName":"find","batchSize":2,"command":{"find":"coll","batchSize":2}}`},
}

var wireWrites = []wireOp{
	{"out", "", `collection.aggregate {"pipeline":[{"$match":{}},{"$out":"out"}]}`},
	{"insertOne", "", `insert {"document":{"_id":10}}`},
	{"insertMany", "", `insertMany {"documents":[{"_id":11},{"_id":12}]}`},
	{"insertUnordered", "", `insertMany {"documents":[{"_id":13},{"_id":13},{"_id":14}],"ordered":false}`},
	{"updateOne", "", `collection.updateOne {"filter":{"_id":10},"update":{"$set":{"a":1}},"upsert":true}`},
	{"updateMany", "", `updateMany {"filter":{"_id":11}}`},
	{"replaceOne", "", `collection.replaceOne {"filter":{"_id":11},"replacement":{"b":1}}`},
	{"deleteOne", "", `collection.deleteOne {"filter":{"_id":10}}`},
	{"findOneAndUpdate", "", `collection.findOneAndUpdate {"filter":{"_id":11},"update":{"$set":{"a":1}},"returnDocument":"After"}`},
	{"findOneAndReplace", "", `collection.findOneAndReplace {"filter":{"_id":11},"replacement":{"c":1}}`},
	{"findOneAndDelete", "", `collection.findOneAndDelete {"filter":{"_id":11}}`},
	{"bulkWrite", "", `collection.bulkWrite {"requests":[{"insertOne":{"document":{"_id":15}}},
		{"updateOne":{"filter":{"_id":15},"update":{"$set":{"a":1}}}},{"deleteOne":{"filter":{"_id":15}}}]}`},
	{"clientBulkWrite", "", `clientBulk {"models":[{"insertOne":{"namespace":"db.coll","document":{"_id":16}}},
		{"deleteOne":{"namespace":"db.coll","filter":{"_id":16}}}]}`},
	{"commitTransaction", "commit", `insert {"document":{"_id":17}}`},
	{"abortTransaction", "abort", `find {"batchSize":2}`},
	{"createCollection", "", `create`},
	{"createIndex", "", `collection.createIndex {"keys":{"a":1},"name":"a_1"}`},
	{"dropIndex", "", `collection.dropIndex {"name":"a_1"}`},
	{"dropCollection", "", `database.dropCollection {"collection":"made"}`},
	{"dropDatabase", "", `dropDatabase {"database":"made"}`},
	{"deleteMany", "", `collection.deleteMany {"filter":{"_id":{"$gte":10}}}`},
}

// difference is a difference between the messages of the reference engine and the Go driver. The field "commands" is
// the sequence of commands, "message" the message header.
type difference struct{ where, op, command, field, ours, theirs string }

func (d difference) parts() [6]string {
	return [...]string{d.where, d.op, d.command, d.field, d.ours, d.theirs}
}

// explanation explains a difference, and who is right: reference, driver, or both. Patterns match whole parts; ""
// matches all.
type explanation struct {
	of                     difference
	right, section, reason string
}

func (e explanation) covers(d difference) bool {
	for i, pattern := range e.of.parts() {
		if pattern != "" && !regexp.MustCompile("^(?:"+pattern+")$").MatchString(d.parts()[i]) {
			return false
		}
	}
	return true
}

// judge returns the unexplained differences and the unused explanations. Only the first explanation that covers a
// difference is used.
func judge(found []difference, table []explanation) (unexplained []difference, unused []explanation) {
	used := map[int]bool{}
	for _, d := range found {
		if i := slices.IndexFunc(table, func(e explanation) bool { return e.covers(d) }); i >= 0 {
			used[i] = true
		} else {
			unexplained = append(unexplained, d)
		}
	}
	for i, e := range table {
		if !used[i] {
			unused = append(unused, e)
		}
	}
	return unexplained, unused
}

// TestWireLikeTheOfficialDriver compares the messages of the reference engine and the Go driver for the same
// operations.
func TestWireLikeTheOfficialDriver(t *testing.T) {
	var found []difference
	replicaSet := embedded.Options{Topology: embedded.ReplicaSet}
	for _, dep := range []struct {
		name    string
		options embedded.Options
		direct  int // member to connect to directly; -1: all
	}{
		{"single", embedded.Options{}, -1},
		{"replicaset", replicaSet, -1},
		{"replicaset 4.9", embedded.Options{Topology: embedded.ReplicaSet, Version: "4.9"}, -1},
		{"replicaset auth", embedded.Options{Topology: embedded.ReplicaSet,
			Users: []embedded.User{{Name: "u", Password: "p"}}}, -1},
		{"direct primary", replicaSet, 0},
		{"direct secondary", replicaSet, 1},
		{"sharded", embedded.Options{Topology: embedded.Sharded, Mongoses: 1}, -1},
		{"load-balanced", embedded.Options{Topology: embedded.LoadBalanced}, -1},
	} {
		deployment, err := embedded.Start(t.Context(), dep.options)
		testkit.Check(t, err)
		defer func() { _ = deployment.Close() }()
		uri, ops := deployment.URI(), append(slices.Clone(wireReads), wireWrites...)
		cleaner := open(t, uri, Options{}, nil)
		clean := func() { // both engines start with the same contents
			cleaner.must("client", "dropDatabase", d("database", "db"))
			cleaner.perform(`insertMany {"documents":[{"_id":0},{"_id":1},{"_id":2},{"_id":3},{"_id":4}]}`)
		}
		if dep.direct >= 0 {
			uri = deployment.DirectURI(deployment.Hosts()[dep.direct])
		}
		if dep.name == "direct secondary" { // rejected writes would wait for a primary
			ops = wireReads
		}
		for _, v := range wireVariants {
			p, q, uri := newTap(t), newTap(t), uri
			if v.uri != "" {
				uri += testkit.Either(strings.Contains(uri, "?"), "&", "?") + v.uri
			}
			clean()
			own, err := New(Options{dial: p.DialContext})
			testkit.Check(t, err)
			ours := p.perform(own, uri, v, ops)
			clean()
			theirs := official.New(func(o *options.ClientOptions) { o.SetDialer(q) })
			found = append(found, compare(dep.name+"/"+v.name, ours, q.perform(theirs, uri, v, ops))...)
		}
		_ = cleaner.End(t.Context())
	}
	unexplained, unused := judge(found, goDifferences())
	for _, d := range unexplained {
		t.Errorf("unexplained: %+v", d)
	}
	for _, e := range unused {
		t.Errorf("this difference no longer occurs: %+v", e)
	}
}

// traffic is the messages of a client, by operation.
type traffic map[string][]sent

// compare returns the differences of all operations.
func compare(where string, ours, theirs traffic) []difference {
	var out []difference
	for op, a := range ours {
		b := theirs[op]
		if x, y := names(a), names(b); x != y {
			out = append(out, difference{where, op, "", "commands", strings.TrimSpace(x), strings.TrimSpace(y)})
			continue
		}
		for i := range a {
			for _, d := range differ(a[i], b[i]) {
				d.where, d.op = where, op
				out = append(out, d)
			}
		}
	}
	return out
}

func names(ms []sent) (out string) {
	for _, m := range ms {
		out += m.name() + " "
	}
	return out
}

// differ compares two messages of the same command.
func differ(a, b sent) []difference {
	out := []difference{}
	note := func(field, ours, theirs string) {
		if ours != theirs {
			out = append(out, difference{command: a.name(), field: field, ours: cmp.Or(ours, "-"), theirs: cmp.Or(theirs, "-")})
		}
	}
	note("message", fmt.Sprintf("opcode %d flags %d", a.opcode, a.flags),
		fmt.Sprintf("opcode %d flags %d", b.opcode, b.flags))
	note("sequences", a.sequences, b.sequences)
	note("command", a.name(), b.name())
	fa, fb := fieldsOf(a.body), fieldsOf(b.body)
	all := maps.Clone(fa)
	maps.Copy(all, fb)
	for k := range all {
		note(k, fa[k], fb[k])
	}
	return out
}

// volatile are the fields whose values depend on the client or the time. Only their shapes are compared.
var volatile = map[string]bool{"lsid": true, "$clusterTime": true, "maxTimeMS": true, "getMore": true, "cursors": true,
	"txnNumber":   true,
	"endSessions": true, "recoveryToken": true, "afterClusterTime": true, "atClusterTime": true}

// fieldsOf formats each field of a command.
func fieldsOf(b bson.Raw) map[string]string {
	out := map[string]string{}
	es, _ := b.Elements()
	for _, e := range es {
		out[e.Key()] += text(e.Value(), volatile[e.Key()]) // appends duplicate fields
	}
	return out
}

// text formats a value, or only its types and names if it is volatile.
func text(v bson.RawValue, hidden bool) string {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		var parts []string
		es, _ := v.Document().Elements()
		for _, e := range es {
			parts = append(parts, e.Key()+": "+text(e.Value(), hidden || volatile[e.Key()]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case bson.TypeArray:
		var parts []string
		values, _ := v.Array().Values()
		for _, e := range values {
			part := text(e, hidden)
			if hidden && len(parts) > 0 && parts[0] == part {
				continue // the length is volatile, too
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if hidden {
		return v.Type.String()
	}
	return v.String()
}

// perform performs operations with an engine, and returns the messages.
func (p *tap) perform(e engine.Engine, uri string, v wireVariant, ops []wireOp) traffic {
	entity, session, out := d(), "", traffic{}
	if v.api {
		entity = d("serverApi", d("version", "1", "deprecationErrors", true))
	}
	b := openOn(p.t, e, uri, entity)
	close(p.opened)
	if v.session != "" {
		session = "@"
		b.entity("session", "session", d("client", "client", "sessionOptions", map[string]bson.D{
			"causal": {}, "notCausal": d("causalConsistency", false), "snapshot": d("snapshot", true)}[v.session]))
	}
	for _, op := range ops {
		switch op.how {
		case "commit", "abort":
			b.entity("session", op.name, d("client", "client"))
			b.do(op.name, "startTransaction", nil)
			b.perform("@"+op.do, bson.E{Key: "session", Value: op.name})
			b.do(op.name, op.how+"Transaction", nil)
			b.do(op.name, "endSession", nil)
		default:
			if o := b.perform(session + op.do); o.Err != nil && o.Err.Unsupported != "" {
				p.t.Fatalf("%s: %v", op.name, o.Err)
			} else if op.how == "save" && o.Err == nil {
				_ = b.Close(p.t.Context(), "saved")
			}
		}
		out[op.name] = p.take()
	}
	_ = b.End(p.t.Context())
	out["close"] = p.take()
	return out
}

// TestWireCanFail checks that differ finds every kind of difference.
func TestWireCanFail(t *testing.T) {
	const text = `{"find":"coll","filter":{"a":1},"limit":{"$numberLong":"2"},"lsid":{"id":{"$binary":{"base64":"AAAA","subType":"00"}}},
		"maxTimeMS":{"$numberLong":"5"},"txnNumber":{"$numberLong":"1"},"readConcern":{"level":"majority","afterClusterTime":{"$timestamp":{"t":1,"i":1}}},
		"$readPreference":{"mode":"nearest"},"cursors":[{"$numberLong":"1"}],"$db":"db"}`
	fields := parsed(t, text)
	whole := sent{opcode: wire.OpMsg, body: raw(t, fields)}
	mutant := func(name string, m sent) {
		if len(differ(whole, m)) == 0 || len(differ(m, whole)) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
	with := func(name string, i int, more ...bson.E) {
		mutant(name, sent{opcode: wire.OpMsg, body: raw(t, slices.Concat(fields[:i], more, fields[min(i+1, len(fields)):]))})
	}
	for i, e := range fields {
		with(e.Key+" dropped", i)
		with(e.Key+" twice", i, e, e)
		with(e.Key+" renamed", i, bson.E{Key: e.Key + "x", Value: e.Value})
		with(e.Key+" of another type", i, bson.E{Key: e.Key, Value: bson.MinKey{}})
		with(e.Key+" nested", i, bson.E{Key: e.Key, Value: d("x", e.Value)})
	}
	for i, json := range map[int]string{1: `{"filter":{"a":{"$numberLong":"1"}}}`, 2: `{"limit":{"$numberLong":"3"}}`,
		5: `{"txnNumber":1}`,
		6: `{"readConcern":{"level":"local","afterClusterTime":{"$timestamp":{"t":1,"i":1}}}}`, 7: `{"$readPreference":{"mode":"primary"}}`,
		8: `{"cursors":[1]}`, 10: `{"comment":"x"}`} {
		with(json, i, parsed(t, json)...)
	}
	mutant("moreToCome", sent{opcode: wire.OpMsg, flags: 2, body: whole.body})
	mutant("a document sequence", sent{opcode: wire.OpMsg, body: whole.body, sequences: "documents"})
	mutant("another opcode", sent{opcode: wire.OpQuery, body: whole.body})
	if diff := differ(whole, sent{opcode: wire.OpMsg, body: raw(t, parsed(t, text))}); len(diff) != 0 {
		t.Errorf("a message differs from itself: %v", diff)
	}
	if diff := compare("", traffic{"find": {whole}}, traffic{"find": {whole, whole}}); len(diff) != 1 ||
		diff[0].field != "commands" {
		t.Errorf("an additional message: %v", diff)
	}
	found := []difference{{"single/api", "find", "find", "limit", "1", "2"}}
	for _, row := range []struct {
		reason              string
		table               []explanation
		unexplained, unused int
	}{
		{"no explanation", nil, 1, 0},
		{"a second explanation is unused", []explanation{{of: difference{field: "limit"}}, {of: difference{op: "find"}}}, 0,
			1},
		{"every part must match", []explanation{{of: difference{field: "limit", theirs: "3"}}}, 1, 1},
		{"a pattern matches a whole part", []explanation{{of: difference{field: "li"}}}, 1, 1},
	} {
		if unexplained, unused := judge(found, row.table); len(unexplained) != row.unexplained || len(unused) != row.unused {
			t.Errorf("%s: %d unexplained, %d unused", row.reason, len(unexplained), len(unused))
		}
	}
}

// goDifferences explains the known differences.
func goDifferences() []explanation {
	const none = "-"
	return []explanation{
		{of: difference{op: "list(Collections|CollectionNames|Databases|DatabaseNames)", field: `\$readPreference`,
			ours: `-|\{mode: "primaryPreferred"\}`, where: ".*/(secondaryPreferred|tags|nearest)"},
			right: "reference", section: "Server Selection, Use of read preferences with commands; Enumerating Collections, Replica Sets; Enumerating Databases, Replica Sets",
			reason: "the commands run on the primary and ignore the client's read preference; the Go driver sends it"},
		{of: difference{op: "list(Collections|CollectionNames|Databases|DatabaseNames)", field: "filter", ours: none,
			theirs: `\{\}`},
			right: "both", section: "Enumerating Collections, Driver methods",
			reason: "the Go driver's methods require a filter, and an empty one selects all"},
		{of: difference{op: "findOne", field: "limit", ours: `\{"\$numberInt":"1"\}`, theirs: `\{"\$numberLong":"1"\}`},
			right: "both", section: "CRUD, Read", reason: "servers accept any integer type"},
		{of: difference{op: "findNegative", field: "batchSize", ours: `\{"\$numberInt":"2"\}`, theirs: none},
			right: "reference", section: "Find, getMore and killCursors commands, Mapping OP_QUERY behavior to the find command limit and batchSize fields",
			reason: "a single batch has batchSize = limit; without it, the server returns at most 101 documents of a single batch"},
		{of: difference{op: "findLimit", command: "getMore", field: "batchSize",
			ours: `\{"\$numberInt":"1"\}`, theirs: `\{"\$numberInt":"3"\}`},
			right: "reference", section: "Find, getMore and killCursors commands, Behavior of Limit, skip and batchSize",
			reason: "with limit 4, one document is left after a batch of 3, as in the example; the Go driver requests a whole batch"},
		{of: difference{where: ".*/timeoutMS", command: "find|aggregate|killCursors|create|dropDatabase", field: "maxTimeMS",
			ours: "64-bit integer", theirs: none},
			right: "reference", section: "Client Side Operations Timeout, Command Execution; Cursors",
			reason: "every command has maxTimeMS except getMore and the commands of cursors in mode ITERATION; the Go driver omits it for all commands that create cursors, and for killCursors, create and dropDatabase"},
		{of: difference{op: "close", command: "endSessions", field: `\$readPreference`, ours: `\{mode: "primaryPreferred"\}`,
			theirs: none},
			right: "reference", section: "Driver Sessions, endSessions; Server Selection, Topology type: Single",
			reason: "both select with primaryPreferred; a command that may run on a secondary has the preference"},
		{of: difference{op: "abortTransaction", where: ".*/(secondaryPreferred|tags|nearest)", field: "commands",
			ours: "", theirs: "(find )?abortTransaction"},
			right: "reference", section: "Transactions, readPreference; abortTransaction",
			reason: "the read is rejected for its read preference, so nothing was sent in the transaction, and nothing is aborted; the Go driver has already marked it in progress, and sends the read to a standalone"},
	}
}
