package matchers

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The naive twin: the pseudo-code of "Evaluating Matches" on Go values, with
// numbers as rationals, and no messages. It shares nothing with the matcher.
// Expected values are Extended JSON decoded by package bson. A fault is a
// panic of type naiveFault.
type naiveFault string

// missing is a value that is not there.
type missing struct{}

func naive(expected, actual any, root, rootItems, element bool) bool {
	if d, ok := expected.(bson.D); ok {
		if len(d) == 1 && strings.HasPrefix(d[0].Key, "$$") {
			return naiveOperator(d[0].Key, d[0].Value, actual, root, rootItems, element)
		}
		naiveCheck(d)
		a, ok := actual.(bson.D)
		if !ok {
			return false
		}
		got := map[string]any{}
		for _, e := range a {
			if _, twice := got[e.Key]; twice {
				return false
			}
			got[e.Key] = e.Value
		}
		result := true
		for _, e := range d {
			v, there := got[e.Key]
			if !there {
				v = missing{}
			}
			delete(got, e.Key)
			result = naive(e.Value, v, false, false, false) && result
		}
		return result && (root || len(got) == 0)
	}
	if list, ok := expected.(bson.A); ok {
		naiveCheck(list)
		a, ok := actual.(bson.A)
		if !ok || len(a) != len(list) {
			return false
		}
		for i := range list {
			if !naive(list[i], a[i], rootItems, false, true) {
				return false
			}
		}
		return true
	}
	if x := rational(expected); x != nil {
		y := rational(actual)
		return y != nil && reflect.DeepEqual(x, y)
	}
	if c, ok := expected.(bson.CodeWithScope); ok {
		a, ok := actual.(bson.CodeWithScope)
		return ok && c.Code == a.Code && reflect.DeepEqual(plain(c.Scope), plain(a.Scope))
	}
	if r, ok := expected.(bson.Regex); ok {
		a, ok := actual.(bson.Regex)
		if !ok || len(r.Options) != len(a.Options) || r.Pattern != a.Pattern {
			return false
		}
		for _, o := range r.Options {
			if strings.Count(r.Options, string(o)) != strings.Count(a.Options, string(o)) {
				return false
			}
		}
		return true
	}
	return fmt.Sprintf("%T %v", expected, expected) == fmt.Sprintf("%T %v", actual, actual)
}

// naiveCheck finds the faults below a value that may never be compared.
func naiveCheck(v any) {
	switch v := v.(type) {
	case bson.D:
		if len(v) == 1 && strings.HasPrefix(v[0].Key, "$$") {
			naiveOperator(v[0].Key, v[0].Value, missing{}, false, false, false)
			return
		}
		seen := map[string]bool{}
		for _, e := range v {
			if seen[e.Key] {
				panic(naiveFault("duplicate"))
			}
			seen[e.Key] = true
			naiveCheck(e.Value)
		}
	case bson.A:
		for _, item := range v {
			if d, ok := item.(bson.D); ok && len(d) == 1 && (d[0].Key == "$$exists" || d[0].Key == "$$unsetOrMatches") {
				panic(naiveFault("element"))
			}
			naiveCheck(item)
		}
	}
}

func naiveOperator(name string, argument, actual any, root, rootItems, element bool) bool {
	_, absent := actual.(missing)
	switch name {
	case "$$exists":
		want, ok := argument.(bool)
		if !ok || element {
			panic(naiveFault(name))
		}
		return want != absent
	case "$$unsetOrMatches":
		if element {
			panic(naiveFault(name))
		}
		naiveCheck(argument)
		return absent || naive(argument, actual, root, rootItems, false)
	case "$$type":
		names, ok := argument.(bson.A)
		if !ok {
			names = bson.A{argument}
		}
		if len(names) == 0 {
			panic(naiveFault(name))
		}
		result := false
		for _, n := range names {
			s, ok := n.(string)
			if _, known := aliases[s]; !ok || !known {
				panic(naiveFault(name))
			}
			t, _, err := bson.MarshalValue(actual)
			if !absent && err == nil {
				for _, want := range aliases[s] {
					result = result || want == t
				}
			}
		}
		return result
	case "$$lte":
		switch argument.(type) {
		case int32, int64, float64:
		default:
			panic(naiveFault(name))
		}
		x, y := rational(actual), rational(argument)
		if x == nil || y == nil {
			return false
		}
		xf, xIsFloat := x.(float64)
		yf, yIsFloat := y.(float64)
		switch {
		case xIsFloat && math.IsNaN(xf) || yIsFloat && math.IsNaN(yf) || x == "NaN" || y == "NaN":
			return false
		case xIsFloat && yIsFloat:
			return xf <= yf
		case xIsFloat:
			return xf < 0
		case yIsFloat:
			return yf > 0
		}
		a, _ := new(big.Rat).SetString(x.(string))
		b, _ := new(big.Rat).SetString(y.(string))
		return a.Cmp(b) <= 0
	case "$$matchesHexBytes":
		s, ok := argument.(string)
		want, err := hex.DecodeString(s)
		if !ok || err != nil {
			panic(naiveFault(name))
		}
		if b, ok := actual.(bson.Binary); ok && b.Subtype == 0 {
			return string(b.Data) == string(want)
		}
		return actual == any(string(want))
	case "$$matchAsRoot":
		if _, ok := argument.(bson.D); !ok {
			panic(naiveFault(name))
		}
		naiveCheck(argument)
		_, ok := actual.(bson.D)
		return ok && naive(argument, actual, true, false, false)
	case "$$matchAsDocument":
		naiveCheck(argument)
		s, ok := actual.(string)
		if !ok {
			return false
		}
		raw, err := parseDocument(s)
		if err != nil {
			return false
		}
		var d bson.D
		if bson.Unmarshal(raw, &d) != nil {
			return false
		}
		return naive(argument, d, false, false, false)
	default:
		panic(naiveFault(name))
	}
}

// rational gives a number as the text of a rational, NaN as "NaN", infinities
// as floats, and nil for what is no number.
func rational(v any) any {
	switch v := v.(type) {
	case int32:
		return new(big.Rat).SetInt64(int64(v)).String()
	case int64:
		return new(big.Rat).SetInt64(v).String()
	case float64:
		if math.IsNaN(v) {
			return "NaN"
		}
		if math.IsInf(v, 0) {
			return v
		}
		return new(big.Rat).SetFloat64(v).String()
	default:
		return nil
	}
}

// plain turns documents into maps, so that the order of keys is gone.
func plain(v any) any {
	switch v := v.(type) {
	case bson.D:
		m := map[string]any{}
		for _, e := range v {
			m[e.Key] = plain(e.Value)
		}
		return m
	case bson.A:
		a := []any{}
		for _, item := range v {
			a = append(a, plain(item))
		}
		return a
	default:
		return fmt.Sprintf("%T %v", v, v)
	}
}
