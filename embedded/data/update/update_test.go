package update

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

func doc(t testing.TB, s string) bson.D {
	t.Helper()
	if s == "" {
		return nil
	}
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(s), false, &d); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return value.Must(value.Encode(d))
}

var updates = []struct {
	reason, doc, update, filters, want string
	index                              int
	insert                             bool
	code                               int32
}{
	{reason: "$set replaces and adds", doc: `{"_id":1,"a":1}`, update: `{"$set":{"a":2,"b.c":3}}`, want: `{"_id":1,"a":2,"b":{"c":3}}`},
	{reason: "new fields come in the order of their names", doc: `{"_id":1}`, update: `{"$set":{"z":1,"b":2}}`, want: `{"_id":1,"b":2,"z":1}`},
	{reason: "$set beyond an array fills with null", doc: `{"a":[1]}`, update: `{"$set":{"a.3":4}}`, want: `{"a":[1,null,null,4]}`},
	{reason: "$unset removes fields", doc: `{"a":1,"b":2}`, update: `{"$unset":{"a":1,"x.y":1}}`, want: `{"b":2}`},
	{reason: "$unset leaves the place of an element", doc: `{"a":[1,2]}`, update: `{"$unset":{"a.0":1}}`, want: `{"a":[null,2]}`},
	{reason: "$inc adds", doc: `{"a":1}`, update: `{"$inc":{"a":2,"b":3}}`, want: `{"a":3,"b":3}`},
	{reason: "$inc of a string fails", doc: `{"_id":1,"a":"x"}`, update: `{"$inc":{"a":2}}`, code: 14},
	{reason: "$inc by a string fails", doc: `{}`, update: `{"$inc":{"a":"x"}}`, code: 14},
	{reason: "$mul of nothing is zero", doc: `{"a":3}`, update: `{"$mul":{"a":2,"b":2}}`, want: `{"a":6,"b":0}`},
	{reason: "$min keeps the lesser", doc: `{"a":3,"b":1}`, update: `{"$min":{"a":2,"b":2}}`, want: `{"a":2,"b":1}`},
	{reason: "$max keeps the greater", doc: `{"a":3,"b":1}`, update: `{"$max":{"a":2,"b":2}}`, want: `{"a":3,"b":2}`},
	{reason: "$rename moves", doc: `{"a":1}`, update: `{"$rename":{"a":"b.c"}}`, want: `{"b":{"c":1}}`},
	{reason: "$setOnInsert waits for an insert", doc: `{"a":1}`, update: `{"$setOnInsert":{"b":1}}`, want: `{"a":1}`},
	{reason: "and works then", doc: `{"a":1}`, update: `{"$setOnInsert":{"b":1}}`, insert: true, want: `{"a":1,"b":1}`},
	{reason: "$push", doc: `{"a":[1]}`, update: `{"$push":{"a":2,"b":3}}`, want: `{"a":[1,2],"b":[3]}`},
	{reason: "$push in a place, sorted and cut", doc: `{"a":[3,1]}`, update: `{"$push":{"a":{"$each":[2,0],"$position":0,"$sort":1,"$slice":3}}}`, want: `{"a":[0,1,2]}`},
	{reason: "$push to what is not an array fails", doc: `{"_id":1,"a":1}`, update: `{"$push":{"a":1}}`, code: 2},
	{reason: "$addToSet adds what is new", doc: `{"a":[1]}`, update: `{"$addToSet":{"a":{"$each":[1,2,2]}}}`, want: `{"a":[1,2]}`},
	{reason: "$pop from the end and the start", doc: `{"a":[1,2],"b":[1,2]}`, update: `{"$pop":{"a":1,"b":-1}}`, want: `{"a":[1],"b":[2]}`},
	{reason: "$pull a value", doc: `{"a":[1,2,1]}`, update: `{"$pull":{"a":1}}`, want: `{"a":[2]}`},
	{reason: "$pull by a condition", doc: `{"a":[1,2,3]}`, update: `{"$pull":{"a":{"$gt":1}}}`, want: `{"a":[1]}`},
	{reason: "$pull documents by a field", doc: `{"a":[{"x":1,"y":1},{"x":2}]}`, update: `{"$pull":{"a":{"x":1}}}`, want: `{"a":[{"x":2}]}`},
	{reason: "$pullAll", doc: `{"a":[1,2,3]}`, update: `{"$pullAll":{"a":[1,3]}}`, want: `{"a":[2]}`},
	{reason: "$bit", doc: `{"a":5}`, update: `{"$bit":{"a":{"xor":1}}}`, want: `{"a":4}`},
	{reason: "the positional operator", doc: `{"a":[1,2]}`, update: `{"$set":{"a.$":9}}`, index: 1, want: `{"a":[1,9]}`},
	{reason: "needs a match", doc: `{"a":[1,2]}`, update: `{"$set":{"a.$":9}}`, index: -1, code: 2},
	{reason: "all elements", doc: `{"a":[{"x":1},{"x":2}]}`, update: `{"$inc":{"a.$[].x":1}}`, want: `{"a":[{"x":2},{"x":3}]}`},
	{reason: "array filters", doc: `{"a":[{"x":1},{"x":2}]}`, update: `{"$set":{"a.$[e].y":1}}`, filters: `[{"e.x":2}]`, want: `{"a":[{"x":1},{"x":2,"y":1}]}`},
	{reason: "array filters on the element itself", doc: `{"a":[1,5]}`, update: `{"$set":{"a.$[e]":0}}`, filters: `[{"e":{"$gt":2}}]`, want: `{"a":[1,0]}`},
	{reason: "an array filter that is not used", doc: `{"a":[1]}`, update: `{"$set":{"a.0":1}}`, filters: `[{"e":1}]`, code: 9},
	{reason: "an identifier without a filter", doc: `{"a":[1]}`, update: `{"$set":{"a.$[e]":1}}`, code: 2},
	{reason: "a replacement keeps _id in front", doc: `{"_id":1,"a":1}`, update: `{"b":2}`, want: `{"_id":1,"b":2}`},
	{reason: "a replacement cannot change _id", doc: `{"_id":1}`, update: `{"_id":2}`, code: 66},
	{reason: "nor can $set", doc: `{"_id":1}`, update: `{"$set":{"_id":2}}`, code: 66},
	{reason: "the same _id changes nothing", doc: `{"_id":1}`, update: `{"$set":{"_id":1}}`, want: `{"_id":1}`},
	{reason: "$currentDate", doc: `{}`, update: `{"$currentDate":{"a":true,"b":{"$type":"date"},"c":{"$type":"timestamp"}}}`,
		want: `{"a":{"$date":"1970-01-01T00:00:07Z"},"b":{"$date":"1970-01-01T00:00:07Z"},"c":{"$timestamp":{"t":7,"i":1}}}`},
	{reason: "$currentDate of another type", doc: `{}`, update: `{"$currentDate":{"a":{"$type":"int"}}}`, code: 2},
	{reason: "an unknown operator", doc: `{}`, update: `{"$nosuch":{"x":1}}`, code: 9},
	{reason: "two updates of one path", doc: `{}`, update: `{"$set":{"a":1},"$inc":{"a":1}}`, code: 40},
	{reason: "and of a part of it", doc: `{}`, update: `{"$set":{"a":1,"a.b":1}}`, code: 40},
	{reason: "a field of a number", doc: `{"a":1}`, update: `{"$set":{"a.b":1}}`, code: 28},
	{reason: "an empty path", doc: `{}`, update: `{"$set":{"":1}}`, code: 56},
}

func apply(t testing.TB, d, u bson.D, filters bson.A, index int, insert bool) (bson.D, error) {
	t.Helper()
	up, err := Compile(u, Options{ArrayFilters: filters, Now: time.Unix(7, 0)})
	if err != nil {
		return nil, err
	}
	return up.Apply(d, query.Match{Index: index}, insert)
}

func TestUpdates(t *testing.T) {
	for _, row := range updates {
		var filters bson.A
		if row.filters != "" {
			f, _ := value.Field(doc(t, `{"f":`+row.filters+`}`), "f")
			filters = f.(bson.A)
		}
		d := doc(t, row.doc)
		before := value.Text(d)
		got, err := apply(t, d, doc(t, row.update), filters, row.index, row.insert)
		if value.Text(d) != before {
			t.Errorf("%s: the document itself was changed", row.reason)
		}
		if row.code != 0 {
			if e, ok := err.(*command.Error); !ok || e.Code != row.code {
				t.Errorf("%s: got %v, want code %d", row.reason, err, row.code)
			}
			continue
		}
		if err != nil || value.Text(got) != value.Text(doc(t, row.want)) {
			t.Errorf("%s: got %s, %v, want %s", row.reason, value.Text(got), err, row.want)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	for _, row := range updates {
		f.Add([]byte(value.Encode(doc(f, row.doc))), []byte(value.Encode(doc(f, row.update))))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		d, err := value.Decode(a)
		if err != nil {
			return
		}
		u, err := value.Decode(b)
		if err != nil {
			return
		}
		before := value.Text(d)
		_, _ = apply(t, d, u, nil, 0, true)
		if value.Text(d) != before {
			t.Errorf("%s changed the document itself", value.Text(u))
		}
	})
}
