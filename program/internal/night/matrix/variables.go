package matrix

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// variables are the values of ${NAME} in the strings of a file. The values in set take precedence over the environment,
// and the environment over the values of the file.
type variables struct {
	set    map[string]string
	getenv func(string) string
	file   map[string]string // nil if the file cannot define variables
	used   map[string]bool
}

// reference also matches an unclosed reference, and the escape $${.
var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reference    = regexp.MustCompile(`\$\$\{|\$\{[^}]*\}?`)
)

// look returns the value of a variable. It ignores empty ones of the environment.
func (v *variables) look(name string) (value string, found bool) {
	v.used[name] = true
	if value, found = v.set[name]; found {
		return value, true
	}
	if value = v.getenv(name); value != "" {
		return value, true
	}
	value, found = v.file[name]
	return value, found
}

// fill replaces ${NAME} and ${NAME:-default} in a text, and $${ with ${. A default cannot contain variables, and also
// replaces an empty value.
func (r *reader) fill(at source.Position, text string) string {
	return reference.ReplaceAllStringFunc(text, func(part string) string {
		if part == "$${" {
			return "${"
		}
		inside, closed := strings.CutSuffix(part[len("${"):], "}")
		if !closed {
			r.add(at, "${ is not closed by }; write $${ for ${ itself")
			return ""
		}
		name, fallback, hasDefault := strings.Cut(inside, ":-")
		if !variableName.MatchString(name) {
			r.add(at, "${%s} is not a variable: it must be ${NAME} or ${NAME:-default}; write $${ for ${ itself", inside)
			return ""
		}
		value, known := r.look(name)
		switch {
		case hasDefault && value == "":
			return fallback
		case !known:
			how := "in the environment"
			if r.file != nil {
				how = "with --set " + name + "=VALUE, in the environment, under variables,"
			}
			r.add(at, "the variable %s has no value: set it %s or write ${%s:-default}%s",
				name, how, name, suggest.Hint(name, slices.Concat(slices.Sorted(maps.Keys(r.file)),
					slices.Sorted(maps.Keys(r.set)))))
		}
		return value
	})
}

// declare reads the variables of the file. Each may use those before it.
func (r *reader) declare(block *source.Value) {
	if block == nil {
		return
	}
	if block.Kind != source.Document {
		r.add(block.Position, "variables must be a document of names and values")
		return
	}
	for _, f := range block.Fields {
		switch {
		case !variableName.MatchString(f.Key):
			r.add(f.KeyPosition, "%q cannot name a variable: use letters, digits and _", f.Key)
		case f.Value.Kind != source.String:
			r.add(f.Value.Position, "the variable %s must be a string, a number or a boolean", f.Key)
		default:
			r.file[f.Key] = r.fill(f.Value.Position, f.Value.String)
		}
	}
}

func (r *reader) unused(file source.Position) {
	for _, name := range slices.Sorted(maps.Keys(r.set)) {
		if !r.used[name] {
			r.add(file, "--set %s: the file does not use ${%s}%s", name, name,
				suggest.Hint(name, slices.Sorted(maps.Keys(r.used))))
		}
	}
}

func (r *reader) replace(value *source.Value) *source.Value {
	out := *value
	switch value.Kind {
	case source.String:
		out.String = r.fill(value.Position, value.String)
	case source.Array:
		out.Items = make([]*source.Value, len(value.Items))
		for i, item := range value.Items {
			out.Items[i] = r.replace(item)
		}
	case source.Document:
		out.Fields = make([]source.Field, len(value.Fields))
		for i, f := range value.Fields {
			out.Fields[i] = source.Field{Key: f.Key, KeyPosition: f.KeyPosition, Value: r.replace(f.Value)}
		}
	}
	return &out
}
