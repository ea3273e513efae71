package query

import (
	"math"
	"slices"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/pattern"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// schema is a parsed $jsonSchema (MongoDB manual, "$jsonSchema").
type schema struct {
	about bson.D // title and description
	rules []rule
}

// rule returns why a value does not satisfy a keyword, as errInfo shows it; nil if it does.
type rule func(v any) bson.D

// failures returns why a value does not satisfy the schema: nil if it does.
func (s *schema) failures(v any) (out bson.A) {
	for _, r := range s.rules {
		if why := r(v); why != nil {
			out = append(out, why)
		}
	}
	return out
}

// keyword is a keyword of a schema with its argument.
type keyword struct {
	name string
	arg  any
	of   bson.D // the schema
}

// keywordRule is a keyword with the types of its argument.
type keywordRule struct {
	name  string
	types []string
	parse func(p *parser, k keyword) rule
}

// unsupported are keywords of JSON Schema that servers refuse.
var unsupported = []string{"$ref", "$schema", "default", "definitions", "format", "id"}

// keywords are in the order in which a server applies them.
func keywords() []keywordRule {
	numbers := []string{"int", "long", "double", "decimal"}
	object, array, flag, text := []string{"object"}, []string{"array"}, []string{"bool"}, []string{"string"}
	return []keywordRule{
		{"title", text, nil}, {"description", text, nil}, {"exclusiveMaximum", flag, nil}, {"exclusiveMinimum", flag, nil},
		{"allOf", array, (*parser).allOf}, {"anyOf", array, (*parser).anyOf}, {"oneOf", array, (*parser).oneOf},
		{"not", object, (*parser).notSchema},
		{"enum", array, (*parser).enum},
		{"maximum", numbers, (*parser).limit}, {"minimum", numbers, (*parser).limit},
		{"maxLength", numbers, (*parser).length}, {"minLength", numbers, (*parser).length},
		{"pattern", text, (*parser).pattern},
		{"multipleOf", numbers, (*parser).multipleOf},
		{"maxItems", numbers, (*parser).length}, {"minItems", numbers, (*parser).length},
		{"uniqueItems", flag, (*parser).uniqueItems},
		{"items", []string{"object", "array"}, (*parser).items},
		{"properties", object, (*parser).properties},
		{"additionalProperties", []string{"bool", "object"}, (*parser).additionalProperties},
		{"required", array, (*parser).required},
		{"maxProperties", numbers, (*parser).length}, {"minProperties", numbers, (*parser).length},
		{"type", []string{"string", "array"}, (*parser).bsonType},
		{"bsonType", []string{"string", "array"}, (*parser).bsonType},
	}
}

// schema parses a schema.
func (p *parser) schema(given any) *schema {
	d, ok := given.(bson.D)
	p.Refuse(!ok, fault.TypeMismatch, "$jsonSchema must be an object")
	for _, e := range d {
		p.Refuse(slices.Contains(unsupported, e.Key), fault.FailedToParse,
			"$jsonSchema keyword '%s' is not currently supported", e.Key)
		p.Note(fault.Refusal("schema", e.Key, p.opts.Wire))
		p.Refuse(!fault.Exists("schema", e.Key, p.opts.Wire), fault.FailedToParse, "Unknown $jsonSchema keyword: %s", e.Key)
	}
	s := &schema{}
	for _, k := range keywords() {
		arg, has := value.Field(d, k.name)
		p.Refuse(has && !slices.Contains(k.types, value.TypeName(arg)), fault.TypeMismatch,
			"$jsonSchema keyword '%s' must be %s", k.name, map[string]string{"object": "an object", "array": "an array",
				"bool": "a boolean", "string": "a string", "int": "a number"}[k.types[0]])
		switch {
		case !has || p.Err != nil:
		case k.parse != nil:
			s.rules = append(s.rules, k.parse(p, keyword{k.name, arg, d}))
		case k.name == "title" || k.name == "description":
			s.about = value.Append(s.about, k.name, arg)
		}
	}
	return s
}

func (p *parser) schemas(list any) (out []*schema) {
	for _, one := range list.(bson.A) {
		out = append(out, p.schema(one))
	}
	return out
}

// bound returns the keyword that excludes the bound of minimum or maximum.
func (k keyword) bound() string {
	return map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[k.name]
}

// unmet returns why a value does not satisfy a keyword.
func (k keyword) unmet(reason string, rest ...any) bson.D {
	exclusive, given := value.Field(k.of, k.bound())
	out := operator(k.name, "specifiedAs", value.AddIf(value.Doc(k.name, k.arg), given, k.bound(), exclusive))
	return value.Append(value.AddIf(out, reason != "", "reason", reason), rest...)
}

// unless returns a rule that the values satisfy that meet a condition.
func (k keyword) unless(met func(v any) bool, reason string) rule {
	return func(v any) bson.D {
		if met(v) {
			return nil
		}
		return k.unmet(reason, "consideredValue", v)
	}
}

// none returns a rule that the values satisfy for which failures finds nothing. name is the name of the failures in the
// details.
func (k keyword) none(name string, failures func(v any) bson.A) rule {
	return func(v any) bson.D {
		if failed := failures(v); failed != nil {
			return operator(k.name, name, failed)
		}
		return nil
	}
}

// operator returns details about an operator or a keyword: names and values in turn.
func operator(name string, rest ...any) bson.D {
	return value.Append(value.Doc("operatorName", name), rest...)
}

// failed appends why a value does not satisfy a schema, if it does not: after fields that tell the schema from others.
func (s *schema) failed(out bson.A, v any, before bson.D) bson.A {
	if why := s.failures(v); why != nil {
		out = append(out, value.Append(append(before, s.about...), "details", why))
	}
	return out
}

// unsatisfied returns the schemas of a list that a value does not satisfy, and the positions of the others.
func unsatisfied(list []*schema, v any) (failed, matching bson.A) {
	for i, s := range list {
		n := len(failed)
		if failed = s.failed(failed, v, value.Doc("index", int32(i))); len(failed) == n {
			matching = append(matching, int32(i))
		}
	}
	return failed, matching
}

func (p *parser) allOf(k keyword) rule {
	list := p.schemas(k.arg)
	return k.none("schemasNotSatisfied", func(v any) bson.A { failed, _ := unsatisfied(list, v); return failed })
}

func (p *parser) anyOf(k keyword) rule {
	list := p.schemas(k.arg)
	return k.none("schemasNotSatisfied", func(v any) bson.A {
		failed, matching := unsatisfied(list, v)
		if matching != nil {
			return nil
		}
		return failed
	})
}

func (p *parser) oneOf(k keyword) rule {
	list, none := p.schemas(k.arg), p.anyOf(k)
	return func(v any) bson.D {
		if _, matching := unsatisfied(list, v); len(matching) > 1 {
			return operator(k.name, "reason", "more than one subschema matched", "matchingSchemaIndexes", matching)
		}
		return none(v)
	}
}

func (p *parser) notSchema(k keyword) rule {
	s := p.schema(k.arg)
	return func(v any) bson.D {
		if s.failures(v) != nil {
			return nil
		}
		return operator(k.name, "reason", "child expression matched")
	}
}

func (p *parser) enum(k keyword) rule {
	list := k.arg.(bson.A)
	p.Refuse(len(list) == 0, fault.FailedToParse, "$jsonSchema keyword 'enum' cannot be an empty array")
	return k.unless(func(v any) bool {
		return slices.ContainsFunc(list, func(x any) bool { return value.Equal(v, x) })
	}, "value was not found in enum")
}

func (p *parser) limit(k keyword) rule {
	exclusive := value.Truthy(value.Get(k.of, k.bound()))
	return k.unless(func(v any) bool {
		n := value.Compare(v, k.arg)
		if k.name == "minimum" {
			n = -n
		}
		return !value.IsNumber(v) || n < 0 || n == 0 && !exclusive
	}, "comparison failed")
}

// length is a bound of the length of a string, an array or a document.
func (p *parser) length(k keyword) rule {
	bound, whole := value.Int64(k.arg)
	p.Refuse(!whole || bound < 0, fault.FailedToParse, "$jsonSchema keyword '%s' must be a non-negative integer", k.name)
	return func(v any) bson.D {
		n, of, reason, found, shown := 0, "", "", "consideredValue", v
		switch x := v.(type) {
		case string:
			n, of, reason = utf8.RuneCountInString(x), "Length", "specified string length was not satisfied"
		case bson.A:
			n, of, reason = len(x), "Items", "array did not match specified length"
		case bson.D:
			n, of, reason = len(x), "Properties", "specified number of properties was not satisfied"
			found, shown = "numberOfProperties", int32(n)
		}
		if k.name[3:] != of || k.name[:3] == "max" && int64(n) <= bound || k.name[:3] == "min" && int64(n) >= bound {
			return nil
		}
		return k.unmet(reason, found, shown)
	}
}

func (p *parser) pattern(k keyword) rule {
	re, err := pattern.Compile(k.arg.(string), "")
	p.Refuse(err != nil, 51091, "Regular expression is invalid: %v", err)
	return k.unless(func(v any) bool { text, ok := v.(string); return !ok || re.Matches(text) },
		"regular expression did not match")
}

func (p *parser) multipleOf(k keyword) rule {
	divisor := value.Float(k.arg)
	p.Refuse(divisor <= 0, fault.FailedToParse, "$jsonSchema keyword 'multipleOf' must have a positive value")
	return k.unless(func(v any) bool { return !value.IsNumber(v) || math.Mod(value.Float(v), divisor) == 0 },
		"considered value is not a multiple of the specified value")
}

func (p *parser) uniqueItems(k keyword) rule {
	return func(v any) bson.D {
		seen := map[string]bool{}
		list, _ := v.(bson.A)
		for _, item := range list {
			key := value.Key(item)
			if seen[key] && k.arg == true {
				return k.unmet("found a duplicate item", "consideredValue", v, "duplicatedValue", item)
			}
			seen[key] = true
		}
		return nil
	}
}

func (p *parser) items(k keyword) rule {
	p.Refuse(!value.Is[bson.D](k.arg), fault.NotImplemented,
		"$jsonSchema items with an array is not implemented by the embedded deployment")
	s := p.schema(k.arg)
	return func(v any) bson.D {
		list, _ := v.(bson.A)
		for i, item := range list {
			if why := s.failures(item); why != nil {
				return operator(k.name, "reason", "At least one item did not match the sub-schema",
					"itemIndex", int32(i), "details", why)
			}
		}
		return nil
	}
}

func (p *parser) properties(k keyword) rule {
	schemas := map[string]*schema{}
	for _, e := range k.arg.(bson.D) {
		schemas[e.Key] = p.schema(e.Value)
	}
	return k.none("propertiesNotSatisfied", func(v any) (failed bson.A) {
		doc, _ := v.(bson.D)
		for _, e := range k.arg.(bson.D) {
			if given, has := value.Field(doc, e.Key); has {
				failed = schemas[e.Key].failed(failed, given, value.Doc("propertyName", e.Key))
			}
		}
		return failed
	})
}

func (p *parser) additionalProperties(k keyword) rule {
	named := value.As[bson.D](k.of, "properties")
	var s *schema
	if value.Is[bson.D](k.arg) {
		s = p.schema(k.arg)
	}
	return func(v any) bson.D {
		var extra bson.A
		doc, _ := v.(bson.D)
		for _, e := range doc {
			if _, isNamed := value.Field(named, e.Key); isNamed {
				continue
			}
			if s == nil {
				extra = append(extra, e.Key)
			} else if why := s.failures(e.Value); why != nil {
				return operator(k.name, "reason", "at least one additional property did not match the subschema",
					"failingProperty", e.Key, "details", why)
			}
		}
		if extra == nil || k.arg != false {
			return nil
		}
		return k.unmet("", "additionalProperties", extra)
	}
}

func (p *parser) required(k keyword) rule {
	list := k.arg.(bson.A)
	p.Refuse(len(list) == 0, fault.FailedToParse, "$jsonSchema keyword 'required' cannot be an empty array")
	for _, item := range list {
		p.Refuse(!value.Is[string](item), fault.TypeMismatch,
			"$jsonSchema keyword 'required' must be an array of strings, but found an element of type: %s", value.TypeName(item))
	}
	return func(v any) bson.D {
		var missing bson.A
		doc, isDocument := v.(bson.D)
		for _, name := range list {
			if _, has := value.Field(doc, name.(string)); !has && isDocument {
				missing = append(missing, name)
			}
		}
		if missing == nil {
			return nil
		}
		return k.unmet("", "missingProperties", missing)
	}
}

// bsonType is bsonType, or type with names of JSON.
func (p *parser) bsonType(k keyword) rule {
	names, isList := k.arg.(bson.A)
	if !isList {
		names = bson.A{k.arg}
	}
	names = slices.Clone(names)
	for i, n := range names {
		p.Refuse(k.name == "type" && n == "integer", fault.FailedToParse,
			"$jsonSchema type 'integer' is not currently supported.")
		p.Refuse(k.name == "type" && !slices.Contains(jsonTypes, n), fault.BadValue, "Unknown type name alias: %v", n)
		if k.name == "type" && n == "boolean" {
			names[i] = "bool"
		}
	}
	matches := p.types(names)
	return func(v any) bson.D {
		if matches(v) {
			return nil
		}
		return k.unmet("type did not match", "consideredValue", v, "consideredType", value.TypeName(v))
	}
}

var jsonTypes = []any{"object", "array", "number", "boolean", "string", "null", "integer"}
