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

// checkValue checks invariants of every value parsed from data.
func checkValue(t *testing.T, data []byte, v *Value) {
	t.Helper()
	var check func(*Value, int)
	check = func(v *Value, depth int) {
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
			t.Fatalf("error without a position: %v", err)
		}
	}
}

func checkError(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Position.Line < 1 || e.Position.Column < 1 || e.Message == "" {
		t.Fatalf("error without position or message: %v", err)
	}
	return e
}

// seeds adds the files in testdata/read.txt that have a format.
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
			_ = checkError(t, err)
			return
		}
		checkValue(t, data, v)
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
			if e := checkError(t, err); strings.HasPrefix(e.Message, "malformed") && json.Valid(data) {
				t.Fatalf("valid JSON is rejected: %v", err)
			}
			return
		}
		if !json.Valid(bytes.TrimPrefix(data, []byte("\ufeff"))) {
			t.Fatal("invalid JSON is accepted")
		}
		checkValue(t, data, v)
		text := []byte(v.JSON())
		reparsed, err := ParseJSON("f", text)
		if err != nil || !Equal(v, reparsed) {
			t.Fatalf("parsing the rendered value returns a different one: %v, %s", err, text)
		}
		if twin, err := ParseYAML("f", text); err != nil || !Equal(v, twin) {
			t.Fatalf("YAML reads %s differently: %v", text, err)
		}
	})
}

// Canonical Extended JSON written by package bson parses to the original value.
func FuzzRoundTrip(f *testing.F) {
	for _, v := range []any{int32(1), int64(1) << 40, 1.5, "s", true, nil, bson.NewObjectID(), bson.DateTime(-1),
		bson.Regex{Pattern: "a", Options: "i"}, bson.Timestamp{T: 1,
			I: 2}, bson.MinKey{}, bson.MaxKey{}, bson.NewDecimal128(1, 2),
		bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.A{1, bson.D{{Key: "$gt", Value: 1}}},
		bson.CodeWithScope{Code: "c", Scope: bson.D{}}} {
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
		// Package bson does not restore some values either, such as strings that are
		// not UTF-8 and decimals out of range.
		if same, err := bson.MarshalExtJSON(own, true, false); err != nil || string(same) != string(text) {
			return
		}
		v, err := ParseJSON("fuzz", text)
		if err != nil {
			return // duplicate keys, invalid UTF-8, too deep
		}
		restored, err := v.Raw()
		if err != nil {
			return // a document that looks like a wrapper, or a date out of range
		}
		second, err := bson.MarshalExtJSON(restored, true, false)
		if err != nil || string(second) != string(text) {
			t.Errorf("%s became %s, %v", text, second, err)
		}
	})
}

// A twin is JSON and its own twin.
func FuzzTwin(f *testing.F) {
	seeds(f, "yaml ")
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseYAML("f", data)
		if err != nil {
			return
		}
		twin := v.JSONTwin()
		reparsed, err := ParseJSON("f", twin)
		if err != nil || !bytes.Equal(reparsed.JSONTwin(), twin) {
			t.Fatalf("the twin is not JSON, or not its own twin: %v\n%s", err, twin)
		}
		if path, _, differ := Difference(v, reparsed); v.IsTwin(twin) && differ {
			t.Fatalf("IsTwin overlooks the difference at %q\n%s", path, twin)
		}
	})
}

// Formatting a file again changes nothing.
func FuzzFormat(f *testing.F) {
	for _, c := range testkit.Cases(f, "testdata/format.txt") {
		f.Add([]byte(lineBreaks.Replace(c.In)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := Format("f", data)
		if err != nil {
			_ = checkError(t, err)
			return
		}
		checkFormatted(t, out)
	})
}
