package reference

import (
	"testing"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/testkit/support"
)

//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestSupportMatrix$ .

func TestSupportMatrix(t *testing.T) {
	support.Column(t, support.Reference, enginekit.NewTable(rows()))
}
