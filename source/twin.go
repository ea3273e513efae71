package source

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Twin writes a value as the JSON form of a suite in the specifications repository,
// which js-yaml and JSON.stringify make: indented by two spaces, keys that are array
// indexes first, numbers as JavaScript prints them. A line feed ends it.
func (v *Value) Twin() []byte {
	var b bytes.Buffer
	v.twin(&b, "\n")
	b.WriteByte('\n')
	return b.Bytes()
}

// twin writes a value; newline is a line feed and the indentation around it.
func (v *Value) twin(b *bytes.Buffer, newline string) {
	inner := newline + "  "
	switch {
	case v.Kind == Array && len(v.Items) > 0:
		b.WriteByte('[')
		for i, item := range v.Items {
			b.WriteString(separator(i) + inner)
			item.twin(b, inner)
		}
		b.WriteString(newline + "]")
	case v.Kind == Document && len(v.Fields) > 0:
		b.WriteByte('{')
		for i, f := range asProperties(v.Fields) {
			b.WriteString(separator(i) + inner + twinString(f.Key) + ": ")
			f.Value.twin(b, inner)
		}
		b.WriteString(newline + "}")
	case v.Kind == Int:
		b.WriteString(number(float64(v.Int)))
	case v.Kind == Float:
		b.WriteString(number(v.Float))
	case v.Kind == String:
		b.WriteString(twinString(v.String))
	default:
		b.WriteString(v.JSON())
	}
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// asProperties orders fields as JavaScript enumerates the properties of an object:
// array indexes in ascending order, then other keys in the order of the file.
func asProperties(fields []Field) []Field {
	index := func(f Field) int64 {
		n, err := strconv.ParseUint(f.Key, 10, 32)
		if err != nil || n == math.MaxUint32 || strconv.FormatUint(n, 10) != f.Key {
			return math.MaxInt64
		}
		return int64(n)
	}
	fields = slices.Clone(fields)
	slices.SortStableFunc(fields, func(a, b Field) int { return cmp.Compare(index(a), index(b)) })
	return fields
}

// number prints a number as JavaScript does (ECMAScript, "Number::toString").
func number(f float64) string {
	size := math.Abs(f)
	switch {
	case f == 0:
		return "0"
	case size >= 1e21 || size < 1e-6:
		digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		return digits + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// twinString is a string as JSON.stringify quotes it.
func twinString(s string) string {
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(Quote(s))
}
