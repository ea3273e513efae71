package bench

import (
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
	"testing"

	"github.com/unified-test-runner/utr/specs"
	"github.com/xeipuuv/gojsonschema"
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
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/suite")
		b.ReportMetric(float64(suites), "valid")
	})
	peers := map[string]string{"yaml.v3": ""} // with the folder of the schema files
	if dir != ownSuites {
		peers["yaml.v3 + gojsonschema"] = filepath.Join(dir, "unified-test-format", "schema")
	}
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		schemas := peers[name]
		measurePeer(b, loading, "files", name, sizes, func(b *testing.B, n int) {
			chosen := every(files, n)
			b.SetBytes(bytesOf(b, chosen))
			valid := 0
			for b.Loop() {
				valid = (&plainLoader{schemas: schemas, compiled: make(map[string]func() (*gojsonschema.Schema, error))}).load(chosen)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/suite")
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
	schemas string // folder of the official schema files; "" does not validate

	mu       sync.Mutex
	compiled map[string]func() (*gojsonschema.Schema, error) // by version
}

// load counts the files that are valid.
func (l *plainLoader) load(files []string) int {
	next := make(chan string)
	valid := make([]int, runtime.GOMAXPROCS(0))
	var workers sync.WaitGroup
	for i := range valid {
		workers.Go(func() {
			for f := range next {
				if l.one(f) == nil {
					valid[i]++
				}
			}
		})
	}
	for _, f := range files {
		next <- f
	}
	close(next)
	workers.Wait()
	return sum(valid)
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

func (l *plainLoader) one(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil || l.schemas == "" {
		return err
	}
	suite, ok := named(v).(map[string]any)
	if !ok {
		return errors.New("no document")
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
	l.mu.Lock()
	compile := l.compiled[version]
	if compile == nil {
		compile = sync.OnceValues(func() (*gojsonschema.Schema, error) {
			data, err := os.ReadFile(filepath.Join(l.schemas, "schema-"+version+".json"))
			if err != nil {
				return nil, err
			}
			return gojsonschema.NewSchema(gojsonschema.NewBytesLoader(data))
		})
		l.compiled[version] = compile
	}
	l.mu.Unlock()
	return compile()
}

// named makes all keys strings, as JSON wants them.
func named(v any) any {
	switch v := v.(type) {
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[fmt.Sprint(k)] = named(e)
		}
		return out
	case map[string]any:
		for k, e := range v {
			v[k] = named(e)
		}
	case []any:
		for i, e := range v {
			v[i] = named(e)
		}
	}
	return v
}
