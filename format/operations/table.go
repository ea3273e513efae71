package operations

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/entities"
)

//go:embed operations.yml
var file []byte

// table is the contents of operations.yml.
type table struct {
	rows     []Operation // sorted by kind and name
	commands []Command   // sorted by name
	models   []Operation
}

// row is an operation in operations.yml.
type row struct {
	Command, Core, Span string
	Changes             Effect
	Returns             Shape
	Section, Arguments  string
}

// read returns the table. It is read on first use.
var read = sync.OnceValue(func() table {
	t, err := parse(file)
	if err != nil {
		panic(err) // cannot fail: the file is embedded
	}
	return t
})

// all returns the rows, sorted by kind and name.
func all() []Operation { return read().rows }

// parser has what the rows refer to.
type parser struct {
	Commands   map[string]Command
	Shared     map[string]string
	Types      map[string]string
	Entities   map[string]entities.Kind
	Models     map[string]string
	Operations map[kind]map[string]yaml.Node
}

// kind is a kind of entities that have operations.
type kind entities.Kind

// UnmarshalYAML reads a kind.
func (k *kind) UnmarshalYAML(n *yaml.Node) error {
	*k = kind(n.Value)
	return known(n, slices.Index([]entities.Kind{entities.Bucket, entities.Client, entities.ClientEncryption,
		entities.Collection, entities.Cursor, entities.Database, entities.Session, entities.TestRunner}, entities.Kind(*k)))
}

// parse reads and checks a file such as operations.yml.
func parse(text []byte) (t table, err error) {
	var p parser
	if err := yaml.Load(text, &p, yaml.WithKnownFields()); err != nil {
		return t, fmt.Errorf("operations.yml: %w", err)
	}
	for name, c := range p.Commands {
		c.Name = name
		t.commands = append(t.commands, c)
	}
	slices.SortFunc(t.commands, func(a, b Command) int { return cmp.Compare(a.Name, b.Name) })
	for kind, rows := range p.Operations {
		for name, node := range rows {
			o, err := p.operation(entities.Kind(kind), name, node)
			if err != nil {
				return t, fmt.Errorf("operations.yml: %w", err)
			}
			t.rows = append(t.rows, o)
		}
	}
	slices.SortFunc(t.rows, compare)
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		arguments, err := p.arguments("", p.Models[name])
		if err != nil {
			return t, fmt.Errorf("operations.yml: model %s: %w", name, err)
		}
		t.models = append(t.models, Operation{Name: name, Arguments: arguments})
	}
	return t, nil
}

// operation reads a row.
func (p parser) operation(kind entities.Kind, name string, node yaml.Node) (Operation, error) {
	var r row
	if err := node.Load(&r, yaml.WithKnownFields()); err != nil {
		return Operation{}, err
	}
	arguments, err := p.arguments(kind, r.Arguments)
	if err != nil {
		return Operation{}, fmt.Errorf("line %d: %s.%s: %w", node.Line, kind, name, err)
	}
	for _, command := range []string{r.Command, r.Core} {
		if _, known := p.Commands[command]; command != "" && !known {
			return Operation{}, fmt.Errorf("line %d: %s.%s: unknown command %q", node.Line, kind, name, command)
		}
	}
	if r.Section == "" || r.Span != "" && (r.Span != "own" || r.Command == "") {
		return Operation{}, fmt.Errorf("line %d: %s.%s has no section, or a span without a command", node.Line, kind, name)
	}
	return Operation{Kind: kind, Name: name, Arguments: arguments, Effect: r.Changes, Result: r.Returns,
		Section: r.Section, command: r.Command, core: r.Core, ownSpan: r.Span != ""}, nil
}

// arguments reads the arguments of an operation, sorted by name.
func (p parser) arguments(kind entities.Kind, text string) (out []Argument, err error) {
	for word := range strings.FieldsSeq(text) {
		if name, shared := strings.CutPrefix(word, "+"); shared {
			if p.Shared[name] == "" {
				return nil, fmt.Errorf("unknown shared arguments %q", name)
			}
			more, err := p.arguments(kind, p.Shared[name])
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
			continue
		}
		name, required := strings.CutSuffix(word, "!")
		a := Argument{Name: name, Required: required}
		if kind == entities.TestRunner || name == "session" {
			a.Type, a.Entity = cmp.Or(p.Types[name], "string"), p.Entities[name]
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Argument) int { return cmp.Compare(a.Name, b.Name) })
	for i := range len(out) - 1 {
		if out[i].Name == out[i+1].Name {
			return nil, fmt.Errorf("the argument %s occurs twice", out[i].Name)
		}
	}
	return out, nil
}

// UnmarshalYAML reads what an operation can change.
func (e *Effect) UnmarshalYAML(n *yaml.Node) error { return set(e, n, effects[:]) }

// UnmarshalYAML reads how a result is matched.
func (s *Shape) UnmarshalYAML(n *yaml.Node) error { return set(s, n, shapes[:]) }

// UnmarshalYAML reads which option enables a retry.
func (c *Class) UnmarshalYAML(n *yaml.Node) error { return set(c, n, classes[:]) }

// UnmarshalYAML reads when a command is retried.
func (r *retrying) UnmarshalYAML(n *yaml.Node) error { return set(r, n, retried[:]) }

// set reads one of some words.
func set[T ~uint8](to *T, n *yaml.Node, words []string) error {
	i := slices.Index(words, n.Value)
	*to = T(max(i, 0))
	return known(n, i)
}

func known(n *yaml.Node, index int) error {
	if index < 0 {
		return fmt.Errorf("line %d: unknown word %q", n.Line, n.Value)
	}
	return nil
}
