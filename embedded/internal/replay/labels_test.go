package replay

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestLabels plays commands that a fail point made fail with every code: the name of each code and its labels. The
// recordings lack the fail points, whose codes are in the replies.
func TestLabels(t *testing.T) {
	for name, kind := range map[string]server.Topology{"more-standalone": server.Standalone,
		"more-replica-set": server.ReplicaSet} {
		t.Run(name, func(t *testing.T) {
			steps := scenario(t, filepath.Join(testkit.Recordings(t), "5.0", name+".jsonl"))
			synctest.Test(t, func(t *testing.T) {
				p := setup{version: "5.0", began: 1795728700, kind: kind}.start(t, "127.0.0.1:28310", "127.0.0.1:28311",
					"127.0.0.1:28312")
				for i, s := range steps {
					if s.Reply == nil || !strings.HasPrefix(s.Scenario, "labels: every code") {
						continue
					}
					reply := testkit.Extended[bson.D](t, s.Reply.Doc)
					if !strings.Contains(value.As[string](reply, "errmsg"), "'failCommand'") {
						continue
					}
					command := testkit.Extended[bson.D](t, s.Send)[0].Key
					p.run(fmt.Sprintf(`{"configureFailPoint": "failCommand", "mode": "alwaysOn",
						"data": {"failCommands": [%q], "errorCode": %v}, "$db": "admin"}`, command, value.Get(reply, "code")))
					s.Connection = i // codes may close it
					if diff := p.play(s); len(diff) > 0 {
						t.Errorf("%s %.200s\n\t%s", s, s.Send, strings.Join(diff, "\n\t"))
					}
				}
			})
		})
	}
}
