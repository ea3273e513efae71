package source

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// limits bound what a file may cost. They are far above any real suite (the
// largest official one has 125 kB and 40 levels) and far below what hurts.
type limits struct {
	bytes int // size of a file
	depth int // nesting of documents and arrays
	nodes int // values, with every alias counted as often as it is used
}

// MaxBytes is the largest size of a file.
const MaxBytes = 16 << 20

func usual() limits { return limits{bytes: MaxBytes, depth: 200, nodes: 1_000_000} }

// ParseYAML reads one YAML document. File is the name to be used in
// positions. Errors are *Error. It may be called concurrently.
func ParseYAML(file string, data []byte) (*Value, error) {
	return usual().parse(file, data, yamlNodes)
}

// ParseJSON reads one JSON document, strictly as RFC 8259 has it but for
// duplicate keys, which are refused. Errors are *Error. It may be called
// concurrently.
func ParseJSON(file string, data []byte) (*Value, error) {
	return usual().parse(file, data, jsonNodes)
}

// Parse reads data of which the format is not known, such as standard input:
// what is valid JSON is read as JSON, everything else as YAML.
func Parse(file string, data []byte) (*Value, error) {
	if json.Valid(data) {
		return ParseJSON(file, data)
	}
	return ParseYAML(file, data)
}

// parse makes a value of the nodes that a format has.
func (l limits) parse(file string, data []byte, nodes func(limits, string, []byte) (*yaml.Node, error)) (*Value, error) {
	data, err := l.text(file, data)
	if err != nil {
		return nil, err
	}
	root, err := nodes(l, file, data)
	if err != nil {
		return nil, err
	}
	r := &yamlReader{limits: l, file: file}
	v, err := r.value(root, 0)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// text checks what both formats require of the bytes, and drops a byte order
// mark.
func (l limits) text(file string, data []byte) ([]byte, error) {
	if len(data) > l.bytes {
		return nil, errorAt(Position{File: file, Line: 1, Column: 1}, "the file is larger than the limit of %d bytes", l.bytes)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		at := 0
		for at < len(data) {
			r, n := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return nil, errorAt(placeOf(file, data, at), "byte 0x%02X is not valid UTF-8", data[at])
	}
	return data, nil
}

func placeOf(file string, data []byte, offset int) Position {
	c := cursor{data: data}
	return c.position(file, offset)
}

// cursor turns byte offsets into lines and columns. It walks forward only, so
// that a file is counted through once.
type cursor struct {
	data   []byte
	offset int // of the place that line and column describe
	line   int // from 0
	column int // from 0, in characters
}

func (c *cursor) position(file string, offset int) Position {
	offset = min(offset, len(c.data))
	for c.offset < offset {
		r, n := utf8.DecodeRune(c.data[c.offset:])
		c.offset += n
		if r == '\n' {
			c.line++
			c.column = 0
		} else {
			c.column++
		}
	}
	return Position{File: file, Line: c.line + 1, Column: c.column + 1}
}
