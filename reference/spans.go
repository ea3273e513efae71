package reference

import (
	"cmp"
	"context"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	otel "go.opentelemetry.io/otel/trace"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/result"
)

// span is the span of an operation, a transaction or a command. A nil span is not observed.
type span struct {
	otel.Span
	ctx context.Context // for the spans in it
}

// start starts a span.
func (t *tracing) start(ctx context.Context, name string, attributes ...attribute.KeyValue) *span {
	attributes = append(attributes, attribute.String("db.system.name", "mongodb"))
	ctx, s := t.tracer.Start(ctx, name, otel.WithSpanKind(otel.SpanKindClient), otel.WithAttributes(attributes...))
	return &span{s, ctx}
}

// end ends a span, and records the exception ("Exceptions").
func (s *span) end(err *result.Error) {
	if s == nil {
		return
	}
	if err != nil {
		exception := []attribute.KeyValue{
			attribute.String("exception.message", err.Message),
			attribute.String("exception.type", cmp.Or(err.Kind, "error")),
			attribute.String("exception.stacktrace", string(debug.Stack())),
		}
		s.SetAttributes(exception...)
		s.AddEvent("exception", otel.WithAttributes(exception...)) // what viewers show as an exception
		s.SetStatus(otelcodes.Error, err.Message)
	}
	s.End()
}

// startSpan begins the span of the operation ("Instrumenting Driver Operations"). That of an iteration begins with its
// first command: most documents are in a batch that the client has. Operations of a session begin their own.
func (c *call) startSpan() {
	t, name := c.client.tracing, c.Operation.Name
	local := c.Kind == entities.Session || c.Kind == entities.Client && (name == "close" || name == "appendMetadata")
	if t == nil || local || strings.HasPrefix(name, "$") {
		return
	}
	ctx := c.ctx
	if s := c.session; s != nil && s.inTransaction() {
		ctx = s.span.context(ctx)
	}
	begin := func() *span {
		return t.operation(ctx, operations.SpanName(name), c.db, cmp.Or(c.coll, c.Text("collection")))
	}
	if c.Kind == entities.Cursor {
		c.trace.later = begin
	} else {
		c.trace.span = begin()
	}
}

// context returns the context for spans in this one, or the given one.
func (s *span) context(outside context.Context) context.Context {
	if s == nil {
		return outside
	}
	return s.ctx
}

// operation starts the span of an operation.
func (t *tracing) operation(ctx context.Context, operation, db, coll string) *span {
	name := summary(operation, db, coll)
	attributes := append(namespaceOf(db, coll), attribute.String("db.operation.name", operation),
		attribute.String("db.operation.summary", name))
	return t.start(ctx, name, attributes...)
}

func summary(what, db, coll string) string {
	if coll == "" {
		return what + " " + db
	}
	return what + " " + db + "." + coll
}

func namespaceOf(db, coll string) []attribute.KeyValue {
	if coll == "" {
		return []attribute.KeyValue{attribute.String("db.namespace", db)}
	}
	return []attribute.KeyValue{attribute.String("db.namespace", db), attribute.String("db.collection.name", coll)}
}

// traced begins the span of commitTransaction or abortTransaction, inside the span of the transaction. The result ends
// both ("Transactions").
func (s *clientSession) traced(ctx context.Context, name string, tr *trace) (end func(*result.Error)) {
	t := s.client.tracing
	if t == nil {
		return func(*result.Error) {}
	}
	around := tr.span
	tr.span = t.operation(s.span.context(ctx), name, "admin", "")
	return func(err *result.Error) {
		tr.span.end(err)
		s.span.end(nil)
		tr.span = around
	}
}

// startSpan starts the span of the command, unless it is sensitive or not part of an operation ("Instrumenting Server
// Commands").
func (a *attempt) startSpan(body bson.Raw) {
	t, cmd := a.tracing, a.cmd
	if t == nil || a.trace.span == nil || a.secret || cmd.hidden {
		return
	}
	name, coll := cmd.name(), collectionOf(cmd.db, body)
	attributes := append(namespaceOf(cmd.db, coll),
		attribute.String("db.command.name", name),
		attribute.String("db.query.summary", summary(name, cmd.db, coll)),
		attribute.Int64("db.mongodb.driver_connection_id", int64(a.conn.DriverConnectionID())))
	attributes = append(attributes, addressOf(a.srv.address)...)
	if id := a.conn.ServerConnectionID(); id != nil {
		attributes = append(attributes, attribute.Int64("db.mongodb.server_connection_id", *id))
	}
	if _, id, ok := body.Lookup("lsid", "id").BinaryOK(); ok {
		attributes = append(attributes, attribute.String("db.mongodb.lsid", uuid(id)))
	}
	if n, ok := enginekit.Integer(body.Lookup("txnNumber")); ok {
		attributes = append(attributes, attribute.Int64("db.mongodb.txn_number", n))
	}
	if id := cursorIn(body); id != 0 {
		attributes = append(attributes, cursorID(id))
	}
	if t.text > 0 {
		attributes = append(attributes, attribute.String("db.query.text", queryText(body, t.text)))
	}
	a.span = t.start(a.trace.span.ctx, name, attributes...)
}

// endSpan ends the span of the command, with the reply or an error.
func (a *attempt) endSpan(doc bson.Raw, err *result.Error) {
	if a.span == nil {
		return
	}
	if id, _ := enginekit.Integer(doc.Lookup("cursor", "id")); id != 0 {
		a.span.SetAttributes(cursorID(id))
	}
	if err != nil && err.Code != 0 {
		a.span.SetAttributes(attribute.String("db.response.status_code", strconv.Itoa(int(err.Code))))
	}
	a.span.end(err)
	a.span = nil
}

func cursorID(id int64) attribute.KeyValue { return attribute.Int64("db.mongodb.cursor_id", id) }

// collectionOf returns the collection of a command, "" for one of admin ("db.collection.name").
func collectionOf(db string, body bson.Raw) string {
	first, err := body.IndexErr(0)
	if err != nil || db == "admin" {
		return ""
	}
	value := first.Value()
	if first.Key() == "getMore" {
		value = body.Lookup("collection")
	}
	name, _ := value.StringValueOK()
	return name
}

// cursorIn returns the cursor that a command uses, or 0.
func cursorIn(body bson.Raw) int64 {
	id := body.Lookup("getMore")
	if cursors, ok := body.Lookup("cursors").ArrayOK(); ok {
		id = bson.Raw(cursors).Lookup("0")
	}
	n, _ := enginekit.Integer(id)
	return n
}

// addressOf returns the attributes of a server's address.
func addressOf(address string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(address)
	if err != nil { // a socket
		return []attribute.KeyValue{attribute.String("network.transport", "unix"),
			attribute.String("server.address", address)}
	}
	n, _ := strconv.ParseInt(port, 10, 32)
	return []attribute.KeyValue{attribute.String("network.transport", "tcp"), attribute.String("server.address", host),
		attribute.Int64("server.port", n)}
}

// queryText returns the command in relaxed Extended JSON, truncated to a number of bytes as log messages are
// ("db.query.text"; Logging, "Configurable max document length").
func queryText(body bson.Raw, most int) string {
	var kept bson.D
	all, _ := body.Elements()
	for _, e := range all {
		switch e.Key() {
		case "lsid", "$db", "$clusterTime", "signature":
		default:
			kept = append(kept, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	data, err := bson.MarshalExtJSON(kept, false, false)
	if err != nil {
		return err.Error()
	}
	if len(data) <= most {
		return string(data)
	}
	for most > 0 && !utf8.RuneStart(data[most]) {
		most--
	}
	return string(data[:most]) + "..."
}
