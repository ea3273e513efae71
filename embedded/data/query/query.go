// Package query is the language of filters: which documents match, in which
// order they are sorted, and what a projection keeps of them.
package query

import (
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/expression"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Options are what a filter depends on besides itself.
type Options struct {
	Let       bson.D // variables of $expr
	Now       time.Time
	Collation *Collation
	Scripts   *Scripts // of $where; nil: it is not allowed here
	Upsert    bool     // the filter is that of an upsert, which may have no $expr
}

// Filter is a parsed filter. It may be used concurrently.
type Filter struct {
	root node
	opts Options
	id   any // what _id must equal; value.Missing if that is not demanded
}

// Match is what a match found out.
type Match struct {
	// Index is the place in the array through which the filter matched, for
	// the positional operator; -1 if no array was involved.
	Index int
}

// Compile parses a filter. Errors are *command.Error with the server's codes
// and texts.
func Compile(filter bson.D, opts Options) (*Filter, error) {
	p := parser{opts: opts}
	root, err := p.conjunction(filter, true, 0)
	if err != nil {
		return nil, err
	}
	f := &Filter{root: root, opts: opts, id: value.Missing{}}
	if v, ok := value.Field(filter, "_id"); ok && opts.Collation.fold() == nil {
		f.id = plainEquality(v)
	}
	return f, nil
}

// plainEquality is what a field must equal, or Missing.
func plainEquality(v any) any {
	switch x := v.(type) {
	case bson.Regex, bson.A, nil:
		return value.Missing{}
	case bson.D:
		if len(x) == 1 && x[0].Key == "$eq" {
			if _, ok := x[0].Value.(bson.D); !ok {
				return plainEquality(x[0].Value)
			}
		}
		if isOperators(x) {
			return value.Missing{}
		}
	}
	return v
}

// ID is the value that _id must equal for a document to match, if the filter
// demands one.
func (f *Filter) ID() (any, bool) { return f.id, f.id != any(value.Missing{}) }

// Matches reports whether a document matches. Only $expr can fail.
func (f *Filter) Matches(doc bson.D) (bool, error) {
	ok, _, err := f.Find(doc)
	return ok, err
}

// Select gives the documents that match.
func (f *Filter) Select(docs []bson.D) ([]bson.D, error) {
	var out []bson.D
	for _, d := range docs {
		ok, err := f.Matches(d)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, d)
		}
	}
	return out, nil
}

// Find reports whether and how a document matches.
func (f *Filter) Find(doc bson.D) (bool, Match, error) {
	c := &run{opts: &f.opts, index: -1}
	ok := f.root.match(doc, c)
	if c.err != nil {
		return false, Match{-1}, c.err
	}
	return ok, Match{c.index}, nil
}

// run is the state of one match.
type run struct {
	opts  *Options
	index int
	err   error
	// single says that $elemMatch gives a value: if it is an array, its elements
	// are not tested.
	single bool
}

// node decides about a value: a document at the top, any value within
// $elemMatch.
type node interface {
	match(v any, c *run) bool
}

type (
	and  []node
	or   []node
	nor  []node
	not  struct{ node }
	all  struct{}
	none struct{}
	// expr is $expr.
	expr struct{ e expression.Expr }
	// at applies a predicate to the values at a path.
	at struct {
		parts []string
		p     *predicate
	}
)

func (n and) match(v any, c *run) bool {
	for _, x := range n {
		if !x.match(v, c) {
			return false
		}
	}
	return true
}

func (n or) match(v any, c *run) bool {
	for _, x := range n {
		if x.match(v, c) {
			return true
		}
	}
	return false
}

func (n nor) match(v any, c *run) bool { return !or(n).match(v, c) }
func (n not) match(v any, c *run) bool {
	index := c.index
	ok := n.node.match(v, c)
	c.index = index
	return !ok
}
func (all) match(any, *run) bool  { return true }
func (none) match(any, *run) bool { return false }

func (n expr) match(v any, c *run) bool {
	r, err := n.e(expression.NewEnv(v, c.opts.Now, c.opts.Let))
	if err != nil {
		if c.err == nil {
			c.err = err
		}
		return false
	}
	return value.Truthy(r)
}

func (n at) match(v any, c *run) bool {
	if c.single && n.parts == nil {
		return n.p.test(v, c)
	}
	return n.walk(v, n.parts, c)
}

// walk finds the values at a path: through arrays by every document in them,
// and by an index if the path has one.
func (n at) walk(v any, parts []string, c *run) bool {
	if len(parts) == 0 {
		return n.leaf(v, c)
	}
	switch x := v.(type) {
	case bson.D:
		f, ok := value.Field(x, parts[0])
		if !ok {
			return n.p.test(value.Missing{}, c)
		}
		if a, ok := f.(bson.A); ok && len(parts) > 1 {
			return n.through(a, parts[1:], c)
		}
		return n.walk(f, parts[1:], c)
	case bson.A:
		return n.through(x, parts, c)
	}
	return n.p.test(value.Missing{}, c)
}

func (n at) through(a bson.A, parts []string, c *run) bool {
	if i, ok := position(parts[0]); ok && i < len(a) && n.walk(a[i], parts[1:], c) {
		return true
	}
	for i, item := range a {
		if d, ok := item.(bson.D); ok && n.walk(d, parts, c) {
			c.index = i
			return true
		}
	}
	return false
}

// leaf applies the predicate to a value, and to its elements if it is an
// array and the predicate looks at them.
func (n at) leaf(v any, c *run) bool {
	if a, ok := v.(bson.A); ok && n.p.elements {
		for i, item := range a {
			if n.p.test(item, c) {
				c.index = i
				return true
			}
		}
	}
	return n.p.test(v, c)
}

// position is an array index in a path.
func position(part string) (int, bool) {
	if part == "" || part[0] < '0' || part[0] > '9' || len(part) > 9 {
		return 0, false
	}
	i, err := strconv.Atoi(part)
	return i, err == nil
}

func isOperators(d bson.D) bool {
	return len(d) > 0 && strings.HasPrefix(d[0].Key, "$") && d[0].Key != "$ref" && d[0].Key != "$id" && d[0].Key != "$db"
}

type parser struct{ opts Options }

// conjunction parses a document of conditions.
func (p parser) conjunction(d bson.D, top bool, depth int) (node, error) {
	if depth > 100 {
		return nil, command.Errorf(command.CodeBadValue, "BSON depth of filter is too great")
	}
	nodes := make(and, 0, len(d))
	for _, e := range d {
		n, err := p.clause(e, top, depth)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 1 {
		return nodes[0], nil
	}
	return nodes, nil
}

func (p parser) clause(e bson.E, top bool, depth int) (node, error) {
	if !strings.HasPrefix(e.Key, "$") {
		return p.field(e.Key, e.Value, depth)
	}
	switch e.Key {
	case "$and", "$or", "$nor":
		list, ok := e.Value.(bson.A)
		if !ok {
			return nil, command.Errorf(command.CodeBadValue, "%s must be an array", e.Key)
		}
		if len(list) == 0 {
			return nil, command.Errorf(command.CodeBadValue, "$and/$or/$nor must be a nonempty array")
		}
		nodes := make([]node, len(list))
		for i, item := range list {
			d, ok := item.(bson.D)
			if !ok {
				return nil, command.Errorf(command.CodeBadValue, "$or/$and/$nor entries need to be full objects")
			}
			n, err := p.conjunction(d, top, depth+1)
			if err != nil {
				return nil, err
			}
			nodes[i] = n
		}
		switch e.Key {
		case "$and":
			return and(nodes), nil
		case "$or":
			return or(nodes), nil
		}
		return nor(nodes), nil
	case "$expr":
		if p.opts.Upsert {
			return nil, command.Errorf(command.CodeQueryFeatureNotAllowed, "$expr is not allowed in the query predicate for an upsert")
		}
		x, err := expression.Parse(e.Value)
		if err != nil {
			return nil, err
		}
		return expr{x}, nil
	case "$comment":
		return all{}, nil
	case "$where":
		return p.where(e.Value, top)
	case "$jsonSchema", "$text":
		return nil, command.Errorf(command.CodeNotImplemented, "%s is not implemented by the embedded deployment", e.Key)
	}
	return nil, command.Errorf(command.CodeBadValue, "unknown top level operator: %s", e.Key)
}

func (p parser) field(path string, v any, depth int) (node, error) {
	parts := strings.Split(path, ".")
	switch x := v.(type) {
	case bson.Regex:
		r, err := newRegex(x.Pattern, x.Options)
		if err != nil {
			return nil, err
		}
		return at{parts, r}, nil
	case bson.D:
		if isOperators(x) {
			return p.operators(parts, x, depth)
		}
	}
	return at{parts, p.equal(v)}, nil
}

// operators parses {$gt: 1, $lt: 5} for a path.
func (p parser) operators(parts []string, d bson.D, depth int) (node, error) {
	var nodes and
	for _, e := range d {
		if e.Key == "$options" {
			if _, ok := value.Field(d, "$regex"); !ok {
				return nil, command.Errorf(command.CodeBadValue, "$options needs a $regex")
			}
			continue
		}
		var n node
		var err error
		switch e.Key {
		case "$not":
			switch x := e.Value.(type) {
			case bson.Regex:
				var r *predicate
				r, err = newRegex(x.Pattern, x.Options)
				n = not{at{parts, r}}
			case bson.D:
				if len(x) == 0 {
					return nil, command.Errorf(command.CodeBadValue, "$not cannot be empty")
				}
				if !isOperators(x) {
					return nil, command.Errorf(command.CodeBadValue, "unknown operator: %s", x[0].Key)
				}
				var inner node
				inner, err = p.operators(parts, x, depth+1)
				n = not{inner}
			default:
				return nil, command.Errorf(command.CodeBadValue, "$not needs a regex or a document")
			}
		case "$ne":
			if _, ok := e.Value.(bson.Regex); ok {
				return nil, command.Errorf(command.CodeBadValue, "Can't have regex as arg to $ne.")
			}
			n = not{at{parts, p.equal(e.Value)}}
		case "$nin":
			var in *predicate
			in, err = p.in(e)
			n = not{at{parts, in}}
		case "$all":
			n, err = p.all(parts, e.Value, depth)
		case "$exists":
			n = at{parts, exists}
			if !value.Truthy(e.Value) {
				n = not{n}
			}
		default:
			var pred *predicate
			pred, err = p.predicate(e, d, depth)
			n = at{parts, pred}
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 1 {
		return nodes[0], nil
	}
	return nodes, nil
}

func (p parser) all(parts []string, v any, depth int) (node, error) {
	list, ok := v.(bson.A)
	if !ok {
		return nil, command.Errorf(command.CodeBadValue, "$all needs an array")
	}
	if len(list) == 0 {
		return none{}, nil
	}
	var nodes and
	for _, item := range list {
		switch x := item.(type) {
		case bson.Regex:
			r, err := newRegex(x.Pattern, x.Options)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, at{parts, r})
			continue
		case bson.D:
			if len(x) > 0 && x[0].Key == "$elemMatch" {
				pred, err := p.predicate(x[0], x, depth)
				if err != nil {
					return nil, err
				}
				nodes = append(nodes, at{parts, pred})
				continue
			}
			if isOperators(x) {
				return nil, command.Errorf(command.CodeBadValue, "no $ expressions in $all")
			}
		}
		nodes = append(nodes, at{parts, p.equal(item)})
	}
	return nodes, nil
}

// Predicate parses operators on a bare value, as $pull and arrayFilters have
// them. A document without operators is a filter of the fields of elements.
func Predicate(v any, opts Options) (func(any) (bool, error), error) {
	p := parser{opts: opts}
	var n node
	var err error
	switch x := v.(type) {
	case bson.D:
		if onValue(x) {
			n, err = p.operators(nil, x, 0)
		} else {
			n, err = p.conjunction(x, true, 0)
		}
	default:
		n, err = p.fieldOf(x)
	}
	if err != nil {
		return nil, err
	}
	return func(v any) (bool, error) {
		c := &run{opts: &opts, index: -1}
		ok := n.match(v, c)
		return ok && c.err == nil, c.err
	}, nil
}

func (p parser) fieldOf(v any) (node, error) {
	if r, ok := v.(bson.Regex); ok {
		re, err := newRegex(r.Pattern, r.Options)
		return at{nil, re}, err
	}
	return at{nil, p.equal(v)}, nil
}
