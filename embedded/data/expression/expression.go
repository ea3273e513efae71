// Package expression evaluates aggregation expressions: the language of
// $expr, $project, $addFields, $group and pipeline updates.
package expression

import (
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Expr is a parsed expression. It may be evaluated concurrently. A value that
// is not there is value.Missing.
type Expr func(*Env) (any, error)

// Env is what an expression is evaluated in.
type Env struct {
	Root  any // the document
	Now   time.Time
	vars  *scope
	built *int // bytes of what was made
}

type scope struct {
	name  string
	value any
	outer *scope
}

// NewEnv is an environment for a document, with variables (let).
func NewEnv(root any, now time.Time, vars bson.D) *Env {
	e := &Env{Root: root, Now: now, built: new(int)}
	for _, v := range vars {
		e = e.With(v.Key, v.Value)
	}
	return e
}

// With is the environment with one more variable.
func (e *Env) With(name string, v any) *Env {
	return &Env{Root: e.Root, Now: e.Now, vars: &scope{name, v, e.vars}, built: e.built}
}

// make counts what an expression has made: a string, or an array or a document of so many parts.
func (e *Env) make(v any) (any, error) {
	switch x := v.(type) {
	case string:
		*e.built += len(x)
	case bson.A:
		*e.built += 16 * len(x)
	case bson.D:
		*e.built += 32 * len(x)
	}
	if *e.built > value.MaxBuilt {
		return nil, tooMuch()
	}
	return v, nil
}

func tooMuch() error {
	return command.Errorf(command.CodeExceededMemoryLimit, "an expression makes more than %d bytes of a document", value.MaxBuilt)
}

// Parse parses an expression. Errors are *command.Error with the server's
// codes.
func Parse(v any) (Expr, error) { return parse(v, 0) }

func parse(v any, depth int) (Expr, error) {
	if depth > value.MaxDepth {
		return nil, command.Errorf(command.CodeOverflow, "expression is nested too deeply")
	}
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "$$") {
			return variable(v[2:])
		}
		if strings.HasPrefix(v, "$") {
			if len(v) == 1 {
				return nil, command.Errorf(16872, "'$' by itself is not a valid FieldPath")
			}
			return field(v[1:])
		}
	case bson.A:
		items, err := parseAll(v, depth)
		if err != nil {
			return nil, err
		}
		return func(e *Env) (any, error) {
			out := make(bson.A, len(items))
			for i, item := range items {
				x, err := item(e)
				if err != nil {
					return nil, err
				}
				if (x == value.Missing{}) {
					x = nil
				}
				out[i] = x
			}
			return e.make(out)
		}, nil
	case bson.D:
		if len(v) > 0 && strings.HasPrefix(v[0].Key, "$") {
			if len(v) > 1 {
				return nil, command.Errorf(15983, "An object representing an expression must have exactly one field: %s", value.Text(v))
			}
			return operator(v[0].Key, v[0].Value, depth)
		}
		return object(v, depth)
	}
	return Constant(v), nil
}

// Constant is an expression that is always v.
func Constant(v any) Expr { return func(*Env) (any, error) { return v, nil } }

func parseAll(a bson.A, depth int) ([]Expr, error) {
	out := make([]Expr, len(a))
	for i := range a {
		x, err := parse(a[i], depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// Object parses the fields of a document as expressions, without operators at
// the top.
func object(d bson.D, depth int) (Expr, error) {
	values := make([]Expr, len(d))
	for i := range d {
		if strings.HasPrefix(d[i].Key, "$") {
			return nil, command.Errorf(15983, "An object representing an expression must have exactly one field: %s", value.Text(d))
		}
		if strings.Contains(d[i].Key, ".") {
			return nil, command.Errorf(16405, "FieldPath field names may not contain '.'. Consider using $getField or $setField.")
		}
		x, err := parse(d[i].Value, depth+1)
		if err != nil {
			return nil, err
		}
		values[i] = x
	}
	return func(e *Env) (any, error) {
		out := make(bson.D, 0, len(d))
		for i := range d {
			x, err := values[i](e)
			if err != nil {
				return nil, err
			}
			if (x != value.Missing{}) {
				out = append(out, bson.E{Key: d[i].Key, Value: x})
			}
		}
		return e.make(out)
	}, nil
}

func field(path string) (Expr, error) {
	parts := strings.Split(path, ".")
	for _, p := range parts {
		if p == "" {
			return nil, command.Errorf(15998, "FieldPath field names may not be empty strings.")
		}
		if strings.HasPrefix(p, "$") {
			return nil, command.Errorf(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
		}
	}
	return func(e *Env) (any, error) { return walk(e.Root, parts), nil }, nil
}

func variable(path string) (Expr, error) {
	parts := strings.Split(path, ".")
	name := parts[0]
	if name == "" {
		return nil, command.Errorf(16869, "empty variable names are not allowed")
	}
	rest := parts[1:]
	return func(e *Env) (any, error) {
		var v any
		switch name {
		case "ROOT", "CURRENT":
			v = e.Root
		case "NOW":
			v = bson.NewDateTimeFromTime(e.Now)
		case "CLUSTER_TIME":
			v = bson.Timestamp{T: uint32(e.Now.Unix()), I: 1}
		case "REMOVE":
			return value.Missing{}, nil
		default:
			s := e.vars
			for s != nil && s.name != name {
				s = s.outer
			}
			if s == nil {
				return nil, command.Errorf(17276, "Use of undefined variable: %s", name)
			}
			v = s.value
		}
		return walk(v, rest), nil
	}, nil
}

// walk follows a path as expressions do: through arrays it collects what their
// documents have.
func walk(v any, parts []string) any {
	for i, p := range parts {
		switch x := v.(type) {
		case bson.D:
			f, ok := value.Field(x, p)
			if !ok {
				return value.Missing{}
			}
			v = f
		case bson.A:
			out := bson.A{}
			for _, item := range x {
				if _, ok := item.(bson.D); !ok {
					if _, ok := item.(bson.A); !ok {
						continue
					}
				}
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
