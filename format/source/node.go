package source

// node is a node of a YAML or JSON file before its aliases are expanded.
type node struct {
	kind     nodeKind
	style    byte    // of a scalar: ', ", | or >, 0 if it is plain; of a collection: [ or {, 0 in block style
	value    string  // of a scalar; the name of an alias
	anchor   string  // without the &
	target   *node   // of an alias
	content  []*node // items, or keys and values in turn
	position Position

	// In YAML only, for the layout.
	begin, start, end int // offsets of its indicator or anchor if it has one, of its content, and after it
	indent            int // of the lines of a literal or folded scalar, and of a collection in block style
}

type nodeKind uint8

const (
	scalarNode nodeKind = iota
	sequenceNode
	mappingNode
	aliasNode
)

// comment is a comment of a YAML file.
type comment struct {
	text   string // with its #
	at     int    // its offset
	column int    // from 0
}
