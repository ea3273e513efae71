// Package expression evaluates aggregation expressions, as in $expr, $project, $addFields, $group and pipeline updates.
package expression

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Expr is a parsed expression. It may be evaluated concurrently with a separate Env for each goroutine.
type Expr func(*Env) any

// Eval returns the value of an expression, which may be value.Missing.
func (x Expr) Eval(e *Env) (any, error) {
	v := x(e)
	return v, e.err
}

// Env is the environment of an evaluation.
type Env struct {
	root  any // the document
	vars  bson.D
	built int   // bytes of the arrays and documents built
	err   error // the first error; values computed after it are meaningless
}

// NewEnv returns an environment for a document with variables (let).
func NewEnv(root any, vars bson.D) *Env { return &Env{root: root, vars: vars} }

// fail records an error. Its result is the value of the failed expression.
func (e *Env) fail(code int32, format string, args ...any) any {
	if e.err == nil {
		e.err = fault.Errorf(code, format, args...)
	}
	return nil
}

// count adds the size of a new array or document, without its elements, to e.built. It fails above value.MaxBuilt.
func (e *Env) count(v any) any {
	switch x := v.(type) {
	case bson.A:
		e.built += 16 * len(x)
	case bson.D:
		e.built += 32 * len(x)
	}
	if e.built > value.MaxBuilt {
		return e.fail(fault.ExceededMemoryLimit, "an expression builds more than %d bytes for a document", value.MaxBuilt)
	}
	return v
}

// Parse parses an expression. Errors are *fault.Error with the server's codes.
func Parse(v any) (Expr, error) {
	p := &parser{}
	x := p.parse(v)
	return x, p.Err
}

type parser struct {
	depth int
	fault.First
}

// fail records an error. Its result takes the place of the expression.
func (p *parser) fail(code int32, format string, args ...any) Expr {
	p.Fail(code, format, args...)
	return nil
}

func (p *parser) parse(v any) Expr {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > value.MaxDepth+1 {
		return p.fail(fault.Overflow, "expression is nested too deeply")
	}
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "$$") {
			return p.variable(v[2:])
		}
		if v == "$" {
			return p.fail(16872, "'$' by itself is not a valid FieldPath")
		}
		if strings.HasPrefix(v, "$") {
			return p.field(v[1:])
		}
	case bson.A:
		return p.array(v)
	case bson.D:
		if len(v) == 0 || !strings.HasPrefix(v[0].Key, "$") {
			return p.object(v)
		}
		if len(v) > 1 {
			return p.fail(15983, "An object representing an expression must have exactly one field: %s", value.Text(v))
		}
		return p.operator(v[0].Key, v[0].Value)
	}
	return constant(v)
}

func constant(v any) Expr { return func(*Env) any { return v } }

func (p *parser) all(list bson.A) []Expr {
	out := make([]Expr, len(list))
	for i := range list {
		out[i] = p.parse(list[i])
	}
	return out
}

func (p *parser) array(list bson.A) Expr {
	items := p.all(list)
	return func(e *Env) any {
		out := make(bson.A, len(items))
		for i, item := range items {
			out[i] = value.OrNull(item(e))
			if e.err != nil {
				break
			}
		}
		return e.count(out)
	}
}

// object parses a document whose fields are expressions.
func (p *parser) object(d bson.D) Expr {
	values := make([]Expr, len(d))
	for i := range d {
		if strings.HasPrefix(d[i].Key, "$") {
			return p.fail(15983, "An object representing an expression must have exactly one field: %s", value.Text(d))
		}
		if strings.Contains(d[i].Key, ".") {
			return p.fail(16405, "FieldPath field names may not contain '.'. Consider using $getField or $setField.")
		}
		values[i] = p.parse(d[i].Value)
	}
	return func(e *Env) any {
		out := make(bson.D, 0, len(d))
		for i := range d {
			x := values[i](e)
			if e.err != nil {
				break
			}
			if (x != value.Missing{}) {
				out = append(out, bson.E{Key: d[i].Key, Value: x})
			}
		}
		return e.count(out)
	}
}

func (p *parser) field(path string) Expr {
	parts := strings.Split(path, ".")
	for _, name := range parts {
		if name == "" {
			return p.fail(15998, "FieldPath field names may not be empty strings.")
		}
		if strings.HasPrefix(name, "$") {
			return p.fail(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
		}
	}
	return func(e *Env) any { return walk(e.root, parts) }
}

func (p *parser) variable(path string) Expr {
	parts := strings.Split(path, ".")
	name, rest := parts[0], parts[1:]
	if name == "" {
		return p.fail(16869, "empty variable names are not allowed")
	}
	var now any // $$NOW in an environment without variables, such as that of a validator
	if name == "NOW" {
		now = bson.NewDateTimeFromTime(time.Now())
	}
	return func(e *Env) any {
		v, ok := value.Field(e.vars, name)
		switch {
		case name == "ROOT" || name == "CURRENT":
			v = e.root
		case ok:
		case now != nil:
			v = now
		default:
			return e.fail(17276, "Use of undefined variable: %s", name)
		}
		return walk(v, rest)
	}
}

// walk returns the value at a path. For an array along the path, it returns the array of the values in its documents.
func walk(v any, parts []string) any {
	for i, p := range parts {
		switch x := v.(type) {
		case bson.D:
			v = value.Lookup(x, p)
		case bson.A:
			out := bson.A{}
			for _, item := range x {
				if r := walk(item, parts[i:]); (r != any(value.Missing{})) {
					out = append(out, r)
				}
			}
			return out
		default:
			return value.Missing{}
		}
	}
	return v
}

// operator is a row of the table of operators. Its argument is an array of arguments or a single one.
type operator struct {
	min, max int // number of arguments; max -1: unlimited
	eval     func(e *Env, args []Expr) any
}

var operators = map[string]operator{
	"$eq":       {2, 2, func(e *Env, args []Expr) any { return value.Equal(args[0](e), args[1](e)) }},
	"$lte":      {2, 2, func(e *Env, args []Expr) any { return value.Compare(args[0](e), args[1](e)) <= 0 }},
	"$or":       {0, -1, or},
	"$cond":     {3, 3, cond},
	"$ifNull":   {2, -1, ifNull},
	"$add":      {0, -1, arithmetic("$add", 0, value.Add)},
	"$multiply": {0, -1, arithmetic("$multiply", 1, value.Multiply)},
	"$rand":     {0, 1, func(*Env, []Expr) any { return rand.Float64() }},
	"$size":     {1, 1, size},
	"$type":     {1, 1, func(e *Env, args []Expr) any { return value.TypeName(args[0](e)) }},
}

func (p *parser) operator(name string, arg any) Expr {
	switch name {
	case "$literal":
		return constant(arg)
	case "$setField":
		return p.setField(arg)
	}
	o, ok := operators[name]
	if !ok {
		return p.fail(fault.InvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	list, ok := arg.(bson.A)
	if !ok {
		list = bson.A{arg}
	}
	switch n := len(list); {
	case o.min == o.max && n != o.min:
		return p.fail(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, o.min, n)
	case n < o.min || o.max >= 0 && n > o.max:
		return p.fail(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name, o.min, o.max, n)
	}
	args := p.all(list)
	return func(e *Env) any { return o.eval(e, args) }
}

// or evaluates arguments up to the first true one.
func or(e *Env, args []Expr) any {
	for _, a := range args {
		if value.Truthy(a(e)) {
			return true
		}
	}
	return false
}

func cond(e *Env, args []Expr) any {
	if value.Truthy(args[0](e)) {
		return args[1](e)
	}
	return args[2](e)
}

func ifNull(e *Env, args []Expr) any {
	var v any
	for _, a := range args {
		if v = a(e); !value.IsNull(v) {
			break
		}
	}
	return v
}

// arithmetic is an operator on numbers. If one of them is null, so is the result. $add also accepts dates.
func arithmetic(name string, start int32, f func(a, b any) (any, bool)) func(*Env, []Expr) any {
	return func(e *Env, args []Expr) any {
		var result any = start
		isDate := false
		for _, a := range args {
			v := a(e)
			if e.err != nil || value.IsNull(v) {
				return nil
			}
			if date, ok := v.(bson.DateTime); ok && name == "$add" {
				v, isDate = int64(date), true
			}
			if !value.IsNumber(v) {
				return e.fail(fault.TypeMismatch, "%s only supports numeric types, not %s", name, value.TypeName(v))
			}
			if result, _ = f(result, v); result == nil {
				return e.fail(fault.NotImplemented, "%s of Decimal128 is not implemented by the embedded deployment", name)
			}
		}
		if isDate {
			whole, _ := value.Int64(result)
			return bson.DateTime(whole)
		}
		return result
	}
}

func size(e *Env, args []Expr) any {
	v := args[0](e)
	list, ok := v.(bson.A)
	if !ok {
		return e.fail(17124, "The argument to $size must be an array, but was of type: %s", value.TypeName(v))
	}
	return int32(len(list))
}

// setField is $setField, which has named arguments. All of them are required.
func (p *parser) setField(arg any) Expr {
	d, ok := arg.(bson.D)
	if !ok {
		return p.fail(fault.FailedToParse, "$setField only supports an object as its argument")
	}
	args := map[string]Expr{}
	for _, name := range []string{"field", "input", "value"} {
		arg, ok := value.Field(d, name)
		p.Refuse(!ok, fault.FailedToParse, "Missing '%s' parameter to $setField", name)
		args[name] = p.parse(arg)
	}
	for _, a := range d {
		p.Refuse(args[a.Key] == nil, fault.FailedToParse, "Unrecognized parameter to $setField: %s", a.Key)
	}
	return func(e *Env) any {
		field, input, v := args["field"](e), args["input"](e), args["value"](e)
		key, ok := field.(string)
		if !ok {
			return e.fail(4161107, "$setField requires 'field' to evaluate to type String, but got %s", value.TypeName(field))
		}
		if value.IsNull(input) {
			return nil
		}
		d, ok := input.(bson.D)
		if !ok {
			return e.fail(4161105, "$setField requires 'input' to evaluate to type Object")
		}
		if (v == value.Missing{}) {
			return value.Delete(d, key)
		}
		return e.count(value.Set(slices.Clone(d), key, v))
	}
}
