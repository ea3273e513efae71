package replay

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestComparison sees that the comparison finds differences, and only those.
func TestComparison(t *testing.T) {
	at := func(n uint32) bson.Timestamp { return bson.Timestamp{T: n} }
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	for _, row := range []struct {
		reason    string
		got, want bson.D
		differ    bool
	}{
		{"equal", d("x", int32(1)), d("x", int32(1)), false},
		{"another value", d("x", int32(2)), d("x", int32(1)), true},
		{"another type of number", d("x", int64(1)), d("x", int32(1)), true},
		{"a double for an integer", d("ok", 1.0), d("ok", int32(1)), true},
		{"a field is missing", bson.D{}, d("x", int32(1)), true},
		{"a field too many", bson.D{{Key: "x", Value: int32(1)}, {Key: "y", Value: 1}}, d("x", int32(1)), true},
		{"another order", bson.D{{Key: "y", Value: 1}, {Key: "x", Value: 1}}, bson.D{{Key: "x", Value: 1}, {Key: "y", Value: 1}}, true},
		{"within a document", d("x", d("y", "a")), d("x", d("y", "b")), true},
		{"within a list", d("x", bson.A{"a"}), d("x", bson.A{"b"}), true},
		{"a longer list", d("x", bson.A{"a", "a"}), d("x", bson.A{"a"}), true},
		{"an empty list", d("x", bson.A{}), d("x", bson.A{"a"}), true},
		{"another text", d("errmsg", "a"), d("errmsg", "b"), true},
		{"a time is volatile", d("operationTime", at(2)), d("operationTime", at(1)), false},
		{"its type is not", d("operationTime", int32(2)), d("operationTime", at(1)), true},
		{"an election id is not", d("electionId", bson.ObjectID{2}), d("electionId", bson.ObjectID{1}), true},
		{"a process id is", d("processId", bson.ObjectID{2}), d("processId", bson.ObjectID{1}), false},
		{"a cursor's id is", d("cursor", d("id", int64(7))), d("cursor", d("id", int64(8))), false},
		{"but not whether there is one", d("cursor", d("id", int64(0))), d("cursor", d("id", int64(8))), true},
		{"nor whether there is none", d("cursor", d("id", int64(7))), d("cursor", d("id", int64(0))), true},
		{"null is something", d("value", nil), d("value", "x"), true},
	} {
		p := &player{t: t, same: map[any]any{}, offset: map[string]int64{}}
		diff := p.compare(step{Send: []byte(`{"ping": 1}`)}, row.got, row.want)
		if (len(diff) > 0) != row.differ {
			t.Errorf("%s: %v", row.reason, diff)
		}
	}
}

// TestCounts sees that counts of fail points may begin anywhere, but must grow
// as recorded.
func TestCounts(t *testing.T) {
	p := &player{t: t, same: map[any]any{}, offset: map[string]int64{}}
	count := func(n int32) bson.D { return bson.D{{Key: "count", Value: n}} }
	s := step{Send: []byte(`{"configureFailPoint": "failCommand"}`)}
	if diff := p.compare(s, count(0), count(100)); len(diff) > 0 {
		t.Errorf("the first: %v", diff)
	}
	if diff := p.compare(s, count(2), count(102)); len(diff) > 0 {
		t.Errorf("as recorded: %v", diff)
	}
	if diff := p.compare(s, count(2), count(103)); len(diff) == 0 {
		t.Error("a hit that was not counted went unnoticed")
	}
}
