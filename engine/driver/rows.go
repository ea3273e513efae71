package driver

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// row is an operation that the driver has.
type row struct {
	kind operations.Kind
	name string
	// takes are the arguments that run reads itself, separated by blanks.
	takes string
	// options is the struct of the driver's options for the call; every
	// argument that it has a field for is taken. Nil: there are none.
	options reflect.Type
	// run gives the result, a Go value that can be written as BSON; nil is
	// null. A result beside an error is a partial one.
	run func(*call) (any, error)
}

// Key implements enginekit.Row.
func (r row) Key() enginekit.Key { return enginekit.Key{Kind: r.kind, Name: r.name} }

// Accepts implements enginekit.Row. Session and timeoutMS go with the context,
// and are taken by every operation that sends a command.
func (r row) Accepts(name string) bool {
	if slices.Contains(strings.Fields(r.takes), name) {
		return true
	}
	switch name {
	case "session":
		return slices.Contains([]operations.Kind{operations.Client, operations.Database, operations.Collection}, r.kind)
	case "timeoutMS":
		return !slices.Contains([]string{"close", "endSession", "getSnapshotTime", "startTransaction", "appendMetadata"}, r.name) &&
			!strings.HasPrefix(r.name, "$")
	}
	if r.options == nil {
		return false
	}
	f, found := fieldOf(r.options, name)
	return found && fillable(f.Type)
}

// plainly makes a row of an operation without options.
func plainly(kind operations.Kind, name, takes string, run func(*call) (any, error)) row {
	return row{kind: kind, name: name, takes: takes, run: run}
}

// silently makes a row of an operation that has neither options nor a result.
func silently(kind operations.Kind, name, takes string, run func(*call) error) row {
	return plainly(kind, name, takes, func(c *call) (any, error) { return enginekit.Nothing{}, run(c) })
}

// with makes a row of an operation that has options of a type. They are read
// before anything is sent.
func with[T any](kind operations.Kind, name, takes string, run func(*call, *filled[T]) (any, error)) row {
	return row{kind, name, takes, reflect.TypeFor[T](), func(c *call) (any, error) {
		var o T
		if err := fill(&o, name, c.rest()); err != nil {
			return nil, err
		}
		return run(c, given(o))
	}}
}

// Methods of the driver that take one argument or two, and options.
type (
	oneArgument[E, T, R any]  = func(E, context.Context, any, ...options.Lister[T]) (R, error)
	twoArguments[E, T, R any] = func(E, context.Context, any, any, ...options.Lister[T]) (R, error)
)

// one makes a row of a method that takes one argument, the first of those that the
// row takes.
func one[E, T, R any](kind operations.Kind, name, takes string, method oneArgument[E, T, R]) row {
	return with(kind, name, takes, func(c *call, o *filled[T]) (any, error) {
		r, err := method(receiver[E](c), c.ctx, c.any(strings.Fields(takes)[0]), o)
		return c.result(r, err)
	})
}

// two makes a row of a method that takes two arguments.
func two[E, T, R any](kind operations.Kind, name, takes string, method twoArguments[E, T, R]) row {
	return with(kind, name, takes, func(c *call, o *filled[T]) (any, error) {
		names := strings.Fields(takes)
		r, err := method(receiver[E](c), c.ctx, c.any(names[0]), c.any(names[1]), o)
		return c.result(r, err)
	})
}

// oneFound adapts a method that finds one document, whose result has the error.
func oneFound[E, T any](method func(E, context.Context, any, ...options.Lister[T]) *mongo.SingleResult) oneArgument[E, T, *mongo.SingleResult] {
	return func(to E, ctx context.Context, a any, o ...options.Lister[T]) (*mongo.SingleResult, error) {
		return method(to, ctx, a, o...), nil
	}
}

// twoFound adapts such a method that takes two arguments.
func twoFound[E, T any](method func(E, context.Context, any, any, ...options.Lister[T]) *mongo.SingleResult) twoArguments[E, T, *mongo.SingleResult] {
	return func(to E, ctx context.Context, a, b any, o ...options.Lister[T]) (*mongo.SingleResult, error) {
		return method(to, ctx, a, b, o...), nil
	}
}

// receiver gives what a method of the driver is called on.
func receiver[E any](c *call) E {
	var to any
	switch e := c.Entity.(type) {
	case *client:
		to = e.Client
	case *database:
		to = c.db()
	case *collection:
		to = c.coll()
	case *bucket:
		to = e.GridFSBucket
	}
	return to.(E)
}
