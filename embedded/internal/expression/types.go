package expression

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

func toString(e *Env, v []any) any {
	switch x := v[0].(type) {
	case string:
		return x
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case bool, int32, int64, bson.Decimal128:
		return fmt.Sprint(x)
	case bson.ObjectID:
		return x.Hex()
	case bson.DateTime:
		return x.Time().UTC().Format("2006-01-02T15:04:05.000Z")
	}
	if value.IsNull(v[0]) {
		return nil
	}
	return e.fail(fault.ConversionFailure, "Unsupported conversion from %s to string in $convert with no onError value",
		value.TypeName(v[0]))
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

// datePart is an operator on a date. Its other form, with named arguments, is refused.
func datePart(name string, part func(time.Time) int) func(p *parser, arg any) Expr {
	return func(p *parser, arg any) Expr {
		d, _ := arg.(bson.D)
		p.Refuse(len(d) > 0 && !strings.HasPrefix(d[0].Key, "$"), fault.NotImplemented,
			"%s with named arguments is not implemented by the embedded deployment", name)
		if list, ok := arg.(bson.A); ok {
			if len(list) != 1 {
				return p.fail(40536, "%s accepts exactly one argument if given an array, but was given %d", name, len(list))
			}
			arg = list[0]
		}
		date := p.parse(arg)
		return func(e *Env) any {
			t, null := e.date(date)
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

// date returns the value of an expression that must be a date.
func (e *Env) date(x Expr) (t time.Time, null bool) {
	v := x(e)
	t, ok := asTime(v)
	if !ok && !value.IsNull(v) {
		e.fail(16006, "can't convert from BSON type %s to Date", value.TypeName(v))
	}
	return t, !ok || e.err != nil
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
