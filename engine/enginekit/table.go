package enginekit

import (
	"context"
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/result"
)

// SchemaVersion is the newest schema version that the engines support.
const SchemaVersion = "1.28"

// Key names an operation.
type Key struct {
	Kind entities.Kind
	Name string
}

// Row is an operation that an engine supports.
type Row interface {
	Key() Key
	// Accepts reports whether the operation accepts an argument.
	Accepts(argument string) bool
}

// Table is the operations of an engine.
type Table[R Row] map[Key]R

// NewTable returns a table of rows.
func NewTable[R Row](rows []R) Table[R] {
	table := make(Table[R], len(rows))
	for _, r := range rows {
		table[r.Key()] = r
	}
	return table
}

// Names returns the operations for a Description, sorted.
func (t Table[R]) Names() []string {
	var names []string
	for k := range t {
		names = append(names, string(k.Kind)+"."+k.Name)
	}
	slices.Sort(names)
	return names
}

// Call is a call of an operation.
type Call[R Row] struct {
	Arguments
	Operation engine.Operation
	Row       R
	Kind      entities.Kind // of the entity
	Entity    any
	Test      *Test
}

// Call looks up the entity and the row of an operation, and checks its arguments. It returns an error for an unknown
// entity, or for something that the engine does not support.
func (t Table[R]) Call(test *Test, op engine.Operation) (Call[R], *result.Error) {
	c := Call[R]{Arguments: NewArguments(op.Arguments), Operation: op, Test: test}
	object, err := test.Entities.Get(op.Object)
	if err != nil {
		return c, Argument("%v", err)
	}
	c.Kind, c.Entity = object.Kind, object.Value
	var supported bool
	if c.Row, supported = t[Key{c.Kind, op.Name}]; !supported {
		return c, test.Unsupported(fmt.Sprintf("operation %s.%s", c.Kind, op.Name))
	}
	elements, err := c.Given.Elements()
	if err != nil {
		return c, Argument("arguments: %v", err)
	}
	for _, e := range elements {
		if !c.Row.Accepts(e.Key()) {
			return c, test.Unsupported(fmt.Sprintf("argument %s of %s.%s", e.Key(), c.Kind, op.Name))
		}
	}
	return c, nil
}

// Session returns the session entity that the argument session names.
func (c *Call[R]) Session() (any, *result.Error) {
	session, err := c.Test.named(c.Given, "session", entities.Session)
	if err != nil {
		return nil, Argument("%v", err)
	}
	return session, nil
}

// Save stores an entity that the operation created under its SaveAs. Without one,
// the entity is kept until the test ends.
func (c *Call[R]) Save(ctx context.Context, kind entities.Kind, entity any) *result.Error {
	if err := c.Test.Entities.Add(entities.Entity{ID: c.Operation.SaveAs, Kind: kind, Value: entity}); err != nil {
		c.Test.CloseEntity(ctx, entity)
		return Argument("%v", err)
	}
	return nil
}

// Argument returns an error for an invalid request.
func Argument(format string, args ...any) *result.Error {
	return &result.Error{Message: fmt.Sprintf(format, args...), Client: true, Kind: "argument"}
}
