package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// UsageError is a command line or a configuration file that mongod would not
// take. Its text is mongod's.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

func wrong(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// arguments are options as they were given, by name: their values in order. A
// toggle that is on has the value "true"; one that a file switches off, none.
type arguments map[string][]string

// program says who reads options: the name, and where its options exist.
type program struct {
	name  string
	where where
}

func (p program) hint() string {
	return fmt.Sprintf("\ntry '%s --help' for more information", p.name)
}

func (p program) find(name string) *option {
	for i := range optionTable {
		if o := &optionTable[i]; o.name == name && o.where&p.where != 0 {
			return o
		}
	}
	return nil
}

// commandLine reads words as mongod reads its command line: --name value,
// --name=value, -n value, -nvalue.
func (p program) commandLine(words []string) (arguments, error) {
	const kindOfInput = "command line"
	given := arguments{}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		o, value, has := p.word(word)
		switch {
		case o == nil && !strings.HasPrefix(word, "-"):
			return nil, wrong("Error parsing command line: too many positional options have been specified on the command line%s", p.hint())
		case o == nil:
			return nil, wrong("Error parsing %s: unrecognised option '%s'%s", kindOfInput, word, p.hint())
		}
		if !has && o.kind != toggle && o.kind != level {
			if len(words) == 0 {
				return nil, wrong("Error parsing %s: the required argument for option '--%s' is missing%s", kindOfInput, o.name, p.hint())
			}
			value, words = words[0], words[1:]
		}
		if !has && o.kind == level {
			// The value may be left out, and may follow.
			if value = "v"; len(words) > 0 && isLevel(words[0]) {
				value, words = words[0], words[1:]
			}
		}
		if !has && o.kind == toggle {
			value = "true"
		}
		if err := given.add(p, o, value, kindOfInput); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// word is one word of a command line: an option, and a value that is in it.
func (p program) word(word string) (o *option, value string, has bool) {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		name, value, has := strings.Cut(long, "=")
		return p.find(name), value, has
	}
	if len(word) < 2 || word[0] != '-' {
		return nil, "", false
	}
	if isLevel(word[1:]) { // -vvv
		return p.find("verbose"), word[1:], true
	}
	for i := range optionTable {
		if o := &optionTable[i]; o.short == word[1:2] && o.where&p.where != 0 {
			value := strings.TrimPrefix(word[2:], "=")
			return o, value, value != ""
		}
	}
	return nil, "", false
}

// isLevel says whether a word is a level of verbosity: some v's.
func isLevel(s string) bool { return s != "" && strings.Trim(s, "v") == "" }

// add takes one option in, and refuses a value of the wrong kind, or a second
// one.
func (a arguments) add(p program, o *option, value, input string) error {
	switch o.kind {
	case toggle:
		switch value {
		case "true", "1":
			value = "true"
		case "false", "0":
			return nil
		default:
			return wrong("Error parsing %s: the argument ('%s') for option '%s' is invalid. Valid choices are 'on|off', 'yes|no', '1|0' and 'true|false'%s", input, value, o.name, p.hint())
		}
	case number:
		if _, err := strconv.Atoi(value); err != nil {
			return wrong("Error parsing %s: the argument ('%s') for option '--%s' is invalid%s", input, value, o.name, p.hint())
		}
	case pairs:
		if name, _, ok := strings.Cut(value, "="); !ok || name == "" {
			return wrong("Illegal option assignment: \"%s\"", value)
		}
	}
	repeatable := o.kind == pairs || o.kind == list || o.kind == level
	if len(a[o.name]) > 0 && !repeatable && o.kind != toggle {
		return wrong("Error parsing %s: option '--%s' cannot be specified more than once%s", input, o.name, p.hint())
	}
	if o.kind == toggle {
		a[o.name] = []string{value}
		return nil
	}
	a[o.name] = append(a[o.name], value)
	return nil
}

func (a arguments) on(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return len(a[n]) > 0 })
}

// text is the value of the first of these options that is given.
func (a arguments) text(names ...string) string {
	for _, n := range names {
		if v := a[n]; len(v) > 0 {
			return v[len(v)-1]
		}
	}
	return ""
}

// number is the same for a number; otherwise if none is given.
func (a arguments) number(otherwise int, names ...string) int {
	if n, err := strconv.Atoi(a.text(names...)); err == nil {
		return n
	}
	return otherwise
}

// under adds what only other has: the command line goes before the file.
func (a arguments) under(other arguments) {
	for name, values := range other {
		if name == "setParameter" {
			a[name] = slices.Concat(values, a[name]) // the last one of a name counts
		} else if _, ok := a[name]; !ok {
			a[name] = values
		}
	}
}

// file reads a configuration file: YAML if it is a mapping, otherwise the old
// form of lines with name = value.
func (p program) file(path string) (arguments, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, wrong("Error opening config file '%s': %s", path, reason(err))
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(data, &tree); err == nil && len(tree.Content) == 1 && tree.Content[0].Kind == yaml.MappingNode {
		given := arguments{}
		return given, p.yaml(given, "", tree.Content[0])
	}
	return p.lines(string(data))
}

// reason is an error of the system without the path that it names.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// lines reads the old form.
func (p program) lines(data string) (arguments, error) {
	const input = "INI config file"
	given := arguments{}
	for _, line := range strings.Split(data, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "[") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok {
			return nil, wrong("Error parsing %s: the options configuration file contains an invalid line '%s'%s", input, line, p.hint())
		}
		o := p.find(name)
		if o == nil && isLevel(name) { // vvv = true
			o, value = p.find("verbose"), name
		}
		if o == nil {
			return nil, wrong("Error parsing %s: unrecognised option '%s'%s", input, name, p.hint())
		}
		if o.kind == level && value == "true" {
			value = "v"
		}
		if err := given.add(p, o, value, input); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// yaml reads a mapping at a path.
func (p program) yaml(given arguments, path string, m *yaml.Node) error {
	for i := 0; i+1 < len(m.Content); i += 2 {
		at, value := m.Content[i].Value, m.Content[i+1]
		if path != "" {
			at = path + "." + at
		}
		if at == "setParameter" {
			if err := p.parameters(given, value); err != nil {
				return err
			}
			continue
		}
		if value.Kind == yaml.MappingNode {
			if err := p.yaml(given, at, value); err != nil {
				return err
			}
			continue
		}
		if value.Tag == "!!null" {
			continue
		}
		if err := p.setting(given, at, value); err != nil {
			return err
		}
	}
	return nil
}

// setting is one value of a YAML file.
func (p program) setting(given arguments, path string, value *yaml.Node) error {
	const input = "YAML config file"
	var texts []string
	if value.Kind == yaml.SequenceNode {
		for _, n := range value.Content {
			texts = append(texts, n.Value)
		}
	} else {
		texts = []string{value.Value}
	}
	known, taken := false, false
	for i := range optionTable {
		o := &optionTable[i]
		if o.path != path || o.where&p.where == 0 {
			continue
		}
		known = true
		switch {
		case o.constant != "" && !slices.Contains(texts, o.constant):
			continue
		case o.constant != "":
			taken = true
			given[o.name] = []string{"true"}
			continue
		}
		taken = true
		for _, t := range texts {
			if o.kind == level {
				t = strings.Repeat("v", min(max(atoi(t), 0), 5))
				if t == "" {
					continue
				}
			}
			if err := given.add(p, o, t, input); err != nil {
				return err
			}
		}
	}
	switch {
	case !known:
		return wrong("Unrecognized option: %s%s", path, p.hint())
	case !taken:
		return wrong("Invalid value for %s: %s", path, strings.Join(texts, ","))
	}
	return nil
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s) // 0 otherwise
	return n
}

// parameters are those of a YAML file. A document is written as JSON.
func (p program) parameters(given arguments, m *yaml.Node) error {
	if m.Kind != yaml.MappingNode {
		return wrong("Invalid value for setParameter: it must be a mapping")
	}
	o := p.find("setParameter")
	for i := 0; i+1 < len(m.Content); i += 2 {
		value := m.Content[i+1].Value
		if m.Content[i+1].Kind != yaml.ScalarNode {
			text, err := asJSON(m.Content[i+1])
			if err != nil {
				return wrong("Invalid value for setParameter.%s: %s", m.Content[i].Value, err)
			}
			value = text
		}
		if err := given.add(p, o, m.Content[i].Value+"="+value, "YAML config file"); err != nil {
			return err
		}
	}
	return nil
}
