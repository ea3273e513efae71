package fault

import (
	"cmp"
	_ "embed" // for names.txt
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed names.txt
var namesText string

// Named is a name in names.txt.
type Named struct {
	Name         string
	Since, Until int  // wire versions; Until 0 means no limit
	Refused      bool // servers have it, the embedded deployment does not
}

var names = sync.OnceValue(func() map[string][]Named { return parseNames(namesText) })

func parseNames(text string) map[string][]Named {
	out := map[string][]Named{}
	for kind, words := range Table(text) {
		for _, word := range words {
			var n Named
			word, n.Refused = strings.CutSuffix(word, "?")
			name, versions, _ := strings.Cut(word, "@")
			since, until, _ := strings.Cut(versions, "-")
			n.Name = name
			n.Since, _ = strconv.Atoi(since)
			n.Until, _ = strconv.Atoi(until)
			out[kind] = append(out[kind], n)
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Named) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out
}

// Table returns the lines of a text: their first words, and their other words. A line that begins with # is a comment.
func Table(text string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if len(words) > 0 && words[0] != "#" && !yield(words[0], words[1:]) {
				return
			}
		}
	}
}

// Names returns the names of a kind, sorted.
func Names(kind string) []Named { return names()[kind] }

// named returns what servers of a wire version have by a name. Wire version 0 stands for every version.
func named(kind, name string, wire int) (n Named, exists bool) {
	list := Names(kind)
	i, found := slices.BinarySearchFunc(list, name, func(n Named, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return n, false
	}
	n = list[i]
	return n, wire == 0 || wire >= n.Since && (n.Until == 0 || wire <= n.Until)
}

// Exists reports whether servers of a wire version have a name of a kind. See names.txt.
func Exists(kind, name string, wire int) bool {
	_, exists := named(kind, name, wire)
	return exists
}

// Refusal returns an error if servers of a wire version have a name of a kind, and the embedded deployment does not.
func Refusal(kind, name string, wire int) error {
	if n, exists := named(kind, name, wire); exists && n.Refused {
		return Errorf(NotImplemented, "%s is not implemented by the embedded deployment", name)
	}
	return nil
}
