package reference

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// TestSpans performs operations on a replica set. testdata/spans.txt has the spans of each, as a tree.
func TestSpans(t *testing.T) {
	deployment, err := embedded.Start(testkit.Context(t), embedded.Options{Topology: embedded.ReplicaSet})
	testkit.Check(t, err)
	defer func() { _ = deployment.Close() }()
	b := open(t, deployment.URI(), Options{}, parsed(t, `{"observeTracingMessages":{"enableCommandPayload":true}}`))
	defer func() { _ = b.End(t.Context()) }()
	b.entity("session", "session", d("client", "client"))
	b.callback = func() *result.Error {
		return b.perform(`collection.insertOne {"document":{"_id":9},"session":"session"}`).Err
	}
	failPoint := func(commands, data string) string {
		return `client.$configureFailPoint {"command":{"configureFailPoint":"failCommand","mode":{"times":1},
			"data":{"failCommands":["` + commands + `"],` + data + `}}}`
	}
	var text strings.Builder
	for _, c := range []struct {
		why string
		do  []string
	}{
		{"a write, and a read in two batches", []string{`collection.insertMany {"documents":[{"_id":1},{"_id":2}]}`,
			`collection.find {"batchSize":1,"sort":{"_id":1}}`}},
		{"a retried read", []string{failPoint("find", `"errorCode":91`), `collection.findOne {"filter":{}}`}},
		{"a retried write, without a reply to the first attempt",
			[]string{failPoint("insert", `"closeConnection":true`), `collection.insertOne {"document":{"_id":3}}`}},
		{"a command that fails", []string{`database.runCommand {"commandName":"nope","command":{"nope":1}}`}},
		{"an operation that fails before it sends a command",
			[]string{`collection.updateOne {"filter":{},"update":{"x":1}}`}},
		{"a cursor: an iteration without a command has no span, nor has the second close",
			[]string{`collection.createFindCursor {"filter":{},"batchSize":1}`,
				`saved.iterateOnce {}`, `saved.iterateOnce {}`, `saved.iterateOnce {}`, `saved.close {}`, `saved.close {}`}},
		{"a sensitive command", []string{`database.runCommand {"commandName":"createUser","command":{"createUser":"u","pwd":"p","roles":[]}}`}},
		{"helpers have the names of their commands",
			[]string{`collection.createIndex {"keys":{"x":1}}`, `database.createCollection {"collection":"other"}`,
				`collection.findOneAndDelete {"filter":{"_id":3}}`, `client.listDatabaseNames {}`}},
		{"a transaction, its second commit, and an operation after it", []string{`session.startTransaction {}`,
			`collection.insertOne {"document":{"_id":4},"session":"session"}`, `session.commitTransaction {}`, `session.commitTransaction {}`,
			`collection.findOne {"filter":{},"session":"session"}`}},
		{"a transaction without commands", []string{`session.startTransaction {}`, `session.abortTransaction {}`}},
		{"an abort that fails: the error is ignored",
			[]string{`session.startTransaction {}`, `collection.findOne {"filter":{},"session":"session"}`,
				failPoint("abortTransaction", `"errorCode":50`), `session.abortTransaction {}`}},
		{"withTransaction: each attempt is a transaction",
			[]string{failPoint("insert", `"errorCode":112,"errorLabels":["TransientTransactionError"]`),
				`session.withTransaction {}`}},
	} {
		fmt.Fprintf(&text, "# %s\n", c.why)
		before := len(spansOf(t, b))
		for _, do := range c.do {
			out := b.perform(do)
			if out.Err != nil && (out.Err.Kind == "unsupported" || strings.Contains(out.Err.Message, "entity")) {
				t.Fatal(do, out.Err)
			}
			if !strings.HasPrefix(do, "client.$") {
				fmt.Fprintf(&text, "> %s\n", do)
			}
		}
		writeSpans(&text, spansOf(t, b)[before:])
	}
	testkit.Golden(t, "testdata/spans.txt", text.String())
}

func spansOf(t *testing.T, b *bench) []result.Span {
	t.Helper()
	spans, err := b.Spans(t.Context(), "client")
	testkit.Check(t, err)
	return spans
}

// varying are ids, addresses and cluster times in texts.
var varying = regexp.MustCompile(`\d{5,}|"subType":"\d+"|"base64":"[^"]*"|\{"\$timestamp.*?\}\}`)

// writeSpans writes a tree of spans without what differs between runs.
func writeSpans(to *strings.Builder, spans []result.Span) {
	depth := map[string]int{}
	for _, s := range spans {
		level, nested := depth[s.Parent]
		if nested {
			level++
		}
		depth[s.ID] = level
		fmt.Fprintf(to, "%s%s", strings.Repeat("  ", level), s.Name)
		elements, _ := s.Attributes.Elements()
		slices.SortStableFunc(elements, func(a, b bson.RawElement) int { return strings.Compare(a.Key(), b.Key()) })
		for _, e := range elements {
			switch e.Key() {
			case "db.system.name", "db.namespace", "db.operation.name", "db.operation.summary", "db.command.name", "db.query.summary",
				"network.transport", "server.address", "db.mongodb.driver_connection_id", "db.collection.name":
			case "server.port", "db.mongodb.server_connection_id", "db.mongodb.cursor_id", "db.mongodb.lsid", "exception.stacktrace":
				fmt.Fprintf(to, " %s", e.Key()[strings.LastIndex(e.Key(), ".")+1:])
			case "exception.message":
				if s.Attributes.Lookup("exception.type").StringValue() == "network" { // the text depends on the system
					continue
				}
				fallthrough
			case "db.query.text":
				fmt.Fprintf(to, " %s", varying.ReplaceAllString(e.Value().StringValue(), "…"))
			default:
				fmt.Fprintf(to, " %s=%s", e.Key(), strings.Trim(e.Value().String(), `"`))
			}
		}
		to.WriteString("\n")
	}
}

// TestTracingOptions has the prose tests of the specification, with the reason of each ("Prose Tests").
func TestTracingOptions(t *testing.T) {
	deployment, err := embedded.Start(testkit.Context(t), embedded.Options{})
	testkit.Check(t, err)
	defer func() { _ = deployment.Close() }()
	for _, c := range []struct {
		why             string
		enabled, length string // of the environment
		options         Tracing
		client          string
		spans           int
		text            string // of a find
	}{
		{"spans are not made by default", "", "", Tracing{}, `{}`, 0, ""},
		{"disabled by the environment", "false", "", Tracing{}, `{}`, 0, ""},
		{"enabled by the environment", "true", "", Tracing{}, `{}`, 2, ""},
		{"another way to enable it", "1", "", Tracing{}, `{}`, 2, ""},
		{"the payload by the environment", "yes", "1024", Tracing{}, `{}`, 2, `{"find":"coll","filter":{"x":1}}`},
		{"cut to its length", "yes", "9", Tracing{}, `{}`, 2, `{"find":"...`},
		{"an invalid length is the default", "yes", "many", Tracing{}, `{}`, 2, ""},
		{"a negative length is the default", "yes", "-1", Tracing{}, `{}`, 2, ""},
		{"options override the environment", "false", "9", Tracing{Enabled: true, QueryTextMaxLength: 15}, `{}`, 2,
			`{"find":"coll",...`},
		{"the client overrides both", "false", "9", Tracing{QueryTextMaxLength: 15},
			`{"observeTracingMessages":{"enableCommandPayload":true}}`, 2, `{"find":"coll","filter":{"x":1}}`},
		{"no payload", "false", "9", Tracing{}, `{"observeTracingMessages":{}}`, 2, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Setenv(envTracing, c.enabled)
			t.Setenv(envQueryLength, c.length)
			exported := tracetest.NewSpanRecorder()
			c.options.Provider = []sdk.TracerProviderOption{sdk.WithSpanProcessor(exported)}
			b := open(t, deployment.URI(), Options{Tracing: c.options}, parsed(t, c.client))
			b.perform(`collection.findOne {"filter":{"x":1}}`)
			text := ""
			for _, s := range exported.Ended() {
				raw, err := attributesOf(s.Attributes())
				testkit.Check(t, err)
				text += strings.TrimSuffix(raw.Lookup("db.query.text").String(), "")
			}
			testkit.Equal(t, "the number of spans", len(exported.Ended()), c.spans)
			if want := c.text; want != "" &&
				!strings.Contains(strings.ReplaceAll(text, `\"`, `"`), strings.TrimSuffix(want, "}")) {
				t.Errorf("the text is %s, want %s", text, want)
			} else if want == "" && text != "" {
				t.Errorf("the text is %s, want none", text)
			}
		})
	}
}

// TestQueryText checks that the text of a command lacks what differs between attempts, and how it is truncated.
func TestQueryText(t *testing.T) {
	body := raw(t, parsed(t, `{"find":"é","lsid":{"id":1},"$db":"db","$clusterTime":{"a":1},"signature":1,"n":{"$numberLong":"1"}}`))
	for _, c := range []struct {
		why  string
		most int
		want string
	}{
		{"whole, in relaxed Extended JSON", 1000, `{"find":"é","n":1}`},
		{"not truncated at its length", len(`{"find":"é","n":1}`), `{"find":"é","n":1}`},
		{"truncated, with an ellipsis that does not count", 5, `{"fin...`},
		{"not within a character", len(`{"find":"`) + 1, `{"find":"...`},
	} {
		testkit.Equal(t, c.why, queryText(body, c.most), c.want)
	}
}

// TestAddresses checks the attributes of an address.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"localhost:27017":   `{"network.transport": "tcp","server.address": "localhost","server.port": {"$numberLong":"27017"}}`,
		"[::1]:27018":       `{"network.transport": "tcp","server.address": "::1","server.port": {"$numberLong":"27018"}}`,
		"/tmp/mongodb.sock": `{"network.transport": "unix","server.address": "/tmp/mongodb.sock"}`,
	} {
		got, err := attributesOf(addressOf(address))
		testkit.Check(t, err)
		testkit.Equal(t, address, got.String(), want)
	}
}

// TestSpansCostNothing checks that a client that nobody observes does not even allocate.
func TestSpansCostNothing(t *testing.T) {
	c := &call{namespace: namespace{client: &client{}}}
	c.Operation = engine.Operation{Name: "find"}
	a := &attempt{client: c.client, cmd: &command{}, trace: &c.trace}
	body := raw(t, d("find", "coll"))
	testkit.Equal(t, "allocations", testing.AllocsPerRun(100, func() {
		c.startSpan()
		a.startSpan(body)
		a.endSpan(body, nil)
		c.trace.span.end(nil)
	}), 0.0)
}

// BenchmarkSpans compares a find whose client is not observed with one whose client is.
func BenchmarkSpans(b *testing.B) {
	deployment, err := embedded.Start(testkit.Context(b), embedded.Options{})
	testkit.Check(b, err)
	defer func() { _ = deployment.Close() }()
	for name, client := range map[string]string{"none": `{}`,
		"observed": `{"observeTracingMessages":{"enableCommandPayload":true}}`} {
		b.Run("spans="+name, func(b *testing.B) {
			e := open(b, deployment.URI(), Options{}, parsed(b, client))
			b.ReportAllocs()
			filter := d("filter", bson.D{})
			for b.Loop() {
				e.must("collection", "findOne", filter)
			}
		})
	}
}
