package deployment

import (
	"context"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Commands determine what servers lack, because other vendors' servers report any version.
func TestLacks(t *testing.T) {
	for _, row := range []struct {
		reason, isMaster, listCommands, want string
	}{
		{"a server with everything", `{"logicalSessionTimeoutMinutes": 30}`,
			`{"commands": {"mapReduce": {}, "commitTransaction": {}}}`, "[]"},
		{"a server that does not list its commands", `{"logicalSessionTimeoutMinutes": 30}`, "", "[]"},
		{"a server that advertises no sessions", `{}`, `{"commands": {"mapReduce": {}, "commitTransaction": {}}}`,
			"[sessions]"},
		{"a server without the commands of transactions and scripts", `{"logicalSessionTimeoutMinutes": 30}`,
			`{"commands": {"find": {}}}`, "[server-side JavaScript transactions]"},
	} {
		replies := map[string]string{"isMaster": row.isMaster, "listCommands": row.listCommands,
			"buildInfo": `{"versionArray": [7, 0, 42, 0]}`}
		run := func(_ context.Context, _ string, command bson.D) (bson.Raw, error) {
			text := replies[command[0].Key]
			if text == "" {
				return nil, mongo.CommandError{Code: 59, Name: "CommandNotFound"}
			}
			return testkit.Extended[bson.Raw](t, text), nil
		}
		d, err := discover(t.Context(), run, uri{hosts: []string{"h:1"}})
		testkit.Check(t, err)
		testkit.Check(t, describe(t.Context(), run, uri{}, &d))
		testkit.Equal(t, row.reason, fmt.Sprint(d.Lacks), row.want)
	}
}
