package pipeline

import (
	"cmp"
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
			env.Collation, env.Over = g.opts.Collation, g.opts.Over
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

func sortByCount(p *parser, arg any) stage {
	path, isText := arg.(string)
	d, isDocument := arg.(bson.D)
	p.Refuse(!isText && !isDocument, 40149, "the sortByCount field must be specified as a string or as an object")
	p.Refuse(isText && !strings.HasPrefix(path, "$"), 40148,
		"the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
	p.Refuse(isDocument && (len(d) == 0 || !strings.HasPrefix(d[0].Key, "$")), 40147,
		"the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
	return p.sorted(group(p, value.Doc("_id", arg, "count", one)), value.Doc("count", int32(-1)))
}

// sorted returns a stage with its results in order.
func (p *parser) sorted(s stage, by bson.D) stage {
	order, err := query.CompileOrder(by, p.opts.Collation)
	p.Note(err)
	return func(h Host, docs []bson.D) ([]bson.D, error) {
		out, err := s(h, docs)
		return out, cmp.Or(err, query.Sort(out, order, func(d bson.D) bson.D { return d }))
	}
}

// one counts the documents of a group.
var one = value.Doc("$sum", int32(1))

func bucket(p *parser, arg any) stage {
	d := p.document(arg, 40201, "Argument to $bucket stage must be an object, but found type: "+value.TypeName(arg)+".")
	by, hasBy := value.Field(d, "groupBy")
	list, isArray := value.Get(d, "boundaries").(bson.A)
	otherwise, hasDefault := value.Field(d, "default")
	output := value.Doc("count", one)
	for _, e := range d {
		switch e.Key {
		case "groupBy":
			path, isText := e.Value.(string)
			p.Refuse(!value.Is[bson.D](e.Value) && (!isText || !strings.HasPrefix(path, "$")), 40202,
				"The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: groupBy: %s.",
				value.Text(e.Value))
		case "boundaries":
			p.Refuse(!isArray, 40200, "The $bucket 'boundaries' field must be an array, but found type: %s.",
				value.TypeName(e.Value))
		case "default":
		case "output":
			var ok bool
			output, ok = e.Value.(bson.D)
			p.Refuse(!ok, 40196, "The $bucket 'output' field must be an object, but found type: %s.", value.TypeName(e.Value))
		default:
			p.Fail(40197, "Unrecognized option to $bucket: %s.", e.Key)
		}
	}
	p.Refuse(!hasBy || list == nil, 40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.")
	p.Refuse(len(list) < 2, 40192, "The $bucket 'boundaries' field must have at least 2 values, but found %d value(s).",
		len(list))
	// As on a server, the buckets are groups.
	literal := func(v any) bson.D { return value.Doc("$literal", v) }
	var branches bson.A
	for i := range max(len(list)-1, 0) {
		low, high := list[i], list[i+1]
		p.Refuse(value.Rank(low) != value.Rank(high), 40193,
			"All values in the 'boundaries' option to $bucket must have the same type. Found conflicting types %s and %s.",
			value.TypeName(low), value.TypeName(high))
		p.Refuse(p.opts.Collation.Compare(low, high) >= 0, 40194,
			"The 'boundaries' option to $bucket must be sorted, but elements %d and %d are not in ascending order (%s is not less than %s).",
			i, i+1, value.Text(low), value.Text(high))
		in := bson.A{value.Doc("$gte", bson.A{by, literal(low)}), value.Doc("$lt", bson.A{by, literal(high)})}
		branches = append(branches, value.Doc("case", value.Doc("$and", in), "then", literal(low)))
	}
	id := value.AddIf(value.Doc("branches", branches), hasDefault, "default", literal(otherwise))
	fields := append(value.Doc("_id", value.Doc("$switch", id)), output...)
	return p.sorted(group(p, fields), value.Doc("_id", int32(1)))
}
