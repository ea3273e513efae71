package source

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// isUnprintable reports whether a character may only be in quoted scalars (YAML 1.2.2, 5.1).
func isUnprintable(r rune) bool {
	return '\x7f' <= r && r <= '\u009f' && r != '\u0085' || r == '\ufffe' || r == '\uffff'
}

func (p *parser) printable(start, end int) {
	if bad := strings.IndexFunc(p.text[start:end], isUnprintable); bad >= 0 {
		c, _ := utf8.DecodeRuneInString(p.text[start+bad:])
		p.fail(start+bad, "the character %+q must be escaped, in double quotes", string(c))
	}
}

// plain reads a scalar without quotes (7.3.3).
func (p *parser) plain(n *node, indent int, inFlow bool) {
	c, start := p.char(0), p.at
	follows := func() bool { return isBlank(p.char(1)) || inFlow && isFlow(p.char(1)) }
	if c == 0 || strings.IndexByte("-?:", c) >= 0 && follows() || strings.IndexByte(",[]{}#&*!|>'\"%@`", c) >= 0 {
		p.unexpected()
		return
	}
	end := p.at
scan:
	for ; ; p.at++ {
		switch c := p.char(0); {
		case c == 0, c == ':' && follows(), c == '#' && isBlank(p.char(-1)), inFlow && isFlow(c):
			break scan
		case c == '\n':
			if !p.continues(indent) {
				break scan
			}
		case c != ' ' && c != '\t':
			end = p.at + 1
		}
	}
	if p.at = end; p.err == nil {
		n.value = fold(p.text[start:end])
		p.printable(start, end)
	}
}

// continues moves to the last blank before the next line of a plain scalar. If the scalar has no more lines, it moves
// nothing and returns false.
func (p *parser) continues(indent int) bool {
	at, line := p.at, p.line
	for c := p.char(0); c != 0 && isBlank(c); c = p.char(0) {
		if p.at++; c == '\n' {
			p.line = p.at
		}
	}
	if p.ends() || p.indent() < indent || p.char(0) == '#' {
		p.at, p.line = at, line
		return false
	}
	p.at--
	return true
}

// fold joins the lines of a scalar: one line break is a space, each other one a line feed (6.5).
func fold(s string) string {
	if strings.IndexByte(s, '\n') < 0 {
		return s
	}
	lines := strings.Split(s, "\n")
	var b strings.Builder
	empty := 0
	for i, line := range lines {
		if i > 0 {
			line = strings.TrimLeft(line, " \t")
		}
		if i < len(lines)-1 {
			line = strings.TrimRight(line, " \t")
		}
		switch isInner := i > 0 && i < len(lines)-1; {
		case isInner && line == "":
			empty++
			continue
		case empty > 0:
			b.WriteString(strings.Repeat("\n", empty))
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(line)
		empty = 0
	}
	return b.String()
}

// quoted reads a scalar in quotes (7.3.1, 7.3.2).
func (p *parser) quoted(n *node, indent int) {
	quote, start := p.char(0), p.at
	n.style = quote
	for p.at++; ; p.at++ {
		switch c := p.char(0); {
		case c == 0:
			p.fail(start, "the closing quote of this string is missing")
			return
		case c == quote && quote == '\'' && p.char(1) == '\'', c == '\\' && quote == '"' && p.char(1) != '\n' &&
			p.char(1) != 0:
			p.at++
		case c == quote:
			text := p.text[start+1 : p.at]
			p.at++
			if quote == '\'' {
				n.value = strings.ReplaceAll(fold(text), "''", "'")
				return
			}
			n.value = p.unquote(text, start+1)
			return
		case c == '\n':
			at := p.at
			p.at++
			p.line = p.at
			line, _, _ := strings.Cut(p.text[p.at:], "\n")
			if p.ends() || strings.Trim(line, " \t") != "" && p.indent() < indent {
				p.at += p.indent()
				p.unquoted(start)
				return
			}
			p.at = at
		}
	}
}

// escapes are the characters after a backslash (YAML 1.2.2, 5.7). They include the escapes of JSON.
var escapes = map[byte]string{'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v",
	'f': "\f", 'r': "\r",
	'e': "\x1b", ' ': " ", '"': `"`, '/': "/", '\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029"}

// unquote returns the value of the text at an offset, between double quotes.
func (p *parser) unquote(text string, offset int) string {
	var b strings.Builder
	for text != "" {
		length := 2
		switch literal := strings.IndexByte(text, '\\'); {
		case literal != 0:
			if length = literal; literal < 0 {
				length = len(text)
			}
			b.WriteString(fold(text[:length]))
		case text[1] == '\n': // empty lines after it are line feeds
			rest := strings.TrimLeft(text[1:], " \t\n")
			length = len(text) - len(rest)
			b.WriteString(strings.Repeat("\n", strings.Count(text[:length], "\n")-1))
		case escapes[text[1]] != "":
			b.WriteString(escapes[text[1]])
		default:
			var r rune
			if r, length = codePoint(text); length == 0 {
				p.fail(offset, "unknown escape sequence %s", string([]rune(text)[:2]))
				return ""
			} else if !utf8.ValidRune(r) {
				p.refuse(offset, "%s is not a character; surrogates must be in pairs, such as \\ud83d\\ude00", text[:length])
				return ""
			}
			b.WriteRune(r)
		}
		text, offset = text[length:], offset+length
	}
	return b.String()
}

var (
	hexEscape     = regexp.MustCompile(`^\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))`)
	surrogatePair = regexp.MustCompile(`^\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})`)
)

// codePoint returns the code point at the start of a text in hexadecimal escapes, and their length, 0 if there are
// none.
func codePoint(text string) (r rune, length int) {
	hex := func(digits string) rune {
		n, _ := strconv.ParseUint(digits, 16, 32)
		return rune(min(n, unicode.MaxRune+1))
	}
	if pair := surrogatePair.FindStringSubmatch(text); pair != nil {
		return utf16.DecodeRune(hex(pair[1]), hex(pair[2])), len(pair[0])
	}
	if one := hexEscape.FindStringSubmatch(text); one != nil {
		return hex(one[1] + one[2] + one[3]), len(one[0])
	}
	return 0, 0
}

var blockHeader = regexp.MustCompile(`^[|>](?:([-+]?)([1-9]?)|([1-9])([-+]))(?:[ \t]|\n|$)`)

// lines reads a literal or folded scalar in a collection that is indented by outer (8.1).
func (p *parser) lines(n *node, outer int) {
	n.style = p.char(0)
	header := blockHeader.FindStringSubmatch(p.text[p.at:])
	if header == nil {
		p.fail(p.at, "%c can be followed by + or - and an indentation from 1 to 9", n.style)
		return
	}
	chomping := header[1] + header[4]
	n.indent = -1
	if digit := header[2] + header[3]; digit != "" {
		n.indent = outer + int(digit[0]-'0')
	}
	p.at += 1 + len(header[1]+header[2]+header[3]+header[4])
	p.blanks()
	if p.at < len(p.text) && p.char(0) != '\n' {
		p.unexpected()
		return
	}
	p.at = min(p.at+1, len(p.text))
	p.line = p.at
	var lines []string
	n.end = p.at
	deepest := 0 // of the blank lines before the first other one
	for p.at < len(p.text) && !p.ends() {
		line, _, ended := strings.Cut(p.text[p.at:], "\n")
		indent, isBlank := p.indent(), strings.Trim(line, " ") == ""
		switch {
		case isBlank && n.indent < 0:
			deepest = max(deepest, len(line))
		case n.indent < 0 && indent > outer:
			if n.indent = indent; deepest > indent {
				p.fail(p.at, "the blank lines above this one must not be indented more than it")
			}
		}
		if !isBlank && indent < max(n.indent, outer+1) {
			if n.indent < 0 && line[indent] == '\t' {
				p.fail(p.at, "a tab cannot indent a line")
			}
			break
		}
		text := ""
		if n.indent >= 0 {
			text = line[min(n.indent, len(line)):]
		}
		if text != "" || ended { // blanks at the end of the file are not a line
			lines = append(lines, text)
		}
		if p.at = min(p.at+len(line)+1, len(p.text)); p.err == nil {
			p.line, n.end = p.at, p.at
		}
	}
	p.printable(n.start, max(n.start, n.end))
	n.value = chomp(lines, n.style == '>', chomping)
}

// chomp joins the lines of a literal or folded scalar. The blank ones at the end are not content (8.1.1.2).
func chomp(lines []string, folded bool, chomping string) string {
	all := len(lines)
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var b strings.Builder
	empty, deeper := 0, false // before a line: the blank ones; the last other one is indented more
	for i, line := range lines {
		if line == "" {
			empty++
			continue
		}
		wasDeeper := deeper
		switch deeper = line[0] == ' ' || line[0] == '\t'; {
		case i == empty: // the first
			b.WriteString(strings.Repeat("\n", empty))
		case folded && !deeper && !wasDeeper && empty == 0:
			b.WriteByte(' ')
		case folded && !deeper && !wasDeeper:
			b.WriteString(strings.Repeat("\n", empty))
		default:
			b.WriteString(strings.Repeat("\n", empty+1))
		}
		b.WriteString(line)
		empty = 0
	}
	if len(lines) > 0 && chomping != "-" {
		b.WriteByte('\n')
	}
	if chomping == "+" {
		b.WriteString(strings.Repeat("\n", all-len(lines)))
	}
	return b.String()
}
