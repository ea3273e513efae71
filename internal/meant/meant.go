// Package meant finds the word that was meant by one that is misspelt.
package meant

import "strings"

// Word returns the one of words that a misspelt word stands for: the one that it
// begins, or from which it differs by a slip or two, whatever the case of letters. It
// returns "" if that is not clear.
func Word(word string, words []string) string {
	var begun []string
	word = strings.ToLower(word)
	best, least, tied := "", 3, false
	for _, w := range words {
		lower := strings.ToLower(w)
		if strings.HasPrefix(lower, word) {
			begun = append(begun, w)
		}
		switch d := slips(word, lower); {
		case d >= max(len(word), len(w)): // nothing in common
		case d < least:
			best, least, tied = w, d, false
		case d == least:
			tied = true
		}
	}
	switch {
	case len(begun) == 1 && word != "":
		return begun[0]
	case tied || least > len(word)/2:
		return ""
	}
	return best
}

// Hint suggests the word that was meant, for the end of a message. It is empty where
// Word is, and if the word is one of words itself.
func Hint(word string, words []string) string {
	if likely := Word(word, words); likely != "" && likely != word {
		return "; did you mean " + likely + "?"
	}
	return ""
}

// slips counts the letters that were left out, added, changed, or swapped with
// their neighbour (the distance of Damerau and Levenshtein, where no letter is
// changed twice).
func slips(a, b string) int {
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
