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

// parsers parse the argument of a stage.
var parsers = map[string]func(p *parser, arg any) stage{
	"$match": match, "$project": project, "$addFields": addFields, "$set": addFields,
	"$group": group, "$sort": sort, "$limit": limit, "$skip": skip, "$count": count, "$unwind": unwind,
	"$replaceRoot": replaceRoot, "$replaceWith": replaceWith, "$lookup": lookup,
	"$out": out, "$merge": merge,
}

func match(p *parser, arg any) stage {
	d := p.document(arg, 15959, "the match filter must be an expression in an object")
	f, err := query.Compile(d, p.opts)
	p.Note(err)
	return func(_ Host, docs []bson.D) ([]bson.D, error) { return f.Select(docs) }
}

func project(p *parser, arg any) stage {
	d := p.document(arg, 15969, "$project specification must be an object")
	p.Refuse(len(d) == 0, 51272, "Invalid $project :: caused by :: projection specification must have at least one field")
	projection, err := query.CompileProjection(d, p.opts)
	p.Note(err)
	return each(projection.Apply)
}

func addFields(p *parser, arg any) stage {
	d := p.document(arg, 40272, "$addFields specification stage must be an object, got "+value.TypeName(arg))
	fields, err := query.CompileFields(d, p.opts)
	p.Note(err)
	return each(fields.Apply)
}

// accumulator is a row of the table of accumulators: add combines the result so far with a value.
type accumulator struct {
	start any
	add   func(result, v any) (any, error)
}

var accumulators = map[string]accumulator{
	"$sum": {int32(0), func(sum, v any) (any, error) {
		if !value.IsNumber(v) {
			return sum, nil
		}
		if sum, _ = value.Add(sum, v); sum == nil {
			return nil, fault.Errorf(fault.NotImplemented, "$sum of Decimal128 is not implemented by the embedded deployment")
		}
		return sum, nil
	}},
	"$push": {bson.A(nil), func(list, v any) (any, error) {
		if (v != value.Missing{}) {
			list = append(list.(bson.A), v)
		}
		return list, nil
	}},
}

// accumulation is a field of a group.
type accumulation struct {
	name string
	accumulator
	x expression.Expr
}

// accumulation parses a field of $group other than _id.
func (p *parser) accumulation(e bson.E) (out accumulation) {
	d, ok := e.Value.(bson.D)
	switch {
	case strings.Contains(e.Key, "."):
		p.Fail(40235, "The field name '%s' cannot contain '.'", e.Key)
	case !ok:
		p.Fail(40234, "The field '%s' must be an accumulator object", e.Key)
	case len(d) != 1:
		p.Fail(40238, "The field '%s' must specify one accumulator", e.Key)
	default:
		a, known := accumulators[d[0].Key]
		p.Refuse(!known, 15952, "unknown group operator '%s'", d[0].Key)
		out = accumulation{e.Key, a, p.expression(d[0].Value)}
	}
	return out
}

func (p *parser) expression(v any) expression.Expr {
	x, err := expression.Parse(v, p.opts.Let)
	p.Note(err)
	return x
}

func group(p *parser, arg any) stage {
	d := p.document(arg, 15947, "a group's fields must be specified in an object")
	g := grouping{opts: p.opts}
	for _, e := range d {
		if e.Key == "_id" {
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
	var groups []bson.D // fields: first _id, then g.fields in order
	positions := map[string]int{}
	for _, d := range docs {
		env := expression.NewEnv(d, g.opts.Let)
		id, err := g.id.Eval(env)
		if err != nil {
			return nil, err
		}
		id = value.OrNull(id)
		k := value.Key(g.opts.Collation.Fold(id))
		position, ok := positions[k]
		if !ok {
			position = len(groups)
			positions[k] = position
			doc := bson.D{{Key: "_id", Value: id}}
			for _, f := range g.fields {
				doc = append(doc, bson.E{Key: f.name, Value: f.start})
			}
			groups = append(groups, doc)
		}
		for i, f := range g.fields {
			v, err := f.x.Eval(env)
			if err != nil {
				return nil, err
			}
			result := &groups[position][i+1].Value
			if *result, err = f.add(*result, v); err != nil {
				return nil, err
			}
		}
	}
	var made volume
	for _, doc := range groups {
		if err := made.add(doc); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

func sort(p *parser, arg any) stage {
	d := p.document(arg, 15973, "the $sort key specification must be an object")
	p.Refuse(len(d) == 0, 15976, "$sort stage must have at least one sort key")
	order, err := query.CompileOrder(d, p.opts.Collation)
	p.Note(err)
	return func(_ Host, docs []bson.D) ([]bson.D, error) {
		docs = slices.Clone(docs)
		query.Sort(docs, order, func(d bson.D) bson.D { return d })
		return docs, nil
	}
}

func limit(p *parser, arg any) stage {
	n, ok := value.Int64(arg)
	p.Refuse(!ok, 5107201, "invalid argument to $limit stage: Expected a number in: $limit: %s", value.Text(arg))
	p.Refuse(n < 0, 5107201,
		"invalid argument to $limit stage: Expected a non-negative number in: $limit: %s", value.Text(arg))
	p.Refuse(n == 0, 15958, "the limit must be positive")
	return func(_ Host, docs []bson.D) ([]bson.D, error) { return docs[:min(n, int64(len(docs)))], nil }
}

func skip(p *parser, arg any) stage {
	n, ok := value.Int64(arg)
	p.Refuse(!ok || n < 0, 5107200, "invalid argument to $skip stage: Expected a non-negative number in: $skip: %s", value.Text(arg))
	return func(_ Host, docs []bson.D) ([]bson.D, error) { return docs[min(n, int64(len(docs))):], nil }
}

func count(p *parser, arg any) stage {
	name, ok := arg.(string)
	p.Refuse(!ok || name == "" || strings.HasPrefix(name, "$") || strings.Contains(name, "."), 40156, "the count field must be a non-empty string")
	return func(_ Host, docs []bson.D) ([]bson.D, error) {
		if len(docs) == 0 {
			return nil, nil
		}
		return []bson.D{{{Key: name, Value: value.Int(int64(len(docs)))}}}, nil
	}
}

func unwind(p *parser, arg any) stage {
	path, ok := arg.(string)
	// The embedded deployment supports no options.
	p.Refuse(!ok, 15981,
		"expected either a string or an object as specification for $unwind stage, got %s", value.TypeName(arg))
	p.Refuse(!strings.HasPrefix(path, "$") || len(path) < 2, 28818,
		"path option to $unwind stage should be prefixed with a '$': %s", path)
	parts := strings.Split(strings.TrimPrefix(path, "$"), ".")
	return func(_ Host, docs []bson.D) ([]bson.D, error) {
		var out []bson.D
		var made volume
		for _, d := range docs {
			items, ok := at(d, parts).(bson.A)
			if !ok {
				items = bson.A{at(d, parts)}
			}
			for _, item := range items {
				if !ok && (item == nil || item == any(value.Missing{})) {
					continue
				}
				c := value.Put(value.CloneDoc(d), parts, item).(bson.D)
				if err := made.add(c); err != nil {
					return nil, err
				}
				out = append(out, c)
			}
		}
		return out, nil
	}
}

// at returns the value at a path through documents, or Missing.
func at(v any, parts []string) any {
	for _, part := range parts {
		d, _ := v.(bson.D)
		v = value.Lookup(d, part)
	}
	return v
}

func replaceRoot(p *parser, arg any) stage {
	d, _ := arg.(bson.D)
	root, ok := value.Field(d, "newRoot")
	p.Refuse(!ok || len(d) != 1, 40231, "no newRoot specified for the $replaceRoot stage")
	return replaceWith(p, root)
}

func replaceWith(p *parser, arg any) stage {
	x, o := p.expression(arg), p.opts
	return each(func(d bson.D) (bson.D, error) {
		v, err := x.Eval(expression.NewEnv(d, o.Let))
		if err != nil {
			return nil, err
		}
		r, ok := v.(bson.D)
		if !ok {
			return nil, fault.Errorf(40228, "'newRoot' expression must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'. Input document: %s", strings.ToUpper(value.TypeName(v)), value.TypeName(v), value.Text(d))
		}
		return r, nil
	})
}

// lookup is $lookup with localField and foreignField.
func lookup(p *parser, arg any) stage {
	d := p.document(arg, fault.FailedToParse, "the $lookup specification must be an object")
	fields := map[string]string{}
	for _, e := range d {
		s, ok := e.Value.(string)
		fields[e.Key] = s
		switch e.Key {
		case "from", "localField", "foreignField", "as":
			p.Refuse(!ok, fault.FailedToParse, "$lookup argument '%s: %s' must be a string, is type %s", e.Key, value.Text(e.Value), value.TypeName(e.Value))
		default:
			p.Fail(fault.FailedToParse, "unknown argument to $lookup: %s", e.Key)
		}
	}
	from, local, foreign, as := fields["from"], fields["localField"], fields["foreignField"], fields["as"]
	p.Refuse(as == "" || local == "" || foreign == "", fault.FailedToParse, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	opts := p.opts
	return func(h Host, docs []bson.D) ([]bson.D, error) {
		others, err := h.Read(from)
		if err != nil {
			return nil, err
		}
		return each(func(d bson.D) (bson.D, error) {
			anyOf := bson.A{bson.D{{Key: foreign, Value: bson.D{{Key: "$in", Value: bson.A{}}}}}} // $or requires a condition
			query.Leaves(d, strings.Split(local, "."), func(v any) {
				// In a list of $in, a regular expression or {$gt: 1} would be a condition.
				anyOf = append(anyOf, bson.D{{Key: foreign, Value: bson.D{{Key: "$eq", Value: value.OrNull(v)}}}})
			})
			f, err := query.Compile(bson.D{{Key: "$or", Value: anyOf}}, opts)
			if err != nil {
				return nil, err
			}
			matched, err := f.Select(others)
			if err != nil {
				return nil, err
			}
			return value.Put(value.CloneDoc(d), strings.Split(as, "."), array(matched)).(bson.D), nil
		})(h, docs)
	}
}

func array(docs []bson.D) bson.A {
	a := make(bson.A, len(docs))
	for i := range docs {
		a[i] = docs[i]
	}
	return a
}

func out(p *parser, arg any) stage {
	name, ok := arg.(string)
	p.Refuse(!ok || name == "", 16990, "$out only supports a string or object argument, but found %s", value.TypeName(arg))
	return func(h Host, docs []bson.D) ([]bson.D, error) { return nil, h.Out(name, docs) }
}

// merge is $merge on _id with whenMatched "merge" or "fail".
func merge(p *parser, arg any) stage {
	into, fail := arg, false
	if d, ok := arg.(bson.D); ok {
		into = value.Get(d, "into")
		for _, e := range d {
			switch {
			case e.Key == "into", e.Key == "on" && e.Value == "_id":
			case e.Key == "whenMatched" && (e.Value == "fail" || e.Value == "merge"):
				fail = e.Value == "fail"
			default:
				p.Fail(fault.IDLUnknownField, "BSON field '$merge.%s' is an unknown field.", e.Key)
			}
		}
	}
	name, ok := into.(string)
	p.Refuse(!ok || name == "", 51178, "$merge 'into' field must specify a 'coll' that is not empty, null or undefined")
	return func(h Host, docs []bson.D) ([]bson.D, error) { return nil, h.Merge(name, fail, docs) }
}
