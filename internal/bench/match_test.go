package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// expectation is an expected document with one that matches it.
type expectation struct {
	want   *source.Value
	actual bson.Raw
	plain  bson.D // want, for the peer
}

func (e *expectation) value() bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: e.actual}
}

// BenchmarkMatchSuites matches the documents that the official suites expect
// as results, in commands and in collections, with documents equal to
// them; expectations with operators are left out, since the peer knows none.
func BenchmarkMatchSuites(b *testing.B) {
	all := expectations(b, corpus(b))
	match(b, "match the expectations of suites", "documents", []int{len(all)}, func(*testing.B, int) []expectation { return all })
}

// BenchmarkMatchSize matches one document of n fields, a quarter of which are
// documents of four.
func BenchmarkMatchSize(b *testing.B) {
	match(b, "match a document", "fields", []int{16, 64, 256, 1024, 4096}, func(b *testing.B, n int) []expectation {
		var text strings.Builder
		for i := range n {
			switch i % 4 {
			case 0:
				fmt.Fprintf(&text, "field%d: { a: %d, b: text, c: 1.5, d: [1, 2, 3] }\n", i, i)
			default:
				fmt.Fprintf(&text, "field%d: %d\n", i, i)
			}
		}
		v, err := source.ParseYAML("document.yml", []byte(text.String()))
		if err != nil {
			b.Fatal(err)
		}
		e, err := expect(v)
		if err != nil {
			b.Fatal(err)
		}
		return []expectation{e}
	})
}

// match matches by utr, and by cmp.Equal on decoded documents: numbers of
// different types are never equal to that, and documents have one order.
func match(b *testing.B, work, unit string, sizes []int, make func(*testing.B, int) []expectation) {
	measure(b, work, unit, "utr", sizes, func(b *testing.B, n int) {
		list := make(b, n)
		b.SetBytes(lengths(list))
		for b.Loop() {
			for i := range list {
				if wrong := matchers.New(nil).Value("", list[i].want, list[i].value(), matchers.RootDocument); len(wrong) > 0 {
					b.Fatalf("%s: %+v", list[i].want.Position, wrong)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/"+strings.TrimSuffix(unit, "s"))
	})
	measurePeer(b, work, unit, "go-cmp", sizes, func(b *testing.B, n int) {
		list := make(b, n)
		b.SetBytes(lengths(list))
		for b.Loop() {
			for i := range list {
				var actual bson.D
				if err := bson.Unmarshal(list[i].actual, &actual); err != nil || !cmp.Equal(list[i].plain, actual) {
					b.Fatalf("%s: not equal (%v)", list[i].want.Position, err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/"+strings.TrimSuffix(unit, "s"))
	})
}

func lengths(list []expectation) (sum int64) {
	for _, e := range list {
		sum += int64(len(e.actual))
	}
	return sum
}

// expect pairs an expected document with one that is equal to it.
func expect(v *source.Value) (e expectation, err error) {
	e.want = v
	if e.actual, err = v.Raw(); err != nil {
		return e, err
	}
	return e, bson.Unmarshal(e.actual, &e.plain)
}

// expectations collects all without operators.
func expectations(b *testing.B, dir string) (all []expectation) {
	b.Helper()
	loaded, err := specs.Load([]string{dir}, specs.Options{})
	var refused *specs.LoadError
	if err != nil && !errors.As(err, &refused) {
		b.Fatal(err)
	}
	add := func(v *source.Value) {
		if v == nil || v.Kind != source.Document {
			return
		}
		e, err := expect(v)
		if err != nil || bytes.Contains(e.actual, []byte("$")) || bytes.Contains(e.actual, []byte("NaN")) ||
			!cmp.Equal(e.plain, e.plain) || len(matchers.New(nil).Value("", v, e.value(), matchers.RootDocument)) > 0 {
			return
		}
		all = append(all, e)
	}
	for _, s := range loaded.Suites {
		for _, t := range s.Tests {
			for _, c := range t.Outcome {
				for _, d := range c.Documents {
					add(d)
				}
			}
			for _, o := range t.Operations {
				if r := o.ExpectResult; r != nil && r.Kind == source.Array {
					for _, item := range r.Items {
						add(item)
					}
				} else {
					add(r)
				}
			}
			for _, list := range t.ExpectEvents {
				for _, event := range list.Events {
					for _, f := range event.Fields {
						add(f.Value.Get("command"))
					}
				}
			}
		}
	}
	if len(all) < 100 {
		b.Fatalf("only %d expectations", len(all))
	}
	return all
}
