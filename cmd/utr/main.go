// Command utr runs Unified Test Format suites against a MongoDB driver.
package main

import "github.com/unified-test-runner/utr"

func main() { utr.Main() }
