package enginekit

import (
	"context"
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
)

// SchemaVersion is the newest version of the format whose features the engines
// serve.
const SchemaVersion = "1.28"

// Key names an operation.
type Key struct {
	Kind operations.Kind
	Name string
}

// Row is an operation that an engine serves.
type Row interface {
	Key() Key
	// Accepts reports whether the operation takes an argument.
	Accepts(argument string) bool
}

// Table has the operations of an engine.
type Table[R Row] map[Key]R

// NewTable makes a table of rows.
func NewTable[R Row](rows []R) Table[R] {
	table := make(Table[R], len(rows))
	for _, r := range rows {
		table[r.Key()] = r
	}
	return table
}

// Names lists the operations as a description does.
func (t Table[R]) Names() []string {
	var names []string
	for k := range t {
		names = append(names, string(k.Kind)+"."+k.Name)
	}
	slices.Sort(names)
	return names
}

// Arguments lists the arguments of the format's table that an operation is
// served with; false if it is not served.
func (t Table[R]) Arguments(kind operations.Kind, name string) ([]string, bool) {
	r, found := t[Key{kind, name}]
	if !found {
		return nil, false
	}
	var taken []string
	known, _ := operations.Lookup(kind, name)
	for _, a := range known.Arguments {
		if r.Accepts(a.Name) || a.Name == "callback" {
			taken = append(taken, a.Name)
		}
	}
	return taken, true
}

// Call is an operation that is to be performed on an entity.
type Call[R Row] struct {
	Arguments
	Operation engine.Operation
	Row       R
	Kind      operations.Kind // of the entity
	Entity    any
	Test      *Test
}

// Call finds what an operation asks for. The error is an entity that does not
// exist, or something that the engine lacks.
func (t Table[R]) Call(test *Test, op engine.Operation) (Call[R], *result.Error) {
	c := Call[R]{Arguments: NewArguments(op.Arguments), Operation: op, Test: test}
	var err error
	if c.Kind, c.Entity, err = test.Entities.Get(op.Object); err != nil {
		return c, Argument("%v", err)
	}
	var served bool
	if c.Row, served = t[Key{c.Kind, op.Name}]; !served {
		return c, test.Unsupported(fmt.Sprintf("operation %s.%s", c.Kind, op.Name))
	}
	switch other, err := c.others(c.Row.Accepts); {
	case err != nil:
		return c, Argument("arguments: %v", err)
	case other != "":
		return c, test.Unsupported(fmt.Sprintf("argument %s of %s.%s", other, c.Kind, op.Name))
	}
	return c, nil
}

// Save keeps an entity that the operation has made, under the name that it asks for.
// One without a name lives until the test ends.
func (c *Call[R]) Save(ctx context.Context, kind operations.Kind, entity any) *result.Error {
	if err := c.Test.Entities.Put(c.Operation.SaveAs, kind, entity); err != nil {
		c.Test.CloseEntity(ctx, entity)
		return Argument("%v", err)
	}
	return nil
}

// Argument is an error of what an engine is asked for.
func Argument(format string, args ...any) *result.Error {
	return &result.Error{Message: fmt.Sprintf(format, args...), Client: true, Kind: "argument"}
}
