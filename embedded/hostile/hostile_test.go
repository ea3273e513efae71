package hostile_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/hostile"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// faulty is data whose one command does what a test asks for.
type faulty struct {
	run func(*command.Request) (bson.D, error)
}

func (f faulty) Rows() []command.Row {
	return []command.Row{{Name: "insert", Run: f.run, OnSecondary: true}}
}
func (faulty) ClusterTime(t bson.Timestamp) bson.Timestamp { return t }
func (faulty) OperationTime() bson.Timestamp               { return bson.Timestamp{T: 1} }
func (faulty) EndSessions([]bson.Raw)                      {}
func (faulty) KillSessions([]bson.Raw)                     {}
func (faulty) Scripting() bool                             { return true }
func (faulty) EndTerm(int64)                               {}

// TestStorm is a share of the million messages of the soak, and what a storm
// must find.
func TestStorm(t *testing.T) {
	seed := testkit.Seed(t)
	never := make(chan struct{})
	for _, row := range []struct {
		reason string
		run    func(*command.Request) (bson.D, error) // nil: real data
		want   string                                 // part of the error
	}{
		{"nothing harms the servers", nil, ""},
		{"a command that panics", func(*command.Request) (bson.D, error) { panic("ouch") }, "made a command fail inside"},
		{"a command that does not end", func(r *command.Request) (bson.D, error) { <-never; return nil, nil }, "has not taken"},
		{"a server that dies", nil, "a ping after"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never = make(chan struct{})
				c, err := hostile.ReplicaSet(nil)
				if row.run != nil {
					c, err = hostile.ReplicaSet(faulty{row.run})
				}
				testkit.Check(t, err)
				if strings.Contains(row.reason, "dies") {
					_ = c.Kill(c.Members()[0])
				}
				err = hostile.Storm(c, seed, 2500)
				if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
					t.Errorf("got %v", err)
				}
				close(never)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
