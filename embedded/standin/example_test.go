package standin_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/embedded/standin"
)

// The command line is that of mongod. An option that has no counterpart is an error.
func ExampleParse() {
	o, err := standin.Parse(false, []string{"--replSet", "rs0", "--port", "27018", "--dbpath", "data"}, "8.0")
	if err != nil {
		panic(err)
	}
	fmt.Println(o.ReplSet, o.Port, o.Bind)
	_, err = standin.Parse(false, []string{"--repair"}, "8.0")
	fmt.Println(err)
	// Output:
	// rs0 27018 [localhost]
	// flag provided but not defined: -repair
}
