package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/reference/selection"
)

// checkTopologyFile returns the mistakes in the keys and types of a topology file, each at its position.
func checkTopologyFile(name string, text []byte) error {
	root, err := source.ParseYAML(name, text)
	if err != nil {
		return err
	}
	var problems []error
	known := func(at source.Position, what, word string, words []string) {
		if !slices.Contains(words, word) {
			problems = append(problems, fmt.Errorf("%s: unknown %s %q: it must be one of %s%s", at, what, word,
				strings.Join(words, ", "), suggest.Hint(word, words)))
		}
	}
	var visit func(in string, v *source.Value)
	visit = func(in string, v *source.Value) {
		for _, item := range v.Items {
			visit(in, item)
		}
		keys, types := selection.Vocabulary(in)
		if keys == nil {
			return
		}
		for _, f := range v.Fields {
			known(f.KeyPosition, "key", f.Key, keys)
			if f.Key == "type" {
				known(f.Value.Position, "type", f.Value.Text(), types)
			}
			visit(f.Key, f.Value)
		}
	}
	if visit("", root); root.Kind != source.Document {
		problems = append(problems, fmt.Errorf("%s: a topology must be a document", root.Position))
	}
	return errors.Join(problems...)
}
