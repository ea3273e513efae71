package sweep

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/net/relay"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// departure is what a server does in place of what it must do. Either function may be nil.
type departure struct {
	what    string
	on      embedded.Topology
	rules   string // each has a test that must fail
	request func(bson.D) bson.D
	reply   func(request, reply bson.D) bson.D
}

func has(d bson.D, name string) bool {
	return slices.ContainsFunc(d, func(e bson.E) bool { return e.Key == name })
}

func without(d bson.D, names ...string) bson.D {
	return slices.DeleteFunc(slices.Clone(d), func(e bson.E) bool { return slices.Contains(names, e.Key) })
}

// with returns a document with another value of a field, or with a new one.
func with(d bson.D, name string, value any) bson.D {
	out := slices.Clone(d)
	if i := slices.IndexFunc(out, func(e bson.E) bool { return e.Key == name }); i >= 0 {
		out[i].Value = value
		return out
	}
	return append(out, bson.E{Key: name, Value: value})
}

func valueOf(d bson.D, name string) any {
	if i := slices.IndexFunc(d, func(e bson.E) bool { return e.Key == name }); i >= 0 {
		return d[i].Value
	}
	return nil
}

// bySuite reports whether a test has sent a command: it has a session, unlike commands of handshakes and monitoring,
// and hello is sent to the suites' database, unlike the hello of the runner.
func bySuite(request bson.D) bool {
	greets := len(request) > 0 && (request[0].Key == "hello" || request[0].Key == "isMaster")
	return has(request, "lsid") && (!greets || valueOf(request, "$db") == "utr-server")
}

// replying changes the replies to some commands of tests.
func replying(to string, change func(reply bson.D) bson.D) func(request, reply bson.D) bson.D {
	return func(request, reply bson.D) bson.D {
		if bySuite(request) && slices.Contains(strings.Fields(to), request[0].Key) {
			return change(reply)
		}
		return reply
	}
}

// lacking removes fields of the replies to some commands.
func lacking(to string, fields ...string) func(request, reply bson.D) bson.D {
	return replying(to, func(reply bson.D) bson.D { return without(reply, fields...) })
}

// setting sets a field that replies to some commands have.
func setting(to, field string, value any) func(request, reply bson.D) bson.D {
	return replying(to, func(reply bson.D) bson.D {
		if has(reply, field) {
			return with(reply, field, value)
		}
		return reply
	})
}

// cursorID replaces the id of a cursor, if it is zero or not.
func cursorID(to string, zero bool, id int64) func(request, reply bson.D) bson.D {
	return replying(to, func(reply bson.D) bson.D {
		cursor, ok := valueOf(reply, "cursor").(bson.D)
		if n, _ := valueOf(cursor, "id").(int64); !ok || (n == 0) != zero {
			return reply
		}
		return with(reply, "cursor", with(cursor, "id", id))
	})
}

var departures = []departure{
	{what: "hello lacks logicalSessionTimeoutMinutes", on: embedded.ReplicaSet, rules: "S2",
		reply: lacking("hello isMaster", "logicalSessionTimeoutMinutes")},
	{what: "batches are smaller", on: embedded.Standalone, rules: "S1",
		reply: setting("hello isMaster", "maxWriteBatchSize", int32(1000))},
	{what: "the wire version is another", on: embedded.ReplicaSet, rules: "S3",
		reply: setting("hello isMaster", "maxWireVersion", int32(12))},
	{what: "hello lacks topologyVersion", on: embedded.ReplicaSet, rules: "S5 S11",
		reply: lacking("hello isMaster", "topologyVersion")},
	{what: "a standalone has a setName", on: embedded.Standalone, rules: "S6",
		reply: replying("hello", func(reply bson.D) bson.D { return with(reply, "setName", "rs") })},
	{what: "a primary lacks electionId", on: embedded.ReplicaSet, rules: "S7",
		reply: lacking("hello isMaster", "electionId")},
	{what: "a mongos does not say that it is one", on: embedded.Sharded, rules: "S8",
		reply: lacking("hello isMaster", "msg")},
	{what: "replies lack times", on: embedded.ReplicaSet, rules: "S9 S15",
		reply: lacking("hello find insert", "$clusterTime", "operationTime")},
	{what: "endSessions fails", on: embedded.Standalone, rules: "S13", request: func(d bson.D) bson.D {
		if d[0].Key == "endSessions" {
			return with(d, "endSessions", int32(1))
		}
		return d
	}},
	{what: "a repeated write is executed again", on: embedded.ReplicaSet, rules: "S16 S17 S18 S19 S20",
		request: func(d bson.D) bson.D {
			if has(d, "autocommit") {
				return d
			}
			return without(d, "txnNumber")
		}},
	{what: "an old number has another code", on: embedded.ReplicaSet, rules: "S18",
		reply: setting("update", "code", int32(112))},
	{what: "a standalone ignores transaction numbers", on: embedded.Standalone, rules: "S21",
		request: func(d bson.D) bson.D { return without(d, "txnNumber", "autocommit", "startTransaction") }},
	{what: "errors lack labels", on: embedded.ReplicaSet, rules: "S22 S24 S25 S26 S30 S34",
		reply: lacking("insert find findAndModify update commitTransaction abortTransaction", "errorLabels")},
	{what: "every error has a label", on: embedded.ReplicaSet, rules: "S22 S25",
		reply: replying("insert find", func(reply bson.D) bson.D {
			if has(reply, "code") {
				return with(reply, "errorLabels", bson.A{"RetryableWriteError"})
			}
			return reply
		})},
	{what: "a write concern error has no label", on: embedded.ReplicaSet, rules: "S23",
		reply: replying("insert", func(reply bson.D) bson.D {
			if has(reply, "writeConcernError") {
				return without(reply, "errorLabels")
			}
			return reply
		})},
	{what: "errors of a former primary lack topologyVersion", on: embedded.ReplicaSet, rules: "S27",
		reply: lacking("find", "topologyVersion")},
	{what: "change streams have no labels", on: embedded.ReplicaSet, rules: "S28",
		reply: lacking("aggregate", "errorLabels")},
	{what: "writes of a transaction are seen at once", on: embedded.ReplicaSet, rules: "S29 S30 S31 S34",
		request: func(d bson.D) bson.D { return without(d, "autocommit", "startTransaction", "txnNumber") }},
	{what: "a mongos returns no recoveryToken", on: embedded.Sharded, rules: "S35",
		reply: lacking("insert commitTransaction", "recoveryToken")},
	{what: "replies lack n", on: embedded.Standalone, rules: "S36", reply: lacking("insert update delete", "n")},
	{what: "findAndModify always returns the new document", on: embedded.ReplicaSet, rules: "S17 S36",
		request: func(d bson.D) bson.D {
			if d[0].Key == "findAndModify" && has(d, "update") {
				return with(d, "new", true)
			}
			return d
		}},
	{what: "an unordered insert stops at an error", on: embedded.Standalone, rules: "S37",
		request: func(d bson.D) bson.D { return without(d, "ordered") }},
	{what: "a write concern error undoes the reply", on: embedded.Sharded, rules: "S39",
		reply: lacking("insert", "writeConcernError")},
	{what: "an unknown command has another code", on: embedded.Standalone, rules: "S40",
		reply: setting("noSuchCommand", "code", int32(115))},
	{what: "errors have no names", on: embedded.Standalone, rules: "S40 S41 S42",
		reply: lacking("noSuchCommand find listIndexes", "codeName")},
	{what: "apiStrict is ignored", on: embedded.Standalone, rules: "S43",
		request: func(d bson.D) bson.D { return without(d, "apiStrict") }},
	{what: "a secondary says that it accepts writes", on: embedded.ReplicaSet, rules: "S44",
		reply: setting("hello", "isWritablePrimary", true)},
	{what: "a secondary has another code for writes", on: embedded.ReplicaSet, rules: "S45",
		reply: setting("insert", "code", int32(13))},
	{what: "a fail point strikes too often", on: embedded.Standalone, rules: "S46 S48", request: func(d bson.D) bson.D {
		if mode, ok := valueOf(d, "mode").(bson.D); ok && has(mode, "times") {
			return with(d, "mode", "alwaysOn")
		}
		return d
	}},
	{what: "a fail point ignores whom it should spare", on: embedded.Standalone, rules: "S47",
		request: func(d bson.D) bson.D {
			if data, ok := valueOf(d, "data").(bson.D); ok {
				return with(d, "data", without(data, "namespace", "appName"))
			}
			return d
		}},
	{what: "a cursor lives on after its last batch", on: embedded.ReplicaSet, rules: "S55",
		reply: cursorID("getMore", true, 42)},
	{what: "a cursor stays open although all is returned", on: embedded.Standalone, rules: "S51",
		reply: cursorID("find aggregate", true, 42)},
	{what: "a tailable cursor ends", on: embedded.Standalone, rules: "S56", reply: cursorID("getMore", false, 0)},
	{what: "an unknown cursor has another code", on: embedded.Standalone, rules: "S52",
		reply: setting("getMore", "code", int32(2))},
	{what: "killCursors does not say what it has ended", on: embedded.Standalone, rules: "S53",
		reply: setting("killCursors", "cursorsKilled", bson.A{})},
	{what: "options that do not fit are ignored", on: embedded.Standalone, rules: "S54",
		request: func(d bson.D) bson.D { return without(d, "tailable", "awaitData") }},
}

// A server that departs from a rule in one way fails a test of that rule. One that does not depart passes. One in four
// departures is tried, or all with UTR_SOAK=1.
func TestDeparturesOfServers(t *testing.T) {
	all, tried := suitetest.Load(t, "server"), testkit.Chance(t, 4)
	some := slices.DeleteFunc(slices.Clone(departures), func(departure) bool { return !tried() })
	for _, on := range []embedded.Topology{embedded.Standalone, embedded.ReplicaSet, embedded.Sharded} {
		some = append(some, departure{what: "none", on: on})
	}
	for _, d := range some {
		t.Run(d.what+" on "+string(d.on), func(t *testing.T) {
			t.Parallel()
			rules := strings.Fields(d.rules)
			ruled := func(description string) int {
				return slices.IndexFunc(rules, func(r string) bool { return strings.HasSuffix(description, "("+r+")") })
			}
			picked := testkit.Chance(t, 16)
			failed := map[string]bool{}
			for _, v := range judged(t, d, selected(all, func(test *specs.Test) bool {
				return d.rules == "" && picked() || ruled(test.Description) >= 0
			})) {
				if i := ruled(v.Test.Description); i >= 0 && v.Status == result.Failed {
					failed[rules[i]] = true
				} else if i < 0 && v.Status != result.Passed && v.Status != result.Skipped {
					t.Errorf("through the relay: %s", suitetest.Describe(v))
				}
			}
			for _, r := range rules {
				if !failed[r] {
					t.Errorf("no test of %s has failed", r)
				}
			}
		})
	}
}

// selected returns the tests that picked selects.
func selected(suites []*specs.Suite, picked func(*specs.Test) bool) (out []*specs.Suite) {
	for _, s := range suites {
		part := *s
		part.Tests = slices.DeleteFunc(slices.Clone(s.Tests), func(test *specs.Test) bool { return !picked(test) })
		if len(part.Tests) > 0 {
			out = append(out, &part)
		}
	}
	return out
}

// judged runs suites on a server that departs.
func judged(t *testing.T, d departure, suites []*specs.Suite) []*result.Verdict {
	inner, err := embedded.Start(t.Context(), embedded.Options{Topology: d.on, Version: "5.0"})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, inner.Close()) })
	uri := (&detour{departure: d}).front(t, inner)
	e, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	source, err := deployment.OpenCluster(testkit.Context(t), deployment.ClusterOptions{URI: uri})
	testkit.Check(t, err)
	t.Cleanup(func() {
		testkit.Check(t, e.Close())
		testkit.Check(t, source.Close())
	})
	b := suitetest.Bench{Config: runner.Config{Engine: e, Source: source, Jobs: 1, Timeout: testkit.Patience}}
	return b.Run(t, suites)
}

// detour stands in front of servers and changes commands and replies. Replies name its addresses.
type detour struct {
	departure
	addresses *strings.Replacer
}

// front listens for each server, and returns the connection string.
func (d *detour) front(t *testing.T, inner *embedded.Deployment) string {
	var pairs []string
	listeners := map[string]net.Listener{}
	for _, host := range inner.Hosts() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Check(t, err)
		listeners[host] = l
		pairs = append(pairs, host, l.Addr().String())
	}
	d.addresses = strings.NewReplacer(pairs...)
	var work sync.WaitGroup
	for host, l := range listeners {
		work.Go(func() { relay.Accept(l, func(client net.Conn) { work.Go(func() { d.serve(client, host) }) }) })
	}
	t.Cleanup(func() { // connections end with the clients
		for _, l := range listeners {
			_ = l.Close()
		}
		work.Wait()
	})
	return d.addresses.Replace(inner.URI())
}

func (d *detour) serve(client net.Conn, host string) {
	defer client.Close()
	server, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	var mu sync.Mutex
	sent := map[int32]bson.D{} // by the id of the message that a reply answers
	var answers sync.WaitGroup
	defer answers.Wait()
	defer server.Close()
	answers.Go(func() {
		defer client.Close()
		for {
			h, body, err := wire.ReadMessage(server)
			if err != nil {
				return
			}
			mu.Lock()
			message, request := wire.AppendMessage(nil, h, body), sent[h.ResponseTo]
			mu.Unlock()
			if doc, flags, ok := document(h, body); ok {
				doc = d.rename(doc).(bson.D)
				if d.reply != nil {
					doc = d.reply(request, doc)
				}
				raw, err := bson.Marshal(doc)
				if err != nil {
					return
				}
				if message = wire.AppendMsg(nil, h.RequestID, h.ResponseTo, flags, raw); h.OpCode == wire.OpReply {
					message = wire.AppendReply(nil, h.RequestID, h.ResponseTo, raw)
				}
				mu.Lock()
				sent[h.RequestID] = request // the next reply of a stream responds to this one
				mu.Unlock()
			}
			if _, err := client.Write(message); err != nil {
				return
			}
		}
	})
	for {
		h, body, err := wire.ReadMessage(client)
		if err != nil {
			return
		}
		message := wire.AppendMessage(nil, h, body)
		if doc, flags, ok := document(h, body); ok {
			mu.Lock()
			sent[h.RequestID] = doc
			mu.Unlock()
			if d.request != nil && h.OpCode == wire.OpMsg {
				raw, err := bson.Marshal(d.request(doc))
				if err != nil {
					return
				}
				message = wire.AppendMsg(nil, h.RequestID, h.ResponseTo, flags, raw)
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// document returns the document of a message that has only one.
func document(h wire.Header, body []byte) (doc bson.D, flags wire.Flags, ok bool) {
	var raw bson.Raw
	switch {
	case h.OpCode == wire.OpReply && len(body) > 20:
		raw = body[20:] // after flags, cursor, start and number of documents
	case h.OpCode == wire.OpMsg:
		m, err := wire.ParseMsg(h, body)
		if err != nil || len(m.Sequences) > 0 {
			return nil, 0, false
		}
		raw, flags = m.Body, m.Flags
	default:
		return nil, 0, false
	}
	err := bson.Unmarshal(raw, &doc)
	return doc, flags, err == nil
}

// rename replaces the addresses of the servers in a value.
func (d *detour) rename(v any) any {
	switch v := v.(type) {
	case string:
		return d.addresses.Replace(v)
	case bson.A:
		for i := range v {
			v[i] = d.rename(v[i])
		}
	case bson.D:
		for i := range v {
			v[i].Value = d.rename(v[i].Value)
		}
	}
	return v
}
