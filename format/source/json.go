package source

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"
)

// jsonNodes returns the root of a JSON document. It is also YAML.
func jsonNodes(l limits, file string, data []byte) (*node, error) {
	if json.Unmarshal(data, new(json.RawMessage)) != nil {
		return nil, explainJSON(l, file, data)
	}
	return yamlNodes(l, file, data)
}

// explainJSON returns what is wrong with a document that is not JSON, at the place where it stops to be JSON. If the
// document is not YAML either, for a reason that is found at the same place, that is the mistake: the collection or
// string that is not closed. It begins before the place.
func explainJSON(l limits, file string, data []byte) error {
	p := newParser(l, file, data)
	p.language = "JSON"
	p.document()
	at, inString := len(p.text), false
	var syntax *json.SyntaxError
	if err := json.Unmarshal([]byte(p.text), new(json.RawMessage)); errors.As(err, &syntax) &&
		syntax.Error() != "unexpected end of JSON input" {
		at = max(0, int(syntax.Offset)-1) // the offset includes the invalid byte
		inString = p.text[at] == '\n' && strings.Contains(syntax.Error(), "in string literal")
	}
	if p.err != nil && (p.failedAt == at || at < len(p.text) &&
		p.text[at] == ':') { // a list that is not closed has no colons
		return p.err
	}
	before := strings.TrimRight(p.text[:at], " \t\n")
	isLetter := func(r rune) bool { return unicode.IsLetter(r) || r == '_' }
	start := len(strings.TrimRightFunc(p.text[:at], isLetter))
	word := p.text[start : len(p.text)-len(strings.TrimLeftFunc(p.text[at:], isLetter))]
	p.err, p.at = nil, at
	switch c := p.char(0); {
	case inString:
		p.fail(stringStart(p.text[:at]), "the closing quote of this string is missing")
	case (c == '}' || c == ']') && strings.HasSuffix(before, ","):
		p.fail(len(before)-1, "a comma cannot precede %c", c)
	case c == '\'':
		p.fail(at, "a string must be in double quotes")
	case c == '#' || c == '/':
		p.fail(at, "comments are not allowed")
	case word != "":
		p.fail(start, "%s is not JSON: text and keys must be in double quotes", word)
	case c == '"' || c == '{' || c == '[':
		p.fail(at, "a comma is missing before %q", c)
	default:
		p.unexpected()
	}
	return p.err
}

// stringStart returns the offset of the quote that begins the string at the end of a text.
func stringStart(text string) int {
	for at := len(text) - 1; at > 0; at-- {
		escapes := len(text[:at]) - len(strings.TrimRight(text[:at], `\`))
		if text[at] == '"' && escapes%2 == 0 {
			return at
		}
	}
	return 0
}
