package data

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/embedded/data/value"
)

func TestClusteredCollections(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c","clusteredIndex":{"key":{"_id":1},"unique":true,"name":"by id"}}`)
	b.must(`{"create":"d","clusteredIndex":{"unique":true,"key":{"_id":1}},"expireAfterSeconds":5}`)
	b.must(`{"create":"e","clusteredIndex":false}`)
	options := func(name string) string {
		doc := docs(t, b.must(`{"listCollections":1,"filter":{"name":"`+name+`"}}`))
		raw := value.Must(b.d.collectionDocument(name))
		if _, has := value.Field(raw, "idIndex"); has != (name == "e") {
			t.Errorf("%s: idIndex in %s", name, doc)
		}
		o, _ := value.Field(raw, "options")
		return value.Text(o)
	}
	for _, row := range []struct{ reason, name, options, indexes string }{
		{"the name is the one that was chosen", "c", `{ clusteredIndex: { v: 2, key: { _id: 1 }, name: "by id", unique: true } }`,
			`{ v: 2, key: { _id: 1 }, name: "by id", unique: true, clustered: true }`},
		{"without a name it is that of any index of _id", "d", `{ expireAfterSeconds: 5, clusteredIndex: { v: 2, key: { _id: 1 }, name: "_id_", unique: true } }`,
			`{ v: 2, key: { _id: 1 }, name: "_id_", unique: true, clustered: true }`},
		{"false is as if it were not there", "e", `{}`, `{ v: 2, key: { _id: 1 }, name: "_id_" }`},
	} {
		if got := options(row.name); got != row.options {
			t.Errorf("%s: options %s, want %s", row.reason, got, row.options)
		}
		b.want(row.reason, `{"listIndexes":"`+row.name+`"}`, row.indexes)
	}

	b.must(`{"insert":"c","documents":[{"_id":1},{"_id":2}]}`)
	r, err := b.do(`{"insert":"c","documents":[{"_id":1}]}`)
	if c, text := codeOf(t, r, err), value.Text(r); c != 11000 || !strings.Contains(text, "index: by id") {
		t.Errorf("a duplicate _id: code %d, %s", c, text)
	}
	b.want("the index may be a hint by its name", `{"find":"c","filter":{},"hint":"by id"}`, `{ _id: 1 } { _id: 2 }`)
	b.want("and by its key", `{"find":"c","filter":{},"hint":{"_id":1}}`, `{ _id: 1 } { _id: 2 }`)
	if c := b.code(`{"find":"c","filter":{},"hint":"_id_"}`); c != 2 {
		t.Errorf("another name as hint: code %d, want 2", c)
	}
	b.must(`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1"}]}`)
	for _, row := range []struct {
		reason, command, field string
		want                   any
	}{
		{"the index of the cluster key is there already", `{"createIndexes":"c","indexes":[{"key":{"_id":1},"name":"_id_1"}]}`, "numIndexesAfter", int32(2)},
		{"and may be given as listIndexes shows it", `{"createIndexes":"c","indexes":[{"v":2,"key":{"_id":1},"name":"by id","unique":true,"clustered":true}]}`, "numIndexesAfter", int32(2)},
		{"dropping all leaves it, and does not count it", `{"dropIndexes":"c","index":"*"}`, "nIndexesWas", int32(1)},
		{"$out keeps it", `{"aggregate":"e","pipeline":[{"$out":"c"}],"cursor":{}}`, "", nil},
		{"drop does not count it", `{"drop":"c"}`, "nIndexesWas", int32(0)},
	} {
		r := b.must(row.command)
		if got, _ := value.Field(r, row.field); got != row.want {
			t.Errorf("%s: %s is %v, want %v", row.reason, row.field, got, row.want)
		}
		if row.field == "" {
			b.want(row.reason, `{"listIndexes":"c"}`, `{ v: 2, key: { _id: 1 }, name: "by id", unique: true, clustered: true }`)
		}
	}
}

// collectionDocument is a collection as listCollections gives it.
func (d *Data) collectionDocument(name string) []byte {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return value.Encode(describe(d.collection("db", name)))
}

func TestClusteredRefusals(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c","clusteredIndex":{"key":{"_id":1},"unique":true,"name":"by id"}}`)
	b.must(`{"create":"plain"}`)
	for _, row := range []struct {
		reason, command string
		code            int32
	}{
		{"neither boolean nor document", `{"create":"x","clusteredIndex":"yes"}`, 14},
		{"true is for the server's own collections", `{"create":"x","clusteredIndex":true}`, 5979703},
		{"and they take nothing else", `{"create":"system.buckets.x","clusteredIndex":{"key":{"_id":1},"unique":true}}`, 5979703},
		{"a field that it does not have", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true,"sparse":true}}`, 40415},
		{"no key", `{"create":"x","clusteredIndex":{"unique":true}}`, 40414},
		{"unique is not said", `{"create":"x","clusteredIndex":{"key":{"_id":1}}}`, 40414},
		{"not unique", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":false}}`, 5979700},
		{"a name that is none", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true,"name":1}}`, 14},
		{"another key", `{"create":"x","clusteredIndex":{"key":{"x":1},"unique":true}}`, 197},
		{"descending", `{"create":"x","clusteredIndex":{"key":{"_id":-1},"unique":true}}`, 197},
		{"another version", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true,"v":1}}`, 5979704},
		{"a view", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"viewOn":"c"}`, 6026500},
		{"without an index of _id", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"autoIndexId":false}`, 6026501},
		{"of a size", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"capped":true,"size":10}`, 6049200},
		{"of so many documents", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"max":10}`, 6049204},
		{"capped, and by nothing", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"capped":true}`, 6049201},
		{"capped by time", `{"create":"y","clusteredIndex":{"key":{"_id":1},"unique":true},"capped":true,"expireAfterSeconds":10}`, 0},
		{"a time before now", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"expireAfterSeconds":-1}`, 72},
		{"documents expire in clustered collections and time series alone", `{"create":"x","expireAfterSeconds":1}`, 72},
		{"false does not make it clustered", `{"create":"x","clusteredIndex":false,"expireAfterSeconds":1}`, 72},
		{"dropped by name", `{"dropIndexes":"c","index":"by id"}`, 5979800},
		{"dropped by key", `{"dropIndexes":"c","index":{"_id":1}}`, 5979800},
		{"dropped in a list", `{"dropIndexes":"c","index":["by id"]}`, 5979800},
		{"another index of its name", `{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"by id"}]}`, 6100906},
		{"another clustered index", `{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x","clustered":true,"unique":true}]}`, 6243700},
		{"a clustered index of a plain collection", `{"createIndexes":"plain","indexes":[{"key":{"_id":1},"name":"x","clustered":true,"unique":true}]}`, 6243700},
		{"a clustered index makes no collection", `{"createIndexes":"x","indexes":[{"key":{"_id":1},"name":"x","clustered":true,"unique":true}]}`, 6100900},
		{"hidden", `{"collMod":"c","index":{"name":"by id","hidden":true}}`, 6011800},
	} {
		if got := b.code(row.command); got != row.code {
			t.Errorf("%s: code %d, want %d", row.reason, got, row.code)
		}
	}
	b.server.Wire = 13
	if got := b.code(`{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true}}`); got != 40415 {
		t.Errorf("5.0, which has none: code %d, want 40415", got)
	}
}
