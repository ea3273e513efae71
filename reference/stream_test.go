package reference

import (
	"context"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestChangeStreamsResume(t *testing.T) {
	token := func(s string) bson.D { return bson.D{{Key: "_data", Value: s}} }
	event := func(s string) bson.D { return bson.D{{Key: "_id", Value: token(s)}} }
	for _, c := range []struct {
		why    string
		step   step
		resume bool
	}{
		{"a network error", closes, true},
		{"the label", fails(280, labelResumable), true},
		{"CursorNotFound", fails(43), true},
		{"no label", fails(280), false},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := script(t, "replicaset", 1)
			reply := func(batch string, docs ...bson.D) step {
				return step{reply: bson.D{{Key: "ok", Value: 1}, cursorField(batch, 9, "db.coll", docs...)}}
			}
			s.on("aggregate", reply("firstBatch", event("a")), reply("firstBatch", event("b")))
			s.on("getMore", c.step)
			b := open(t, s, Options{}, nil)
			if out := b.Do(context.Background(), engine.Operation{Object: "collection", Name: "createChangeStream", SaveAs: "stream",
				Arguments: raw(t, bson.D{{Key: "pipeline", Value: bson.A{}}})}); out.Err != nil {
				t.Fatal(out.Err)
			}
			b.must("stream", "iterateUntilDocumentOrError", nil)
			out := b.do("stream", "iterateUntilDocumentOrError", nil)
			if (out.Err == nil) != c.resume {
				t.Fatalf("%+v", out.Err)
			}
			sent := s.commands("aggregate")
			if !c.resume {
				if len(sent) != 1 {
					t.Error("resumed all the same")
				}
				return
			}
			after := sent[1].Lookup("pipeline", "0", "$changeStream", "resumeAfter", "_data")
			if v, _ := after.StringValueOK(); v != "a" {
				t.Errorf("resumed after %v", after)
			}
		})
	}
}

func TestOverloadIsWaitedFor(t *testing.T) {
	var slept []time.Duration
	o := Options{Random: func() float64 { return 0.5 },
		Sleep: func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }}
	s := script(t, "replicaset", 1)
	busy := fails(462, labelOverloaded, "RetryableError")
	s.on("ping", busy, busy)
	b := open(t, s, o, nil)
	b.must("database", "runCommand", bson.D{{Key: "commandName", Value: "ping"}, {Key: "command", Value: bson.D{{Key: "ping", Value: 1}}}})
	if len(slept) != 2 || slept[0] != 100*time.Millisecond || slept[1] != 200*time.Millisecond {
		t.Errorf("waited %v", slept)
	}
}
