package schema

import (
	"strconv"
	"strings"
)

// didYouMean gives "; did you mean …?" with the name that a misspelt one is
// closest to, or nothing if none is close.
func didYouMean(misspelt string, names []string) string {
	best, distance := "", closeEnough(misspelt)+1
	for _, name := range names {
		if d := editDistance(strings.ToLower(misspelt), strings.ToLower(name), distance); d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + strconv.Quote(best) + "?"
}

// closeEnough is how many edits may turn a name into the one that was meant:
// one in four characters, and at least one.
func closeEnough(name string) int { return max(1, len(name)/4) }

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b. What is certain to reach the limit is given
// as the limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	// Three rows of the table of distances between prefixes of a and of b.
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := 1
			if a[i-1] == b[j-1] {
				replace = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return min(row[len(b)], limit)
}
