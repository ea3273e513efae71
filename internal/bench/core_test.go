package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/experiment"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// BenchmarkDecide has an operation fail again and again under timeoutMS, and
// succeed at last: two decisions for each attempt, to select and to send, and
// after an overload error a third, to back off. Where servers are
// deprioritized, attempts alternate between two.
func BenchmarkDecide(b *testing.B) {
	policy, err := retry.Named("")
	if err != nil {
		b.Fatal(err)
	}
	network := retry.Failure{Kind: retry.Network}
	for _, row := range []struct {
		who, operation string
		sharded        bool
		failure        retry.Failure
	}{
		{"read, replica set", "find", false, network},
		{"read, sharded", "find", true, network},
		{"write, replica set", "insert", false,
			retry.Failure{Kind: retry.Server, Code: 91, Labels: []string{"RetryableWriteError"}}},
		{"overload, read", "find", false,
			retry.Failure{Kind: retry.Server, Code: 462, Labels: []string{"SystemOverloadedError", "RetryableError"}}},
		{"overload, write", "insert", false,
			retry.Failure{Kind: retry.Server, Code: 462, Labels: []string{"SystemOverloadedError", "RetryableError", "RetryableWriteError"}}},
	} {
		measure(b, "decide on every attempt of an operation", "attempts", row.who, []int{1, 4, 16, 64}, func(b *testing.B, n int) {
			settings := retry.Settings{Operation: retry.Lookup(row.operation), RetryReads: true, RetryWrites: true, Timeout: true,
				MaxAdaptiveRetries: &n, OverloadRetargeting: true}
			servers := [2]retry.Chosen{}
			for i := range servers {
				servers[i] = retry.Chosen{Address: fmt.Sprintf("server%d:27017", i), Sharded: row.sharded, Wire: 25, RetryableWrites: true}
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

// decideUntil has all attempts fail but the nth, and gives the last decision.
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

// BenchmarkExperiment simulates 12 seconds of the overload experiment for a
// number of clients, four times, and sixteen times as many. The capacity grows
// with them, and so do operations and attempts; in the last series it does not,
// so that there are more clients to keep and no more to do.
func BenchmarkExperiment(b *testing.B) {
	const few = 500
	for _, row := range []struct {
		who, policy string
		capacity    func(clients int) int
	}{
		{"no retry", "none", func(n int) int { return n }},
		{"final policy", "final", func(n int) int { return n }},
		{"final policy, same capacity", "final", func(int) int { return few }},
	} {
		p, err := experiment.PolicyNamed(row.policy)
		if err != nil {
			b.Fatal(err)
		}
		measure(b, "simulate an overloaded server", "clients", row.who, []int{few, 4 * few, 16 * few}, func(b *testing.B, n int) {
			c := experiment.Defaults().Scaled(row.capacity(n))
			c.Clients, c.Duration, c.Policies = n, 12*time.Second, []experiment.Policy{p}
			attempts := 0
			for b.Loop() {
				r, err := experiment.Overload(context.Background(), c, nil)
				if err != nil {
					b.Fatal(err)
				}
				for _, phase := range r.Runs[0].Phases {
					attempts += phase.Attempts
				}
			}
			if attempts == 0 {
				b.Fatal("nothing was attempted")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(attempts), "ns/attempt")
		})
	}
}

// counter counts the bytes that are written.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// verdictsOf repeats the verdicts of a run, one in a hundred of which failed
// with all that explains it, as tests of other files and names.
func verdictsOf(n int) []*result.Verdict {
	failed := &result.Verdict{
		Status: result.Failed, Reason: "",
		Mismatches: []result.Mismatch{{Path: "expectEvents[0].events[1].commandStartedEvent.command.limit", Message: "the numbers differ",
			Want: "1", Got: "2", Diff: "- 1\n+ 2"}},
		Operations: []result.OperationLog{{Name: "find", Object: "collection0", Duration: time.Millisecond}},
		Rerun:      []string{"utr", "run", "--run", "^specs/find.yml: a test$", "specs/find.yml"},
	}
	var log result.ClientLog
	for i := range 40 {
		log.Events = append(log.Events, result.Event{Sequence: int64(i + 1), Time: time.Unix(1_700_000_000, 0).UTC(),
			Type: result.ConnectionCheckedOut, Address: "127.0.0.1:27017", Pool: &result.PoolEvent{ConnectionID: 4}})
	}
	failed.Clients = []result.ClientLog{log}
	list := make([]*result.Verdict, n)
	for i := range list {
		v := result.Verdict{Status: result.Passed}
		switch {
		case i%100 == 0:
			v = *failed
		case i%7 == 0:
			v = result.Verdict{Status: result.Skipped, SkipKind: result.SkipRequirement, Reason: "needs server 4.2.99 or earlier, the deployment has 8.0.12"}
		}
		v.Test = result.TestID{File: fmt.Sprintf("specs/file-%d.yml", i/200), Suite: fmt.Sprintf("suite %d", i/200), Iteration: 1,
			Description: fmt.Sprintf("operation %d is retried after an error", i), Deployment: "replicaset 8.0"}
		v.Duration, v.Began = 12*time.Millisecond, time.Unix(1_700_000_000+int64(i), 0).UTC()
		list[i] = &v
	}
	return list
}

// BenchmarkReports writes reports of a thousand, ten thousand and fifty
// thousand verdicts in each form. One in a hundred failed.
func BenchmarkReports(b *testing.B) {
	forms := []struct {
		name     string
		generate func() report.Generator
	}{
		{"text", func() report.Generator { return report.Text(report.TextOptions{}) }},
		{"JSON lines", report.JSON}, {"JUnit", report.JUnit}, {"TAP", report.TAP}, {"Markdown", report.Markdown},
		{"HTML", func() report.Generator { return report.HTML() }},
	}
	for _, n := range []int{1000, 10_000, 50_000} {
		verdicts := verdictsOf(n)
		var s result.Summary
		for _, v := range verdicts {
			s.Add(v)
		}
		for _, f := range forms {
			b.Run(fmt.Sprintf("%s/verdicts=%d", f.name, n), func(b *testing.B) {
				b.ReportAllocs()
				var out counter
				for b.Loop() {
					out = 0
					r := report.New("nowhere", f.generate(), &out)
					r.Note(result.RunStarted{Total: n})
					for _, v := range verdicts {
						r.Note(result.TestFinished{Verdict: v})
					}
					r.Note(result.RunFinished{Summary: s})
				}
				b.ReportMetric(float64(out)/float64(n), "bytes/verdict")
				figures.note(group{name: "report", unit: "verdicts"}, f.name, false, point{n, b.Elapsed() / time.Duration(b.N), int64(out)})
			})
		}
	}
}
