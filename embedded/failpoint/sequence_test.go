package failpoint_test

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// TestSequence gives five finds in a row to a sequence, and says what each of
// them gets.
func TestSequence(t *testing.T) {
	find := failpoint.Command{Names: []string{"find"}, Namespace: "d.c", AppName: "app"}
	code := func(n int) bson.D { return d("errorCode", n) }
	for _, row := range []struct {
		reason   string
		sequence bson.A
		more     bson.D // in the data
		want     string // c: code, x: closed, b: blocked, w: write concern error, l: reply lost, .: nothing
		count    int32  // how often it struck
	}{
		{"one failure, then all is well", bson.A{code(91)}, nil, "c....", 1},
		{"an empty element lets an attempt pass", bson.A{code(91), bson.D{}, d("closeConnection", true)}, nil, "c.x..", 2},
		{"each attempt has its own", bson.A{d("closeConnection", true), code(6), d("loseReply", true), d("writeConcernError", code(91))}, nil, "xclw.", 4},
		{"blocking alone is something", bson.A{bson.D{{Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 3}}}, nil, "b....", 1},
		{"an empty sequence does nothing", bson.A{}, nil, ".....", 0},
		{"another application uses nothing up", bson.A{code(91)}, d("appName", "other"), ".....", 0},
		{"another namespace uses nothing up", bson.A{code(91)}, d("namespace", "d.e"), ".....", 0},
	} {
		var s failpoint.Sequence
		data := append(bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "sequence", Value: row.sequence}}, row.more...)
		if _, err := s.Configure(raw(t, command(failpoint.FailCommandSequence, "alwaysOn", data))); err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		if _, hit := s.Next(failpoint.Command{Names: []string{"insert"}}); hit {
			t.Errorf("%s: another command is struck", row.reason)
		}
		got := ""
		for range 5 {
			step, hit := s.Next(find)
			switch {
			case !hit:
				got += "."
			case step.LoseReply:
				got += "l"
			case step.WriteConcernError != nil:
				got += "w"
			case step.CloseConnection:
				got += "x"
			case step.HasCode:
				got += "c"
			case step.Block == 3*time.Millisecond:
				got += "b"
			}
		}
		if got != row.want {
			t.Errorf("%s: got %s, want %s", row.reason, got, row.want)
		}
		count, err := s.Configure(raw(t, command(failpoint.FailCommandSequence, "off", nil)))
		if err != nil || count != row.count {
			t.Errorf("%s: struck %d times, %v, want %d", row.reason, count, err, row.count)
		}
		if _, hit := s.Next(find); hit {
			t.Errorf("%s: it strikes when it is off", row.reason)
		}
	}
}

// TestSequenceStartsAgain sees that setting it begins with the first element.
func TestSequenceStartsAgain(t *testing.T) {
	var s failpoint.Sequence
	on := raw(t, command(failpoint.FailCommandSequence, "alwaysOn",
		bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "sequence", Value: bson.A{d("errorCode", 1), d("errorCode", 2)}}}))
	for range 2 {
		if _, err := s.Configure(on); err != nil {
			t.Fatal(err)
		}
		if step, hit := s.Next(failpoint.Command{Names: []string{"find"}}); !hit || step.Code != 1 {
			t.Errorf("got %+v", step)
		}
	}
}

func TestSequenceRefused(t *testing.T) {
	for _, row := range []struct {
		reason string
		mode   any
		data   bson.D
		code   int32
	}{
		{"it has no count of its own", d("times", 1), d("sequence", bson.A{}), 2},
		{"no mode", nil, d("sequence", bson.A{}), 2},
		{"no data", "alwaysOn", nil, 14},
		{"a sequence that is no array", "alwaysOn", d("sequence", d("a", 1)), 14},
		{"an element that is no object", "alwaysOn", d("sequence", bson.A{1}), 14},
		{"blocking for no time", "alwaysOn", d("sequence", bson.A{d("blockConnection", true)}), 72},
	} {
		var s failpoint.Sequence
		_, err := s.Configure(raw(t, command(failpoint.FailCommandSequence, row.mode, row.data)))
		var refused *failpoint.Error
		if !errors.As(err, &refused) || refused.Code != row.code {
			t.Errorf("%s: got %v, want code %d", row.reason, err, row.code)
		}
	}
}
