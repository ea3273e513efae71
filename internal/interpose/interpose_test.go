package interpose

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, host string) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().SetHosts([]string{host}).SetDirect(true).SetRetryWrites(false).
		SetServerSelectionTimeout(300 * time.Millisecond))
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, client.Disconnect(context.Background())) })
	return client.Database("interpose").Collection("documents")
}

// TestDeeds checks what the server executes and what the client receives.
func TestDeeds(t *testing.T) {
	d, err := embedded.Start(t.Context(), embedded.Options{})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, d.Close()) })
	for _, r := range []struct {
		reason   string
		deed     Action
		executed int64
		replied  int // how often the server replied
		fails    func(error) bool
	}{
		{"forwarded", Forward, 1, 1, func(err error) bool { return err == nil }},
		{"the request is lost", DropRequest, 0, 0, mongo.IsNetworkError},
		{"the reply is lost", DropReply, 1, 1, mongo.IsNetworkError},
		{"refused", Refuse, 0, 0, func(err error) bool { e := mongo.CommandError{}; return errors.As(err, &e) && e.Code == 13 }},
		{"a former primary", StepDown, 0, 0, func(err error) bool {
			e := mongo.CommandError{}
			return errors.As(err, &e) && e.Code == 10107 && e.HasErrorLabel("RetryableWriteError")
		}},
	} {
		direct := connect(t, d.Hosts()[0])
		testkit.Check(t, direct.Drop(t.Context()))
		var replies atomic.Int64
		p, err := Listen(d.Hosts()[0], Hooks{
			Command: func(name string) Action {
				if name == "insert" {
					return r.deed
				}
				return Forward
			},
			Replied: func(name string, deed Action) {
				if name == "insert" && deed == r.deed {
					replies.Add(1)
				}
			},
		})
		testkit.Check(t, err)
		_, err = connect(t, p.Address()).InsertOne(t.Context(), bson.D{})
		if !r.fails(err) {
			t.Errorf("%s: %v", r.reason, err)
		}
		n, err := direct.CountDocuments(t.Context(), bson.D{})
		testkit.Check(t, err)
		testkit.Equal(t, r.reason+": documents", n, r.executed)
		testkit.Equal(t, r.reason+": replies", replies.Load(), r.replied)
		p.Close()
		p.Close()
	}
}

func TestVanish(t *testing.T) {
	d, err := embedded.Start(t.Context(), embedded.Options{})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, d.Close()) })
	p, err := Listen(d.Hosts()[0], Hooks{})
	testkit.Check(t, err)
	t.Cleanup(p.Close)
	c := connect(t, p.Address())
	_, err = c.InsertOne(t.Context(), bson.D{})
	testkit.Check(t, err)
	p.Vanish()
	if _, err := c.InsertOne(t.Context(), bson.D{}); err == nil {
		t.Error("the server is reachable after Vanish")
	}
	p.Return()
	_, err = connect(t, p.Address()).InsertOne(t.Context(), bson.D{})
	testkit.Check(t, err)
}
