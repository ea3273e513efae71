package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// An entry is an object of testdata/format.txt.
type entry struct{ title, places, with, count, keys, apart string }

func entries(t testing.TB) (all []entry) {
	t.Helper()
	text := testkit.Read(t, "testdata/format.txt")
	var short []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, value, isShort := strings.Cut(line, " = ")
		switch {
		case line == "" || line[0] == '#':
		case isShort:
			short = append(short, name, value)
		case line[0] != ' ':
			all = append(all, entry{title: line})
		default:
			e := &all[len(all)-1]
			name, value, _ := strings.Cut(line[2:], " ")
			field := map[string]*string{"in": &e.places, "beside": &e.with, "count": &e.count, "keys": &e.keys,
				"apart": &e.apart}[name]
			*field = strings.TrimSpace(*field + " " + strings.NewReplacer(short...).Replace(value))
		}
	}
	return all
}

// A bad value, and the message about it.
type bad struct{ value, message string }

// typeOf returns valid and invalid values of a type.
func typeOf(name string) (good []string, refused []bad) {
	const isInt = "not the integer 1"
	const aVersion = `must be a version of two or three numbers, such as "4.2" or "4.2.1", not `
	switch name {
	case "s":
		return []string{"x"}, []bad{{"1", "must be a string, " + isInt + " (in quotes it would be a string)"}}
	case "b":
		return []string{"true", "false"}, []bad{{"1", "must be a boolean, " + isInt}}
	case "i":
		return []string{"1", "2.0"}, []bad{{"1.5", "must be an integer, not the number 1.5"}}
	case "o":
		return []string{"{zzz: 1}"}, []bad{{"[]", "must be an object, not an array"}}
	case "oo":
		return []string{"{a.b: {zzz: 1}}"}, []bad{{"[]", "must be an object, not an array"}}
	case "*":
		return []string{"1", "[]", "null"}, nil
	case "c":
		return []string{"x", "{$$placeholder: 1}"}, []bad{{"1", "must be a string or an object, " + isInt}}
	case "bo":
		return []string{"true"}, []bad{{"1", "must be a boolean or an object, " + isInt}}
	case "true":
		return []string{"true"}, []bad{{"1", "must be true, " + isInt},
			{"false", "must be true, not false: an operation without expectError must succeed anyway"}}
	case "v":
		return []string{"'4.2'", "'4.2.1'"}, []bad{{"4.5", aVersion + "the number 4.5 (in quotes it would be a string)"},
			{"'4'", aVersion + `the string "4"`}, {"'1.2.3.4'", aVersion + `the string "1.2.3.4"`}}
	}
	var values []string
	for _, value := range strings.Split(name, "|") {
		value, _ = cutVersion(value)
		good, values = append(good, value), append(values, strconv.Quote(value))
	}
	return good, []bad{{"1", "must be a string, " + isInt + " (in quotes it would be a string)"},
		{"zz9", "must be one of " + strings.Join(values, ", ") + `, not the string "zz9"`}}
}

// cutVersion cuts "@N" off the end of a word.
func cutVersion(word string) (rest string, minor int) {
	rest, digits, found := strings.Cut(word, "@")
	if found {
		minor, _ = strconv.Atoi(digits)
	}
	return rest, minor
}

// A keyEntry is one key of an entry.
type keyEntry struct {
	name            string
	required        bool
	labelled, since int
	kind            string // of the value, or of each element
	array, some     bool   // some: the array has at least one element
}

func (e entry) parse() (keys []keyEntry) {
	for _, text := range strings.Fields(e.keys) {
		var k keyEntry
		head, kind, _ := strings.Cut(text, ":")
		head, k.since = cutVersion(head)
		head, label, _ := strings.Cut(head, "~")
		k.labelled, _ = strconv.Atoi(label)
		k.name, k.required = strings.CutSuffix(head, "!")
		if k.kind, k.array = strings.CutPrefix(kind, "["); k.array {
			k.kind, k.some = strings.CutSuffix(k.kind, "]+")
			k.kind = strings.TrimSuffix(k.kind, "]")
		}
		keys = append(keys, k)
	}
	return keys
}

// A row is a file, and its problems at a version, one a line, each with its line and column.
type row struct{ reason, version, file, want string }

// A table generates rows from entries.
type table struct {
	t       testing.TB
	entries []entry
	rows    []row
}

func tableRows(t testing.TB) []row {
	tb := &table{t: t, entries: entries(t)}
	for _, e := range tb.entries {
		tb.fill(e)
	}
	return tb.rows
}

// examples returns valid values of a key, the shortest first.
func (tb *table) examples(title string, k keyEntry) []string {
	good, _ := typeOf(k.kind)
	for _, e := range tb.entries {
		if k.kind == "o" && slices.ContainsFunc(strings.Split(e.places, ", "), func(place string) bool {
			place, _ = cutVersion(place)
			return place == title+"/"+k.name
		}) {
			good = []string{tb.object(e)}
			break
		}
	}
	if !k.array {
		return good
	}
	arrays := []string{"[]", "[" + good[0] + "]", "[" + strings.Join(good, ", ") + "]"}
	if k.some {
		return arrays[1:]
	}
	return arrays
}

// object returns an object with the required keys, and with pairs of "key: value" that replace them or
// are added; an empty value removes a key.
func (tb *table) object(e entry, pairs ...string) string {
	for _, k := range e.parse() {
		isGiven := slices.ContainsFunc(pairs, func(p string) bool { return strings.HasPrefix(p, k.name+":") })
		if !isGiven && (k.required || e.count != "" && len(pairs) == 0) {
			pairs = append(pairs, strings.Replace(k.name, "*", "zzz", 1)+": "+tb.examples(e.title, k)[0])
		}
	}
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p string) bool { return strings.HasSuffix(p, ":") })
	return "{" + strings.Join(pairs, ", ") + "}"
}

// file returns a file with an object at a place, the path to it, and the version that introduced the
// place.
func (tb *table) file(version string, e entry, place, object string) (text, path string, since int) {
	if place == "" {
		return strings.Replace(object, "schemaVersion: '4.2'", "schemaVersion: '"+version+"'", 1), "", 0
	}
	place, since = cutVersion(place)
	title, name, _ := strings.Cut(place, "/")
	parent := tb.entries[slices.IndexFunc(tb.entries, func(e entry) bool { return e.title == title })]
	keys := parent.parse()
	k := keys[slices.IndexFunc(keys, func(k keyEntry) bool { return k.name == name })]
	step := "." + name
	if k.array {
		object, step = "["+object+"]", step+"[0]"
	}
	pairs := []string{name + ": " + object}
	if e.with != "" {
		pairs = append(pairs, e.with)
	}
	around, _, _ := strings.Cut(parent.places, ", ")
	text, path, above := tb.file(version, parent, around, tb.object(parent, pairs...))
	return text, strings.TrimPrefix(path+step, "."), max(since, k.since, above)
}

// add adds a row: an object at a place, a version, and the message about the path below the object, ""
// if the file is valid. The position is the key's, if given, or of the path.
func (tb *table) add(e entry, place, reason string, minor int, object, below, key, message string) {
	tb.t.Helper()
	version := versionString(minor)
	text, path, _ := tb.file(version, e, place, object)
	r := row{reason: e.title + ": " + reason, version: version, file: text}
	if message != "" {
		at := positionOf(parse(tb.t, text), path+below, false)
		if key != "" {
			at = positionOf(parse(tb.t, text), path+key, true)
		}
		r.want = fmt.Sprintf("%d:%d: ", at.Line, at.Column)
		if path = strings.TrimPrefix(path+below, "."); path != "" {
			r.want += path + ": "
		}
		r.want += message
	}
	tb.rows = append(tb.rows, r)
}

func (tb *table) fill(e entry) {
	keys, places := e.parse(), strings.Split(e.places, ", ")
	_, _, since := tb.file(Newest, e, places[0], tb.object(e))
	add := func(reason string, object, below, key, message string) {
		tb.add(e, places[0], reason, newest, object, below, key, message)
	}
	// needs has a key or value at the version that introduced it, and at the version before.
	needs := func(what string, from int, object, below, key string) {
		if from > since {
			tb.add(e, places[0], what+" is new", from, object, "", "", "")
			tb.add(e, places[0], what+" is too new", from-1, object, below, key,
				fmt.Sprintf("%q requires schemaVersion %s; this file declares %s", what, versionString(from),
					versionString(from-1)))
		}
	}
	var names []string
	for _, k := range keys {
		if k.name == "*" {
			add("any key", "{zzz: 1}", "", "", "")
			add("without any key", "{}", "", "", e.title+" must have at least one key")
			return
		}
		names = append(names, strconv.Quote(k.name))
		with := func(value string) string { return tb.object(e, k.name+": "+value) }
		below := "." + k.name
		if k.required {
			add("without "+k.name, tb.object(e, k.name+":"), "", "", e.title+" must have the key "+strconv.Quote(k.name))
		}
		examples := tb.examples(e.title, k)
		for _, value := range examples {
			add(k.name+" is "+value, with(value), "", "", "")
		}
		needs(k.name, k.since, with(examples[0]), below, below)
		if k.labelled > 0 {
			labelled := k.name + ":a_1"
			needs(labelled, k.labelled, "{'"+labelled+"': {}}", "."+labelled, "."+labelled)
		}
		open, end := "", ""
		if k.array {
			add(k.name+" is an object", with("{}"), below, "", "must be an array, not an object")
			if k.some {
				add(k.name+" is empty", with("[]"), below, "", "must have at least one element")
			}
			below, open, end = below+"[0]", "[", "]"
		}
		_, refused := typeOf(k.kind)
		for _, b := range refused {
			add(k.name+" is "+b.value, with(open+b.value+end), below, "", b.message)
		}
		for _, value := range strings.Split(k.kind, "|") {
			value, from := cutVersion(value)
			needs(value, from, with(open+value+end), below, "")
		}
	}
	choices := "; possible keys are " + strings.Join(names, ", ")
	switch len(names) {
	case 0:
		choices = "; " + e.title + " has no keys"
	case 1:
		choices = "; its only possible key is " + names[0]
	}
	switch e.count {
	case "some":
		add("without any key", "{}", "", "", e.title+" must have at least one key"+choices)
	case "one":
		add("without any key", "{}", "", "", e.title+" must have exactly one key, but has none"+choices)
	}
	for _, place := range places {
		unknown := "zz9: 1"
		tb.add(e, place, "an unknown key of "+place, newest, tb.object(e, unknown), ".zz9", ".zz9",
			"unknown key in "+e.title+choices)
	}
	apart := strings.Fields(e.apart)
	for i, a := range keys {
		for _, b := range keys[i+1:] {
			message := ""
			switch {
			case e.count == "one":
				message = fmt.Sprintf("%s must have exactly one key, but has 2: %q, %q", e.title, a.name, b.name)
			case slices.Contains(apart, a.name+"-"+b.name):
				message = fmt.Sprintf("%q and %q are mutually exclusive", a.name, b.name)
			case slices.Contains(apart, b.name+"-"+a.name):
				message = fmt.Sprintf("%q and %q are mutually exclusive", b.name, a.name)
			}
			both := tb.object(e, a.name+": "+tb.examples(e.title, a)[0], b.name+": "+tb.examples(e.title, b)[0])
			add(a.name+" and "+b.name, both, "", "."+b.name, message)
		}
	}
}

// positionOf finds a path of plain keys and indexes in a file.
func positionOf(root *source.Value, path string, isKey bool) source.Position {
	position, v := root.Position, root
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if i, err := strconv.Atoi(step); err == nil && v.Kind == source.Array {
			v = v.Items[i]
			position = v.Position
			continue
		}
		f := v.Field(step)
		v, position = f.Value, f.Value.Position
		if isKey {
			position = f.KeyPosition
		}
	}
	return position
}
