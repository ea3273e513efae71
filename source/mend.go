package source

import (
	"bytes"
	"sort"

	"gopkg.in/yaml.v3"
)

// yaml.v3 refuses one thing that YAML 1.2 allows and that occurs in official
// suites: in a flow mapping, a value indicator directly before a flow
// collection ({ nested:[] }, YAML 1.2 §7.3.3 and §7.4.2). A file that is
// refused is therefore tried again with a space after such colons. To leave
// strings and comments alone, just those spaces stay that turned out to stand
// between a key and its value.

// mended are the places, by line, where spaces were put in: columns in the
// mended text.
type mended map[int][]int

// before counts the spaces put into a line before a column.
func (m mended) before(line, column int) int {
	return sort.SearchInts(m[line], column)
}

// mendFlowColons tries it.
func mendFlowColons(file string, data []byte) (*yaml.Node, mended, bool) {
	all := func(Position) bool { return true }
	text, put := spaceColons(data, all)
	if len(put) == 0 {
		return nil, nil, false
	}
	root, err := yamlNodes(file, text)
	if err != nil {
		return nil, nil, false
	}
	// Places in data of the colons that precede a value.
	precedes := map[Position]bool{}
	walkFlowValues(root, func(n *yaml.Node) {
		precedes[Position{Line: n.Line, Column: n.Column - put.before(n.Line, n.Column)}] = true
	})
	text, put = spaceColons(data, func(p Position) bool { return precedes[p] })
	if root, err = yamlNodes(file, text); err != nil || len(put) == 0 {
		return nil, nil, false
	}
	return root, put, true
}

// spaceColons puts a space between a colon and an opening bracket where keep
// holds for the place of the bracket.
func spaceColons(data []byte, keep func(Position) bool) ([]byte, mended) {
	var out bytes.Buffer
	put := mended{}
	line, column := 1, 1
	var last rune
	for _, r := range string(data) {
		if (r == '[' || r == '{') && last == ':' && keep(Position{Line: line, Column: column}) {
			put[line] = append(put[line], column+len(put[line]))
			out.WriteByte(' ')
		}
		out.WriteRune(r)
		last = r
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return out.Bytes(), put
}

// walkFlowValues visits the flow collections that are values of mappings.
func walkFlowValues(n *yaml.Node, visit func(*yaml.Node)) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && c.Style&yaml.FlowStyle != 0 {
			visit(c)
		}
		walkFlowValues(c, visit)
	}
}
