package enginetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Behaviours is the table.
func Behaviours() []Behaviour {
	return []Behaviour{
		{"describes itself", "capabilities are looked up, and a report names the engine", describes},
		{"refuses unknown kinds and options of entities", "an option that is dropped would make a test pass or fail for another reason", refusesEntities},
		{"refuses names that are taken or not there", "the format demands an error, and the runner has only asked by name", refusesNames},
		{"refuses unknown operations and arguments", "they must become skips with the capability named, before anything is sent", refusesOperations},
		{"gives outcomes in the format's shapes", "matchers know shapes, not drivers", givesShapes},
		{"gives the facts of errors", "expectError looks at each of them", givesErrors},
		{"numbers one log of all events", "the order between command, CMAP and SDAM events is what some suites are about", ordersEvents},
		{"waits for events", "waitForEvent must neither poll nor hang", waitsForEvents},
		{"keeps the runner's own commands out of the log", "a fail point is no part of a test, and has to be turned off where it was set", hidesFailPoints},
		{"reports a session's id", "$$sessionLsid is matched against it", tellsLSID},
		{"reports the topology", "pools are awaited, and primaries looked for, by it", tellsTopology},
		{"takes a caller's deadline for no timeoutMS", "the time limit of a test must not change what is sent", ignoresDeadline},
		{"cancels an operation", "a test that hangs must end, and leave no connection behind", cancels},
		{"does operations at once", "threads of a test, and tests beside each other", worksAtOnce},
		{"keeps tests apart", "the set-up of one test stands beside the end of another", keepsApart},
		{"kills a cursor that is closed", "cursors must not outlive a test", killsCursors},
		{"ends sessions", "sessions must not outlive a test", endsSessions},
		{"ends unacknowledged writes", "a write that comes after the end of its test meets the initial data of the next", endsWrites},
		{"ends what it gave up", "a server executes what it was sent, whether or not somebody waits: one test's command would meet the next one's fail points", endsGivenUp},
		{"closes a client for good", "events after the end would belong to no test; those before are still looked at", closesClients},
	}
}

func describes(k *bench) {
	d, err := k.engine.Describe(k.ctx)
	k.check(err)
	k.failIf(d.Name == "" || d.SchemaVersion == "", "it has no name, or no schema version: %q, %q", d.Name, d.SchemaVersion)
	k.failIf(!slices.IsSorted(d.Operations) || len(slices.Compact(slices.Clone(d.Operations))) != len(d.Operations), "its operations are not in order, or some stand twice")
	for _, o := range d.Operations {
		if kind, name, ok := strings.Cut(o, "."); !ok || kind == "" || name == "" {
			k.fail("%q is not kind.name", o)
		}
	}
	k.failIf(!d.Serves("collection", "find") || d.Serves("collection", "fly"), "it does not serve collection.find, or serves collection.fly")
}

func refusesEntities(k *bench) {
	for _, row := range []struct {
		kind    string
		options bson.D
	}{
		{"submarine", nil},
		{"client", bson.D{{Key: "colour", Value: "red"}}},
		{"database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "d"}, {Key: "colour", Value: "red"}}},
		{"collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "c"},
			{Key: "collectionOptions", Value: bson.D{{Key: "colour", Value: "red"}}}}},
		{"session", bson.D{{Key: "client", Value: "client"}, {Key: "sessionOptions", Value: bson.D{{Key: "colour", Value: "red"}}}}},
	} {
		err := k.entity(row.kind, "refused", row.options)
		k.failIf(!unsupported(err), "%s with %v: got %v, want a lack that is named", row.kind, row.options, err)
	}
}

func refusesNames(k *bench) {
	if err := k.entity("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "d"}}); err == nil || unsupported(err) {
		k.fail("a name that is taken: got %v", err)
	}
	for _, client := range []string{"nobody", "collection"} {
		err := k.entity("database", "other", bson.D{{Key: "client", Value: client}, {Key: "databaseName", Value: "d"}})
		k.failIf(err == nil || unsupported(err), "a database of the client %q: got %v", client, err)
	}
	if out := k.do("nobody", "find", all()); out.Err == nil || out.Err.Unsupported != "" || !out.Err.Client {
		k.fail("an operation on an object that is not there: got %v", out.Err)
	}
	if out := k.do("collection", "countDocuments", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "session", Value: "client"}}); out.Err == nil || !out.Err.Client {
		k.fail("an entity that is not a session: got %v", out.Err)
	}
	if _, err := k.test.Events(k.ctx, "nobody", 0, 0); err == nil {
		k.fail("nobody has events")
	}
	if err := k.test.Close(k.ctx, "nobody"); err == nil {
		k.fail("nobody can be closed")
	}
}

func refusesOperations(k *bench) {
	before := k.now()
	for _, row := range []struct {
		name      string
		arguments bson.D
	}{
		{"fly", nil},
		{"find", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "colour", Value: "red"}}},
		{"find", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: "local"}, {Key: "colour", Value: "red"}}}}},
		{"bulkWrite", bson.D{{Key: "requests", Value: bson.A{bson.D{{Key: "insertOne", Value: bson.D{{Key: "document", Value: bson.D{}}, {Key: "colour", Value: "red"}}}}}}}},
	} {
		out := k.do("collection", row.name, row.arguments)
		k.failIf(out.Err == nil, "%s with %v succeeded", row.name, row.arguments)
		k.failIf(out.Err.Unsupported == "" && len(row.arguments) < 2 && row.name != "bulkWrite", "%s with %v: got %v, want a lack that is named", row.name, row.arguments, out.Err)
	}
	if out := k.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "colour", Value: "red"}}); !unsupported(out.Err) {
		k.fail("an argument that nobody knows: got %v, want a lack that is named", out.Err)
	}
	if sent := k.seen(before, result.CommandStarted); len(sent) > 0 {
		k.fail("%d commands were sent all the same", len(sent))
	}
}

func givesShapes(k *bench) {
	k.fill(3)
	for _, row := range []struct{ object, name, arguments, field, want string }{
		{"collection", "find", `{"filter": {}, "batchSize": 1}`, "", `[{"_id":1},{"_id":2},{"_id":3}]`},
		{"collection", "find", `{"filter": {"_id": 9}}`, "", `[]`},
		{"collection", "findOne", `{"filter": {"_id": 1}}`, "", `{"_id":1}`},
		{"collection", "findOne", `{"filter": {"_id": 9}}`, "", `null`},
		{"collection", "aggregate", `{"pipeline": []}`, "", `[{"_id":1},{"_id":2},{"_id":3}]`},
		{"collection", "distinct", `{"filter": {}, "fieldName": "_id"}`, "", `[1,2,3]`},
		{"collection", "countDocuments", `{"filter": {}}`, "", `3`},
		{"collection", "insertOne", `{"document": {"_id": 4}}`, "insertedId", `4`},
		{"collection", "insertMany", `{"documents": [{"_id": 5}]}`, "insertedIds", `{"0":5}`},
		{"collection", "updateOne", `{"filter": {"_id": 6}, "update": {"$set": {"x": 1}}, "upsert": true}`, "upsertedId", `6`},
		{"collection", "deleteOne", `{"filter": {"_id": 6}}`, "deletedCount", `1`},
		{"collection", "findOneAndDelete", `{"filter": {"_id": 9}}`, "", `null`},
		{"collection", "bulkWrite", `{"requests": [{"deleteOne": {"filter": {"_id": 5}}}]}`, "deletedCount", `1`},
		{"database", "runCommand", `{"commandName": "ping", "command": {"ping": 1}}`, "ok", `1.0`},
		{"database", "dropCollection", `{"collection": "nothing"}`, "", ``},
	} {
		var arguments bson.D
		k.check(bson.UnmarshalExtJSON([]byte(row.arguments), false, &arguments))
		got := k.must(row.object, row.name, arguments)
		if row.field != "" {
			doc, _ := got.DocumentOK()
			got = doc.Lookup(row.field)
		}
		text := written(got)
		k.failIf(text != row.want, "%s: got %s %s, want %s", row.name, row.field, text, row.want)
	}
}

// written shows a value as relaxed Extended JSON, none as nothing.
func written(v bson.RawValue) string {
	if v.Type == 0 {
		return ""
	}
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, false, false)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"v":`), "}")
}

func givesErrors(k *bench) {
	k.failPoint(once(), bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 11601},
		{Key: "errorLabels", Value: bson.A{"SomeLabel"}}})
	out := k.do("collection", "find", all())
	e := out.Err
	switch {
	case e == nil:
		k.fail("a command that fails has no error")
	case e.Client || e.Timeout || !e.HasCode || e.Code != 11601 || e.CodeName != "Interrupted" || !e.HasLabel("SomeLabel") || e.Message == "":
		k.fail("the facts of an error reply: got %+v", *e)
	case e.Response.Lookup("code").Type == 0:
		k.fail("the reply is not there")
	case out.Server == "":
		k.fail("the outcome names no server")
	}
	k.fill(1)
	out = k.do("collection", "insertMany", bson.D{{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 1}}}}})
	k.failIf(out.Err == nil || out.Err.Client || out.Err.Code != 11000 || len(out.Err.WriteErrors[1]) == 0, "the facts of a write error: got %+v", out.Err)
	k.failPoint(bson.D{{Key: "times", Value: 2}}, bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: true}})
	out = k.do("collection", "find", all())
	k.failIf(out.Err == nil || !out.Err.Client || out.Err.HasCode || out.Err.Response != nil, "the facts of a network error: got %+v", out.Err)
}

// ordersEvents: a command whose connection is closed under it.
func ordersEvents(k *bench) {
	k.fill(1)
	k.failPoint(once(), bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: true}})
	before := k.now()
	k.must("collection", "find", all())
	log := k.events()
	for i, e := range log {
		k.failIf(e.Sequence != int64(i)+1, "event %d has the number %d", i+1, e.Sequence)
		k.failIf(i > 0 && e.Time.Before(log[i-1].Time), "event %d is earlier than the one before", e.Sequence)
		if set := []bool{e.Command != nil, e.Pool != nil, e.SDAM != nil}; slices.Index(set, true) < 0 ||
			slices.Contains(set[slices.Index(set, true)+1:], true) {
			k.fail("event %d, %s, has not exactly one kind of fields", e.Sequence, e.Type)
		}
		if again, err := k.test.Events(k.ctx, "client", e.Sequence, 0); err != nil || len(again) > 0 && again[0].Sequence != e.Sequence+1 {
			k.fail("reading after event %d: %v", e.Sequence, err)
		}
	}
	left := []result.EventType{result.ConnectionCheckedOut, result.CommandStarted, result.CommandFailed,
		result.ConnectionCheckedOut, result.CommandStarted, result.CommandSucceeded, result.ConnectionCheckedIn}
	for _, e := range log {
		if e.Sequence > before && len(left) > 0 && e.Type == left[0] {
			left = left[1:]
		}
	}
	k.failIf(len(left) > 0, "a find that is retried gives no %s where it belongs", left)
}

func waitsForEvents(k *bench) {
	k.fill(1)
	last := k.now()
	type answer struct {
		events []result.Event
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		var found []result.Event
		for after := last; ; {
			events, err := k.test.Events(k.ctx, "client", after, limit)
			found = append(found, events...)
			if err != nil || len(events) == 0 || slices.ContainsFunc(found, func(e result.Event) bool { return e.Type == result.CommandStarted }) {
				answers <- answer{found, err}
				return
			}
			after = events[len(events)-1].Sequence
		}
	}()
	k.must("collection", "find", all())
	select {
	case a := <-answers:
		k.failIf(a.err != nil || len(a.events) == 0, "waiting gave %d events, %v", len(a.events), a.err)
	case <-k.ctx.Done():
		k.fail("an event that came did not end the wait")
	}
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	const never = int64(1) << 60
	if events, err := k.test.Events(ctx, "client", never, limit); err == nil || len(events) > 0 {
		k.fail("a wait whose context has ended gave %d events and no error", len(events))
	}
	if events, err := k.test.Events(k.ctx, "client", never, time.Millisecond); err != nil || len(events) > 0 {
		k.fail("a wait for nothing gave %d events, %v", len(events), err)
	}
}

func hidesFailPoints(k *bench) {
	out := k.do("client", engine.OpConfigureFailPoint, bson.D{{Key: "command", Value: bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}}}})
	k.accept(out)
	k.failIf(out.Server == "", "the outcome does not name the server where the fail point is")
	if seen := k.seen(0, result.CommandStarted, result.CommandSucceeded); len(seen) > 0 {
		k.fail("%s of %s is in the log", seen[0].Type, seen[0].Command.CommandName)
	}
}

func tellsLSID(k *bench) {
	k.check(k.entity("session", "session", bson.D{{Key: "client", Value: "client"}}))
	// What was sent without the session is not told to have been sent with it.
	k.must("collection", "countDocuments", all())
	told := k.must("session", engine.OpLSID, nil)
	k.must("collection", "countDocuments", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "session", Value: "session"}})
	sent := k.seen(0, result.CommandStarted)
	k.failIf(len(sent) != 2, "%d commands, want 2", len(sent))
	if lsid := sent[0].Command.Command.Lookup("lsid"); lsid.Equal(told) {
		k.fail("it reports %v, which an operation without the session sent before", told)
	}
	if lsid := sent[1].Command.Command.Lookup("lsid"); !lsid.Equal(told) {
		k.fail("it reports %v and sends %v", told, lsid)
	}
}

func tellsTopology(k *bench) {
	k.fill(1)
	v := k.must("client", engine.OpTopology, nil)
	var told struct {
		Type    string
		Servers []struct{ Address, Type string }
	}
	doc, _ := v.DocumentOK()
	k.check(bson.Unmarshal(doc, &told))
	k.failIf(told.Type == "" || told.Type == "Unknown" || len(told.Servers) == 0, "got %v", v)
	for _, s := range told.Servers {
		k.failIf(s.Address == "" || s.Type == "", "a server has no address or no type: %v", v)
	}
}

func ignoresDeadline(k *bench) {
	ctx, cancel := context.WithTimeout(k.ctx, limit/2)
	defer cancel()
	k.accept(k.doIn(ctx, "collection", "find", all()))
	sent := k.seen(0, result.CommandStarted)
	k.failIf(len(sent) == 0, "no command was sent")
	if v := sent[0].Command.Command.Lookup("maxTimeMS"); v.Type != 0 {
		k.fail("the command carries maxTimeMS %v", v)
	}
}

// blocked is longer than a behaviour may take.
const blocked = 2 * limit

func cancels(k *bench) {
	k.fill(1)
	before := k.now()
	k.failPoint("alwaysOn", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true},
		{Key: "blockTimeMS", Value: blocked.Milliseconds()}})
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	outcomes := make(chan result.Outcome, 1)
	go func() { outcomes <- k.doIn(ctx, "collection", "find", all()) }()
	for {
		started := k.seen(before, result.CommandStarted)
		if len(started) > 0 {
			break
		}
		last := k.now()
		_, err := k.test.Events(k.ctx, "client", last, 20*time.Millisecond)
		k.check(err)
	}
	cancel()
	select {
	case out := <-outcomes:
		k.failIf(out.Err == nil || !out.Err.Client || out.Err.Timeout, "got %+v", out.Err)
	case <-k.ctx.Done():
		k.fail("the operation goes on")
	}
	taken := k.seen(0, result.ConnectionCheckedOut)
	returned := k.seen(0, result.ConnectionCheckedIn)
	k.failIf(len(taken) != len(returned), "%d connections were taken, and %d given back when the operation had ended", len(taken), len(returned))
}

func worksAtOnce(k *bench) {
	const many = 16
	k.fill(1)
	failures := make([]*result.Error, many)
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() {
			failures[i] = k.do("collection", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 100 + i}}}}).Err
		})
	}
	wait.Wait()
	for _, err := range failures {
		k.failIf(err != nil, "%v", err)
	}
	if n := k.count(); n != many+1 {
		k.fail("%d documents, want %d", n, many+1)
	}
}

func keepsApart(k *bench) {
	t, err := k.engine.Begin(k.ctx)
	k.check(err)
	other := &bench{ctx: k.ctx, engine: k.engine, test: t, uri: k.uri}
	if err := other.open(); err != nil {
		k.fail("the same names in another test: %w", err)
	}
	other.fill(1)
	if sent := k.seen(0, result.CommandStarted); len(sent) > 0 {
		k.fail("%d commands of another test in the log", len(sent))
	}
	k.check(t.End(k.ctx))
	if out := other.do("collection", "find", all()); out.Err == nil {
		k.fail("a test that has ended goes on")
	}
	k.must("collection", "find", all())
}

func killsCursors(k *bench) {
	k.fill(5)
	out := k.saveIn(k.ctx, "collection", "createFindCursor", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "batchSize", Value: 2}}, "cursor")
	k.accept(out)
	if v := k.must("cursor", "iterateUntilDocumentOrError", nil); v.Type != bson.TypeEmbeddedDocument {
		k.fail("the first document: %v", v)
	}
	for range 2 {
		k.check(k.test.Close(k.ctx, "cursor"))
	}
	if killed := k.sent(0, "killCursors"); killed != 1 {
		k.fail("%d times killCursors, want one", killed)
	}
}

func endsSessions(k *bench) {
	k.check(k.entity("session", "session", bson.D{{Key: "client", Value: "client"}}))
	k.must("collection", "countDocuments", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "session", Value: "session"}})
	told := k.must("session", engine.OpLSID, nil)
	for _, id := range []string{"session", "session", "client"} {
		k.check(k.test.Close(k.ctx, id))
	}
	sent := k.seen(0, result.CommandStarted)
	for _, e := range sent {
		if e.Command.CommandName != "endSessions" {
			continue
		}
		ended, _ := e.Command.Command.Lookup("endSessions").ArrayOK()
		values, _ := ended.Values()
		n := 0
		for _, v := range values {
			if v.Equal(told) {
				n++
			}
		}
		k.failIf(n != 1, "the session is ended %d times: %v", n, ended)
		return
	}
	k.fail("the server is not told that the session has ended")
}

func endsWrites(k *bench) {
	k.fill(0)
	k.check(k.entity("collection", "silent", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: collectionName},
		{Key: "collectionOptions", Value: bson.D{{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 0}}}}}}))
	k.failPoint(once(), bson.D{{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 100}})
	k.must("silent", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}})
	k.written()
}

func endsGivenUp(k *bench) {
	k.fill(0)
	k.check(k.entity("database", "admin", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "admin"}}))
	k.failPoint(once(), bson.D{{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 200}})
	last := k.now()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	gaveUp := make(chan result.Outcome, 1)
	go func() {
		gaveUp <- k.doIn(ctx, "collection", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}})
	}()
	// The server has begun when the fail point has struck for the only time.
	const name = "failpoint.failCommand"
	ask := bson.D{{Key: "commandName", Value: "getParameter"}, {Key: "command", Value: bson.D{{Key: "getParameter", Value: 1}, {Key: name, Value: 1}}}}
	for struck := false; !struck; {
		v := k.must("admin", "runCommand", ask)
		doc, _ := v.DocumentOK()
		mode, ok := doc.Lookup(name, "mode").AsInt64OK()
		k.failIf(!ok, "getParameter returns no mode of failCommand: %v", v)
		struck = mode == 0
	}
	cancel()
	if out := <-gaveUp; out.Err == nil {
		k.fail("the operation was given up, and gives no error")
	}
	sent := k.sent(last, "insert")
	k.failIf(sent != 1, "%d inserts were sent, want the one that was given up", sent)
	k.written()
}

// written closes the client, and holds that its one insert is there then.
func (k *bench) written() {
	k.check(k.test.Close(k.ctx, "client"))
	next, err := k.engine.Begin(k.ctx)
	k.check(err)
	defer func() { _ = next.End(k.ctx) }()
	after := &bench{ctx: k.ctx, engine: k.engine, test: next, uri: k.uri}
	k.check(after.open())
	if n := after.count(); n != 1 {
		k.fail("%d documents are there after the client was closed, want the one that was written", n)
	}
}

func closesClients(k *bench) {
	k.fill(1)
	for range 2 {
		k.check(k.test.Close(k.ctx, "client"))
	}
	log := k.events()
	k.failIf(len(log) == 0 || log[len(log)-1].Type != result.TopologyClosed, "the last event is not that the topology is closed")
	if !slices.ContainsFunc(log, func(e result.Event) bool { return e.Type == result.PoolClosed }) {
		k.fail("no pool was closed")
	}
	if out := k.do("collection", "find", all()); out.Err == nil || !out.Err.Client {
		k.fail("an operation of a closed client: got %+v", out.Err)
	}
}
