package runner

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
)

// judge compares what was observed with what the test expects, after the operations.
func (t *testRun) judge(ctx context.Context, observed map[string][]result.Event) *fault {
	for i, want := range t.test.ExpectEvents {
		path, events := fmt.Sprintf("expectEvents[%d]", i), observed[want.Get("client").Text()]
		t.add(failed(t.matcher(ctx).Events(path, want, events)))
	}
	t.add(t.judgeLogs(ctx))
	t.add(t.judgeSpans(ctx))
	return t.judgeOutcome(ctx)
}

func (t *testRun) judgeLogs(ctx context.Context) *fault {
	for i, want := range t.test.ExpectLogMessages {
		path, client := fmt.Sprintf("expectLogMessages[%d]", i), want.Get("client").Text()
		messages, err := guarded(ctx, "reading the log messages of "+client,
			func(ctx context.Context) ([]result.LogMessage, error) {
				return t.engine.Logs(ctx, client)
			})
		if err != nil {
			return breakf("%s: %w", path, err)
		}
		t.add(failed(t.matcher(ctx).LogMessages(path, want, messages)))
	}
	return nil
}

func (t *testRun) judgeSpans(ctx context.Context) *fault {
	for i, want := range t.test.ExpectTracing {
		path, client := fmt.Sprintf("expectTracingMessages[%d]", i), want.Get("client").Text()
		spans, err := guarded(ctx, "reading the spans of "+client, func(ctx context.Context) ([]result.Span, error) {
			return t.engine.Spans(ctx, client)
		})
		if err != nil {
			return breakf("%s: %w", path, err)
		}
		t.add(failed(t.matcher(ctx).Spans(path, want, spans)))
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
