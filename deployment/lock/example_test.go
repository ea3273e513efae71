package lock_test

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded"
)

// While one run holds the lock of a deployment, the error of another run names the holder.
func ExampleAcquire() {
	ctx := context.Background()
	d, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = d.Close() }()
	acquire := func(name string) (*lock.Lock, error) {
		store, err := lock.Open(options.Client().ApplyURI(d.URI()))
		if err != nil {
			return nil, err
		}
		return lock.Acquire(ctx, store, d.Hosts(), lock.Options{Name: name})
	}
	first, err := acquire("job 1")
	if err != nil {
		panic(err)
	}
	_, err = acquire("job 2")
	var held *lock.HeldError
	fmt.Println(errors.As(err, &held), held.Holder.Name)
	fmt.Println(first.Release())
	// Output:
	// true job 1
	// <nil>
}
