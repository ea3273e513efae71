package retry

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// TestLabels tests the labels that drivers add to an error of an insert, by policy.
func TestLabels(t *testing.T) {
	const overload = codes.SystemOverloadedError + " " + codes.RetryableError
	hello := Failure{Kind: Network, Handshake: true, Connecting: true}
	authentication := Failure{Kind: Network, Handshake: true}
	for _, row := range []struct {
		reason, policy string
		f              Failure
		wire           int32
		want           string
	}{
		{"both kinds of labels", "current", hello, 21, overload + " " + codes.RetryableWriteError},
		{"the labels are of 2025-11-21", "client-backpressure@2025-12", hello, 21, overload + " " + codes.RetryableWriteError},
		{"they do not depend on client backpressure", "retryable-reads@2026", hello, 21, overload + " " + codes.RetryableWriteError},
		{"only RetryableWriteError in 2024", "retryable-reads@2024", hello, 21, codes.RetryableWriteError},
		{"no labels in 2018", "retryable-writes@2018-03-14", hello, 21, ""},
		{"no labels in 2014", "read-preferences@2014-02-14", hello, 21, ""},
		{"no labels in 2012", "read-preferences@2012-08", hello, 21, ""},
		{"authentication does not overload", "current", authentication, 21, codes.RetryableWriteError},
		{"any server since 2026-06-17", "current", Failure{Kind: Network}, 5, codes.RetryableWriteError},
		{"a server without retryable writes until then", "client-backpressure@2025-12", Failure{Kind: Network}, 5, ""},
		{"a code of a server before 4.4", "retryable-reads@2024", Failure{Kind: Server, Code: 91}, 8, codes.RetryableWriteError},
		{"a code of a server before 4.4, before labels", "retryable-writes@2018-03-14",
			Failure{Kind: Server, Code: 91}, 8, ""},
	} {
		p, err := Named(row.policy)
		testkit.Check(t, err)
		got := Labels(p, failing("insert", 1).Settings, Chosen{Wire: row.wire, RetryableWrites: true}, row.f)
		testkit.Equal(t, row.reason, strings.Join(got, " "), row.want)
	}
}
