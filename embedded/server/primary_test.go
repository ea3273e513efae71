package server_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/server"
)

// watching is a stub whose getMore is about a change stream, and fails.
type watching struct{ stub }

func (w watching) Rows() []command.Row {
	fails := command.Row{Name: "getMore", OnSecondary: true, Run: func(r *command.Request) (bson.D, error) {
		r.Watches = true
		return nil, command.Errorf(r.Body.Index(0).Value().Int32(), "as asked for")
	}}
	return append([]command.Row{fails}, w.stub.Rows()...)
}

// TestResumableErrors are the labels of errors of a change stream's getMore: the server's codes,
// which are not those of the drivers' list.
func TestResumableErrors(t *testing.T) {
	for _, row := range []struct {
		reason, version string
		codes           []int32
		want            string
	}{
		{"what is retriable, and what the list of drivers has with it", "8.0", []int32{6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602,
			13388, 13435, 13436}, `["ResumableChangeStreamError"]`},
		{"what is retriable, and is not in the list of drivers", "8.0", []int32{134, 402}, `["ResumableChangeStreamError"]`},
		{"drivers know themselves what a lost cursor means", "8.0", []int32{43}, ""},
		{"402 came late", "4.4", []int32{402}, ""},
		{"other codes", "8.0", []int32{1, 8, 235, 280, 286}, ""},
		{"4.2 leaves it to the driver", "4.2", []int32{234}, ""},
	} {
		c := pipe(t, joined(t, row.version, 1, server.Config{Kind: server.ReplicaSet, Backend: watching{}}).Members()[0])
		for _, code := range row.codes {
			if reply := c.call(d("getMore", code)); reply.Lookup("errorLabels").String() != row.want {
				t.Errorf("%s: got %v, want %q", row.reason, reply, row.want)
			}
		}
	}
}

// TestWhoIsPrimary sees when a member sends its topologyVersion with an error.
func TestWhoIsPrimary(t *testing.T) {
	for _, row := range []struct {
		reason, version string
		kind            server.Kind
		code            int
		tells           bool
	}{
		{"it is not the primary any more", "8.0", server.ReplicaSet, 10107, true},
		{"it steps down", "8.0", server.ReplicaSet, 189, true},
		{"it shuts down, which says nothing of who is primary", "8.0", server.ReplicaSet, 91, false},
		{"4.2 does not have one", "4.2", server.ReplicaSet, 10107, false},
		{"a mongos does not either", "8.0", server.Sharded, 10107, false},
	} {
		c := pipe(t, joined(t, row.version, 1, server.Config{Kind: row.kind}).Members()[0])
		for _, data := range []bson.D{d("errorCode", row.code), d("writeConcernError", d("code", row.code, "errmsg", "late"))} {
			c.call(d("configureFailPoint", "failCommand", "mode", d("times", 1), "data", append(d("failCommands", bson.A{"insert"}), data...)))
			reply := c.call(d("insert", "c"))
			if _, err := reply.LookupErr("topologyVersion"); (err == nil) != row.tells {
				t.Errorf("%s, %v: got %v", row.reason, data, reply)
			}
		}
	}
}
