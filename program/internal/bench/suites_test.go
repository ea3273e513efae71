package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xeipuuv/gojsonschema"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/specs"
)

// BenchmarkLoad loads and validates the valid official YAML files: parsing with
// positions, schema validation and semantic checks. It is compared with yaml.v3, which
// decodes into Go values, alone and with gojsonschema, which validates against the
// official schema of the declared version. Both use as many goroutines, but have
// neither positions nor semantic checks.
func BenchmarkLoad(b *testing.B) {
	dir := corpus(b)
	var files []string
	for _, s := range loaded(b, dir) {
		if filepath.Ext(s.File) == ".yml" {
			files = append(files, s.File)
		}
	}
	sizes := []int{len(files) / 16, len(files) / 4, len(files)}
	load := func(who string, load func(chosen []string) int) {
		measure(b, who, "files", sizes, func(b *testing.B, n int) {
			chosen, valid := every(files, n), 0
			for b.Loop() {
				valid = load(chosen)
			}
			perUnit(b, n, "suite")
			b.ReportMetric(float64(valid), "valid")
		})
	}
	load("utr", func(chosen []string) int { return len(loaded(b, chosen...)) })
	load("yaml.v3", func(chosen []string) int { return decode(chosen, nil) })
	if schemas := officialSchemas(b); len(schemas) > 0 {
		load("yaml.v3-gojsonschema", func(chosen []string) int { return decode(chosen, schemas) })
	}
}

// loaded returns the valid suites.
func loaded(b *testing.B, paths ...string) []*specs.Suite {
	b.Helper()
	all, err := specs.Load(paths, specs.Options{})
	var invalid *specs.InvalidError // the official suites include invalid ones
	if err != nil && !errors.As(err, &invalid) {
		b.Fatal(err)
	}
	return all.Suites
}

// officialSchemas compiles the official schemas, if they exist.
func officialSchemas(b *testing.B) map[string]*gojsonschema.Schema {
	b.Helper()
	all := map[string]*gojsonschema.Schema{}
	if _, found := testkit.FindOfficial(b); !found {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(testkit.OfficialSchema(b, "1.0")), "schema-1.*.json"))
	testkit.Check(b, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		testkit.Check(b, err)
		all[strings.TrimSuffix(filepath.Base(file)[len("schema-"):],
			".json")], err = gojsonschema.NewSchema(gojsonschema.NewBytesLoader(data))
		testkit.Check(b, err)
	}
	return all
}

// decode is a simple loader without positions. It returns the number of valid files.
func decode(files []string, schemas map[string]*gojsonschema.Schema) int {
	var valid, next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(files); i = next.Add(1) - 1 {
				var suite map[string]any
				data, err := os.ReadFile(files[i])
				if err != nil || yaml.Unmarshal(data, &suite) != nil {
					continue
				}
				parts := append(strings.Split(fmt.Sprint(suite["schemaVersion"]), "."), "")
				if schema := schemas[parts[0]+"."+parts[1]]; schema != nil {
					if answer, err := schema.Validate(gojsonschema.NewGoLoader(suite)); err != nil || !answer.Valid() {
						continue
					}
				}
				valid.Add(1)
			}
		})
	}
	workers.Wait()
	return int(valid.Load())
}

// BenchmarkMatch matches a document of n fields, a quarter of which are documents with
// four fields. It is compared with cmp.Equal on decoded documents, which is stricter
// about the types of numbers and the order of fields.
func BenchmarkMatch(b *testing.B) {
	for _, row := range []struct {
		who     string
		matches func(want *source.Value, plain bson.D, got bson.Raw) bool
	}{
		{"utr", func(want *source.Value, _ bson.D, got bson.Raw) bool {
			document := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: got}
			return len(matchers.New(nil).Value("", want, document, operations.RootDocument)) == 0
		}},
		{"go-cmp", func(_ *source.Value, plain bson.D, got bson.Raw) bool {
			var decoded bson.D
			return bson.Unmarshal(got, &decoded) == nil && cmp.Equal(plain, decoded)
		}},
	} {
		measure(b, row.who, "fields", []int{16, 64, 256, 1024, 4096}, func(b *testing.B, n int) {
			var text strings.Builder
			for i := range n {
				value := fmt.Sprint(i)
				if i%4 == 0 {
					value = fmt.Sprintf("{ a: %d, b: text, c: 1.5, d: [1, 2, 3] }", i)
				}
				fmt.Fprintf(&text, "field%d: %s\n", i, value)
			}
			want, err := source.ParseYAML("document.yml", []byte(text.String()))
			testkit.Check(b, err)
			got, err := want.Raw()
			testkit.Check(b, err)
			var plain bson.D
			testkit.Check(b, bson.Unmarshal(got, &plain))
			for b.Loop() {
				if !row.matches(want, plain, got) {
					b.Fatal("the documents differ")
				}
			}
			perUnit(b, n, "field")
		})
	}
}
