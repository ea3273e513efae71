package lock

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// A lock needs only commands and operators that every server has: other vendors' servers have no updates with a
// pipeline and no expressions such as $$NOW.
func TestCommandsOfALock(t *testing.T) {
	ctx := testkit.Context(t)
	server, err := embedded.Start(ctx, embedded.Options{})
	testkit.Check(t, err)
	defer func() { testkit.Check(t, server.Close()) }()
	o := options.Client().ApplyURI(server.URI())
	d, err := Open(o)
	testkit.Check(t, err)
	defer d.Close()
	testkit.Equal(t, "monitoring", *o.ServerMonitoringMode, "poll")
	var sent []string
	send := d.Run
	d.Run = func(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
		sent = append(sent, testkit.Raw(t, command).String())
		return send(ctx, database, command)
	}
	took := func(run, name string) bool {
		ok, err := d.Take(ctx, Holder{Run: run, Name: name}, time.Hour)
		testkit.Check(t, err)
		return ok
	}
	renewed := func(run string, lease time.Duration) bool {
		ok, err := d.Renew(ctx, run, lease)
		testkit.Check(t, err)
		return ok
	}
	testkit.Equal(t, "free, held, ours", []bool{took("a", "first"), took("b", ""), took("a", "first")},
		[]bool{true, false, true})
	testkit.Equal(t, "renewed by its run, by another, until now, and after that",
		[]bool{renewed("a", time.Hour), renewed("b", time.Hour), renewed("a", 0), renewed("a", time.Hour)},
		[]bool{true, false, true, false})
	testkit.Equal(t, "expired, and held again", []bool{took("b", ""), took("a", "first")}, []bool{true, false})
	h, err := d.Read(ctx)
	testkit.Check(t, err)
	testkit.Equal(t, "nothing of the first holder is left", []any{h.Run, h.Name, h.Stale()}, []any{"b", "", false})
	testkit.Check(t, d.Remove(ctx, "b"))
	h, err = d.Read(ctx)
	testkit.Check(t, err)
	testkit.Equal(t, "removed", h == nil, true)
	for _, command := range sent {
		name, _, _ := strings.Cut(strings.TrimPrefix(command, `{"`), `"`)
		if !strings.Contains(" isMaster findAndModify aggregate delete ", " "+name+" ") || strings.Contains(command, "$$") ||
			strings.Contains(command, `"update": [`) || strings.Contains(command, "$expr") {
			t.Errorf("not every server has what this command needs: %s", command)
		}
	}
}
