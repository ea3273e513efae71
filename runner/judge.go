package runner

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/result"
)

// judge compares what was observed with what the test expects, after the operations.
func (t *testRun) judge(ctx context.Context, observed map[string][]result.Event) *fault {
	for i, want := range t.test.ExpectEvents {
		path, events := fmt.Sprintf("expectEvents[%d]", i), observed[want.Get("client").Text()]
		t.add(failed(t.matcher(ctx).Events(path, want, events)))
	}
	t.add(judgeClients(ctx, t, "expectLogMessages", t.test.ExpectLogMessages, "log messages", engine.Test.Logs,
		(*matchers.Matcher).LogMessages))
	t.add(judgeClients(ctx, t, "expectTracingMessages", t.test.ExpectTracing, "spans", engine.Test.Spans,
		(*matchers.Matcher).Spans))
	return t.judgeOutcome(ctx)
}

// judgeClients compares what the engine reports of clients with a list of expectations.
func judgeClients[T any](ctx context.Context, t *testRun, key string, wants []*source.Value, what string,
	read func(engine.Test, context.Context, string) ([]T, error),
	match func(*matchers.Matcher, string, *source.Value, []T) []result.Mismatch) *fault {
	for i, want := range wants {
		path, client := fmt.Sprintf("%s[%d]", key, i), want.Get("client").Text()
		actual, err := guarded(ctx, "reading the "+what+" of "+client,
			func(ctx context.Context) ([]T, error) { return read(t.engine, ctx, client) })
		if err != nil {
			return breakf("%s: %w", path, err)
		}
		t.add(failed(match(t.matcher(ctx), path, want, actual)))
	}
	return nil
}

func (t *testRun) judgeOutcome(ctx context.Context) *fault {
	for i, d := range t.test.Outcome {
		path := fmt.Sprintf("outcome[%d]", i)
		documents, err := retried(ctx, func() ([]bson.Raw, error) {
			return t.site.documents(ctx, d.DatabaseName, d.CollectionName)
		})
		namespace := d.DatabaseName + "." + d.CollectionName
		if err != nil {
			return failure(ctx, path, d.Position, "the contents of "+namespace,
				fmt.Errorf("%s: reading %s: %w", path, namespace, err))
		}
		t.add(failed(t.matcher(ctx).Collection(path+".documents", d.Position, d.Documents, documents)))
	}
	return nil
}
