package interpose

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, host string) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().SetHosts([]string{host}).SetDirect(true).SetRetryWrites(false).
		SetHeartbeatInterval(500 * time.Millisecond)) // for the end of sessions after the server was Unknown
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
		t.Run(r.reason, func(t *testing.T) {
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
			t.Cleanup(func() { // after the client has ended its sessions
				p.Close()
				p.Close()
			})
			_, err = connect(t, p.Address()).InsertOne(t.Context(), bson.D{})
			if !r.fails(err) {
				t.Error(err)
			}
			n, err := direct.CountDocuments(t.Context(), bson.D{})
			testkit.Check(t, err)
			testkit.Equal(t, "documents", n, r.executed)
			testkit.Equal(t, "replies", replies.Load(), int64(r.replied))
		})
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
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.InsertOne(soon, bson.D{}); err == nil {
		t.Error("the server is reachable after Vanish")
	}
	p.Return()
	_, err = connect(t, p.Address()).InsertOne(t.Context(), bson.D{})
	testkit.Check(t, err)
}

// TestReplies checks that a reply to another message breaks the connection.
func TestReplies(t *testing.T) {
	for _, row := range []struct {
		reason    string
		replies   [][2]int32 // their ids, and the ids of the messages that they reply to
		forwarded int
	}{
		{"the reply to the request", [][2]int32{{50, 7}}, 1},
		{"a reply to another request", [][2]int32{{50, 6}}, 0},
		{"a stream", [][2]int32{{50, 7}, {51, 50}}, 2},
		{"a stream whose second reply is to the request", [][2]int32{{50, 7}, {51, 7}}, 1},
	} {
		near, server := net.Pipe()
		client, far := net.Pipe()
		go func() {
			for i, reply := range row.replies {
				more := wire.Flags(0)
				if i < len(row.replies)-1 {
					more = wire.MoreToCome
				}
				_, _ = server.Write(wire.AppendMsg(nil, reply[0], reply[1], more, testkit.Raw(t, bson.D{})))
			}
		}()
		open := make(chan bool)
		go func() {
			open <- new(Proxy).reply(7, "find", Forward, near, client)
			_ = client.Close()
		}()
		forwarded := 0
		go func() {
			for ; ; forwarded++ {
				if _, _, err := wire.ReadMessage(far); err != nil {
					open <- false
					return
				}
			}
		}()
		stays := <-open
		<-open
		testkit.Equal(t, row.reason, []any{forwarded, stays}, []any{row.forwarded, row.forwarded == len(row.replies)})
		_, _ = near.Close(), server.Close()
	}
}
