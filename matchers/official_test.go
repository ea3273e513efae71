package matchers

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/shared"
	"github.com/unified-test-runner/utr/result"
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
	root := shared.Path(t, "specifications")
	n := 0
	judge := func(file string, faults []result.Mismatch) {
		n++
		for _, m := range faults {
			if m.Position.Line == 0 || strings.Contains(m.Message, "want an error") {
				continue
			}
			t.Errorf("%s:%s", file, show([]result.Mismatch{m}))
		}
	}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".yml" || strings.Contains(file, "invalid") {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		suite, err := source.ParseYAML(file, data)
		if err != nil || suite.Get("tests") == nil {
			return nil
		}
		for _, test := range suite.Get("tests").Items {
			if list := test.Get("expectEvents"); list != nil {
				for _, e := range list.Items {
					for _, event := range e.Get("events").Items {
						_, faults := New(anyEntity{}).Count("", event, nil)
						judge(file, faults)
					}
				}
			}
			if test.Get("operations") == nil {
				continue
			}
			for _, o := range test.Get("operations").Items {
				if x := o.Get("expectResult"); x != nil {
					k := compiler{entities: anyEntity{}}
					k.value(x, atTop)
					judge(file, k.faults)
				}
				if x := o.Get("expectError"); x != nil {
					judge(file, New(anyEntity{}).Outcome("", Expectation{Error: x}, result.Outcome{}))
				}
			}
			if list := test.Get("expectLogMessages"); list != nil {
				for _, x := range list.Items {
					k := compiler{entities: anyEntity{}}
					for _, m := range x.Get("messages").Items {
						k.expectedLogMessage(m)
					}
					judge(file, k.faults)
				}
			}
		}
		return nil
	})
	if err != nil || n < 1000 {
		t.Fatalf("%d expectations, %v", n, err)
	}
	t.Logf("%d expectations", n)
}
