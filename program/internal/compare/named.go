package compare

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// builder makes a condition from its argument in YAML.
type builder[T any] func(*yaml.Node) (func(T) bool, error)

// allNamed reads a mapping of names of conditions to arguments. The result holds if all do.
func allNamed[T any](n *yaml.Node, known map[string]builder[T]) (func(T) bool, error) {
	var unique map[string]yaml.Node // Decode checks that no name occurs twice
	if err := n.Decode(&unique); err != nil {
		return nil, err
	}
	if len(unique) == 0 {
		return nil, fmt.Errorf("line %d: a condition must have a name and an argument", n.Line)
	}
	var all []func(T) bool
	for i := 0; i < len(n.Content); i += 2 {
		name, argument := n.Content[i], n.Content[i+1]
		var is string
		if err := choose(name, "condition", &is, slices.Collect(maps.Keys(known))...); err != nil {
			return nil, err
		}
		holds, err := known[is](argument)
		if err != nil {
			return nil, err
		}
		all = append(all, holds)
	}
	return func(of T) bool {
		return !slices.ContainsFunc(all, func(holds func(T) bool) bool { return !holds(of) })
	}, nil
}

// with makes a condition with an argument.
func with[A, T any](holds func(T, A) bool) builder[T] {
	return func(n *yaml.Node) (func(T) bool, error) {
		var argument A
		if n.Tag == "!!null" {
			return nil, fmt.Errorf("line %d: the condition has no argument", n.Line)
		}
		if err := n.Decode(&argument); err != nil {
			return nil, err
		}
		return func(of T) bool { return holds(of, argument) }, nil
	}
}

// flag makes a condition that must hold, or must not.
func flag[T any](holds func(T) bool) builder[T] {
	return with(func(of T, want bool) bool { return holds(of) == want })
}

// first makes a condition for the first difference.
func first[A any](holds func(Difference, A) bool) builder[shown] {
	return with(func(s shown, argument A) bool { return holds(s.differences[0], argument) })
}

// each makes a condition for all differences.
func each[A any](holds func(Difference, A) bool) builder[shown] {
	return with(func(s shown, argument A) bool {
		return !slices.ContainsFunc(s.differences, func(d Difference) bool { return !holds(d, argument) })
	})
}

// events makes a condition for the lines of the first client whose events differ.
func events[A any](holds func(left, right []string, argument A) bool) builder[shown] {
	return with(func(s shown, argument A) bool {
		i := slices.IndexFunc(s.differences, func(d Difference) bool { return d.Aspect == "events" })
		return i >= 0 && holds(strings.Split(s.differences[i].Left, "\n"), strings.Split(s.differences[i].Right, "\n"),
			argument)
	})
}

// faultAt makes a condition for a fault of the schedule.
func faultAt(i int) builder[shown] {
	return with(func(s shown, holds faultCondition) bool { return i < len(s.Faults) && holds(s.Faults[i]) })
}

// Arguments that are checked when they are read.
type (
	operationName string
	topologyName  string
	optionName    string
	aspectName    string
	comparison    func(left, right []string) bool
	pattern       struct{ *regexp.Regexp }
)

// UnmarshalYAML reads the name of an operation of suite.yml.
func (o *operationName) UnmarshalYAML(n *yaml.Node) error {
	return choose(n, "operation", (*string)(o), slices.Collect(maps.Keys(parts().Operations))...)
}

// UnmarshalYAML reads the name of a topology.
func (t *topologyName) UnmarshalYAML(n *yaml.Node) error {
	return choose(n, "topology", (*string)(t), "single", "replicaset", "sharded", "load-balanced")
}

// UnmarshalYAML reads the name of an option of schedules.
func (o *optionName) UnmarshalYAML(n *yaml.Node) error {
	var known []string
	for _, option := range clientOptions {
		known = append(known, option.name)
	}
	return choose(n, "option", (*string)(o), known...)
}

// UnmarshalYAML reads the aspect of a difference.
func (a *aspectName) UnmarshalYAML(n *yaml.Node) error {
	return choose(n, "aspect", (*string)(a), "verdict", "operation", "events")
}

// UnmarshalYAML reads the name of a comparison.
func (c *comparison) UnmarshalYAML(n *yaml.Node) error {
	var name string
	err := choose(n, "comparison", &name, slices.Collect(maps.Keys(comparisons()))...)
	*c = comparisons()[name]
	return err
}

// UnmarshalYAML reads a regular expression.
func (p *pattern) UnmarshalYAML(n *yaml.Node) (err error) {
	if p.Regexp, err = regexp.Compile(n.Value); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return nil
}

// choose reads one of some names.
func choose(n *yaml.Node, what string, name *string, known ...string) error {
	if *name = n.Value; !slices.Contains(known, *name) {
		slices.Sort(known)
		return fmt.Errorf("line %d: unknown %s %q. Known: %s", n.Line, what, *name, strings.Join(known, ", "))
	}
	return nil
}
