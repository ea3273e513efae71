package report

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
)

// first returns the first elements of a list, or all of them, and the number of the others.
func first[T any](list []T, most int, whole bool) (shown []T, others int) {
	if whole {
		most = len(list)
	}
	shown = list[:min(len(list), most)]
	return shown, len(list) - len(shown)
}

// noise are the fields of commands and replies that seldom explain a failure.
var noise = []string{"lsid", "$clusterTime", "operationTime", "signature", "$db"}

// brief renders a document without noise on one line.
func brief(raw result.Document) string {
	var doc bson.D
	_ = bson.Unmarshal(raw, &doc) // an invalid document is left out
	doc = slices.DeleteFunc(doc, func(e bson.E) bool { return slices.Contains(noise, e.Key) })
	text, _ := bson.MarshalExtJSON(doc, false, false)
	return clip(string(text), briefWidth)
}

// joined puts a text on one line.
func joined(s string) string { return strings.Join(strings.Fields(s), " ") }

// cut shortens a line to at most width characters.
func cut(s string, width int) string {
	if runes := []rune(s); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return s
}

// clip shortens a text to one line of at most width characters.
func clip(s string, width int) string { return cut(joined(s), width) }

// clipMiddle shortens a text as clip does, but keeps its end: the last line of a stack trace may be the error.
func clipMiddle(s string, width int) string {
	runes := []rune(joined(s))
	if len(runes) <= width {
		return string(runes)
	}
	end := width / 3
	return string(runes[:width-end-len(" … ")]) + " … " + string(runes[len(runes)-end:])
}

// fit shortens a text to one line of at most so many terminal columns, without control characters.
func fit(s string, columns int) string {
	s = oneLine(s)
	all, cut := 0, 0 // columns so far; the end of the text that fits before an ellipsis
	for i, r := range s {
		all += columnsOf(r)
		if all > columns {
			return s[:cut] + "…"
		}
		if all < columns {
			cut = i + utf8.RuneLen(r)
		}
	}
	return s
}

// columnsOf is an upper bound of the columns of a character: two from Hangul on, except for symbols, and one before.
// An overestimate shortens a line, but no line wraps.
func columnsOf(r rune) int {
	const hangul, symbols, afterSymbols = 0x1100, 0x1E00, 0x2E80
	if r < hangul || r >= symbols && r < afterSymbols || r == utf8.RuneError {
		return 1
	}
	return 2
}

// Quote joins an argument vector into a command for a POSIX shell.
func Quote(arguments []string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%"
	quoted := slices.Clone(arguments)
	for i, a := range quoted {
		if a == "" || strings.Trim(a, plain) != "" {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
