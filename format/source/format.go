package source

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Format returns a YAML file in the layout of our suites: indented by two spaces, lists inside documents too, spaces
// inside braces and brackets, and at most one blank line between items. A document or list in braces that has several
// lines becomes one line of at most 120 characters, or else a block. Order, quotes and comments are kept; directives
// and document markers are not. Errors are *Error. A file whose values or comments would change is an error.
func Format(file string, data []byte) ([]byte, error) {
	before, err := ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	p := newParser(usual(), file, bytes.TrimPrefix(data, []byte("\ufeff")))
	root := p.document()
	w := &printer{text: p.text, comments: p.comments}
	w.document(root)
	place := before
	if formatted := newParser(usual(), file, w.out.Bytes()); w.cannot == nil {
		after, err := (&reader{limits: usual()}).value(formatted.document(), 0)
		_, values, differ := Difference(before, after)
		switch {
		case formatted.err != nil || err != nil:
		case differ && values[0] != nil:
			place = values[0]
		case !differ && slices.EqualFunc(p.comments, formatted.comments, func(a, b comment) bool { return a.text == b.text }):
			return w.out.Bytes(), nil
		}
	} else {
		place = &Value{Position: w.cannot.position}
	}
	return nil, errorAt(place.Position, "this file cannot be formatted without changing its values or comments")
}

const (
	indentation = 2
	width       = 120
)

// printer writes nodes. An indent or column is a number of characters.
type printer struct {
	text     string    // the file
	comments []comment // those that are not written yet
	line     int       // the offset of the line whose distance to the line above it is written
	cannot   *node     // the first that cannot be written
	out      bytes.Buffer
}

func (w *printer) document(root *node) {
	if w.isBlock(root, 0) {
		w.block(root, 0, "", len(w.text))
	} else {
		if isLines(root) {
			w.cannot = root // its lines would need another indentation
		}
		it := item{first: root, value: root, end: lineEnd(root)}
		w.above(it, 0, false)
		w.value(it, -indentation, len(w.text))
	}
	w.flush(0, true, func(comment) bool { return true })
}

// item is a key with its value, or an item of a list.
type item struct {
	first, value *node  // the key and the value, or the item twice
	start        string // the key with its colon, or a dash
	block        bool   // the value is written on the lines after the key, or is a block that begins beside the dash
	compact      bool   // the latter
	end          int    // the offset at which the comment of its first line can start
}

// lineEnd returns the offset after a value, or before the lines of a literal or folded scalar.
func lineEnd(n *node) int {
	if isLines(n) {
		return n.start
	}
	return n.end
}

func isLines(n *node) bool { return n.style == '|' || n.style == '>' }

// items returns the items of a collection that is written as a block.
func (w *printer) items(n *node, indent int) (all []item) {
	step := 1
	if n.kind == mappingNode {
		step = 2
	}
	for pair := range slices.Chunk(n.content, step) {
		it := item{first: pair[0], value: pair[step-1], start: "-"}
		if n.kind == mappingNode {
			it.start = w.key(it.first)
		}
		it.block = w.isBlock(it.value, indent+utf8.RuneCountInString(it.start)+1)
		it.compact = it.block && n.kind == sequenceNode && it.value.anchor == ""
		switch {
		case !it.block:
			it.end = lineEnd(it.value)
		case n.kind == mappingNode:
			it.end = it.first.end
		default:
			it.end = it.first.begin
		}
		all = append(all, it)
	}
	return all
}

// block writes a collection with an item per line. The first line starts with lead, if that is not "". The next value
// in the file begins at the offset next.
func (w *printer) block(n *node, indent int, lead string, next int) {
	items := w.items(n, indent)
	for i, it := range items {
		follows := next
		if i+1 < len(items) {
			follows = items[i+1].first.begin
		}
		if i > 0 || lead == "" {
			w.above(it, indent, i > 0)
			lead = strings.Repeat(" ", indent)
		}
		w.out.WriteString(lead + it.start)
		if it.compact {
			w.block(it.value, indent+indentation, " ", follows)
		} else {
			w.value(it, indent, follows)
		}
	}
	column := -1 // of the next value
	if next < len(w.text) {
		column = next - 1 - strings.LastIndexByte(w.text[:next], '\n')
	}
	w.flush(indent, true, func(c comment) bool {
		return c.at < n.end || c.at < next && n.style == 0 && c.column >= n.indent && c.column > column
	})
}

// above writes the comments of an item and the blank line before them.
func (w *printer) above(it item, indent int, gap bool) {
	limit := w.limit(it, indent)
	if w.flush(indent, gap, func(c comment) bool { return c.at < limit }) {
		gap = true
	}
	w.gap(it.first.begin, gap)
}

// limit returns the offset before which comments belong above the line in which an item begins.
func (w *printer) limit(it item, indent int) int {
	if it.compact {
		return w.limit(w.items(it.value, indent+indentation)[0], indent+indentation)
	}
	return it.end
}

// flush writes the next comments that belong here, and reports whether there are any.
func (w *printer) flush(indent int, gap bool, belongs func(comment) bool) (some bool) {
	for ; len(w.comments) > 0 && belongs(w.comments[0]); w.comments = w.comments[1:] {
		w.gap(w.comments[0].at, gap || some)
		w.out.WriteString(strings.Repeat(" ", indent) + w.comments[0].text + "\n")
		some = true
	}
	return some
}

// gap writes a blank line if there is one above an offset in the file.
func (w *printer) gap(at int, allowed bool) {
	line := 1 + strings.LastIndexByte(w.text[:at], '\n')
	above := strings.TrimRight(w.text[:line], " \t\n")
	isBlank := strings.Count(w.text[len(above):line], "\n") > 1
	if allowed && isBlank && line != w.line && w.out.Len() > 0 && !bytes.HasSuffix(w.out.Bytes(), []byte("\n\n")) {
		w.out.WriteByte('\n')
	}
	w.line = line
}

// value writes the rest of an item after its key or dash. The next value in the file begins at the offset next.
func (w *printer) value(it item, indent, next int) {
	n, text, inside := it.value, "", next
	switch {
	case !it.block:
		text = w.inline(n)
	case n.anchor != "":
		text = "&" + n.anchor
	}
	if it.block {
		inside = n.content[0].begin
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			w.out.WriteByte('\n')
		}
		if i > 0 && line != "" {
			line = strings.Repeat(" ", indent+indentation) + line
		} else if line != "" && indent >= 0 {
			line = " " + line
		}
		w.out.WriteString(line)
	}
	if len(w.comments) > 0 {
		if c := w.comments[0]; it.end <= c.at && c.at < inside && !strings.Contains(w.text[it.end:c.at], "\n") {
			w.out.WriteString(" " + c.text)
			w.comments = w.comments[1:]
		}
	}
	w.out.WriteByte('\n')
	switch {
	case it.block:
		w.block(n, indent+indentation, "", next)
	case isLines(n):
		w.lines(n, indent+indentation)
	}
}

// isBlock reports whether a value is written on the lines after its key, and not beside it, from column on.
func (w *printer) isBlock(n *node, column int) bool {
	switch {
	case len(n.content) == 0:
		return false
	case n.style == 0 || w.hasComment(n):
		return true
	case !strings.Contains(w.text[n.start:n.end], "\n"):
		return false
	}
	text := w.inline(n)
	return strings.Contains(text, "\n") || column+utf8.RuneCountInString(text) > width
}

func (w *printer) hasComment(n *node) bool {
	return slices.ContainsFunc(w.comments, func(c comment) bool { return n.start < c.at && c.at < n.end })
}

// key renders a key with its colon. A key in several lines is not supported.
func (w *printer) key(n *node) string {
	text := w.inline(n)
	if w.cannot == nil && (isLines(n) || strings.Contains(text, "\n")) {
		w.cannot = n
	}
	if n.kind == aliasNode || n.anchor != "" && n.start == n.end { // the colon would belong to the name
		text += " "
	}
	return text + ":"
}

// inline renders a node on one line, or the first line of a literal or folded scalar. The lines of another scalar are
// joined unless that changes its value.
func (w *printer) inline(n *node) string {
	text := w.text[n.start:n.end]
	var parts []string
	switch {
	case n.kind == sequenceNode && len(n.content) == 0:
		text = "[]"
	case n.kind == sequenceNode:
		for _, item := range n.content {
			parts = append(parts, w.inline(item))
		}
		text = "[ " + strings.Join(parts, ", ") + " ]"
	case n.kind == mappingNode && len(n.content) == 0:
		text = "{}"
	case n.kind == mappingNode:
		for pair := range slices.Chunk(n.content, 2) {
			parts = append(parts, strings.TrimSuffix(w.key(pair[0])+" "+w.inline(pair[1]), " "))
		}
		text = "{ " + strings.Join(parts, ", ") + " }"
	case isLines(n):
		text, _ = w.literal(n)
	case strings.Contains(text, "\n"):
		parts = strings.Split(text, "\n")
		for i := range parts {
			parts[i] = strings.Trim(parts[i], " \t")
		}
		text = strings.Join(parts, "\n")
		if !strings.Contains(text, "\n\n") && !strings.Contains(text, "\\\n") {
			text = strings.ReplaceAll(text, "\n", " ")
		}
	}
	if n.anchor != "" {
		text = strings.TrimSuffix("&"+n.anchor+" "+text, " ")
	}
	return text
}

// literal returns the indicators and the lines of a literal or folded scalar.
func (w *printer) literal(n *node) (header string, lines []string) {
	first, rest, _ := strings.Cut(w.text[n.start:n.end], "\n")
	header = first[:1]
	if chomping := strings.IndexAny(first[:min(3, len(first))], "+-"); chomping > 0 {
		header += first[chomping : chomping+1]
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		lines = append(lines, line[min(max(n.indent, 0), len(line)):])
	}
	for !strings.HasSuffix(header, "+") && len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if text := strings.TrimLeft(strings.Join(lines, "\n"), "\n"); strings.HasPrefix(text, " ") {
		header += strconv.Itoa(indentation)
	}
	return header, lines
}

func (w *printer) lines(n *node, indent int) {
	_, lines := w.literal(n)
	for _, line := range lines {
		if line != "" {
			line = strings.Repeat(" ", indent) + line
		}
		w.out.WriteString(line + "\n")
	}
}
