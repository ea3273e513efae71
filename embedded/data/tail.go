package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// tail is the source of a tailable cursor on a capped collection.
type tail struct {
	d        *Data
	db, name string
	uuid     bson.Binary
	filter   *query.Filter
	proj     *query.Projection
	last     int64
}

func (t *tail) extra() bson.D { return nil }

// unread returns the records after the last one read. ok is false if the collection has been dropped.
func (t *tail) unread() (records []*record, ok bool) {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	c := t.d.collection(t.db, t.name)
	if c == nil || value.Key(c.uuid) != value.Key(t.uuid) {
		return nil, false
	}
	records = c.snapshot()
	i, _ := c.position(t.last + 1)
	return records[min(i, len(records)):], true
}

func (t *tail) batch(n int64) ([]bson.Raw, bool, error) {
	records, ok := t.unread()
	if !ok {
		return nil, true, command.Errorf(command.CodeQueryPlanKilled, "collection dropped between getMore calls")
	}
	var out []bson.Raw
	for _, r := range records {
		if n >= 0 && int64(len(out)) >= n {
			break
		}
		t.last = r.rid
		doc := r.doc
		ok, err := t.filter.Matches(doc)
		if ok {
			doc, err = t.proj.Apply(doc)
		}
		if err != nil {
			return nil, true, err
		}
		if ok {
			out = append(out, value.Encode(doc))
		}
	}
	return out, false, nil
}
