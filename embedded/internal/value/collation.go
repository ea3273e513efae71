package value

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
)

// Collation is how values are compared. The zero value compares the bytes of strings, and the fields of documents by
// type and then by name.
type Collation struct {
	*collator
	byName bool
}

// ByName returns the collation with fields compared by name and then by type, as find of 5.0.0 does.
func (c Collation) ByName(when bool) Collation { return Collation{c.collator, when} }

type collator struct {
	spec      bson.D // all options, as listCollections shows them
	strength  int64
	caseLevel bool
	caseFirst string
	backwards bool
	shifted   bool
	spaces    bool // only spaces are shifted, not punctuation
	mu        sync.Mutex
	weights   *collate.Collator // of three levels
	buffer    collate.Buffer
}

// ParseCollation parses a collation document, which may be empty. The types of its fields have been checked.
func ParseCollation(d bson.D) (Collation, error) {
	if len(d) == 0 {
		return Collation{}, nil
	}
	c := &collator{spec: bson.D{}}
	var p fault.First
	option := func(key string, otherwise any, allowed ...any) any {
		v, given := Field(d, key)
		if n, whole := Int64(v); !given {
			v = otherwise
		} else if IsNumber(v) {
			p.Refuse(!whole, fault.BadValue, "Expected an integer: %s: %s", key, Text(v))
			v = int32(n)
		}
		p.Refuse(allowed != nil && !slices.Contains(allowed, v), fault.BadValue,
			"Enumeration value '%s' for field 'collation.%s' is not a valid value.", Text(v), key)
		c.spec = Append(c.spec, key, v)
		return v
	}
	locale, _ := option("locale", nil).(string)
	c.caseLevel, _ = option("caseLevel", false).(bool)
	c.caseFirst, _ = option("caseFirst", "off", "off", "upper", "lower").(string)
	c.strength, _ = Int64(option("strength", int32(3), int32(1), int32(2), int32(3), int32(4), int32(5)))
	numeric, _ := option("numericOrdering", false).(bool)
	c.shifted = option("alternate", "non-ignorable", "non-ignorable", "shifted") == "shifted"
	c.spaces = option("maxVariable", "punct", "punct", "space") == "space"
	option("normalization", false)
	c.backwards, _ = option("backwards", locale == "fr_CA").(bool)
	const icu = "57.1"
	c.spec = Append(c.spec, "version", icu)
	version, given := Field(d, "version")
	p.Refuse(given && version != icu, fault.IncompatibleCollationVersion,
		"Requested collation version %s but the only available collator version was %s. Requested collation spec: %s",
		Text(version), icu, Text(d))
	base, keywords, _ := strings.Cut(locale, "@")
	name, _, _ := strings.Cut(base, "_")
	p.Refuse(!slices.Contains(slices.Concat(ordered, unordered), name), fault.BadValue,
		"Field 'locale' is invalid in: %s", Text(d))
	p.Refuse(locale == "simple" && len(d) > 1, fault.BadValue,
		"If 'locale' is 'simple', no other fields should be present in: %s", Text(d))
	p.Refuse(c.backwards && c.strength == 1, fault.BadValue, "'backwards' is invalid with 'strength' of 1: %s", Text(d))
	refuse := func(when bool, option string) {
		p.Refuse(when, fault.NotImplemented, "collation with %s is not implemented by the embedded deployment", option)
	}
	refuse(!slices.Contains(ordered, name) || keywords != "" || strings.HasSuffix(base, "_POSIX"), "locale: "+locale)
	refuse(c.shifted && c.strength > 3, "strength: 4 or 5 and alternate: shifted")
	if p.Err != nil || locale == "simple" {
		return Collation{}, p.Err
	}
	var options []collate.Option
	if numeric {
		options = append(options, collate.Numeric)
	}
	c.weights = collate.New(language.Make(name), options...)
	return Collation{collator: c}, nil
}

// ordered are the languages whose order package collate has as ICU does: Japanese, and those in Latin script that were
// compared, letter by letter and with random words. unordered are the others that a server knows.
var (
	ordered = strings.Fields("simple af ca cs cy de en eo es fil fo fr fur ga ha id ig is it ja kl lb ln lt ms nl nn om pl " +
		"pt ro sk sl sv sw to yo zu")
	unordered = strings.Fields("sq am ar hy as az be bn bs bg my chr zh hr da dz et ee fi gl ka el gu haw he hi hu " +
		"smn kn kk km kok ko ky lkt lo lv dsb mk ml mt mr mn ne se nb or ps fa pa ru sr si ta te th bo tr uk " +
		"hsb ur ug uz vi wae yi yue wo")
)

// Spec returns the collation with all options, nil for the comparison of bytes.
func (c Collation) Spec() bson.D {
	if c.collator == nil {
		return nil
	}
	return c.spec
}

// Same reports whether two collations have the same options.
func (c Collation) Same(d Collation) bool { return Equal(c.Spec(), d.Spec()) }

// Compare orders two values under the collation.
func (c Collation) Compare(a, b any) int { return Compare(c.Fold(a), c.Fold(b)) }

// Key is the function Key under the collation.
func (c Collation) Key(v any) string { return Key(c.Fold(v)) }

// Fold replaces each string in a value by a key. The keys sort as the strings do.
func (c Collation) Fold(v any) any {
	if c == (Collation{}) {
		return v
	}
	switch x := v.(type) {
	case string:
		return c.key(x)
	case bson.Symbol:
		return c.key(string(x))
	case bson.D:
		out := make(bson.D, len(x))
		for i, e := range x {
			out[i] = bson.E{Key: e.Key, Value: c.Fold(e.Value)}
		}
		if c.byName {
			return byName(out)
		}
		return out
	case bson.A:
		out := make(bson.A, len(x))
		for i := range x {
			out[i] = c.Fold(x[i])
		}
		return out
	}
	return v
}

// Shown returns a value whose strings may be keys in a form for messages.
func (c Collation) Shown(v any) any {
	if s, ok := v.(string); ok && c.collator != nil {
		return "0x" + hex.EncodeToString([]byte(s))
	}
	return v
}

// longest is how much of a string is compared in the order of a collation. What follows is compared by its bytes.
const longest = 1 << 20

// key returns the weights of a string, level by level. A level ends with a zero.
func (c *collator) key(s string) string {
	if c == nil {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(s), longest)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	s, rest := s[:n], s[n:]
	// Package collate finds letters with several accents only if they are decomposed.
	if s = norm.NFD.String(s); c.shifted {
		s = c.unshifted(s)
	}
	primary, secondary, tertiary := c.levels(s)
	if c.backwards {
		slices.Reverse(secondary)
	}
	out := terminated(nil, primary)
	if c.strength >= 2 {
		out = terminated(out, secondary)
	}
	if c.caseLevel {
		for _, r := range s { // accents have no case
			letters, _, cased := c.levels(string(r))
			for range letters {
				out = append(out, 1+rankOfCase(cased[0], c.caseFirst == "upper"))
			}
		}
		out = append(out, 0)
	}
	if c.strength >= 3 {
		for _, t := range tertiary {
			if c.caseFirst != "off" && !c.caseLevel {
				t += 0x40 * rankOfCase(t, c.caseFirst == "upper")
			}
			out = append(out, t)
		}
		out = append(out, 0)
	}
	if c.strength == 5 {
		out = append(out, s...)
	}
	return string(out) + rest
}

// rankOfCase returns 0 or 1 for the tertiary weight of a lower or an upper case letter, or the opposite.
func rankOfCase(tertiary byte, upperFirst bool) byte {
	upper := tertiary >= 0x08 && tertiary <= 0x0C || tertiary == 0x1D
	if upper == upperFirst {
		return 0
	}
	return 1
}

func terminated(out []byte, weights []uint32) []byte {
	for _, w := range weights {
		out = binary.BigEndian.AppendUint32(out, w)
	}
	return append(out, 0, 0, 0, 0)
}

// levels returns the weights of a string, from a key of package collate: primary weights of two bytes, or of three if
// the first bit is set, two zeros, secondary weights of two bytes, two zeros, and tertiary weights of one byte.
func (c *collator) levels(s string) (primary, secondary []uint32, tertiary []byte) {
	c.buffer.Reset()
	key := c.weights.KeyFromString(&c.buffer, s)
	for key[0]|key[1] != 0 {
		w := uint32(key[0]&0x7F)<<8 | uint32(key[1])
		if key[0]&0x80 != 0 {
			w, key = w<<8|uint32(key[2]), key[1:]
		}
		primary, key = append(primary, w), key[2:]
	}
	for key = key[2:]; key[0]|key[1] != 0; key = key[2:] {
		secondary = append(secondary, uint32(key[0])<<8|uint32(key[1]))
	}
	return primary, secondary, slices.Clone(key[2:])
}

// unshifted removes the characters that alternate: shifted ignores, with the accents on them, from a decomposed string.
func (c *collator) unshifted(s string) string {
	removed := false
	return strings.Map(func(r rune) rune {
		primary, _, _ := c.levels(string(r))
		removed = unicode.IsSpace(r) || unicode.Is(unicode.Z, r) || !c.spaces && unicode.IsPunct(r) ||
			removed && len(primary) == 0
		if removed {
			return -1
		}
		return r
	}, s)
}
