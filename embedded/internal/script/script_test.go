package script

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

var this42 = bson.D{{Key: "x", Value: int32(41)}}

const file = "testdata/functions.txt"

func TestFunctions(t *testing.T) {
	testkit.PlayCases(t, file, func(t *testing.T, in string) string {
		source, args, _ := strings.Cut(in, " of ")
		list := value.As[bson.A](testkit.Extended[bson.D](t, `{"v":`+args+`}`), "v")
		f, err := Parse(source)
		var got any
		if err == nil {
			got, err = f.Call(nil, this42, nil, list...)
		}
		if err != nil {
			return "error " + err.Error()
		}
		return value.Text(got)
	})
}

func TestBuiltin(t *testing.T) {
	f, err := Parse(`function inc() { return emit(0, this.x + 1) }`)
	testkit.Check(t, err)
	var got []any
	emit := func(args []any) (any, error) { got = args; return nil, nil }
	_, err = f.Call(nil, this42, map[string]Builtin{"emit": emit})
	testkit.Check(t, err)
	if len(got) != 2 || got[0] != 0.0 || got[1] != 42.0 {
		t.Errorf("emitted %v", got)
	}
}

// A call ends with its operation, even if it is computing and catches exceptions.
func TestStopped(t *testing.T) {
	f, err := Parse(`() => { for (;;) { try { for (;;) {} } catch (e) {} } }`)
	testkit.Check(t, err)
	stop, n := errors.New("stop"), 0
	stopped := func() error {
		if n++; n < 3 {
			return nil
		}
		return stop
	}
	if _, err := f.Call(stopped, nil, nil); err != stop {
		t.Errorf("got %v", err)
	}
}

// The script itself notices that it has allocated too much, while the goroutine that watches it does not run.
func TestGrowthIsLimited(t *testing.T) {
	for _, step := range []string{
		"s += s", "s = s + s", "s = `${s}${s}`", "s = s.concat(s)", "s = [s, s].join('')", "(() => s += s)()",
		"if (true) { switch (1) { default: for (const x of [1]) s = (1, s + s) } }",
	} {
		f, err := Parse(`() => { watched(); var s = "12345678"; for (var i = 0; i < 26; i++) { ` + step + ` }; return 1 }`)
		testkit.Check(t, err)
		stuck, end := make(chan bool), make(chan bool)
		calls := 0
		stopped := func() error {
			if calls++; calls == 2 {
				close(stuck)
				<-end
			}
			return nil
		}
		watched := func([]any) (any, error) { <-stuck; return nil, nil }
		runtime.GC() // if the garbage of the step before were collected during this one, it would hide the growth
		if _, err := f.Call(stopped, nil, map[string]Builtin{"watched": watched}); err != errLimit {
			t.Errorf("%s: %v", step, err)
		}
		close(end)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range testkit.Cases(f, file) {
		source, _, _ := strings.Cut(c.In, " of ")
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if fn, err := Parse(source); err == nil {
			_, _ = fn.Call(nil, this42, nil, bson.A{int32(1), "x"}, bson.D{})
		}
	})
}
