package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/experiment"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

// BenchmarkDecide decides the retries of an operation with timeoutMS whose last
// attempt succeeds. Each attempt has two decisions, to select and to send, and after
// an overload error a third, to back off. Attempts alternate between two servers.
func BenchmarkDecide(b *testing.B) {
	policy, err := retry.Named("")
	testkit.Check(b, err)
	server := func(code int32, labels ...string) retry.Failure {
		return retry.Failure{Kind: retry.Server, Code: code, Labels: labels}
	}
	network, overload := retry.Failure{Kind: retry.Network}, []string{"SystemOverloadedError", "RetryableError"}
	for _, row := range []struct {
		who, operation string
		sharded        bool
		failure        retry.Failure
	}{
		{"read-replicaset", "find", false, network},
		{"read-sharded", "find", true, network},
		{"write-replicaset", "insert", false, server(91, "RetryableWriteError")},
		{"overload-read", "find", false, server(462, overload...)},
		{"overload-write", "insert", false, server(462, append(overload, "RetryableWriteError")...)},
	} {
		measure(b, row.who, "attempts", []int{1, 4, 16, 64}, func(b *testing.B, n int) {
			settings := retry.Settings{Operation: retry.Lookup(row.operation), RetryReads: true, RetryWrites: true,
				Timeout:            true,
				MaxAdaptiveRetries: &n, OverloadRetargeting: true}
			servers := [2]retry.Chosen{}
			for i := range servers {
				servers[i] = retry.Chosen{Address: fmt.Sprintf("server%d:27017", i), Sharded: row.sharded, Wire: 25,
					RetryableWrites: true}
			}
			for b.Loop() {
				last := decideUntil(n, retry.Start(policy, settings), servers, row.failure)
				if last.Action != retry.ReturnResult || last.Attempt != n {
					b.Fatalf("%d attempts end in %s after %d", n, last.Action, last.Attempt)
				}
			}
			perUnit(b, n, "attempt")
		})
	}
}

// BenchmarkRetryable decides whether an error is retryable, a part of a decision: the whole decision of the
// retry core, and the function of the Go driver, which looks for labels and codes only.
func BenchmarkRetryable(b *testing.B) {
	policy, err := retry.Named("")
	testkit.Check(b, err)
	state := retry.Start(policy, retry.Settings{Operation: retry.Lookup("find"), RetryReads: true, RetryWrites: true})
	state.Attempt, state.Chosen = 1, retry.Chosen{Address: "server:27017", Wire: 25, RetryableWrites: true}
	labels := []string{"RetryableWriteError"}
	in := retry.Input{Kind: retry.Failed, Failure: retry.Failure{Kind: retry.Server, Code: 91, Labels: labels}}
	b.Run("who=utr", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, d := retry.Next(state, in); d.Action != retry.Select {
				b.Fatal(d.Action)
			}
		}
	})
	failure := driver.Error{Code: 91, Labels: labels}
	b.Run("who=go-driver", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !failure.RetryableRead() {
				b.Fatal("not retryable")
			}
		}
	})
}

// decideUntil lets all attempts before the nth fail, and returns the last decision.
func decideUntil(n int, state retry.State, servers [2]retry.Chosen, failure retry.Failure) (d retry.Decision) {
	in := retry.Input{Kind: retry.Begin}
	for attempt := 0; ; {
		state, d = retry.Next(state, in)
		switch d.Action {
		case retry.Select:
			in = retry.Input{Kind: retry.Selected, Chosen: servers[attempt%2]}
		case retry.Send:
			attempt++
			in = retry.Input{Kind: retry.Succeeded}
			if attempt < n {
				in = retry.Input{Kind: retry.Failed, Left: time.Hour, Jitter: 0.5, Failure: failure}
			}
		case retry.BackOff:
			in = retry.Input{Kind: retry.BackedOff, Left: time.Hour}
		default:
			return d
		}
	}
}

// BenchmarkExperiment simulates 12 seconds of the overload experiment for a growing
// number of clients. The capacity, and with it the number of operations, grows with
// the clients, except in the last series.
func BenchmarkExperiment(b *testing.B) {
	const few = 500
	for _, row := range []struct {
		who, policy string
		capacity    func(clients int) int
	}{
		{"no-retry", "none", func(n int) int { return n }},
		{"final-policy", "final", func(n int) int { return n }},
		{"final-policy-same-capacity", "final", func(int) int { return few }},
	} {
		policies := slices.DeleteFunc(experiment.Policies(), func(p experiment.Policy) bool { return p.Name != row.policy })
		measure(b, row.who, "clients", []int{few, 4 * few, 16 * few}, func(b *testing.B, n int) {
			c := experiment.Defaults().Scaled(row.capacity(n))
			c.Clients, c.Duration, c.Policies = n, 12*time.Second, policies
			attempts := 0
			for b.Loop() {
				r, err := experiment.Overload(context.Background(), c, nil)
				testkit.Check(b, err)
				for _, phase := range r.Runs[0].Phases {
					attempts += phase.Attempts
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(attempts), "ns/attempt")
		})
	}
}

// counter counts bytes.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// verdictsOf returns n verdicts. One in a hundred failed, with full details, and one
// in seven was skipped.
func verdictsOf(n int) []*result.Verdict {
	log := result.ClientLog{Events: slices.Repeat([]result.Event{{Sequence: 1, Time: time.Unix(1_700_000_000, 0).UTC(),
		Type: result.ConnectionCheckedOut, Address: "127.0.0.1:27017", ConnectionID: 4}}, 40)}
	list := make([]*result.Verdict, n)
	for i := range list {
		v := result.Verdict{Status: result.Passed}
		switch {
		case i%100 == 0:
			v = result.Verdict{Status: result.Failed, Evidence: result.Evidence{Clients: []result.ClientLog{log},
				Mismatches: []result.Mismatch{{Path: "expectEvents[0].events[1].commandStartedEvent.command.limit",
					Message: "the numbers differ",
					Want:    "1", Got: "2", Diff: "- 1\n+ 2"}},
				Operations: []result.OperationLog{{Name: "find", Object: "collection0",
					Duration: result.Duration(time.Millisecond)}}},
				Rerun: []string{"utr", "run", "--run", "^specs/find.yml: a test$", "specs/find.yml"}}
		case i%7 == 0:
			v = result.Verdict{Status: result.Skipped, SkipKind: result.SkipRequirement,
				Reason: "needs server 4.2.99 or earlier, the deployment has 8.0.12"}
		}
		v.Test = result.TestID{File: fmt.Sprintf("specs/file-%d.yml", i/200), Suite: fmt.Sprintf("suite %d", i/200),
			Iteration:   1,
			Description: fmt.Sprintf("operation %d is retried after an error", i), Deployment: "replicaset 8.0"}
		v.Duration, v.Started = 12*time.Millisecond, time.Unix(1_700_000_000+int64(i), 0).UTC()
		list[i] = &v
	}
	return list
}

// BenchmarkReports writes reports of up to 50,000 verdicts in each format.
func BenchmarkReports(b *testing.B) {
	verdicts := verdictsOf(50_000)
	for _, form := range []struct {
		name     string
		generate func() report.Generator
	}{
		{"text", func() report.Generator { return report.Text(report.TextOptions{}) }},
		{"json", report.JSON}, {"junit", report.JUnit}, {"tap", report.TAP}, {"sarif", report.SARIF},
		{"markdown", func() report.Generator { return report.Markdown() }},
		{"html", func() report.Generator { return report.HTML() }},
	} {
		measure(b, form.name, "verdicts", []int{1000, 10_000, 50_000}, func(b *testing.B, n int) {
			var s result.Summary
			for _, v := range verdicts[:n] {
				s.Add(v)
			}
			var out counter
			for b.Loop() {
				out = 0
				r := report.New("nowhere", form.generate(), &out)
				r.Note(result.RunStarted{Total: n})
				for _, v := range verdicts[:n] {
					r.Note(result.TestFinished{Verdict: v})
				}
				r.Note(result.RunFinished{Summary: s})
			}
			b.ReportMetric(float64(out)/float64(n), "bytes/verdict")
		})
	}
}
