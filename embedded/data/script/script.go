// Package script runs the small part of JavaScript in which map and reduce
// functions are written: one function of parameters, local variables,
// conditions, arithmetic, comparison, logic, object and array literals, arrow
// functions, and the array methods reduce, map, filter, forEach, push, length
// and join. There are no loops but those of arrays, no assignments to anything
// that is not a variable or a property, no prototypes, no exceptions. What it
// does not know it refuses, rather than guess.
//
// Values are those of package value; numbers are float64, as in JavaScript.
package script

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data/value"
)

// ErrUnsupported is wrapped by errors about what the package does not know.
var ErrUnsupported = errors.New("unsupported JavaScript")

// ErrBudget ends a function that takes too many steps, or makes too much.
var ErrBudget = errors.New("the script takes too long")

// Function is a parsed function. It may be called concurrently.
type Function struct {
	params []string
	body   []statement
}

// undefined is the value of what is not there.
type undefined struct{}

// array and object can be changed by scripts, unlike values of package value.
type (
	array  struct{ items []any }
	object struct {
		keys   []string
		fields map[string]any
	}
	// closure is an arrow function with what it can see.
	closure struct {
		params []string
		body   []statement
		outer  *frame
	}
	// Builtin is a function of the host.
	Builtin func(args []any) (any, error)
)

func newObject() *object { return &object{fields: map[string]any{}} }

func (o *object) set(k string, v any) {
	if _, ok := o.fields[k]; !ok {
		o.keys = append(o.keys, k)
	}
	o.fields[k] = v
}

// frame is the variables of a call.
type frame struct {
	vars  map[string]any
	outer *frame
	this  any
	spent *budget
}

// budget is what a call has taken.
type budget struct{ steps, depth, bytes, values int }

func (b *budget) step() error {
	b.steps++
	if b.steps > maxSteps || b.depth > maxDepth {
		return ErrBudget
	}
	return nil
}

// text is the text of values, which must not become too long.
func (b *budget) text(separator string, values ...any) (string, error) {
	var out strings.Builder
	for i, v := range values {
		if i > 0 {
			out.WriteString(separator)
		}
		appendText(&out, v, 0)
	}
	if b.bytes += out.Len(); b.bytes > maxBytes {
		return "", ErrBudget
	}
	return out.String(), nil
}

func (f *frame) find(name string) (*frame, bool) {
	for ; f != nil; f = f.outer {
		if _, ok := f.vars[name]; ok {
			return f, true
		}
	}
	return nil, false
}

// maxSteps, maxDepth and maxBytes bound what a script may take, and maxValues what it may
// give.
const (
	maxSteps  = 1 << 20
	maxDepth  = 200
	maxBytes  = 16 << 20
	maxValues = 1 << 20
)

// Call calls the function with a value of this, globals (values, or Builtin)
// and arguments. The result is a value of package value; nothing returned is
// nil.
func (f *Function) Call(this any, globals map[string]any, args ...any) (any, error) {
	global := &frame{vars: map[string]any{}, spent: &budget{}}
	for k, v := range globals {
		if b, ok := v.(Builtin); ok {
			global.vars[k] = func(args []any) (any, error) {
				out := make([]any, len(args))
				for i := range args {
					var err error
					if out[i], err = global.spent.export(args[i]); err != nil {
						return nil, err
					}
				}
				r, err := b(out)
				return load(r), err
			}
			continue
		}
		global.vars[k] = load(v)
	}
	loaded := make([]any, len(args))
	for i := range args {
		loaded[i] = load(args[i])
	}
	c := &closure{f.params, f.body, global}
	v, err := c.call(load(this), loaded)
	if err != nil {
		return nil, err
	}
	return global.spent.export(v)
}

// export makes a BSON value of a script's, unless that has too many parts.
func (b *budget) export(v any) (any, error) {
	out := export(v, 0, b)
	if b.values > maxValues {
		return nil, ErrBudget
	}
	return out, nil
}

func (c *closure) call(this any, args []any) (any, error) {
	f := &frame{vars: map[string]any{}, outer: c.outer, this: this, spent: c.outer.spent}
	f.spent.depth++
	defer func() { f.spent.depth-- }()
	if err := f.spent.step(); err != nil {
		return nil, err
	}
	for i, p := range c.params {
		if i < len(args) {
			f.vars[p] = args[i]
		} else {
			f.vars[p] = undefined{}
		}
	}
	v, _, err := run(c.body, f)
	return v, err
}

// load makes a script's value of a BSON value.
func load(v any) any {
	switch x := v.(type) {
	case int32:
		return float64(x)
	case int64:
		return float64(x)
	case bson.D:
		o := newObject()
		for _, e := range x {
			o.set(e.Key, load(e.Value))
		}
		return o
	case bson.A:
		a := &array{}
		for _, item := range x {
			a.items = append(a.items, load(item))
		}
		return a
	case bson.Undefined, value.Missing:
		return undefined{}
	}
	return v
}

// export makes a BSON value of a script's.
func export(v any, depth int, spent *budget) any {
	if spent.values++; depth > maxDepth || spent.values > maxValues {
		return nil
	}
	switch x := v.(type) {
	case *object:
		d := bson.D{}
		for _, k := range x.keys {
			if _, ok := x.fields[k].(undefined); !ok {
				d = append(d, bson.E{Key: k, Value: export(x.fields[k], depth+1, spent)})
			}
		}
		return d
	case *array:
		a := bson.A{}
		for _, item := range x.items {
			a = append(a, export(item, depth+1, spent))
		}
		return a
	case undefined:
		return nil
	case *closure, func([]any) (any, error):
		return nil
	}
	return v
}

// statement is one statement; expr alone is an expression.
type statement struct {
	kind      string // return, declare, if, expr
	name      string
	expr      node
	then, alt []statement
}

type node interface {
	eval(f *frame) (any, error)
}

func run(list []statement, f *frame) (any, bool, error) {
	for _, s := range list {
		if err := f.spent.step(); err != nil {
			return nil, false, err
		}
		var v any = undefined{}
		if s.expr != nil {
			var err error
			if v, err = s.expr.eval(f); err != nil {
				return nil, false, err
			}
		}
		switch s.kind {
		case "return":
			return v, true, nil
		case "declare":
			f.vars[s.name] = v
		case "if":
			branch := s.alt
			if truthy(v) {
				branch = s.then
			}
			if r, done, err := run(branch, f); done || err != nil {
				return r, done, err
			}
		}
	}
	return undefined{}, false, nil
}

func truthy(v any) bool {
	switch x := v.(type) {
	case bool:
		return x
	case float64:
		return x != 0 && !math.IsNaN(x)
	case string:
		return x != ""
	case nil, undefined:
		return false
	}
	return true
}

func number(v any) float64 {
	switch x := v.(type) {
	case float64:
		return x
	case bool:
		if x {
			return 1
		}
		return 0
	case nil:
		return 0
	case string:
		s := strings.TrimSpace(x)
		if s == "" {
			return 0
		}
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return math.NaN()
		}
		return n
	case bson.DateTime:
		return float64(x)
	}
	return math.NaN()
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	appendText(&b, v, 0)
	return b.String()
}

// appendText stops where the text is too long. An array may hold itself.
func appendText(b *strings.Builder, v any, depth int) {
	if b.Len() > maxBytes || depth > maxDepth {
		return
	}
	if a, ok := v.(*array); ok {
		for i, item := range a.items {
			if i > 0 {
				b.WriteByte(',')
			}
			if appendText(b, item, depth+1); b.Len() > maxBytes {
				return
			}
		}
		return
	}
	b.WriteString(scalarText(v))
}

func scalarText(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case float64:
		switch {
		case math.IsNaN(x):
			return "NaN"
		case math.IsInf(x, 0):
			return map[bool]string{true: "Infinity", false: "-Infinity"}[x > 0]
		}
		return strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	case nil:
		return "null"
	case undefined:
		return "undefined"
	case *object:
		return "[object Object]"
	case bson.ObjectID:
		return x.Hex()
	}
	return fmt.Sprint(v)
}

func strictEqual(a, b any) bool {
	switch a.(type) {
	case *object, *array, *closure:
		return a == b
	case func([]any) (any, error):
		return false
	}
	switch b.(type) {
	case func([]any) (any, error):
		return false
	}
	if x, ok := a.(float64); ok {
		y, ok := b.(float64)
		return ok && x == y
	}
	if _, ok := a.(undefined); ok {
		_, ok := b.(undefined)
		return ok
	}
	if _, ok := b.(undefined); ok {
		return false
	}
	return value.TypeOf(a) == value.TypeOf(b) && value.Equal(a, b)
}
