package pipeline

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// inner parses a pipeline within a stage. It may not write.
func (p *parser) inner(stage string, list bson.A, opts query.Options) *Pipeline {
	inner, err := Compile(list, opts)
	if p.Note(err); err != nil {
		return inner
	}
	code := map[string]int32{"$facet": 40600, "$lookup": 51047, "$unionWith": 31441}[stage]
	for _, item := range list {
		name := item.(bson.D)[0].Key
		refused := name == inner.Writes || stage == "$facet" && (name == "$facet" || name == inner.Source)
		p.Refuse(refused, code, "%s is not allowed to be used within a %s stage", name, stage)
	}
	return inner
}

// let parses the variables of a stage. The function evaluates them for a document and adds the command's variables.
func (p *parser) let(vars bson.D) func(doc bson.D) (bson.D, error) {
	values, outer := make([]expression.Expr, len(vars)), p.opts.Let
	for i, e := range vars {
		values[i] = p.expression(e.Value)
	}
	return func(doc bson.D) (bson.D, error) {
		env, out := expression.NewEnv(doc, outer), slices.Clone(vars)
		for i, x := range values {
			var err error
			if out[i].Value, err = x.Eval(env); err != nil {
				return nil, err
			}
		}
		return append(out, outer...), nil
	}
}

// idl checks the fields of a stage as a server's generated parsers do. types are their types; any is "".
func (p *parser) idl(stage string, d bson.D, types map[string]string) {
	for _, e := range d {
		want, known := types[e.Key]
		p.Refuse(!known, fault.IDLUnknownField, "BSON field '%s.%s' is an unknown field.", stage, e.Key)
		p.Refuse(want != "" && value.TypeName(e.Value) != want, fault.TypeMismatch,
			"BSON field '%s.%s' is the wrong type '%s', expected type '%s'", stage, e.Key, value.TypeName(e.Value), want)
	}
}

// lookup is $lookup with localField and foreignField, with a pipeline, or with both.
func lookup(p *parser, arg any) stage {
	d := p.document(arg, fault.FailedToParse, "the $lookup specification must be an object")
	for _, e := range d {
		switch e.Key {
		case "from", "localField", "foreignField", "as":
			p.Refuse(!value.Is[string](e.Value), fault.FailedToParse, "$lookup argument '%s: %s' must be a string, is type %s",
				e.Key, value.Text(e.Value), value.TypeName(e.Value))
		case "pipeline":
			p.Refuse(!value.Is[bson.A](e.Value), fault.TypeMismatch, "'pipeline' option must be specified as an array")
		case "let":
			p.Refuse(!value.Is[bson.D](e.Value), fault.FailedToParse, "$lookup argument 'let: %s' must be an object, is type %s",
				value.Text(e.Value), value.TypeName(e.Value))
		default:
			p.Fail(fault.FailedToParse, "unknown argument to $lookup: %s", e.Key)
		}
	}
	from, as := value.As[string](d, "from"), value.As[string](d, "as")
	local, foreign := value.As[string](d, "localField"), value.As[string](d, "foreignField")
	list, hasPipeline := value.Get(d, "pipeline").(bson.A)
	let := value.As[bson.D](d, "let")
	p.Refuse(from == "", fault.FailedToParse, "must specify 'from' field for a $lookup")
	p.Refuse(as == "", fault.FailedToParse, "must specify 'as' field for a $lookup")
	p.Refuse((local == "") != (foreign == ""), fault.FailedToParse,
		"$lookup requires both or neither of 'localField' and 'foreignField' to be specified")
	p.Refuse(local == "" && !hasPipeline, fault.FailedToParse,
		"$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	p.Refuse(let != nil && !hasPipeline, fault.FailedToParse, "$lookup with a 'let' argument must also specify 'pipeline'")
	variables, opts, inner := p.let(let), p.opts, p.opts
	inner.Let = slices.Concat(let, opts.Let)
	p.inner("$lookup", list, inner) // finds its errors
	return func(h Host, docs []bson.D) ([]bson.D, error) {
		others, err := h.Read(from)
		if err != nil {
			return nil, err
		}
		return p.each(func(d bson.D) (bson.D, error) {
			matched := others
			if local != "" {
				if matched, err = joined(d, local, foreign, others, opts); err != nil {
					return nil, err
				}
			}
			inner := opts
			if inner.Let, err = variables(d); err != nil {
				return nil, err
			}
			sub, err := Compile(list, inner)
			if err != nil {
				return nil, err
			}
			matched, err = sub.Run(h, func() ([]bson.D, error) { return matched, nil })
			return value.Put(d, strings.Split(as, "."), value.Array(matched)).(bson.D), err
		})(h, docs)
	}
}

// joined returns the documents whose foreign field equals the local field of a document.
func joined(d bson.D, local, foreign string, others []bson.D, opts query.Options) ([]bson.D, error) {
	var anyOf bson.A
	add := func(v any) { // in a list of $in, a regular expression or {$gt: 1} would be a condition
		anyOf = append(anyOf, value.Doc(foreign, value.Doc("$eq", v)))
	}
	if query.Along(d, strings.Split(local, "."), add); anyOf == nil {
		add(nil)
	}
	f, err := query.Compile(value.Doc("$or", anyOf), opts)
	if err != nil {
		return nil, err
	}
	return f.Select(others)
}

func unionWith(p *parser, arg any) stage {
	from, ok := arg.(string)
	var list bson.A
	if d, isDocument := arg.(bson.D); isDocument {
		p.idl("$unionWith", d, map[string]string{"coll": "string", "pipeline": "array"})
		from, list, ok = value.As[string](d, "coll"), value.As[bson.A](d, "pipeline"), true
		p.Refuse(from == "", fault.IDLFailedToParse, "BSON field '$unionWith.coll' is missing but a required field")
	}
	p.Refuse(!ok, fault.FailedToParse, "the $unionWith stage specification must be an object or string, but found %s",
		value.TypeName(arg))
	inner := p.inner("$unionWith", list, p.opts)
	return func(h Host, docs []bson.D) ([]bson.D, error) {
		others, err := inner.Run(h, func() ([]bson.D, error) { return h.Read(from) })
		return slices.Concat(docs, others), cmp.Or(err, p.opts.Over())
	}
}

func facet(p *parser, arg any) stage {
	d, ok := arg.(bson.D)
	p.Refuse(!ok || len(d) == 0, 40169, "the $facet specification must be a non-empty object, but found: %s",
		value.Text(value.Doc("$facet", arg)))
	facets := make([]*Pipeline, len(d))
	for i, e := range d {
		list, ok := e.Value.(bson.A)
		p.Refuse(!ok, 40170, "arguments to $facet must be arrays, %s is type %s", e.Key, value.TypeName(e.Value))
		facets[i] = p.inner("$facet", list, p.opts)
	}
	return func(h Host, docs []bson.D) ([]bson.D, error) {
		out := bson.D{}
		for i, f := range facets {
			found, err := f.Apply(h, docs)
			if err = cmp.Or(err, p.opts.Over()); err != nil {
				return nil, err
			}
			out = value.Append(out, d[i].Key, value.Array(found))
		}
		return []bson.D{out}, nil
	}
}

func sample(p *parser, arg any) stage {
	d := p.document(arg, 28745, "the $sample stage specification must be an object")
	size, ok := value.Field(d, "size")
	for _, e := range d {
		p.Refuse(e.Key == "size" && !value.IsNumber(e.Value), 28746, "size argument to $sample must be a number")
		p.Refuse(e.Key == "size" && value.Float(e.Value) < 0, 28747, "size argument to $sample must not be negative")
		p.Refuse(e.Key != "size", 28748, "unrecognized option to $sample: %s", e.Key)
	}
	p.Refuse(!ok, 28749, "$sample stage must specify a size")
	n := int(min(value.Float(size), 1<<30))
	return func(_ Host, docs []bson.D) ([]bson.D, error) {
		docs = slices.Clone(docs)
		rand.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		return docs[:min(n, len(docs))], p.opts.Over()
	}
}

// verdicts are the variables of $redact.
var verdicts = value.Doc("KEEP", "keep", "PRUNE", "prune", "DESCEND", "descend")

func redact(p *parser, arg any) stage {
	opts := p.opts
	opts.Let = slices.Concat(verdicts, p.opts.Let)
	x, err := expression.Parse(arg, opts.Options)
	p.Note(err)
	return func(_ Host, docs []bson.D) (out []bson.D, err error) {
		for _, d := range docs {
			v, err := redacted(x, d, opts)
			if err != nil {
				return nil, err
			}
			if kept, ok := v.(bson.D); ok {
				out = append(out, kept)
			}
		}
		return out, nil
	}
}

// redacted returns what $redact keeps of a value, Missing if that is nothing.
func redacted(x expression.Expr, v any, opts query.Options) (any, error) {
	switch t := v.(type) {
	case bson.A:
		list := bson.A{}
		for _, item := range t {
			item, err := redacted(x, item, opts)
			if err != nil {
				return nil, err
			}
			if !value.IsMissing(item) {
				list = append(list, item)
			}
		}
		return list, nil
	case bson.D:
		verdict, err := x.Eval(expression.NewEnv(t, opts.Let))
		err = cmp.Or(err, opts.Over())
		switch {
		case err != nil, verdict == "keep":
			return t, err
		case verdict == "prune":
			return value.Missing{}, nil
		case verdict != "descend":
			return nil, fault.Errorf(17053,
				"$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned %s",
				value.Text(verdict))
		}
		doc := bson.D{}
		for _, e := range t {
			inner, err := redacted(x, e.Value, opts)
			if err != nil {
				return nil, err
			}
			doc = value.AddIf(doc, !value.IsMissing(inner), e.Key, inner)
		}
		return doc, nil
	}
	return v, nil
}

// target parses the collection that a stage writes to: the name of one in the same database, or {db, coll}.
func target(v any) (db, coll string, ok bool) {
	if d, isDocument := v.(bson.D); isDocument {
		return value.As[string](d, "db"), value.As[string](d, "coll"), value.As[string](d, "coll") != ""
	}
	coll, _ = v.(string)
	return "", coll, coll != ""
}

func out(p *parser, arg any) stage {
	db, coll, ok := target(arg)
	d, isDocument := arg.(bson.D)
	p.Refuse(!value.Is[string](arg) && !isDocument, 16990, "$out only supports a string or object argument, but found %s",
		value.TypeName(arg))
	p.Refuse(isDocument && (!ok || db == "" || len(d) != 2), 16994,
		"If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll'")
	return func(h Host, docs []bson.D) ([]bson.D, error) { return nil, h.Out(db, coll, docs) }
}

// Merge is the argument of $merge.
type Merge struct {
	DB, Coll   string // DB "" is the database of the aggregation
	On         []string
	Matched    string // replace, keepExisting, merge or fail
	NotMatched string // insert, discard or fail
	Pipeline   bson.A // instead of Matched
	Options    query.Options
	variables  func(doc bson.D) (bson.D, error) // of the pipeline
}

func merge(p *parser, arg any) stage {
	m := Merge{Matched: "merge", NotMatched: "insert", On: []string{"_id"}, Options: p.opts}
	into := arg
	d, isDocument := arg.(bson.D)
	p.Refuse(!value.Is[string](arg) && !isDocument, 51182,
		"$merge only supports a string or object argument, but found %s", value.TypeName(arg))
	if isDocument {
		into = value.Get(d, "into")
		p.Refuse(into == nil, fault.IDLFailedToParse, "BSON field '$merge.into' is missing but a required field")
	}
	p.idl("$merge", d, map[string]string{"into": "", "on": "", "whenMatched": "", "whenNotMatched": "", "let": "object"})
	for _, e := range d {
		text, _ := e.Value.(string)
		enum := func(values ...string) string {
			p.Refuse(!slices.Contains(values, text), fault.BadValue,
				"Enumeration value '%s' for field '$merge.%s' is not a valid value.", text, e.Key)
			return text
		}
		switch e.Key {
		case "on":
			m.On = p.mergeOn(e.Value)
		case "whenMatched":
			if list, ok := e.Value.(bson.A); ok {
				m.Pipeline = append(bson.A{}, list...)
				continue
			}
			m.Matched = enum("fail", "keepExisting", "merge", "replace")
		case "whenNotMatched":
			m.NotMatched = enum("insert", "discard", "fail")
		}
	}
	let := value.As[bson.D](d, "let")
	if m.Pipeline != nil {
		vars, opts := append(value.Doc("new", "$$ROOT"), let...), p.opts
		m.variables, opts.Let = p.let(vars), slices.Concat(vars, opts.Let)
		_, err := CompileUpdate(m.Pipeline, opts)
		p.Note(err)
	}
	p.Refuse(let != nil && m.Pipeline == nil, 51199, "Cannot use 'let' variables with 'whenMatched: %s' mode", m.Matched)
	p.Refuse(m.Pipeline == nil && m.NotMatched != "insert" && (m.Matched == "fail" || m.Matched == "keepExisting"), 51189,
		"Combination of whenMatched: '%s' and whenNotMatched: '%s' is not supported", m.Matched, m.NotMatched)
	var ok bool
	m.DB, m.Coll, ok = target(into)
	p.Refuse(!ok, 51178, "$merge 'into' field must specify a 'coll' that is not empty, null or undefined")
	return func(h Host, docs []bson.D) ([]bson.D, error) { return nil, h.Merge(m, docs) }
}

// mergeOn parses the fields that identify documents.
func (p *parser) mergeOn(v any) (on []string) {
	list, ok := v.(bson.A)
	if name, isText := v.(string); isText {
		list, ok = bson.A{name}, true
	}
	p.Refuse(!ok, 51186, "$merge 'on' field  must be either a string or an array of strings, but found %s",
		value.TypeName(v))
	p.Refuse(ok && len(list) == 0, 51187, "If explicitly specifying $merge 'on', must include at least one field")
	for _, item := range list {
		name, isText := item.(string)
		p.Refuse(!isText, 51134, "$merge 'on' array elements must be strings, but found %s", value.TypeName(item))
		p.Refuse(slices.Contains(on, name), 31465, "Found a duplicate field '%s' in $merge 'on'", name)
		on = append(on, name)
	}
	return on
}

// Combine returns a document of the target into which a document of the pipeline has been merged.
func (m *Merge) Combine(old, doc bson.D) (bson.D, error) {
	switch {
	case m.Pipeline != nil:
		opts := m.Options
		var err error
		if opts.Let, err = m.variables(doc); err != nil {
			return nil, err
		}
		p, err := Compile(m.Pipeline, opts)
		if err != nil {
			return nil, err
		}
		out, err := p.Apply(nil, []bson.D{old})
		if err != nil {
			return nil, err
		}
		doc = out[0]
	case m.Matched == "merge":
		merged := slices.Clone(old)
		for _, e := range doc {
			merged = value.Set(merged, e.Key, e.Value)
		}
		doc = merged
	}
	return append(value.Doc("_id", value.Get(old, "_id")), value.Delete(doc, "_id")...), nil
}
