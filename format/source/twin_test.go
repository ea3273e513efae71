package source

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Wanted values are what JSON.stringify(value, null, 2) returns in Node.
func TestTwin(t *testing.T) {
	for _, row := range []struct{ reason, yaml, want string }{
		{"nesting is indented", "a: [1, {b: x}]", "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\"\n    }\n  ]\n}\n"},
		{"empty collections are on one line", "{a: [], b: {}}", "{\n  \"a\": [],\n  \"b\": {}\n}\n"},
		{"array indexes are the first properties", "{b: 1, '10': 2, '2': 3, '-1': 4, '01': 5, '4294967295': 6}",
			"{\n  \"2\": 3,\n  \"10\": 2,\n  \"b\": 1,\n  \"-1\": 4,\n  \"01\": 5,\n  \"4294967295\": 6\n}\n"},
		{"merged keys are at the position of the merge", "a: &a {x: 1, y: 2}\nb: {z: 0, <<: *a, x: 3}",
			"{\n  \"a\": {\n    \"x\": 1,\n    \"y\": 2\n  },\n  \"b\": {\n    \"z\": 0,\n    \"x\": 3,\n    \"y\": 2\n  }\n}\n"},
		{"numbers are doubles", "[1.0, -0.0, 9007199254740993, 9223372036854775807, 1e21, 1.5e-7, 123456789012345680000, 0.000001, -2.50]",
			"[\n  1,\n  0,\n  9007199254740992,\n  9223372036854776000,\n  1e+21,\n  1.5e-7,\n  123456789012345680000,\n  0.000001,\n  -2.5\n]\n"},
		{"an escaped backslash before u2028", `["\\u2028"]`, "[\n  \"\\\\u2028\"\n]\n"},
		{"few characters are escaped", `["ü<&>\u2028\u0001\b\"\\", null, true]`,
			"[\n  \"ü<&>\u2028\\u0001\\b\\\"\\\\\",\n  null,\n  true\n]\n"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			v, err := ParseYAML("a.yml", []byte(row.yaml))
			testkit.Check(t, err)
			testkit.Equal(t, "JSON", string(v.JSONTwin()), row.want)
			rounded := row.reason == "numbers are doubles"
			testkit.Equal(t, "whether it is the twin", v.IsTwin([]byte(row.want)), !rounded)
		})
	}
}

// The twins of all official suites are identical to those in their repository.
func TestOfficialTwins(t *testing.T) {
	root, compared := testkit.Official(t), 0
	testkit.Check(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		stem, yaml := strings.CutSuffix(path, ".yml")
		if err != nil || !yaml {
			return err
		}
		want, err := os.ReadFile(stem + ".json")
		if os.IsNotExist(err) {
			return nil
		}
		testkit.Check(t, err)
		data, err := os.ReadFile(path)
		testkit.Check(t, err)
		v, err := ParseYAML(path, data)
		if testkit.Check(t, err); !bytes.Equal(v.JSONTwin(), want) {
			t.Errorf("%s: the twin differs", path)
		}
		compared++
		return nil
	}))
	if compared < 100 {
		t.Errorf("only %d files have a twin", compared)
	}
}
