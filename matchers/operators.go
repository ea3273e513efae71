package matchers

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/source"
)

// operators reads the argument of each special operator ("Special Operators
// for Matching Assertions") into its test. Filled by init, because arguments
// may hold operators again; not changed after.
var operators map[string]func(k *compiler, argument *source.Value, where place) test

func init() {
	operators = map[string]func(*compiler, *source.Value, place) test{
		"$$exists":          readExists,
		"$$type":            readType,
		"$$matchesEntity":   readMatchesEntity,
		"$$matchesHexBytes": readMatchesHexBytes,
		"$$unsetOrMatches":  readUnsetOrMatches,
		"$$sessionLsid":     readSessionLsid,
		"$$lte":             readLte,
		"$$matchAsDocument": readMatchAsDocument,
		"$$matchAsRoot":     readMatchAsRoot,
		"$$placeholder":     readPlaceholder,
	}
}

// exists is $$exists.
type exists struct{ want bool }

func readExists(k *compiler, argument *source.Value, where place) test {
	if argument.Kind != source.Bool {
		k.faultOf(argument, "$$exists requires true or false")
	}
	if where == inArray {
		k.faultOf(argument, "$$exists stands for the value of a key, not for an array element")
	}
	return exists{argument.Bool}
}

func (e exists) mayBeMissing() bool { return !e.want }

func (e exists) match(c *comparison, n *node, actual bson.RawValue, _ Shape) {
	if !e.want {
		c.differ(n, actual, "expected no value, got one")
	}
}

// hasType is $$type.
type hasType struct {
	aliases []string
	types   []bson.Type
}

func readType(k *compiler, argument *source.Value, _ place) test {
	names := []*source.Value{argument}
	if argument.Kind == source.Array {
		names = argument.Items
	}
	if len(names) == 0 {
		k.faultOf(argument, "$$type requires at least one type")
	}
	var t hasType
	for _, name := range names {
		list, ok := aliases[name.String]
		if name.Kind != source.String || !ok {
			k.faultOf(name, "$$type requires the string alias of a BSON type")
			continue
		}
		t.aliases = append(t.aliases, name.String)
		t.types = append(t.types, list...)
	}
	return t
}

func (t hasType) match(c *comparison, n *node, actual bson.RawValue, _ Shape) {
	if !slices.Contains(t.types, actual.Type) {
		c.differ(n, actual, "expected type %s, got %s", strings.Join(t.aliases, " or "), typeName(actual))
	}
}

// same is $$matchesEntity and $$sessionLsid: the value of an entity.
type same struct {
	operator string
	value    *node
}

func readMatchesEntity(k *compiler, argument *source.Value, _ place) test {
	return readEntity(k, argument, "$$matchesEntity", func(name string) (bson.RawValue, error) {
		return k.entities.BSON(name)
	})
}

func readSessionLsid(k *compiler, argument *source.Value, _ place) test {
	return readEntity(k, argument, "$$sessionLsid", func(name string) (bson.RawValue, error) {
		id, err := k.entities.LSID(name)
		return document(id), err
	})
}

func readEntity(k *compiler, argument *source.Value, operator string, get func(string) (bson.RawValue, error)) test {
	if argument.Kind != source.String {
		k.faultOf(argument, "%s requires the name of an entity", operator)
		return nil
	}
	if k.entities == nil {
		k.faultOf(argument, "%s: there are no entities here", operator)
		return nil
	}
	value, err := get(argument.String)
	switch {
	case err != nil:
		k.faultOf(argument, "%s: %v", operator, err)
		return nil
	case value.Type == 0:
		k.faultOf(argument, "%s: entity %q has no value", operator, argument.String)
		return nil
	}
	return same{operator, k.data(argument.Position, value)}
}

func (s same) match(c *comparison, n *node, actual bson.RawValue, shape Shape) {
	c.path.key(s.operator)
	c.match(s.value, actual, shape)
	c.path.pop()
}

// hexBytes is $$matchesHexBytes.
type hexBytes struct{ want []byte }

func readMatchesHexBytes(k *compiler, argument *source.Value, _ place) test {
	want, err := hex.DecodeString(argument.String)
	if argument.Kind != source.String || err != nil {
		k.faultOf(argument, "$$matchesHexBytes requires an even number of hexadecimal digits")
	}
	return hexBytes{want}
}

func (h hexBytes) match(c *comparison, n *node, actual bson.RawValue, _ Shape) {
	s, isString := actual.StringValueOK()
	got := []byte(s)
	if subtype, data, ok := actual.BinaryOK(); ok && subtype == bson.TypeBinaryGeneric {
		got, isString = data, true
	}
	switch {
	case !isString:
		c.differ(n, actual, "expected a string of bytes, got %s", typeName(actual))
	case !bytes.Equal(got, h.want):
		c.differ(n, actual, "the bytes differ: expected %s, got %s", abridge(hex.EncodeToString(h.want)), abridge(hex.EncodeToString(got)))
	}
}

// unsetOr is $$unsetOrMatches.
type unsetOr struct{ value *node }

func readUnsetOrMatches(k *compiler, argument *source.Value, where place) test {
	if where == inArray {
		k.faultOf(argument, "$$unsetOrMatches must not be an array element")
	}
	return unsetOr{k.value(argument, inner)}
}

func (unsetOr) mayBeMissing() bool { return true }

func (u unsetOr) match(c *comparison, n *node, actual bson.RawValue, shape Shape) {
	c.path.key("$$unsetOrMatches")
	c.match(u.value, actual, shape)
	c.path.pop()
}

// lte is $$lte.
type lte struct {
	number  number
	decimal *bson.Decimal128 // instead of number
}

func readLte(k *compiler, argument *source.Value, _ place) test {
	rv, ok, err := argument.Scalar()
	if n, isNumber := numberOf(rv); ok && err == nil && isNumber {
		return lte{number: n}
	}
	if d, isDecimal := rv.Decimal128OK(); ok && err == nil && isDecimal {
		return lte{decimal: &d}
	}
	k.faultOf(argument, "$$lte requires a number")
	return nil
}

func (l lte) match(c *comparison, n *node, actual bson.RawValue, _ Shape) {
	var comparable, holds bool
	if l.decimal != nil {
		var d bson.Decimal128
		d, comparable = actual.Decimal128OK()
		holds = comparable && decimalAtMost(d, *l.decimal)
	} else {
		var x number
		x, comparable = numberOf(actual)
		holds = comparable && x.atMost(l.number)
	}
	switch {
	case !comparable:
		c.differ(n, actual, "expected a number to compare, got %s", typeName(actual))
	case !holds:
		c.differ(n, actual, "the value is not less than or equal")
	}
}

// asDocument is $$matchAsDocument.
type asDocument struct{ value *node }

func readMatchAsDocument(k *compiler, argument *source.Value, _ place) test {
	return asDocument{k.value(argument, inner)}
}

func (a asDocument) match(c *comparison, n *node, actual bson.RawValue, _ Shape) {
	s, ok := actual.StringValueOK()
	if !ok {
		c.differ(n, actual, "expected a string of Extended JSON, got %s", typeName(actual))
		return
	}
	raw, err := parseDocument(s)
	if err != nil {
		c.differ(n, actual, "expected a string of Extended JSON: %v", err)
		return
	}
	c.path.key("$$matchAsDocument")
	c.match(a.value, document(raw), Nested)
	c.path.pop()
}

// parseDocument reads Extended JSON that must be one document.
func parseDocument(s string) (bson.Raw, error) {
	if !json.Valid([]byte(s)) {
		return nil, fmt.Errorf("invalid JSON")
	}
	if !strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") {
		return nil, fmt.Errorf("not a JSON object")
	}
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(s), false, &raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// asRoot is $$matchAsRoot.
type asRoot struct{ value *node }

func readMatchAsRoot(k *compiler, argument *source.Value, _ place) test {
	if argument.Kind != source.Document {
		k.faultOf(argument, "$$matchAsRoot requires a document")
		return nil
	}
	return asRoot{k.value(argument, inner)}
}

func (a asRoot) match(c *comparison, n *node, actual bson.RawValue, _ Shape) {
	if actual.Type != bson.TypeEmbeddedDocument {
		c.differ(n, actual, "expected a document, got %s", typeName(actual))
		return
	}
	c.path.key("$$matchAsRoot")
	c.match(a.value, actual, RootDocument)
	c.path.pop()
}

func readPlaceholder(k *compiler, argument *source.Value, _ place) test {
	k.faultOf(argument, "$$placeholder has no place in an expected value")
	return nil
}
