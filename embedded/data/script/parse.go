package script

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Parse parses the source of one function: function name(a, b) { … },
// (a, b) => …, or a => ….
func Parse(source string) (*Function, error) {
	tokens, err := scan(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	n, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	p.accept(";")
	if p.peek() != "" {
		return nil, p.unexpected()
	}
	f, ok := n.(*function)
	if !ok {
		return nil, fmt.Errorf("%w: the source is no function", ErrUnsupported)
	}
	return &Function{f.params, f.body}, nil
}

// ParseLoose parses the source of a function, or what stands in its body, as
// $where takes both. A body of one expression returns it.
func ParseLoose(source string) (*Function, error) {
	tokens, err := scan(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	if p.peek() == "function" || p.arrow() {
		return Parse(source)
	}
	if e, err := p.expression(0); err == nil {
		p.accept(";")
		if p.peek() == "" {
			return &Function{body: []statement{{kind: "return", expr: e}}}, nil
		}
	}
	p.at = 0
	f := &Function{}
	for p.peek() != "" {
		list, err := p.statement(0)
		if err != nil {
			return nil, err
		}
		f.body = append(f.body, list...)
	}
	return f, nil
}

// scan splits source into tokens: names, numbers, strings with a leading
// quote, operators.
func scan(source string) ([]string, error) {
	var out []string
	s := []rune(source)
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case unicode.IsSpace(c):
			i++
		case c == '/' && i+1 < len(s) && s[i+1] == '/':
			for i < len(s) && s[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(s) && s[i+1] == '*':
			end := strings.Index(string(s[i+2:]), "*/")
			if end < 0 {
				return nil, fmt.Errorf("%w: a comment without end", ErrUnsupported)
			}
			i += 4 + len([]rune(string(s[i+2:])[:end]))
		case unicode.IsLetter(c) || c == '_' || c == '$':
			j := i
			for j < len(s) && (unicode.IsLetter(s[j]) || unicode.IsDigit(s[j]) || s[j] == '_' || s[j] == '$') {
				j++
			}
			out = append(out, string(s[i:j]))
			i = j
		case unicode.IsDigit(c):
			j := i
			for j < len(s) && (unicode.IsDigit(s[j]) || s[j] == '.') {
				j++
			}
			out = append(out, string(s[i:j]))
			i = j
		case c == '\'' || c == '"':
			var b strings.Builder
			j := i + 1
			for ; j < len(s) && s[j] != c; j++ {
				if s[j] == '\\' && j+1 < len(s) {
					j++
					if r, ok := map[rune]rune{'n': '\n', 't': '\t', '\\': '\\', '\'': '\'', '"': '"'}[s[j]]; ok {
						b.WriteRune(r)
						continue
					}
					return nil, fmt.Errorf("%w: escape \\%c", ErrUnsupported, s[j])
				}
				b.WriteRune(s[j])
			}
			if j >= len(s) {
				return nil, fmt.Errorf("%w: a string without end", ErrUnsupported)
			}
			out = append(out, "'"+b.String())
			i = j + 1
		default:
			op := operatorAt(s[i:])
			if op == "" {
				return nil, fmt.Errorf("%w: %q", ErrUnsupported, c)
			}
			out = append(out, op)
			i += len(op)
		}
	}
	return out, nil
}

var operators = []string{"===", "!==", "=>", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "*=", "/=",
	"+", "-", "*", "/", "%", "<", ">", "!", "=", "(", ")", "{", "}", "[", "]", ",", ";", ":", "?", "."}

func operatorAt(s []rune) string {
	for _, op := range operators {
		if len(s) >= len(op) && string(s[:len(op)]) == op {
			return op
		}
	}
	return ""
}

type parser struct {
	tokens []string
	at     int
}

func (p *parser) peek() string { return p.ahead(0) }

func (p *parser) ahead(n int) string {
	if p.at+n < len(p.tokens) {
		return p.tokens[p.at+n]
	}
	return ""
}

func (p *parser) accept(t string) bool {
	if p.peek() == t {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(t string) error {
	if !p.accept(t) {
		return p.unexpected()
	}
	return nil
}

func (p *parser) unexpected() error {
	t := p.peek()
	if t == "" {
		t = "the end"
	}
	return fmt.Errorf("%w: unexpected %s", ErrUnsupported, t)
}

// keywords are the words of the language, of which only some are known here.
var keywords = map[string]bool{"function": true, "return": true, "var": true, "let": true, "const": true, "if": true, "else": true,
	"for": true, "while": true, "do": true, "new": true, "delete": true, "typeof": true, "throw": true, "try": true, "switch": true,
	"class": true, "in": true, "instanceof": true, "void": true, "yield": true, "await": true, "async": true, "break": true, "continue": true}

func (p *parser) name() (string, error) {
	t := p.peek()
	if t == "" || keywords[t] || !unicode.IsLetter([]rune(t)[0]) && t[0] != '_' && t[0] != '$' {
		return "", p.unexpected()
	}
	p.at++
	return t, nil
}

func (p *parser) block(depth int) ([]statement, error) {
	if err := p.expect("{"); err != nil {
		return nil, err
	}
	out := []statement{}
	for !p.accept("}") {
		list, err := p.statement(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

func (p *parser) statement(depth int) ([]statement, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested too deeply", ErrUnsupported)
	}
	switch p.peek() {
	case ";":
		p.at++
		return nil, nil
	case "{":
		return p.block(depth)
	case "return":
		p.at++
		s := statement{kind: "return"}
		if t := p.peek(); t != ";" && t != "}" {
			e, err := p.expression(depth)
			if err != nil {
				return nil, err
			}
			s.expr = e
		}
		p.accept(";")
		return []statement{s}, nil
	case "var", "let", "const":
		p.at++
		var out []statement
		for {
			name, err := p.name()
			if err != nil {
				return nil, err
			}
			s := statement{kind: "declare", name: name}
			if p.accept("=") {
				if s.expr, err = p.expression(depth); err != nil {
					return nil, err
				}
			}
			out = append(out, s)
			if !p.accept(",") {
				break
			}
		}
		p.accept(";")
		return out, nil
	case "if":
		p.at++
		if err := p.expect("("); err != nil {
			return nil, err
		}
		test, err := p.expression(depth)
		if err == nil {
			err = p.expect(")")
		}
		if err != nil {
			return nil, err
		}
		s := statement{kind: "if", expr: test}
		if s.then, err = p.statement(depth + 1); err != nil {
			return nil, err
		}
		if p.accept("else") {
			if s.alt, err = p.statement(depth + 1); err != nil {
				return nil, err
			}
		}
		return []statement{s}, nil
	}
	e, err := p.expression(depth)
	if err != nil {
		return nil, err
	}
	if !p.accept(";") && p.peek() != "}" && p.peek() != "" {
		return nil, p.unexpected()
	}
	return []statement{{kind: "expr", expr: e}}, nil
}

// arrow tells whether an arrow function begins here.
func (p *parser) arrow() bool {
	if p.ahead(1) == "=>" {
		return true
	}
	if p.peek() != "(" {
		return false
	}
	for i := 1; ; i++ {
		switch t := p.ahead(i); t {
		case ")":
			return p.ahead(i+1) == "=>"
		case "", "(":
			return false
		}
	}
}

func (p *parser) expression(depth int) (node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested too deeply", ErrUnsupported)
	}
	depth++
	if p.arrow() {
		f := &function{arrow: true}
		if p.accept("(") {
			if err := p.params(f); err != nil {
				return nil, err
			}
		} else {
			n, err := p.name()
			if err != nil {
				return nil, err
			}
			f.params = []string{n}
		}
		p.at++ // =>
		if p.peek() == "{" {
			body, err := p.block(depth)
			f.body = body
			return f, err
		}
		e, err := p.expression(depth)
		f.body = []statement{{kind: "return", expr: e}}
		return f, err
	}
	left, err := p.binary(0, depth)
	if err != nil {
		return nil, err
	}
	switch op := p.peek(); op {
	case "?":
		p.at++
		then, err := p.expression(depth)
		if err == nil {
			err = p.expect(":")
		}
		if err != nil {
			return nil, err
		}
		other, err := p.expression(depth)
		return conditional{left, then, other}, err
	case "=", "+=", "-=", "*=", "/=":
		switch left.(type) {
		case variable, member:
		default:
			return nil, p.unexpected()
		}
		p.at++
		right, err := p.expression(depth)
		if err != nil {
			return nil, err
		}
		if op != "=" {
			right = binary{op[:1], left, right}
		}
		return assign{left, right}, nil
	}
	return left, nil
}

func (p *parser) params(f *function) error {
	for !p.accept(")") {
		n, err := p.name()
		if err != nil {
			return err
		}
		f.params = append(f.params, n)
		if p.peek() != ")" {
			if err := p.expect(","); err != nil {
				return err
			}
		}
	}
	return nil
}

var precedence = map[string]int{"||": 1, "&&": 2, "==": 3, "!=": 3, "===": 3, "!==": 3, "<": 4, ">": 4, "<=": 4, ">=": 4,
	"+": 5, "-": 5, "*": 6, "/": 6, "%": 6}

func (p *parser) binary(least, depth int) (node, error) {
	left, err := p.unary(depth + 1)
	if err != nil {
		return nil, err
	}
	for {
		op := p.peek()
		prec, ok := precedence[op]
		if !ok || prec <= least {
			return left, nil
		}
		p.at++
		right, err := p.binary(prec, depth+1)
		if err != nil {
			return nil, err
		}
		left = binary{op, left, right}
	}
}

func (p *parser) unary(depth int) (node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested too deeply", ErrUnsupported)
	}
	switch op := p.peek(); op {
	case "!", "-", "+":
		p.at++
		x, err := p.unary(depth + 1)
		return unary{op, x}, err
	}
	return p.postfix(depth)
}

func (p *parser) postfix(depth int) (node, error) {
	x, err := p.primary(depth)
	if err != nil {
		return nil, err
	}
	for {
		switch {
		case p.accept("."):
			n, err := p.name()
			if err != nil {
				return nil, err
			}
			x = member{x, literal{n}}
		case p.accept("["):
			key, err := p.expression(depth)
			if err == nil {
				err = p.expect("]")
			}
			if err != nil {
				return nil, err
			}
			x = member{x, key}
		case p.accept("("):
			args, err := p.list(")", depth)
			if err != nil {
				return nil, err
			}
			x = call{x, args}
		default:
			return x, nil
		}
	}
}

func (p *parser) list(end string, depth int) ([]node, error) {
	var out []node
	for !p.accept(end) {
		x, err := p.expression(depth)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if p.peek() != end {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (p *parser) primary(depth int) (node, error) {
	t := p.peek()
	switch {
	case t == "":
		return nil, p.unexpected()
	case t[0] == '\'':
		p.at++
		return literal{t[1:]}, nil
	case t[0] >= '0' && t[0] <= '9':
		n, err := strconv.ParseFloat(t, 64)
		if err != nil {
			return nil, p.unexpected()
		}
		p.at++
		return literal{n}, nil
	case t == "(":
		p.at++
		x, err := p.expression(depth)
		if err == nil {
			err = p.expect(")")
		}
		return x, err
	case t == "[":
		p.at++
		items, err := p.list("]", depth)
		return arrayLiteral(items), err
	case t == "{":
		p.at++
		return p.object(depth)
	case t == "function":
		p.at++
		f := &function{}
		if p.peek() != "(" {
			if _, err := p.name(); err != nil {
				return nil, err
			}
		}
		if err := p.expect("("); err != nil {
			return nil, err
		}
		if err := p.params(f); err != nil {
			return nil, err
		}
		body, err := p.block(depth)
		f.body = body
		return f, err
	}
	n, err := p.name()
	if err != nil {
		return nil, err
	}
	switch n {
	case "true", "false":
		return literal{n == "true"}, nil
	case "null":
		return literal{nil}, nil
	case "undefined":
		return literal{undefined{}}, nil
	case "this":
		return this{}, nil
	}
	return variable{n}, nil
}

func (p *parser) object(depth int) (node, error) {
	var o objectLiteral
	for !p.accept("}") {
		key := p.peek()
		if key != "" && key[0] == '\'' {
			p.at++
			key = key[1:]
		} else if _, err := p.name(); err != nil {
			return nil, err
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		v, err := p.expression(depth)
		if err != nil {
			return nil, err
		}
		o.keys = append(o.keys, key)
		o.values = append(o.values, v)
		if p.peek() != "}" {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}
