package source

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// limits bound the cost of a file. The largest official suite has 125 kB and 40 levels.
type limits struct {
	bytes int // size of a file
	depth int // nesting of documents and arrays
	nodes int // values after aliases are expanded
}

// MaxBytes is the maximum size of a file.
const MaxBytes = 16 << 20

func usual() limits { return limits{bytes: MaxBytes, depth: 200, nodes: 1_000_000} }

// ParseYAML parses one YAML document. file is the name in positions. Errors are *Error.
func ParseYAML(file string, data []byte) (*Value, error) {
	return usual().parse(file, data, yamlNodes)
}

// ParseJSON parses one JSON document as defined by RFC 8259, without duplicate keys. Errors are *Error.
func ParseJSON(file string, data []byte) (*Value, error) {
	return usual().parse(file, data, jsonNodes)
}

// Parse parses data of unknown format, such as standard input: valid JSON as JSON, everything else as YAML.
func Parse(file string, data []byte) (*Value, error) {
	if json.Valid(data) {
		return ParseJSON(file, data)
	}
	return ParseYAML(file, data)
}

func (l limits) parse(file string, data []byte, nodes func(limits, string, []byte) (*node, error)) (*Value, error) {
	data, err := l.text(file, data)
	if err != nil {
		return nil, err
	}
	root, err := nodes(l, file, data)
	if err != nil {
		return nil, err
	}
	r := &reader{limits: l}
	return r.value(root, 0)
}

// text checks size and encoding and removes a byte order mark.
func (l limits) text(file string, data []byte) ([]byte, error) {
	if len(data) > l.bytes {
		return nil, errorAt(Position{File: file, Line: 1, Column: 1},
			"the file is larger than the limit of %d bytes", l.bytes)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if utf8.Valid(data) {
		return data, nil
	}
	for at, r := range string(data) {
		if r == utf8.RuneError && !bytes.HasPrefix(data[at:], []byte("\ufffd")) {
			return nil, errorAt(positionAt(file, data, at), "byte 0x%02X is not valid UTF-8", data[at])
		}
	}
	return data, nil
}

func positionAt(file string, data []byte, offset int) Position {
	c := cursor{text: string(data)}
	return c.position(file, offset)
}

// cursor converts increasing byte offsets to positions in one pass.
type cursor struct {
	text   string
	offset int // of line and column
	line   int // from 0
	column int // from 0, in characters
}

func (c *cursor) position(file string, offset int) Position {
	if offset = min(offset, len(c.text)); c.offset < offset {
		passed := c.text[c.offset:offset]
		if start := strings.LastIndexByte(passed, '\n') + 1; start > 0 {
			c.line += strings.Count(passed, "\n")
			c.column, passed = 0, passed[start:]
		}
		c.column += utf8.RuneCountInString(passed)
		c.offset = offset
	}
	return Position{File: file, Line: c.line + 1, Column: c.column + 1}
}
