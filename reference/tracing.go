package reference

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
)

// Tracing configures the spans of clients (OpenTelemetry specification, "Enabling, Disabling, and Configuring
// OpenTelemetry"). The zero value makes spans only for clients with observeTracingMessages.
type Tracing struct {
	// Provider has the options of the tracer providers of clients, such as span processors and a resource. Without any,
	// nothing receives spans except tests.
	Provider []sdk.TracerProviderOption
	// Enabled traces all clients. If it is false, $OTEL_GO_INSTRUMENTATION_MONGODB_ENABLED decides.
	Enabled bool
	// QueryTextMaxLength is the maximum length of db.query.text in bytes, for clients without observeTracingMessages. If
	// it is 0, $OTEL_GO_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH is, whose default is 0: no such attribute.
	QueryTextMaxLength int
}

// The environment variables of the OpenTelemetry specification.
const (
	envTracing     = "OTEL_GO_INSTRUMENTATION_MONGODB_ENABLED"
	envQueryLength = "OTEL_GO_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH"
)

// tracing makes the spans of one client. A nil tracing makes none.
type tracing struct {
	tracer otel.Tracer
	text   int // most bytes of db.query.text, 0 for no such attribute
	seen   *spanLog
}

// newTracing returns the tracing of a client with observeTracingMessages. The option may be missing.
func (o Tracing) newTracing(version string, observed bson.RawValue) (*tracing, error) {
	t := &tracing{text: o.QueryTextMaxLength}
	if t.text == 0 {
		t.text, _ = strconv.Atoi(os.Getenv(envQueryLength)) // the default is 0
	}
	provider := append([]sdk.TracerProviderOption{sdk.WithSampler(sdk.AlwaysSample()), sdk.WithResource(resource.Empty())},
		o.Provider...)
	switch enabled := slices.Contains([]string{"1", "true", "yes"}, strings.ToLower(os.Getenv(envTracing))); {
	case observed.Type != 0:
		var payload bool
		err := enginekit.Fields{"enableCommandPayload": enginekit.Set(&payload, bson.RawValue.BooleanOK)}.
			Read("observeTracingMessages", observed, invalidField)
		if err != nil {
			return nil, err
		}
		if t.text = 0; payload {
			t.text = math.MaxInt
		}
		t.seen = &spanLog{}
		provider = append(provider, sdk.WithSpanProcessor(t.seen))
	case len(o.Provider) == 0 || !o.Enabled && !enabled:
		return nil, nil
	}
	t.tracer = sdk.NewTracerProvider(provider...).Tracer("github.com/unified-test-runner/utr/reference",
		otel.WithInstrumentationVersion(version))
	return t, nil
}

// spanLog is a span processor that keeps the spans of one client, in the order in which they began.
type spanLog struct {
	mu    sync.Mutex
	spans []sdk.ReadOnlySpan
}

// OnStart implements sdk.SpanProcessor.
func (l *spanLog) OnStart(_ context.Context, s sdk.ReadWriteSpan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans = append(l.spans, s)
}

// OnEnd implements sdk.SpanProcessor.
func (*spanLog) OnEnd(sdk.ReadOnlySpan) {}

// Shutdown implements sdk.SpanProcessor.
func (*spanLog) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdk.SpanProcessor.
func (*spanLog) ForceFlush(context.Context) error { return nil }

// all returns the spans, including those that have not ended.
func (l *spanLog) all() (spans []result.Span, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.spans {
		raw, err := attributesOf(s.Attributes())
		if err != nil {
			return nil, err
		}
		spans = append(spans, result.Span{ID: s.SpanContext().SpanID().String(), Parent: s.Parent().SpanID().String(),
			Name: s.Name(), Attributes: raw})
	}
	return spans, nil
}

func attributesOf(list []attribute.KeyValue) (bson.Raw, error) {
	d := bson.D{}
	for _, a := range list {
		d = append(d, bson.E{Key: string(a.Key), Value: a.Value.AsInterface()})
	}
	return bson.Marshal(d)
}

// Spans returns the tracing spans of a client.
func (t *test) Spans(_ context.Context, id string) ([]result.Span, error) {
	c, err := t.Client(id)
	if err != nil {
		return nil, err
	}
	if traced := c.(*client).tracing; traced != nil && traced.seen != nil {
		return traced.seen.all()
	}
	return nil, nil
}

// uuid formats the id of a session.
func uuid(id []byte) string {
	if len(id) != 16 {
		return fmt.Sprintf("%x", id)
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
