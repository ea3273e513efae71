package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/unified-test-runner/utr/internal/shared"
	"github.com/unified-test-runner/utr/source"
)

// The tests compare verdicts on values that were read without the project's
// own parser and reach the official schema without plain: "raw" values, as
// encoding/json makes them with UseNumber.

// officialSuites gives the directory of the official suites, or skips.
func officialSuites(t testing.TB) string {
	t.Helper()
	return shared.Path(t, "specifications")
}

// rawFiles reads every YAML and JSON file below a directory. Files that say
// the same, as most twins do, are given once. The few that are malformed on
// purpose are counted.
func rawFiles(t testing.TB, dir string) (files map[string]any, read, malformed int) {
	t.Helper()
	files = map[string]any{}
	seen := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
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
			malformed++
			return nil
		}
		read++
		canonical, err := json.Marshal(raw)
		if err != nil || seen[string(canonical)] {
			return err
		}
		seen[string(canonical)] = true
		name, err := filepath.Rel(dir, path)
		files[name] = raw
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, read, malformed
}

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

// normalise gives what yaml.v3 makes as encoding/json would.
func normalise(value any) any {
	switch value := value.(type) {
	case nil, bool, string:
		return value
	case time.Time:
		return value.String()
	case []any:
		items := make([]any, len(value))
		for i := range value {
			items[i] = normalise(value[i])
		}
		return items
	case map[string]any:
		m := map[string]any{}
		for k, v := range value {
			m[k] = normalise(v)
		}
		return m
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

// valueOf makes the project's form of a raw value, its positions unknown and
// its keys sorted.
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
		for _, k := range sortedKeys(raw) {
			v.Fields = append(v.Fields, source.Field{Key: k, Value: valueOf(raw[k])})
		}
		return v
	default:
		panic(fmt.Sprintf("no raw value: %T", raw))
	}
}

// parse reads YAML with the positions that messages carry.
func parse(t testing.TB, text string) *source.Value {
	t.Helper()
	v, err := source.ParseYAML("suite.yml", []byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return v
}
