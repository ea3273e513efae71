// Package update applies updates to documents: operators, replacements and pipelines.
package update

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Options are the context in which an update is compiled.
type Options struct {
	ArrayFilters bson.A
	Collation    query.Collation
	// Transform is a compiled pipeline update; nil for other updates.
	Transform func(bson.D) (bson.D, error)
}

// Update is a parsed update. It may be used concurrently.
type Update struct {
	opts        Options
	source      bson.D
	replacement bson.D // nil for other updates
	steps       []step
	filters     map[string]*query.Filter // array filters by identifier
}

// step is one operator on one path.
type step struct {
	op         string
	path       string
	do         modifier
	keepsShape bool
}

// Compile parses an update document, which it ignores if Options.Transform is set. Errors are *command.Error with
// the server's codes.
func Compile(u bson.D, opts Options) (*Update, error) {
	up := &Update{opts: opts, source: u, filters: map[string]*query.Filter{}}
	if opts.Transform != nil {
		return up, nil
	}
	if len(u) == 0 || !strings.HasPrefix(u[0].Key, "$") {
		for _, e := range u {
			if strings.HasPrefix(e.Key, "$") {
				return nil, command.Errorf(command.CodeDollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", e.Key, e.Key)
			}
		}
		if len(opts.ArrayFilters) > 0 {
			return nil, command.Errorf(command.CodeFailedToParse, "Cannot specify arrayFilters on a replacement-style update")
		}
		up.replacement = append(bson.D{}, u...)
		return up, nil
	}
	used := map[string]bool{}
	for _, e := range u {
		op, ok := operators[e.Key]
		if !ok {
			return nil, command.Errorf(command.CodeFailedToParse, "Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an array", e.Key)
		}
		fields, ok := e.Value.(bson.D)
		if !ok {
			return nil, command.Errorf(command.CodeFailedToParse, "Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not {%s: %s}", value.TypeName(e.Value), e.Key, value.Text(e.Value))
		}
		for _, f := range fields {
			if err := checkPath(f.Key); err != nil {
				return nil, err
			}
			do, err := op.modify(f)
			if err != nil {
				return nil, err
			}
			for _, other := range up.steps {
				if err := conflict(other.path, f.Key); err != nil {
					return nil, err
				}
			}
			up.steps = append(up.steps, step{e.Key, f.Key, do, op.keepsShape})
			for _, part := range strings.Split(f.Key, ".") {
				if name, _ := isElements(part); name != "" {
					used[name] = true
				}
			}
		}
	}
	// The server applies updates in the order of the field names.
	slices.SortStableFunc(up.steps, func(a, b step) int { return strings.Compare(a.path, b.path) })
	if err := up.arrayFilters(opts.ArrayFilters, used); err != nil {
		return nil, err
	}
	return up, nil
}

func checkPath(path string) error {
	if path == "" {
		return command.Errorf(command.CodeEmptyFieldName, "An empty update path is not valid.")
	}
	for i, part := range strings.Split(path, ".") {
		_, elements := isElements(part)
		switch {
		case part == "":
			return command.Errorf(command.CodeEmptyFieldName, "The update path '%s' contains an empty field name, which is not allowed.", path)
		case i == 0 && (part == "$" || elements):
			return command.Errorf(command.CodeBadValue, "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%s'", path)
		case part == "$":
			return command.Errorf(command.CodeBadValue, "The positional operator did not find the match needed from the query.")
		case strings.HasPrefix(part, "$") && !elements:
			return command.Errorf(command.CodeDollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", part, path)
		}
	}
	return nil
}

// isElements reports whether a part of a path is $[] or $[identifier].
func isElements(part string) (identifier string, ok bool) {
	identifier, ok = strings.CutPrefix(part, "$[")
	if !ok || !strings.HasSuffix(part, "]") {
		return "", false
	}
	return strings.TrimSuffix(identifier, "]"), true
}

func conflict(other, path string) error {
	if other != path && !strings.HasPrefix(other, path+".") && !strings.HasPrefix(path, other+".") {
		return nil
	}
	return command.Errorf(command.CodeConflictingUpdateOperators, "Updating the path '%s' would create a conflict at '%s'", path, min(path, other))
}

// arrayFilters parses the array filters. used contains the identifiers in the paths.
func (u *Update) arrayFilters(filters bson.A, used map[string]bool) error {
	for _, f := range filters {
		d, ok := f.(bson.D)
		if !ok || len(d) == 0 {
			return command.Errorf(command.CodeFailedToParse, "Cannot use an expression without a top-level field name in arrayFilters")
		}
		name, _, _ := strings.Cut(d[0].Key, ".")
		for _, e := range d {
			if top, _, _ := strings.Cut(e.Key, "."); top != name {
				return command.Errorf(command.CodeFailedToParse, "Error parsing array filter :: caused by :: Expected a single top-level field name, found '%s' and '%s'", name, top)
			}
		}
		if !used[name] {
			return command.Errorf(command.CodeFailedToParse, "The array filter for identifier '%s' was not used in the update %s", name, value.Text(u.source))
		}
		if u.filters[name] != nil {
			return command.Errorf(command.CodeFailedToParse, "Found multiple array filters with the same top-level field name %s", name)
		}
		var err error
		if u.filters[name], err = query.Compile(d, query.Options{Collation: u.opts.Collation}); err != nil {
			return err
		}
	}
	for name := range used {
		if u.filters[name] == nil {
			return command.Errorf(command.CodeBadValue, "No array filter found for identifier '%s' in path", name)
		}
	}
	return nil
}

// Replaces reports whether the update replaces documents.
func (u *Update) Replaces() bool { return u.replacement != nil }

// Apply returns the updated document and does not change doc. insert means that an upsert inserts the document.
func (u *Update) Apply(doc bson.D, insert bool) (bson.D, error) {
	var out bson.D
	var err error
	switch {
	case u.opts.Transform != nil:
		out, err = u.opts.Transform(doc)
	case u.replacement != nil:
		out = u.replace(doc)
	default:
		out, err = u.modify(doc, insert)
	}
	if err != nil {
		return nil, err
	}
	id, had := value.Field(doc, "_id")
	newID, has := value.Field(out, "_id")
	switch {
	case !had, has && value.Key(id) == value.Key(newID):
		return out, nil
	case !has && u.opts.Transform != nil:
		return append(bson.D{{Key: "_id", Value: id}}, out...), nil
	case has && (u.replacement != nil || u.opts.Transform != nil):
		return nil, command.Errorf(command.CodeImmutableField, "After applying the update, the (immutable) field '_id' was found to have been altered to _id: %s", value.Text(newID))
	}
	return nil, command.Errorf(command.CodeImmutableField, "Performing an update on the path '_id' would modify the immutable field '_id'")
}

// replace returns the replacement with _id first: its own, or else the document's.
func (u *Update) replace(doc bson.D) bson.D {
	id, ok := value.Field(u.replacement, "_id")
	if !ok {
		if id, ok = value.Field(doc, "_id"); !ok {
			return slices.Clone(u.replacement)
		}
	}
	return append(bson.D{{Key: "_id", Value: id}}, value.Delete(u.replacement, "_id")...)
}

func (u *Update) modify(doc bson.D, insert bool) (bson.D, error) {
	out := value.CloneDoc(doc)
	for _, s := range u.steps {
		if s.op == "$setOnInsert" && !insert {
			continue
		}
		v, err := u.change(out, strings.Split(s.path, "."), 0, s)
		if e, ok := err.(*command.Error); ok {
			e.Message = strings.ReplaceAll(e.Message, theID, value.Text(value.Get(doc, "_id")))
		}
		if err != nil {
			return nil, err
		}
		out = v.(bson.D)
	}
	return out, nil
}
