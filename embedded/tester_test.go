package embedded_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/runner/blackpipe"
)

// failing is a test that records why it was ended.
type failing struct {
	exampleTest
	says string
}

func (f *failing) Fatalf(format string, args ...any) { f.says = fmt.Sprintf(format, args...) }

// A test that starts a server for itself ends it, and fails if it cannot be started.
func TestServersOfTests(t *testing.T) {
	for _, r := range []struct {
		reason string
		start  func(t embedded.Tester) (address string)
		fails  func(t embedded.Tester)
		says   string
	}{
		{"a deployment", func(t embedded.Tester) string { return embedded.StartT(t, embedded.Options{}).Hosts()[0] },
			func(t embedded.Tester) { embedded.StartT(t, embedded.Options{Version: "1.0"}) }, "embedded: "},
		{"a scripted server", func(t embedded.Tester) string {
			return strings.TrimPrefix(strings.TrimSuffix(blackpipe.ListenT(t, blackpipe.Options{}).URI(),
				"/?directConnection=true"), "mongodb://")
		}, func(t embedded.Tester) {
			blackpipe.ListenT(t,
				blackpipe.Options{Topology: "round"})
		}, `blackpipe: topology "round" is not one of`},
	} {
		t.Run(r.reason, func(t *testing.T) {
			address := ""
			hello := func() error {
				_, err := direct.Run(testkit.Context(t), address, nil, "admin", testkit.D("hello", 1))
				return err
			}
			t.Run("the test", func(t *testing.T) {
				address = r.start(t)
				testkit.Check(t, hello())
			})
			testkit.Equal(t, "it runs after its test", hello() == nil, false)
			f := &failing{}
			r.fails(f)
			testkit.Contains(t, f.says, r.says)
			testkit.Equal(t, "what is left to close", len(f.cleanUp), 0)
		})
	}
}
