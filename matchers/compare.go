package matchers

import (
	"fmt"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/source"
)

// comparison walks expectations and what was seen, and collects differences.
type comparison struct {
	path        path
	differences []difference
	// quiet only notes that there is a difference.
	quiet  bool
	failed bool
}

// difference is one place where the two are apart, not yet rendered.
type difference struct {
	path    string
	at      source.Position
	message string
	// The expected value as a node with what was seen, or both as text.
	node      *node
	actual    bson.RawValue
	shape     Shape
	want, got string
}

// differ notes a difference between a node and a value.
func (c *comparison) differ(n *node, actual bson.RawValue, format string, args ...any) {
	c.differAs(n, actual, Nested, format, args...)
}

func (c *comparison) differAs(n *node, actual bson.RawValue, shape Shape, format string, args ...any) {
	c.failed = true
	if c.quiet {
		return
	}
	c.differences = append(c.differences, difference{
		path: c.path.String(), at: n.at, message: fmt.Sprintf(format, args...),
		node: n, actual: actual, shape: shape,
	})
}

// say notes a difference of things that are not BSON values.
func (c *comparison) say(at source.Position, want, got, format string, args ...any) {
	c.failed = true
	if c.quiet {
		return
	}
	c.differences = append(c.differences, difference{
		path: c.path.String(), at: at, message: fmt.Sprintf(format, args...), want: want, got: got,
	})
}

// reject notes that what was seen is not what the file says.
func (c *comparison) reject(want *source.Value, got, format string, args ...any) {
	if c.failed = true; !c.quiet { // nothing is rendered in vain
		c.say(want.Position, abridge(want.JSON()), got, format, args...)
	}
}

// holds reports whether a value matches, without noting why not.
func holds(n *node, actual bson.RawValue, shape Shape) bool {
	return passes(func(c *comparison) { c.match(n, actual, shape) })
}

// passes reports whether a comparison finds no difference.
func passes(compare func(*comparison)) bool {
	c := comparison{quiet: true}
	compare(&c)
	return !c.failed
}

// match compares a value, of type 0 if it is missing.
func (c *comparison) match(n *node, actual bson.RawValue, shape Shape) {
	if actual.Type == 0 {
		if !n.mayBeMissing() {
			c.differ(n, actual, "the value is missing")
		}
		return
	}
	n.test.match(c, n, actual, shape)
}

type numeric struct{ want number }

func (t numeric) match(c *comparison, n *node, actual bson.RawValue, _ Shape) {
	switch got, ok := numberOf(actual); {
	case !ok:
		c.differ(n, actual, "expected a number, got %s", typeName(actual))
	case !t.want.equal(got):
		c.differ(n, actual, "the numbers differ")
	}
}

// scalar is any other expected value that is neither a document nor an array.
type scalar struct{ want bson.RawValue }

func (t scalar) match(c *comparison, n *node, actual bson.RawValue, _ Shape) {
	switch {
	case actual.Type != t.want.Type:
		c.differ(n, actual, "expected %s, got %s", typeName(t.want), typeName(actual))
	case !sameScalar(t.want, actual):
		c.differ(n, actual, "the values differ")
	}
}

type array struct{ items []*node }

func (t array) match(c *comparison, n *node, actual bson.RawValue, shape Shape) {
	if actual.Type != bson.TypeArray {
		c.differ(n, actual, "expected an array, got %s", typeName(actual))
		return
	}
	list, err := elements(actual.Value)
	if err != nil {
		c.differ(n, actual, "the actual array is %v", err)
		return
	}
	if len(list) != len(t.items) {
		c.differAs(n, actual, shape, "expected %s, got %d", count(len(t.items), "element"), len(list))
		return
	}
	for i, item := range t.items {
		c.path.atIndex(i, func() { c.match(item, list[i].value, shape.ofElements()) })
	}
}

// ofElements is the shape of the elements of an array.
func (s Shape) ofElements() Shape {
	if s == RootDocuments {
		return RootDocument
	}
	return Nested
}

type fields struct {
	keys  []string
	nodes []*node
	byKey map[string]int
}

func newDocument(size int) *fields {
	return &fields{
		keys: make([]string, 0, size), nodes: make([]*node, 0, size),
		byKey: make(map[string]int, size),
	}
}

// add adds a key and reports whether it was there before.
func (t *fields) add(key string, n *node) (twice bool) {
	_, twice = t.byKey[key]
	t.byKey[key] = len(t.keys)
	t.keys = append(t.keys, key)
	t.nodes = append(t.nodes, n)
	return twice
}

func (t *fields) match(c *comparison, n *node, actual bson.RawValue, shape Shape) {
	if actual.Type != bson.TypeEmbeddedDocument {
		c.differ(n, actual, "expected a document, got %s", typeName(actual))
		return
	}
	list, err := elements(actual.Value)
	if err != nil {
		c.differ(n, actual, "the actual document is %v", err)
		return
	}
	x := indexOf(list)
	if key, dup := x.duplicate(); dup {
		c.differAs(n, actual, shape, "the actual document has the key %q twice", key)
	}
	for i, key := range t.keys {
		c.path.atKey(key, func() { c.match(t.nodes[i], x.value(key), Nested) })
	}
	if shape == RootDocument {
		return
	}
	var extra []string
	for _, e := range list {
		if _, expected := t.byKey[e.key]; !expected {
			extra = append(extra, strconv.Quote(e.key))
		}
	}
	if len(extra) > 0 {
		c.differAs(n, actual, shape, "unexpected %s %s", plural(len(extra), "key"), strings.Join(extra, ", "))
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func count(n int, word string) string { return strconv.Itoa(n) + " " + plural(n, word) }
