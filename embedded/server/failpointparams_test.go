package server_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/server"
)

// getParameter tells how a fail point is set, as servers with test commands do.
func TestFailPointParameter(t *testing.T) {
	for _, row := range []struct {
		reason  string
		version string
		set     bson.D // nil: not at all
		pings   int
		mode    int64
		entered int64
	}{
		{"it was never set", "8.0", nil, 0, 0, 0},
		{"it is off", "8.0", d("mode", "off"), 1, 0, 0},
		{"it is on, and has not struck", "8.0", d("mode", "alwaysOn"), 0, 1, 0},
		{"it is on, and has struck", "8.0", d("mode", "alwaysOn"), 2, 1, 2},
		{"random", "8.0", d("mode", d("activationProbability", 1.0)), 1, 2, 1},
		{"times are left", "8.0", d("mode", d("times", 2)), 1, 3, 1},
		{"no times are left", "8.0", d("mode", d("times", 2)), 3, 0, 2},
		{"skip", "8.0", d("mode", d("skip", 1)), 2, 4, 1},
		{"a server that does not count", "4.2", d("mode", "alwaysOn"), 1, 1, -1},
	} {
		t.Run(row.reason, func(t *testing.T) {
			c := dial(t, cluster(t, server.Single, row.version, 1).Members()[0].Address())
			data := d("failCommands", bson.A{"ping"}, "errorCode", 8)
			if row.set != nil {
				if reply := c.call(append(append(d("configureFailPoint", "failCommand"), row.set...), bson.E{Key: "data", Value: data})); code(reply) != 0 {
					t.Fatal(reply)
				}
			}
			for range row.pings {
				c.call(d("ping", 1))
			}
			for _, command := range []bson.D{d("getParameter", 1, "failpoint.failCommand", 1), d("getParameter", "*")} {
				reply := c.call(command)
				told, err := reply.LookupErr("failpoint.failCommand")
				if err != nil {
					t.Fatalf("%v: %v", err, reply)
				}
				if mode := told.Document().Lookup("mode").AsInt64(); mode != row.mode {
					t.Errorf("%v: mode %d, want %d", command, mode, row.mode)
				}
				entered, ok := told.Document().Lookup("timesEntered").AsInt64OK()
				if !ok {
					entered = -1
				}
				if entered != row.entered {
					t.Errorf("%v: timesEntered %d, want %d", command, entered, row.entered)
				}
				if _, err := told.Document().LookupErr("data", "failCommands"); (err == nil) != (row.set != nil) {
					t.Errorf("%v: %v", command, told)
				}
			}
		})
	}
}

// The sequence is one for the whole deployment, and so is what is told of it.
func TestFailCommandSequenceParameter(t *testing.T) {
	members := cluster(t, server.Sharded, "8.0", 2).Members()
	one, other := dial(t, members[0].Address()), dial(t, members[1].Address())
	mode := func() int64 {
		reply := other.call(d("getParameter", 1, "failpoint.failCommandSequence", 1))
		return reply.Lookup("failpoint.failCommandSequence", "mode").AsInt64()
	}
	if got := mode(); got != 0 {
		t.Errorf("mode %d before it was set", got)
	}
	one.call(d("configureFailPoint", "failCommandSequence", "mode", "alwaysOn", "data", d("failCommands", bson.A{"insert"}, "sequence", bson.A{d("errorCode", 91)})))
	if got := mode(); got != 1 {
		t.Errorf("mode %d while it is on", got)
	}
	one.call(d("configureFailPoint", "failCommandSequence", "mode", "off"))
	if got := mode(); got != 0 {
		t.Errorf("mode %d after it was turned off", got)
	}
}

// A write that a fail point holds up meets the server as it is afterwards: one
// that stepped down meanwhile takes none.
func TestStepDownDuringBlock(t *testing.T) {
	set := cluster(t, server.ReplicaSet, "8.0", 2)
	primary := dial(t, set.Members()[0].Address())
	primary.call(d("configureFailPoint", "failCommand", "mode", d("times", 1), "data",
		d("failCommands", bson.A{"insert"}, "blockConnection", true, "blockTimeMS", 500)))
	watch := dial(t, set.Members()[0].Address())
	done := make(chan error, 1)
	go func() {
		for watch.call(d("getParameter", 1, "failpoint.failCommand", 1)).Lookup("failpoint.failCommand", "timesEntered").AsInt64() == 0 {
		}
		done <- set.StepDown()
	}()
	reply := primary.call(d("insert", "c", "documents", bson.A{d("_id", 1)}))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if code(reply) != 10107 {
		t.Errorf("the insert: %v", reply)
	}
}
