package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// document gives a BSON document as relaxed Extended JSON, nil for an empty
// one. What cannot be rendered is reported, never left out.
func document(raw bson.Raw) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	text, err := bson.MarshalExtJSON(raw, false, false)
	if err != nil {
		text, _ = json.Marshal(fmt.Sprintf("not a BSON document: %v", err))
	}
	return text
}

// documentOf reads what document writes, nil if that was not a document.
func documentOf(text json.RawMessage) bson.Raw {
	var raw bson.Raw
	if len(text) == 0 || bson.UnmarshalExtJSON(text, false, &raw) != nil {
		return nil
	}
	return raw
}

// value gives any BSON value as relaxed Extended JSON, nil if there is none.
func value(v bson.RawValue) json.RawMessage {
	if v.Type == 0 {
		return nil
	}
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, false, false)
	if err != nil {
		text, _ = json.Marshal(fmt.Sprintf("not a BSON value: %v", err))
		return text
	}
	return text[len(`{"v":`) : len(text)-len("}")]
}

// valueOf reads what value writes. The value has type 0 if there was none.
func valueOf(text json.RawMessage) bson.RawValue {
	if len(text) == 0 {
		return bson.RawValue{}
	}
	return documentOf(slices.Concat([]byte(`{"v":`), text, []byte("}"))).Lookup("v")
}

// tedious are the fields of every command and reply that seldom explain a
// failure: reports for people leave them out.
var tedious = [...]string{"lsid", "$clusterTime", "operationTime", "signature", "$db"}

// brief gives a document on one line for people, at most width characters.
func brief(raw bson.Raw, width int) string {
	elements, err := raw.Elements()
	if err != nil || len(raw) == 0 {
		return ""
	}
	kept := bson.D{}
	for _, e := range elements {
		if !slices.Contains(tedious[:], e.Key()) {
			kept = append(kept, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	text, err := bson.MarshalExtJSON(kept, false, false)
	if err != nil {
		return ""
	}
	return clip(string(text), width)
}

// clip cuts a text to one line of at most width characters.
func clip(s string, width int) string {
	s = strings.Join(strings.Fields(s), " ")
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}

// fit cuts a text to one line of at most so many columns of a terminal, without
// what would control it.
func fit(s string, columns int) string {
	s = oneLine(s)
	all, cut := 0, 0 // columns so far; the end of what fits beside an ellipsis
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

// columnsOf is the most that a terminal gives a character: two from Hangul on,
// except for symbols, and one for all before. Where it is too many, a line is
// shorter than it could be, but no line wraps.
func columnsOf(r rune) int {
	const hangul, symbols, afterSymbols = 0x1100, 0x1E00, 0x2E80
	if r < hangul || r >= symbols && r < afterSymbols || r == utf8.RuneError {
		return 1
	}
	return 2
}

// Quote joins an argument vector so that a POSIX shell reads it back.
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
