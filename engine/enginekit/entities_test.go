package enginekit

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// thing is an entity in these tests.
type thing struct {
	name string
	kind operations.Kind
}

func TestEntitiesByName(t *testing.T) {
	var e Entities
	for i, id := range []string{"a", "", "", "a"} {
		testkit.Equal(t, "a name that is taken is refused", e.Put(id, operations.Session, thing{name: id}) != nil, i == 3)
	}
	_, _, err := e.Get("")
	testkit.Fails(t, err)
	doc := bson.Raw(value(t, bson.D{{Key: "it", Value: "a"}, {Key: "other", Value: "b"}, {Key: "number", Value: 1}}).Value)
	got, err := e.Named(doc, "it", operations.Session)
	testkit.Equal(t, "an entity", []any{got, err}, []any{any(thing{name: "a"}), nil})
	for _, field := range []string{"other", "number", "absent"} {
		_, err := e.Named(doc, field, operations.Session)
		testkit.Fails(t, err)
	}
	_, err = e.Named(doc, "it", operations.Client) // of another kind
	testkit.Fails(t, err)
}

// Cursors need their sessions to be closed, and both need their clients. Each
// client takes a second to close: together they take one.
func TestEndOfEntities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Entities
		for _, x := range []struct {
			id string
			thing
		}{
			{"d", thing{"a client", operations.Client}},
			{"c", thing{"a session", operations.Session}},
			{"z", thing{"the last cursor", operations.Cursor}},
			{"", thing{"a cursor without a name", operations.Cursor}},
			{"b", thing{"a collection", operations.Collection}},
			{"a", thing{"the first cursor", operations.Cursor}},
			{"e", thing{"another client", operations.Client}},
		} {
			testkit.Check(t, e.Put(x.id, x.kind, x.thing))
		}
		named := []string{"the first cursor", "the last cursor", "a session", "a client", "another client"}
		for _, want := range [][]string{append([]string{"a cursor without a name"}, named...), named} { // then it is forgotten
			var mu sync.Mutex
			var closed []string
			began := time.Now()
			e.End(func(entity any) {
				if entity.(thing).kind == operations.Client {
					time.Sleep(time.Second)
				}
				mu.Lock()
				defer mu.Unlock()
				closed = append(closed, entity.(thing).name)
			})
			slices.Sort(closed[len(closed)-2:])
			testkit.Equal(t, "closed are", []any{time.Since(began), closed}, []any{time.Second, want})
		}
	})
}

// value gives a value as it stands in a document.
func value(t *testing.T, v any) bson.RawValue {
	t.Helper()
	doc, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	testkit.Check(t, err)
	return bson.Raw(doc).Lookup("v")
}

// written reads a value in Extended JSON, none if the text is empty.
func written(t *testing.T, text string) bson.RawValue {
	t.Helper()
	var doc bson.Raw
	testkit.Check(t, bson.UnmarshalExtJSON([]byte(`{"v": `+cmp.Or(text, "null")+`}`), false, &doc))
	if text == "" {
		return bson.RawValue{}
	}
	return doc.Lookup("v")
}

func TestTranscript(t *testing.T) {
	testkit.Commands{
		"integer": func(t *testing.T, a []string) (string, error) {
			n, ok := Integer(written(t, a[0]))
			return fmt.Sprint(n, " ", ok), nil
		},
		"same": func(_ *testing.T, a []string) (string, error) { return fmt.Sprint(SameOption(a[0], a[1])), nil },
		"option": func(t *testing.T, a []string) (string, error) {
			got, err := optionValues(a[0], written(t, a[1]))
			return fmt.Sprintf("%q", got), err
		},
		"address": func(_ *testing.T, a []string) (string, error) { return fmt.Sprintf("%q", AddressOf(a[0])), nil },
	}.Play(t, "testdata/values.txt")
}

func TestValueOf(t *testing.T) {
	doc := bson.Raw(value(t, bson.D{{Key: "a", Value: int32(1)}}).Value)
	for _, row := range []struct {
		reason string
		value  any
		want   bson.RawValue
	}{
		{"no value", Nothing{}, bson.RawValue{}},
		{"null", nil, value(t, nil)},
		{"no document", bson.Raw(nil), value(t, nil)},
		{"a document", doc, value(t, doc)},
		{"documents", []bson.Raw{doc, doc}, value(t, bson.A{doc, doc})},
		{"no documents", []bson.Raw{}, value(t, bson.A{})},
		{"an array", bson.RawArray(value(t, bson.A{int32(1)}).Value), value(t, bson.A{int32(1)})},
		{"a value that is one already", value(t, "x"), value(t, "x")},
		{"a number", int64(3), value(t, int64(3))},
		{"what the driver knows to write", bson.D{{Key: "a", Value: int32(1)}}, value(t, doc)},
	} {
		if got, err := ValueOf(row.value); err != nil || !got.Equal(row.want) {
			t.Errorf("%s: got %v, %v, want %v", row.reason, got, err, row.want)
		}
	}
	_, err := ValueOf(make(chan int))
	testkit.Fails(t, err)
}
