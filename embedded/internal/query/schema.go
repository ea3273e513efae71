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

// keyword parses the argument of a keyword in a schema.
type keyword struct {
	name  string
	types []string // of the argument; nil: any
	parse func(p *parser, of bson.D, name string, arg any) rule
}

// keywords are the keywords in the order in which a server applies them. init fills the table, because some refer to
// it.
var keywords []keyword

// unsupported are keywords of JSON Schema that servers refuse.
var unsupported = []string{"$ref", "$schema", "default", "definitions", "format", "id"}

func init() {
	numbers := []string{"int", "long", "double", "decimal"}
	object, array, flag, text := []string{"object"}, []string{"array"}, []string{"bool"}, []string{"string"}
	keywords = []keyword{
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
		{"additionalItems", []string{"bool", "object"}, (*parser).additionalItems},
		{"properties", object, (*parser).properties}, {"patternProperties", object, (*parser).patternProperties},
		{"additionalProperties", []string{"bool", "object"}, (*parser).additionalProperties},
		{"required", array, (*parser).required},
		{"maxProperties", numbers, (*parser).length}, {"minProperties", numbers, (*parser).length},
		{"dependencies", object, (*parser).dependencies},
		{"type", []string{"string", "array"}, (*parser).bsonType},
		{"bsonType", []string{"string", "array"}, (*parser).bsonType},
	}
}

// schema parses a schema.
func (p *parser) schema(given any) *schema {
	d, ok := given.(bson.D)
	p.Refuse(!ok, fault.TypeMismatch, "$jsonSchema must be an object")
	s := &schema{}
	for _, e := range d {
		p.Refuse(slices.Contains(unsupported, e.Key), fault.FailedToParse,
			"$jsonSchema keyword '%s' is not currently supported", e.Key)
		p.Refuse(!slices.ContainsFunc(keywords, func(k keyword) bool { return k.name == e.Key }), fault.FailedToParse,
			"Unknown $jsonSchema keyword: %s", e.Key)
	}
	for _, k := range keywords {
		arg, has := value.Field(d, k.name)
		if !has {
			continue
		}
		wrong := k.types != nil && !slices.Contains(k.types, value.TypeName(arg))
		p.Refuse(wrong, fault.TypeMismatch, "$jsonSchema keyword '%s' must be %s", k.name,
			map[string]string{"object": "an object", "array": "an array",
				"bool": "a boolean", "string": "a string", "int": "a number"}[k.types[0]])
		switch {
		case p.Err != nil:
			return s
		case k.parse != nil:
			s.rules = append(s.rules, k.parse(p, d, k.name, arg))
		case k.name == "title" || k.name == "description":
			s.about = append(s.about, bson.E{Key: k.name, Value: arg})
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

// unmet returns why a value does not satisfy a keyword.
func unmet(of bson.D, name, reason string, rest ...bson.E) bson.D {
	specified := bson.D{{Key: name, Value: value.Get(of, name)}}
	if exclusive := map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[name]; value.Get(of,
		exclusive) != nil {
		specified = append(specified, bson.E{Key: exclusive, Value: value.Get(of, exclusive)})
	}
	out := bson.D{{Key: "operatorName", Value: name}, {Key: "specifiedAs", Value: specified}}
	return append(value.AddIf(out, reason != "", "reason", reason), rest...)
}

func considered(v any) bson.E { return bson.E{Key: "consideredValue", Value: v} }

// operator returns the details of a keyword that contains schemas.
func operator(name string, rest ...bson.E) bson.D {
	return append(bson.D{{Key: "operatorName", Value: name}}, rest...)
}

// unsatisfied returns the schemas of a list that a value does not satisfy, and the positions of the others.
func unsatisfied(list []*schema, v any) (failed, matching bson.A) {
	for i, s := range list {
		if why := s.failures(v); why != nil {
			failed = append(failed, append(append(bson.D{{Key: "index", Value: int32(i)}}, s.about...),
				bson.E{Key: "details", Value: why}))
		} else {
			matching = append(matching, int32(i))
		}
	}
	return failed, matching
}

func (p *parser) allOf(_ bson.D, name string, arg any) rule {
	list := p.schemas(arg)
	return func(v any) bson.D {
		if failed, _ := unsatisfied(list, v); failed != nil {
			return operator(name, bson.E{Key: "schemasNotSatisfied", Value: failed})
		}
		return nil
	}
}

func (p *parser) anyOf(_ bson.D, name string, arg any) rule {
	list := p.schemas(arg)
	return func(v any) bson.D {
		if failed, matching := unsatisfied(list, v); matching == nil {
			return operator(name, bson.E{Key: "schemasNotSatisfied", Value: failed})
		}
		return nil
	}
}

func (p *parser) oneOf(of bson.D, name string, arg any) rule {
	list, none := p.schemas(arg), p.anyOf(of, name, arg)
	return func(v any) bson.D {
		if _, matching := unsatisfied(list, v); len(matching) > 1 {
			return operator(name, bson.E{Key: "reason", Value: "more than one subschema matched"},
				bson.E{Key: "matchingSchemaIndexes", Value: matching})
		}
		return none(v)
	}
}

func (p *parser) notSchema(_ bson.D, name string, arg any) rule {
	s := p.schema(arg)
	return func(v any) bson.D {
		if s.failures(v) != nil {
			return nil
		}
		return operator(name, bson.E{Key: "reason", Value: "child expression matched"})
	}
}

func (p *parser) enum(of bson.D, name string, arg any) rule {
	list := arg.(bson.A)
	p.Refuse(len(list) == 0, fault.FailedToParse, "$jsonSchema keyword 'enum' cannot be an empty array")
	return func(v any) bson.D {
		if slices.ContainsFunc(list, func(x any) bool { return value.Equal(v, x) }) {
			return nil
		}
		return unmet(of, name, "value was not found in enum", considered(v))
	}
}

func (p *parser) limit(of bson.D, name string, arg any) rule {
	exclusive := value.Truthy(value.Get(of,
		map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[name]))
	return func(v any) bson.D {
		n := value.Compare(v, arg)
		if name == "minimum" {
			n = -n
		}
		if !value.IsNumber(v) || n < 0 || n == 0 && !exclusive {
			return nil
		}
		return unmet(of, name, "comparison failed", considered(v))
	}
}

// length is a bound of the length of a string, an array or a document.
func (p *parser) length(of bson.D, name string, arg any) rule {
	bound, whole := value.Int64(arg)
	p.Refuse(!whole || bound < 0, fault.FailedToParse, "$jsonSchema keyword '%s' must be a non-negative integer", name)
	return func(v any) bson.D {
		n, reason, applies := 0, "specified string length was not satisfied", false
		switch x := v.(type) {
		case string:
			n, applies = utf8.RuneCountInString(x), name[3:] == "Length"
		case bson.A:
			n, applies, reason = len(x), name[3:] == "Items", "array did not match specified length"
		case bson.D:
			n, applies, reason = len(x), name[3:] == "Properties", "specified number of properties was not satisfied"
		}
		switch {
		case !applies, name[:3] == "max" && int64(n) <= bound, name[:3] == "min" && int64(n) >= bound:
			return nil
		case name[3:] == "Properties":
			return unmet(of, name, reason, bson.E{Key: "numberOfProperties", Value: int32(n)})
		}
		return unmet(of, name, reason, considered(v))
	}
}

func (p *parser) regular(source string) *pattern.Pattern {
	re, err := pattern.Compile(source, "")
	p.Refuse(err != nil, 51091, "Regular expression is invalid: %v", err)
	return re
}

func (p *parser) pattern(of bson.D, name string, arg any) rule {
	re := p.regular(arg.(string))
	return func(v any) bson.D {
		if text, ok := v.(string); !ok || re.Matches(text) {
			return nil
		}
		return unmet(of, name, "regular expression did not match", considered(v))
	}
}

func (p *parser) multipleOf(of bson.D, name string, arg any) rule {
	divisor := value.Float(arg)
	p.Refuse(divisor <= 0, fault.FailedToParse, "$jsonSchema keyword 'multipleOf' must have a positive value")
	return func(v any) bson.D {
		if !value.IsNumber(v) || math.Mod(value.Float(v), divisor) == 0 {
			return nil
		}
		return unmet(of, name, "considered value is not a multiple of the specified value", considered(v))
	}
}

func (p *parser) uniqueItems(of bson.D, name string, arg any) rule {
	return func(v any) bson.D {
		seen := map[string]bool{}
		list, _ := v.(bson.A)
		for _, item := range list {
			if key := value.Key(item); seen[key] && arg == true {
				return unmet(of, name, "found a duplicate item", considered(v), bson.E{Key: "duplicatedValue", Value: item})
			} else {
				seen[key] = true
			}
		}
		return nil
	}
}

// unfit returns the details of the first item, from one on, that does not satisfy a schema.
func unfit(name, reason string, s *schema, v any, from int) bson.D {
	list, _ := v.(bson.A)
	for i := from; i < len(list); i++ {
		if why := s.failures(list[i]); why != nil {
			return operator(name, bson.E{Key: "reason", Value: reason}, bson.E{Key: "itemIndex", Value: int32(i)},
				bson.E{Key: "details", Value: why})
		}
	}
	return nil
}

func (p *parser) items(_ bson.D, name string, arg any) rule {
	if _, isDocument := arg.(bson.D); isDocument {
		s := p.schema(arg)
		return func(v any) bson.D { return unfit(name, "At least one item did not match the sub-schema", s, v, 0) }
	}
	schemas := p.schemas(arg)
	return func(v any) bson.D {
		var details bson.A
		list, _ := v.(bson.A)
		for i := range min(len(list), len(schemas)) {
			if why := schemas[i].failures(list[i]); why != nil {
				details = append(details, bson.D{{Key: "itemIndex", Value: int32(i)}, {Key: "details", Value: why}})
			}
		}
		if details == nil {
			return nil
		}
		return operator(name, bson.E{Key: "details", Value: details})
	}
}

func (p *parser) additionalItems(of bson.D, name string, arg any) rule {
	tuple, isTuple := value.Get(of, "items").(bson.A)
	if _, isDocument := arg.(bson.D); isDocument {
		s := p.schema(arg)
		return func(v any) bson.D {
			if !isTuple {
				return nil
			}
			return unfit(name, "At least one additional item did not match the sub-schema", s, v, len(tuple))
		}
	}
	return func(v any) bson.D {
		if list, _ := v.(bson.A); isTuple && arg == false && len(list) > len(tuple) {
			return unmet(of, name, "found additional items", bson.E{Key: "additionalItems", Value: list[len(tuple):]})
		}
		return nil
	}
}

func (p *parser) properties(_ bson.D, name string, arg any) rule {
	schemas := map[string]*schema{}
	for _, e := range arg.(bson.D) {
		schemas[e.Key] = p.schema(e.Value)
	}
	return func(v any) bson.D {
		var failed bson.A
		doc, _ := v.(bson.D)
		for _, e := range arg.(bson.D) {
			given, has := value.Field(doc, e.Key)
			if !has {
				continue
			}
			s := schemas[e.Key]
			if why := s.failures(given); why != nil {
				one := append(bson.D{{Key: "propertyName", Value: e.Key}}, s.about...)
				failed = append(failed, append(one, bson.E{Key: "details", Value: why}))
			}
		}
		if failed == nil {
			return nil
		}
		return operator(name, bson.E{Key: "propertiesNotSatisfied", Value: failed})
	}
}

// byPattern are the patterns of patternProperties with their schemas.
type byPattern struct {
	source string
	names  *pattern.Pattern
	schema *schema
}

func (p *parser) byPattern(arg any) (out []byPattern) {
	patterns, _ := arg.(bson.D)
	for _, e := range patterns {
		out = append(out, byPattern{e.Key, p.regular(e.Key), p.schema(e.Value)})
	}
	return out
}

func (p *parser) patternProperties(_ bson.D, name string, arg any) rule {
	patterns := p.byPattern(arg)
	return func(v any) bson.D {
		var failed bson.A
		doc, _ := v.(bson.D)
		for _, of := range patterns {
			for _, e := range doc {
				if !of.names.Matches(e.Key) {
					continue
				}
				if why := of.schema.failures(e.Value); why != nil {
					failed = append(failed, bson.D{{Key: "propertyName", Value: e.Key}, {Key: "regexMatched", Value: of.source},
						{Key: "details", Value: why}})
				}
			}
		}
		if failed == nil {
			return nil
		}
		return operator(name, bson.E{Key: "details", Value: failed})
	}
}

func (p *parser) additionalProperties(of bson.D, name string, arg any) rule {
	patterns, named := p.byPattern(value.Get(of, "patternProperties")), value.As[bson.D](of, "properties")
	var s *schema
	if _, isDocument := arg.(bson.D); isDocument {
		s = p.schema(arg)
	}
	return func(v any) bson.D {
		var extra bson.A
		doc, _ := v.(bson.D)
		for _, e := range doc {
			_, isNamed := value.Field(named, e.Key)
			if isNamed || slices.ContainsFunc(patterns, func(b byPattern) bool { return b.names.Matches(e.Key) }) {
				continue
			}
			if s == nil {
				extra = append(extra, e.Key)
			} else if why := s.failures(e.Value); why != nil {
				return operator(name, bson.E{Key: "reason", Value: "at least one additional property did not match the subschema"},
					bson.E{Key: "failingProperty", Value: e.Key}, bson.E{Key: "details", Value: why})
			}
		}
		if extra == nil || arg != false {
			return nil
		}
		return unmet(of, name, "", bson.E{Key: "additionalProperties", Value: extra})
	}
}

// absent returns the names of a list that a document lacks.
func absent(list bson.A, doc bson.D) (out bson.A) {
	for _, name := range list {
		text, _ := name.(string)
		if _, has := value.Field(doc, text); !has {
			out = append(out, name)
		}
	}
	return out
}

func (p *parser) required(of bson.D, name string, arg any) rule {
	list := arg.(bson.A)
	p.Refuse(len(list) == 0, fault.FailedToParse, "$jsonSchema keyword 'required' cannot be an empty array")
	for _, item := range list {
		_, isText := item.(string)
		p.Refuse(!isText, fault.TypeMismatch,
			"$jsonSchema keyword 'required' must be an array of strings, but found an element of type: %s", value.TypeName(item))
	}
	return func(v any) bson.D {
		doc, isDocument := v.(bson.D)
		if missing := absent(list, doc); isDocument && missing != nil {
			return unmet(of, name, "", bson.E{Key: "missingProperties", Value: missing})
		}
		return nil
	}
}

// dependencies requires further properties, or a schema, of documents with a property.
func (p *parser) dependencies(_ bson.D, name string, arg any) rule {
	schemas := map[string]*schema{}
	for _, e := range arg.(bson.D) {
		if _, isDocument := e.Value.(bson.D); isDocument {
			schemas[e.Key] = p.schema(e.Value)
		}
	}
	return func(v any) bson.D {
		var failed bson.A
		doc, _ := v.(bson.D)
		for _, e := range arg.(bson.D) {
			if _, has := value.Field(doc, e.Key); !has {
				continue
			}
			list, _ := e.Value.(bson.A)
			if missing := absent(list, doc); missing != nil {
				failed = append(failed, bson.D{{Key: "conditionalProperty", Value: e.Key},
					{Key: "missingProperties", Value: missing}})
			}
			if s := schemas[e.Key]; s != nil {
				if why := s.failures(doc); why != nil {
					failed = append(failed, bson.D{{Key: "conditionalProperty", Value: e.Key}, {Key: "details", Value: why}})
				}
			}
		}
		if failed == nil {
			return nil
		}
		return operator(name, bson.E{Key: "failingDependencies", Value: failed})
	}
}

// bsonType is bsonType, or type with names of JSON.
func (p *parser) bsonType(of bson.D, name string, arg any) rule {
	names, isList := arg.(bson.A)
	if !isList {
		names = bson.A{arg}
	}
	names = slices.Clone(names)
	for i, n := range names {
		p.Refuse(name == "type" && n == "integer", fault.FailedToParse,
			"$jsonSchema type 'integer' is not currently supported.")
		p.Refuse(name == "type" && !slices.Contains(jsonTypes, n), fault.BadValue, "Unknown type name alias: %v", n)
		if name == "type" && n == "boolean" {
			names[i] = "bool"
		}
	}
	matches := p.types(names)
	return func(v any) bson.D {
		if matches(v) {
			return nil
		}
		return unmet(of, name, "type did not match", considered(v), bson.E{Key: "consideredType", Value: value.TypeName(v)})
	}
}

var jsonTypes = []any{"object", "array", "number", "boolean", "string", "null", "integer"}
