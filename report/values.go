package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// document gives a BSON document as relaxed Extended JSON, nil for an empty
// one. What cannot be rendered is said, never left out.
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

// value does the same for any BSON value.
func value(v bson.RawValue) json.RawMessage {
	if v.Type == 0 {
		return nil
	}
	wrapped, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	if err != nil {
		text, _ := json.Marshal(fmt.Sprintf("not a BSON value: %v", err))
		return text
	}
	var out struct {
		V json.RawMessage `json:"v"`
	}
	text := document(wrapped)
	if json.Unmarshal(text, &out) != nil {
		return text
	}
	return out.V
}

// tedious are the fields that every command and reply carries and that
// seldom explain a failure: reports for people leave them out.
var tedious = [...]string{"lsid", "$clusterTime", "operationTime", "signature", "$db"}

// brief gives a document on one line for people, at most width characters.
func brief(raw bson.Raw, width int) string {
	elements, err := raw.Elements()
	if err != nil || len(raw) == 0 {
		return ""
	}
	var kept bson.D
	for _, e := range elements {
		if !slices.Contains(tedious[:], e.Key()) {
			kept = append(kept, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	text, err := bson.Marshal(kept)
	if err != nil {
		return ""
	}
	return clip(string(document(text)), width)
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

// Quote joins an argument vector so that a POSIX shell reads it back.
func Quote(arguments []string) string {
	quoted := make([]string, len(arguments))
	for i, a := range arguments {
		quoted[i] = quoteOne(a)
	}
	return strings.Join(quoted, " ")
}

func quoteOne(a string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%"
	if a != "" && strings.Trim(a, plain) == "" {
		return a
	}
	return "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
}
