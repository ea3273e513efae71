package specs

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/format/schema"
	"github.com/unified-test-runner/utr/format/source"
)

// dated maps operations and operators that no JSON schema checks to the minor version that introduced
// them (Unified Test Format, "Changelog").
var dated = map[string]int{
	"loop":             2,
	"createFindCursor": 3, "assertNumberConnectionsCheckedOut": 3,
	"createEntities": 9, "$$lte": 9,
	"runOnThread": 10, "waitForThread": 10, "recordTopologyDescription": 10, "waitForPrimaryChange": 10,
	"assertTopologyType": 10, "waitForEvent": 10, "assertEventCount": 10, "wait": 10,
	"$$matchAsDocument": 13, "$$matchAsRoot": 13,
}

// Lowest returns the lowest schemaVersion that a file complies with, and the first place that requires
// it: nil for the oldest version. Its rule is "schema", or "changelog" for what no JSON schema checks.
// If the file is valid at no version, the error is an *InvalidError.
func Lowest(file string, root *source.Value) (lowest Version, because *Problem, err error) {
	version, demand, wrong, err := schema.Lowest(root)
	if wrong != nil {
		return lowest, nil, &InvalidError{Problems: bySchema(wrong...)}
	}
	if err == nil {
		lowest, err = ParseVersion(version)
	}
	if err != nil {
		return lowest, nil, err
	}
	if demand != nil {
		because = &bySchema(*demand)[0]
	}
	need := func(p place, name string) {
		if v := (Version{1, dated[name], 0}); v.Compare(lowest) > 0 {
			lowest = v
			because = &Problem{Position: p.Position, Path: strings.TrimPrefix(p.path, "."), Rule: "changelog",
				Message: fmt.Sprintf("%q requires schemaVersion %s", name, v)}
		}
	}
	walk(place{root, ""}, func(p place) bool {
		if name := p.get("name"); name.exists() && p.get("object").exists() {
			need(name, name.Text())
		}
		for _, f := range p.Fields {
			if strings.HasPrefix(f.Key, "$$") {
				need(place{&source.Value{Position: f.KeyPosition}, p.path + "." + f.Key}, f.Key)
			}
		}
		return true
	})
	return lowest, because, nil
}
