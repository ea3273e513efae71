package source

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// parser parses a file with one YAML 1.2 document. Tags are errors. Like JSON, it is read in one pass without
// backtracking. After an error it is at the end of the text, so that all loops end.
type parser struct {
	limits   limits
	file     string
	text     string // its line breaks are line feeds
	at       int    // an offset in text
	line     int    // the offset of the line of at
	cursor   cursor
	nodes    chunks[node]
	depth    int
	anchors  map[string]*node
	comments []comment
	language string  // YAML or JSON, for messages
	open     []*node // the collections in braces or brackets that are not closed yet
	suspect  *node   // see closes
	long     *node   // the last scalar that has several lines
	err      error
	failedAt int // the offset at which err was found
}

// yamlNodes returns the root of a file with one YAML document.
func yamlNodes(l limits, file string, data []byte) (*node, error) {
	p := newParser(l, file, data)
	root := p.document()
	return root, p.err
}

var lineFeeds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func newParser(l limits, file string, data []byte) *parser {
	text := string(data)
	if strings.IndexByte(text, '\r') >= 0 {
		text = lineFeeds.Replace(text)
	}
	return &parser{limits: l, file: file, text: text, cursor: cursor{text: text}, anchors: map[string]*node{},
		language: "YAML"}
}

// refuse keeps the first error and moves to the end of the text.
func (p *parser) refuse(at int, format string, args ...any) {
	if p.err == nil {
		p.err, p.failedAt = errorAt(positionAt(p.file, []byte(p.text), at), format, args...), p.at
	}
	p.at = len(p.text)
}

// fail refuses a malformed file.
func (p *parser) fail(at int, format string, args ...any) {
	p.refuse(at, "malformed "+p.language+": "+format, args...)
}

// char returns the byte at a distance from the current one, 0 outside of the text.
func (p *parser) char(ahead int) byte {
	if at := p.at + ahead; at >= 0 && at < len(p.text) {
		return p.text[at]
	}
	return 0
}

// rune returns the character that begins at the current byte.
func (p *parser) rune() rune {
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return r
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == 0 }
func isFlow(c byte) bool  { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}' }

// indicates reports whether the next character is an indicator of block style: -, ? or : before a blank.
func (p *parser) indicates(c byte) bool { return p.char(0) == c && isBlank(p.char(1)) }

// separates reports whether the next character is the colon between a key and its value, in braces or brackets.
func (p *parser) separates() bool {
	return p.char(0) == ':' && (isBlank(p.char(1)) || isFlow(p.char(1)))
}

// ends reports whether the document ends here: at the end of the text or a line that starts with --- or ... .
func (p *parser) ends() bool { return p.at >= len(p.text) || p.marks("---") || p.marks("...") }

func (p *parser) marks(marker string) bool {
	return p.at == p.line && strings.HasPrefix(p.text[p.at:], marker) && isBlank(p.char(len(marker)))
}

// indent returns the number of spaces at the start of the current line.
func (p *parser) indent() int {
	line := p.text[p.line:]
	return len(line) - len(strings.TrimLeft(line, " "))
}

// skip skips blanks, comments and line breaks, and reports whether it reached another line.
func (p *parser) skip() bool {
	line := p.line
	for p.blanks(); p.char(0) == '\n'; p.blanks() {
		p.at++
		p.line = p.at
	}
	return p.line != line
}

// blanks skips blanks, and the comment at the end of the line.
func (p *parser) blanks() {
	for p.char(0) == ' ' || p.char(0) == '\t' {
		p.at++
	}
	if p.char(0) == '#' && isBlank(p.char(-1)) {
		text, _, _ := strings.Cut(p.text[p.at:], "\n")
		p.comments = append(p.comments, comment{strings.TrimRight(text, " \t"), p.at, p.at - p.line})
		p.at += len(text)
	}
}

func (p *parser) node(at int) *node {
	n := p.nodes.next()
	if p.nodes.count > p.limits.nodes {
		p.refuse(at, "the file has more than %d values", p.limits.nodes)
	}
	n.position, n.begin, n.start, n.end = p.cursor.position(p.file, at), at, at, at
	return n
}

var yamlVersion1 = regexp.MustCompile(`^%YAML[ \t]+1\.[0-9]+([ \t]+#.*|[ \t]*)$`)

// isControl reports whether a character may only be written as an escape sequence (YAML 1.2.2, 5.1).
func isControl(r rune) bool { return r < ' ' && r != '\t' && r != '\n' }

// document parses the file: directives (YAML 1.2.2, 6.8), and one document (9.1).
func (p *parser) document() *node {
	if bad := strings.IndexFunc(p.text, isControl); bad >= 0 {
		p.fail(bad, "the control character %q must be escaped", p.text[bad:bad+1])
	}
	directives, versions := false, 0
	for p.skip(); p.at == p.line && p.char(0) == '%'; p.skip() {
		directive, _, _ := strings.Cut(p.text[p.at:], "\n")
		if strings.Fields(directive)[0] == "%YAML" {
			if versions++; versions > 1 || !yamlVersion1.MatchString(directive) {
				p.fail(p.at, "%%YAML must be given once, with version 1.2 or another one that begins with 1")
			}
		}
		p.at = min(p.at+len(directive), len(p.text))
		directives = true
	}
	marked := p.marks("---")
	switch {
	case marked:
		p.at += len("---")
	case directives:
		p.fail(p.at, "--- is required after the directives")
	case p.ends():
		p.refuse(0, "the file is empty")
	}
	root, closed := p.block(-1, !marked, false), false
	for p.skip(); p.marks("..."); p.skip() {
		p.at += len("...")
		closed = true
	}
	switch {
	case p.at >= len(p.text):
	case closed || p.marks("---"):
		p.refuse(p.at, "a second YAML document starts here; a suite file holds one")
	default:
		p.misplaced()
	}
	return root
}

// block parses the node after an indicator, in a collection that is indented by outer (8.2). In the line of the
// indicator, a collection in block style must be compact. The list that is a value may be indented like its key.
func (p *parser) block(outer int, compact, isValue bool) *node {
	at := p.at
	moved := p.skip()
	if p.ends() || moved && !p.within(outer, isValue) {
		return p.node(at)
	}
	var n *node
	p.deeper(func() { n = p.content(outer, moved || compact, isValue) })
	return n
}

func (p *parser) deeper(parse func()) {
	if p.depth > p.limits.depth {
		p.refuse(p.at, "nested more than %d levels deep", p.limits.depth)
	}
	p.depth++
	parse()
	p.depth--
}

// within reports whether the current line belongs to a node in a collection that is indented by outer.
func (p *parser) within(outer int, isValue bool) bool {
	return p.indent() > outer || isValue && p.indent() == outer && p.indicates('-') && p.at == p.line+outer
}

// content parses the node that begins with the next character, which can be a collection in block style if
// collections is true.
func (p *parser) content(outer int, collections, isValue bool) *node {
	n := p.node(p.at)
	switch {
	case collections && p.indicates('-'):
		p.sequence(n)
		return n
	case collections && (p.indicates('?') || p.indicates(':')):
		p.mapping(n, nil)
		return n
	}
	if p.properties(n); n.anchor != "" {
		switch moved := p.skip(); {
		case p.ends() || moved && !p.within(outer, isValue):
			return n
		case moved:
			var value *node
			p.deeper(func() { value = p.content(outer, true, isValue) })
			if value.anchor != "" || value.kind == aliasNode {
				p.fail(value.begin, "a value can have one anchor, and an alias none")
			}
			value.anchor, value.begin, value.position = n.anchor, n.begin, n.position
			*n = *value
			return n
		}
	}
	if line := p.line; !p.key(n, outer+1) || p.line != line {
		return n
	}
	if !collections {
		p.misplaced()
	}
	m := &node{position: n.position, begin: n.begin, start: n.begin}
	p.mapping(m, n)
	return m
}

// key parses what can be a key, and reports whether a colon follows.
func (p *parser) key(n *node, indent int) bool {
	if !p.indicates(':') {
		p.inline(n, indent, false)
	}
	p.blanks()
	return p.indicates(':')
}

// next moves to the next entry of a collection in block style that is indented by indent, if there is one.
func (p *parser) next(indent int) bool {
	p.skip()
	switch {
	case p.ends():
		return false
	case p.at != p.line+p.indent() || p.indent() > indent:
		p.misplaced()
	}
	return p.err == nil && p.indent() == indent
}

// opens returns the indentation of a collection in block style that starts at an offset.
func (p *parser) opens(at int) int {
	if tab := strings.IndexByte(p.text[p.line:max(at, p.line)], '\t'); tab >= 0 {
		p.fail(p.line+tab, "a tab cannot indent a key or item")
	}
	return at - p.line
}

// sequence parses a list in block style (8.2.1).
func (p *parser) sequence(n *node) {
	n.kind, n.indent = sequenceNode, p.opens(p.at)
	for more := true; more; more = p.next(n.indent) && p.indicates('-') {
		dash := p.at
		p.at++
		item := p.block(n.indent, true, false)
		item.begin = dash
		n.content, n.end = append(n.content, item), item.end
	}
}

// mapping parses a document in block style (8.2.2). Its first key has been read unless it is nil.
func (p *parser) mapping(n, key *node) {
	at := p.at
	if key != nil {
		at = key.begin
	}
	n.kind, n.indent = mappingNode, p.opens(at)
	for more := true; more; more = p.next(n.indent) {
		begin, compact := p.at, false
		switch {
		case key != nil:
		case p.indicates('?'):
			p.at++
			key = p.block(n.indent, true, true)
			key.begin, compact = begin, true
			if !p.next(n.indent) || !p.indicates(':') {
				n.content, key = append(n.content, key, p.node(p.at)), nil
				continue
			}
		case p.indicates(':'):
			key, compact = p.node(begin), true
		default:
			key = p.node(begin)
			p.properties(key)
			if line := p.line; !p.key(key, n.indent+1) || p.line != line {
				p.noColon(key.begin)
			}
		}
		if p.err != nil {
			return
		}
		p.at++ // the colon
		value := p.block(n.indent, compact, true)
		n.content, n.end, key = append(n.content, key, value), value.end, nil
	}
}

// properties reads the anchor of a node and the blanks after it in its line.
func (p *parser) properties(n *node) {
	switch p.char(0) {
	case '!':
		at := p.at
		p.refuse(at, "tag %s is not supported", p.name())
	case '&':
		at := p.at
		p.at++
		if n.anchor = p.name(); n.anchor == "" {
			p.fail(at, "an anchor must have a name")
		}
		p.anchors[n.anchor] = n
		p.blanks()
		n.start, n.end = p.at, p.at
		if c := p.char(0); c == '&' || c == '*' {
			p.fail(p.at, "a value can have one anchor, and an alias none")
		}
		p.properties(n) // a tag
	}
}

// name reads the name of an anchor or alias, or a tag (6.9.2).
func (p *parser) name() string {
	start := p.at
	for c := p.char(0); !isBlank(c) && !isFlow(c); c = p.char(0) {
		p.at++
	}
	return p.text[start:p.at]
}

// inline reads a scalar, an alias, or a collection in braces or brackets. Its lines after the first must be indented
// by at least indent.
func (p *parser) inline(n *node, indent int, inFlow bool) {
	n.start = p.at
	switch c := p.char(0); {
	case c == '"' || c == '\'':
		p.quoted(n, indent)
	case c == '[' || c == '{':
		p.deeper(func() { p.flow(n, indent) })
	case c == '*':
		p.at++
		n.kind, n.value = aliasNode, p.name()
		if n.target = p.anchors[n.value]; n.target == nil {
			p.refuse(n.start, "alias *%s has no anchor before it", n.value)
		}
	case (c == '|' || c == '>') && !inFlow:
		p.lines(n, indent-1)
		p.long = n
		return
	default:
		p.plain(n, indent, inFlow)
	}
	if n.end = p.at; p.line > n.start && n.kind == scalarNode {
		p.long = n
	}
}

// flow parses a collection in braces or brackets (7.4).
func (p *parser) flow(n *node, indent int) {
	n.style, n.kind = p.char(0), mappingNode
	closing := byte('}')
	if n.style == '[' {
		n.kind, closing = sequenceNode, ']'
	}
	p.open = append(p.open, n)
	p.at++
	for p.separate(indent); p.char(0) != closing; p.separate(indent) {
		if p.char(0) == 0 {
			p.unclosed("")
			return
		}
		n.content = append(n.content, p.entry(n.style, indent)...)
		p.separate(indent)
		switch c := p.char(0); {
		case c == ',':
			p.at++
		case c != closing && c != 0:
			p.noComma()
		}
	}
	p.closes(n)
	p.at++
}

// separate skips blanks, line breaks and comments in braces and brackets.
func (p *parser) separate(indent int) {
	switch moved := p.skip(); {
	case p.at >= len(p.text):
	case moved && p.indent() < indent && strings.IndexByte("]},", p.char(0)) >= 0:
		p.fail(p.at, "this line continues a value, and must be indented more than its key or item")
	case moved && p.indent() < indent:
		p.unclosed(p.orIndent())
	case p.ends():
		p.unclosed("")
	}
}

// entry parses an item of a list in brackets, or a key and value in braces. An item can be a key and its value:
// a document without braces.
func (p *parser) entry(in byte, indent int) []*node {
	begin, explicit := p.at, p.char(0) == '?' && isBlank(p.char(1))
	if explicit {
		p.at++
		p.separate(indent)
	} else if p.char(0) == ',' {
		p.fail(p.at, "a value is missing before the comma")
	}
	line := p.line
	key := p.flowNode(indent)
	key.begin = begin
	after, lineAfter := p.at, p.line
	p.separate(indent)
	adjacent := p.char(0) == ':' && (key.style != 0) // as in JSON
	value := (*node)(nil)
	switch isPair := in == '{' || explicit; {
	case (p.separates() || adjacent) && (isPair || lineAfter == line && p.line == line):
		p.at++
		p.separate(indent)
		value = p.flowNode(indent)
	case isPair && key.style != 0 && p.char(0) != 0 && p.char(0) != ',' && !strings.ContainsRune("]}", p.rune()):
		p.fail(p.at, "a colon is missing before %q", p.rune())
		return nil
	case isPair:
		value = p.node(after)
	default:
		return []*node{key}
	}
	if in == '{' {
		return []*node{key, value}
	}
	return []*node{{kind: mappingNode, style: '{', content: []*node{key, value}, position: key.position,
		begin: begin, start: begin, end: value.end}}
}

// flowNode parses a node in braces or brackets. It may be empty.
func (p *parser) flowNode(indent int) *node {
	n := p.node(p.at)
	if p.properties(n); n.anchor != "" {
		p.separate(indent)
	}
	n.start, n.end = p.at, p.at
	if c := p.char(0); c != 0 && c != ',' && c != ']' && c != '}' && !p.separates() {
		p.inline(n, indent, true)
	}
	return n
}
