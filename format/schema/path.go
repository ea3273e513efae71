package schema

import (
	"regexp"
	"strconv"
	"strings"
)

// A path leads from the root of a file to a value.
type path []step

// A step is a key of an object, or an index of an array.
type step struct {
	isKey bool
	key   string
	index int
}

var isPlainKey = regexp.MustCompile(`^[\w$:-]+$`)

// String returns a path such as tests[0].operations[2].arguments, with ["key"] where .key would be ambiguous.
func (p path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case !s.isKey:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case isPlainKey.MatchString(s.key):
			b.WriteString("." + s.key)
		default:
			b.WriteString("[" + strconv.Quote(s.key) + "]")
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}
