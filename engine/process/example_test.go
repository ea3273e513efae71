package process_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/engine/process"
)

// An engine behind the protocol, with an adapter in this process. Command starts an adapter in any language instead.
func ExampleNew() {
	var transcript strings.Builder
	e, err := process.New(process.Options{Engine: driver.New(), Transcript: &transcript})
	if err != nil {
		panic(err)
	}
	about, err := e.Describe(context.Background())
	fmt.Println(about.Name, err, e.Close())
	fmt.Println(strings.Contains(transcript.String(), `-> {"jsonrpc":"2.0","id":1,"method":"hello"`))
	// Output:
	// driver <nil> <nil>
	// true
}
