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

// operator is the test of a special operator that a missing value does not
// pass.
type operator func(c *comparison, n *node, actual bson.RawValue, shape Shape)

func (o operator) match(c *comparison, n *node, actual bson.RawValue, shape Shape) {
	o(c, n, actual, shape)
}

// optional is the test of one that a missing value passes.
type optional struct{ operator }

// within matches what stands inside an operator, below its name in the path.
func within(name string, inside *node) operator {
	return func(c *comparison, _ *node, actual bson.RawValue, shape Shape) {
		c.path.atKey(name, func() { c.match(inside, actual, shape) })
	}
}

func readExists(k *compiler, argument *source.Value, where place) test {
	k.demand(argument, source.Bool, "$$exists requires true or false")
	if where == inArray {
		k.faultOf(argument, "$$exists stands for the value of a key, not for an array element")
	}
	if argument.Bool {
		return operator(func(*comparison, *node, bson.RawValue, Shape) {})
	}
	return optional{func(c *comparison, n *node, actual bson.RawValue, _ Shape) {
		c.differ(n, actual, "expected no value, got one")
	}}
}

func readType(k *compiler, argument *source.Value, _ place) test {
	names := []*source.Value{argument}
	if argument.Kind == source.Array {
		names = argument.Items
	}
	if len(names) == 0 {
		k.faultOf(argument, "$$type requires at least one type")
	}
	var words []string
	var all []bson.Type
	for _, name := range names {
		list, ok := aliases[name.String]
		if name.Kind != source.String || !ok {
			k.faultOf(name, "$$type requires the string alias of a BSON type")
		}
		words, all = append(words, name.String), append(all, list...)
	}
	return operator(func(c *comparison, n *node, actual bson.RawValue, _ Shape) {
		if !slices.Contains(all, actual.Type) {
			c.differ(n, actual, "expected type %s, got %s", strings.Join(words, " or "), typeName(actual))
		}
	})
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

// readEntity reads an operator whose argument names an entity.
func readEntity(k *compiler, argument *source.Value, name string, get func(string) (bson.RawValue, error)) test {
	if !k.demand(argument, source.String, name+" requires the name of an entity") {
		return nil
	}
	if k.entities == nil {
		k.faultOf(argument, "%s: there are no entities here", name)
		return nil
	}
	value, err := get(argument.String)
	switch {
	case err != nil:
		k.faultOf(argument, "%s: %v", name, err)
		return nil
	case value.Type == 0:
		k.faultOf(argument, "%s: entity %q has no value", name, argument.String)
		return nil
	}
	return within(name, k.data(argument.Position, value))
}

func readMatchesHexBytes(k *compiler, argument *source.Value, _ place) test {
	want, err := hex.DecodeString(argument.String)
	if argument.Kind != source.String || err != nil {
		k.faultOf(argument, "$$matchesHexBytes requires an even number of hexadecimal digits")
	}
	return operator(func(c *comparison, n *node, actual bson.RawValue, _ Shape) {
		s, isString := actual.StringValueOK()
		got := []byte(s)
		if subtype, data, ok := actual.BinaryOK(); ok && subtype == bson.TypeBinaryGeneric {
			got, isString = data, true
		}
		switch {
		case !isString:
			c.differ(n, actual, "expected a string of bytes, got %s", typeName(actual))
		case !bytes.Equal(got, want):
			c.differ(n, actual, "the bytes differ: expected %s, got %s", abridge(hex.EncodeToString(want)), abridge(hex.EncodeToString(got)))
		}
	})
}

func readUnsetOrMatches(k *compiler, argument *source.Value, where place) test {
	if where == inArray {
		k.faultOf(argument, "$$unsetOrMatches must not be an array element")
	}
	return optional{within("$$unsetOrMatches", k.value(argument, inner))}
}

func readLte(k *compiler, argument *source.Value, _ place) test {
	rv, _, err := argument.Scalar()
	most, isNumber := numberOf(rv)
	if err != nil || !isNumber {
		k.faultOf(argument, "$$lte requires a number")
	}
	return operator(func(c *comparison, n *node, actual bson.RawValue, _ Shape) {
		switch got, comparable := numberOf(actual); {
		case !comparable:
			c.differ(n, actual, "expected a number to compare, got %s", typeName(actual))
		case !got.atMost(most):
			c.differ(n, actual, "the value is not less than or equal")
		}
	})
}

func readMatchAsDocument(k *compiler, argument *source.Value, _ place) test {
	match := within("$$matchAsDocument", k.value(argument, inner))
	return operator(func(c *comparison, n *node, actual bson.RawValue, _ Shape) {
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
		match(c, n, document(raw), Nested)
	})
}

// parseDocument reads Extended JSON that must be one document.
func parseDocument(s string) (raw bson.Raw, err error) {
	if !json.Valid([]byte(s)) {
		return nil, fmt.Errorf("invalid JSON")
	}
	if !strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") {
		return nil, fmt.Errorf("not a JSON object")
	}
	err = bson.UnmarshalExtJSON([]byte(s), false, &raw)
	return raw, err
}

func readMatchAsRoot(k *compiler, argument *source.Value, _ place) test {
	k.demand(argument, source.Document, "$$matchAsRoot requires a document")
	match := within("$$matchAsRoot", k.value(argument, inner))
	return operator(func(c *comparison, n *node, actual bson.RawValue, _ Shape) {
		if actual.Type != bson.TypeEmbeddedDocument {
			c.differ(n, actual, "expected a document, got %s", typeName(actual))
			return
		}
		match(c, n, actual, RootDocument)
	})
}

func readPlaceholder(k *compiler, argument *source.Value, _ place) test {
	k.faultOf(argument, "$$placeholder has no place in an expected value")
	return nil
}
