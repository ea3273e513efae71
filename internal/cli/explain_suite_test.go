package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// A test that passes is told attempt by attempt, with the rules; another one is not run.
func TestExplainSuite(t *testing.T) {
	b := realBench(t)
	testkit.Equal(t, "the exit code of new", b.utr("new client-backpressure a.yml"), ExitOK)
	testkit.Equal(t, "the exit code", b.utr("explain --run 'after overload errors' --policy client-backpressure@2025-12 --topology replicaset --html page.html a.yml"), ExitOK)
	for _, want := range []string{
		`find on collection  a\.yml:\d+:9`,
		`attempt 1: select, tokens 1000 \[R1\] first attempt`,
		`attempt 1: send 127\.0\.0\.1:\d+, tokens 1000 \[R5\] a server is selected`,
		`attempt 2: back off 127\.0\.0\.1:\d+ [\d.]+ ms, tokens 998 \[B1 B2 R20 B14 R42 B6\] the server is overloaded`,
		`attempt 3: return result `,
		`1 passed, 0 failed, 0 skipped`,
	} {
		if !regexp.MustCompile(want).MatchString(b.out.String()) {
			t.Errorf("it does not say %s\n%s", want, b.out.String())
		}
	}
	page, err := os.ReadFile("page.html")
	testkit.Check(t, err)
	testkit.Equal(t, "the page has the decisions", strings.Contains(string(page), "the server is overloaded"), true)
}
