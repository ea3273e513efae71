package schema

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// A mutator changes raw documents at random.
type mutator struct {
	Rand  *rand.Rand
	Words []string // new keys and values
}

// A site is a value in a document that can be changed.
type site struct {
	place string // its path, with [] for elements
	key   string // "" for an element
	get   any
	set   func(any)
	in    map[string]any // the object with the key, or nil
}

// sitesOf returns the sites of a document in a fixed order.
func sitesOf(doc any) (sites []site) {
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				sites = append(sites, site{path + "." + k, k, v[k], func(x any) { v[k] = x }, v})
				walk(v[k], path+"."+k)
			}
		case []any:
			for i := range v {
				sites = append(sites, site{path + "[]", "", v[i], func(x any) { v[i] = x }, nil})
				walk(v[i], path+"[]")
			}
		}
	}
	walk(doc, "")
	return sites
}

// isOpen reports whether the schemas accept anything at a place.
func isOpen(place string) bool {
	open := []string{".arguments.", ".command.", ".reply.", ".documents[].", ".expectResult.", ".expectResult[",
		".uriOptions.", ".data.", ".errorResponse."}
	return slices.ContainsFunc(open, func(o string) bool { return strings.Contains(place, o) })
}

// mutate returns a changed copy of a document, and the place of the change.
func (m *mutator) mutate(original any) (doc any, where string) {
	doc = clone(original)
	all := sitesOf(doc)
	sites := slices.DeleteFunc(slices.Clone(all), func(s site) bool { return isOpen(s.place) && m.Rand.IntN(20) > 0 })
	if len(sites) == 0 {
		return m.scalar(), ""
	}
	s := sites[m.Rand.IntN(len(sites))]
	name := s.key
	if name == "" {
		name = "client"
	}
	switch m.Rand.IntN(6) {
	case 0: // removed
		if s.in == nil {
			s.set(map[string]any{})
		} else {
			delete(s.in, s.key)
		}
	case 1: // renamed
		if s.in == nil {
			s.set(m.scalar())
		} else {
			delete(s.in, s.key)
			s.in[m.rename(s.key)] = s.get
		}
	case 2: // of another type
		s.set(m.scalar())
	case 3: // misspelt, emptied or wrapped
		switch v := s.get.(type) {
		case string:
			s.set(m.rename(v))
		case []any:
			s.set([]any{})
		case map[string]any:
			s.set(map[string]any{})
		default:
			s.set([]any{v})
		}
	case 4: // copied to another place
		to := all[m.Rand.IntN(len(all))]
		switch into := to.get.(type) {
		case map[string]any:
			into[name] = clone(s.get)
		case []any:
			to.set(append(into, clone(s.get)))
		default:
			if to.in == nil {
				to.set(clone(s.get))
			} else {
				to.in[name] = clone(s.get)
			}
		}
	default: // next to a known word
		if s.in == nil {
			s.set(m.word())
		} else {
			s.in[m.word()] = m.scalar()
		}
	}
	return doc, s.place
}

func (m *mutator) word() string { return m.Words[m.Rand.IntN(len(m.Words))] }

func (m *mutator) rename(name string) string {
	switch r := m.Rand.IntN(4); {
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
	all := []any{nil, true, false, json.Number("3"), json.Number("1.50"), json.Number("2.0"), "", []any{},
		map[string]any{},
		map[string]any{"$$placeholder": json.Number("1")}, []any{m.word()}, map[string]any{m.word(): m.word()}, m.word()}
	return all[m.Rand.IntN(len(all))]
}

func clone(v any) any {
	text, err := json.Marshal(v)
	c, readErr := readJSON(text)
	if err != nil || readErr != nil {
		panic("not a raw document")
	}
	return c
}

// wordsOf returns every key and enumerated value of a schema, sorted.
func wordsOf(schema any) []string {
	words := map[string]bool{}
	var walk func(any)
	walk = func(s any) {
		switch s := s.(type) {
		case map[string]any:
			for _, keyword := range []string{"properties", "patternProperties"} {
				named, _ := s[keyword].(map[string]any)
				for name := range named {
					for _, n := range namesFor(name) {
						words[n] = true
					}
				}
			}
			values, _ := s["enum"].([]any)
			for _, v := range values {
				words[v.(string)] = true
			}
			for _, v := range s {
				walk(v)
			}
		case []any:
			for _, v := range s {
				walk(v)
			}
		}
	}
	walk(schema)
	return slices.Sorted(maps.Keys(words))
}

// namesFor returns keys that match a name, or a pattern such as ^aws(:…)?$.
func namesFor(pattern string) []string {
	name, isPattern := strings.CutPrefix(pattern, "^")
	if !isPattern {
		return []string{name}
	}
	name, _, _ = strings.Cut(name, "(")
	return []string{name, name + ":name1"}
}
