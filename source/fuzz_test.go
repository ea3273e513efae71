package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// sound checks what holds for every value that was read from data.
func sound(t *testing.T, data []byte, v *Value) {
	t.Helper()
	var check func(*Value, int)
	check = func(v *Value, depth int) {
		// YAML has more line breaks than JSON (§5.4, and NEL, LS and PS of YAML 1.1
		// in the parser), so that columns are compared with the whole text.
		if p := v.Position; p.Line < 1 || p.Column < 1 || p.Line > len(data)+1 || p.Column > utf8.RuneCount(data)+1 {
			t.Fatalf("position %s is outside of the file", p)
		}
		if depth > usual().depth {
			t.Fatal("deeper than the limit")
		}
		seen := map[string]bool{}
		for _, f := range v.Fields {
			if seen[f.Key] {
				t.Fatalf("key %q twice", f.Key)
			}
			seen[f.Key] = true
			check(f.Value, depth+1)
		}
		for _, i := range v.Items {
			check(i, depth+1)
		}
	}
	check(v, 0)
	if !Equal(v, v) {
		t.Fatal("not equal to itself")
	}
	if _, err := v.BSON(); err != nil {
		var e *Error
		if !errors.As(err, &e) || e.Position.Line < 1 {
			t.Fatalf("error without a place: %v", err)
		}
	}
}

func soundError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Position.Line < 1 || e.Position.Column < 1 || e.Message == "" {
		t.Fatalf("error without place or words: %v", err)
	}
}

// seeds adds the files of testdata/read.txt in a format.
func seeds(f *testing.F, format string) {
	for _, c := range testkit.Cases(f, "testdata/read.txt") {
		if _, file := readCase(c.In); strings.HasPrefix(c.In, format) {
			f.Add(file)
		}
	}
}

func FuzzYAML(f *testing.F) {
	seeds(f, "yaml ")
	f.Fuzz(func(t *testing.T, data []byte) {
		l := usual()
		l.nodes = 10_000
		v, err := l.parse("f", data, yamlNodes)
		if err != nil {
			soundError(t, err)
			return
		}
		sound(t, data, v)
	})
}

func FuzzJSON(f *testing.F) {
	seeds(f, "json ")
	for _, c := range testkit.Cases(f, "testdata/extended.txt") {
		f.Add([]byte(c.In))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseJSON("f", data)
		if err != nil {
			soundError(t, err)
			var e *Error
			if errors.As(err, &e) && strings.HasPrefix(e.Message, "malformed JSON") && json.Valid(data) {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if !json.Valid(bytes.TrimPrefix(data, []byte("\ufeff"))) {
			t.Fatal("accepted, and no JSON")
		}
		sound(t, data, v)
		text := []byte(v.JSON())
		again, err := ParseJSON("f", text)
		if err != nil || !Equal(v, again) {
			t.Fatalf("not the same after writing: %v, %s", err, text)
		}
		// JSON is YAML, but for what is beyond the
		// Basic Multilingual Plane or not printable.
		if twin, err := ParseYAML("f", text); err == nil && !Equal(v, twin) {
			t.Fatalf("YAML reads %s differently", text)
		}
	})
}

// Canonical Extended JSON that package bson writes reads back to what it was
// written from.
func FuzzRoundTrip(f *testing.F) {
	for _, v := range []any{int32(1), int64(1) << 40, 1.5, "s", true, nil, bson.NewObjectID(), bson.DateTime(-1),
		bson.Regex{Pattern: "a", Options: "i"}, bson.Timestamp{T: 1, I: 2}, bson.MinKey{}, bson.MaxKey{}, bson.NewDecimal128(1, 2),
		bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.A{1, bson.D{{Key: "$gt", Value: 1}}}, bson.CodeWithScope{Code: "c", Scope: bson.D{}}} {
		d, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
		testkit.Check(f, err)
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bson.Raw(data).Validate() != nil || !utf8.Valid(data) {
			return
		}
		text, err := bson.MarshalExtJSON(bson.Raw(data), true, false)
		var own bson.D
		if err != nil || !utf8.Valid(text) || bson.UnmarshalExtJSON(text, true, &own) != nil {
			return
		}
		// Some values have no text of their own (strings that are no UTF-8,
		// decimals beyond their range): package bson does not get them back
		// either.
		if same, err := bson.MarshalExtJSON(own, true, false); err != nil || string(same) != string(text) {
			return
		}
		v, err := ParseJSON("fuzz", text)
		if err != nil {
			return // keys twice, invalid UTF-8, too deep
		}
		again, err := v.Raw()
		if err != nil {
			return // a document that looks like a wrapper, or a date beyond range
		}
		second, err := bson.MarshalExtJSON(again, true, false)
		if err != nil || string(second) != string(text) {
			t.Errorf("%s became %s, %v", text, second, err)
		}
	})
}

// The JSON form of what YAML has is JSON, and its own JSON form.
func FuzzTwin(f *testing.F) {
	seeds(f, "yaml ")
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseYAML("f", data)
		if err != nil {
			return
		}
		twin := v.Twin()
		again, err := ParseJSON("f", twin)
		if err != nil || !bytes.Equal(again.Twin(), twin) {
			t.Fatalf("the JSON form is not JSON, or has another one: %v\n%s", err, twin)
		}
	})
}
