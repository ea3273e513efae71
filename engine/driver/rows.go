package driver

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// row is an operation of the driver.
type row struct {
	kind entities.Kind
	name string
	// args are the arguments that run reads itself, separated by spaces.
	args string
	// options is the options struct of the operation, or nil. Arguments with a field in it are accepted.
	options reflect.Type
	// run returns the result, a value that can be marshaled to BSON; nil is null.
	run func(*call) (any, error)
}

func (r row) Key() enginekit.Key { return enginekit.Key{Kind: r.kind, Name: r.name} }

// Accepts implements enginekit.Row. Every operation that sends a command accepts
// session and timeoutMS, which are part of the context.
func (r row) Accepts(name string) bool {
	if slices.Contains(strings.Fields(r.args), name) {
		return true
	}
	switch name {
	case "session":
		return slices.Contains([]entities.Kind{entities.Client, entities.Database, entities.Collection}, r.kind)
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

// plainly returns a row for an operation without options.
func plainly(kind entities.Kind, name, args string, run func(*call) (any, error)) row {
	return row{kind: kind, name: name, args: args, run: run}
}

// silently returns a row for an operation without options or result.
func silently(kind entities.Kind, name, args string, run func(*call) error) row {
	return plainly(kind, name, args, func(c *call) (any, error) { return enginekit.Nothing{}, run(c) })
}

// with returns a row for an operation with options of type T.
func with[T any](kind entities.Kind, name, args string, run func(*call, *filled[T]) (any, error)) row {
	return row{kind, name, args, reflect.TypeFor[T](), func(c *call) (any, error) {
		var o T
		if err := fill(&o, name, c.rest()); err != nil {
			return nil, err
		}
		return run(c, given(o))
	}}
}

// Methods of the driver with one or two arguments and options.
type (
	oneArgument[E, T, R any]  = func(E, context.Context, any, ...options.Lister[T]) (R, error)
	twoArguments[E, T, R any] = func(E, context.Context, any, any, ...options.Lister[T]) (R, error)
)

// one returns a row for a method with one argument, the first in args.
func one[E, T, R any](kind entities.Kind, name, args string, method oneArgument[E, T, R]) row {
	return with(kind, name, args, func(c *call, o *filled[T]) (any, error) {
		r, err := method(receiver[E](c), c.ctx, c.any(strings.Fields(args)[0]), o)
		return c.result(r, err)
	})
}

// two returns a row for a method with two arguments, the first in args.
func two[E, T, R any](kind entities.Kind, name, args string, method twoArguments[E, T, R]) row {
	return with(kind, name, args, func(c *call, o *filled[T]) (any, error) {
		names := strings.Fields(args)
		r, err := method(receiver[E](c), c.ctx, c.any(names[0]), c.any(names[1]), o)
		return c.result(r, err)
	})
}

// oneFound adapts a method whose SingleResult contains the error.
func oneFound[E, T any](method func(E, context.Context, any, ...options.Lister[T]) *mongo.SingleResult) oneArgument[E, T, *mongo.SingleResult] {
	return func(to E, ctx context.Context, a any, o ...options.Lister[T]) (*mongo.SingleResult, error) {
		return method(to, ctx, a, o...), nil
	}
}

// twoFound is oneFound for methods with two arguments.
func twoFound[E, T any](method func(E, context.Context, any, any, ...options.Lister[T]) *mongo.SingleResult) twoArguments[E, T, *mongo.SingleResult] {
	return func(to E, ctx context.Context, a, b any, o ...options.Lister[T]) (*mongo.SingleResult, error) {
		return method(to, ctx, a, b, o...), nil
	}
}

// receiver returns the receiver of a method of the driver.
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
