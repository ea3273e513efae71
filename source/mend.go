package source

import (
	"bytes"
	"regexp"
	"slices"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// yaml.v3 refuses two things that YAML 1.2 allows and that occur in official
// suites: a value indicator directly before a flow collection, { nested:[] }
// (§7.4.2), and anchors with other characters than letters, digits, - and _,
// such as &aws:key (§6.9.2). A file that is refused is therefore tried again
// with a space after such colons and with such anchors renamed. To leave
// strings and comments alone, just those edits stay of which the parser then
// says that they are at a value's start or at an anchor or alias.

// mended are the places, by line, where spaces were put in: columns in the
// mended text.
type mended map[int][]int

// before counts the spaces put into a line before a column.
func (m mended) before(line, column int) int {
	return sort.SearchInts(m[line], column)
}

// spot is a place in the text as it was.
type spot struct{ line, column int }

func mend(file string, data []byte) (*yaml.Node, mended, bool) {
	rename, ok := renamer(data)
	if !ok {
		return nil, nil, false
	}
	text, put, edits := edit(data, rename, func(spot) bool { return true })
	if edits == 0 {
		return nil, nil, false
	}
	root, err := yamlNodes(file, text)
	if err != nil {
		return nil, nil, false
	}
	sound := map[spot]bool{}
	collectSpots(root, func(n *yaml.Node) {
		sound[spot{n.Line, n.Column - put.before(n.Line, n.Column)}] = true
	})
	text, put, _ = edit(data, rename, func(s spot) bool { return sound[s] })
	if root, err = yamlNodes(file, text); err != nil {
		return nil, nil, false
	}
	return root, put, true
}

var (
	anchorName = regexp.MustCompile(`[&*][^\s,\[\]{}'"]*[^\s,\[\]{}'":]`)
	plainName  = regexp.MustCompile(`^[&*][0-9A-Za-z_-]*$`)
	oddInName  = regexp.MustCompile(`[^0-9A-Za-z_-]`)
)

// renamer gives a function that makes plain names of odd ones, of as many
// characters, different ones of different ones.
func renamer(data []byte) (func(string) string, bool) {
	names := map[string]bool{}
	for _, n := range anchorName.FindAllString(string(data), -1) {
		names[n[1:]] = true
	}
next:
	for _, r := range strings.Split("_-0123456789abcdefghijklmnopqrstuvwxyz", "") {
		taken := map[string]bool{}
		for n := range names {
			renamed := oddInName.ReplaceAllString(n, r)
			if taken[renamed] {
				continue next
			}
			taken[renamed] = true
		}
		return func(s string) string { return s[:1] + oddInName.ReplaceAllString(s[1:], r) }, true
	}
	return nil, false
}

// edit makes the edits whose places keep accepts, and counts them.
func edit(data []byte, rename func(string) string, keep func(spot) bool) ([]byte, mended, int) {
	var out bytes.Buffer
	put := mended{}
	edits := 0
	for l, line := range strings.SplitAfter(string(data), "\n") {
		odd := anchorName.FindAllStringIndex(line, -1)
		odd = slices.DeleteFunc(odd, func(at []int) bool { return plainName.MatchString(line[at[0]:at[1]]) })
		column, last, skip := 1, rune(0), 0
		for i, r := range line {
			here := spot{l + 1, column}
			column++
			if len(odd) > 0 && odd[0][0] == i {
				name := line[i:odd[0][1]]
				odd = odd[1:]
				if keep(here) {
					edits++
					out.WriteString(rename(name))
					skip = i + len(name)
				}
			}
			if (r == '[' || r == '{') && last == ':' && keep(here) {
				edits++
				put[l+1] = append(put[l+1], here.column+len(put[l+1]))
				out.WriteByte(' ')
			}
			if last = r; i >= skip {
				out.WriteRune(r)
			}
		}
	}
	return out.Bytes(), put, edits
}

// collectSpots visits what an edit may stand at: aliases, what has an anchor,
// and the flow collections that are values of mappings.
func collectSpots(n *yaml.Node, visit func(*yaml.Node)) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		visit(n)
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && c.Style&yaml.FlowStyle != 0 {
			visit(c)
		}
		collectSpots(c, visit)
	}
}
