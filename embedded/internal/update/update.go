// Package update applies updates to documents: operators, replacements and pipelines.
package update

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/pipeline"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// Options are the context in which an update is compiled.
type Options struct {
	query.Options
	Constants    bson.D // variables of a pipeline update
	ArrayFilters bson.A
}

// Update is a parsed update. It may be used concurrently.
type Update struct {
	pipeline    *pipeline.Pipeline // nil for other updates
	replacement bson.D             // nil for other updates
	steps       []step
	filters     map[string]*query.Filter // array filters by identifier
}

// step is one operator on one path.
type step struct {
	op   string
	path string
	to   string // of $rename
	operator
	do       modifier
	position int      // of the match, for the positional operator $
	taken    []string // the path so far
	run      *run
}

// run is what the steps of an update have done to a document.
type run struct {
	doc      bson.D // unchanged
	changed  []change
	modified bool // even if the result is equal
}

// change is what a step has changed.
type change struct{ step, path string }

type parser struct {
	*Update
	opts Options
	used map[string]bool // identifiers of array filters in paths
	fault.First
}

// Compile parses an update: a pipeline or a document. Errors are *fault.Error with the server's codes.
func Compile(v any, opts Options) (*Update, error) {
	p := &parser{Update: &Update{filters: map[string]*query.Filter{}}, opts: opts, used: map[string]bool{}}
	list, isList := v.(bson.A)
	u, isDocument := v.(bson.D)
	p.arrayFilters()
	p.Refuse(isDocument && len(opts.Constants) > 0, 51198, "Constant values may only be specified for pipeline updates")
	switch {
	case isList:
		p.Refuse(len(opts.ArrayFilters) > 0, fault.FailedToParse, "Cannot specify arrayFilters on a pipeline-style update")
		stages := opts.Options
		stages.Let = slices.Concat(stages.Let, opts.Constants)
		var err error
		p.pipeline, err = pipeline.CompileUpdate(list, stages)
		p.Note(err)
	case !isDocument:
		p.Fail(fault.FailedToParse, "Update argument must be either an object or an array")
	case len(u) > 0 && strings.HasPrefix(u[0].Key, "$"):
		for _, e := range u {
			p.operator(e)
		}
		// The server applies updates in the order of the field names.
		slices.SortStableFunc(p.steps, func(a, b step) int { return strings.Compare(a.path, b.path) })
		for _, name := range slices.Sorted(maps.Keys(p.filters)) {
			p.Refuse(!p.used[name], fault.FailedToParse,
				"The array filter for identifier '%s' was not used in the update %s", name, value.Text(u))
		}
	default:
		for _, e := range u {
			p.Refuse(strings.HasPrefix(e.Key, "$"), fault.DollarPrefixedFieldName,
				"The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", e.Key, e.Key)
		}
		p.Refuse(len(opts.ArrayFilters) > 0, fault.FailedToParse, "Cannot specify arrayFilters on a replacement-style update")
		p.replacement = append(bson.D{}, u...)
	}
	return p.Update, p.Err
}

func (p *parser) operator(e bson.E) {
	op, known := operators[e.Key]
	fields, ok := e.Value.(bson.D)
	switch {
	case !known:
		p.Fail(fault.FailedToParse,
			"Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an array", e.Key)
		return
	case ok && len(fields) == 0 && !version.Of(p.opts.Wire).DollarFields:
		p.Fail(fault.FailedToParse, "'%s' is empty. You must specify a field like so: {%s: {<field>: ...}}", e.Key, e.Key)
	case !ok:
		p.Fail(fault.FailedToParse,
			"Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not {%s: %s}",
			value.TypeName(e.Value), e.Key, value.Text(e.Value))
	}
	for _, f := range fields {
		p.path(f.Key)
		s := step{op: e.Key, path: f.Key, operator: op, do: op.modify(p, f)}
		p.identifiers(f.Key)
		if s.do == nil {
			s.to, _ = f.Value.(string)
		}
		for _, other := range p.steps {
			p.conflict(f.Key, other)
			if s.to != "" {
				p.conflict(s.to, other)
			}
		}
		p.steps = append(p.steps, s)
	}
}

// conflict refuses a path of which another step changes a part, or that finds elements of an array in another way.
func (p *parser) conflict(path string, other step) {
	for _, changed := range []string{other.path, other.to} {
		p.Refuse(changed != "" && overlap(changed, path), fault.ConflictingUpdateOperators, conflicts, path,
			min(path, changed))
		a, b := strings.Split(path, "."), strings.Split(changed, ".")
		i := 0
		for i < min(len(a), len(b)) && a[i] == b[i] {
			i++
		}
		if i < min(len(a), len(b)) {
			_, one := isElements(a[i])
			_, another := isElements(b[i])
			p.Refuse(one != another, fault.ConflictingUpdateOperators, conflicts, path, strings.Join(a[:i], "."))
		}
	}
}

const conflicts = "Updating the path '%s' would create a conflict at '%s'"

// identifiers notes the identifiers of array filters in a path.
func (p *parser) identifiers(path string) {
	for _, part := range strings.Split(path, ".") {
		name, elements := isElements(part)
		p.Refuse(elements && name != "" && p.filters[name] == nil, fault.BadValue,
			"No array filter found for identifier '%s' in path '%s'", name, path)
		p.used[name] = true
	}
}

// path checks a path.
func (p *parser) path(path string) {
	p.Refuse(path == "", fault.EmptyFieldName, "An empty update path is not valid.")
	positional := 0
	for i, part := range strings.Split(path, ".") {
		_, elements := isElements(part)
		p.Refuse(part == "", fault.EmptyFieldName,
			"The update path '%s' contains an empty field name, which is not allowed.", path)
		p.Refuse(i == 0 && elements, fault.BadValue,
			"Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%s'", path)
		p.Refuse(i == 0 && part == "$", fault.BadValue,
			"Cannot have positional (i.e. '$') element in the first position in path '%s'", path)
		if part == "$" {
			positional++
			p.Refuse(positional > 1, fault.BadValue, "Too many positional (i.e. '$') elements found in path '%s'", path)
			continue
		}
		p.Refuse(strings.HasPrefix(part, "$") && !elements, fault.DollarPrefixedFieldName,
			"The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", part, path)
	}
}

// isElements reports whether a part of a path is $[] or $[identifier].
func isElements(part string) (identifier string, ok bool) {
	identifier, ok = strings.CutPrefix(part, "$[")
	if !ok || !strings.HasSuffix(part, "]") {
		return "", false
	}
	return strings.TrimSuffix(identifier, "]"), true
}

// overlap reports whether two paths are equal or one is a part of the other.
func overlap(a, b string) bool {
	return strings.HasPrefix(a+".", b+".") || strings.HasPrefix(b+".", a+".")
}

// arrayFilters parses the array filters.
func (p *parser) arrayFilters() {
	for _, f := range p.opts.ArrayFilters {
		d, _ := f.(bson.D)
		filter, err := query.Compile(d, p.elements())
		p.Note(fault.Within("Error parsing array filter", err))
		names := query.Fields(d)
		for _, name := range names {
			p.Refuse(name != names[0], fault.FailedToParse,
				"Error parsing array filter :: caused by :: Expected a single top-level field name, found '%s' and '%s'",
				names[0], name)
			p.Refuse(!identifier.MatchString(name), fault.BadValue, "Error parsing array filter :: caused by :: "+
				"The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '%s'", name)
		}
		if names == nil {
			p.Fail(fault.FailedToParse, "Cannot use an expression without a top-level field name in arrayFilters")
			return
		}
		p.Refuse(p.filters[names[0]] != nil, fault.FailedToParse,
			"Found multiple array filters with the same top-level field name %s", names[0])
		p.filters[names[0]] = filter
	}
}

// identifier is what the name of an array filter must match.
var identifier = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// elements returns the options of a filter for elements of an array.
func (p *parser) elements() query.Options {
	return query.Options{Elements: true,
		Options: expression.Options{Collation: p.opts.Collation, Wire: p.opts.Wire, Stopped: p.opts.Stopped}}
}

// Replaces reports whether the update replaces documents.
func (u *Update) Replaces() bool { return u.replacement != nil }

// Apply returns the updated document and does not change doc. insert means that an upsert inserts the document. match
// is the filter because of which doc is updated, for the positional operator; it may be nil. modified reports that the
// document counts as modified even if it is equal.
func (u *Update) Apply(doc bson.D, insert bool, match *query.Filter) (out bson.D, modified bool, err error) {
	r := &run{doc: doc}
	switch {
	case u.pipeline != nil:
		var docs []bson.D
		if docs, err = u.pipeline.Apply(nil, []bson.D{doc}); err == nil {
			out = docs[0] // its stages return one document for each
		}
	case u.replacement != nil:
		out = u.replace(doc)
	default:
		out, err = u.modify(doc, insert, match, r)
	}
	if err == nil {
		out, err = u.sameID(doc, out)
	}
	return out, r.modified, err
}

// sameID returns an error if an update has changed the _id of a document.
func (u *Update) sameID(doc, out bson.D) (bson.D, error) {
	id, had := value.Field(doc, "_id")
	newID, has := value.Field(out, "_id")
	switch {
	case value.Is[bson.A](newID) && (u.replacement != nil || u.pipeline != nil && !value.Equal(doc, out)):
		return nil, fault.Errorf(fault.NotSingleValueField, "After applying the update to the document, the (immutable) "+
			"field '_id' was found to be an array or array descendant.")
	case !had, has && value.Key(id) == value.Key(newID):
		return out, nil
	case !has && u.pipeline != nil:
		return append(value.Doc("_id", id), out...), nil
	case has && (u.replacement != nil || u.pipeline != nil):
		return nil, fault.Errorf(fault.ImmutableField,
			"After applying the update, the (immutable) field '_id' was found to have been altered to _id: %s",
			value.Text(newID))
	}
	return nil, fault.Errorf(fault.ImmutableField,
		"Performing an update on the path '_id' would modify the immutable field '_id'")
}

// replace returns the replacement with _id first: its own, or else the document's.
func (u *Update) replace(doc bson.D) bson.D {
	id, ok := value.Field(u.replacement, "_id")
	if !ok {
		if id, ok = value.Field(doc, "_id"); !ok {
			return slices.Clone(u.replacement)
		}
	}
	return append(value.Doc("_id", id), value.Delete(u.replacement, "_id")...)
}

func (u *Update) modify(doc bson.D, insert bool, match *query.Filter, r *run) (bson.D, error) {
	out := value.CloneDoc(doc)
	for _, s := range u.steps {
		s.run = r
		if s.op == "$setOnInsert" && !insert {
			continue
		}
		if s.position = -1; match != nil && !insert && strings.Contains(s.path, ".$") {
			s.position = match.Position(doc)
		}
		var v any
		var err error
		if s.to != "" {
			v, err = u.rename(out, s)
		} else {
			v, err = u.change(out, strings.Split(s.path, "."), s)
		}
		if e, ok := err.(*fault.Error); ok {
			id := "no id"
			if v, ok := value.Field(doc, "_id"); ok {
				id = "_id: " + value.Text(v)
			}
			e.Message = strings.ReplaceAll(e.Message, theID, id)
		}
		if err != nil {
			return nil, err
		}
		out = v.(bson.D)
	}
	return out, nil
}
