package cli

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// What servers log passes the same filter as everything else that they say.
func TestServerLogIsRedacted(t *testing.T) {
	r := newRedactor("mongodb://user:open-sesame@host/")
	secret := []result.LogLine{{Server: "host:27017", Text: "somebody wrote open-sesame"}}
	v := &result.Verdict{Status: result.Flaky, ServerLog: secret, Attempts: []*result.Verdict{{Status: result.Failed, ServerLog: secret}}}
	for reason, g := range map[string]report.Generator{"JSON": report.JSON(), "HTML": report.HTML(), "text": report.Text(report.TextOptions{Verbose: true}), "JUnit": report.JUnit()} {
		text := string(g(r.note(result.TestFinished{Verdict: v}))) + string(g(result.RunFinished{}))
		if strings.Contains(text, "open-sesame") || !strings.Contains(text, "somebody wrote ***") {
			t.Errorf("%s: %s", reason, text)
		}
	}
	if secret[0].Text != "somebody wrote open-sesame" {
		t.Error("the verdict itself was changed")
	}
}
