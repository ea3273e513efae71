package driver

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
)

// row is an operation of the driver.
type row struct {
	kind entities.Kind
	name string
	// args are the arguments that run reads itself, separated by spaces. Those that the format requires are added.
	args string
	// options is the options struct of the operation, or nil. Arguments with a field in it are accepted.
	options reflect.Type
	// run returns the result, a value that can be marshaled to BSON; nil is null.
	run func(*call) (any, error)
}

func (r row) Key() enginekit.Key { return enginekit.Key{Kind: r.kind, Name: r.name} }

// Accepts implements enginekit.Row. Every operation that sends a command accepts
// session and timeoutMS, because they are part of the context.
func (r row) Accepts(name string) bool {
	if slices.Contains(strings.Fields(r.args), name) {
		return true
	}
	switch name {
	case "session":
		return slices.Contains([]entities.Kind{entities.Client, entities.Database, entities.Collection}, r.kind)
	case "timeoutMS":
		return !slices.Contains([]string{"close", "endSession", "getSnapshotTime", "startTransaction", "appendMetadata"},
			r.name) &&
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

// calling returns a row for a method of the driver with one argument and options. of returns its receiver.
func calling[E, T, R any](kind entities.Kind, name, args, argument string, of func(*call) E,
	method func(E, context.Context, any, ...options.Lister[T]) (R, error)) row {
	return with(kind, name, args+" "+argument, func(c *call, o *filled[T]) (any, error) {
		return c.result(method(of(c), c.ctx, c.any(argument), o))
	})
}
