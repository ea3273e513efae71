package schema

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

func withArticle(k source.Kind) string {
	switch k {
	case source.Null:
		return "null"
	case source.Int, source.Array, source.Document:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}

// describe names the type of a value, and the value if it is a scalar.
func describe(v *source.Value) string {
	switch v.Kind {
	case source.Bool:
		return v.JSON()
	case source.Int:
		return "the integer " + v.JSON()
	case source.Float:
		return "the number " + v.JSON()
	case source.String:
		return "the string " + strconv.Quote(shorten(v.String))
	default:
		return withArticle(v.Kind)
	}
}

func shorten(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func quoteAll(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = strconv.Quote(s)
	}
	return strings.Join(quoted, ", ")
}

func (o object) subject() string {
	if o.title == "" {
		return "this object"
	}
	return o.title
}

func (o object) keys(minor int) (keys []string) {
	for _, f := range o.fields {
		if f.from <= minor {
			keys = append(keys, f.name)
		}
	}
	return keys
}

// choices returns the end of a message with the keys of an object at a minor version, or "" if any key is allowed.
func (o object) choices(minor int) string {
	switch keys := o.keys(minor); {
	case o.others != nil:
		return ""
	case len(keys) == 0:
		return "; " + o.subject() + " has no keys"
	case len(keys) == 1:
		return "; its only possible key is " + quoteAll(keys)
	default:
		return "; possible keys are " + quoteAll(keys)
	}
}

// suggest returns a suggestion for an unknown key: a key with a similar spelling, the objects that have
// the key, or all keys of this object.
func (o object) suggest(w walk, key string) string {
	if hint := didYouMean(key, o.keys(newest)); hint != "" {
		return hint
	}
	if owners := owners()[key]; len(owners) > 0 && len(owners) <= 3 {
		return "; " + strconv.Quote(key) + " is a key of " + strings.Join(owners, " and of ")
	}
	return o.choices(w.granted)
}

// owners maps each key to the titles of the objects that have it.
var owners = sync.OnceValue(func() map[string][]string {
	owners := map[string][]string{}
	var add func(s shape)
	add = func(s shape) {
		switch s := s.(type) {
		case list:
			add(s.of)
		case either:
			for _, a := range s {
				add(a.shape)
			}
		case object:
			if s.deep {
				return
			}
			for _, f := range s.fields {
				if s.title != "" {
					owners[f.name] = append(owners[f.name], s.title)
				}
				add(f.shape)
			}
		}
	}
	for _, s := range format {
		add(s)
	}
	for _, titles := range owners {
		slices.Sort(titles)
	}
	return owners
})

// didYouMean returns "; did you mean …?" with the likely name, or "" if it is not clear.
func didYouMean(misspelt string, names []string) string {
	if name := suggest.Word(misspelt, names); name != "" {
		return "; did you mean " + strconv.Quote(name) + "?"
	}
	return ""
}
