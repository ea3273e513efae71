package source

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Format returns a YAML file in the layout of our suites: indented by two spaces, lists inside documents too, spaces
// inside braces and brackets, and at most one blank line between items. A document or list in braces that has several
// lines becomes one line of at most 120 characters, or else a block. Order, quotes and comments are kept. Errors are
// *Error. A file whose values or comments would change is an error.
func Format(file string, data []byte) ([]byte, error) {
	before, err := ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(data), "\ufeff"))
	for range 4 { // the parser can attach a comment to another item once it has moved
		out, err := layout(text)
		if err == nil && out == text {
			return []byte(out), nil
		}
		after, invalid := ParseYAML(file, []byte(out))
		_, _, differ := Difference(before, after)
		if err != nil || invalid != nil || differ || !slices.Equal(comment.FindAllString(text, -1), comment.FindAllString(out, -1)) {
			break
		}
		text = out
	}
	return nil, errorAt(before.Position, "this file cannot be formatted without changing its values or comments")
}

// layout formats a YAML file once.
func layout(text string) (string, error) {
	text = strings.TrimLeft(text, "\n") // the parser would attach comments after it elsewhere
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return "", err
	}
	p := &printer{source: strings.Split(text, "\n")}
	if head := document.HeadComment; head != "" {
		p.comments(head+"\n", 0)
	}
	if root := document.Content[0]; isBlock(root, 0) {
		p.block(root, 0, "")
	} else {
		p.value(root, -indentation, 0)
	}
	p.comments(document.FootComment, 0)
	return strings.TrimLeft(p.out.String(), " "), nil
}

// comment matches comments, and scalars that look like one.
var comment = regexp.MustCompile(`#.*`)

const (
	indentation = 2
	width       = 120
)

// printer writes nodes. An indent or column is a number of characters.
type printer struct {
	source []string // lines
	out    bytes.Buffer
}

// block writes a document or list with an item per line. The first line starts with lead, if that is not "".
func (p *printer) block(n *yaml.Node, indent int, lead string) {
	isDocument, step := n.Kind == yaml.MappingNode, 1
	if isDocument {
		step = 2
	}
	for i := 0; i < len(n.Content); i += step {
		first, last := n.Content[i], n.Content[i+step-1]
		if isDocument && !isBlock(last, 0) && last.HeadComment != "" { // between a key and its value
			first.HeadComment = strings.TrimPrefix(first.HeadComment+"\n"+last.HeadComment, "\n")
		}
		if i > 0 || lead == "" {
			p.above(first, indent, i > 0)
			lead = strings.Repeat(" ", indent)
		}
		start := "-"
		if isDocument {
			start = inline(first) + ":"
		}
		p.out.WriteString(lead + start)
		if !isDocument && last.Anchor == "" && isBlock(last, indent+indentation) {
			p.block(last, indent+indentation, " ")
		} else {
			if isDocument {
				p.remark(first)
			}
			p.value(last, indent, indent+len(start))
		}
		p.comments(first.FootComment, indent)
	}
}

// above writes the comments of an item and the blank line before them.
func (p *printer) above(item *yaml.Node, indent int, gap bool) {
	line := item.Line - 2 // the one above, from 0
	var comments []string
	for n := item; ; n = n.Content[0] {
		if n.HeadComment != "" {
			comments = append(comments, n.HeadComment)
			line -= strings.Count(n.HeadComment, "\n") + 1
			n.HeadComment = ""
		}
		if len(n.Content) == 0 || n.Style&yaml.FlowStyle != 0 {
			break
		}
	}
	line = min(line, len(p.source)-1) // the parser also counts line breaks of YAML 1.1
	for line > 0 && strings.HasPrefix(strings.TrimSpace(p.source[line]), "#") {
		line--
	}
	if gap && line > 0 && strings.TrimSpace(p.source[line]) == "" && !bytes.HasSuffix(p.out.Bytes(), []byte("\n\n")) {
		p.out.WriteByte('\n')
	}
	p.comments(strings.Join(comments, "\n"), indent)
}

func (p *printer) comments(text string, indent int) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			line = strings.Repeat(" ", indent) + line
		}
		p.out.WriteString(line + "\n")
	}
}

// remark writes the comment at the end of a line.
func (p *printer) remark(n *yaml.Node) {
	if n.LineComment != "" {
		p.out.WriteString(" " + n.LineComment)
	}
}

// value writes the rest of an item, which begins at indent, from column on.
func (p *printer) value(n *yaml.Node, indent, column int) {
	block, text := isBlock(n, column+1), ""
	switch {
	case !block:
		text = inline(n)
	case n.Anchor != "":
		text = "&" + n.Anchor
	}
	if text != "" {
		p.out.WriteString(" " + text)
	}
	p.remark(n)
	p.out.WriteByte('\n')
	if block {
		p.block(n, indent+indentation, "")
	} else if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		p.lines(n, indent+indentation)
	}
}

// isBlock reports whether a value is written on the lines after its key, and not beside it, from column on.
func isBlock(n *yaml.Node, column int) bool {
	switch {
	case len(n.Content) == 0:
		return false
	case n.Style&yaml.FlowStyle == 0 || hasComment(n):
		return true
	}
	return lastLine(n) > n.Line && column+utf8.RuneCountInString(inline(n)) > width
}

func hasComment(n *yaml.Node) bool {
	return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool {
		return c.HeadComment+c.LineComment+c.FootComment != "" || hasComment(c)
	})
}

func lastLine(n *yaml.Node) int {
	for len(n.Content) > 0 {
		n = n.Content[len(n.Content)-1]
	}
	return n.Line
}

// inline renders a node on one line, or the first line of a literal or folded scalar.
func inline(n *yaml.Node) string {
	text := n.Value
	var parts []string
	switch {
	case n.Kind == yaml.AliasNode:
		return "*" + n.Value
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		text = "[]"
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			parts = append(parts, inline(item))
		}
		text = "[ " + strings.Join(parts, ", ") + " ]"
	case n.Kind == yaml.MappingNode && len(n.Content) == 0:
		text = "{}"
	case n.Kind == yaml.MappingNode:
		for pair := range slices.Chunk(n.Content, 2) {
			parts = append(parts, strings.TrimSuffix(inline(pair[0])+": "+inline(pair[1]), " "))
		}
		text = "{ " + strings.Join(parts, ", ") + " }"
	case n.Style&yaml.SingleQuotedStyle != 0 && !strings.Contains(text, "\n"):
		text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		text = Quote(text)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		text = header(n)
	}
	if n.Anchor != "" {
		text = strings.TrimSuffix("&"+n.Anchor+" "+text, " ")
	}
	return text
}

// header returns the indicators of a literal or folded scalar.
func header(n *yaml.Node) string {
	text := "|"
	if n.Style&yaml.FoldedStyle != 0 {
		text = ">"
	}
	switch {
	case !strings.HasSuffix(n.Value, "\n"):
		text += "-"
	case strings.HasSuffix(n.Value, "\n\n") || n.Value == "\n":
		text += "+"
	}
	return text
}

// lines writes the lines of a literal or folded scalar. Those of a folded one are only in the source.
func (p *printer) lines(n *yaml.Node, indent int) {
	lines, own := strings.Split(strings.TrimSuffix(n.Value, "\n"), "\n"), 0
	if n.Style&yaml.FoldedStyle != 0 {
		lines = p.source[min(n.Line, len(p.source)):]
		depth := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
		blank := func(line string) bool { return strings.Trim(line, " ") == "" }
		if first := slices.IndexFunc(lines, func(line string) bool { return !blank(line) }); first >= 0 {
			own = depth(lines[first])
		}
		end := slices.IndexFunc(lines, func(line string) bool { return !blank(line) && depth(line) < own })
		if end >= 0 {
			lines = lines[:end]
		}
		for !strings.HasSuffix(n.Value, "\n\n") && len(lines) > 0 && blank(lines[len(lines)-1]) {
			lines = lines[:len(lines)-1]
		}
	}
	for _, line := range lines {
		line = line[min(own, len(line)):]
		if line != "" {
			line = strings.Repeat(" ", indent) + line
		}
		p.out.WriteString(line + "\n")
	}
}
