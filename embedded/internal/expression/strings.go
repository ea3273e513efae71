package expression

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/pattern"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

func concat(e *Env, v []any) any {
	parts, ok := allOf[string](e, v, 16702, "$concat only supports strings, not %s")
	for _, s := range parts {
		e.count(s)
	}
	if !ok || e.err != nil {
		return nil
	}
	return strings.Join(parts, "")
}

// text converts a value to a string, as functions of strings do.
func text(e *Env, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int32, int64, float64, bson.Decimal128:
		return numberText(v)
	case bson.DateTime:
		return dateText(v)
	case bson.Symbol:
		return string(v)
	case bson.Timestamp:
		return value.Text(v)
	}
	if !value.IsNull(v) {
		e.fail(16007, "can't convert from BSON type %s to String", value.TypeName(v))
	}
	return ""
}

func numberText(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func dateText(d bson.DateTime) string { return d.Time().UTC().Format("2006-01-02T15:04:05.000Z") }

// lower and upper change only ASCII letters, as the server does.
func lower(s string) string { return letters(s, 'A', 'a') }
func upper(s string) string { return letters(s, 'a', 'A') }

// letters replaces each of the 26 letters from old by the letter at the same place from replacement.
func letters(s string, old, replacement rune) string {
	return strings.Map(func(r rune) rune {
		if r >= old && r < old+26 {
			return r - old + replacement
		}
		return r
	}, s)
}

func strcasecmp(e *Env, v []any) any {
	return int32(strings.Compare(upper(text(e, v[0])), upper(text(e, v[1]))))
}

func bytes(_ *Env, s string) any      { return int32(len(s)) }
func codePoints(_ *Env, s string) any { return int32(utf8.RuneCountInString(s)) }

func split(e *Env, v []any) any {
	s, ok := v[0].(string)
	sep, sepOK := v[1].(string)
	switch {
	case anyNull(v):
		return nil
	case !ok:
		return e.fail(40085, "$split requires an expression that evaluates to a string as a first argument, found: %s",
			value.TypeName(v[0]))
	case !sepOK:
		return e.fail(40086, "$split requires an expression that evaluates to a string as a second argument, found: %s",
			value.TypeName(v[1]))
	case sep == "":
		return e.fail(40087, "$split requires a non-empty separator")
	}
	out := bson.A{}
	for _, part := range strings.Split(s, sep) {
		out = append(out, part)
	}
	return e.count(out)
}

func indexOf(e *Env, name string, v []any, points bool) any {
	s, ok := v[0].(string)
	token, tokenOK := v[1].(string)
	code := int32(40091)
	if points {
		code = 40093
	}
	switch {
	case value.IsNull(v[0]):
		return nil
	case !ok:
		return e.fail(code, "%s requires a string as the first argument, found: %s", name, value.TypeName(v[0]))
	case !tokenOK:
		return e.fail(code+1, "%s requires a string as the second argument, found: %s", name, value.TypeName(v[1]))
	}
	list := runes(s, points)
	from, to, ok := e.bounds(name, v[2:], len(list))
	if !ok {
		return nil
	}
	if from <= to {
		part := string(list[from:to])
		if at := strings.Index(part, string(runes(token, points))); at >= 0 {
			return int32(from + utf8.RuneCountInString(part[:at]))
		}
	}
	return int32(-1)
}

// runes returns the code points of a string, or its bytes.
func runes(s string, points bool) (out []rune) {
	if points {
		return []rune(s)
	}
	for _, b := range []byte(s) {
		out = append(out, rune(b))
	}
	return out
}

func substring(e *Env, name string, v []any, points bool) any {
	s := text(e, v[0])
	if points {
		e.whole(v[1:], 34450, name+": %s must be a numeric type (is BSON type %s)",
			name+": %s cannot be represented as a 32-bit integral value: %s", "starting index", "length")
	}
	from, _ := value.Int64(v[1])
	count, _ := value.Int64(v[2])
	switch {
	case e.err != nil:
		return nil
	case !value.IsNumber(v[1]):
		return e.fail(16034, "%s: starting index must be a numeric type (is BSON type %s)", name, value.TypeName(v[1]))
	case !value.IsNumber(v[2]):
		return e.fail(16035, "%s: length must be a numeric type (is BSON type %s)", name, value.TypeName(v[2]))
	case points && count < 0:
		return e.fail(34454, "%s: length must be a nonnegative integer.", name)
	case points && from < 0:
		return e.fail(34455, "%s: the starting index must be nonnegative integer.", name)
	case from < 0:
		return e.fail(50752, "%s: starting index must be non-negative (got: %d)", name, from)
	}
	if points {
		list := []rune(s)
		from = min(from, int64(len(list)))
		return string(list[from : from+min(count, int64(len(list))-from)])
	}
	from = min(from, int64(len(s)))
	if count < 0 {
		count = int64(len(s))
	}
	end := from + min(count, int64(len(s))-from)
	inside := func(i int64) bool { return i < int64(len(s)) && !utf8.RuneStart(s[i]) }
	if inside(from) || inside(end) {
		return e.fail(28656, "%s:  Invalid range, starting index is a UTF-8 continuation byte.", name)
	}
	return s[from:end]
}

const whitespace = "\x00\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

// trimmer is $trim, $ltrim or $rtrim.
func trimmer(name string, trim func(s, cutset string) string) func(p *parser, arg any) Expr {
	return named(name, 50696, 50694, 50695, func(e *Env, args []Expr) any {
		v, set := args[0](e), e.or(args[1], whitespace)
		s, ok := v.(string)
		cut, cutOK := set.(string)
		switch {
		case value.IsNull(v), value.IsNull(set):
			return nil
		case !ok:
			return e.fail(50699, "%s requires its input to be a string, got %s (of type %s) instead.", name, value.Text(v),
				value.TypeName(v))
		case !cutOK:
			return e.fail(50700, "%s requires 'chars' to be a string, got %s (of type %s) instead.", name, value.Text(set),
				value.TypeName(set))
		}
		return trim(s, cut)
	}, "input", "chars?")
}

// replacer is $replaceOne or $replaceAll.
func replacer(name string, n int) func(p *parser, arg any) Expr {
	names := []string{"input", "find", "replacement"}
	return named(name, 51751, 51750, 0, of(func(e *Env, v []any) any {
		for i, x := range v {
			if !value.Is[string](x) && !value.IsNull(x) {
				return e.fail(51746-int32(i), "%s requires that '%s' be a string, found: %s", name, names[i], value.Text(x))
			}
		}
		if anyNull(v) {
			return nil
		}
		return strings.Replace(v[0].(string), v[1].(string), v[2].(string), n)
	}), names...)
}

// regexes is $regexMatch, $regexFind or $regexFindAll. result returns the value of up to limit matches. Without a
// string or a pattern, nothing matches.
func regexes(name string, limit int, result func(found bson.A) any) func(p *parser, arg any) Expr {
	return named(name, 51103, 31024, 31022, func(e *Env, args []Expr) any {
		in, re := args[0](e), args[1](e)
		flags, _ := e.or(args[2], "").(string)
		source, isText := re.(string)
		if r, ok := re.(bson.Regex); ok {
			source, flags, isText = r.Pattern, flags+r.Options, true
		}
		s, ok := in.(string)
		switch {
		case !ok && !value.IsNull(in):
			return e.fail(51104, "%s needs 'input' to be of type string", name)
		case !isText && !value.IsNull(re):
			return e.fail(51105, "%s needs 'regex' to be of type string or regex", name)
		case value.IsNull(in) || value.IsNull(re):
			return result(bson.A{})
		}
		compiled, err := pattern.Compile(source, flags)
		if err != nil {
			return e.fail(51111, "Invalid Regex in %s: %v", name, err)
		}
		matches, err := compiled.Find(s, limit)
		if err != nil {
			return e.fail(51156, "Error occurred while executing the regular expression in %s: %v", name, err)
		}
		return e.count(result(e.described(s, matches)))
	}, "input", "regex", "options?")
}

// described returns matches in a string as documents.
func (e *Env) described(s string, matches [][]int) bson.A {
	found := bson.A{}
	for _, m := range matches {
		if e.done() {
			break
		}
		captures := bson.A{}
		for i := 2; i < len(m); i += 2 {
			if m[i] < 0 {
				captures = append(captures, nil)
			} else {
				captures = append(captures, s[m[i]:m[i+1]])
			}
		}
		at := int32(utf8.RuneCountInString(s[:m[0]]))
		found = append(found, value.Doc("match", s[m[0]:m[1]], "idx", at, "captures", captures))
	}
	return found
}
