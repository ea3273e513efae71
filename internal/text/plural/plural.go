// Package plural formats numbers with nouns for messages: "1 test", "2 tests".
package plural

import (
	"strconv"
	"strings"
)

// Of returns a number and a noun: Of(1, "test") is "1 test", Of(0, "test") is "0 tests".
func Of(n int, noun string) string { return strconv.Itoa(n) + " " + Noun(n, noun) }

// Noun returns a noun, or its plural unless n is 1.
func Noun(n int, noun string) string {
	stem, endsInY := strings.CutSuffix(noun, "y")
	switch {
	case n == 1:
		return noun
	case endsInY && !strings.ContainsAny(stem[len(stem)-1:], "aeiou"):
		return stem + "ies"
	case strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"):
		return noun + "es"
	}
	return noun + "s"
}
