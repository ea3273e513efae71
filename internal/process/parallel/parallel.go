// Package parallel processes lists.
package parallel

import (
	"cmp"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Each calls do for all elements, at most limit at once. A limit of 0 means the number of cores. After all calls, it
// returns the first error.
func Each[T any](limit int, all []T, do func(i int, one T) error) error {
	var group errgroup.Group
	group.SetLimit(cmp.Or(limit, runtime.GOMAXPROCS(0)))
	for i, one := range all {
		group.Go(func() error { return do(i, one) })
	}
	return group.Wait()
}
