// Package suggest suggests the correct word for a misspelled one.
package suggest

import "strings"

// Word returns the element of words that a misspelled word most likely means: the only one with this prefix, the
// closest within two edits (one of a short word), or the only one that has all letters of a long word in their order.
// All ignore case. It returns "" if that is ambiguous.
func Word(word string, words []string) string {
	const most, long = 2, 6
	var prefixed, containing []string
	word = strings.ToLower(word)
	best, least, tied := "", most+1, false
	for _, w := range words {
		lower := strings.ToLower(w)
		if strings.HasPrefix(lower, word) {
			prefixed = append(prefixed, w)
		}
		if len(word) >= long && contains(lower, word) {
			containing = append(containing, w)
		}
		switch d := distance(word, lower); {
		case d >= max(len(word), len(w)): // nothing in common
		case d < least:
			best, least, tied = w, d, false
		case d == least:
			tied = true
		}
	}
	switch {
	case len(prefixed) == 1 && word != "":
		return prefixed[0]
	case tied && least <= most:
		return ""
	case least <= min(most, (len(word)+1)/3):
		return best
	case len(containing) == 1:
		return containing[0]
	}
	return ""
}

// contains reports whether a text has the letters of a word in this order, and begins with the first.
func contains(text, word string) bool {
	begins := text != "" && text[0] == word[0]
	for _, letter := range []byte(word) {
		_, after, found := strings.Cut(text, string(letter))
		if !found {
			return false
		}
		text = after
	}
	return begins
}

// Hint returns "; did you mean …?" with the likely word, for the end of a message. It returns "" if Word returns "", or
// if the word is in words.
func Hint(word string, words []string) string {
	if likely := Word(word, words); likely != "" && likely != word {
		return "; did you mean " + likely + "?"
	}
	return ""
}

// distance returns the optimal string alignment distance: the number of letters removed, added, changed or swapped.
func distance(a, b string) int {
	rows := [][]int{make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(rows[i-1][j]+1, row[j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], rows[i-2][j-2]+1)
			}
		}
		rows = append(rows, row)
	}
	return rows[len(a)][len(b)]
}
