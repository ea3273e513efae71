// Package expression evaluates aggregation expressions, as in $expr, $project, $addFields, $group and pipeline updates.
package expression

import (
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
	built int   // bytes of the values built
	err   error // the first error; values computed after it are meaningless
	// Collation is how strings are compared, and Over is Options.Over. An expression sets them.
	Collation value.Collation
	Over      func() error
}

// Options are the context in which an expression is compiled.
type Options struct {
	Let       bson.D // variables that it may use beside the system's
	Collation value.Collation
	Wire      int // wire version of the server; 0: the latest
	// Stopped returns an error if the command is over; nil if it has no end of its own.
	Stopped func() error
}

// Over returns an error if the time limit of the command has expired, or its client is gone. What runs for each document
// or each element of an array looks at it.
func (o Options) Over() error {
	if o.Stopped == nil {
		return nil
	}
	return o.Stopped()
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

// count adds the size of a new value, without its elements, to e.built. It fails above value.MaxBuilt.
func (e *Env) count(v any) any {
	switch x := v.(type) {
	case bson.A:
		e.built += 16 * len(x)
	case bson.D:
		e.built += 32 * len(x)
	case string:
		e.built += len(x)
	}
	if e.built > value.MaxBuilt {
		return e.fail(fault.ExceededMemoryLimit, "an expression builds more than %d bytes for a document", value.MaxBuilt)
	}
	return v
}

// Parse parses an expression. Errors are *fault.Error with the server's codes.
func Parse(v any, o Options) (Expr, error) {
	p := &parser{wire: o.Wire}
	for _, e := range o.Let {
		p.vars = append(p.vars, e.Key)
	}
	x := p.parse(v)
	return func(e *Env) any {
		e.Collation, e.Over = o.Collation, o.Over
		return x(e)
	}, p.Err
}

type parser struct {
	depth int
	wire  int
	vars  []string
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
			out = value.AddIf(out, !value.IsMissing(x), d[i].Key, x)
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

// systemVariables are the variables that every expression may use. REMOVE has no value.
var systemVariables = []string{"ROOT", "CURRENT", "REMOVE", "NOW", "CLUSTER_TIME"}

func (p *parser) variable(path string) Expr {
	parts := strings.Split(path, ".")
	name, rest := parts[0], parts[1:]
	if name == "" {
		return p.fail(16869, "empty variable names are not allowed")
	}
	if !slices.Contains(systemVariables, name) && !slices.Contains(p.vars, name) {
		return p.fail(17276, "Use of undefined variable: %s", name)
	}
	var now any // $$NOW in an environment without variables, such as a validator
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
			v = value.Missing{}
		}
		return walk(v, rest)
	}
}

// done reports whether an evaluation ends early: it failed, or the command is over. What runs for each element of an
// array looks at it.
func (e *Env) done() bool {
	if e.err == nil {
		e.err = e.Over()
	}
	return e.err != nil
}

// with evaluates an expression with further variables, unless the command is over.
func (e *Env) with(x Expr, vars bson.D) any {
	if e.done() {
		return nil
	}
	outer := e.vars
	e.vars = slices.Concat(vars, outer)
	defer func() { e.vars = outer }()
	return x(e)
}

// scope parses an expression that may use further variables.
func (p *parser) scope(v any, vars ...string) Expr {
	outer := p.vars
	p.vars = slices.Concat(vars, outer)
	defer func() { p.vars = outer }()
	return p.parse(v)
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
				if r := walk(item, parts[i:]); !value.IsMissing(r) {
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
