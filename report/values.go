package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// milliseconds are those of a record, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func fromMilliseconds(ms float64) time.Duration {
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

// duration is milliseconds in a record.
type duration time.Duration

// IsZero lets omitzero leave out what would be written as 0.
func (d duration) IsZero() bool { return milliseconds(time.Duration(d)) == 0 }

func (d duration) MarshalJSON() ([]byte, error) { return json.Marshal(milliseconds(time.Duration(d))) }

func (d *duration) UnmarshalJSON(text []byte) error {
	var ms float64
	err := json.Unmarshal(text, &ms)
	*d = duration(fromMilliseconds(ms))
	return err
}

// document is a BSON document, relaxed Extended JSON in a record. What cannot be rendered
// is reported, never left out; it is read as no document.
type document bson.Raw

func (d document) MarshalJSON() ([]byte, error) {
	if len(d) == 0 {
		return []byte("null"), nil
	}
	text, err := bson.MarshalExtJSON(bson.Raw(d), false, false)
	if err != nil {
		return json.Marshal(fmt.Sprintf("not a BSON document: %v", err))
	}
	return text, nil
}

func (d *document) UnmarshalJSON(text []byte) error {
	var raw bson.Raw
	if bson.UnmarshalExtJSON(text, false, &raw) == nil {
		*d = document(raw)
	}
	return nil
}

// value is any BSON value likewise. Its type is 0 if there is none.
type value bson.RawValue

// IsZero lets omitzero leave the value out.
func (v value) IsZero() bool { return v.Type == 0 }

func (v value) MarshalJSON() ([]byte, error) {
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: bson.RawValue(v)}}, false, false)
	if err != nil {
		return json.Marshal(fmt.Sprintf("not a BSON value: %v", err))
	}
	return text[len(`{"v":`) : len(text)-len("}")], nil
}

func (v *value) UnmarshalJSON(text []byte) error {
	var wrapped document
	err := wrapped.UnmarshalJSON(slices.Concat([]byte(`{"v":`), text, []byte("}")))
	*v = value(bson.Raw(wrapped).Lookup("v"))
	return err
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
