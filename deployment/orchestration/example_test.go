package orchestration_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/deployment/orchestration"
)

// A preset is a configuration for mongo-orchestration, here with access control.
func ExamplePreset() {
	for _, name := range orchestration.Presets()[:2] {
		c, err := orchestration.Preset(name)
		fmt.Println(c.Name, c.Kind, c.LoadBalanced, err)
	}
	_, err := orchestration.Parse("mine.json", []byte(`{"members": 3}`))
	fmt.Println(err)
	// Output:
	// single servers false <nil>
	// single-auth servers false <nil>
	// mine.json: members must be a list of objects
}
