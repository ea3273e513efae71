package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/trial"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// Behaviors returns all behaviors.
func Behaviors() []Behavior {
	return []Behavior{
		{"describes itself", "the runner checks capabilities, and reports include the name of the engine", false, describes},
		{"finds what it inserted, and logs the commands", "all suites and the other behaviors need it", true, finds},
		{"rejects unknown kinds and options of entities",
			"a test without one of its options would pass or fail for another reason", false, rejectsEntities},
		{"applies uriOptions", "a client with the default options would pass or fail for another reason", false,
			appliesOptions},
		{"rejects names that are in use or unknown",
			"the format requires an error, and the runner relies on the engine for it", false, rejectsNames},
		{"rejects unknown operations and arguments",
			"the test must be skipped with the capability as its reason, before anything is sent", false, rejectsOperations},
		{"logs all events in order", "some suites test the order of command, CMAP and SDAM events", false, ordersEvents},
		{"waits for events", "waitForEvent must neither poll nor hang", false, waitsForEvents},
		{"does not log the runner's own commands",
			"a fail point is not part of a test, and must be turned off on the server where it was set", false, hidesFailPoints},
		{"reports the id of a session", "$$sessionLsid is matched against it", false, reportsLSID},
		{"reports the topology", "the runner uses it to wait for pools and to find primaries", false, reportsTopology},
		{"does not treat a caller's deadline as timeoutMS", "the time limit of a test must not change the commands",
			false, ignoresDeadline},
		{"cancels an operation", "a test that hangs must end without leaking a connection", false, cancels},
		{"performs operations concurrently", "tests have threads and run concurrently", false, worksConcurrently},
		{"isolates tests", "the set-up of one test can overlap with the end of another", false, isolatesTests},
		{"performs tests concurrently", "several workers share an adapter; a test that waited for another one would run into a time limit", false, performsTests},
		{"ends sessions", "sessions must not outlive a test", false, endsSessions},
		{"completes unacknowledged writes",
			"a write after the end of its test would change the initial data of the next test", false, completesWrites},
		{"logs canceled commands", "the runner waits until the server has finished them, because otherwise they could trigger fail points of the next test", false, logsCanceled},
		{"returns the log messages that a client observes",
			"expectLogMessages matches them; a client without log messages would look silent", false, logsMessages},
		{"closes clients permanently", "later events would belong to no test; earlier ones must still be readable",
			false, closesClients},
	}
}

func describes(k *bench) {
	d, err := k.engine.Describe(k.ctx)
	k.check(err)
	k.failIf(d.Name == "" || d.SchemaVersion == "", "the name or schema version is empty: %q, %q", d.Name, d.SchemaVersion)
	k.failIf(!slices.IsSorted(d.Operations) || len(slices.Compact(slices.Clone(d.Operations))) != len(d.Operations),
		"the operations are not sorted, or contain duplicates")
	for _, o := range d.Operations {
		kind, name, _ := strings.Cut(o, ".")
		k.failIf(kind == "" || name == "", "the operation %q is not kind.name", o)
	}
	for o := range d.Lacks {
		k.failIf(slices.Contains(d.Operations, o), "it supports %s, and lacks it", o)
	}
	for _, m := range d.Events {
		k.failIf(result.EventTypes(m) == nil, "the kind of events %q is unknown", m)
	}
	k.failIf(!d.Logs(result.MonitorCommand), "clients do not log command events, which every engine must have")
	k.failIf(!d.Supports("collection", "find") || d.Supports("collection", "fly"),
		"it does not support collection.find, or supports collection.fly")
}

func finds(k *bench) {
	k.must("collection", "insertOne", `{"document": {"_id": 7}}`)
	n := k.count()
	k.failIf(n != 1, "a find after an insert returned %s, want the inserted one", plural.Of(n, "document"))
	var sent []string
	for _, e := range k.seen(0, result.CommandStarted) {
		sent = append(sent, e.CommandName)
	}
	k.failIf(!slices.Equal(sent, []string{"insert", "find"}),
		"the log of the client has a commandStartedEvent of %q, want insert and find", sent)
}

func rejectsEntities(k *bench) {
	for _, row := range []struct{ kind, options string }{
		{"submarine", `{}`},
		{"client", `{"color": "red"}`},
		{"database", `{"client": "client", "databaseName": "d", "color": "red"}`},
		{"collection", `{"database": "database", "collectionName": "c", "collectionOptions": {"color": "red"}}`},
		{"session", `{"client": "client", "sessionOptions": {"color": "red"}}`},
	} {
		err := k.entity(row.kind, "rejected", row.options)
		k.failIf(!unsupported(err), "%s with %v: got %s, want an error that names what is unsupported", row.kind,
			row.options, raised(err))
	}
}

func appliesOptions(k *bench) {
	k.insert()
	k.check(k.entity("client", "once", `{"uriOptions": {"retryReads": false, "maxPoolSize": 10}}`))
	k.check(k.entity("database", "onceDatabase", `{"client": "once", "databaseName": "utr-enginetest"}`))
	k.check(k.entity("collection", "onceCollection", `{"database": "onceDatabase", "collectionName": "c"}`))
	k.failPoint(`{"times": 1}`, `{"failCommands": ["find"], "closeConnection": true}`)
	out := k.do("onceCollection", "find", all)
	k.failIf(out.Err == nil, "with retryReads false, a find succeeded after its connection was closed")
	k.failIf(out.Err.Unsupported != "" || !out.Err.Client,
		"no server replied to a find, so its error must have client: true, but it is %+v", out.Err)
}

func rejectsNames(k *bench) {
	for _, row := range []struct{ reason, id, client string }{
		{"a name in use", "database", "client"},
		{"a database of an unknown client", "other", "nobody"},
		{"a database of a collection", "other", "collection"},
	} {
		err := k.entity("database", row.id, `{"client": "`+row.client+`", "databaseName": "d"}`)
		k.failIf(err == nil || unsupported(err), "%s: got %s, want an error that is not about something unsupported",
			row.reason, raised(err))
	}
	out := k.do("nobody", "find", all)
	k.failIf(out.Broken == nil && (out.Err == nil || out.Err.Unsupported != "" || !out.Err.Client),
		"an operation on an unknown object: got %s, want an error with client: true", raised(out.Err))
	out = k.do("collection", "find", `{"filter": {}, "session": "client"}`)
	k.failIf(out.Broken == nil && (out.Err == nil || !out.Err.Client && out.Err.Unsupported == ""),
		"an entity that is not a session: got %s, want an error with client: true, or one that names what is unsupported",
		raised(out.Err))
	_, err := k.test.Events(k.ctx, "nobody", 0, 0)
	k.failIf(err == nil, "an unknown client has events")
	k.failIf(k.test.Close(k.ctx, "nobody") == nil, "an unknown entity can be closed")
}

func rejectsOperations(k *bench) {
	before := k.now()
	for _, row := range []struct{ name, arguments string }{
		{"fly", `{}`},
		{"find", `{"filter": {}, "color": "red"}`},
		{"find", `{"filter": {}, "readConcern": {"level": "local", "color": "red"}}`},
		{"bulkWrite", `{"requests": [{"insertOne": {"document": {}, "color": "red"}}]}`},
	} {
		out := k.do("collection", row.name, row.arguments)
		k.failIf(out.Err == nil, "%s with %v succeeded", row.name, row.arguments)
		named := row.name == "fly" || strings.HasSuffix(row.arguments, `}, "color": "red"}`)
		k.failIf(named && !unsupported(out.Err), "%s with %v: got %s, want an error that names what is unsupported", row.name,
			row.arguments, raised(out.Err))
	}
	sent := k.seen(before, result.CommandStarted)
	k.failIf(len(sent) > 0, "it sent %s", plural.Of(len(sent), "command"))
}

// ordersEvents closes the connection of a find.
func ordersEvents(k *bench) {
	k.insert()
	k.failPoint(`{"times": 1}`, `{"failCommands": ["find"], "closeConnection": true}`)
	before := k.now()
	k.must("collection", "find", all)
	log := k.events()
	k.failIf(len(log) == 0, "the log is empty")
	for i, e := range log {
		k.failIf(e.Sequence != int64(i)+1, "event %d has sequence %d", i+1, e.Sequence)
		k.failIf(i > 0 && e.Time.Before(log[i-1].Time), "event %d has an earlier time than its predecessor", e.Sequence)
	}
	for _, e := range []result.Event{log[0], log[len(log)/2], log[len(log)-1]} {
		later, err := k.test.Events(k.ctx, "client", e.Sequence, 0)
		k.failIf(err != nil || len(later) > 0 && later[0].Sequence != e.Sequence+1,
			"reading after event %d: got %s from event %d on, and %s",
			e.Sequence, plural.Of(len(later), "event"), first(later), raised(err))
	}
	missing := []result.EventType{result.ConnectionCheckedOut, result.CommandStarted, result.CommandFailed,
		result.ConnectionCheckedOut, result.CommandStarted, result.CommandSucceeded, result.ConnectionCheckedIn}
	if !k.logs(result.MonitorCMAP) {
		missing = slices.DeleteFunc(missing, func(t result.EventType) bool { return t.Monitor() == result.MonitorCMAP })
	}
	for _, e := range log {
		if e.Sequence > before && len(missing) > 0 && e.Type == missing[0] {
			missing = missing[1:]
		}
	}
	k.failIf(len(missing) > 0, "the events of a retried find lack %s, or are in another order", missing)
}

func waitsForEvents(k *bench) {
	k.insert()
	last := k.now()
	started := func(e result.Event) bool { return e.Type == result.CommandStarted }
	waited := make(chan error, 1)
	go func() {
		for after := last; ; {
			events, err := k.test.Events(k.ctx, "client", after, limit)
			if err == nil && len(events) == 0 {
				err = errors.New("no events")
			}
			if err != nil || slices.ContainsFunc(events, started) {
				waited <- err
				return
			}
			after = events[len(events)-1].Sequence
		}
	}()
	k.must("collection", "find", all)
	select {
	case err := <-waited:
		k.failIf(err != nil, "a wait returned %v", err)
	case <-k.ctx.Done():
		k.fail("an event did not end the wait")
	}
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	const never = int64(1) << 60
	events, err := k.test.Events(ctx, "client", never, limit)
	k.failIf(err == nil || len(events) > 0, "a wait with a canceled context returned %s and no error",
		plural.Of(len(events), "event"))
	events, err = k.test.Events(k.ctx, "client", never, time.Millisecond)
	k.failIf(err != nil || len(events) > 0, "a wait without an event returned %s, and %s",
		plural.Of(len(events), "event"), raised(err))
}

func hidesFailPoints(k *bench) {
	out := k.must("client", engine.OpConfigureFailPoint, trial.FailCommand(`"off"`, `{}`))
	_, _, err := net.SplitHostPort(out.Server)
	k.failIf(err != nil, "the outcome names %q, want host:port of the server of the fail point", out.Server)
	if seen := k.seen(0, result.CommandStarted, result.CommandSucceeded); len(seen) > 0 {
		k.fail("%s of %s is in the log", seen[0].Type, seen[0].CommandName)
	}
}

func reportsLSID(k *bench) {
	k.check(k.entity("session", "session", `{"client": "client"}`))
	// A find without the session must use another id.
	k.must("collection", "find", all)
	reported := k.must("session", engine.OpLSID, `{}`).Value
	k.must("collection", "find", `{"filter": {}, "session": "session"}`)
	sent := k.seen(0, result.CommandStarted)
	k.failIf(len(sent) != 2, "it sent %s, want 2", plural.Of(len(sent), "command"))
	without, with := sent[0].Body.Lookup("lsid"), sent[1].Body.Lookup("lsid")
	k.failIf(without.Equal(reported.RawValue), "it reports %s, which an operation without the session sent",
		shown(reported))
	k.failIf(!with.Equal(reported.RawValue), "it reports %s and sends %s", shown(reported),
		shown(result.Value{RawValue: with}))
}

func reportsTopology(k *bench) {
	k.insert()
	v := k.must("client", engine.OpTopology, `{}`).Value
	var reported struct {
		Type    string
		Servers []struct{ Address, Type string }
	}
	k.failIf(v.Unmarshal(&reported) != nil, "the topology is %s, want a document with type and servers", shown(v))
	primary := writable[reported.Type]
	k.failIf(primary == nil, "the type of a topology that accepted an insert is one of %q, got %s",
		slices.Sorted(maps.Keys(writable)), shown(v))
	found := false
	for _, s := range reported.Servers {
		_, _, err := net.SplitHostPort(s.Address)
		k.failIf(err != nil || !slices.Contains(serverTypes, s.Type), "a server has no host:port or an unknown type: %s",
			shown(v))
		found = found || slices.Contains(primary, s.Type)
	}
	k.failIf(!found, "a %s topology that accepted an insert has a server of the type %q, got %s", reported.Type,
		primary, shown(v))
	for _, e := range k.seen(0, result.ServerDescriptionChanged, result.TopologyDescriptionChanged) {
		for _, d := range []*result.TopologyState{e.Previous, e.New} {
			known := d != nil && (e.Type == result.ServerDescriptionChanged && slices.Contains(serverTypes, d.Type) ||
				e.Type == result.TopologyDescriptionChanged &&
					(writable[d.Type] != nil || d.Type == "Unknown" || d.Type == "ReplicaSetNoPrimary"))
			k.failIf(!known, "a description in %s is missing or has an unknown type: %+v", e.Type, d)
		}
	}
}

// writable maps topology types to the types of the servers that accept writes (Server Discovery and Monitoring,
// "TopologyType"). The others are Unknown and ReplicaSetNoPrimary.
var writable = map[string][]string{
	"Single":                {"Standalone", "RSPrimary", "Mongos"},
	"ReplicaSetWithPrimary": {"RSPrimary"},
	"Sharded":               {"Mongos"},
	"LoadBalanced":          {"LoadBalancer"},
}

// serverTypes are the types of servers (Server Discovery and Monitoring, "ServerType").
var serverTypes = []string{"Standalone", "Mongos", "PossiblePrimary", "RSPrimary", "RSSecondary",
	"RSArbiter", "RSOther",
	"RSGhost", "LoadBalancer", "Unknown"}

func ignoresDeadline(k *bench) {
	ctx, cancel := context.WithTimeout(k.ctx, limit/2)
	defer cancel()
	out := k.doIn(ctx, "collection", "find", all)
	k.failIf(out.Err != nil, "%v", out.Err)
	sent := k.seen(0, result.CommandStarted)
	k.failIf(len(sent) == 0, "no command was sent")
	v := sent[0].Body.Lookup("maxTimeMS")
	k.failIf(v.Type != 0, "the command has maxTimeMS %v", v)
}

// blocked is longer than the time limit of a behavior.
const blocked = 2 * limit

func cancels(k *bench) {
	k.insert()
	before := k.now()
	k.failPoint(`"alwaysOn"`, fmt.Sprintf(`{"failCommands": ["find"], "blockConnection": true, "blockTimeMS": %d}`,
		blocked.Milliseconds()))
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	outcomes := make(chan result.Outcome, 1)
	go func() { outcomes <- k.doIn(ctx, "collection", "find", all) }()
	for len(k.seen(before, result.CommandStarted)) == 0 {
		_, err := k.test.Events(k.ctx, "client", k.now(), 20*time.Millisecond)
		k.check(err)
	}
	cancel()
	select {
	case out := <-outcomes:
		k.check(out.Broken)
		k.failIf(out.Err == nil || !out.Err.Client || out.Err.Timeout, "got %+v", out.Err)
	case <-k.ctx.Done():
		k.fail("the operation did not end")
	}
	out := k.seen(0, result.ConnectionCheckedOut)
	in := k.seen(0, result.ConnectionCheckedIn)
	k.failIf(len(out) != len(in), "it checked out %s, but had checked in %d when the operation ended",
		plural.Of(len(out), "connection"), len(in))
}

func worksConcurrently(k *bench) {
	const many = 16
	k.insert()
	failures := make(chan *result.Error, many)
	for i := range many {
		go func() {
			failures <- k.do("collection", "insertOne", fmt.Sprintf(`{"document": {"_id": %d}}`, 100+i)).Err
		}()
	}
	for range many {
		err := <-failures
		k.failIf(err != nil, "%v", err)
	}
	n := k.count()
	k.failIf(n != many+1, "%s, want %d", plural.Of(n, "document"), many+1)
}

func isolatesTests(k *bench) {
	t, err := k.engine.Begin(k.ctx)
	k.check(err)
	other := k.with(t)
	err = other.open()
	k.failIf(err != nil, "the same names in another test: %v", err)
	other.insert()
	sent := k.seen(0, result.CommandStarted)
	k.failIf(len(sent) > 0, "the log has %s of another test", plural.Of(len(sent), "command"))
	k.check(t.End(k.ctx))
	out := other.do("collection", "find", all)
	k.failIf(out.Err == nil && out.Broken == nil, "a find succeeded after the end of its test")
	k.must("collection", "find", all)
}

// performsTests plays a whole test while an operation of this one is blocked.
func performsTests(k *bench) {
	k.insert()
	// On a busy machine, the operation may end before the other test.
	for block := time.Second; ; block *= 2 {
		k.failIf(block > limit/8, "a test ended only after an operation of another test")
		before := k.now()
		k.failPoint(`{"times": 1}`,
			fmt.Sprintf(`{"failCommands": ["find"], "blockConnection": true, "blockTimeMS": %d}`, block.Milliseconds()))
		found := make(chan result.Outcome, 1)
		go func() { found <- k.do("collection", "find", all) }()
		for len(k.seen(before, result.CommandStarted)) == 0 {
			_, err := k.test.Events(k.ctx, "client", k.now(), 20*time.Millisecond)
			k.check(err)
		}
		t, err := k.engine.Begin(k.ctx)
		k.check(err)
		other := k.with(t)
		k.check(other.open())
		other.insert()
		k.check(t.End(k.ctx))
		late := len(found) > 0
		out := <-found
		k.failIf(out.Err != nil, "a find during another test: %v", out.Err)
		k.check(out.Broken)
		if !late {
			return
		}
	}
}

func endsSessions(k *bench) {
	k.check(k.entity("session", "session", `{"client": "client"}`))
	k.must("collection", "find", `{"filter": {}, "session": "session"}`)
	reported := k.must("session", engine.OpLSID, `{}`).Value
	for _, id := range []string{"session", "session", "client"} {
		k.check(k.test.Close(k.ctx, id))
	}
	n := 0
	for _, e := range k.seen(0, result.CommandStarted) {
		ended, _ := e.Body.Lookup("endSessions").ArrayOK()
		values, _ := ended.Values()
		for _, v := range values {
			if v.Equal(reported.RawValue) {
				n++
			}
		}
	}
	k.failIf(n != 1, "endSessions ended the session %s", plural.Of(n, "time"))
}

// completesWrites holds for engines that do not support unacknowledged writes.
func completesWrites(k *bench) {
	k.check(k.entity("collection", "silent", `{"database": "database", "collectionName": "`+k.collection+`",
		"collectionOptions": {"writeConcern": {"w": 0}}}`))
	k.failPoint(`{"times": 1}`, `{"failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 500}`)
	if out := k.do("silent", "insertOne", `{"document": {"_id": 1}}`); out.Err != nil {
		k.failIf(out.Err.Unsupported == "", "insertOne with w: 0: got %s, want none", raised(out.Err))
		return
	}
	k.check(k.test.Close(k.ctx, "client"))
	next, err := k.engine.Begin(k.ctx)
	k.check(err)
	defer func() { _ = next.End(k.ctx) }()
	after := k.with(next)
	k.check(after.open())
	n := after.count()
	k.failIf(n != 1, "after the client was closed there are %s, want the inserted one", plural.Of(n, "document"))
}

func logsCanceled(k *bench) {
	k.check(k.entity("database", "admin", `{"client": "client", "databaseName": "admin"}`))
	inserted := 0
	// On a busy machine, the insert may end before it is canceled. One that is blocked for over a second may end with its
	// connection.
	for block := 200 * time.Millisecond; ; block *= 2 {
		k.failIf(block > 800*time.Millisecond, "a canceled operation returned no error")
		k.failPoint(`{"times": 1}`,
			fmt.Sprintf(`{"failCommands": ["insert"], "blockConnection": true, "blockTimeMS": %d}`, block.Milliseconds()))
		last := k.now()
		err := k.cancelInsert()
		other := func(e result.Event) bool { return e.CommandName != "insert" }
		sent := slices.DeleteFunc(k.seen(last, result.CommandStarted), other)
		k.failIf(len(sent) != 1, "the log has %s, want the canceled one", plural.Of(len(sent), "insert"))
		for inserted++; k.count() != inserted; { // wait for the server, before the next behavior
			k.check(k.ctx.Err())
		}
		if err != nil {
			return
		}
	}
}

// cancelInsert cancels an insert when it has triggered a fail point with times: 1, and returns its error.
func (k *bench) cancelInsert() *result.Error {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	canceled := make(chan result.Outcome, 1)
	go func() { canceled <- k.doIn(ctx, "collection", "insertOne", `{"document": {}}`) }()
	for triggered := false; !triggered; {
		v := k.must("admin", "runCommand",
			`{"commandName": "getParameter", "command": {"getParameter": 1, "failpoint.failCommand": 1}}`)
		doc, _ := v.Value.DocumentOK()
		mode, ok := doc.Lookup("failpoint.failCommand", "mode").AsInt64OK()
		k.failIf(!ok, "getParameter returns no mode of failCommand: %v", doc)
		triggered = mode == 0
	}
	cancel()
	return (<-canceled).Err
}

// logsMessages also checks that engines without log messages reject observeLogMessages.
func logsMessages(k *bench) {
	d, err := k.engine.Describe(k.ctx)
	k.check(err)
	opened := k.entity("client", "logged", `{"observeLogMessages": {"command": "debug"}}`)
	if !slices.Contains(d.Features, engine.FeatureLogging) {
		k.failIf(!unsupported(opened),
			"a client with observeLogMessages: got %s, want an error that names what is unsupported", raised(opened))
		return
	}
	k.check(opened)
	k.check(k.entity("database", "loggedDatabase", `{"client": "logged", "databaseName": "utr-enginetest"}`))
	k.must("loggedDatabase", "runCommand", `{"commandName": "ping", "command": {"ping": 1}}`)
	messages, err := k.test.Logs(k.ctx, "logged")
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
	k.check(k.test.Close(k.ctx, "client"))
	err := k.test.Close(k.ctx, "client")
	k.failIf(err != nil, "the second close of a client must succeed: %v", err)
	log := k.events()
	if k.logs(result.MonitorSDAM) {
		k.failIf(log[len(log)-1].Type != result.TopologyClosed, "the last event is %s, want topologyClosedEvent",
			log[len(log)-1].Type)
	}
	if k.logs(result.MonitorCMAP) {
		closed := slices.ContainsFunc(log, func(e result.Event) bool { return e.Type == result.PoolClosed })
		k.failIf(!closed, "no pool was closed")
	}
	out := k.do("collection", "find", all)
	k.failIf(out.Err == nil || !out.Err.Client, "an operation on a closed client: got %+v", out.Err)
}
