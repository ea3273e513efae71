package source

import (
	"fmt"
	"strings"
)

// unexpected reports that no value can begin with the next character.
func (p *parser) unexpected() {
	if p.at < len(p.text) {
		p.fail(p.at, "unexpected %q", p.rune())
	}
	p.fail(p.at, "the file ends within a value")
}

// misplaced reports that the next character cannot follow what is before it.
func (p *parser) misplaced() {
	switch before := p.text[p.line:p.at]; {
	case p.inLong():
	case p.language == "JSON":
		p.unexpected()
	case p.at == p.line+p.indent():
		p.fail(p.at, "the indentation of this line matches no key or item above it%s", p.afterLines())
	case strings.Trim(before, " \t") == "":
		p.fail(p.line+p.indent(), "a tab cannot indent a key or item")
	case p.char(0) == ':':
		p.fail(p.at, "no key can be before this colon: quote it if it is text, or check the indentation")
	default:
		p.unexpected()
	}
}

// noColon reports that a line has no key.
func (p *parser) noColon(at int) {
	p.fail(at, "this line has no colon after a key%s", p.afterLines())
}

// afterLines mentions the literal or folded scalar above the current line. The line may belong to it.
func (p *parser) afterLines() string {
	n := p.long
	if n == nil || !isLines(n) || n.end > p.line || strings.TrimSpace(p.text[n.end:p.line]) != "" {
		return ""
	}
	return fmt.Sprintf("; it is indented too little for the block scalar (%c) on line %d", n.style, n.position.Line)
}

// inLong reports a scalar of several lines before a character that cannot follow it: it has a closing quote too few, or
// a colon too few.
func (p *parser) inLong() bool {
	n := p.long
	if n == nil || isLines(n) || n.end > p.at || strings.Trim(p.text[n.end:p.at], " \t") != "" {
		return false
	}
	switch next := p.describe(); {
	case n.style != 0:
		p.fail(n.start, "the closing quote of this string is missing, or %s cannot follow it", next)
	case p.char(0) == ':' && p.startsLine(n.start):
		p.fail(n.start, "this text extends to %s: put a colon after its key, or quotes around the text", next)
	default:
		return false
	}
	return true
}

// startsLine reports whether only indentation and the dashes of items precede an offset in its line.
func (p *parser) startsLine(at int) bool {
	return strings.Trim(p.text[strings.LastIndexByte(p.text[:at], '\n')+1:at], " -") == ""
}

// describe names the next character and its line.
func (p *parser) describe() string {
	if p.at >= len(p.text) {
		return "the end of the file"
	}
	return fmt.Sprintf("the %q on line %d", p.rune(), p.lineNumber())
}

func (p *parser) lineNumber() int { return strings.Count(p.text[:p.at], "\n") + 1 }

// closes ends a collection in braces or brackets. If its closing character begins a line that is indented less than the
// line where the collection begins, it probably belongs to an outer one: then this one is the suspect if a closing
// character is missing later.
func (p *parser) closes(n *node) {
	p.open = p.open[:len(p.open)-1]
	if p.suspect == nil && strings.Trim(p.text[p.line:p.at], " \t") == "" {
		opening := p.text[strings.LastIndexByte(p.text[:n.start], '\n')+1:]
		if p.at-p.line < len(opening)-len(strings.TrimLeft(opening, " \t")) {
			p.suspect = n
		}
	}
	if len(p.open) == 0 {
		p.suspect = nil
	}
}

// unclosed reports the innermost collection in braces or brackets as not closed, or the suspect in it.
func (p *parser) unclosed(more string) {
	n := p.open[len(p.open)-1]
	if p.suspect != nil && p.suspect.start > n.start {
		n = p.suspect
	}
	p.fail(n.start, "%c is missing for this %c%s", closer(n), n.style, more)
}

func closer(n *node) byte { return n.style + 2 } // as in ASCII

// orIndent mentions that the current line may be indented wrongly.
func (p *parser) orIndent() string {
	with := ""
	if p.text[p.line+p.indent()] == '\t' {
		with = ", with spaces"
	}
	return fmt.Sprintf(", or line %d must be indented more than the key or item%s", p.lineNumber(), with)
}

// noComma reports that the next character cannot follow an entry of a collection in braces or brackets.
func (p *parser) noComma() {
	n := p.open[len(p.open)-1]
	isCloser := strings.ContainsRune("]}", p.rune())
	for _, outer := range p.open {
		if isCloser && closer(outer) == p.char(0) {
			p.unclosed(" before " + p.describe())
			return
		}
	}
	switch line := n.position.Line; {
	case p.inLong():
	case line != p.lineNumber():
		p.fail(p.at, "a comma, or %c for the %c on line %d, is missing before %q", closer(n), n.style, line, p.rune())
	default:
		p.fail(p.at, "a comma or %c is missing before %q", closer(n), p.rune())
	}
}

// unquoted reports that a string in quotes ends within a line that is indented too little.
func (p *parser) unquoted(start int) {
	switch {
	case p.ends():
		p.fail(start, "the closing quote of this string is missing")
	case p.char(0) == p.text[start]:
		p.fail(p.at, "this line continues a value, and must be indented more than its key or item")
	default:
		p.fail(start, "the closing quote of this string is missing%s", p.orIndent())
	}
}
