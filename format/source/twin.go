package source

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// JSONTwin renders a value as the JSON twin of a suite in the specifications repository, which js-yaml and
// JSON.stringify write: indented by two spaces, keys that are array indexes first, numbers as in JavaScript. It ends
// with a line feed.
func (v *Value) JSONTwin() []byte { return v.twin(javaScriptNumber) }

// IsTwin reports whether a file is the JSON twin of a value, as JSONTwin renders it. Then [Difference] finds none.
// Other files may be twins, too.
func (v *Value) IsTwin(file []byte) bool {
	return bytes.Equal(v.twin(func(n *Value) string {
		if n.Kind == Int { // JavaScript rounds large ones
			return exactNumber(n)
		}
		return javaScriptNumber(n)
	}), file)
}

func (v *Value) twin(number func(*Value) string) []byte {
	out := append(jsonForm{order: asProperties, number: number, indented: true}.append(nil, v, 0), '\n')
	if !bytes.Contains(out, []byte(`\u202`)) {
		return out
	}
	unescape := strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029") // not after an escaped backslash
	return []byte(unescape.Replace(string(out)))
}

// asProperties orders fields as JavaScript enumerates the properties of an
// object: array indexes in ascending order, then other keys in file order.
func asProperties(fields []Field) []Field {
	index := func(f Field) int64 {
		if f.Key == "" || f.Key[0] < '0' || f.Key[0] > '9' { // as almost all are
			return math.MaxInt64
		}
		n, err := strconv.ParseUint(f.Key, 10, 32)
		if err != nil || n == math.MaxUint32 || strconv.FormatUint(n, 10) != f.Key {
			return math.MaxInt64
		}
		return int64(n)
	}
	if !slices.ContainsFunc(fields, func(f Field) bool { return index(f) < math.MaxInt64 }) {
		return fields
	}
	fields = slices.Clone(fields)
	slices.SortStableFunc(fields, func(a, b Field) int { return cmp.Compare(index(a), index(b)) })
	return fields
}

// javaScriptNumber renders a number as JavaScript does. So does encoding/json,
// except for -0, where adding 0 removes the sign, and for infinity and NaN.
func javaScriptNumber(v *Value) string {
	number := v.Float
	if v.Kind == Int {
		number = float64(v.Int)
	}
	text, err := json.Marshal(number + 0)
	if err != nil {
		return strings.TrimPrefix(strings.ReplaceAll(fmt.Sprint(number), "Inf", "Infinity"), "+")
	}
	return string(text)
}
