package query

import (
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
	if p.id == nil && p.include || p.id != nil && *p.id == p.include {
		p.fields.add([]string{"_id"})
	}
	return &p.Projection, p.Err
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
	for _, part := range parts {
		p.Refuse(part == "", 40352, "FieldPath cannot be constructed with empty string")
		p.Refuse(part == "$" && !p.computes, 51246,
			"Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array")
		p.Refuse(strings.HasPrefix(part, "$"), 16410,
			"FieldPath field names may not start with '$'. Consider using $getField or $setField.")
	}
	d, isDoc := v.(bson.D)
	_, isBool := v.(bool)
	switch {
	case isDoc && len(d) > 0 && !IsOperators(d):
		p.each(parts, d)
	case p.computes:
		p.compute(parts, v)
	case isDoc && len(d) == 0:
		p.Fail(51270, "An empty sub-projection is not a valid value. Found empty object at path")
	case isBool || value.IsNumber(v):
		p.keep(parts, value.Truthy(v))
	default:
		p.keep(parts, true)
		p.compute(parts, v)
	}
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
	x, err := expression.Parse(v, p.opts.Let)
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
	if len(p.computed) > 0 {
		out = value.CloneDoc(out)
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
		return nil, fault.Errorf(fault.BSONObjectTooLarge, "BSONObj size is invalid: a projection builds more than %d bytes for a document", value.MaxBuilt)
	}
	return out, nil
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
