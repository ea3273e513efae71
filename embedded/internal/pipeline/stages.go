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

// parsers parse the argument of a stage. init fills it, because some stages contain pipelines.
var parsers map[string]func(p *parser, arg any) stage

func init() {
	parsers = map[string]func(p *parser, arg any) stage{
		"$match": match, "$project": project, "$addFields": addFields, "$set": addFields, "$unset": unset,
		"$group": group, "$bucket": bucket, "$sortByCount": sortByCount, "$sort": sort, "$limit": limit, "$skip": skip,
		"$count":  count,
		"$sample": sample, "$unwind": unwind, "$replaceRoot": replaceRoot, "$replaceWith": replaceWith, "$redact": redact,
		"$lookup": lookup, "$unionWith": unionWith, "$facet": facet, "$out": out, "$merge": merge,
	}
}

func match(p *parser, arg any) stage {
	d := p.document(arg, 15959, "the match filter must be an expression in an object")
	f, err := query.Compile(d, p.found(d, nil))
	p.Note(err)
	if f.Text() {
		p.Refuse(p.position > 0, 17313, "$match with $text is only allowed as the first pipeline stage")
		p.text = f
	}
	return func(_ Host, docs []bson.D) ([]bson.D, error) { return f.Select(docs) }
}

func project(p *parser, arg any) stage {
	d := p.document(arg, 15969, "$project specification must be an object")
	p.Refuse(len(d) == 0, 51272, "Invalid $project :: caused by :: projection specification must have at least one field")
	projection, err := query.CompileProjection(d, p.opts)
	p.Note(fault.Within("Invalid $project", err))
	return p.each(projection.Apply)
}

func addFields(p *parser, arg any) stage {
	d := p.document(arg, 40272, "$addFields specification stage must be an object, got "+value.TypeName(arg))
	p.Refuse(len(d) == 0, 40177, "Invalid $addFields :: caused by :: specification must have at least one field")
	fields, err := query.CompileFields(d, p.opts)
	p.Note(fault.Within("Invalid $addFields", err))
	return p.each(fields.Apply)
}

func unset(p *parser, arg any) stage {
	list, ok := arg.(bson.A)
	name, isText := arg.(string)
	if isText {
		list = bson.A{name}
	}
	p.Refuse(!ok && !isText, 31002, "$unset specification must be a string or an array")
	p.Refuse(ok && len(list) == 0, 31119, "$unset specification must be a string or an array with at least one field")
	spec := bson.D{}
	for _, item := range list {
		name, ok := item.(string)
		p.Refuse(!ok, 31120, "$unset specification must be a string or an array containing only string values")
		spec = value.Append(spec, name, false)
	}
	projection, err := query.CompileProjection(spec, p.opts)
	p.Note(fault.Within("Invalid $unset", err))
	return p.each(projection.Apply)
}

func (p *parser) expression(v any) expression.Expr {
	x, err := expression.Parse(v, p.opts.Options)
	p.Note(err)
	return x
}

func sort(p *parser, arg any) stage {
	d := p.document(arg, 15973, "the $sort key specification must be an object")
	p.Refuse(len(d) == 0, 15976, "$sort stage must have at least one sort key")
	order, err := query.CompileOrder(d, p.found(nil, d).Collation)
	p.Note(err)
	if err := order.On(p.text); err != nil || p.position == 1 {
		p.Note(err)
	} else {
		p.Refuse(order.ByScore(), fault.NotImplemented,
			"$sort by textScore after other stages than $match is not implemented by the embedded deployment")
	}
	return func(_ Host, docs []bson.D) ([]bson.D, error) {
		docs = slices.Clone(docs)
		err := query.Sort(docs, order, func(d bson.D) bson.D { return d })
		return docs, fault.Within("PlanExecutor error during aggregation", err)
	}
}

func limit(p *parser, arg any) stage {
	n, ok := value.Int64(arg)
	p.Refuse(!ok, 5107201, "invalid argument to $limit stage: Expected a number in: $limit: %s", value.Text(arg))
	p.Refuse(n < 0, 5107201,
		"invalid argument to $limit stage: Expected a positive number in: $limit: %s", value.Text(arg))
	p.Refuse(n == 0, 15958, "the limit must be positive")
	return func(_ Host, docs []bson.D) ([]bson.D, error) { return docs[:min(n, int64(len(docs)))], nil }
}

func skip(p *parser, arg any) stage {
	n, ok := value.Int64(arg)
	p.Refuse(!ok || n < 0, 5107200, "invalid argument to $skip stage: Expected a non-negative number in: $skip: %s",
		value.Text(arg))
	return func(_ Host, docs []bson.D) ([]bson.D, error) { return docs[min(n, int64(len(docs))):], nil }
}

func count(p *parser, arg any) stage {
	name, ok := arg.(string)
	p.Refuse(!ok, 40156, "the count field must be a non-empty string")
	p.Refuse(name == "", 40157, "the count field must be a non-empty string")
	p.Refuse(strings.HasPrefix(name, "$"), 40158, "the count field cannot be a $-prefixed path")
	p.Refuse(strings.Contains(name, "."), 40160, "the count field cannot contain '.'")
	return func(_ Host, docs []bson.D) ([]bson.D, error) {
		if len(docs) == 0 {
			return nil, nil
		}
		return []bson.D{value.Doc(name, value.Int(int64(len(docs))))}, nil
	}
}

func unwind(p *parser, arg any) stage {
	path, ok := arg.(string)
	d, isDocument := arg.(bson.D)
	for _, e := range d {
		text, isText := e.Value.(string)
		switch e.Key {
		case "path":
			path = text
			p.Refuse(!isText, 28808, "expected a string as the path for $unwind stage, got %s", value.TypeName(e.Value))
		case "preserveNullAndEmptyArrays":
			p.Refuse(!value.Is[bool](e.Value), 28809,
				"expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s", value.TypeName(e.Value))
		case "includeArrayIndex":
			p.Refuse(text == "", 28810, "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got %s",
				value.TypeName(e.Value))
			p.Refuse(strings.HasPrefix(text, "$"), 28822,
				"includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s", text)
		default:
			p.Fail(28811, "unrecognized option to $unwind stage: %s", e.Key)
		}
	}
	index, preserve := value.As[string](d, "includeArrayIndex"), value.As[bool](d, "preserveNullAndEmptyArrays")
	p.Refuse(!ok && !isDocument, 15981,
		"expected either a string or an object as specification for $unwind stage, got %s", value.TypeName(arg))
	p.Refuse(path == "", 28812, "no path specified to $unwind stage")
	p.Refuse(!strings.HasPrefix(path, "$") || len(path) < 2, 28818,
		"path option to $unwind stage should be prefixed with a '$': %s", path)
	parts := strings.Split(strings.TrimPrefix(path, "$"), ".")
	return func(_ Host, docs []bson.D) ([]bson.D, error) {
		var out []bson.D
		made := volume{opts: p.opts}
		add := func(d bson.D, item, position any) error {
			c := d
			if !value.IsMissing(item) {
				c = value.Put(d, parts, item).(bson.D)
			}
			if index != "" {
				c = value.Put(c, strings.Split(index, "."), position).(bson.D)
			}
			out = append(out, c)
			return made.add(c)
		}
		for _, d := range docs {
			v := value.At(d, parts)
			items, isArray := v.(bson.A)
			var err error
			switch {
			case isArray && len(items) > 0:
				for i, item := range items {
					if err = add(d, item, int64(i)); err != nil {
						break
					}
				}
			case isArray && preserve:
				err = add(value.Put(d, parts, value.Missing{}).(bson.D), value.Missing{}, nil)
			case isArray, value.IsNull(v) && !preserve:
			default:
				err = add(d, value.Missing{}, nil)
			}
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	}
}

func replaceRoot(p *parser, arg any) stage {
	d, ok := arg.(bson.D)
	p.Refuse(!ok, 40229, "expected an object as specification for $replaceRoot stage, got %s", value.TypeName(arg))
	p.idl("$replaceRoot", d, map[string]string{"newRoot": ""})
	root, ok := value.Field(d, "newRoot")
	p.Refuse(!ok, fault.IDLFailedToParse, "BSON field '$replaceRoot.newRoot' is missing but a required field")
	return replaceWith(p, root)
}

func replaceWith(p *parser, arg any) stage {
	x, o := p.expression(arg), p.opts
	return p.each(func(d bson.D) (bson.D, error) {
		v, err := x.Eval(expression.NewEnv(d, o.Let))
		if err != nil {
			return nil, err
		}
		r, ok := v.(bson.D)
		if !ok {
			return nil, fault.Errorf(40228,
				"'newRoot' expression must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'. "+
					"Input document: %s", strings.ToUpper(value.TypeName(v)), value.TypeName(v), value.Text(d))
		}
		return r, nil
	})
}
