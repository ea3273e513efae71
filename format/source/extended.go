package source

import (
	"regexp"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// wrappers maps the keys of the type wrappers of Extended JSON v2 ("Conversion table"). {$regex, $options} is not one
// of them: it remains the query operator, with the same effect.
var wrappers = map[string]wrapper{
	"$oid":        {bson.TypeObjectID, "a string of 24 hexadecimal digits", nil},
	"$symbol":     {bson.TypeSymbol, "a string", nil},
	"$numberInt":  {bson.TypeInt32, "a string with an integer of 32 bits", regexp.MustCompile(`^"-?[0-9]+"$`)},
	"$numberLong": {bson.TypeInt64, "a string with an integer of 64 bits", regexp.MustCompile(`^"-?[0-9]+"$`)},
	"$numberDouble": {bson.TypeDouble, "a string with a number, Infinity, -Infinity or NaN",
		regexp.MustCompile(`^"(-?Infinity|NaN|[-+.eE0-9]+)"$`)},
	"$numberDecimal": {bson.TypeDecimal128, "a string with a decimal number of up to 34 digits", nil},
	"$binary": {bson.TypeBinary, "{base64: a string with padding, subType: one or two hexadecimal digits}",
		binary},
	"$uuid":              {bson.TypeBinary, "a string such as 73ffd264-44b3-4c69-90e8-e7d1dfc035d4", nil},
	"$code":              {bson.TypeJavaScript, "a string, and $scope a document", nil},
	"$timestamp":         {bson.TypeTimestamp, "{t: seconds, i: ordinal}, both whole numbers below 2^32", nil},
	"$regularExpression": {bson.TypeRegex, "{pattern: a string, options: a string}, without zero bytes", noZero},
	"$dbPointer":         {bson.TypeDBPointer, "{$ref: a string, $id: an ObjectId}", nil},
	"$date": {bson.TypeDateTime,
		"an RFC 3339 date, with at most milliseconds, or {$numberLong: milliseconds}", date},
	"$minKey":    {bson.TypeMinKey, "1", nil},
	"$maxKey":    {bson.TypeMaxKey, "1", nil},
	"$undefined": {bson.TypeUndefined, "true", nil},
}

// wrapper describes a type wrapper.
type wrapper struct {
	of    bson.Type
	needs string         // the valid content of the key, for messages
	form  *regexp.Regexp // of the content as JSON, where package bson accepts more than the specification
}

var (
	binary = regexp.MustCompile(`^\{("base64":"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?"|"subType":"[^"]{1,2}"|,)*\}$`)
	date   = regexp.MustCompile(`^("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,3})?(Z|[-+]([01][0-9]|2[0-3]):?[0-5][0-9])"|\{"\$numberLong":"-?[0-9]+"\})$`)
	noZero = regexp.MustCompile(`^([^\\]|\\[^u]|\\u(000[1-9a-f]|00[1-9a-f]|0[1-9a-f]|[1-9a-f]))*$`)
)

// wrapper returns the key and the description of a type wrapper, "" for any other document.
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
			return bson.RawValue{}, errorAt(f.KeyPosition, "key %q cannot be combined with %s in Extended JSON", f.Key, key)
		}
	}
	content, text := v.Get(key), v.JSON()
	if scope := v.Get("$scope"); scope != nil && content.Kind == String {
		text = `{"$code":` + content.JSON() + `,"$scope":` + scope.JSON() + `}` // package bson requires this order
		content = scope
	}
	var document struct{ V bson.RawValue }
	err := bson.UnmarshalExtJSON([]byte(`{"v":`+text+`}`), false, &document)
	if err != nil || document.V.Type != w.of || w.form != nil && !w.form.MatchString(content.JSON()) {
		got := content.JSON()
		if content.Kind == Array || content.Kind == Document {
			got = "a value of type " + content.Kind.String()
		}
		return bson.RawValue{}, errorAt(content.Position, "malformed Extended JSON: %s requires %s, got %s", key,
			w.needs, got)
	}
	return document.V, nil
}
