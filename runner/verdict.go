package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// verdict returns the verdict of a test. cleanup is why the clean-up failed, lost why the deployment no longer
// responds, and died which servers ended. In the last two cases, a failure is not the engine's fault.
func (t *testRun) verdict(cleanup *fault, lost, died error) *result.Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.job.verdict(result.Passed, "")
	t.decide(v, cleanup, lost, died)
	logs := t.clientLogs()
	if v.Status == result.Failed && v.Reason == "" {
		v.Reason = t.site.election(logs)
	}
	t.run.expectFailure(v, subject(t.suite, t.test))
	v.Timings = t.divided(logs)
	t.explain(v, logs)
	if !t.run.cfg.Untrimmed {
		v.Trim(result.DefaultLimits())
	}
	if t.run.cfg.Rerun != nil {
		v.Rerun = t.run.cfg.Rerun(v.Test)
	}
	return v
}

// decide sets status and reason by the fault of the test, and then by what failed besides.
func (t *testRun) decide(v *result.Verdict, cleanup *fault, lost, died error) {
	switch f := t.fault; {
	case f == nil:
	case f.broken != nil:
		v.Status, v.Reason = result.Broken, f.broken.Error()
	case f.interrupted:
		v.Status, v.SkipKind, v.Reason = result.Skipped, result.SkipInterrupted, "interrupted"
	case f.unsupported != "":
		v.Status, v.SkipKind, v.Reason = result.Skipped, result.SkipCapability, "the engine lacks "+f.unsupported
	default:
		v.Status, v.Mismatches = result.Failed, f.mismatches
	}
	switch {
	case lost != nil:
		v.Status, v.SkipKind, v.Reason = result.Broken, "", lost.Error()+t.stillOn(cleanup)
	case died != nil && (v.Status == result.Failed || cleanup != nil):
		v.Status, v.SkipKind, v.Reason = result.Broken, "", died.Error()+t.stillOn(cleanup)
	case cleanup != nil:
		harmless := v.SkipKind == result.SkipInterrupted && t.stillOn(cleanup) == ""
		if v.Status != result.Failed && v.Status != result.Broken && !harmless { // which remain so
			v.Status, v.SkipKind = result.Broken, ""
		}
		if also := news(cleanup.broken.Error(), v.Reason); also != "" {
			v.Reason = strings.TrimPrefix(v.Reason+"; clean-up: "+also, "; ")
		}
	}
}

// explain adds what explains the verdict: events and operations, warnings, an excerpt of the suite, and the servers'
// log.
func (t *testRun) explain(v *result.Verdict, logs []result.ClientLog) {
	if v.Status != result.Passed && v.Status != result.Skipped || t.run.cfg.KeepEvents {
		v.Clients, v.Operations = logs, t.operations
	}
	if v.Status == result.Passed {
		for _, m := range t.unfired {
			v.Warnings = append(v.Warnings, m.Position.String()+": "+m.Message)
		}
	}
	if !v.Status.FailsRun() {
		return
	}
	v.Warnings, v.Excerpt = warnings(t.suite, t.test, v.Mismatches), excerpt(t.suite, v)
	for _, l := range t.site.deployment.Log(t.window[0], t.window[1]) {
		v.ServerLog = append(v.ServerLog, result.LogLine(l))
	}
}

// stillOn names a fail point that may still be on. It affects other programs, and can be why the servers do not answer.
func (t *testRun) stillOn(cleanup *fault) string {
	on := new(stillOnError)
	for _, f := range []*fault{t.fault, cleanup} {
		if f != nil && errors.As(f.broken, &on) {
			return fmt.Sprintf("; the fail point %s of this test may still be on", on.name)
		}
	}
	return ""
}

// news returns the error of a clean-up, without what the reason already says. For example, an engine that crashed
// cannot end the test either.
func news(cleanup, reason string) string {
	if reason == "" {
		return cleanup
	}
	return strings.TrimSpace(strings.Replace(cleanup, endless+reason, "", 1))
}

// warnings returns the warnings of a suite that concern a test, without those that are mismatches.
func warnings(s *specs.Suite, test *specs.Test, mismatches []result.Mismatch) (all []string) {
	own := fmt.Sprintf("tests[%d]", slices.Index(s.Tests, test))
	for _, w := range s.Warnings {
		inTest, _, _ := strings.Cut(w.Path, ".")
		if inTest != own && strings.HasPrefix(w.Path, "tests[") ||
			slices.ContainsFunc(mismatches, func(m result.Mismatch) bool {
				return m.Position == w.Position && m.Message == w.Message
			}) {
			continue
		}
		all = append(all, w.Position.String()+": "+w.Message)
	}
	return all
}

const (
	excerptBefore = 8
	excerptAfter  = 4
	excerptWidth  = 400 // bytes of a line
)

// excerpt returns the lines of a suite around the first mismatch, or else around the test.
func excerpt(s *specs.Suite, v *result.Verdict) *result.Excerpt {
	at := v.Position
	for _, m := range v.Mismatches {
		if !m.Position.IsZero() {
			at = m.Position
			break
		}
	}
	first := max(1, at.Line-excerptBefore)
	lines := s.Lines(first, at.Line+excerptAfter)
	if len(lines) == 0 {
		return nil
	}
	for i, l := range lines {
		if len(l) > excerptWidth {
			lines[i] = strings.ToValidUTF8(l[:excerptWidth], "") + "…"
		}
	}
	return &result.Excerpt{Line: at.Line, First: first, Lines: lines}
}

// expectFailure applies the list of known failures.
func (r *run) expectFailure(v *result.Verdict, subject string) {
	k := known(r.cfg.KnownFailing, subject, r.about.Version, r.day)
	switch {
	case k == nil:
	case k.expired(r.day):
		if v.Status == result.Failed {
			v.Reason = strings.TrimPrefix(v.Reason+"; known to fail, but expired: "+k.Reason, "; ")
		}
	case v.Status == result.Failed:
		v.Status, v.Reason = result.KnownFailing, k.Reason
	case v.Status == result.Passed && !k.sometimes:
		r.problem("unexpected pass of %q, which %s lists as failing: %s", subject, k.position, k.Reason)
	}
}

// clientLogs returns the logs of all clients in order of creation.
func (t *testRun) clientLogs() []result.ClientLog {
	var logs []result.ClientLog
	for _, client := range t.entities.Of(entities.Client) {
		logs = append(logs, result.ClientLog{Client: client, Events: t.logs[client]})
	}
	return logs
}
