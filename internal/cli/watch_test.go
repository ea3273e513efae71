package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// heard is an output that can be read while it is written to.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// A suite runs again when it changes, be it valid or not; another one does not.
func TestWatch(t *testing.T) {
	b := realBench(t)
	var out, errs heard
	b.Stdout, b.Stderr = &out, &errs
	passing := `{description: x, schemaVersion: "1.0", createEntities: [{client: {id: c}}, {database: {id: d, client: c, databaseName: utr-watch}}],
		tests: [{description: a, operations: [{name: runCommand, object: d, arguments: {commandName: ping, command: {ping: 1}}}]}]}`
	write(t, "d/a.yml", passing)
	write(t, "d/a.json", "{}")
	write(t, "d/b.yml", strings.Replace(passing, "description: a", "description: b", 1))
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int)
	go func() { code <- b.Main(ctx, []string{"run", "--watch", "--topology", "single", "d"}) }()
	said := func(of *heard, what string, times int) {
		t.Helper()
		testkit.Until(t, what, func() bool { return strings.Count(of.String(), what) >= times })
		testkit.Equal(t, what, strings.Count(of.String(), what), times)
	}
	said(&errs, "waiting for a suite to change", 1)
	said(&out, "2 passed, 0 failed, 0 skipped\n", 1)
	write(t, "d/a.yml", strings.Replace(passing, "ping: 1", "pong: 12", 1))
	said(&errs, "changed: d/a.yml", 1)
	said(&errs, "waiting for a suite to change", 2)
	said(&out, "0 passed, 1 failed, 0 skipped\n", 1)
	write(t, "d/a.yml", "tests: 3\n")
	said(&errs, "waiting for a suite to change", 3)
	said(&errs, "d/a.yml:1:1: error: this is not a unified suite", 1)
	cancel()
	testkit.Equal(t, "the exit code", <-code, ExitOK)
	testkit.Equal(t, "without files", b.Main(t.Context(), []string{"run", "--watch", "smoke"}), ExitUsage)
}
