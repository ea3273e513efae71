package bench

import (
	"testing"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginetest"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// Behaviours checks all behaviours of an engine on the deployment at uri.
func Behaviours(t *testing.T, e engine.Engine, uri string) {
	for _, b := range enginetest.Behaviours() {
		t.Run(b.Name, func(t *testing.T) { testkit.Check(t, b.Check(t.Context(), e, uri)) })
	}
}
