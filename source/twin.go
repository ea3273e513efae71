package source

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// JSONTwin renders a value as the JSON twin of a suite in the specifications
// repository, which js-yaml and JSON.stringify write: indented by two spaces,
// keys that are array indexes first, numbers as in JavaScript. It ends with a
// line feed.
func (v *Value) JSONTwin() []byte { return []byte(v.twin("\n") + "\n") }

// twin renders a value; newline is a line feed and the current indentation.
func (v *Value) twin(newline string) string {
	var parts []string
	inner := newline + "  "
	switch {
	case v.Kind == Array && len(v.Items) > 0:
		for _, item := range v.Items {
			parts = append(parts, inner+item.twin(inner))
		}
		return "[" + strings.Join(parts, ",") + newline + "]"
	case v.Kind == Document && len(v.Fields) > 0:
		for _, f := range asProperties(v.Fields) {
			parts = append(parts, inner+twinString(f.Key)+": "+f.Value.twin(inner))
		}
		return "{" + strings.Join(parts, ",") + newline + "}"
	case v.Kind == Int:
		return number(float64(v.Int))
	case v.Kind == Float:
		return number(v.Float)
	case v.Kind == String:
		return twinString(v.String)
	}
	return v.JSON()
}

// asProperties orders fields as JavaScript enumerates the properties of an
// object: array indexes in ascending order, then other keys in file order.
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

// number renders a number as JavaScript does (ECMAScript, "Number::toString").
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

func twinString(s string) string {
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(Quote(s))
}
