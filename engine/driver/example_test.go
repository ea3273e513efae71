package driver_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/engine/driver"
)

// The engine describes itself: what it does not list is not run.
func ExampleNew() {
	e := driver.New()
	defer func() { _ = e.Close() }()
	about, err := e.Describe(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(about.Name, slices.Contains(about.Operations, "collection.insertOne"),
		slices.Contains(about.Operations, "collection.mapReduce"))
	// Output:
	// driver true false
}
