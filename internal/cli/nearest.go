package cli

import "github.com/unified-test-runner/utr/internal/meant"

// nearest gives the one of words that was meant by a word that is none of
// them, "" where that is not clear.
func nearest(word string, words []string) string { return meant.Word(word, words) }
