package replay

import (
	"encoding/json"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestComparison sees that the comparison finds differences, and only those.
func TestComparison(t *testing.T) {
	for _, row := range []struct {
		reason, got, want string
		differ            bool
	}{
		{"equal", `{"x": 1}`, `{"x": 1}`, false},
		{"another value", `{"x": 2}`, `{"x": 1}`, true},
		{"another type of number", `{"x": {"$numberLong": "1"}}`, `{"x": 1}`, true},
		{"a field is missing", `{}`, `{"x": 1}`, true},
		{"a field too many", `{"x": 1, "y": 1}`, `{"x": 1}`, true},
		{"another order", `{"y": 1, "x": 1}`, `{"x": 1, "y": 1}`, true},
		{"within a document", `{"x": {"y": "a"}}`, `{"x": {"y": "b"}}`, true},
		{"within a list", `{"x": ["a"]}`, `{"x": ["b"]}`, true},
		{"a longer list", `{"x": ["a", "a"]}`, `{"x": ["a"]}`, true},
		{"a time is volatile", `{"t": {"$timestamp": {"t": 2, "i": 0}}}`, `{"t": {"$timestamp": {"t": 1, "i": 0}}}`, false},
		{"its type is not", `{"t": 2}`, `{"t": {"$timestamp": {"t": 1, "i": 0}}}`, true},
		{"an election id is not", `{"electionId": {"$oid": "000000000000000000000001"}}`, `{"electionId": {"$oid": "000000000000000000000002"}}`, true},
		{"a process id is", `{"processId": {"$oid": "000000000000000000000001"}}`, `{"processId": {"$oid": "000000000000000000000002"}}`, false},
		{"a cursor's id is", `{"cursor": {"id": {"$numberLong": "7"}}}`, `{"cursor": {"id": {"$numberLong": "8"}}}`, false},
		{"but not whether there is one", `{"cursor": {"id": {"$numberLong": "0"}}}`, `{"cursor": {"id": {"$numberLong": "8"}}}`, true},
		{"nor whether there is none", `{"cursor": {"id": {"$numberLong": "7"}}}`, `{"cursor": {"id": {"$numberLong": "0"}}}`, true},
		{"null is something", `{"value": null}`, `{"value": "x"}`, true},
	} {
		p := &player{t: t, same: map[any]any{}, offset: map[string]int64{}}
		diff := p.compare(step{Send: []byte(`{"ping": 1}`)}, extended(t, json.RawMessage(row.got)), extended(t, json.RawMessage(row.want)))
		if (len(diff) > 0) != row.differ {
			t.Errorf("%s: %v", row.reason, diff)
		}
	}
	// Counts of fail points may begin anywhere, but must grow as recorded.
	p := &player{t: t, same: map[any]any{}, offset: map[string]int64{}}
	for _, row := range []struct{ got, want, differences int32 }{{0, 100, 0}, {2, 102, 0}, {2, 103, 1}} {
		diff := p.compare(step{Send: []byte(`{"configureFailPoint": "failCommand"}`)}, bson.D{{Key: "count", Value: row.got}},
			bson.D{{Key: "count", Value: row.want}})
		if len(diff) != int(row.differences) {
			t.Errorf("a count of %d for %d: %v", row.got, row.want, diff)
		}
	}
}
