package source

import (
	"regexp"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// wrappers has the type wrappers of Extended JSON v2 ("Conversion table") by their
// keys. Regular expressions written as {$regex, $options} are not among them: that
// is the query operator, and equal in effect.
var wrappers = map[string]wrapper{
	"$oid":               {bson.TypeObjectID, "a string of 24 hexadecimal digits", nil},
	"$symbol":            {bson.TypeSymbol, "a string", nil},
	"$numberInt":         {bson.TypeInt32, "a string with an integer of 32 bits", regexp.MustCompile(`^"-?[0-9]+"$`)},
	"$numberLong":        {bson.TypeInt64, "a string with an integer of 64 bits", regexp.MustCompile(`^"-?[0-9]+"$`)},
	"$numberDouble":      {bson.TypeDouble, "a string with a number, Infinity, -Infinity or NaN", regexp.MustCompile(`^"(-?Infinity|NaN|[-+.eE0-9]+)"$`)},
	"$numberDecimal":     {bson.TypeDecimal128, "a string with a decimal number of up to 34 digits", nil},
	"$binary":            {bson.TypeBinary, "{base64: a string with padding, subType: one or two hexadecimal digits}", regexp.MustCompile(`"subType":"[^"]{1,2}"`)},
	"$uuid":              {bson.TypeBinary, "a string such as 73ffd264-44b3-4c69-90e8-e7d1dfc035d4", nil},
	"$code":              {bson.TypeJavaScript, "a string, and $scope beside it a document", nil},
	"$timestamp":         {bson.TypeTimestamp, "{t: seconds, i: ordinal}, both whole numbers below 2^32", nil},
	"$regularExpression": {bson.TypeRegex, "{pattern: a string, options: a string}, without zero bytes", noZero},
	"$dbPointer":         {bson.TypeDBPointer, "{$ref: a string, $id: an ObjectId}", nil},
	"$date":              {bson.TypeDateTime, "an RFC 3339 date or {$numberLong: milliseconds}", regexp.MustCompile(`^("|\{"\$numberLong":"-?[0-9]+"\}$)`)},
	"$minKey":            {bson.TypeMinKey, "1", nil},
	"$maxKey":            {bson.TypeMaxKey, "1", nil},
	"$undefined":         {bson.TypeUndefined, "true", nil},
}

// wrapper is the BSON type that a type wrapper stands for, and what must stand under
// its key.
type wrapper struct {
	of    bson.Type
	needs string
	form  *regexp.Regexp // of its JSON, where package bson takes more than Extended JSON has
}

var noZero = regexp.MustCompile(`^([^\\]|\\[^u]|\\u(000[1-9a-f]|00[1-9a-f]|0[1-9a-f]|[1-9a-f]))*$`)

// wrapper gives the key of the type wrapper that a document is, and its row;
// "" for any other document.
func (v *Value) wrapper() (string, wrapper) {
	for _, f := range v.Fields {
		if w, known := wrappers[f.Key]; known {
			return f.Key, w
		}
	}
	return "", wrapper{}
}

func (v *Value) extended(key string, w wrapper) (bson.RawValue, error) {
	for _, f := range v.Fields {
		switch {
		case f.Key == key:
		case key == "$code" && f.Key == "$scope":
			w.of = bson.TypeCodeWithScope
		default:
			return bson.RawValue{}, errorAt(f.KeyPosition, "key %q cannot stand beside %s in Extended JSON", f.Key, key)
		}
	}
	content, text := v.Get(key), v.JSON()
	if scope := v.Get("$scope"); scope != nil && content.Kind == String {
		text = `{"$code":` + content.JSON() + `,"$scope":` + scope.JSON() + `}` // package bson knows this order alone
		content = scope
	}
	var document struct{ V bson.RawValue }
	err := bson.UnmarshalExtJSON([]byte(`{"v":`+text+`}`), false, &document)
	if err != nil || document.V.Type != w.of || w.form != nil && !w.form.MatchString(content.JSON()) {
		return bson.RawValue{}, content.malformed(key, w.needs)
	}
	return document.V, nil
}

// malformed is an error about what stands under a type wrapper's key.
func (v *Value) malformed(key, needs string) error {
	what := v.JSON()
	if v.Kind == Array || v.Kind == Document {
		what = "of type " + v.Kind.String()
	}
	return errorAt(v.Position, "malformed Extended JSON: %s needs %s, this is %s", key, needs, what)
}
