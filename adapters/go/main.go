// Command go is the adapter for the Go driver: the engine driver of utr in a process of its own. utr can build it with
// any version of the driver: utr run --engine driver@2.8.2.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/engine/process"
	_ "github.com/unified-test-runner/utr/internal/wire/godriver" // as in utr
)

func main() {
	if err := process.Serve(context.Background(), driver.New(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "driver: %s\n", err)
		os.Exit(1)
	}
}
