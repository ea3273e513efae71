// Command testlog makes a short log of what `go test -json` prints: a line for
// each package while they run, then the skipped tests by their reasons, then
// all that the failed tests printed, and a line of totals at last.
//
// It reads standard input, where what go prints on standard error may be mixed
// in, and exits with 1 if anything failed: a test, a package that does not
// build or ends before its tests do, or go itself.
package main

import (
	"fmt"
	"os"
)

func main() {
	l := newLog(os.Stdout)
	if err := l.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
	if !l.close() {
		os.Exit(1)
	}
}
