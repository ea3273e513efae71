package reference

import (
	"bytes"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// replies are messages with the reason why they are or are not replies.
func replies(t testing.TB) []struct {
	why string
	wm  []byte
	ok  bool
} {
	doc, err := bson.Marshal(bson.D{{Key: "ok", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	good := message(7, doc, 0)
	change := func(at int, b byte) []byte {
		out := bytes.Clone(good)
		out[at] = b
		return out
	}
	return []struct {
		why string
		wm  []byte
		ok  bool
	}{
		{"a reply", good, true},
		{"empty", nil, false},
		{"no header", good[:10], false},
		{"shorter than it says", good[:len(good)-1], false},
		{"another opcode", change(12, 1), false},
		{"an unknown section", change(20, 9), false},
		{"a document that is too long", change(21, 200), false},
		{"compressed, and truncated", change(12, 0xdc), false},
	}
}

func TestParse(t *testing.T) {
	for _, c := range replies(t) {
		doc, err := parse(c.wm)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v %v", c.why, doc, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range replies(f) {
		f.Add(c.wm)
	}
	f.Fuzz(func(t *testing.T, wm []byte) {
		doc, err := parse(wm)
		if err == nil {
			if doc.Validate() != nil {
				t.Error("an invalid document got through")
			}
			_ = replyError(doc, "a:1")
			_ = okOf(doc)
			_ = clusterTimeOf(doc)
		}
	})
}
