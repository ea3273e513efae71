package matchers

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/source"
)

// judge asks both twins. ok is false for input that one of them cannot read.
func judge(expected, actual string, shape Shape) (clever, naively, ok bool) {
	var want, got bson.D
	if bson.UnmarshalExtJSON([]byte(`{"v":`+expected+`}`), false, &want) != nil || len(want) != 1 {
		return false, false, false
	}
	var raw bson.Raw
	if bson.UnmarshalExtJSON([]byte(`{"v":`+actual+`}`), false, &raw) != nil || bson.Unmarshal(raw, &got) != nil || len(got) != 1 {
		return false, false, false
	}
	v, err := source.ParseJSON("fuzz", []byte(expected))
	if err != nil {
		return false, false, false
	}
	clever = len(New(nil).Value("", v, raw.Lookup("v"), shape)) == 0
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, fault := r.(naiveFault); !fault {
					panic(r)
				}
				naively = false
			}
		}()
		naiveCheck(want[0].Value)
		naively = naive(want[0].Value, got[0].Value, shape == RootDocument, shape == RootDocuments, false)
	}()
	return clever, naively, true
}

// legacy are the forms of Extended JSON that package bson reads and this
// project does not, or the reverse, and the entities that only one twin knows.
var legacy = []string{`$regex`, `$options`, `$date`, `$type`, `$binary`, `$uuid`, `$code`, `$scope`, `$undefined`, `$dbPointer`,
	`$minKey`, `$maxKey`, `$oid`, `$number`, `$symbol`, `$timestamp`, `$ref`, `$regularExpression`, `matchesEntity`, `sessionLsid`}

func comparable(s string) bool {
	// $$type is fine, $type may be part of a legacy binary; escapes may hide any.
	s = strings.ReplaceAll(s, "$$type", "")
	if strings.Contains(s, `\u`) {
		return false
	}
	for _, l := range legacy {
		if strings.Contains(s, l) {
			return false
		}
	}
	return true
}

func seeds(f func(expected, actual string, shape Shape)) {
	for _, row := range valueRows {
		v, err := source.ParseYAML("seed", []byte(row.expected))
		if err != nil || row.actual == "" {
			continue
		}
		f(text(v), row.actual, row.shape)
	}
}

func FuzzValue(f *testing.F) {
	seeds(func(expected, actual string, shape Shape) { f.Add(expected, actual, uint8(shape)) })
	f.Fuzz(func(t *testing.T, expected, actual string, shape uint8) {
		clever, naively, ok := judge(expected, actual, Shape(shape%3))
		if ok && clever != naively && comparable(expected) && json.Valid([]byte(expected)) {
			t.Errorf("%s against %s, shape %d: matcher says %v, twin says %v", expected, actual, shape%3, clever, naively)
		}
	})
}

// The twins agree on the table, wrappers included.
func TestNaiveTwin(t *testing.T) {
	compared := 0
	seeds(func(expected, actual string, shape Shape) {
		if strings.Contains(expected, "matchesEntity") || strings.Contains(expected, "sessionLsid") || strings.Contains(expected, "$regex") ||
			strings.Contains(expected, "$scope") || strings.Contains(expected, "numberDecimal") {
			return
		}
		clever, naively, ok := judge(expected, actual, shape)
		if ok && clever != naively {
			t.Errorf("%s against %s, shape %d: matcher says %v, twin says %v", expected, actual, shape, clever, naively)
		}
		if ok {
			compared++
		}
	})
	if compared < 100 {
		t.Errorf("only %d rows compared", compared)
	}
}

// FuzzActual holds broken BSON against an expectation: no panic, and no match
// of what cannot be read.
func FuzzActual(f *testing.F) {
	seeds(func(_, actual string, _ Shape) {
		var raw bson.Raw
		if bson.UnmarshalExtJSON([]byte(`{"v":`+actual+`}`), false, &raw) == nil {
			f.Add([]byte(raw))
		}
	})
	v, err := source.ParseYAML("fuzz", []byte(`{v: {x: [1, {a: {$$type: string}}, {$code: f, $scope: {x: 1}}], y: {$regularExpression: {pattern: a, options: i}}}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := New(nil).Value("", v, document(data), RootDocument)
		if bson.Raw(data).Validate() != nil && len(got) == 0 && !bytes.Contains(data, []byte("f")) {
			t.Errorf("%x matches", data)
		}
	})
}
