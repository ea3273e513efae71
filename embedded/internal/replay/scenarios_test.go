package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestScenarios plays the scenarios of 5.0 and counts the replies that are equal in everything but messages and the
// order of fields, and those that are equal in everything. The counts must be those of the file, so that none is lost
// unnoticed. With -v it logs each difference.
func TestScenarios(t *testing.T) {
	testkit.PlayCases(t, "testdata/scenarios.txt", func(t *testing.T, name string) (counts string) {
		kind, topology := server.Single, name
		for suffix, k := range map[string]server.Kind{"-replica-set": server.ReplicaSet, "-sharded": server.Sharded} {
			if strings.HasSuffix(topology, suffix) {
				kind = k
			}
		}
		steps := scenario(t, name)
		synctest.Test(t, func(t *testing.T) {
			numbered := hosts(t, steps)
			p := newPlayerOf(t, "5.0", 1795739970, false, kind, nil, slices.Sorted(slices.Values(numbered))...)
			slices.SortFunc(p.servers, func(a, b *server.Server) int {
				return slices.Index(numbered, a.Address()) - slices.Index(numbered, b.Address())
			})
			for kind == server.ReplicaSet && p.cluster.Primary() != p.servers[0] {
				testkit.Check(t, p.cluster.StepDown())
			}
			same, equal := 0, 0
			for _, s := range steps {
				p.minor = nil
				diff := p.play(s)
				if len(diff) == len(p.minor) {
					same++
				}
				if len(diff) == 0 {
					equal++
					continue
				}
				if testing.Verbose() {
					t.Logf("%s %s\n\t%s", s, s.Send, strings.Join(append(diff[:len(diff)-len(p.minor)], "and in messages or the order of fields: "+strings.Join(p.minor, "; ")), "\n\t"))
				}
			}
			counts = fmt.Sprintf("%d of %d, %d in everything", same, len(steps), equal)
		})
		return counts
	})
}

// scenario reads a recording of scenarios. In it, the shard's replica set has another name.
func scenario(t *testing.T, name string) (steps []step) {
	text, err := os.ReadFile(filepath.Join(testkit.Recordings(t), "5.0", "scenarios", name+".jsonl"))
	testkit.Check(t, err)
	text = bytes.ReplaceAll(text, []byte("rs0s/127.0.0.1:28340"), []byte("rs0/localhost:27310"))
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var s step
		testkit.Check(t, json.Unmarshal(in.Bytes(), &s))
		steps = append(steps, s)
	}
	testkit.Check(t, in.Err())
	return steps
}

// hosts returns the addresses of the servers by their numbers. Server 0 is the primary.
func hosts(t *testing.T, steps []step) []string {
	known := []string{"127.0.0.1:28310"}
	for _, s := range steps {
		for s.Server >= len(known) {
			known = append(known, fmt.Sprintf("127.0.0.1:%d", 28310+len(known)))
		}
		if s.Reply != nil && bytes.Contains(s.Reply.Doc, []byte(`"me"`)) {
			if me := value.As[string](testkit.Extended[bson.D](t, s.Reply.Doc), "me"); me != "" {
				known[s.Server] = me
			}
		}
	}
	return known
}
