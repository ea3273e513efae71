package pipeline

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/expression"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// makers is a function since nested pipelines parse stages again.
func makers() map[string]maker {
	return map[string]maker{
		"$match": match, "$project": project, "$addFields": addFields, "$set": addFields, "$unset": unset,
		"$group": group, "$sort": sort, "$limit": limit, "$skip": skip, "$count": count, "$unwind": unwind,
		"$replaceRoot": replaceRoot, "$replaceWith": replaceWith, "$sample": sample, "$facet": facet,
		"$lookup": lookup, "$out": out, "$merge": merge, "$changeStreamSplitLargeEvent": splitLargeEvent,
	}
}

func match(arg any, o Options, _ int) (stage, error) {
	d, ok := arg.(bson.D)
	if !ok {
		return nil, command.Errorf(15959, "the match filter must be an expression in an object")
	}
	f, err := query.Compile(d, o.query())
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, _ Host, docs []bson.D) ([]bson.D, error) {
		return f.Select(docs)
	}, nil
}

func project(arg any, o Options, _ int) (stage, error) {
	d, ok := arg.(bson.D)
	if !ok {
		return nil, command.Errorf(15969, "$project specification must be an object")
	}
	p, err := query.CompileProjection(d, o.query(), true)
	if err != nil {
		return nil, err
	}
	return each(func(d bson.D) (bson.D, error) { return p.Apply(d, query.Match{Index: -1}) }), nil
}

func addFields(arg any, o Options, _ int) (stage, error) {
	d, ok := arg.(bson.D)
	if !ok {
		return nil, command.Errorf(40272, "$addFields specification stage must be an object, got %s", value.TypeName(arg))
	}
	type field struct {
		parts []string
		e     expression.Expr
	}
	var fields []field
	var collect func(prefix []string, d bson.D) error
	collect = func(prefix []string, d bson.D) error {
		for _, e := range d {
			if e.Key == "" || strings.HasPrefix(e.Key, "$") {
				return command.Errorf(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
			}
			parts := append(append([]string{}, prefix...), strings.Split(e.Key, ".")...)
			for _, p := range parts {
				if p == "" {
					return command.Errorf(15998, "FieldPath field names may not be empty strings.")
				}
			}
			if len(parts) > value.MaxDepth {
				return command.Errorf(command.CodeOverflow, "$addFields is nested too deeply")
			}
			if sub, ok := e.Value.(bson.D); ok && len(sub) > 0 && !strings.HasPrefix(sub[0].Key, "$") {
				if err := collect(parts, sub); err != nil {
					return err
				}
				continue
			}
			x, err := expression.Parse(e.Value)
			if err != nil {
				return err
			}
			fields = append(fields, field{parts, x})
		}
		return nil
	}
	if err := collect(nil, d); err != nil {
		return nil, err
	}
	return each(func(d bson.D) (bson.D, error) {
		env := expression.NewEnv(d, o.Now, o.Let)
		out := value.CloneDoc(d)
		for _, f := range fields {
			v, err := f.e(env)
			if err == nil {
				err = fits(v)
			}
			if err != nil {
				return nil, err
			}
			out = put(out, f.parts, v).(bson.D)
		}
		return out, nil
	}), nil
}

// put sets a computed field: through arrays in each of their elements; a
// missing value takes the field away.
func put(v any, parts []string, x any) any {
	if len(parts) == 0 {
		return value.Clone(x)
	}
	switch t := v.(type) {
	case bson.A:
		for i := range t {
			t[i] = put(t[i], parts, x)
		}
		return t
	case bson.D:
		if len(parts) == 1 && (x == any(value.Missing{})) {
			return value.Delete(t, parts[0])
		}
		for i := range t {
			if t[i].Key == parts[0] {
				t[i].Value = put(t[i].Value, parts[1:], x)
				return t
			}
		}
		return append(t, bson.E{Key: parts[0], Value: put(bson.D{}, parts[1:], x)})
	}
	return put(bson.D{}, parts, x)
}

func unset(arg any, o Options, depth int) (stage, error) {
	list, ok := arg.(bson.A)
	if !ok {
		list = bson.A{arg}
	}
	spec := bson.D{}
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil, command.Errorf(31002, "$unset specification must be a string or an array")
		}
		spec = append(spec, bson.E{Key: s, Value: int32(0)})
	}
	return project(spec, o, depth)
}

func group(arg any, o Options, _ int) (stage, error) {
	d, ok := arg.(bson.D)
	if !ok {
		return nil, command.Errorf(15947, "a group's fields must be specified in an object")
	}
	var id expression.Expr
	type field struct {
		name string
		make func() expression.Accumulator
		arg  expression.Expr
	}
	var fields []field
	for _, e := range d {
		if e.Key == "_id" {
			x, err := expression.Parse(e.Value)
			if err != nil {
				return nil, err
			}
			id = x
			continue
		}
		if strings.Contains(e.Key, ".") {
			return nil, command.Errorf(40235, "The field name '%s' cannot contain '.'", e.Key)
		}
		acc, ok := e.Value.(bson.D)
		if !ok {
			return nil, command.Errorf(40234, "The field '%s' must be an accumulator object", e.Key)
		}
		if len(acc) != 1 {
			return nil, command.Errorf(40238, "The field '%s' must specify one accumulator", e.Key)
		}
		f, err := expression.NewAccumulator(acc[0].Key)
		if err != nil {
			return nil, err
		}
		x, err := expression.Parse(acc[0].Value)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{e.Key, f, x})
	}
	if id == nil {
		return nil, command.Errorf(15955, "a group specification must include an _id")
	}
	return func(_ context.Context, _ Host, docs []bson.D) ([]bson.D, error) {
		type bucket struct {
			id   any
			accs []expression.Accumulator
		}
		var order []*bucket
		byKey := map[string]*bucket{}
		for _, d := range docs {
			env := expression.NewEnv(d, o.Now, o.Let)
			v, err := id(env)
			if err != nil {
				return nil, err
			}
			if (v == any(value.Missing{})) {
				v = nil
			}
			k := value.Key(o.Collation.Fold(v))
			b := byKey[k]
			if b == nil {
				b = &bucket{id: v}
				for _, f := range fields {
					b.accs = append(b.accs, f.make())
				}
				byKey[k] = b
				order = append(order, b)
			}
			for i, f := range fields {
				v, err := f.arg(env)
				if err == nil {
					err = b.accs[i].Add(v)
				}
				if err != nil {
					return nil, err
				}
			}
		}
		out := make([]bson.D, len(order))
		var made volume
		for i, b := range order {
			doc := bson.D{{Key: "_id", Value: b.id}}
			for j, f := range fields {
				doc = append(doc, bson.E{Key: f.name, Value: b.accs[j].Result()})
			}
			if err := made.add(doc); err != nil {
				return nil, err
			}
			out[i] = doc
		}
		return out, nil
	}, nil
}

func sort(arg any, o Options, _ int) (stage, error) {
	d, ok := arg.(bson.D)
	if !ok {
		return nil, command.Errorf(15973, "the $sort key specification must be an object")
	}
	order, err := query.CompileOrder(d, o.Collation)
	if err != nil {
		return nil, err
	}
	if order == nil {
		return nil, command.Errorf(15976, "$sort stage must have at least one sort key")
	}
	return func(_ context.Context, _ Host, docs []bson.D) ([]bson.D, error) {
		docs = append([]bson.D(nil), docs...)
		query.Sort(docs, order, func(d bson.D) bson.D { return d })
		return docs, nil
	}, nil
}

func limit(arg any, _ Options, _ int) (stage, error) {
	n, ok := value.Whole(arg)
	if !ok {
		return nil, command.Errorf(5107201, "invalid argument to $limit stage: Expected a number in: $limit: %s", value.Text(arg))
	}
	if n < 0 {
		return nil, command.Errorf(5107201, "invalid argument to $limit stage: Expected a non-negative number in: $limit: %s", value.Text(arg))
	}
	if n == 0 {
		return nil, command.Errorf(15958, "the limit must be positive")
	}
	return func(_ context.Context, _ Host, docs []bson.D) ([]bson.D, error) {
		return docs[:min(n, int64(len(docs)))], nil
	}, nil
}

func skip(arg any, _ Options, _ int) (stage, error) {
	n, ok := value.Whole(arg)
	if !ok || n < 0 {
		return nil, command.Errorf(5107200, "invalid argument to $skip stage: Expected a non-negative number in: $skip: %s", value.Text(arg))
	}
	return func(_ context.Context, _ Host, docs []bson.D) ([]bson.D, error) {
		return docs[min(n, int64(len(docs))):], nil
	}, nil
}

func count(arg any, _ Options, _ int) (stage, error) {
	name, ok := arg.(string)
	if !ok || name == "" || strings.HasPrefix(name, "$") || strings.Contains(name, ".") {
		return nil, command.Errorf(40156, "the count field must be a non-empty string")
	}
	return func(_ context.Context, _ Host, docs []bson.D) ([]bson.D, error) {
		if len(docs) == 0 {
			return nil, nil
		}
		return []bson.D{{{Key: name, Value: value.Int(int64(len(docs)))}}}, nil
	}, nil
}

func unwind(arg any, _ Options, _ int) (stage, error) {
	path, indexField, keep := "", "", false
	switch x := arg.(type) {
	case string:
		path = x
	case bson.D:
		for _, e := range x {
			switch e.Key {
			case "path":
				path, _ = e.Value.(string)
			case "includeArrayIndex":
				indexField, _ = e.Value.(string)
			case "preserveNullAndEmptyArrays":
				keep = value.Truthy(e.Value)
			default:
				return nil, command.Errorf(28811, "unrecognized option to $unwind stage: %s", e.Key)
			}
		}
	default:
		return nil, command.Errorf(15981, "expected either a string or an object as specification for $unwind stage, got %s", value.TypeName(arg))
	}
	if path == "" {
		return nil, command.Errorf(28812, "no path specified to $unwind stage")
	}
	if !strings.HasPrefix(path, "$") || len(path) < 2 {
		return nil, command.Errorf(28818, "path option to $unwind stage should be prefixed with a '$': %s", path)
	}
	parts := strings.Split(path[1:], ".")
	return func(_ context.Context, _ Host, docs []bson.D) ([]bson.D, error) {
		var out []bson.D
		var made volume
		var full error
		emit := func(d bson.D, v, i any) {
			if full != nil {
				return
			}
			c := swapped(d, parts, v)
			if indexField != "" {
				c = put(value.CloneDoc(c), strings.Split(indexField, "."), i).(bson.D)
			}
			out = append(out, c)
			full = made.add(c)
		}
		for _, d := range docs {
			var v any = d
			for _, p := range parts {
				sub, ok := v.(bson.D)
				if !ok {
					v = value.Missing{}
					break
				}
				if v, ok = value.Field(sub, p); !ok {
					v = value.Missing{}
				}
			}
			switch x := v.(type) {
			case bson.A:
				for i, item := range x {
					emit(d, item, int64(i))
				}
				if len(x) == 0 && keep {
					emit(d, value.Missing{}, nil)
				}
			case nil, value.Missing, bson.Undefined:
				if keep {
					emit(d, x, nil)
				}
			default:
				emit(d, x, nil)
			}
		}
		return out, full
	}, nil
}

// swapped is a document with another value at a path through documents, which shares the rest.
func swapped(d bson.D, parts []string, v any) bson.D {
	out := slices.Clone(d)
	i := slices.IndexFunc(out, func(e bson.E) bool { return e.Key == parts[0] })
	switch {
	case i < 0:
		return out // nothing is there, and nothing is to be
	case len(parts) > 1:
		if sub, ok := out[i].Value.(bson.D); ok {
			out[i].Value = swapped(sub, parts[1:], v)
		}
	case v == any(value.Missing{}):
		out = slices.Delete(out, i, i+1)
	default:
		out[i].Value = v
	}
	return out
}

func replaceRoot(arg any, o Options, depth int) (stage, error) {
	d, _ := arg.(bson.D)
	root, ok := value.Field(d, "newRoot")
	if !ok || len(d) != 1 {
		return nil, command.Errorf(40231, "no newRoot specified for the $replaceRoot stage")
	}
	return replaceWith(root, o, depth)
}

func replaceWith(arg any, o Options, _ int) (stage, error) {
	x, err := expression.Parse(arg)
	if err != nil {
		return nil, err
	}
	return each(func(d bson.D) (bson.D, error) {
		v, err := x(expression.NewEnv(d, o.Now, o.Let))
		if err != nil {
			return nil, err
		}
		r, ok := v.(bson.D)
		if !ok {
			return nil, command.Errorf(40228, "'newRoot' expression must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'. Input document: %s", strings.ToUpper(value.TypeName(v)), value.TypeName(v), value.Text(d))
		}
		return r, nil
	}), nil
}

func sample(arg any, _ Options, _ int) (stage, error) {
	d, _ := arg.(bson.D)
	v, _ := value.Field(d, "size")
	n, ok := value.Whole(v)
	if !ok || n < 0 {
		return nil, command.Errorf(28746, "size argument to $sample must be a positive number")
	}
	return func(_ context.Context, _ Host, docs []bson.D) ([]bson.D, error) {
		out := append([]bson.D(nil), docs...)
		rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out[:min(n, int64(len(out)))], nil
	}, nil
}

func facet(arg any, o Options, depth int) (stage, error) {
	d, ok := arg.(bson.D)
	if !ok || len(d) == 0 {
		return nil, command.Errorf(40169, "the $facet specification must be a non-empty object")
	}
	pipes := make([]*Pipeline, len(d))
	for i, e := range d {
		p, err := subPipeline(e.Value, o, depth, "$facet")
		if err != nil {
			return nil, err
		}
		if p.Source != "" {
			return nil, command.Errorf(40600, "%s is not allowed to be used within a $facet stage", p.Source)
		}
		pipes[i] = p
	}
	return func(ctx context.Context, h Host, docs []bson.D) ([]bson.D, error) {
		out := bson.D{}
		for i, p := range pipes {
			r, err := p.Apply(ctx, h, docs)
			if err != nil {
				return nil, err
			}
			out = append(out, bson.E{Key: d[i].Key, Value: array(r)})
		}
		return []bson.D{out}, nil
	}, nil
}

func array(docs []bson.D) bson.A {
	a := make(bson.A, len(docs))
	for i := range docs {
		a[i] = docs[i]
	}
	return a
}

func lookup(arg any, o Options, depth int) (stage, error) {
	d, ok := arg.(bson.D)
	if !ok {
		return nil, command.Errorf(command.CodeFailedToParse, "the $lookup specification must be an object")
	}
	str := func(k string) string {
		v, _ := value.Field(d, k)
		s, _ := v.(string)
		return s
	}
	from, local, foreign, as := str("from"), str("localField"), str("foreignField"), str("as")
	var list any = bson.A{}
	piped := false
	var let bson.D
	for _, e := range d {
		switch e.Key {
		case "from", "localField", "foreignField", "as":
			if _, ok := e.Value.(string); !ok {
				return nil, command.Errorf(command.CodeFailedToParse, "$lookup argument '%s: %s' must be a string, is type %s", e.Key, value.Text(e.Value), value.TypeName(e.Value))
			}
		case "pipeline":
			list, piped = e.Value, true
		case "let":
			let, _ = e.Value.(bson.D)
		default:
			return nil, command.Errorf(command.CodeFailedToParse, "unknown argument to $lookup: %s", e.Key)
		}
	}
	if as == "" || (local == "") != (foreign == "") || local == "" && !piped {
		return nil, command.Errorf(command.CodeFailedToParse, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	}
	if _, err := subPipeline(list, o, depth, "$lookup"); err != nil {
		return nil, err
	}
	vars := make([]expression.Expr, len(let))
	for i := range let {
		x, err := expression.Parse(let[i].Value)
		if err != nil {
			return nil, err
		}
		vars[i] = x
	}
	return func(ctx context.Context, h Host, docs []bson.D) ([]bson.D, error) {
		var others []bson.D
		if from != "" {
			var err error
			if others, err = h.Read(ctx, o.DB, from); err != nil {
				return nil, err
			}
		}
		return each(func(d bson.D) (bson.D, error) {
			matched := others
			if local != "" {
				var wanted bson.A
				query.Leaves(d, strings.Split(local, "."), func(v any) { wanted = append(wanted, v) })
				f, err := query.Compile(bson.D{{Key: foreign, Value: bson.D{{Key: "$in", Value: wanted}}}}, o.query())
				if err != nil {
					return nil, err
				}
				if matched, err = f.Select(others); err != nil {
					return nil, err
				}
			}
			if piped {
				inner := o
				inner.Let = append(bson.D{}, o.Let...)
				env := expression.NewEnv(d, o.Now, o.Let)
				for i := range let {
					v, err := vars[i](env)
					if err != nil {
						return nil, err
					}
					inner.Let = append(inner.Let, bson.E{Key: let[i].Key, Value: v})
				}
				p, err := subPipeline(list, inner, depth, "$lookup")
				if err != nil {
					return nil, err
				}
				if matched, err = p.Run(ctx, h, func() ([]bson.D, error) { return matched, nil }); err != nil {
					return nil, err
				}
			}
			found := array(matched)
			if err := fits(found); err != nil {
				return nil, err
			}
			return put(value.CloneDoc(d), strings.Split(as, "."), found).(bson.D), nil
		})(ctx, h, docs)
	}, nil
}

// splitLargeEvent passes events on: the stream splits them.
func splitLargeEvent(any, Options, int) (stage, error) {
	return func(_ context.Context, _ Host, docs []bson.D) ([]bson.D, error) { return docs, nil }, nil
}
