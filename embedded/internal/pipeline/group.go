package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// accumulators reduce the values of a group, which contain no errors. The others are operators of expressions, too.
var accumulators = map[string]expression.Accumulator{
	"$first":    func(_ *expression.Env, values []any) any { return value.OrNull(values[0]) },
	"$last":     func(_ *expression.Env, values []any) any { return value.OrNull(values[len(values)-1]) },
	"$push":     func(_ *expression.Env, values []any) any { return present(values) },
	"$addToSet": func(e *expression.Env, values []any) any { return distinct(present(values), e.Collation) },
	"$count":    func(_ *expression.Env, values []any) any { return value.Int(int64(len(values))) },
}

func accumulator(name string) expression.Accumulator {
	if do := accumulators[name]; do != nil {
		return do
	}
	return expression.Accumulators[name]
}

func present(values []any) bson.A {
	return slices.DeleteFunc(append(bson.A{}, values...), value.IsMissing)
}

func distinct(values bson.A, c value.Collation) bson.A {
	seen := map[string]bool{}
	return slices.DeleteFunc(values, func(v any) bool {
		k := c.Key(v)
		found := seen[k]
		seen[k] = true
		return found
	})
}

// accumulation is a field of a group.
type accumulation struct {
	name string
	do   expression.Accumulator
	x    expression.Expr
}

// accumulation parses a field of $group other than _id.
func (p *parser) accumulation(e bson.E) (out accumulation) {
	d, ok := e.Value.(bson.D)
	switch {
	case strings.Contains(e.Key, "."):
		p.Fail(40235, "The field name '%s' cannot contain '.'", e.Key)
	case strings.HasPrefix(e.Key, "$"):
		p.Fail(40236, "The field name '%s' cannot be an operator name", e.Key)
	case !ok:
		p.Fail(40234, "The field '%s' must be an accumulator object", e.Key)
	case len(d) != 1:
		p.Fail(40238, "The field '%s' must specify one accumulator", e.Key)
	default:
		name, arg := d[0].Key, d[0].Value
		do := accumulator(name)
		p.Note(fault.Refusal("accumulator", name, p.opts.Wire))
		p.Refuse(!fault.Exists("accumulator", name, p.opts.Wire), 15952, "unknown group operator '%s'", name)
		if list, isArray := arg.(bson.A); isArray {
			p.Refuse(len(list) != 1, 40237, "The %s accumulator is a unary operator", name)
			if len(list) == 1 {
				arg = list[0]
			}
		}
		if options, isDocument := arg.(bson.D); name == "$count" {
			p.Refuse(!isDocument || len(options) > 0, fault.TypeMismatch, "$count takes no arguments, i.e. $count:{}")
		}
		out = accumulation{e.Key, do, p.expression(arg)}
	}
	return out
}

func group(p *parser, arg any) stage {
	d := p.document(arg, 15947, "a group's fields must be specified in an object")
	g := grouping{opts: p.opts}
	for _, e := range d {
		if e.Key == "_id" {
			p.Refuse(g.id != nil, 15948, "a group's _id may only be specified once")
			g.id = p.expression(e.Value)
		} else {
			g.fields = append(g.fields, p.accumulation(e))
		}
	}
	p.Refuse(g.id == nil, 15955, "a group specification must include an _id")
	return g.run
}

type grouping struct {
	opts   query.Options
	id     expression.Expr
	fields []accumulation
}

func (g grouping) run(_ Host, docs []bson.D) ([]bson.D, error) {
	type group struct {
		id     any
		values [][]any // of each field
	}
	var groups []*group
	byKey := map[string]*group{}
	made := volume{opts: g.opts}
	for _, d := range docs {
		env := expression.NewEnv(d, g.opts.Let)
		id, err := g.id.Eval(env)
		if err != nil {
			return nil, err
		}
		id = value.OrNull(id)
		k := g.opts.Collation.Key(id)
		if byKey[k] == nil {
			byKey[k] = &group{id, make([][]any, len(g.fields))}
			groups = append(groups, byKey[k])
		}
		for i, f := range g.fields {
			v, err := f.x.Eval(env)
			if err == nil {
				err = made.add(value.Doc("", v))
			}
			if err != nil {
				return nil, err
			}
			byKey[k].values[i] = append(byKey[k].values[i], v)
		}
	}
	out := make([]bson.D, len(groups))
	for n, in := range groups {
		doc := value.Doc("_id", in.id)
		for i, f := range g.fields {
			env := expression.NewEnv(nil, nil)
			env.Collation = g.opts.Collation
			v, err := expression.Expr(func(e *expression.Env) any { return f.do(e, in.values[i]) }).Eval(env)
			if err != nil {
				return nil, err
			}
			doc = value.Append(doc, f.name, v)
		}
		if err := made.add(doc); err != nil {
			return nil, err
		}
		out[n] = doc
	}
	return out, nil
}
