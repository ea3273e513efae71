package enginetest

import (
	"context"
	"fmt"
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
		{"numbers one log of all events", "the order between command, CMAP and SDAM events is what some suites are about", ordersEvents},
		{"waits for events", "waitForEvent must neither poll nor hang", waitsForEvents},
		{"keeps the runner's own commands out of the log", "a fail point is not part of a test, and must be turned off where it was set", hidesFailPoints},
		{"reports a session's id", "$$sessionLsid is matched against it", reportsLSID},
		{"reports the topology", "the runner waits for pools and looks for primaries by it", reportsTopology},
		{"does not take a caller's deadline for timeoutMS", "the time limit of a test must not change what is sent", ignoresDeadline},
		{"cancels an operation", "a test that hangs must end, and leave no connection behind", cancels},
		{"does operations at once", "tests have threads, and run beside each other", worksAtOnce},
		{"keeps tests apart", "the set-up of one test can overlap with the end of another", keepsApart},
		{"ends sessions", "sessions must not outlive a test", endsSessions},
		{"ends unacknowledged writes", "a write that comes after the end of its test meets the initial data of the next", endsWrites},
		{"logs what it gave up", "the runner waits until the server has ended a command without an answer, which would meet the next test's fail points", logsGivenUp},
		{"gives the log messages that a client asks for", "expectLogMessages compares them, and a request that is ignored would look like silence", logsMessages},
		{"closes a client for good", "events after the end would belong to no test; those before are still looked at", closesClients},
	}
}

func describes(k *bench) {
	d, err := k.engine.Describe(k.ctx)
	k.check(err)
	k.failIf(d.Name == "" || d.SchemaVersion == "", "it has no name, or no schema version: %q, %q", d.Name, d.SchemaVersion)
	k.failIf(!slices.IsSorted(d.Operations) || len(slices.Compact(slices.Clone(d.Operations))) != len(d.Operations), "its operations are not in order, or some are listed twice")
	for _, o := range d.Operations {
		if kind, name, ok := strings.Cut(o, "."); !ok || kind == "" || name == "" {
			k.fail("%q is not kind.name", o)
		}
	}
	k.failIf(!d.Serves("collection", "find") || d.Serves("collection", "fly"), "it does not serve collection.find, or serves collection.fly")
}

func refusesEntities(k *bench) {
	for _, row := range []struct{ kind, options string }{
		{"submarine", `{}`},
		{"client", `{"colour": "red"}`},
		{"database", `{"client": "client", "databaseName": "d", "colour": "red"}`},
		{"collection", `{"database": "database", "collectionName": "c", "collectionOptions": {"colour": "red"}}`},
		{"session", `{"client": "client", "sessionOptions": {"colour": "red"}}`},
	} {
		err := k.entity(row.kind, "refused", row.options)
		k.failIf(!unsupported(err), "%s with %v: got %v, want an error that names what is missing", row.kind, row.options, err)
	}
}

func refusesNames(k *bench) {
	for _, row := range []struct{ reason, id, client string }{
		{"a name that is taken", "database", "client"},
		{"a database of a client that does not exist", "other", "nobody"},
		{"a database of a collection", "other", "collection"},
	} {
		err := k.entity("database", row.id, `{"client": "`+row.client+`", "databaseName": "d"}`)
		k.failIf(err == nil || unsupported(err), "%s: got %v", row.reason, err)
	}
	out := k.do("nobody", "find", all)
	k.failIf(out.Broken == nil && (out.Err == nil || out.Err.Unsupported != "" || !out.Err.Client),
		"an operation on an object that does not exist: got %v", out.Err)
	out = k.do("collection", "find", `{"filter": {}, "session": "client"}`)
	k.failIf(out.Err == nil || !out.Err.Client && out.Err.Unsupported == "", "an entity that is not a session: got %v", out.Err)
	_, err := k.test.Events(k.ctx, "nobody", 0, 0)
	k.failIf(err == nil, "nobody has events")
	k.failIf(k.test.Close(k.ctx, "nobody") == nil, "nobody can be closed")
}

func refusesOperations(k *bench) {
	before := k.now()
	for _, row := range []struct{ name, arguments string }{
		{"fly", `{}`},
		{"find", `{"filter": {}, "colour": "red"}`},
		{"find", `{"filter": {}, "readConcern": {"level": "local", "colour": "red"}}`},
		{"bulkWrite", `{"requests": [{"insertOne": {"document": {}, "colour": "red"}}]}`},
	} {
		out := k.do("collection", row.name, row.arguments)
		k.failIf(out.Err == nil, "%s with %v succeeded", row.name, row.arguments)
		named := row.name == "fly" || strings.HasSuffix(row.arguments, `}, "colour": "red"}`)
		k.failIf(named && !unsupported(out.Err), "%s with %v: got %v, want an error that names what is missing", row.name, row.arguments, out.Err)
	}
	sent := k.seen(before, result.CommandStarted)
	k.failIf(len(sent) > 0, "%d commands were sent all the same", len(sent))
}

// ordersEvents: a command whose connection is closed under it.
func ordersEvents(k *bench) {
	k.insert()
	k.failPoint(`{"times": 1}`, `{"failCommands": ["find"], "closeConnection": true}`)
	before := k.now()
	k.must("collection", "find", all)
	log := k.events()
	k.failIf(len(log) == 0, "the log is empty")
	for i, e := range log {
		k.failIf(e.Sequence != int64(i)+1, "event %d has the number %d", i+1, e.Sequence)
		k.failIf(i > 0 && e.Time.Before(log[i-1].Time), "event %d is earlier than the one before", e.Sequence)
		if set := []bool{e.Command != nil, e.Pool != nil, e.SDAM != nil}; slices.Index(set, true) < 0 ||
			slices.Contains(set[slices.Index(set, true)+1:], true) {
			k.fail("event %d, %s, has not exactly one kind of fields", e.Sequence, e.Type)
		}
	}
	for _, e := range []result.Event{log[0], log[len(log)/2], log[len(log)-1]} {
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
	k.insert()
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
	k.must("collection", "find", all)
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
	out := k.do("client", engine.OpConfigureFailPoint, failCommand(`"off"`, `{}`))
	if out.Err != nil {
		k.check(out.Err)
	}
	k.failIf(out.Server == "", "the outcome does not name the server where the fail point is")
	if seen := k.seen(0, result.CommandStarted, result.CommandSucceeded); len(seen) > 0 {
		k.fail("%s of %s is in the log", seen[0].Type, seen[0].Command.CommandName)
	}
}

func reportsLSID(k *bench) {
	k.check(k.entity("session", "session", `{"client": "client"}`))
	// What was sent without the session must not be reported as sent with it.
	k.must("collection", "find", all)
	reported := k.must("session", engine.OpLSID, `{}`)
	k.must("collection", "find", `{"filter": {}, "session": "session"}`)
	sent := k.seen(0, result.CommandStarted)
	k.failIf(len(sent) != 2, "%d commands, want 2", len(sent))
	if lsid := sent[0].Command.Command.Lookup("lsid"); lsid.Equal(reported) {
		k.fail("it reports %v, which an operation without the session sent before", reported)
	}
	if lsid := sent[1].Command.Command.Lookup("lsid"); !lsid.Equal(reported) {
		k.fail("it reports %v and sends %v", reported, lsid)
	}
}

func reportsTopology(k *bench) {
	k.insert()
	v := k.must("client", engine.OpTopology, `{}`)
	var reported struct {
		Type    string
		Servers []struct{ Address, Type string }
	}
	doc, _ := v.DocumentOK()
	k.check(bson.Unmarshal(doc, &reported))
	k.failIf(reported.Type == "" || reported.Type == "Unknown" || len(reported.Servers) == 0, "got %v", v)
	for _, s := range reported.Servers {
		k.failIf(s.Address == "" || s.Type == "", "a server has no address or no type: %v", v)
	}
}

func ignoresDeadline(k *bench) {
	ctx, cancel := context.WithTimeout(k.ctx, limit/2)
	defer cancel()
	out := k.doIn(ctx, "collection", "find", all)
	k.failIf(out.Err != nil, "%v", out.Err)
	sent := k.seen(0, result.CommandStarted)
	k.failIf(len(sent) == 0, "no command was sent")
	if v := sent[0].Command.Command.Lookup("maxTimeMS"); v.Type != 0 {
		k.fail("the command carries maxTimeMS %v", v)
	}
}

// blocked is longer than a behaviour may take.
const blocked = 2 * limit

func cancels(k *bench) {
	k.insert()
	before := k.now()
	k.failPoint(`"alwaysOn"`, fmt.Sprintf(`{"failCommands": ["find"], "blockConnection": true, "blockTimeMS": %d}`, blocked.Milliseconds()))
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	outcomes := make(chan result.Outcome, 1)
	go func() { outcomes <- k.doIn(ctx, "collection", "find", all) }()
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
	k.insert()
	failures := make([]*result.Error, many)
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() {
			failures[i] = k.do("collection", "insertOne", fmt.Sprintf(`{"document": {"_id": %d}}`, 100+i)).Err
		})
	}
	wait.Wait()
	for _, err := range failures {
		k.failIf(err != nil, "%v", err)
	}
	n := k.count()
	k.failIf(n != many+1, "%d documents, want %d", n, many+1)
}

func keepsApart(k *bench) {
	t, err := k.engine.Begin(k.ctx)
	k.check(err)
	other := k.with(t)
	err = other.open()
	k.failIf(err != nil, "the same names in another test: %v", err)
	other.insert()
	sent := k.seen(0, result.CommandStarted)
	k.failIf(len(sent) > 0, "%d commands of another test in the log", len(sent))
	k.check(t.End(k.ctx))
	out := other.do("collection", "find", all)
	k.failIf(out.Err == nil && out.Broken == nil, "a test that has ended goes on")
	k.must("collection", "find", all)
}

func endsSessions(k *bench) {
	k.check(k.entity("session", "session", `{"client": "client"}`))
	k.must("collection", "find", `{"filter": {}, "session": "session"}`)
	reported := k.must("session", engine.OpLSID, `{}`)
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
			if v.Equal(reported) {
				n++
			}
		}
		k.failIf(n != 1, "the session is ended %d times: %v", n, ended)
		return
	}
	k.fail("the server does not learn that the session has ended")
}

func endsWrites(k *bench) {
	k.check(k.entity("collection", "silent", `{"database": "database", "collectionName": "`+k.collection+`",
		"collectionOptions": {"writeConcern": {"w": 0}}}`))
	k.failPoint(`{"times": 1}`, `{"failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 100}`)
	k.must("silent", "insertOne", `{"document": {"_id": 1}}`)
	k.written()
}

func logsGivenUp(k *bench) {
	k.check(k.entity("database", "admin", `{"client": "client", "databaseName": "admin"}`))
	k.failPoint(`{"times": 1}`, `{"failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 200}`)
	last := k.now()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	gaveUp := make(chan result.Outcome, 1)
	go func() {
		gaveUp <- k.doIn(ctx, "collection", "insertOne", `{"document": {"_id": 1}}`)
	}()
	// The server has begun when the fail point has struck for the only time.
	for struck := false; !struck; {
		v := k.must("admin", "runCommand", `{"commandName": "getParameter", "command": {"getParameter": 1, "failpoint.failCommand": 1}}`)
		doc, _ := v.DocumentOK()
		mode, ok := doc.Lookup("failpoint.failCommand", "mode").AsInt64OK()
		k.failIf(!ok, "getParameter returns no mode of failCommand: %v", v)
		struck = mode == 0
	}
	cancel()
	k.failIf((<-gaveUp).Err == nil, "the operation was given up, and returns no error")
	sent := k.sent(last, "insert")
	k.failIf(sent != 1, "%d inserts were sent, want the one that was given up", sent)
	for k.count() != 1 { // the server goes on: the next behaviour must not meet it
		k.check(k.ctx.Err())
	}
}

// written closes the client, and holds that its one insert is there then.
func (k *bench) written() {
	k.check(k.test.Close(k.ctx, "client"))
	next, err := k.engine.Begin(k.ctx)
	k.check(err)
	defer func() { _ = next.End(k.ctx) }()
	after := k.with(next)
	k.check(after.open())
	n := after.count()
	k.failIf(n != 1, "%d documents exist after the client was closed, want the one that was written", n)
}

// logsMessages: an engine without log messages refuses a client that asks for them.
func logsMessages(k *bench) {
	d, err := k.engine.Describe(k.ctx)
	k.check(err)
	asked := k.entity("client", "logged", `{"observeLogMessages": {"command": "debug"}}`)
	if !slices.Contains(d.Features, engine.FeatureLogging) {
		k.failIf(!unsupported(asked), "a client with observeLogMessages: got %v, want an error that names what is missing", asked)
		return
	}
	k.check(asked)
	k.check(k.entity("database", "loggedDatabase", `{"client": "logged", "databaseName": "utr-enginetest"}`))
	k.must("loggedDatabase", "runCommand", `{"commandName": "ping", "command": {"ping": 1}}`)
	reader, is := k.test.(engine.LogReader)
	k.failIf(!is, "it has the feature %q, and its tests are not LogReaders", engine.FeatureLogging)
	messages, err := reader.Logs(k.ctx, "logged")
	k.check(err)
	var got []string
	for _, m := range messages {
		text, _ := m.Data.Lookup("message").StringValueOK()
		got = append(got, fmt.Sprintf("%d %s %s %s", m.Sequence, m.Level, m.Component, text))
	}
	want := []string{"1 debug command Command started", "2 debug command Command succeeded"}
	k.failIf(!slices.Equal(got, want), "a ping logs %q, want %q", got, want)
}

func closesClients(k *bench) {
	k.insert()
	for range 2 {
		k.check(k.test.Close(k.ctx, "client"))
	}
	log := k.events()
	k.failIf(len(log) == 0 || log[len(log)-1].Type != result.TopologyClosed, "the last event is not that the topology is closed")
	closed := slices.ContainsFunc(log, func(e result.Event) bool { return e.Type == result.PoolClosed })
	k.failIf(!closed, "no pool was closed")
	out := k.do("collection", "find", all)
	k.failIf(out.Err == nil || !out.Err.Client, "an operation of a closed client: got %+v", out.Err)
}
