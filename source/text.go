package source

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// JSON writes a value in one line, keys in their order, Extended JSON as the
// file has it. Reading it again gives an equal value: a Float keeps a point or
// an exponent. A nil Value is null.
func (v *Value) JSON() string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}

func (v *Value) write(b *strings.Builder) {
	if v == nil {
		b.WriteString("null")
		return
	}
	switch v.Kind {
	case Null:
		b.WriteString("null")
	case Bool:
		b.WriteString(strconv.FormatBool(v.Bool))
	case Int:
		b.WriteString(strconv.FormatInt(v.Int, 10))
	case Float:
		s := strconv.FormatFloat(v.Float, 'g', -1, 64)
		if _, err := strconv.ParseInt(s, 10, 64); err == nil {
			s += ".0"
		}
		b.WriteString(s)
	case String:
		b.WriteString(Quote(v.String))
	case Array:
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case Document:
		b.WriteByte('{')
		for i, f := range v.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(Quote(f.Key) + ":")
			f.Value.write(b)
		}
		b.WriteByte('}')
	}
}

// Quote writes a string as JSON, with <, > and & as they are.
func Quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
