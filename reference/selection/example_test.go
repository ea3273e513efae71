package selection_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/reference/selection"
)

// A secondary with a tag is preferred, unless it is deprioritized because it just failed.
func ExampleSelect() {
	topology := selection.Topology{Type: selection.ReplicaSetWithPrimary, Servers: []selection.Server{
		{Address: "a:27017", Type: selection.RSPrimary},
		{Address: "b:27017", Type: selection.RSSecondary, Tags: map[string]string{"dc": "east"}},
		{Address: "c:27017", Type: selection.RSSecondary},
	}}
	preference := selection.Preference{Mode: selection.SecondaryPreferred, TagSets: []map[string]string{{"dc": "east"}}}
	for _, failed := range [][]string{nil, {"b:27017"}} {
		servers, err := selection.Select(topology, preference, failed, selection.Options{})
		for _, s := range servers {
			fmt.Println(s.Address, s.Type, err)
		}
	}
	// Output:
	// b:27017 RSSecondary <nil>
	// a:27017 RSPrimary <nil>
}
