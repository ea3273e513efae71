package matchers

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/source"
)

// anyEntity knows every name.
type anyEntity struct{}

func (anyEntity) BSON(string) (bson.RawValue, error) {
	return bson.RawValue{Type: bson.TypeNull}, nil
}
func (anyEntity) LSID(string) (bson.Raw, error) { return bson.Raw{5, 0, 0, 0, 0}, nil }

// No expectation of an official suite is a fault: the matcher knows every
// operator, event and field that they use.
func TestOfficialSuitesCompile(t *testing.T) {
	n := 0
	items := func(v *source.Value, key string) []*source.Value {
		if v = v.Get(key); v == nil {
			return nil
		}
		return v.Items
	}
	compile := func(file string, do func(*compiler)) {
		n++
		k := compiler{entities: anyEntity{}}
		do(&k)
		if len(k.faults) > 0 {
			t.Errorf("%s:%s", file, show(k.faults))
		}
	}
	err := filepath.WalkDir(testkit.Official(t), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".yml" || strings.Contains(file, "invalid") {
			return err
		}
		data, err := os.ReadFile(file)
		suite, malformed := source.ParseYAML(file, data)
		if malformed != nil {
			return err // other files that tests of the specifications use
		}
		for _, test := range items(suite, "tests") {
			for _, e := range items(test, "expectEvents") {
				for _, event := range items(e, "events") {
					compile(file, func(k *compiler) { k.expectedEvent(event, "") })
				}
			}
			for _, x := range items(test, "expectLogMessages") {
				for _, m := range items(x, "messages") {
					compile(file, func(k *compiler) { k.expectedLogMessage(m) })
				}
			}
			for _, o := range items(test, "operations") {
				if x := o.Get("expectResult"); x != nil {
					compile(file, func(k *compiler) { k.value(x, atTop) })
				}
				if x := o.Get("expectError"); x != nil {
					compile(file, func(k *compiler) { k.expectedError(x) })
				}
			}
		}
		return err
	})
	if err != nil || n < 1000 {
		t.Fatalf("%d expectations, %v", n, err)
	}
}
