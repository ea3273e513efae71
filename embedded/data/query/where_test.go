package query

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestWhere(t *testing.T) {
	for _, row := range []struct {
		reason string
		where  any
		want   bool
		slept  time.Duration
	}{
		{"an expression", "this.a == 1", true, 0},
		{"an expression that is false", "this.a == 2", false, 0},
		{"the document has a name, too", "obj.b.c > 2;", true, 0},
		{"what is not there", "this.nothing", false, 0},
		{"a function", "function() { return this.a === 1; }", true, 0},
		{"a function with a name and a parameter", "function f(x) { return obj.a < 0; }", false, 0},
		{"an arrow function", "() => true", true, 0},
		{"a function that returns nothing", "function() { this.a; }", false, 0},
		{"the body of a function", "var x = this.a; return x + 1 == 2", true, 0},
		{"a body without return", "var x = this.a;", false, 0},
		{"code", bson.JavaScript("this.a"), true, 0},
		{"code with a scope", bson.CodeWithScope{Code: "this.a == n", Scope: bson.D{{Key: "n", Value: int32(1)}}}, true, 0},
		{"an empty string is false", "''", false, 0},
		{"any other is true", "'0'", true, 0},
		{"sleep gives nothing", "sleep(10)", false, 10 * time.Millisecond},
		{"and what follows is evaluated", "sleep(2000) || true", true, 2 * time.Second},
		{"within a function", "function() { sleep(100); return true; }", true, 100 * time.Millisecond},
		{"twice", "function() { sleep(1); sleep(2); return this.a; }", true, 3 * time.Millisecond},
		{"sleep of what is not a time", "sleep('x') || sleep(-1) || sleep() || true", true, 0},
		{"sleep that is not reached", "this.a || sleep(1000)", true, 0},
	} {
		var slept time.Duration
		o := Options{Scripts: &Scripts{Sleep: func(d time.Duration) error { slept += d; return nil }}}
		f, err := Compile(bson.D{{Key: "$where", Value: row.where}}, o)
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		got, err := f.Matches(doc(t, `{"a":1,"b":{"c":3}}`))
		if err != nil || got != row.want || slept != row.slept {
			t.Errorf("%s: got %v after %v, %v; want %v after %v", row.reason, got, slept, err, row.want, row.slept)
		}
	}
}

func TestRefusedWhere(t *testing.T) {
	on := &Scripts{Sleep: func(time.Duration) error { return nil }}
	for _, row := range []struct {
		reason  string
		scripts *Scripts
		filter  bson.D
		code    int32
	}{
		{"a server without a script engine", &Scripts{Disabled: true}, bson.D{{Key: "$where", Value: "1"}}, 2},
		{"neither string nor code", on, bson.D{{Key: "$where", Value: int32(1)}}, 2},
		{"below the top", on, bson.D{{Key: "a", Value: bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "$where", Value: "1"}}}}}}, 2},
		{"not JavaScript", on, bson.D{{Key: "$where", Value: "1 +"}}, 139},
		{"JavaScript that is not supported", on, bson.D{{Key: "$where", Value: "while (true) {}"}}, 139},
		{"an unknown variable", on, bson.D{{Key: "$where", Value: "nosuch"}}, 139},
		{"an endless function", on, bson.D{{Key: "$where", Value: "function() { let f = () => f(); return f(); }"}}, 139},
	} {
		f, err := Compile(row.filter, Options{Scripts: row.scripts})
		if err == nil {
			_, err = f.Matches(doc(t, `{"a":1}`))
		}
		if e, ok := err.(*command.Error); !ok || e.Code != row.code {
			t.Errorf("%s: got %v, want code %d", row.reason, err, row.code)
		}
	}
}

// What ends a sleep ends the match, as it is, and no further sleep begins.
func TestWhereThatIsInterrupted(t *testing.T) {
	stop, n := errors.New("stop"), 0
	o := Options{Scripts: &Scripts{Sleep: func(time.Duration) error { n++; return stop }}}
	f, err := Compile(doc(t, `{"$or":[{"$where":"sleep(1)"},{"$where":"sleep(2)"}]}`), o)
	testkit.Check(t, err)
	if _, err := f.Matches(doc(t, `{}`)); err != stop || n != 1 {
		t.Errorf("got %v after %d sleeps", err, n)
	}
}
