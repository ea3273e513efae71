package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Projection selects the fields of a document to return and computes others.
type Projection struct {
	fields   branch // to include or to exclude; nil: keep all
	include  bool
	computed []computed
	opts     Options

	// Of a find:
	positional []string // the path before the positional operator $
	elements   []elements
	slices     []sliced
	scores     [][]string // paths of the score of $text
}

// elements is $elemMatch in a projection, on a field of the document.
type elements struct {
	field   string
	matches predicate
}

// sliced is $slice in the projection of a find.
type sliced struct {
	parts []string
	n     int64
	count *int64
}

// branch is a tree of the field names in a projection. A field with an empty branch is selected as a whole.
type branch map[string]branch

func (b branch) add(parts []string) {
	for _, part := range parts {
		if b[part] == nil {
			b[part] = branch{}
		}
		b = b[part]
	}
}

type computed struct {
	parts []string
	x     expression.Expr
}

// CompileProjection parses a projection; nil if it is empty.
func CompileProjection(spec bson.D, opts Options) (*Projection, error) {
	if len(spec) == 0 {
		return nil, nil
	}
	p := &projector{Projection: Projection{fields: branch{}, opts: opts}}
	p.each(nil, spec)
	p.include = p.included || !p.excluded && p.id != nil && *p.id
	for _, s := range p.slices {
		if p.include {
			p.fields.add(s.parts)
		}
	}
	if p.id == nil && p.include || p.id != nil && *p.id == p.include {
		p.fields.add([]string{"_id"})
	}
	return &p.Projection, p.Err
}

// On sets the filter of the command to which the projection belongs. It must have been compiled with another filter.
func (p *Projection) On(f *Filter) {
	if p != nil {
		p.opts.Match = f
	}
}

// CompileFields parses the argument of $addFields: a projection that keeps all fields and computes others.
func CompileFields(spec bson.D, opts Options) (*Projection, error) {
	p := &projector{Projection: Projection{opts: opts}, computes: true}
	p.each(nil, spec)
	return &p.Projection, p.Err
}

type projector struct {
	Projection
	computes           bool // every value is an expression
	included, excluded bool // fields other than _id
	id                 *bool
	paths              []string
	fault.First
}

func (p *projector) each(prefix []string, d bson.D) {
	if len(prefix) > value.MaxDepth {
		p.Fail(fault.Overflow, "projection is nested too deeply")
		return
	}
	for _, e := range d {
		p.field(append(prefix[:len(prefix):len(prefix)], strings.Split(e.Key, ".")...), e.Value)
	}
}

func (p *projector) field(parts []string, v any) {
	path, last := strings.Join(parts, "."), len(parts)-1
	p.checkPath(path, parts)
	d, isDoc := v.(bson.D)
	if len(d) > 0 && !IsOperators(d) {
		p.each(parts, d)
		return
	}
	p.collide(path)
	switch {
	case parts[last] == "$" && !p.computes:
		p.Refuse(p.positional != nil, 31276, "Cannot specify more than one positional projection per query.")
		p.Refuse(!value.Truthy(v), 31395, "positional projection cannot be used with exclusion")
		p.positional = parts[:last]
		p.keep(p.positional, true)
	case p.opts.Match != nil && p.ofFind(parts, d):
	case p.computes:
		p.compute(parts, v)
	case isDoc && len(d) == 0:
		p.Fail(51270, "An empty sub-projection is not a valid value. Found empty object at path")
	case value.Is[bool](v) || value.IsNumber(v):
		p.keep(parts, value.Truthy(v))
	case isDoc && !fault.Exists("expression", d[0].Key, p.opts.Wire):
		p.Fail(31325, "Unknown expression %s", d[0].Key)
	default:
		p.keep(parts, true)
		p.compute(parts, v)
	}
}

func (p *projector) checkPath(path string, parts []string) {
	last := len(parts) - 1
	p.Refuse(path == "", 40352, "FieldPath cannot be constructed with empty string")
	p.Refuse(path != "" && parts[last] == "", 40353, "FieldPath must not end with a '.'.")
	for i, part := range parts {
		p.Refuse(part == "", 15998, "FieldPath field names may not be empty strings.")
		if part == "$" && i > 0 && !p.computes {
			p.Refuse(p.opts.Match == nil, 31324, "Cannot use positional projection in aggregation projection")
			p.Refuse(i < last, 31394, "As of 4.4, it's illegal to specify positional operator in the middle of a path."+
				"Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, "+
				"remove the parts following the '$' and the results will be equivalent.")
			continue
		}
		p.Refuse(strings.HasPrefix(part, "$"), 16410,
			"FieldPath field names may not start with '$'. Consider using $getField or $setField.")
	}
}

// ofFind parses what only the projection of a find has. It returns false for another value.
func (p *projector) ofFind(parts []string, d bson.D) bool {
	switch {
	case isTextScore(d):
		p.Refuse(!p.opts.Match.Text(), 40218, "query requires text score metadata, but it is not available")
		p.scores = append(p.scores, parts)
	case len(d) != 1:
		return false
	case d[0].Key == "$elemMatch":
		p.elemMatch(parts, d[0])
	default:
		return d[0].Key == "$slice" && p.slice(parts, d[0].Value)
	}
	return true
}

// collide refuses a path that contains another one.
func (p *projector) collide(path string) {
	for _, other := range p.paths {
		rest, below := strings.CutPrefix(path, other+".")
		p.Refuse(below, 31249, "Path collision at %s remaining portion %s", path, rest)
		p.Refuse(path == other || strings.HasPrefix(other, path+"."), 31250, "Path collision at %s", path)
	}
	p.paths = append(p.paths, path)
}

func (p *projector) elemMatch(parts []string, e bson.E) {
	_, ok := e.Value.(bson.D)
	p.Refuse(!ok, 31274, "elemMatch: Invalid argument, object required, but got %s", value.TypeName(e.Value))
	p.Refuse(len(parts) > 1, 31275, "Cannot use $elemMatch projection on a nested field.")
	inner := &parser{opts: p.opts}
	p.elements = append(p.elements, elements{parts[0], inner.element(e)})
	p.Note(inner.Err)
	p.keep(parts, true)
}

// slice parses the argument of $slice: a number, or a position and a number. It returns false for an expression.
func (p *projector) slice(parts []string, v any) bool {
	list, isArray := v.(bson.A)
	if isArray && (len(list) != 2 || !value.IsNumber(list[0])) {
		return false
	}
	if !isArray {
		list = bson.A{v}
	}
	var n []int64
	for _, v := range list {
		p.Refuse(!value.IsNumber(v), 28667,
			"Invalid $slice syntax. The given syntax { $slice: %s } did not match the find() syntax because :: Location31273: "+
				"$slice only supports numbers and [skip, limit] arrays :: The given syntax did not match the expression $slice syntax. :: caused by :: "+
				"Expression $slice takes at least 2 arguments, and at most 3, but 1 were passed in.", value.Text(v))
		n = append(n, int64(value.Float(v)))
	}
	s := sliced{parts: parts, n: n[0]}
	if isArray {
		s.count = &n[1]
		p.Refuse(n[1] <= 0, 28724, "First argument to $slice must be an array, but is of type: %s", value.TypeName(list[0]))
	}
	p.slices = append(p.slices, s)
	return true
}

func (p *projector) keep(parts []string, include bool) {
	path := strings.Join(parts, ".")
	switch {
	case path == "_id":
		p.id = &include
		return
	case include && p.excluded:
		p.Fail(31253, "Cannot do inclusion on field %s in exclusion projection", path)
	case !include && p.included:
		p.Fail(31254, "Cannot do exclusion on field %s in inclusion projection", path)
	}
	p.included, p.excluded = include, !include
	p.fields.add(parts)
}

func (p *projector) compute(parts []string, v any) {
	x, err := expression.Parse(v, p.opts.Options)
	p.Note(err)
	p.computed = append(p.computed, computed{parts, x})
}

// Apply returns the projection of a document. A nil projection returns the document itself.
func (p *Projection) Apply(doc bson.D) (bson.D, error) {
	if p == nil {
		return doc, nil
	}
	out := doc
	if p.fields != nil {
		out = p.document(doc, p.fields)
	}
	if len(p.computed)+len(p.slices)+len(p.elements)+len(p.scores) > 0 || p.positional != nil {
		var err error
		if out, err = p.applyOfFind(doc, value.CloneDoc(out)); err != nil {
			return nil, err
		}
	}
	env := expression.NewEnv(doc, p.opts.Let)
	size := value.Size(out)
	for _, c := range p.computed {
		v, err := c.x.Eval(env)
		if err != nil {
			return nil, err
		}
		if size += value.Size(v); size <= value.MaxBuilt {
			out = value.Put(out, c.parts, v).(bson.D)
		}
	}
	if size > value.MaxBuilt || value.Size(out) > value.MaxBuilt {
		return nil, fault.Errorf(fault.BSONObjectTooLarge,
			"BSONObj size is invalid: a projection builds more than %d bytes for a document", value.MaxBuilt)
	}
	return out, nil
}

// applyOfFind applies what only the projection of a find has.
func (p *Projection) applyOfFind(doc, out bson.D) (bson.D, error) {
	for _, parts := range p.scores {
		out = value.Put(out, parts, p.opts.Match.Score(doc)).(bson.D)
	}
	if p.positional != nil {
		at := p.opts.Match.Position(doc)
		list, isArray := value.At(out, p.positional).(bson.A)
		switch {
		case !isArray:
		case at < 0 || at >= len(list):
			return nil, fault.Errorf(51246,
				"Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array")
		default:
			out = value.Put(out, p.positional, bson.A{list[at]}).(bson.D)
		}
	}
	for _, e := range p.elements {
		list, _ := value.Get(doc, e.field).(bson.A)
		i := slices.IndexFunc(list, e.matches)
		if out = value.Delete(out, e.field); i >= 0 {
			out = value.Append(out, e.field, bson.A{list[i]})
		}
	}
	for _, s := range p.slices {
		out = s.apply(out, s.parts).(bson.D)
	}
	return out, nil
}

// apply slices the arrays at a path in place.
func (s sliced) apply(v any, parts []string) any {
	list, isArray := v.(bson.A)
	d, _ := v.(bson.D)
	switch {
	case len(parts) == 0 && isArray:
		return expression.Slice(list, s.n, s.count)
	case isArray:
		for i := range list {
			list[i] = s.apply(list[i], parts)
		}
	case len(parts) > 0:
		for i := range d {
			if d[i].Key == parts[0] {
				d[i].Value = s.apply(d[i].Value, parts[1:])
			}
		}
	}
	return v
}

// document applies a branch to the fields of a document.
func (p *Projection) document(doc bson.D, b branch) bson.D {
	out := make(bson.D, 0, len(doc))
	for _, e := range doc {
		c, named := b[e.Key]
		keep := named == p.include
		if len(c) > 0 {
			e.Value, keep = p.inside(e.Value, c)
		}
		if keep {
			out = append(out, e)
		}
	}
	return out
}

// inside applies a branch to the value of a field. keep is false if the result does not have the field.
func (p *Projection) inside(v any, b branch) (result any, keep bool) {
	switch x := v.(type) {
	case bson.D:
		return p.document(x, b), true
	case bson.A:
		out := bson.A{}
		for _, item := range x {
			if r, keep := p.inside(item, b); keep {
				out = append(out, r)
			}
		}
		return out, true
	}
	return v, !p.include
}
