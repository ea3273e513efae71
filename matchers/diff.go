package matchers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
)

// diff renders the differences of two documents or arrays as lines of Extended JSON: "-" is expected, "+" is actual,
// and equal parts are short. For other values it would add nothing, and is empty.
func (m *Matcher) diff(want *source.Value, actual bson.RawValue, shape operations.Shape) string {
	operator, _ := m.operator(want)
	_, isScalar, err := want.Scalar()
	if operator != "" || isScalar || err != nil || actual.Type != bson.TypeEmbeddedDocument &&
		actual.Type != bson.TypeArray {
		return ""
	}
	var d difference
	d.compare("", "", m.wantTree(want, actual, shape), tree(actual))
	return strings.Join(d, "\n")
}

// node is a value as Extended JSON. A document or array has brackets, and children instead of a text.
type node struct {
	key      string // in a document, quoted, with a colon
	text     string
	brackets string // "{}", "[]" or ""
	children []node
}

func (n node) String() string {
	if n.brackets == "" {
		return n.text
	}
	parts := make([]string, len(n.children))
	for i, c := range n.children {
		parts[i] = c.key + c.String()
	}
	return n.brackets[:1] + strings.Join(parts, ", ") + n.brackets[1:]
}

// difference is a list of lines that begin with "- ", "+ " or two spaces.
type difference []string

// equalWidth limits an equal value in a difference, in bytes, and equalLines the number of equal values in a row.
const equalWidth, equalLines = 60, 3

func (d *difference) line(mark, indent, text string) { *d = append(*d, mark+indent+text) }

func (d *difference) compare(indent, key string, want, got node) {
	same := want.String()
	switch {
	case same == got.String():
		if len(same) > equalWidth {
			same = want.brackets[:min(1, len(want.brackets))] + "…" + want.brackets[min(1, len(want.brackets)):]
		}
		d.line("  ", indent, key+same)
	case want.brackets != "" && want.brackets == got.brackets:
		d.line("  ", indent, key+want.brackets[:1])
		d.children(indent+"  ", want, got)
		d.line("  ", indent, want.brackets[1:])
	default:
		d.line("- ", indent, key+want.String())
		d.line("+ ", indent, key+got.String())
	}
}

func (d *difference) children(indent string, want, got node) {
	pairs := byIndex(want.children, got.children)
	if want.brackets == "{}" {
		pairs = byKey(want.children, got.children)
	}
	equal := 0
	for i, p := range pairs {
		switch {
		case p[0] == nil:
			d.line("+ ", indent, p[1].key+p[1].String())
		case p[1] == nil:
			d.line("- ", indent, p[0].key+p[0].String())
		case p[0].String() != p[1].String():
			d.compare(indent, p[0].key, *p[0], *p[1])
		default:
			equal++
			more := i+1 < len(pairs) && pairs[i+1][0] != nil && pairs[i+1][1] != nil &&
				pairs[i+1][0].String() == pairs[i+1][1].String()
			switch {
			case equal < equalLines || equal == equalLines && !more:
				d.compare(indent, p[0].key, *p[0], *p[1])
			case !more:
				d.line("  ", indent, fmt.Sprintf("… %d equal", equal-equalLines+1))
			}
			if more {
				continue
			}
		}
		equal = 0
	}
}

// byKey pairs the fields of documents, in the expected order.
func byKey(want, got []node) (pairs [][2]*node) {
	used := make([]bool, len(got))
	for i := range want {
		pair := [2]*node{&want[i], nil}
		for j := range got {
			if !used[j] && got[j].key == want[i].key {
				used[j], pair[1] = true, &got[j]
				break
			}
		}
		pairs = append(pairs, pair)
	}
	for j := range got {
		if !used[j] {
			pairs = append(pairs, [2]*node{nil, &got[j]})
		}
	}
	return pairs
}

// byIndex pairs the elements of arrays. Of arrays with different lengths, it pairs equal beginnings and ends first.
func byIndex(want, got []node) (pairs [][2]*node) {
	head, tail := 0, 0
	if len(want) != len(got) {
		least := min(len(want), len(got))
		for head < least && want[head].String() == got[head].String() {
			head++
		}
		for tail < least-head && want[len(want)-1-tail].String() == got[len(got)-1-tail].String() {
			tail++
		}
	}
	for i := range max(len(want), len(got)) - tail {
		var pair [2]*node
		if i < len(want)-tail {
			pair[0] = &want[i]
		}
		if i < len(got)-tail {
			pair[1] = &got[i]
		}
		pairs = append(pairs, pair)
	}
	for i := range tail {
		pairs = append(pairs, [2]*node{&want[len(want)-tail+i], &got[len(got)-tail+i]})
	}
	return pairs
}

// alike reports whether values are equal, except for the order of keys.
func alike(a, b node) bool {
	var d difference
	d.compare("", "", a, b)
	return !slices.ContainsFunc(d, func(line string) bool { return line[0] != ' ' })
}

func tree(v bson.RawValue) node {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return node{text: ExtendedJSON(v, v.Type == bson.TypeInt64)}
	}
	list, err := elements(v)
	if err != nil {
		return node{text: err.Error()}
	}
	n := node{brackets: "{}"}
	if v.Type == bson.TypeArray {
		n.brackets = "[]"
	}
	for _, e := range list {
		child := tree(e.Value())
		if v.Type != bson.TypeArray {
			child.key = keyOf(e.Key())
		}
		n.children = append(n.children, child)
	}
	return n
}

func keyOf(name string) string { return strconv.Quote(name) + ": " }

// wantTree returns a tree that would match: the actual value where it matches, and the expected value elsewhere.
func (m *Matcher) wantTree(want *source.Value, actual bson.RawValue, shape operations.Shape) node {
	if actual.Type != 0 && m.holds(func() { m.match(want, actual, shape) }) {
		return tree(actual)
	}
	operator, _ := m.operator(want)
	scalar, isScalar, err := want.Scalar()
	switch {
	case isScalar:
		return node{text: ExtendedJSON(scalar, scalar.Type == bson.TypeInt64)}
	case operator != "" || err != nil:
		return node{text: want.JSON()}
	}
	if want.Kind == source.Array {
		array, _ := actual.ArrayOK()
		values, _ := array.Values()
		values = append(values, make([]bson.RawValue, len(want.Items))...) // missing ones
		a := node{brackets: "[]"}
		for i, item := range want.Items {
			a.children = append(a.children, m.wantTree(item, values[i], ofElements(shape)))
		}
		return a
	}
	d := node{brackets: "{}"}
	content, _ := actual.DocumentOK()
	for _, f := range want.Fields {
		got := content.Lookup(f.Key)
		if operator, argument := m.operator(f.Value); got.Type != 0 || !mayBeMissing(operator, argument) {
			child := m.wantTree(f.Value, got, operations.Value)
			child.key = keyOf(f.Key)
			d.children = append(d.children, child)
		}
	}
	if actual.Type == bson.TypeEmbeddedDocument && shape == operations.RootDocument { // where extra keys are allowed
		for _, c := range tree(actual).children {
			if name, _ := strconv.Unquote(strings.TrimSuffix(c.key, ": ")); want.Field(name) == nil {
				d.children = append(d.children, c)
			}
		}
	}
	return d
}
