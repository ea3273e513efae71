package query

import (
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// search is $text: a document needs one of the terms, none of the excluded ones, and all phrases.
type search struct {
	terms, excluded, phrases []string
	plain                    bool   // the language is "none": words are neither stemmed nor left out
	weights                  bson.D // the fields of the index; nil until OnTextIndex
}

// text parses $text. It needs an index.
func (p *parser) text(v any) node {
	d, _ := v.(bson.D)
	given, ok := value.Field(d, "$search")
	query, isText := given.(string)
	p.Refuse(!ok, fault.IDLFailedToParse, "BSON field '$text.$search' is missing but a required field")
	p.Refuse(ok && !isText, fault.TypeMismatch, "\"$search\" had the wrong type. Expected string, found %s",
		value.TypeName(given))
	s := &search{}
	switch language, named := value.Get(d, "$language").(string); {
	case language == "none":
		s.plain = true
	case named && language != "english" && language != "en":
		p.Fail(fault.NotImplemented, "$text in the language %q is not implemented by the embedded deployment", language)
	}
	p.Refuse(value.Truthy(value.Get(d, "$caseSensitive")), fault.NotImplemented,
		"$caseSensitive is not implemented by the embedded deployment")
	p.Refuse(value.Truthy(value.Get(d, "$diacriticSensitive")), fault.NotImplemented,
		"$diacriticSensitive is not implemented by the embedded deployment")
	for i, part := range strings.Split(strings.ToLower(query), `"`) {
		if i%2 == 1 { // within quotation marks
			s.phrases = append(s.phrases, part)
			s.terms = append(s.terms, s.stems(part)...)
			continue
		}
		for _, word := range strings.Fields(part) {
			if excluded, ok := strings.CutPrefix(word, "-"); ok {
				s.excluded = append(s.excluded, s.stems(excluded)...)
			} else {
				s.terms = append(s.terms, s.stems(word)...)
			}
		}
	}
	p.search = s
	return func(doc any, _ *run) bool {
		d, _ := doc.(bson.D)
		return s.score(d) > 0
	}
}

// stems returns the stems of the words of a text in lower case that are not stop words.
func (s *search) stems(text string) (out []string) {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\'' }
	for _, word := range strings.FieldsFunc(text, between) {
		if s.plain {
			out = append(out, word)
		} else if !english.IsStopWord(word) {
			out = append(out, english.Stem(word, true))
		}
	}
	return out
}

// score returns the textScore of a document, 0 if it does not match. The formula is the server's: a term counts
// less each time that it occurs again in a field, and more if it is a large part of the field or the whole word.
func (s *search) score(doc bson.D) (total float64) {
	type use struct{ count, frequency, whole float64 }
	found := map[string]bool{}
	var all []string
	for _, field := range s.weights {
		for _, text := range texts(doc, field.Key) {
			all = append(all, text)
			uses, n := map[string]use{}, 0.0
			for _, stem := range s.stems(text) {
				u := uses[stem]
				u.frequency += 1 / float64(int(1)<<min(int(u.count), 60))
				u.count++
				if u.whole = 1; stem == text {
					u.whole = 1.1
				}
				uses[stem], found[stem] = u, true
				n++
			}
			for _, term := range s.terms {
				if u, ok := uses[term]; ok {
					total += value.Float(field.Value) * u.frequency * (0.5*u.count/n + 0.5) * u.whole
				}
			}
		}
	}
	lacks := func(phrase string) bool {
		return !slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, phrase) })
	}
	if slices.ContainsFunc(s.excluded, func(term string) bool { return found[term] }) ||
		slices.ContainsFunc(s.phrases, lacks) {
		return 0
	}
	return total
}

// texts returns the strings at a path in lower case, or all strings of a document if the path is $**.
func texts(v any, path string) (out []string) {
	if path != "$**" {
		Along(v, strings.Split(path, "."), func(v any) {
			if text, ok := v.(string); ok {
				out = append(out, strings.ToLower(text))
			}
		})
		return out
	}
	switch x := v.(type) {
	case bson.D:
		for _, e := range x {
			out = append(out, texts(e.Value, path)...)
		}
	case bson.A:
		for _, item := range x {
			out = append(out, texts(item, path)...)
		}
	case string:
		out = append(out, strings.ToLower(x))
	}
	return out
}

// isTextScore reports whether a value is {$meta: "textScore"}.
func isTextScore(v any) bool { return value.Equal(v, value.Doc("$meta", "textScore")) }

// OnTextIndex sets the index of $text, by its specification.
func (f *Filter) OnTextIndex(spec bson.D) {
	f.search.weights = value.As[bson.D](spec, "weights")
	if language := value.Get(spec, "default_language"); language == "none" {
		f.search.plain = true
	}
}

// Score returns the textScore of a document that matches.
func (f *Filter) Score(doc bson.D) float64 {
	if f == nil || f.search == nil {
		return 0
	}
	return f.search.score(doc)
}
