package source

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Limits bound what a file may cost. They are far above any real suite (the
// largest official one has 125 kB and 40 levels) and far below what hurts.
type Limits struct {
	Bytes int // size of a file
	Depth int // nesting of documents and arrays
	Nodes int // values, with every alias counted as often as it is used
}

// DefaultLimits are the limits of ParseYAML, ParseJSON and Parse.
func DefaultLimits() Limits {
	return Limits{Bytes: 16 << 20, Depth: 200, Nodes: 1_000_000}
}

// ParseYAML reads one YAML document. File is the name to be used in
// positions. Errors are *Error. It may be called concurrently.
func ParseYAML(file string, data []byte) (*Value, error) {
	return DefaultLimits().ParseYAML(file, data)
}

// ParseJSON reads one JSON document, strictly as RFC 8259 has it but for
// duplicate keys, which are refused. Errors are *Error. It may be called
// concurrently.
func ParseJSON(file string, data []byte) (*Value, error) {
	return DefaultLimits().ParseJSON(file, data)
}

// Parse reads data of which the format is not known, such as standard input:
// what is valid JSON is read as JSON, everything else as YAML.
func Parse(file string, data []byte) (*Value, error) {
	return DefaultLimits().Parse(file, data)
}

// ParseYAML is the function of the same name with limits of one's own.
func (l Limits) ParseYAML(file string, data []byte) (*Value, error) {
	data, err := l.text(file, data)
	if err != nil {
		return nil, err
	}
	return l.parseYAML(file, data)
}

// ParseJSON is the function of the same name with limits of one's own.
func (l Limits) ParseJSON(file string, data []byte) (*Value, error) {
	data, err := l.text(file, data)
	if err != nil {
		return nil, err
	}
	return l.parseJSON(file, data)
}

// text checks what both formats require of the bytes, and drops a byte order
// mark.
func (l Limits) text(file string, data []byte) ([]byte, error) {
	if len(data) > l.Bytes {
		return nil, errorAt(Position{File: file, Line: 1, Column: 1}, "the file is larger than the limit of %d bytes", l.Bytes)
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

// Parse is the function of the same name with limits of one's own.
func (l Limits) Parse(file string, data []byte) (*Value, error) {
	if len(data) <= l.Bytes && json.Valid(data) {
		return l.ParseJSON(file, data)
	}
	return l.ParseYAML(file, data)
}
