package server_test

import (
	"testing"

	"github.com/unified-test-runner/utr/embedded/server"
)

// A parameter that is a switch stays one, whatever number it is set to: suites
// require enableTestCommands to be true, and servers are started with 1.
func TestSwitches(t *testing.T) {
	c := dial(t, cluster(t, server.Single, "8.0", 1).Members()[0].Address())
	for _, row := range []struct {
		reason string
		value  any
		want   bool
		code   int64
	}{
		{"one", 1, true, 0},
		{"another number", 2.5, true, 0},
		{"nothing", 0, false, 0},
		{"true", true, true, 0},
		{"a text is no switch", "yes", true, 2},
	} {
		if got := code(c.call(d("setParameter", 1, "quiet", row.value))); got != row.code {
			t.Errorf("%s: code %d", row.reason, got)
		}
		if got, ok := c.call(d("getParameter", 1, "quiet", 1)).Lookup("quiet").BooleanOK(); !ok || got != row.want {
			t.Errorf("%s: it tells %t, a switch: %t", row.reason, got, ok)
		}
	}
}
