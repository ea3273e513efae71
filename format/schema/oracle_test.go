package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xeipuuv/gojsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// An oracle validates files by the official schemas, each compiled on first use.
type oracle struct {
	Raw      []map[string]any
	compiled []func() (*gojsonschema.Schema, error)
}

// newOracle reads the official schemas, or skips the test.
func newOracle(t testing.TB) *oracle {
	t.Helper()
	o := &oracle{}
	for minor := range newest + 1 {
		data, err := os.ReadFile(testkit.OfficialSchema(t, fmt.Sprintf("1.%d", minor)))
		testkit.Check(t, err)
		raw, err := readJSON(data)
		testkit.Check(t, err)
		o.Raw = append(o.Raw, raw.(map[string]any))
		o.compiled = append(o.compiled, sync.OnceValues(func() (*gojsonschema.Schema, error) {
			return gojsonschema.NewSchema(gojsonschema.NewBytesLoader(data))
		}))
	}
	return o
}

// valid reports the official verdict on a raw document.
func (o *oracle) valid(t testing.TB, minor int, raw any) bool {
	return accepts(t, o.compiled[minor], raw)
}

// accepts reports whether a schema accepts a raw document.
func accepts(t testing.TB, compiled func() (*gojsonschema.Schema, error), raw any) bool {
	schema, err := compiled()
	if err != nil {
		t.Error(err)
		return false
	}
	result, err := schema.Validate(gojsonschema.NewRawLoader(raw))
	if err != nil {
		t.Error(err)
		return false
	}
	return result.Valid()
}

// officialFiles reads the wanted official YAML and JSON files as raw documents by name, each distinct
// document once. It ignores malformed files.
func officialFiles(t testing.TB, wanted func(name string) bool) map[string]any {
	t.Helper()
	root := testkit.Official(t)
	docs, seen := map[string]any{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !wanted(path) {
			return err
		}
		parse := readJSON
		switch filepath.Ext(path) {
		case ".json":
		case ".yml", ".yaml":
			parse = readYAML
		default:
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		raw, err := parse(data)
		if err != nil {
			return nil // some files are malformed on purpose
		}
		canonical, err := json.Marshal(raw)
		if err != nil || seen[string(canonical)] {
			return err
		}
		seen[string(canonical)] = true
		name, err := filepath.Rel(root, path)
		docs[name] = raw
		return err
	})
	testkit.Check(t, err)
	return docs
}

// readJSON returns a raw document: the types of encoding/json, with numbers as json.Number.
func readJSON(data []byte) (raw any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&raw)
	return raw, err
}

func readYAML(data []byte) (any, error) {
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return normalise(value), nil
}

// normalise converts the types of package yaml to the types of encoding/json.
func normalise(value any) any {
	switch value := value.(type) {
	case nil, bool, string:
		return value
	case time.Time:
		return value.String()
	case []any:
		for i := range value {
			value[i] = normalise(value[i])
		}
		return value
	case map[string]any:
		for k := range value {
			value[k] = normalise(value[k])
		}
		return value
	case map[any]any:
		m := map[string]any{}
		for k, v := range value {
			m[fmt.Sprint(k)] = normalise(v)
		}
		return m
	default:
		return json.Number(fmt.Sprint(value))
	}
}

// valueOf converts a raw document, without positions and with sorted keys.
func valueOf(raw any) *source.Value {
	switch raw := raw.(type) {
	case nil:
		return &source.Value{}
	case bool:
		return &source.Value{Kind: source.Bool, Bool: raw}
	case string:
		return &source.Value{Kind: source.String, String: raw}
	case json.Number:
		if !strings.ContainsAny(raw.String(), ".eE") {
			if n, err := strconv.ParseInt(raw.String(), 10, 64); err == nil {
				return &source.Value{Kind: source.Int, Int: n}
			}
		}
		f, _ := raw.Float64()
		return &source.Value{Kind: source.Float, Float: f}
	case []any:
		v := &source.Value{Kind: source.Array}
		for _, item := range raw {
			v.Items = append(v.Items, valueOf(item))
		}
		return v
	case map[string]any:
		v := &source.Value{Kind: source.Document}
		for _, k := range slices.Sorted(maps.Keys(raw)) {
			v.Fields = append(v.Fields, source.Field{Key: k, Value: valueOf(raw[k])})
		}
		return v
	default:
		panic(fmt.Sprintf("not a raw value: %T", raw))
	}
}
