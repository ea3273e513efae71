// Package query implements the query language: filters, sort specifications, projections and collations.
package query

import (
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/pattern"
	"github.com/unified-test-runner/utr/embedded/internal/script"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// Options are the context in which a filter is compiled.
type Options struct {
	expression.Options
	Scripts  *Scripts // for $where; nil if the command does not allow it
	Match    *Filter  // of the find to which a projection belongs
	Upsert   bool     // the filter belongs to an upsert, which does not allow $expr
	Elements bool     // the filter is for elements of arrays in an update
}

// Filter is a parsed filter. It may be used concurrently.
type Filter struct {
	root     node
	id       any  // the value that _id must equal if hasID is set
	hasID    bool // the filter requires an _id
	scripted bool
	search   *search // $text, or nil
	source   bson.D
	opts     Options
}

// Compile parses a filter. Errors are *fault.Error with the server's codes and messages.
func Compile(filter bson.D, opts Options) (*Filter, error) {
	p := &parser{opts: opts}
	f := &Filter{root: p.conjunction(filter), scripted: p.scripted, search: p.search,
		source: filter, opts: opts}
	if v, ok := value.Field(filter, "_id"); ok {
		if required, _ := equalities(value.Doc("_id", v)); len(required) == 1 {
			f.id = required[0].Value
			// An array matches an element, too. Strings that the collation considers equal differ.
			f.hasID = !value.Is[bson.A](f.id) && f.id != nil && value.Equal(opts.Collation.Fold(f.id), f.id)
		}
	}
	return f, p.Err
}

// IsOperator reports whether an operator on a field has a name.
func IsOperator(name string) bool {
	return fault.Exists("condition", name, 0) && name != "$not"
}

// Fields returns the first parts of all paths in a filter.
func Fields(filter bson.D) (names []string) {
	for _, e := range filter {
		list, _ := e.Value.(bson.A)
		for _, item := range list {
			if d, ok := item.(bson.D); ok && strings.HasPrefix(e.Key, "$") {
				names = append(names, Fields(d)...)
			}
		}
		if !strings.HasPrefix(e.Key, "$") {
			name, _, _ := strings.Cut(e.Key, ".")
			names = append(names, name)
		}
	}
	return names
}

// ID returns the value that _id must equal for a document to match, and whether the filter requires one.
func (f *Filter) ID() (any, bool) {
	if f == nil {
		return nil, false
	}
	return f.id, f.hasID
}

// Text reports whether the filter contains $text.
func (f *Filter) Text() bool { return f != nil && f.search != nil }

// Scripted reports whether the filter contains $where.
func (f *Filter) Scripted() bool { return f.scripted }

// Matches reports whether a document matches. Only $expr and $where can fail.
func (f *Filter) Matches(doc bson.D) (bool, error) {
	return f.matches(doc, &run{})
}

func (f *Filter) matches(doc bson.D, c *run) (bool, error) {
	ok := f.root(doc, c)
	return ok && c.err == nil, c.err
}

// Position returns the position of the array element because of which a document matches. The positional operator $ of
// updates and projections stands for it. It is -1 if no condition is on an array.
func (f *Filter) Position(doc bson.D) int {
	c := &run{position: -1}
	f.root(doc, c)
	return c.position
}

// Select returns the documents that match, or all if the filter is nil.
func (f *Filter) Select(docs []bson.D) ([]bson.D, error) {
	if f == nil {
		return docs, nil
	}
	return Select(f, docs, func(d bson.D) bson.D { return d }, 0)
}

// Select returns the items whose documents match, at most limit of them (0: all). It ends when the command is over.
func Select[T any](f *Filter, items []T, doc func(T) bson.D, limit int64) (out []T, err error) {
	c := &run{}
	for _, item := range items {
		ok, err := f.matches(doc(item), c)
		if err == nil {
			err = f.opts.Over()
		}
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, item)
		}
		if ok && int64(len(out)) == limit {
			break
		}
	}
	return out, nil
}

type run struct {
	err      error
	position int // of the latest match in an array, or -1
}

// found records the position of a match.
func (c *run) found(position int, ok bool) bool {
	if ok && position >= 0 {
		c.position = position
	}
	return ok
}

// unrecorded evaluates a condition without recording positions.
func (c *run) unrecorded(n node, doc any) bool {
	defer func(position int) { c.position = position }(c.position)
	return n(doc, c)
}

// node reports whether a document matches a condition.
type node func(doc any, c *run) bool

func and(nodes []node) node {
	return func(doc any, c *run) bool {
		return !slices.ContainsFunc(nodes, func(n node) bool { return !n(doc, c) })
	}
}

func or(nodes []node) node {
	if len(nodes) == 1 {
		return nodes[0]
	}
	return func(doc any, c *run) bool {
		return slices.ContainsFunc(nodes, func(n node) bool { return c.unrecorded(n, doc) })
	}
}

func not(n node) node { return func(doc any, c *run) bool { return !c.unrecorded(n, doc) } }

// at applies a predicate to the values at a path, or without a path to the value itself, as $elemMatch does.
func at(parts []string, p predicate) node {
	if parts == nil {
		return func(v any, _ *run) bool { return p(v) }
	}
	return func(doc any, c *run) bool { return c.found(p.find(doc, parts, false)) }
}

// find reports whether the predicate holds for a value at a path. At the end of the path, an array matches if it or,
// unless whole is set, one of its elements does.
//
// position is where the match is in the first array along the path, -1 without an array.
func (p predicate) find(v any, parts []string, whole bool) (position int, ok bool) {
	if a, isArray := v.(bson.A); isArray {
		return p.inArray(a, parts, whole)
	}
	if len(parts) == 0 {
		return -1, p(v)
	}
	d, _ := v.(bson.D) // another value has no fields
	return p.find(value.Lookup(d, parts[0]), parts[1:], whole)
}

// inArray finds a value in an array: in the fields of its documents, and in the element that a number in the path
// names. The element itself matches if the path ends there.
func (p predicate) inArray(a bson.A, parts []string, whole bool) (position int, ok bool) {
	if len(parts) == 0 {
		if i := slices.IndexFunc(a, p); i >= 0 && !whole {
			return i, true
		}
		return -1, p(a)
	}
	index, isIndex := value.Position(parts[0])
	for i, item := range a {
		_, isDocument := item.(bson.D)
		if isDocument {
			if _, ok := p.find(item, parts, whole); ok {
				return i, true
			}
		}
		position, ok = -1, false
		switch {
		case !isIndex || i != index:
		case len(parts) == 1:
			ok = p(item)
		case isDocument || value.Is[bson.A](item):
			position, ok = p.find(item, parts[1:], whole)
		}
		if ok {
			return position, true
		}
	}
	return -1, false
}

// IsOperators reports whether a document in a filter is a list of operators, such as {$gt: 1}.
func IsOperators(d bson.D) bool {
	return len(d) > 0 && strings.HasPrefix(d[0].Key, "$") && d[0].Key != "$ref" && d[0].Key != "$id" && d[0].Key != "$db"
}

type parser struct {
	opts  Options
	depth int
	path  string // of the operators that are being parsed
	// inElement is set in the conditions of $elemMatch on fields.
	inElement bool
	scripted  bool
	search    *search // $text, if the filter contains it
	fault.First
}

// conjunction parses a document of conditions.
func (p *parser) conjunction(d bson.D) node {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > 101 {
		p.Fail(fault.BadValue, "BSON depth of filter is too great")
		return nil
	}
	nodes := make([]node, len(d))
	for i, e := range d {
		nodes[i] = p.clause(e)
	}
	return and(nodes)
}

// wholeDocument are the operators on the top-level document, with the codes of the errors for them within elements.
var wholeDocument = map[string]int32{"$expr": fault.QueryFeatureNotAllowed, "$where": fault.BadValue,
	"$text": fault.BadValue}

func (p *parser) clause(e bson.E) node {
	code, whole := wholeDocument[e.Key]
	p.Refuse(p.inElement && whole, fault.BadValue, "%s can only be applied to the top-level document", e.Key)
	p.Refuse(p.opts.Elements && whole, code, "%s is not allowed in this context", e.Key)
	switch e.Key {
	case "$and":
		return and(p.list(e))
	case "$or":
		return or(p.list(e))
	case "$nor":
		return not(or(p.list(e)))
	case "$comment":
		return and(nil)
	case "$text":
		return p.text(e.Value)
	case "$jsonSchema":
		s := p.schema(e.Value)
		return func(doc any, _ *run) bool { return s.failures(doc) == nil }
	case "$expr":
		return p.expr(e.Value)
	case "$where":
		return p.where(e.Value)
	}
	p.Note(fault.Refusal("filter", e.Key, p.opts.Wire))
	p.Refuse(strings.HasPrefix(e.Key, "$") && !version.Of(p.opts.Wire).DollarFields, fault.BadValue,
		"unknown top level operator: %s", e.Key)
	p.Refuse(strings.HasPrefix(e.Key, "$"), fault.BadValue, "unknown top level operator: %s. "+
		"If you have a field name that starts with a '$' symbol, consider using $getField or $setField.", e.Key)
	return p.field(strings.Split(e.Key, "."), e.Value)
}

// list parses the conditions of $and, $or and $nor.
func (p *parser) list(e bson.E) []node {
	list, ok := e.Value.(bson.A)
	p.Refuse(!ok, fault.BadValue, "%s must be an array", e.Key)
	p.Refuse(len(list) == 0, fault.BadValue, "$and/$or/$nor must be a nonempty array")
	nodes := make([]node, len(list))
	for i, item := range list {
		d, ok := item.(bson.D)
		p.Refuse(!ok, fault.BadValue, "$or/$and/$nor entries need to be full objects")
		nodes[i] = p.conjunction(d)
	}
	return nodes
}

func (p *parser) expr(v any) node {
	p.Refuse(p.opts.Upsert, fault.QueryFeatureNotAllowed, "$expr is not allowed in the query predicate for an upsert")
	x, err := expression.Parse(v, p.opts.Options)
	p.Note(err)
	let := p.opts.Let
	return func(doc any, c *run) bool {
		r, err := x.Eval(expression.NewEnv(doc, let))
		if err != nil {
			if c.err == nil {
				c.err = err
			}
			return false
		}
		return value.Truthy(r)
	}
}

// field parses the condition on a field: a value or a document of operators.
func (p *parser) field(parts []string, v any) node {
	if d, ok := v.(bson.D); ok && IsOperators(d) {
		return p.operators(parts, d)
	}
	return at(parts, p.equal(v))
}

// predicate tests one value, which may be value.Missing.
type predicate func(v any) bool

// equal parses a value in a filter. It may be a regular expression.
func (p *parser) equal(x any) predicate {
	if r, ok := x.(bson.Regex); ok {
		return p.regex(r.Pattern, r.Options)
	}
	return p.equality(x)
}

// equality is $eq. null also matches a missing field.
func (p *parser) equality(x any) predicate {
	c := p.opts.Collation
	x = c.Fold(x)
	_, undefined := x.(bson.Undefined)
	p.Refuse(undefined, fault.BadValue, "cannot compare to undefined")
	return func(v any) bool {
		if x == nil {
			return value.IsNull(v)
		}
		return value.Equal(c.Fold(v), x)
	}
}

// comparisons maps the ordering operators to conditions on the result of a comparison.
var comparisons = map[string]func(c int) bool{
	"$gt":  func(c int) bool { return c > 0 },
	"$gte": func(c int) bool { return c >= 0 },
	"$lt":  func(c int) bool { return c < 0 },
	"$lte": func(c int) bool { return c <= 0 },
}

// compare is $gt, $gte, $lt or $lte.
func (p *parser) compare(e bson.E) predicate {
	holds := comparisons[e.Key]
	collation, rank, nan := p.opts.Collation, value.Rank(e.Value), isNaN(e.Value)
	x := collation.Fold(e.Value)
	_, undefined := x.(bson.Undefined)
	p.Refuse(value.Is[bson.Regex](x), fault.BadValue, "Can't have RegEx as arg to predicate over field '%s'.", p.path)
	p.Refuse(undefined, fault.BadValue, "cannot compare to undefined")
	return func(v any) bool {
		if x == nil {
			return holds(0) && value.IsNull(v)
		}
		if value.IsMissing(v) {
			return false
		}
		switch x.(type) {
		case bson.MinKey, bson.MaxKey: // compared with every type
		default:
			if value.Rank(v) != rank || isNaN(v) != nan {
				return false
			}
		}
		return holds(value.Compare(collation.Fold(v), x))
	}
}

func isNaN(v any) bool { return math.IsNaN(value.Float(v)) }

// in is $in. $nin negates it.
func (p *parser) in(e bson.E) predicate {
	list, ok := e.Value.(bson.A)
	p.Refuse(!ok, fault.BadValue, "%s needs an array", e.Key)
	alternatives := make([]predicate, len(list))
	for i, item := range list {
		d, _ := item.(bson.D)
		p.Refuse(IsOperators(d), fault.BadValue, "cannot nest $ under %s", e.Key)
		alternatives[i] = p.equal(item)
	}
	return func(v any) bool {
		return slices.ContainsFunc(alternatives, func(x predicate) bool { return x(v) })
	}
}

// regex matches a regular expression.
func (p *parser) regex(source, options string) predicate {
	p.Refuse(strings.Trim(options, "imsxu") != "", 51108, "invalid flag in regex options: %s", options)
	re, err := pattern.Compile(source, options)
	p.Refuse(err != nil, 51091, "Regular expression is invalid: %v", err)
	as := bson.Regex{Pattern: source, Options: options}
	return func(v any) bool {
		switch x := v.(type) {
		case string:
			return re.Matches(x)
		case bson.Symbol:
			return re.Matches(string(x))
		case bson.Regex:
			return x == as
		}
		return false
	}
}

// types is $type with one type or an array of them, each a name or a number.
func (p *parser) types(v any) predicate {
	list, ok := v.(bson.A)
	if !ok {
		list = bson.A{v}
	}
	p.Refuse(len(list) == 0, fault.FailedToParse, "$type must match at least one type")
	var names []string
	for _, item := range list {
		_, isName := item.(string)
		name := value.TypeNamed(item)
		switch {
		case item == "number":
			names = append(names, "int", "long", "double", "decimal")
			continue
		case !isName && !value.IsNumber(item):
			p.Fail(fault.TypeMismatch, "type must be represented as a number or a string")
		case name == "" && isName:
			p.Fail(fault.BadValue, "Unknown type name alias: %s", item)
		case name == "":
			p.Fail(fault.BadValue, "Invalid numerical type code: %s", value.Text(item))
		}
		names = append(names, name)
	}
	return func(v any) bool { return !value.IsMissing(v) && slices.Contains(names, value.TypeName(v)) }
}

// Scripts is the environment of $where functions.
type Scripts struct {
	Disabled bool                      // the server has no script engine
	Sleep    func(time.Duration) error // the function sleep; its error ends the match
	// Stopped returns an error if the operation is over; the error ends the match. It is called from another
	// goroutine while a function runs.
	Stopped func() error
}

// longestSleep limits one call of sleep.
const longestSleep = 24 * time.Hour

// where parses $where: an expression or a function that is evaluated for each document.
func (p *parser) where(v any) node {
	s := p.opts.Scripts
	switch {
	case s == nil:
		p.Fail(fault.BadValue, "$where is not allowed in this context")
		return nil
	case s.Disabled:
		p.Fail(fault.BadValue, "no globalScriptEngine in $where parsing")
	}
	source, ok := v.(string)
	if code, isCode := v.(bson.JavaScript); isCode {
		source, ok = string(code), true
	}
	p.Refuse(!ok, fault.BadValue, "$where got bad type")
	f, err := script.ParseCondition(source)
	p.Note(err)
	p.scripted = true
	return func(doc any, c *run) bool {
		if c.err != nil {
			return false
		}
		var r any
		r, c.err = f.Call(s.Stopped, doc, map[string]script.Builtin{"sleep": s.sleep})
		return c.err == nil && r == true
	}
}

// sleep is the JavaScript function sleep(milliseconds).
func (s *Scripts) sleep(args []any) (any, error) {
	ms := math.NaN()
	if len(args) == 1 {
		ms, _ = args[0].(float64)
	}
	if !(ms > 0) {
		return nil, nil
	}
	ms = min(ms, float64(longestSleep/time.Millisecond))
	return nil, s.Sleep(time.Duration(ms * float64(time.Millisecond)))
}
