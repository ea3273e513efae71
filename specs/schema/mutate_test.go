package schema

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// A site is a key of a document, or an element of an array, that a mutation
// can change.
type site struct {
	place  string // path with [] for elements
	object map[string]any
	key    string
	array  []any
	index  int
}

func (s site) get() any {
	if s.object != nil {
		return s.object[s.key]
	}
	return s.array[s.index]
}

func (s site) set(v any) {
	if s.object != nil {
		s.object[s.key] = v
	} else {
		s.array[s.index] = v
	}
}

// sitesOf gives the sites of a document, by place.
func sitesOf(doc any) map[string][]site {
	sites := map[string][]site{}
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range sortedKeys(v) {
				place := path + "." + k
				sites[place] = append(sites[place], site{place: place, object: v, key: k})
				walk(v[k], place)
			}
		case []any:
			for i := range v {
				place := path + "[]"
				sites[place] = append(sites[place], site{place: place, array: v, index: i})
				walk(v[i], place)
			}
		}
	}
	walk(doc, "")
	return sites
}

// isOpen reports whether a place is inside of what the schemas do not look
// into.
func isOpen(place string) bool {
	for _, open := range []string{".arguments.", ".command.", ".reply.", ".documents[].", ".expectResult.", ".expectResult[", ".uriOptions.", ".data.", ".errorResponse."} {
		if strings.Contains(place, open) {
			return true
		}
	}
	return false
}

// A mutator changes documents. Words are the keys and values that the
// official schemas know, to rename to and to retype with.
type mutator struct {
	rng   *rand.Rand
	words []string
}

// mutate changes a copy of a document in one place, which it names: the
// given one, or any if that is empty.
func (m *mutator) mutate(original any, place string) (doc any, where string) {
	doc = clone(original)
	sites := sitesOf(doc)
	places := slices.DeleteFunc(slices.Sorted(maps.Keys(sites)), func(p string) bool {
		return isOpen(p) && m.rng.IntN(20) > 0
	})
	if len(places) == 0 {
		return m.scalar(), ""
	}
	if place == "" {
		place = places[m.rng.IntN(len(places))]
	}
	at := sites[place]
	s := at[m.rng.IntN(len(at))]
	switch m.rng.IntN(6) {
	case 0: // dropped
		if s.object != nil {
			delete(s.object, s.key)
		} else {
			s.set(map[string]any{})
		}
	case 1: // renamed
		if s.object != nil {
			v := s.object[s.key]
			delete(s.object, s.key)
			s.object[m.rename(s.key)] = v
		} else {
			s.set(m.scalar())
		}
	case 2: // retyped
		s.set(m.scalar())
	case 3: // respelt, emptied or wrapped
		switch v := s.get().(type) {
		case string:
			s.set(m.rename(v))
		case []any:
			s.set([]any{})
		case map[string]any:
			s.set(map[string]any{})
		default:
			s.set([]any{v})
		}
	case 4: // duplicated into another place
		to := sites[places[m.rng.IntN(len(places))]]
		target := to[m.rng.IntN(len(to))]
		v := clone(s.get())
		switch into := target.get().(type) {
		case map[string]any:
			into[s.name()] = v
		case []any:
			target.set(append(into, v))
		default:
			if target.object != nil {
				target.object[s.name()] = v
			} else {
				target.set(v)
			}
		}
	default: // a known word added beside it
		if s.object != nil {
			s.object[m.word()] = m.scalar()
		} else {
			s.set(m.word())
		}
	}
	return doc, s.place
}

func (s site) name() string {
	if s.object != nil {
		return s.key
	}
	return "client"
}

func (m *mutator) word() string { return m.words[m.rng.IntN(len(m.words))] }

func (m *mutator) rename(name string) string {
	switch r := m.rng.IntN(4); {
	case r == 0 && name != "":
		return name[1:]
	case r == 1:
		return name + "s"
	case r == 2:
		return name + ":name_1"
	default:
		return m.word()
	}
}

func (m *mutator) scalar() any {
	switch m.rng.IntN(13) {
	case 0:
		return nil
	case 1:
		return true
	case 2:
		return false
	case 3:
		return json.Number("3")
	case 4:
		return json.Number("1.50")
	case 5:
		return json.Number("2.0")
	case 6:
		return ""
	case 7:
		return []any{}
	case 8:
		return map[string]any{}
	case 9:
		return map[string]any{"$$placeholder": json.Number("1")}
	case 10:
		return []any{m.word()}
	case 11:
		return map[string]any{m.word(): m.word()}
	default:
		return m.word()
	}
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, x := range v {
			c[k] = clone(x)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, x := range v {
			c[i] = clone(x)
		}
		return c
	default:
		return v
	}
}

// wordsOf gives every key and enumerated value of a schema.
func wordsOf(s any, words map[string]bool) {
	switch s := s.(type) {
	case map[string]any:
		for k, v := range s {
			if k == "properties" {
				for name := range asMap(v) {
					words[name] = true
				}
			}
			if k == "patternProperties" {
				for pattern := range asMap(v) {
					for _, name := range namesFor(pattern) {
						words[name] = true
					}
				}
			}
			if k == "enum" {
				for _, value := range asList(v) {
					words[value.(string)] = true
				}
			}
			wordsOf(v, words)
		}
	case []any:
		for _, v := range s {
			wordsOf(v, words)
		}
	}
}
