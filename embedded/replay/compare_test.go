package replay

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// comparison walks through an answer of ours and the recorded one.
type comparison struct {
	p    *player
	step step
	path []string
	diff []string
}

func (p *player) compare(s step, got, want bson.D) []string {
	c := comparison{p: p, step: s}
	c.document(got, want)
	return c.diff
}

func (c *comparison) differ(got, want any) {
	c.diff = append(c.diff, fmt.Sprintf("%s: got %s, want %s", strings.Join(c.path, "."), show(got), show(want)))
}

func show(v any) string {
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, true, false)
	if err != nil {
		return fmt.Sprintf("%T %v", v, v)
	}
	s := strings.TrimSuffix(strings.TrimPrefix(string(text), `{"v":`), "}")
	if len(s) > 400 {
		s = s[:400] + "…"
	}
	return s
}

// keys are the names of a document's fields.
func keys(doc bson.D) []string {
	out := make([]string, len(doc))
	for i, e := range doc {
		out[i] = e.Key
	}
	return out
}

func (c *comparison) document(got, want bson.D) {
	if !reflect.DeepEqual(keys(got), keys(want)) {
		c.differ(keys(got), keys(want))
	}
	for _, w := range want {
		for _, g := range got {
			if g.Key == w.Key {
				c.within(w.Key, func() { c.value(w.Key, g.Value, w.Value) })
				break
			}
		}
	}
}

func (c *comparison) within(name string, do func()) {
	c.path = append(c.path, name)
	do()
	c.path = c.path[:len(c.path)-1]
}

// volatile are the fields whose values differ from run to run: their types
// alone are compared.
var volatile = map[string]bool{
	"localTime": true, "connectionId": true, "processId": true, "counter": true, "you": true, "pid": true,
	"uptime": true, "hash": true, "collectionUUID": true, "uuid": true, "_data": true, "totalSize": true,
	"sizeOnDisk": true, "current": true, "totalCreated": true, "command": true, "commands": true, "ui": true,
}

func (c *comparison) value(name string, got, want any) {
	if gt, wt := reflect.TypeOf(got), reflect.TypeOf(want); gt != wt {
		c.differ(got, want)
		return
	}
	switch w := want.(type) {
	case bson.D:
		c.document(got.(bson.D), w)
		return
	case bson.A:
		g := got.(bson.A)
		if len(g) != len(w) {
			c.differ(g, w)
		}
		if strings.Contains(string(c.step.Send), "listCollections") {
			// The real server lists collections in the order of a hash table.
			g, w = byName(g), byName(w)
		}
		for i := range min(len(g), len(w)) {
			c.within(fmt.Sprint(i), func() { c.value("", g[i], w[i]) })
		}
		return
	case bson.Timestamp, bson.DateTime:
		c.p.same[want] = got
		return
	case int32:
		if name == "count" && len(c.path) == 1 {
			c.count(got.(int32), w)
			return
		}
	case int64:
		if name == "id" && len(c.path) == 2 && c.path[0] == "cursor" {
			if (got.(int64) == 0) != (w == 0) {
				c.differ(got, want)
			}
			if w != 0 {
				c.p.same[want] = got
			}
			return
		}
		if name == "counter" {
			c.p.same[counter(w)] = got
			return
		}
		if o, ok := c.p.same[want]; ok && o == got {
			return // a cursor, by the id that it has here
		}
	case string:
		if volatile[name] {
			if _, known := c.p.same[want]; !known {
				c.p.same[want] = got
			}
			return
		}
		for real, ours := range c.p.same {
			if id, ok := real.(int64); ok && id > 1<<40 {
				w = strings.ReplaceAll(w, fmt.Sprint(id), fmt.Sprint(ours))
			}
		}
		if got != w {
			c.differ(got, w)
		}
		return
	case bson.ObjectID:
		if volatile[name] {
			c.p.same[want] = got
			return
		}
	case bson.Binary:
		if c.p.volatileID(c.step, c.path) {
			return
		}
		if name == "payload" && c.p.payload != nil {
			if !c.p.payload(c.step, got.(bson.Binary).Data, w.Data) {
				c.differ(string(got.(bson.Binary).Data), string(w.Data))
			}
			return
		}
	}
	if !volatile[name] && !reflect.DeepEqual(got, want) {
		c.differ(got, want)
	}
}

// byName sorts documents by their names.
func byName(list bson.A) bson.A {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b any) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	return out
}

// volatileID says whether a binary value at path is a random id.
func (p *player) volatileID(s step, path []string) bool {
	where := strings.Join(path, ".")
	return where == "id.id" && strings.Contains(string(s.Send), "startSession") ||
		where == "cursor.firstBatch.0._id.id" && strings.Contains(string(s.Send), "listLocalSessions")
}

// count compares how often a fail point had struck: the real server had a past,
// so that the numbers grow alike, but do not start alike.
func (c *comparison) count(got, want int32) {
	send := extended(c.p.t, c.step.Send)
	if send[0].Key != "configureFailPoint" {
		if got != want {
			c.differ(got, want)
		}
		return
	}
	key := fmt.Sprint(c.step.Server, send[0].Value)
	delta := int64(want) - int64(got)
	if old, known := c.p.offset[key]; known && old != delta {
		c.differ(got, int64(want)-old)
	}
	c.p.offset[key] = delta
}
