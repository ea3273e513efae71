package cli

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/unified-test-runner/utr/internal/testkit"
)

const tracedSuite = `description: traced
schemaVersion: "1.0"
createEntities:
  - client: {id: client, useMultipleMongoses: false}
  - database: {id: database, client: client, databaseName: traced}
  - collection: {id: collection, database: database, collectionName: coll}
tests:
  - description: a retried find
    operations:
      - {name: failPoint, object: testRunner, arguments: {client: client, failPoint: {configureFailPoint: failCommand, mode: {times: 1},
          data: {failCommands: [find], errorCode: 91}}}}
      - {name: find, object: collection, arguments: {filter: {}}}
  - description: a failure
    operations: [{name: find, object: collection, arguments: {filter: {}}, expectResult: [{_id: 1}]}]
`

// otlpCollector is a collector that keeps the spans that it receives, as a tree of names for each trace.
type otlpCollector struct {
	mu    sync.Mutex
	spans []*trace.Span
	names map[string]bool // of services
}

func (c *otlpCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "no spans", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				c.names[a.Value.GetStringValue()] = true
			}
		}
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// trees returns the spans of each trace in the order in which they began, sorted by the names of their roots.
func (c *otlpCollector) trees() []string {
	parents, traces := map[string]string{}, map[string][]*trace.Span{}
	for _, s := range c.spans {
		parents[string(s.SpanId)] = string(s.ParentSpanId)
		traces[string(s.TraceId)] = append(traces[string(s.TraceId)], s)
	}
	level := func(s *trace.Span) (n int) {
		for id := string(s.ParentSpanId); id != ""; id = parents[id] {
			n++
		}
		return n
	}
	var all []string
	for _, spans := range traces {
		slices.SortFunc(spans, func(a, b *trace.Span) int {
			return cmp.Or(cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano), level(a)-level(b))
		})
		var tree strings.Builder
		for _, s := range spans {
			status := strings.TrimPrefix(s.Status.GetCode().String(), "STATUS_CODE_")
			fmt.Fprintf(&tree, "%s%s %s%s\n", strings.Repeat("  ", level(s)), s.Name, status, strings.Repeat("!", len(s.Events)))
		}
		all = append(all, tree.String())
	}
	slices.Sort(all)
	return all
}

// With --otlp, a collector receives one trace for each test, over HTTP.
func TestOTLP(t *testing.T) {
	c := &otlpCollector{names: map[string]bool{}}
	server := httptest.NewServer(c)
	defer server.Close()
	b := realBench(t)
	write(t, "traced.yml", tracedSuite)
	b.expect(t, "the outcome is the outcome of the tests", "run --topology single --otlp "+server.URL+" traced.yml", 1,
		"1 passed, 1 failed")
	testkit.Equal(t, "services", fmt.Sprint(c.names), "map[utr:true]")
	testkit.Same(t, "the traces", c.trees(), []string{
		`traced: a failure ERROR!
  find traced.coll UNSET
    find UNSET
`,
		`traced: a retried find UNSET
  find traced.coll UNSET
    find ERROR!
    find UNSET
`})

	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	for _, r := range []struct {
		why, line string
		code      int
		want      string
	}{
		{"spans that are lost break a run that passed",
			"run --topology single --run retried --otlp " + refusing.URL + " traced.yml", 3,
			"the spans could not be sent to http://127.0.0.1:"},
		{"a failed run stays one", "run --topology single --otlp " + refusing.URL + " traced.yml", 1,
			"the spans could not be sent"},
		{"another engine", "run --engine driver --otlp " + server.URL + " traced.yml", 2,
			"--otlp is for the engine reference, not for driver"},
		{"not a URL of a collector", "run --otlp localhost:4318 traced.yml", 2,
			"is not the URL of a collector, such as http://localhost:4318"},
	} {
		b.expect(t, r.why, r.line, r.code, r.want)
	}
}
