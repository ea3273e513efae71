package matchers

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/result"
)

// operator returns the name and the argument of a special operator, a document whose only key starts with $$, or ""
// for any other expected value ("Special Operators for Matching Assertions").
func (m *Matcher) operator(want *source.Value) (name string, argument *source.Value) {
	if m.exact || m.inEntity != nil || len(want.Fields) != 1 || !strings.HasPrefix(want.Fields[0].Key, "$$") {
		return "", nil
	}
	return want.Fields[0].Key, want.Fields[0].Value
}

// mayBeMissing reports whether an operator matches a missing value.
func mayBeMissing(operator string, argument *source.Value) bool {
	return operator == "$$unsetOrMatches" || operator == "$$exists" && !argument.Bool
}

// operate compares an existing value with a special operator.
func (m *Matcher) operate(operator string, want, argument *source.Value, actual bson.RawValue, shape operations.Shape) {
	inside := func(want *source.Value, actual bson.RawValue, shape operations.Shape) {
		m.atKey(operator, func() { m.match(want, actual, shape) })
	}
	switch operator {
	case "$$exists":
		if !argument.Bool {
			m.differ(want, actual, "expected no value, got one")
		}
	case "$$type":
		m.matchType(want, argument, actual)
	case "$$matchesEntity", "$$sessionLsid":
		entity := m.entity(operator, argument)
		switch _, text := actual.StringValueOK(); {
		case entity == nil:
		case text && operator == "$$sessionLsid":
			m.matchSessionText(want, entity, actual)
		default:
			m.inEntity = argument
			inside(entity, actual, shape)
			m.inEntity = nil
		}
	case "$$matchesHexBytes":
		m.matchBytes(want, argument, actual)
	case "$$unsetOrMatches":
		inside(argument, actual, shape)
	case "$$lte":
		m.matchAtMost(want, argument, actual)
	case "$$matchAsDocument":
		if s, ok := actual.StringValueOK(); !ok {
			m.differ(want, actual, "expected a string of Extended JSON, got %s", typeName(actual))
		} else if raw, err := parseDocument(s); err != nil {
			m.differ(want, actual, "expected a string of Extended JSON: %v", err)
		} else {
			inside(argument, document(raw), operations.Value)
		}
	case "$$matchAsRoot":
		if actual.Type != bson.TypeEmbeddedDocument {
			m.differ(want, actual, "expected a document, got %s", typeName(actual))
		} else {
			inside(argument, actual, operations.RootDocument)
		}
	default:
		m.differ(want, actual, "%s is not a special operator", operator)
	}
}

func (m *Matcher) matchType(want, argument *source.Value, actual bson.RawValue) {
	aliases := []string{argument.String}
	if argument.Kind == source.Array {
		aliases = nil
		for _, alias := range argument.Items {
			aliases = append(aliases, alias.String)
		}
	}
	if !slices.Contains(aliases, typeName(actual)) && (!actual.IsNumber() || !slices.Contains(aliases, "number")) {
		m.differ(want, actual, "expected type %s, got %s", strings.Join(aliases, " or "), typeName(actual))
	}
}

// entity returns the content of the entity that an operator names, or nil if it is undefined. It looks up each entity
// once, because an lsid is requested from the engine.
func (m *Matcher) entity(operator string, name *source.Value) *source.Value {
	key := operator + " " + name.String
	content, known := m.known[key]
	if !known {
		var err error
		if content, err = m.lookUp(operator, name); err != nil {
			m.atKey(operator, func() {
				m.faults = append(m.faults, result.Mismatch{
					Path: m.path, Position: name.Position,
					Message: fmt.Sprintf("%s: %v", operator, err), Want: name.JSON(),
				})
			})
		}
		m.known[key] = content
	}
	m.differs = m.differs || content == nil
	return content
}

func (m *Matcher) lookUp(operator string, name *source.Value) (*source.Value, error) {
	if m.entities == nil {
		return nil, fmt.Errorf("no entities are available")
	}
	content := m.entities.BSON
	if operator == "$$sessionLsid" {
		content = m.entities.LSID
	}
	value, err := content(name.String)
	switch {
	case err != nil:
		return nil, err
	case value.Type == 0:
		return nil, fmt.Errorf("entity %q has no value", name.String)
	}
	return source.ParseJSON(name.Position.File, []byte(ExtendedJSON(value, false)))
}

func (m *Matcher) matchBytes(want, argument *source.Value, actual bson.RawValue) {
	s, isString := actual.StringValueOK()
	got := []byte(s)
	if subtype, data, ok := actual.BinaryOK(); ok && subtype == bson.TypeBinaryGeneric {
		got, isString = data, true
	}
	switch expected, err := hex.DecodeString(argument.String); {
	case err != nil:
		m.differ(want, actual, "$$matchesHexBytes: %v", err)
	case !isString:
		m.differ(want, actual, "expected a string of bytes, got %s", typeName(actual))
	case !bytes.Equal(got, expected):
		m.differ(want, actual, "the bytes differ: expected %s, got %s", abridge(hex.EncodeToString(expected)),
			abridge(hex.EncodeToString(got)))
	}
}

func (m *Matcher) matchAtMost(want, argument *source.Value, actual bson.RawValue) {
	limit, err := argument.BSON()
	most, isNumber := numberOf(limit)
	switch got, ok := numberOf(actual); {
	case err != nil || !isNumber:
		m.differ(want, actual, "$$lte requires a number")
	case !ok:
		m.differ(want, actual, "expected a number to compare, got %s", typeName(actual))
	case got == nil || most == nil || got.Cmp(most) > 0:
		m.differ(want, actual, "the value is not less than or equal")
	}
}

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
