package commands

import (
	_ "embed" // for fields.txt
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

//go:embed fields.txt
var fieldsText string

// shape describes the fields of a command or of a document in one. See fields.txt.
type shape struct {
	fields   map[string]field
	required []string
	open     bool   // other fields are ignored
	since    int    // wire version before which nothing is checked
	title    string // the name of the command in messages since 5.0; "" if it is the usual one
	early    int    // wire version since which a server parses the command before it does anything else; 0 means never
	routed   bool   // a mongos does so, too
}

type field struct {
	kind        string // of fieldTypes, or a shape
	list        bool
	plain       bool     // the name of the shape is its name in messages
	later       bool     // not implemented
	loose       bool     // not in version 1 of the stable API
	since       int      // wire version
	least, most *int64   // of a number
	options     []string // of a string
}

// shapes are parsed on first use, since most commands of utr start no server.
var shapes = sync.OnceValue(func() map[string]*shape { return parseShapes(fieldsText) })

func parseShapes(text string) map[string]*shape {
	out := map[string]*shape{}
	for name, words := range fault.Table(text) {
		s := out[name]
		if s == nil {
			s = &shape{fields: map[string]field{}}
			out[name] = s
		}
		for _, word := range words {
			switch word[0] {
			case '@':
				s.since, _ = strconv.Atoi(word[1:])
			case '^':
				word, s.routed = strings.CutPrefix(word[1:], "^")
				s.early, _ = strconv.Atoi(word)
			case '*':
				s.open = true
			case '=':
				s.title = word[1:]
			default:
				s.add(word)
			}
		}
	}
	return out
}

// add adds a field in the form of fields.txt.
func (s *shape) add(text string) {
	name, kind, _ := strings.Cut(text, ":")
	kind, wire, _ := strings.Cut(kind, "@")
	f := field{}
	f.since, _ = strconv.Atoi(wire)
	kind, f.loose = strings.CutSuffix(kind, "~")
	kind, f.later = strings.CutSuffix(kind, "?")
	kind, required := strings.CutSuffix(kind, "!")
	if required {
		s.required = append(s.required, name)
	}
	f.list = strings.HasPrefix(kind, "[")
	kind, f.plain = strings.CutPrefix(strings.Trim(kind, "[]{}"), "=")
	kind, f.most = bound(kind, "<=")
	f.kind, f.least = bound(kind, ">=")
	if strings.Contains(f.kind, "|") {
		f.kind, f.options = "string", strings.Split(f.kind, "|")
	}
	s.fields[name] = f
}

// bound separates the kind of a number from its bound after an operator. Without a bound it returns nil.
func bound(kind, operator string) (string, *int64) {
	kind, digits, ok := strings.Cut(kind, operator)
	if !ok {
		return kind, nil
	}
	n, _ := strconv.ParseInt(digits, 10, 64)
	return kind, &n
}

// fieldTypes are the types of fields, with the types of values that they accept, as messages name them. A flag of find
// accepts what a bool accepts before 5.0.
var fieldTypes = map[string][]string{
	"string": {"string"}, "object": {"object"}, "array": {"array"}, "timestamp": {"timestamp"}, "date": {"date"},
	"int": {"int"}, "long": {"long"}, "number": {"long", "int", "decimal", "double"}, "objectId": {"objectId"},
	"boolean": {"bool"}, "flag": {"bool"}, "ignored": {"bool"}, "bool": {"bool", "long", "int", "decimal", "double"},
	"owned": {"object"}, "hint": {"string", "object"}, "name": {"string", "object"}, "uuid": {"binData"},
	"digest": {"binData"}, "quorum": {"long", "int", "decimal", "double", "string"},
	"w": {"string", "int", "decimal", "double", "long"},
}

// subtypes are the names of binary subtypes in messages.
var subtypes = map[byte]string{0: "general", 1: "function", 2: "byte array (deprecated)", 3: "UUID(deprecated)",
	5: "MD5", 6: "encrypt"}

// Generic reports whether a field is one of those that every command accepts.
func Generic(name string) bool { _, known := shapes()["generic"].fields[name]; return known }

// oldRefusals are the errors for unknown fields before 5.0, where they differ.
var oldRefusals = map[string]fault.Error{
	"aggregate":     {Code: fault.FailedToParse, Message: "unrecognized field '%s'"},
	"findAndModify": {Code: fault.IDLUnknownField, Message: "BSON field '%s' is an unknown field."},
	"collMod.index": {Code: fault.InvalidOptions, Message: "Unrecognized field '%s' in 'index' option"},
}

// CheckDocument returns the first error that a server finds in the fields of a command, or of a document in one, in its
// order: unknown fields, wrong types and duplicates as they come, and then missing fields.
func CheckDocument(req *Request, name string, doc bson.D) error {
	s, of := shapes()[name], name
	if wire(req) < s.since {
		return nil
	}
	if s.title != "" && req.Server.Has.IDL {
		of = s.title
	}
	c := checker{req: req, has: &req.Server.Has, wire: wire(req),
		strict: req.Server.Has.StableFields && value.FlagAt(req.Body, "apiStrict")}
	c.document(name, of, doc, name == req.Row.Name)
	return c.Err
}

// ChecksEarly reports whether a server checks the fields of a command before fail points, sessions and the role.
func ChecksEarly(req *Request) bool {
	s := shapes()[req.Row.Name]
	return s != nil && s.early != 0 && wire(req) >= s.early && (!mongos(req) || s.routed)
}

// CheckFields checks the fields of a command, if they are described, and a server checks them early or not early.
func CheckFields(req *Request, early bool) error {
	name := req.Row.Name
	if name == "isMaster" {
		name = "hello"
	}
	if shapes()[name] == nil || ChecksEarly(req) != early {
		return nil
	}
	doc := value.Must(req.Body)
	doc[0].Key = name
	return CheckDocument(req, name, doc)
}

// given returns the fields of a command that are not null. A server ignores null except in fields of any type.
func given(name string, doc bson.D) bson.D {
	return slices.DeleteFunc(doc, func(e bson.E) bool {
		f, known := shapes()[name].fields[e.Key]
		return e.Value == nil && known && f.kind != "any" && e.Key != name
	})
}

type checker struct {
	req    *Request
	has    *version.Features
	wire   int
	strict bool // apiStrict
	fault.First
}

func (c *checker) document(name, of string, doc bson.D, command bool) {
	s := shapes()[name]
	for i, e := range doc {
		f, known := s.fields[e.Key]
		if slices.ContainsFunc(doc[:i], func(earlier bson.E) bool { return earlier.Key == e.Key }) {
			c.Fail(fault.IDLDuplicateField, "BSON field '%s.%s' is a duplicate field", of, e.Key)
		}
		switch {
		case known && c.wire >= f.since:
			c.known(f, of, e)
		case s.open, command && i == 0, command && !known && Generic(e.Key) &&
			c.wire >= shapes()["generic"].fields[e.Key].since:
		default:
			c.unknown(name, of, e.Key)
		}
		c.Refuse(command && e.Key == "comment" && (name == "find" || name == "aggregate") && c.has.CommentText &&
			!value.Is[string](e.Value), fault.FailedToParse, "\"comment\" had the wrong type. Expected string, found %s", value.TypeName(e.Value))
	}
	for _, key := range s.required {
		v, given := value.Field(doc, key)
		c.Refuse(v == nil && !(given && s.fields[key].kind == "any"), fault.IDLFailedToParse,
			"BSON field '%s.%s' is missing but a required field", of, key)
	}
}

// known checks a field that the version has.
func (c *checker) known(f field, of string, e bson.E) {
	c.field(f, of, e)
	c.Refuse(f.loose && c.strict, fault.APIStrictError, "BSON field '%s.%s' is not allowed with apiStrict:true.", of, e.Key)
	c.Refuse(f.later && value.Truthy(e.Value), fault.NotImplemented,
		"%s.%s is not implemented by the embedded deployment", of, e.Key)
}

func (c *checker) unknown(name, of, key string) {
	if old, ok := oldRefusals[name]; ok && !c.has.IDL {
		c.Fail(old.Code, old.Message, key)
	}
	c.Refuse(name == "find" && !c.has.IDL, fault.FailedToParse, "Failed to parse: %s. Unrecognized field '%s'.",
		value.Text(value.Must(c.req.Body)), key)
	c.Fail(fault.IDLUnknownField, "BSON field '%s.%s' is an unknown field.", of, key)
}

// field checks the type of a field. Null is like a missing field, except for flags.
func (c *checker) field(f field, of string, e bson.E) {
	if f.list && e.Value == nil && (f.plain || c.has.NullLists) {
		c.Fail(fault.NotAnObject, "invalid parameter: expected an object (%s)", e.Key)
	}
	if f.kind == "any" || e.Value == nil && !c.takesNull(f.kind) {
		return
	}
	path := of + "." + e.Key
	if !f.list {
		c.value(f, path, e)
		return
	}
	list, ok := e.Value.(bson.A)
	if !ok {
		c.wrong(path, e, "array")
	}
	f.list = false
	for i, v := range list {
		e.Value = v
		c.item(f, path, "."+strconv.Itoa(i), e)
	}
}

// item checks an element of an array.
func (c *checker) item(f field, path, position string, e bson.E) {
	switch isDocument := value.Is[bson.D](e.Value); {
	case isDocument && f.kind == "object", e.Value == nil && f.plain:
	case shapes()[f.kind] == nil:
		c.value(f, path+position, e)
	case isDocument:
		c.value(f, path, e)
	case f.plain:
		c.wrong(f.kind+position, e, "object")
	default:
		c.wrong(path+position, e, "object")
	}
}

// takesNull reports whether null is a value of the wrong type, not like a missing field.
func (c *checker) takesNull(kind string) bool {
	return kind == "flag" || kind == "ignored" || kind == "collation" && c.ownsCollation() ||
		slices.Contains([]string{"owned", "hint", "collection"}, kind) && c.has.IDL
}

// ownsCollation reports whether the collation of the command has the message of a field that the server copies.
func (c *checker) ownsCollation() bool { return c.req.Row.Name == "find" && c.has.IDL }

func (c *checker) value(f field, path string, e bson.E) {
	if shapes()[f.kind] == nil {
		c.typed(f.kind, path, e)
		c.within(f, path, e)
		return
	}
	doc, ok := e.Value.(bson.D)
	switch {
	case !ok && f.kind == "collation" && c.ownsCollation():
		c.typed("owned", path, e)
	case !ok:
		c.wrong(path, e, "object")
	case len(doc) == 0 && f.kind == "collation" && f.plain: // like none
		return
	}
	if f.plain {
		path = f.kind
	}
	if c.wire >= shapes()[f.kind].since {
		c.document(f.kind, path, doc, false)
	}
}

func (c *checker) typed(kind, path string, e bson.E) {
	types := fieldTypes[kind]
	if kind == "collection" {
		b, _ := e.Value.(bson.Binary)
		c.Refuse(!value.Is[string](e.Value) && b.Subtype != bson.TypeBinaryUUID && c.has.IDL, fault.BadValue,
			"collection name has invalid type %s", value.TypeName(e.Value))
		return
	}
	if kind == "flag" && !c.has.IDL {
		types = fieldTypes["bool"]
	}
	if kind == "w" && c.has.TagsAsW {
		types = append(slices.Clip(types), "object") // tags
	}
	if found := value.TypeName(e.Value); !slices.Contains(types, found) {
		c.Refuse(kind == "hint" && c.has.IDL, fault.FailedToParse, "Hint must be a string or an object")
		c.Refuse(kind == "hint", fault.FailedToParse, "Failed to parse: hint must be a string or an object")
		// sic
		c.Refuse((kind == "ignored" || kind == "owned") && c.has.IDL, fault.TypeMismatch,
			"Expected field %sto be of type object", e.Key)
		c.Refuse(kind == "flag" && c.has.IDL, fault.TypeMismatch,
			"Field '%s' should be a boolean value, but found: %s", e.Key, found)
		c.wrong(path, e, types...)
	}
	b, _ := e.Value.(bson.Binary)
	if b.Data == nil {
		return
	}
	c.Refuse(kind == "uuid" && b.Subtype != bson.TypeBinaryUUID, fault.TypeMismatch,
		"BSON field '%s' is the wrong bindData type '%s', expected type 'UUID'", path, subtypes[b.Subtype])
	c.Refuse(kind == "uuid" && len(b.Data) != 16, fault.InvalidUUID,
		"uuid must be a 16-byte binary field with UUID (4) subtype")
	c.Refuse(kind == "digest" && len(b.Data) != 32, fault.UnsupportedFormat, "Unsupported SHA256Block hash length: %d",
		len(b.Data))
}

// within checks the bounds of a number and the options of a string.
func (c *checker) within(f field, path string, e bson.E) {
	n := math.Trunc(value.Float(e.Value))
	if f.least != nil && n < float64(*f.least) {
		c.Refuse(c.req.Row.Name == "find" && !c.has.IDL && *f.least == 0, fault.BadValue,
			"%s value must be non-negative, but received: %.0f", strings.ToUpper(e.Key[:1])+e.Key[1:], n)
		c.Fail(fault.ValueTooSmall, "BSON field '%s' value must be >= %d, actual value '%.0f'", e.Key, *f.least, n)
	}
	if f.most != nil && n > float64(*f.most) {
		c.Fail(fault.ValueTooSmall, "BSON field '%s' value must be <= %d, actual value '%.0f'", e.Key, *f.most, n)
	}
	text, _ := e.Value.(string)
	c.Refuse(f.options != nil && !slices.Contains(f.options, text), fault.BadValue,
		"Enumeration value '%s' for field '%s' is not a valid value.", text, path)
}

func (c *checker) wrong(path string, e bson.E, types ...string) {
	found := value.TypeName(e.Value)
	switch old := c.req.Row.Name == "find" && !c.has.IDL; {
	case old && types[0] == "long":
		c.Fail(fault.FailedToParse, "Failed to parse: %s. '%s' field must be numeric.",
			value.Text(value.Must(c.req.Body)), e.Key)
	case old && len(types) == 1:
		c.Fail(fault.FailedToParse, "Failed to parse: %s: %s. '%s' field must be of BSON type %s.", e.Key,
			value.Text(e.Value), e.Key, types[0])
	case len(types) == 1:
		c.Fail(fault.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", path, found, types[0])
	}
	c.Fail(fault.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected types '[%s']", path, found,
		strings.Join(types, ", "))
}
