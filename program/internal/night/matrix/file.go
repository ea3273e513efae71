// Package matrix reads matrix files: the product of clusters, engines, suites and options, with exclusions and
// inclusions, is a list of cells. The settings of a cell are flags of utr run. That command checks their values. The
// package starts nothing and reads no other files.
//
// It also reads engines files. They name drivers in other processes.
//
// docs/your-night.md describes matrix files, docs/driver/engines.md engines files.
package matrix

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// File is a matrix file.
type File struct {
	// Cells has at least one cell. They are ordered by cluster, then engine, suites and options, with included
	// cells at the end.
	Cells    []Cell
	Excluded []Excluded
}

// Excluded is a cell that the file excludes.
type Excluded struct{ Cell, Reason string }

// Known has what a matrix file can name.
type Known struct {
	// Versions returns the versions of an engine that NAME@PATTERN can match.
	Versions func(engine string) []string
	// Check checks a value of a flag of utr run, or with "" for the flag a path of suites. It may be nil.
	Check func(flag, value string) error
}

// Parse parses a matrix file. Variables in set take precedence over the environment and the file; an unused one is
// a problem. The error lists all problems in the order of the file, one a line; then the file has the cells whose parts
// have none. It is nil if the file is not a matrix file at all. Parse is safe for concurrent use.
func Parse(name string, data []byte, set map[string]string, getenv func(string) string, known Known) (*File, error) {
	root, err := source.ParseYAML(name, data)
	if err != nil {
		return nil, err
	}
	root = root.AsWritten()
	r := &reader{variables: variables{set: set, getenv: getenv, file: map[string]string{}, used: map[string]bool{}},
		Known: known}
	if !r.document(root, "a matrix file",
		append(axisNames[:], "description", "variables", "defaults", "include", "exclude")) {
		return nil, r.err()
	}
	r.declare(root.Get("variables"))
	filled := *root
	filled.Fields = slices.DeleteFunc(slices.Clone(root.Fields), func(f source.Field) bool { return f.Key == "variables" })
	root = r.replace(&filled)
	r.unused(source.Position{File: name, Line: 1, Column: 1})

	f := &File{}
	r.text(root.Get("description"), "description") // only for readers of the file
	before := len(r.problems)
	r.defaults = r.settings(root.Get("defaults"), "defaults", nil)
	badDefaults := len(r.problems) > before
	for a := range axisCount {
		r.top[a] = r.parts(a, root.Get(axisNames[a]), nil)
	}
	if root.Get("engines") == nil {
		r.top[engines] = r.engine("reference", "reference", root.Position, nil)
	}
	if root.Get("options") == nil {
		r.top[options] = []part{{at: root.Position}}
	}
	cells := r.exclude(f, r.product(r.top, source.Position{}), root.Get("exclude"))
	cells = append(cells, r.include(root.Get("include"))...)
	if len(r.problems) == 0 && len(cells) == 0 {
		r.add(root.Position, "the matrix has no cells: %s", r.why(len(f.Excluded)))
	}
	r.distinct(cells)
	if f.Cells = cells; badDefaults {
		f.Cells = nil
	}
	return f, r.err()
}

type reader struct {
	problems
	variables
	Known
	defaults []setting
	top      [axisCount][]part // the axes of the file
}

type problems []source.Error

func (p *problems) add(at source.Position, format string, args ...any) {
	*p = append(*p, source.Error{Position: at, Message: fmt.Sprintf(format, args...)})
}

// err returns all problems, each once: a problem of a part recurs in each of its cells.
func (p *problems) err() error {
	slices.SortStableFunc(*p, func(a, b source.Error) int { return a.Position.Compare(b.Position) })
	seen := map[source.Error]bool{}
	var all []error
	for _, one := range *p {
		if !seen[one] {
			seen[one] = true
			all = append(all, &one)
		}
	}
	return errors.Join(all...)
}

func (r *reader) why(excluded int) string {
	for a := range axisCount {
		if len(r.top[a]) == 0 {
			return "it names no " + axisNames[a]
		}
	}
	return fmt.Sprintf("all %d are excluded", excluded)
}

// document checks that a value is a document and has only known keys.
func (r *reader) document(v *source.Value, what string, known []string) bool {
	if v.Kind != source.Document {
		r.add(v.Position, "%s must be a document with some of the keys %s", what, strings.Join(known, ", "))
		return false
	}
	for _, f := range v.Fields {
		if slices.Contains(known, f.Key) {
			continue
		}
		r.add(f.KeyPosition, "%s has no key %q%s", what, f.Key,
			cmp.Or(suggest.Hint(f.Key, known), "; it has "+strings.Join(known, ", ")))
	}
	return true
}

// text reads an optional scalar.
func (r *reader) text(v *source.Value, what string) (string, bool) {
	if v == nil {
		return "", false
	}
	if v.Kind != source.String {
		r.add(v.Position, "%s must be a string", what)
	} else if v.String == "" {
		r.add(v.Position, "%s is empty", what)
	}
	return v.String, v.String != ""
}

// texts reads a scalar, or a list of scalars.
func (r *reader) texts(v *source.Value, what string) (all []string) {
	items := []*source.Value{v}
	if v.Kind == source.Array {
		items = v.Items
	}
	if len(items) == 0 {
		r.add(v.Position, "%s is an empty list", what)
	}
	for _, item := range items {
		if s, ok := r.text(item, what); ok {
			all = append(all, s)
		}
	}
	return all
}

// list returns the elements of a list. A single value is a list of one.
func (r *reader) list(v *source.Value, what string) []*source.Value {
	switch {
	case v == nil:
		return nil
	case v.Kind != source.Array:
		return []*source.Value{v}
	case len(v.Items) == 0:
		r.add(v.Position, "%s is an empty list: leave it out", what)
	}
	return v.Items
}

// name reads an optional part of the name of a cell.
func (r *reader) name(v *source.Value, what string) string {
	s, ok := r.text(v, "the name of "+what)
	if ok && safe(s) != s {
		r.add(v.Position, "the name %q cannot be part of a file name: use letters and digits, with dots, plus and minus signs between them", s)
	}
	return s
}

// ValidName reports whether a text can be the name of an engine, to which a matrix may add @ and a version.
func ValidName(s string) bool { return s != "" && safe(s) == s && !strings.Contains(s, "@") }

var unfit = regexp.MustCompile(`[^a-zA-Z0-9.+@-]`)

// safe replaces characters that the name of a cell cannot have.
func safe(s string) string { return strings.Trim(unfit.ReplaceAllString(s, "-"), ".+-") }

// settings reads the settings of a document. It may also have other keys.
func (r *reader) settings(v *source.Value, what string, others []string) (all []setting) {
	if v == nil || !r.document(v, what, append(slices.Clone(others), keyNames(settingKeys)...)) {
		return nil
	}
	return r.keyed(v, settingKeys)
}

func (r *reader) keyed(v *source.Value, table []key) (all []setting) {
	for _, k := range table {
		f := v.Field(k.name)
		if f == nil {
			continue
		}
		s := setting{key: k, at: f.KeyPosition}
		switch k.shape {
		case text:
			if t, ok := r.text(f.Value, k.name); ok {
				s.values = []string{t}
			}
		case toggle:
			s.values = r.word(f.Value, k, map[string][]string{"true": {""}, "false": nil})
		case onOff:
			s.values = r.word(f.Value, k, map[string][]string{"true": {"on"}, "false": {"off"}, "on": {"on"}, "off": {"off"}})
		case list, axis:
			s.values = r.texts(f.Value, k.name)
		case pairs:
			s.values = r.pairs(f.Value, k.name, "{compressors: zlib}")
		}
		r.checkValues(k, f.Value, s.values)
		if k.name == cellTimeout && len(s.values) == 1 {
			r.duration(f.Value.Position, k.name, s.values[0])
		}
		all = append(all, s)
	}
	return all
}

// checkValues checks the values of a flag, each at its own position.
func (r *reader) checkValues(k key, of *source.Value, values []string) {
	at := slices.Clone(of.Items)
	for _, f := range of.Fields {
		at = append(at, f.Value)
	}
	for i, value := range values {
		position := of.Position
		if len(at) == len(values) {
			position = at[i].Position
		}
		if k.name != cellTimeout && value != "" {
			r.checkValue(position, cmp.Or(k.flag, k.name), value)
		}
	}
}

// checkValue checks a value of a flag, or with "" for the flag a path.
func (r *reader) checkValue(at source.Position, flag, value string) {
	if r.Check == nil {
		return
	}
	if err := r.Check(flag, value); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			r.add(at, "%s", line)
		}
	}
}

// word reads one of a few words as the values of a flag.
func (r *reader) word(v *source.Value, k key, words map[string][]string) []string {
	values, ok := words[strings.ToLower(v.String)] // YAML has true, True and TRUE
	if !ok {
		r.add(v.Position, "%s must be true or false", k.name)
	}
	return values
}

func (r *reader) duration(at source.Position, what, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		r.add(at, "%s must be a duration such as 30m or 1h30m, not %q", what, text)
	}
	return d
}

// pairs reads an optional document of names and texts as NAME=VALUE.
func (r *reader) pairs(v *source.Value, what, example string) (all []string) {
	if v == nil {
		return nil
	}
	if v.Kind != source.Document {
		r.add(v.Position, "%s must be a document such as %s", what, example)
		return nil
	}
	for _, f := range v.Fields {
		if s, ok := r.text(f.Value, what+"."+f.Key); ok {
			all = append(all, f.Key+"="+s)
		}
	}
	return all
}

// parts reads an axis. A text can be a pattern that matches defined parts.
func (r *reader) parts(a int, v *source.Value, defined []part) (all []part) {
	read := [axisCount]func(*source.Value) []part{r.clusters, r.oneEngine, r.suites, r.options}[a]
	for _, item := range r.list(v, axisNames[a]) {
		var named []part
		if defined != nil && item.Kind == source.String {
			named = r.named(a, item, defined)
		}
		if before := len(r.problems); named == nil {
			named = read(item)
			for i := range named {
				named[i].invalid = len(r.problems) > before
				named[i].misnamed = named[i].invalid && item.Get("name") == nil
			}
		}
		all = append(all, named...)
	}
	return all
}

// part reads the keys of all axes, a name and settings. The document may also have other keys.
func (r *reader) part(v *source.Value, what string, others ...string) part {
	return part{at: v.Position, settings: r.settings(v, what, append([]string{"name"}, others...)),
		name: r.name(v.Get("name"), what)}
}

// named returns the defined parts that a pattern matches. It returns nil if the text is the definition of an engine
// or of suites.
func (r *reader) named(a int, item *source.Value, defined []part) (all []part) {
	pattern, ok := r.text(item, axisNames[a])
	if !ok {
		return []part{}
	}
	for _, p := range defined {
		if matches(pattern, p.name) {
			all = append(all, p)
		}
	}
	switch {
	case len(all) > 0:
		return all
	case (a == engines || a == suites) && !strings.ContainsAny(pattern, `*?[\`):
		return nil
	}
	r.noPart(a, item, defined)
	return []part{}
}

func (r *reader) oneEngine(v *source.Value) []part {
	if v.Kind != source.Document {
		if all := r.matching("", v.String, v.Position, nil); v.Kind == source.String && all != nil {
			return all
		}
		name := r.name(v, "an engine")
		return r.engine(name, name, v.Position, nil)
	}
	p := r.part(v, "an engine", "engine")
	engine, _ := r.text(v.Get("engine"), "engine")
	if p.name == "" && engine == "" {
		r.add(v.Position, "an engine must have a name")
	}
	at := v.Position
	for _, key := range []string{"engine", "name"} {
		if named := v.Get(key); named != nil {
			at = named.Position
			break
		}
	}
	if all := r.matching(p.name, engine, at, p.settings); all != nil {
		return all
	}
	return r.engine(cmp.Or(p.name, safe(engine)), cmp.Or(engine, p.name), at, p.settings)
}

// matching returns the versions of an engine that ENGINE@PATTERN matches, or nil for another text.
func (r *reader) matching(name, text string, at source.Position, own []setting) (all []part) {
	engine, pattern, _ := strings.Cut(text, "@")
	if !ValidName(engine) || !strings.ContainsAny(pattern, "*?[") {
		return nil
	}
	versions := r.Versions(engine)
	for _, version := range versions {
		if matches(pattern, version) {
			all = append(all, r.engine(cmp.Or(name, engine)+"@"+version, engine+"@"+version, at, own)...)
		}
	}
	if len(all) == 0 {
		r.add(at, "%s matches none of the versions of %s: %s", text, engine,
			cmp.Or(strings.Join(versions, ", "), "the engines file names none"))
		return []part{}
	}
	return all
}

func (r *reader) engine(name, engine string, at source.Position, own []setting) []part {
	chosen := setting{key: key{"engine", text, ""}, at: at, values: []string{engine}}
	if engine != "" {
		r.checkValue(at, "engine", engine)
	}
	return []part{{name: name, at: at, settings: append([]setting{chosen}, own...)}}
}

func (r *reader) suites(v *source.Value) []part {
	if v.Kind != source.Document {
		file, ok := r.text(v, "suites")
		if ok {
			r.checkValue(v.Position, "", file)
		}
		return []part{{name: suiteName(file), at: v.Position, paths: []string{file}}}
	}
	p := r.part(v, "suites", "paths")
	if paths := v.Get("paths"); paths != nil {
		p.paths = r.texts(paths, "paths")
		r.checkValues(key{}, paths, p.paths)
	} else {
		r.add(v.Position, "suites must have paths")
	}
	if v.Get("name") == nil && len(p.paths) == 1 {
		p.name = suiteName(p.paths[0])
	} else if v.Get("name") == nil && len(p.paths) > 1 {
		r.add(v.Position, "suites of several paths must have a name")
	}
	return []part{p}
}

func suiteName(file string) string {
	base := path.Base(strings.TrimRight(strings.ReplaceAll(file, `\`, "/"), "/"))
	return safe(strings.TrimSuffix(base, path.Ext(base)))
}

// options reads options. Unnamed ones add nothing to the names of cells.
func (r *reader) options(v *source.Value) []part {
	p := r.part(v, "options")
	if v.Get("name") == nil && len(p.settings) > 0 {
		r.add(v.Position, "options must have a name, unless they are empty")
	}
	return []part{p}
}
