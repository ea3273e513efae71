package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"github.com/xeipuuv/gojsonschema"
	"go.mongodb.org/mongo-driver/v2/bson"
	"gopkg.in/yaml.v3"
)

const loading = "load and validate suites"

// BenchmarkLoad loads and validates every official YAML file, a quarter of
// them, and a sixteenth: parsing with positions, schema, semantic checks. The
// peers know neither positions nor semantics, and use as many goroutines:
// yaml.v3 decoding into Go values, and with that gojsonschema validating
// by the official schema file of the declared version.
func BenchmarkLoad(b *testing.B) {
	dir := corpus(b)
	files := yamlFiles(b, dir)
	sizes := []int{len(files) / 16, len(files) / 4, len(files)}
	measure(b, loading, "files", "utr", sizes, func(b *testing.B, n int) {
		chosen := every(files, n)
		b.SetBytes(bytesOf(b, chosen))
		suites := 0
		for b.Loop() {
			loaded, err := specs.Load(chosen, specs.Options{})
			var refused *specs.LoadError // the corpus of invalid suites is among them
			if err != nil && !errors.As(err, &refused) {
				b.Fatal(err)
			}
			suites = len(loaded.Suites)
		}
		perUnit(b, n, "suite")
		b.ReportMetric(float64(suites), "valid")
	})
	peers := map[string]string{"yaml.v3": ""} // with the folder of the schema files
	if dir != ownSuites {
		peers["yaml.v3 + gojsonschema"] = filepath.Dir(testkit.OfficialSchema(b, "1.0"))
	}
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		schemas := peers[name]
		measurePeer(b, loading, "files", name, sizes, func(b *testing.B, n int) {
			chosen := every(files, n)
			b.SetBytes(bytesOf(b, chosen))
			valid := 0
			for b.Loop() {
				valid = (&plainLoader{schemas: schemas}).load(chosen)
			}
			perUnit(b, n, "suite")
			b.ReportMetric(float64(valid), "valid")
		})
	}
}

// yamlFiles lists the suites below a folder in order.
func yamlFiles(b *testing.B, dir string) []string {
	b.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) == ".yml" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return files
}

// every chooses n of a list, evenly.
func every[T any](list []T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = list[i*len(list)/n]
	}
	return out
}

func bytesOf(b *testing.B, files []string) (sum int64) {
	b.Helper()
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			b.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

// plainLoader is what one would write in an afternoon.
type plainLoader struct {
	schemas  string   // folder of the official schema files; "" does not validate
	compiled sync.Map // version → func() (*gojsonschema.Schema, error)
}

// load counts the files that are valid.
func (l *plainLoader) load(files []string) int {
	var valid atomic.Int64
	next := make(chan string)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for f := range next {
				if l.one(f) == nil {
					valid.Add(1)
				}
			}
		})
	}
	for _, f := range files {
		next <- f
	}
	close(next)
	workers.Wait()
	return int(valid.Load())
}

func (l *plainLoader) one(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var suite map[string]any
	if err := yaml.Unmarshal(data, &suite); err != nil || l.schemas == "" {
		return err
	}
	schema, err := l.schema(fmt.Sprint(suite["schemaVersion"]))
	if err != nil {
		return err
	}
	answer, err := schema.Validate(gojsonschema.NewGoLoader(suite))
	if err == nil && !answer.Valid() {
		err = errors.New("invalid")
	}
	return err
}

// schema compiles that of a version at its first use.
func (l *plainLoader) schema(version string) (*gojsonschema.Schema, error) {
	if parts := strings.Split(version, "."); len(parts) > 2 {
		version = strings.Join(parts[:2], ".")
	}
	compile, _ := l.compiled.LoadOrStore(version, sync.OnceValues(func() (*gojsonschema.Schema, error) {
		data, err := os.ReadFile(filepath.Join(l.schemas, "schema-"+version+".json"))
		if err != nil {
			return nil, err
		}
		return gojsonschema.NewSchema(gojsonschema.NewBytesLoader(data))
	}))
	return compile.(func() (*gojsonschema.Schema, error))()
}

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
		perUnit(b, n, strings.TrimSuffix(unit, "s"))
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
		perUnit(b, n, strings.TrimSuffix(unit, "s"))
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
	add := func(values ...*source.Value) {
		for _, v := range values {
			if v == nil || v.Kind != source.Document {
				continue
			}
			e, err := expect(v)
			if err == nil && !bytes.ContainsAny(e.actual, "$") && !bytes.Contains(e.actual, []byte("NaN")) &&
				cmp.Equal(e.plain, e.plain) && len(matchers.New(nil).Value("", v, e.value(), matchers.RootDocument)) == 0 {
				all = append(all, e)
			}
		}
	}
	for _, s := range loaded.Suites {
		for _, t := range s.Tests {
			for _, c := range t.Outcome {
				add(c.Documents...)
			}
			for _, o := range t.Operations {
				if o.ExpectResult != nil {
					add(append(o.ExpectResult.Items, o.ExpectResult)...)
				}
			}
			for _, list := range t.ExpectEvents {
				for _, event := range list.Events {
					add(event.Get("commandStartedEvent").Get("command"))
				}
			}
		}
	}
	if len(all) < 100 {
		b.Fatalf("only %d expectations", len(all))
	}
	return all
}
