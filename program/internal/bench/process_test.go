package bench

import (
	"context"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// adapterMode makes this program an adapter of the Go driver.
const adapterMode = "UTR_BENCH_ADAPTER"

func TestMain(m *testing.M) {
	if os.Getenv(adapterMode) == "" {
		os.Exit(m.Run())
	}
	if err := process.Serve(context.Background(), driver.New(), os.Stdin, os.Stdout); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// BenchmarkProcess calls the Go driver, in this process and behind an adapter. For an operation that sends no command,
// the difference is the cost of the protocol; for a find, also the cost of a server in another process.
func BenchmarkProcess(b *testing.B) {
	self, err := os.Executable()
	testkit.Check(b, err)
	behind, err := process.New(process.Options{Command: []string{self},
		Environment: append(os.Environ(), adapterMode+"=1")})
	testkit.Check(b, err)
	d, err := embedded.Start(context.Background(), embedded.Options{})
	testkit.Check(b, err)
	b.Cleanup(func() { testkit.Check(b, d.Close()) })
	nothing := engine.Operation{Object: "session", Name: engine.OpLSID}
	find := engine.Operation{Object: "collection", Name: "find",
		Arguments: testkit.Extended[bson.Raw](b, `{"filter": {}}`)}
	engines := []engine.Engine{driver.New(), behind}
	for _, row := range []struct {
		name   string
		engine int
		call   engine.Operation
	}{
		{"call=nothing/who=inside", 0, nothing}, {"call=nothing/who=adapter", 1, nothing},
		{"call=find/who=inside", 0, find}, {"call=find/who=adapter", 1, find},
	} {
		b.Run(row.name, func(b *testing.B) {
			ctx := context.Background()
			t, err := engines[row.engine].Begin(ctx)
			testkit.Check(b, err)
			for _, e := range []struct{ kind, options string }{
				{"client", `{"id": "client"}`},
				{"session", `{"id": "session", "client": "client"}`},
				{"database", `{"id": "database", "client": "client", "databaseName": "bench"}`},
				{"collection", `{"id": "collection", "database": "database", "collectionName": "documents"}`},
			} {
				options := testkit.Extended[bson.Raw](b, e.options)
				testkit.Check(b, t.Open(ctx, engine.Entity{Kind: e.kind, ID: e.kind, Options: options, URI: d.URI()}))
			}
			for b.Loop() {
				if out := t.Do(ctx, row.call); out.Err != nil || out.Broken != nil {
					b.Fatal(out.Err, out.Broken)
				}
			}
			testkit.Check(b, t.End(ctx))
		})
	}
	for _, e := range engines {
		testkit.Check(b, e.Close())
	}
}
