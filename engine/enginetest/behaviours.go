package enginetest

import (
	"context"
	"errors"
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
		{"gives outcomes in the format's shapes", "matchers know shapes, not drivers", givesShapes},
		{"gives the facts of errors", "expectError looks at each of them", givesErrors},
		{"numbers one log of all events", "the order between command, CMAP and SDAM events is what some suites are about", ordersEvents},
		{"waits for events", "waitForEvent must neither poll nor hang", waitsForEvents},
		{"keeps the runner's own commands out of the log", "a fail point is no part of a test, and has to be turned off where it was set", hidesFailPoints},
		{"tells a session's id", "$$sessionLsid is matched against it", tellsLSID},
		{"tells the topology", "pools are awaited, and primaries looked for, by it", tellsTopology},
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

func describes(k *bench) error {
	d, err := k.engine.Describe(k.ctx)
	if err != nil {
		return err
	}
	if d.Name == "" || d.SchemaVersion == "" {
		return fmt.Errorf("it has no name, or tells no schema version: %q, %q", d.Name, d.SchemaVersion)
	}
	if !slices.IsSorted(d.Operations) || len(slices.Compact(slices.Clone(d.Operations))) != len(d.Operations) {
		return fmt.Errorf("its operations are not in order, or some stand twice")
	}
	for _, o := range d.Operations {
		if kind, name, ok := strings.Cut(o, "."); !ok || kind == "" || name == "" {
			return fmt.Errorf("%q is no kind.name", o)
		}
	}
	if !d.Serves("collection", "find") || d.Serves("collection", "fly") {
		return fmt.Errorf("it does not serve collection.find, or serves collection.fly")
	}
	return nil
}

func refusesEntities(k *bench) error {
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
		if err := k.entity(row.kind, "refused", row.options); !unsupported(err) {
			return fmt.Errorf("%s with %v: got %v, want a lack that is named", row.kind, row.options, err)
		}
	}
	return nil
}

func refusesNames(k *bench) error {
	if err := k.entity("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "d"}}); err == nil || unsupported(err) {
		return fmt.Errorf("a name that is taken: got %v", err)
	}
	for _, client := range []string{"nobody", "collection"} {
		err := k.entity("database", "other", bson.D{{Key: "client", Value: client}, {Key: "databaseName", Value: "d"}})
		if err == nil || unsupported(err) {
			return fmt.Errorf("a database of the client %q: got %v", client, err)
		}
	}
	if out := k.do("nobody", "find", bson.D{{Key: "filter", Value: bson.D{}}}); out.Err == nil || out.Err.Unsupported != "" || !out.Err.Client {
		return fmt.Errorf("an operation on an object that is not there: got %v", out.Err)
	}
	if out := k.do("collection", "countDocuments", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "session", Value: "client"}}); out.Err == nil || !out.Err.Client {
		return fmt.Errorf("a session that is none: got %v", out.Err)
	}
	if _, err := k.test.Events(k.ctx, "nobody", 0, 0); err == nil {
		return errors.New("nobody has events")
	}
	if err := k.test.Close(k.ctx, "nobody"); err == nil {
		return errors.New("nobody can be closed")
	}
	return nil
}

func refusesOperations(k *bench) error {
	before, err := k.now()
	if err != nil {
		return err
	}
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
		if out.Err == nil {
			return fmt.Errorf("%s with %v succeeded", row.name, row.arguments)
		}
		if out.Err.Unsupported == "" && len(row.arguments) < 2 && row.name != "bulkWrite" {
			return fmt.Errorf("%s with %v: got %v, want a lack that is named", row.name, row.arguments, out.Err)
		}
	}
	if out := k.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "colour", Value: "red"}}); !unsupported(out.Err) {
		return fmt.Errorf("an argument that nobody knows: got %v, want a lack that is named", out.Err)
	}
	sent, err := k.seen(before, result.CommandStarted)
	if len(sent) > 0 {
		return fmt.Errorf("%d commands were sent all the same", len(sent))
	}
	return err
}

func givesShapes(k *bench) error {
	if err := k.fill(3); err != nil {
		return err
	}
	filter := func(d bson.D) bson.D { return bson.D{{Key: "filter", Value: d}} }
	document := func(v bson.RawValue) error {
		if v.Type != bson.TypeEmbeddedDocument {
			return fmt.Errorf("%s is no document", v.Type)
		}
		return nil
	}
	array := func(n int) func(bson.RawValue) error {
		return func(v bson.RawValue) error {
			a, ok := v.ArrayOK()
			if !ok {
				return fmt.Errorf("%s is no array", v.Type)
			}
			if values, err := a.Values(); err != nil || len(values) != n {
				return fmt.Errorf("%d items, want %d", len(values), n)
			}
			return nil
		}
	}
	number := func(n int64) func(bson.RawValue) error {
		return func(v bson.RawValue) error {
			if got, ok := v.AsInt64OK(); !ok || got != n {
				return fmt.Errorf("got %v, want %d", v, n)
			}
			return nil
		}
	}
	field := func(name string, is func(bson.RawValue) error) func(bson.RawValue) error {
		return func(v bson.RawValue) error {
			doc, ok := v.DocumentOK()
			if !ok {
				return fmt.Errorf("%s is no document", v.Type)
			}
			return is(doc.Lookup(name))
		}
	}
	of := func(types ...bson.Type) func(bson.RawValue) error {
		return func(v bson.RawValue) error {
			if !slices.Contains(types, v.Type) {
				return fmt.Errorf("got type %v, want one of %v", v.Type, types)
			}
			return nil
		}
	}
	for _, row := range []struct {
		object, name string
		arguments    bson.D
		is           func(bson.RawValue) error
	}{
		{"collection", "find", append(filter(bson.D{}), bson.E{Key: "batchSize", Value: 1}), array(3)},
		{"collection", "find", filter(bson.D{{Key: "_id", Value: 9}}), array(0)},
		{"collection", "findOne", filter(bson.D{{Key: "_id", Value: 1}}), document},
		{"collection", "findOne", filter(bson.D{{Key: "_id", Value: 9}}), of(bson.TypeNull)},
		{"collection", "aggregate", bson.D{{Key: "pipeline", Value: bson.A{}}}, array(3)},
		{"collection", "distinct", append(filter(bson.D{}), bson.E{Key: "fieldName", Value: "_id"}), array(3)},
		{"collection", "countDocuments", filter(bson.D{}), number(3)},
		{"collection", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 4}}}}, field("insertedId", number(4))},
		{"collection", "insertMany", bson.D{{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 5}}}}}, field("insertedIds", field("0", number(5)))},
		{"collection", "updateOne", append(filter(bson.D{{Key: "_id", Value: 6}}), bson.E{Key: "update", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}},
			bson.E{Key: "upsert", Value: true}), field("upsertedId", number(6))},
		{"collection", "deleteOne", filter(bson.D{{Key: "_id", Value: 6}}), field("deletedCount", number(1))},
		{"collection", "findOneAndDelete", filter(bson.D{{Key: "_id", Value: 9}}), of(bson.TypeNull)},
		{"collection", "bulkWrite", bson.D{{Key: "requests", Value: bson.A{bson.D{{Key: "deleteOne", Value: filter(bson.D{{Key: "_id", Value: 5}})}}}}},
			field("deletedCount", number(1))},
		{"database", "runCommand", bson.D{{Key: "commandName", Value: "ping"}, {Key: "command", Value: bson.D{{Key: "ping", Value: 1}}}}, field("ok", number(1))},
		{"database", "dropCollection", bson.D{{Key: "collection", Value: "nothing"}}, of(0)},
	} {
		v, err := k.must(row.object, row.name, row.arguments)
		if err == nil {
			err = row.is(v)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	return nil
}

func givesErrors(k *bench) error {
	if err := k.failPoint(once(), bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 11601},
		{Key: "errorLabels", Value: bson.A{"SomeLabel"}}}); err != nil {
		return err
	}
	out := k.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}})
	e := out.Err
	switch {
	case e == nil:
		return errors.New("a command that fails has no error")
	case e.Client || e.Timeout || !e.HasCode || e.Code != 11601 || e.CodeName != "Interrupted" || !e.HasLabel("SomeLabel") || e.Message == "":
		return fmt.Errorf("the facts of an error reply: got %+v", *e)
	case e.Response.Lookup("code").Type == 0:
		return errors.New("the reply is not there")
	case out.Server == "":
		return errors.New("the outcome names no server")
	}
	if err := k.fill(1); err != nil {
		return err
	}
	out = k.do("collection", "insertMany", bson.D{{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 1}}}}})
	if out.Err == nil || out.Err.Client || out.Err.Code != 11000 || len(out.Err.WriteErrors[1]) == 0 {
		return fmt.Errorf("the facts of a write error: got %+v", out.Err)
	}
	if err := k.failPoint(bson.D{{Key: "times", Value: 2}}, bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: true}}); err != nil {
		return err
	}
	out = k.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}})
	if out.Err == nil || !out.Err.Client || out.Err.HasCode || out.Err.Response != nil {
		return fmt.Errorf("the facts of a network error: got %+v", out.Err)
	}
	return nil
}

// ordersEvents: a command whose connection is closed under it.
func ordersEvents(k *bench) error {
	if err := k.fill(1); err != nil {
		return err
	}
	if err := k.failPoint(once(), bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: true}}); err != nil {
		return err
	}
	before, err := k.now()
	if err != nil {
		return err
	}
	if _, err := k.must("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); err != nil {
		return err
	}
	all, err := k.events()
	if err != nil {
		return err
	}
	for i, e := range all {
		if e.Sequence != int64(i)+1 {
			return fmt.Errorf("event %d has the number %d", i+1, e.Sequence)
		}
		if i > 0 && e.Time.Before(all[i-1].Time) {
			return fmt.Errorf("event %d is earlier than the one before", e.Sequence)
		}
		if set := []bool{e.Command != nil, e.Pool != nil, e.SDAM != nil}; slices.Index(set, true) < 0 ||
			slices.Contains(set[slices.Index(set, true)+1:], true) {
			return fmt.Errorf("event %d, %s, has not exactly one kind of fields", e.Sequence, e.Type)
		}
		if again, err := k.test.Events(k.ctx, "client", e.Sequence, 0); err != nil || len(again) > 0 && again[0].Sequence != e.Sequence+1 {
			return fmt.Errorf("reading after event %d: %v", e.Sequence, err)
		}
	}
	left := []result.EventType{result.ConnectionCheckedOut, result.CommandStarted, result.CommandFailed,
		result.ConnectionCheckedOut, result.CommandStarted, result.CommandSucceeded, result.ConnectionCheckedIn}
	for _, e := range all {
		if e.Sequence > before && len(left) > 0 && e.Type == left[0] {
			left = left[1:]
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("a find that is retried gives no %s where it belongs", left[0])
	}
	return nil
}

func waitsForEvents(k *bench) error {
	if err := k.fill(1); err != nil {
		return err
	}
	last, err := k.now()
	if err != nil {
		return err
	}
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
	if _, err := k.must("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); err != nil {
		return err
	}
	select {
	case a := <-answers:
		if a.err != nil || len(a.events) == 0 {
			return fmt.Errorf("waiting gave %d events, %v", len(a.events), a.err)
		}
	case <-k.ctx.Done():
		return errors.New("an event that came did not end the wait")
	}
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	const never = int64(1) << 60
	if events, err := k.test.Events(ctx, "client", never, limit); err == nil || len(events) > 0 {
		return fmt.Errorf("a wait whose context has ended gave %d events and no error", len(events))
	}
	if events, err := k.test.Events(k.ctx, "client", never, time.Millisecond); err != nil || len(events) > 0 {
		return fmt.Errorf("a wait for nothing gave %d events, %v", len(events), err)
	}
	return nil
}

func hidesFailPoints(k *bench) error {
	out := k.do("client", engine.OpConfigureFailPoint, bson.D{{Key: "command", Value: bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}}}})
	if out.Err != nil {
		return out.Err
	}
	if out.Server == "" {
		return errors.New("the outcome does not name the server where the fail point is")
	}
	seen, err := k.seen(0, result.CommandStarted, result.CommandSucceeded)
	if len(seen) > 0 {
		return fmt.Errorf("%s of %s is in the log", seen[0].Type, seen[0].Command.CommandName)
	}
	return err
}

func tellsLSID(k *bench) error {
	if err := k.entity("session", "session", bson.D{{Key: "client", Value: "client"}}); err != nil {
		return err
	}
	// What was sent without the session is not told to have been sent with it.
	if _, err := k.must("collection", "countDocuments", bson.D{{Key: "filter", Value: bson.D{}}}); err != nil {
		return err
	}
	told, err := k.must("session", engine.OpLSID, nil)
	if err != nil {
		return err
	}
	if _, err := k.must("collection", "countDocuments", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "session", Value: "session"}}); err != nil {
		return err
	}
	sent, err := k.seen(0, result.CommandStarted)
	if err != nil || len(sent) != 2 {
		return fmt.Errorf("%d commands, %v", len(sent), err)
	}
	if lsid := sent[0].Command.Command.Lookup("lsid"); lsid.Equal(told) {
		return fmt.Errorf("it tells %v, which an operation without the session sent before", told)
	}
	if lsid := sent[1].Command.Command.Lookup("lsid"); !lsid.Equal(told) {
		return fmt.Errorf("it tells %v and sends %v", told, lsid)
	}
	return nil
}

func tellsTopology(k *bench) error {
	if err := k.fill(1); err != nil {
		return err
	}
	v, err := k.must("client", engine.OpTopology, nil)
	if err != nil {
		return err
	}
	var told struct {
		Type    string
		Servers []struct{ Address, Type string }
	}
	doc, _ := v.DocumentOK()
	if err := bson.Unmarshal(doc, &told); err != nil {
		return err
	}
	if told.Type == "" || told.Type == "Unknown" || len(told.Servers) == 0 {
		return fmt.Errorf("got %v", v)
	}
	for _, s := range told.Servers {
		if s.Address == "" || s.Type == "" {
			return fmt.Errorf("a server has no address or no type: %v", v)
		}
	}
	return nil
}

func ignoresDeadline(k *bench) error {
	ctx, cancel := context.WithTimeout(k.ctx, limit/2)
	defer cancel()
	if out := k.doIn(ctx, "collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); out.Err != nil {
		return out.Err
	}
	sent, err := k.seen(0, result.CommandStarted)
	if err != nil || len(sent) == 0 {
		return fmt.Errorf("%d commands, %v", len(sent), err)
	}
	if v := sent[0].Command.Command.Lookup("maxTimeMS"); v.Type != 0 {
		return fmt.Errorf("the command carries maxTimeMS %v", v)
	}
	return nil
}

// blocked is longer than a behaviour may take.
const blocked = 2 * limit

func cancels(k *bench) error {
	if err := k.fill(1); err != nil {
		return err
	}
	before, err := k.now()
	if err != nil {
		return err
	}
	if err := k.failPoint("alwaysOn", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true},
		{Key: "blockTimeMS", Value: blocked.Milliseconds()}}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	outcomes := make(chan result.Outcome, 1)
	go func() { outcomes <- k.doIn(ctx, "collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}) }()
	for {
		started, err := k.seen(before, result.CommandStarted)
		if err != nil {
			return err
		}
		if len(started) > 0 {
			break
		}
		last, err := k.now()
		if err != nil {
			return err
		}
		if _, err := k.test.Events(k.ctx, "client", last, 20*time.Millisecond); err != nil {
			return err
		}
	}
	cancel()
	select {
	case out := <-outcomes:
		if out.Err == nil || !out.Err.Client || out.Err.Timeout {
			return fmt.Errorf("got %+v", out.Err)
		}
	case <-k.ctx.Done():
		return errors.New("the operation goes on")
	}
	taken, err := k.seen(0, result.ConnectionCheckedOut)
	if err != nil {
		return err
	}
	returned, err := k.seen(0, result.ConnectionCheckedIn)
	if len(taken) != len(returned) {
		return fmt.Errorf("%d connections were taken, and %d given back when the operation had ended", len(taken), len(returned))
	}
	return err
}

func worksAtOnce(k *bench) error {
	const many = 16
	if err := k.fill(1); err != nil {
		return err
	}
	failures := make([]error, many)
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() {
			_, failures[i] = k.must("collection", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 100 + i}}}})
		})
	}
	wait.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	v, err := k.must("collection", "countDocuments", bson.D{{Key: "filter", Value: bson.D{}}})
	if n, _ := v.AsInt64OK(); err == nil && n != many+1 {
		err = fmt.Errorf("%d documents, want %d", n, many+1)
	}
	return err
}

func keepsApart(k *bench) error {
	t, err := k.engine.Begin(k.ctx)
	if err != nil {
		return err
	}
	other := &bench{ctx: k.ctx, engine: k.engine, test: t, uri: k.uri}
	if err := other.open(); err != nil {
		return fmt.Errorf("the same names in another test: %w", err)
	}
	if err := other.fill(1); err != nil {
		return err
	}
	if sent, err := k.seen(0, result.CommandStarted); err != nil || len(sent) > 0 {
		return fmt.Errorf("%d commands of another test in the log, %v", len(sent), err)
	}
	if err := t.End(k.ctx); err != nil {
		return err
	}
	if out := other.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); out.Err == nil {
		return errors.New("a test that has ended goes on")
	}
	_, err = k.must("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}})
	return err
}

func killsCursors(k *bench) error {
	if err := k.fill(5); err != nil {
		return err
	}
	out := k.saveIn(k.ctx, "collection", "createFindCursor", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "batchSize", Value: 2}}, "cursor")
	if out.Err != nil {
		return out.Err
	}
	v, err := k.must("cursor", "iterateUntilDocumentOrError", nil)
	if err != nil || v.Type != bson.TypeEmbeddedDocument {
		return fmt.Errorf("the first document: %v, %v", v, err)
	}
	for range 2 {
		if err := k.test.Close(k.ctx, "cursor"); err != nil {
			return err
		}
	}
	killed, err := k.sent(0, "killCursors")
	if killed != 1 {
		return fmt.Errorf("%d times killCursors, want one", killed)
	}
	return err
}

func endsSessions(k *bench) error {
	if err := k.entity("session", "session", bson.D{{Key: "client", Value: "client"}}); err != nil {
		return err
	}
	if _, err := k.must("collection", "countDocuments", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "session", Value: "session"}}); err != nil {
		return err
	}
	told, err := k.must("session", engine.OpLSID, nil)
	if err != nil {
		return err
	}
	for _, id := range []string{"session", "session", "client"} {
		if err := k.test.Close(k.ctx, id); err != nil {
			return err
		}
	}
	sent, err := k.seen(0, result.CommandStarted)
	if err != nil {
		return err
	}
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
		if n != 1 {
			return fmt.Errorf("the session is ended %d times: %v", n, ended)
		}
		return nil
	}
	return errors.New("the server is not told that the session has ended")
}

func endsWrites(k *bench) error {
	if err := k.fill(0); err != nil {
		return err
	}
	err := k.entity("collection", "silent", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: collectionName},
		{Key: "collectionOptions", Value: bson.D{{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 0}}}}}})
	if err != nil {
		return err
	}
	if err := k.failPoint(once(), bson.D{{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 100}}); err != nil {
		return err
	}
	if _, err := k.must("silent", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}}); err != nil {
		return err
	}
	return k.written()
}

func endsGivenUp(k *bench) error {
	if err := k.fill(0); err != nil {
		return err
	}
	if err := k.entity("database", "admin", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "admin"}}); err != nil {
		return err
	}
	if err := k.failPoint(once(), bson.D{{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 200}}); err != nil {
		return err
	}
	last, err := k.now()
	if err != nil {
		return err
	}
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
		v, err := k.must("admin", "runCommand", ask)
		if err != nil {
			return err
		}
		doc, _ := v.DocumentOK()
		mode, ok := doc.Lookup(name, "mode").AsInt64OK()
		if !ok {
			return fmt.Errorf("getParameter tells no mode of failCommand: %v", v)
		}
		struck = mode == 0
	}
	cancel()
	if out := <-gaveUp; out.Err == nil {
		return errors.New("the operation was given up, and gives no error")
	}
	sent, err := k.sent(last, "insert")
	if err != nil {
		return err
	}
	if sent != 1 {
		return fmt.Errorf("%d inserts were sent, want the one that was given up", sent)
	}
	return k.written()
}

// written closes the client, and holds that its one insert is there then.
func (k *bench) written() error {
	if err := k.test.Close(k.ctx, "client"); err != nil {
		return err
	}
	next, err := k.engine.Begin(k.ctx)
	if err != nil {
		return err
	}
	after := &bench{ctx: k.ctx, engine: k.engine, test: next, uri: k.uri}
	count := func() error {
		if err := after.open(); err != nil {
			return err
		}
		n, err := after.must("collection", "countDocuments", bson.D{{Key: "filter", Value: bson.D{}}})
		if err == nil && n.AsInt64() != 1 {
			err = fmt.Errorf("%d documents are there after the client was closed, want the one that was written", n.AsInt64())
		}
		return err
	}
	return errors.Join(count(), next.End(k.ctx))
}

func closesClients(k *bench) error {
	if err := k.fill(1); err != nil {
		return err
	}
	for range 2 {
		if err := k.test.Close(k.ctx, "client"); err != nil {
			return err
		}
	}
	all, err := k.events()
	if err != nil {
		return err
	}
	if len(all) == 0 || all[len(all)-1].Type != result.TopologyClosed {
		return errors.New("the last event is not that the topology is closed")
	}
	if !slices.ContainsFunc(all, func(e result.Event) bool { return e.Type == result.PoolClosed }) {
		return errors.New("no pool was closed")
	}
	if out := k.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); out.Err == nil || !out.Err.Client {
		return fmt.Errorf("an operation of a closed client: got %+v", out.Err)
	}
	return nil
}
