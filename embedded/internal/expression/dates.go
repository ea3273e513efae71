package expression

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// units are the units of time: months, days or a duration.
var units = map[string]struct {
	months, days int64
	lasts        time.Duration
}{
	"year": {months: 12}, "quarter": {months: 3}, "month": {months: 1}, "week": {days: 7}, "day": {days: 1},
	"hour": {lasts: time.Hour}, "minute": {lasts: time.Minute}, "second": {lasts: time.Second},
	"millisecond": {lasts: time.Millisecond},
}

// maxAmount limits the units that are added, so that the result is a date.
const maxAmount = math.MaxInt32

// moved is $dateAdd, or with the sign -1 $dateSubtract.
func moved(name string, sign int64) func(p *parser, arg any) Expr {
	return func(p *parser, arg any) Expr {
		args := p.named(name, arg, 5166400, 5166401, 5166402, "startDate?", "unit?", "amount?", "timezone?")
		for _, required := range []string{"startDate", "unit", "amount"} {
			_, given := args[required]
			p.Refuse(!given, 5166402, "%s requires startDate, unit, and amount to be present", name)
		}
		date, unit, amount, zone := p.parse(args["startDate"]), p.parse(args["unit"]), p.parse(args["amount"]),
			p.optional(args, "timezone")
		return func(e *Env) any {
			from, by, of := date(e), unit(e), amount(e)
			_, isDate := asTime(from)
			text, isText := by.(string)
			u, known := units[text]
			n, whole := value.Int64(of)
			switch {
			case anyNull([]any{from, by, of}):
				return nil
			case !isDate:
				return e.fail(5166403, "%s requires startDate to be convertible to a date", name)
			case !isText:
				return e.fail(5166404, "%s expects string defining the time unit", name)
			case !known:
				return e.fail(9, "unknown time unit value: %s", text)
			case !whole:
				return e.fail(5166405, "%s expects integer amount of time units", name)
			case n > maxAmount || n < -maxAmount:
				return e.fail(5166406, "invalid %s 'amount' parameter value: %d %s", name, n, text)
			}
			t, null := e.date(constant(from), zone)
			if null {
				return nil
			}
			return bson.NewDateTimeFromTime(advanced(t, u.months*n*sign, u.days*n*sign, time.Duration(n*sign)*u.lasts))
		}
	}
}

// advanced returns a time some months, days and a duration later. Months end early on the last day of a shorter month.
func advanced(t time.Time, months, days int64, d time.Duration) time.Time {
	first := t.AddDate(0, 0, 1-t.Day()).AddDate(0, int(months), 0)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1+int(days)).Add(d)
}
