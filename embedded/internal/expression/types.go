package expression

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// converter is an operator such as $toInt.
func converter(to string) operator {
	return operator{1, 1, func(e *Env, args []Expr) any {
		return convertTo(e, []Expr{args[0], constant(to), nil, nil})
	}}
}

// convertTo is $convert.
func convertTo(e *Env, args []Expr) any {
	v, target, onError, onNull := args[0](e), args[1](e), args[2], args[3]
	given, isName := target.(string)
	name := value.TypeNamed(target)
	switch {
	case e.err != nil:
		return nil
	case value.IsNull(v):
		return e.or(onNull, nil)
	case value.IsNull(target):
		return nil
	case !isName && !value.IsNumber(target):
		return e.fail(fault.FailedToParse, "$convert's 'to' argument must be a string or number, but is %s",
			value.TypeName(target))
	case name == "":
		return e.fail(fault.BadValue, "Unknown type name: %s", given)
	}
	r, err := convert(v, name)
	failure, isError := err.(*fault.Error)
	if isError && failure.Code == fault.ConversionFailure && onError != nil {
		return onError(e)
	}
	e.err = err
	return r
}

func failedConversion(format string, args ...any) error {
	return fault.Errorf(fault.ConversionFailure, format+" in $convert with no onError value", args...)
}

// convert converts a value to a type.
func convert(v any, to string) (r any, err error) {
	switch to {
	case value.TypeName(v):
		return v, nil
	case "bool":
		return value.Truthy(v), nil
	case "string":
		r = toString(v)
	case "int", "long", "double", "decimal":
		r, err = toNumber(v, to)
	case "date":
		r, err = toDate(v)
	case "objectId":
		if s, ok := v.(string); ok {
			r, err = toObjectID(s)
		}
	}
	if r == nil && err == nil {
		err = failedConversion("Unsupported conversion from %s to %s", value.TypeName(v), to)
	}
	return r, err
}

func toObjectID(s string) (any, error) {
	id, err := bson.ObjectIDFromHex(s)
	if err != nil {
		reason := "Invalid character found in hex string"
		if len(s) != 24 {
			reason = fmt.Sprintf("Invalid string length for parsing to OID, expected 24 but found %d", len(s))
		}
		return nil, unparsed("objectId", s, reason)
	}
	return id, nil
}

func unparsed(what, s, reason string) error {
	return fault.Errorf(fault.ConversionFailure, "Failed to parse %s '%s' in $convert with no onError value: %s",
		what, s, reason)
}

// toString returns nil for a value that has no text.
func toString(v any) any {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case int32, int64, float64, bson.Decimal128:
		return numberText(v)
	case bson.ObjectID:
		return v.Hex()
	case bson.DateTime:
		return dateText(v)
	}
	return nil
}

// toNumber returns nil for a value that cannot be a number.
func toNumber(v any, to string) (any, error) {
	switch x := v.(type) {
	case string:
		return parseNumber(x, to)
	case bool:
		if v = int32(0); x {
			v = int32(1)
		}
	case bson.DateTime:
		if to != "int" {
			v = int64(x)
		}
	}
	n, whole := value.Int64(v)
	switch f := value.Float(v); {
	case !value.IsNumber(v):
		return nil, nil
	case to == "decimal":
		return bson.ParseDecimal128(numberText(v))
	case to == "double":
		return f, nil
	case math.IsNaN(f):
		return nil, failedConversion("Attempt to convert NaN value to integer type")
	case math.IsInf(f, 0):
		return nil, failedConversion("Attempt to convert infinity value to integer type")
	case !whole && (f < math.MinInt64 || f >= math.MaxInt64):
		return nil, failedConversion("Conversion would overflow target type")
	case !whole:
		n = int64(f)
	}
	if to == "long" {
		return n, nil
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		return nil, failedConversion("Conversion would overflow target type")
	}
	return int32(n), nil
}

func parseNumber(s, to string) (any, error) {
	var n any
	var err error
	if to == "double" || to == "decimal" {
		n, err = strconv.ParseFloat(s, 64)
	} else {
		n, err = strconv.ParseInt(s, 10, 64)
	}
	switch {
	case err == nil && to == "decimal":
		return bson.ParseDecimal128(s)
	case err == nil:
		return toNumber(n, to)
	case s == "":
		return nil, unparsed("number", s, "Empty string")
	case s[0] != '-' && s[0] != '+' && (s[0] < '0' || s[0] > '9'):
		return nil, unparsed("number", s, "Did not consume any digits")
	}
	return nil, unparsed("number", s, "Did not consume whole string.")
}

// toDate returns nil for a value that cannot be a date.
func toDate(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return parseDate(v)
	case bson.ObjectID, bson.Timestamp:
		t, _ := asTime(v)
		return bson.NewDateTimeFromTime(t), nil
	case int64:
		return bson.DateTime(v), nil
	case float64, bson.Decimal128:
		return bson.DateTime(int64(value.Float(v))), nil
	}
	return nil, nil
}

// dateLayouts are the forms of dates in strings.
var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04",
	"2006-01-02 15:04:05.999999999", "2006-01-02"}

func parseDate(s string) (any, error) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return bson.NewDateTimeFromTime(t), nil
		}
	}
	return nil, fault.Errorf(fault.NotImplemented, "the date '%s' is not implemented by the embedded deployment", s)
}

// dateParts are the operators that return a part of a date.
var dateParts = map[string]func(time.Time) int{
	"$year": time.Time.Year, "$month": func(t time.Time) int { return int(t.Month()) }, "$dayOfMonth": time.Time.Day,
	"$hour":   time.Time.Hour,
	"$minute": time.Time.Minute, "$second": time.Time.Second,
	"$millisecond": func(t time.Time) int { return t.Nanosecond() / 1e6 },
	"$dayOfWeek":   func(t time.Time) int { return int(t.Weekday()) + 1 }, "$dayOfYear": time.Time.YearDay,
	"$week":         func(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 },
	"$isoWeek":      func(t time.Time) int { _, w := t.ISOWeek(); return w },
	"$isoWeekYear":  func(t time.Time) int { y, _ := t.ISOWeek(); return y },
	"$isoDayOfWeek": func(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 },
}

// datePart is an operator on a date: on its argument, or on the named argument date.
func datePart(name string, part func(time.Time) int) func(p *parser, arg any) Expr {
	return func(p *parser, arg any) Expr {
		var zone Expr
		if d, ok := arg.(bson.D); ok && len(d) > 0 && !strings.HasPrefix(d[0].Key, "$") {
			args := p.named(name, arg, 40539, 40535, 40539, "date", "timezone?")
			arg, zone = args["date"], p.optional(args, "timezone")
		}
		if list, ok := arg.(bson.A); ok {
			if len(list) != 1 {
				return p.fail(40536, "%s accepts exactly one argument if given an array, but was given %d", name, len(list))
			}
			arg = list[0]
		}
		date := p.parse(arg)
		return func(e *Env) any {
			t, null := e.date(date, zone)
			if null {
				return nil
			}
			if name == "$isoWeekYear" {
				return int64(part(t))
			}
			return int32(part(t))
		}
	}
}

// date returns the value of an expression that must be a date, in a time zone.
func (e *Env) date(x, zone Expr) (t time.Time, null bool) {
	v := x(e)
	t, ok := asTime(v)
	if !ok && !value.IsNull(v) {
		e.fail(16006, "can't convert from BSON type %s to Date", value.TypeName(v))
	}
	if !ok || zone == nil {
		return t, !ok || e.err != nil
	}
	given := zone(e)
	name, isText := given.(string)
	offset, err := time.Parse("-07:00", name)
	location := offset.Location()
	if err != nil {
		location, err = time.LoadLocation(name)
	}
	switch {
	case value.IsNull(given):
	case !isText:
		e.fail(40517, "timezone must evaluate to a string, found %s", value.TypeName(given))
	case err != nil:
		e.fail(40485, "unrecognized time zone identifier: \"%s\"", name)
	default:
		return t.In(location), false
	}
	return t, true
}

// asTime returns a value that is a date or contains one.
func asTime(v any) (t time.Time, ok bool) {
	switch v := v.(type) {
	case bson.DateTime:
		return v.Time().UTC(), true
	case bson.Timestamp:
		return time.Unix(int64(v.T), 0).UTC(), true
	case bson.ObjectID:
		return v.Timestamp().UTC(), true
	}
	return t, false
}

// dateFormats are the specifiers of $dateToString.
var dateFormats = map[byte]func(t time.Time) string{
	'Y': func(t time.Time) string { return fmt.Sprintf("%04d", t.Year()) },
	'm': func(t time.Time) string { return fmt.Sprintf("%02d", t.Month()) },
	'd': func(t time.Time) string { return fmt.Sprintf("%02d", t.Day()) },
	'H': func(t time.Time) string { return fmt.Sprintf("%02d", t.Hour()) },
	'M': func(t time.Time) string { return fmt.Sprintf("%02d", t.Minute()) },
	'S': func(t time.Time) string { return fmt.Sprintf("%02d", t.Second()) },
	'L': func(t time.Time) string { return fmt.Sprintf("%03d", t.Nanosecond()/1e6) },
	'j': func(t time.Time) string { return fmt.Sprintf("%03d", t.YearDay()) },
	'w': func(t time.Time) string { return strconv.Itoa(int(t.Weekday()) + 1) },
	'u': func(t time.Time) string { return strconv.Itoa(dateParts["$isoDayOfWeek"](t)) },
	'U': func(t time.Time) string { return fmt.Sprintf("%02d", dateParts["$week"](t)) },
	'V': func(t time.Time) string { return fmt.Sprintf("%02d", dateParts["$isoWeek"](t)) },
	'G': func(t time.Time) string { return fmt.Sprintf("%04d", dateParts["$isoWeekYear"](t)) },
	'z': func(t time.Time) string { return t.Format("-0700") },
	'Z': func(t time.Time) string { _, s := t.Zone(); return strconv.Itoa(s / 60) },
	'%': func(time.Time) string { return "%" },
}

func dateToString(e *Env, args []Expr) any {
	t, null := e.date(args[0], args[2])
	layout := e.or(args[1], "%Y-%m-%dT%H:%M:%S.%LZ")
	s, ok := layout.(string)
	switch {
	case null:
		return e.or(args[3], nil)
	case value.IsNull(layout):
		return nil
	case !ok:
		return e.fail(18533, "$dateToString requires that 'format' be a string, found: %s with value %s",
			value.TypeName(layout), value.Text(layout))
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return e.fail(18535, "Unmatched '%%' at end of format string")
		}
		f := dateFormats[s[i]]
		if f == nil {
			return e.fail(18536, "Invalid format character '%%%c' in format string", s[i])
		}
		b.WriteString(f(t))
	}
	return b.String()
}
