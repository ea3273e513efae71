// Package otlp sends the spans of a run to an OpenTelemetry collector, such as Jaeger or Tempo: one trace for each
// test, whose root is the test.
package otlp

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/unified-test-runner/utr/internal/text/secret"
	"github.com/unified-test-runner/utr/result"
)

// Exporter sends spans to a collector. Methods may be called concurrently.
type Exporter struct {
	processor sdk.SpanProcessor
	about     *resource.Resource
	tracer    trace.Tracer
	sink      *sink
}

// tracesPath is the path of traces below a collector's address (OTLP/HTTP, "Request").
const tracesPath = "/v1/traces"

// sendLimit bounds one request to the collector.
const sendLimit = 10 * time.Second

// Parse checks the address of a collector, an HTTP URL. Without a path, it gets the path of traces.
func Parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q is not the URL of a collector, such as http://localhost:4318", address)
	case u.Path == "" || u.Path == "/":
		u.Path = tracesPath
	}
	return u, nil
}

// Open returns an exporter to a collector. It connects when there are spans to send. The version is utr's.
func Open(ctx context.Context, to *url.URL, version string) (*Exporter, error) {
	client, err := otlptrace.New(ctx, otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(to.String()),
		otlptracehttp.WithTimeout(sendLimit), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{})))
	if err != nil {
		return nil, err
	}
	e := &Exporter{sink: &sink{SpanExporter: client, to: secret.RedactURL(to.String())},
		about: resource.NewSchemaless(attribute.String("service.name", "utr"), attribute.String("service.version", version))}
	e.processor = sdk.NewBatchSpanProcessor(e.sink, sdk.WithBlocking())
	e.tracer = sdk.NewTracerProvider(append(e.Provider(), sdk.WithSampler(sdk.AlwaysSample()))...).
		Tracer("github.com/unified-test-runner/utr", trace.WithInstrumentationVersion(version))
	return e, nil
}

// Provider returns the options of tracer providers whose spans the exporter sends.
func (e *Exporter) Provider() []sdk.TracerProviderOption {
	return []sdk.TracerProviderOption{sdk.WithSpanProcessor(e.processor), sdk.WithResource(e.about)}
}

// Around starts the root span of a test. The context is for everything in the test. The function ends the span.
func (e *Exporter) Around(ctx context.Context, id result.TestID) (context.Context, func(*result.Verdict)) {
	ctx, span := e.tracer.Start(ctx, id.Suite+": "+id.Description, trace.WithAttributes(
		attribute.String("utr.file", id.File), attribute.String("utr.deployment", id.Deployment),
		attribute.String("utr.cell", id.Cell)))
	return ctx, func(v *result.Verdict) {
		span.SetAttributes(attribute.String("utr.verdict", string(v.Status)))
		for _, m := range v.Mismatches {
			span.AddEvent("mismatch", trace.WithAttributes(attribute.String("path", m.Path),
				attribute.String("message", m.Message),
				attribute.String("want", m.Want), attribute.String("got", m.Got)))
		}
		if v.Status.FailsRun() {
			span.SetStatus(codes.Error, string(v.Status)+" "+v.Reason)
		}
		span.End()
	}
}

// Close sends what is left. It returns the first error of the run: spans were lost.
func (e *Exporter) Close(ctx context.Context) error {
	e.sink.fail(e.processor.Shutdown(ctx))
	if err := e.sink.err.Load(); err != nil {
		return *err
	}
	return nil
}

// sink keeps the first error of an exporter. The SDK would only print it.
type sink struct {
	sdk.SpanExporter
	to  string
	err atomic.Pointer[error] // nil without one
}

// ExportSpans implements sdk.SpanExporter. After an error it sends nothing, so that a collector that does not answer
// delays a run only once.
func (s *sink) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if s.err.Load() == nil {
		s.fail(s.SpanExporter.ExportSpans(ctx, spans))
	}
	return nil
}

// fail keeps an error, unless it is nil or not the first.
func (s *sink) fail(err error) {
	if err != nil {
		err = fmt.Errorf("the spans could not be sent to %s: %w", s.to, err)
		s.err.CompareAndSwap(nil, &err)
	}
}
