package query

import (
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/expression"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Projection says what a result keeps of a document.
type Projection struct {
	tree    *branch
	include bool
	id      bool // keep _id
	idSet   bool
	opts    Options
	// positional is the path of "a.$", empty if it is missing.
	positional string
}

// branch is a field of a projection, in the order written.
type branch struct {
	names    []string
	children map[string]*branch
	keep     bool            // include or exclude the whole
	expr     expression.Expr // a computed value
	elem     node            // $elemMatch
}

func (b *branch) child(name string) *branch {
	if b.children == nil {
		b.children = map[string]*branch{}
	}
	c := b.children[name]
	if c == nil {
		c = &branch{}
		b.children[name] = c
		b.names = append(b.names, name)
	}
	return c
}

func (b *branch) leaf() bool { return len(b.names) == 0 }

// CompileProjection parses a projection; nil if it is empty. find's
// projections (positional, $elemMatch) and $project's are one
// language here; pipeline refuses the former.
func CompileProjection(spec bson.D, opts Options, pipeline bool) (*Projection, error) {
	if len(spec) == 0 {
		if pipeline {
			return nil, command.Errorf(51272, "Invalid $project :: caused by :: projection specification must have at least one field")
		}
		return nil, nil
	}
	p := &Projection{tree: &branch{}, id: true, opts: opts}
	mode := 0 // 1 inclusion, -1 exclusion
	var walk func(prefix string, d bson.D, depth int) error
	set := func(path string, m int) error {
		if mode != 0 && mode != m {
			if m > 0 {
				return command.Errorf(31253, "Cannot do inclusion on field %s in exclusion projection", path)
			}
			return command.Errorf(31254, "Cannot do exclusion on field %s in inclusion projection", path)
		}
		mode = m
		return nil
	}
	at := func(path string) *branch {
		b := p.tree
		for _, part := range strings.Split(path, ".") {
			b = b.child(part)
		}
		return b
	}
	walk = func(prefix string, d bson.D, depth int) error {
		if depth > 50 {
			return command.Errorf(command.CodeOverflow, "projection is nested too deeply")
		}
		for _, e := range d {
			path := prefix + e.Key
			if path == "" || strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") || strings.Contains(path, "..") {
				return command.Errorf(40352, "FieldPath cannot be constructed with empty string")
			}
			if !pipeline && strings.HasSuffix(path, ".$") {
				p.positional = strings.TrimSuffix(path, ".$")
				at(p.positional).keep = true
				if err := set(path, 1); err != nil {
					return err
				}
				continue
			}
			if strings.HasPrefix(e.Key, "$") {
				return command.Errorf(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
			}
			number := value.IsNumber(e.Value)
			boolean, isBool := e.Value.(bool)
			if number {
				boolean = value.Truthy(e.Value)
			}
			doc, isDoc := e.Value.(bson.D)
			switch {
			case number || isBool:
				if path == "_id" {
					p.id, p.idSet = boolean, true
					if boolean {
						at(path).keep = true
					}
					continue
				}
				m := -1
				if boolean {
					m = 1
				}
				if err := set(path, m); err != nil {
					return err
				}
				at(path).keep = true
			case isDoc && !isOperators(doc):
				if len(doc) == 0 {
					return command.Errorf(51270, "An empty sub-projection is not a valid value. Found empty object at path")
				}
				if err := walk(path+".", doc, depth+1); err != nil {
					return err
				}
			case isDoc && !pipeline && doc[0].Key == "$elemMatch":
				n, _, err := parser{opts: opts}.element(doc[0].Value, 0)
				if err != nil {
					return err
				}
				at(path).elem = n
				if err := set(path, 1); err != nil {
					return err
				}
			default:
				if isDoc && doc[0].Key == "$meta" {
					continue
				}
				x, err := expression.Parse(e.Value)
				if err != nil {
					return err
				}
				if path != "_id" {
					if err := set(path, 1); err != nil {
						return err
					}
				} else {
					p.idSet = true
				}
				at(path).expr = x
			}
		}
		return nil
	}
	if err := walk("", spec, 0); err != nil {
		return nil, err
	}
	p.include = mode > 0 || mode == 0 && p.idSet && p.id
	return p, nil
}

// Apply makes the result of a document. match is how the filter matched.
func (p *Projection) Apply(doc bson.D, match Match) (bson.D, error) {
	if p == nil {
		return doc, nil
	}
	env := expression.NewEnv(doc, p.now(), p.opts.Let)
	out, err := p.document(doc, p.tree, env, true, match, "")
	if err == nil && p.include {
		out, err = p.compute(out, p.tree, env, "")
	}
	if err == nil && value.Size(out) > value.MaxBuilt {
		err = command.Errorf(command.CodeBSONObjectTooLarge, "BSONObj size is invalid: a projection makes more than %d bytes of a document", value.MaxBuilt)
	}
	return out, err
}

func (p *Projection) now() time.Time { return p.opts.Now }

// document applies a branch to the fields that a document has.
func (p *Projection) document(doc bson.D, b *branch, env *expression.Env, top bool, match Match, prefix string) (bson.D, error) {
	out := make(bson.D, 0, len(doc))
	for _, e := range doc {
		c := b.children[e.Key]
		switch {
		case c == nil:
			if top && e.Key == "_id" && p.include {
				if p.id {
					out = append(out, e)
				}
			} else if top && e.Key == "_id" && !p.id {
				// excluded
			} else if !p.include {
				out = append(out, e)
			}
		case c.expr != nil:
			// Computed fields stand where the document has them.
			v, err := c.expr(env)
			if err != nil {
				return nil, err
			}
			if !missing(v) {
				out = append(out, bson.E{Key: e.Key, Value: v})
			}
		case c.elem != nil:
			a, _ := e.Value.(bson.A)
			for _, item := range a {
				r := &run{opts: &p.opts, index: -1}
				if c.elem.match(item, r) {
					out = append(out, bson.E{Key: e.Key, Value: bson.A{item}})
					break
				}
			}
		case c.leaf():
			if !p.include {
				continue
			}
			if top && e.Key == "_id" && !p.id {
				continue
			}
			v := e.Value
			if p.positional != "" && p.positional == prefix+e.Key {
				a, ok := v.(bson.A)
				if !ok || match.Index < 0 || match.Index >= len(a) {
					return nil, command.Errorf(51246, "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array")
				}
				v = bson.A{a[match.Index]}
			}
			out = append(out, bson.E{Key: e.Key, Value: v})
		default:
			v, keep, err := p.inside(e.Value, c, env, match, prefix+e.Key+".")
			if err != nil {
				return nil, err
			}
			if keep {
				out = append(out, bson.E{Key: e.Key, Value: v})
			}
		}
	}
	return out, nil
}

// inside applies a branch to a value within a document.
func (p *Projection) inside(v any, b *branch, env *expression.Env, match Match, prefix string) (any, bool, error) {
	switch x := v.(type) {
	case bson.D:
		d, err := p.document(x, b, env, false, match, prefix)
		return d, true, err
	case bson.A:
		out := bson.A{}
		for _, item := range x {
			r, keep, err := p.inside(item, b, env, match, prefix)
			if err != nil {
				return nil, false, err
			}
			if keep {
				out = append(out, r)
			}
		}
		return out, true, nil
	}
	return v, !p.include, nil
}

// compute adds the computed fields that the document does not have yet.
func (p *Projection) compute(out bson.D, b *branch, env *expression.Env, path string) (bson.D, error) {
	for _, name := range b.names {
		c := b.children[name]
		if c.expr != nil {
			if _, ok := value.Field(out, name); ok {
				continue
			}
			v, err := c.expr(env)
			if err != nil {
				return nil, err
			}
			if !missing(v) {
				out = append(out, bson.E{Key: name, Value: v})
			}
			continue
		}
		if !c.computes() {
			continue
		}
		sub, ok := value.Field(out, name)
		if !ok {
			d, err := p.compute(bson.D{}, c, env, path+name+".")
			if err != nil {
				return nil, err
			}
			out = append(out, bson.E{Key: name, Value: d})
		} else if d, ok := sub.(bson.D); ok {
			d, err := p.compute(append(bson.D{}, d...), c, env, path+name+".")
			if err != nil {
				return nil, err
			}
			out = value.Set(out, name, d)
		}
	}
	return out, nil
}

func (b *branch) computes() bool {
	if b.expr != nil {
		return true
	}
	for _, c := range b.children {
		if c.computes() {
			return true
		}
	}
	return false
}
