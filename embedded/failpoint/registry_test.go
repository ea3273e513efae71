package failpoint_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/failpoint"
)

func raw(t testing.TB, v any) bson.Raw {
	t.Helper()
	out, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func half() float64 { return 0.5 }

func command(name any, mode any, data bson.D) bson.D {
	c := bson.D{{Key: "configureFailPoint", Value: name}}
	if mode != nil {
		c = append(c, bson.E{Key: "mode", Value: mode})
	}
	if data != nil {
		c = append(c, bson.E{Key: "data", Value: data})
	}
	return c
}

func d(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }

// TestModes asks ten times and compares with what the mode promises.
func TestModes(t *testing.T) {
	for _, row := range []struct {
		reason string
		mode   any
		want   string // x for a strike
		count  int32
	}{
		{"off never strikes", "off", "..........", 0},
		{"alwaysOn always strikes", "alwaysOn", "xxxxxxxxxx", 10},
		{"times: 3 strikes thrice", d("times", 3), "xxx.......", 3},
		{"times: 0 strikes once, as the server's does", d("times", 0), "x.........", 1},
		{"times may be a double", d("times", 2.0), "xx........", 2},
		{"times may be a long", d("times", int64(1)), "x.........", 1},
		{"skip: 4 strikes from the fifth on, and what it skipped does not count", d("skip", 4), "....xxxxxx", 6},
		{"skip: 0 always strikes", d("skip", 0), "xxxxxxxxxx", 10},
		{"probability 1 always strikes", d("activationProbability", 1.0), "xxxxxxxxxx", 10},
		{"probability 0 never strikes", d("activationProbability", 0.0), "..........", 0},
		{"probability just above what the dice show strikes", d("activationProbability", 0.51), "xxxxxxxxxx", 10},
		{"probability of what the dice show does not", d("activationProbability", 0.5), "..........", 0},
	} {
		r := failpoint.NewRegistry(half)
		if _, err := r.Configure(raw(t, command("failCommand", row.mode, nil))); err != nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		got := ""
		for range 10 {
			if _, hit := r.Strike("failCommand", nil); hit {
				got += "x"
			} else {
				got += "."
			}
		}
		if got != row.want || r.Count("failCommand") != row.count {
			t.Errorf("%s: got %s and a count of %d, want %s and %d", row.reason, got, r.Count("failCommand"), row.want, row.count)
		}
	}
}

// TestCounts sees that counts outlive configurations, and that one fail point
// is none of another's business.
func TestCounts(t *testing.T) {
	r := failpoint.NewRegistry(half)
	configure := func(name string, mode any, want int32) {
		t.Helper()
		if got, err := r.Configure(raw(t, command(name, mode, nil))); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	configure("failCommand", d("times", 2), 0)
	r.Strike("failCommand", nil)
	r.Strike("failCommand", func(bson.Raw) bool { return false })
	r.Strike("onPrimaryTransactionalWrite", nil)
	configure("failCommand", "off", 1)
	configure("failCommand", "alwaysOn", 1)
	r.Strike("failCommand", nil)
	configure("onPrimaryTransactionalWrite", "off", 0)
	configure("failCommand", "alwaysOn", 2)
	r.Reset()
	if _, hit := r.Strike("failCommand", nil); hit {
		t.Error("a fail point outlived a reset")
	}
	configure("failCommand", "off", 0)
}

// TestRefused compares refusals with the server's words. The rows that a real
// server was not asked are marked.
func TestRefused(t *testing.T) {
	for _, row := range []struct {
		command bson.D
		code    int32
		message string
	}{
		{command("noSuch", "off", nil), 266, "noSuch not found"},
		{command(5, "off", nil), 266, " not found"},
		{command("failCommand", nil, nil), 20, "When setting a failpoint, you must supply a 'mode'"},
		{command("failCommand", "sometimes", nil), 2, "unknown mode: sometimes"},
		{command("failCommand", d("times", -1), nil), 2, "'times' option to 'mode' must be positive"},
		{command("failCommand", d("times", "x"), nil), 14, `Expected field "times" to have numeric type, but found string`},
		{command("failCommand", d("nosuch", 1), nil), 2, "'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or '{activationProbability:p}'"},
		{command("failCommand", d("activationProbability", 2.0), nil), 2, "activationProbability must be between 0.0 and 1.0; found 2.0"},
		// Not recorded:
		{command("failCommand", 5, nil), 14, "'mode' must be a string or JSON object"},
		{command("failCommand", d("skip", -2), nil), 2, "'skip' option to 'mode' must be positive"},
		{command("failCommand", d("times", int64(1)<<40), nil), 2, "'times' option to 'mode' is too large"},
		{command("failCommand", d("activationProbability", "x"), nil), 14, "the value of 'activationProbability' must be a number, found string"},
	} {
		r := failpoint.NewRegistry(half)
		if _, err := r.Configure(raw(t, command("failCommand", "alwaysOn", nil))); err != nil {
			t.Fatal(err)
		}
		_, err := r.Configure(raw(t, row.command))
		var refused *failpoint.Error
		if !errors.As(err, &refused) || refused.Code != row.code || refused.Message != row.message {
			t.Errorf("%v: got %v, want code %d: %s", row.command, err, row.code, row.message)
		}
		if _, hit := r.Strike("failCommand", nil); !hit {
			t.Errorf("%v: what was set before is gone", row.command)
		}
	}
}

// find is the command that most rows are about.
var find = failpoint.Command{Names: []string{"find"}, Namespace: "d.c", AppName: "app"}

func TestBefore(t *testing.T) {
	for _, row := range []struct {
		reason string
		data   bson.D
		about  failpoint.Command
		want   *failpoint.Failure // nil: it does not strike
		code   int32              // of the error in the data
	}{
		{"an error code", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 91}}, find,
			&failpoint.Failure{HasCode: true, Code: 91}, 0},
		{"a code may be a double", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 91.0}}, find,
			&failpoint.Failure{HasCode: true, Code: 91}, 0},
		{"another command", bson.D{{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "errorCode", Value: 91}}, find, nil, 0},
		{"an alias", bson.D{{Key: "failCommands", Value: bson.A{"ismaster"}}, {Key: "errorCode", Value: 91}},
			failpoint.Command{Names: []string{"isMaster", "ismaster"}}, &failpoint.Failure{HasCode: true, Code: 91}, 0},
		{"failCommands that is no array", bson.D{{Key: "failCommands", Value: "find"}, {Key: "errorCode", Value: 91}}, find, nil, 0},
		{"failCommands with other things in it", bson.D{{Key: "failCommands", Value: bson.A{1, "find"}}, {Key: "errorCode", Value: 91}}, find,
			&failpoint.Failure{HasCode: true, Code: 91}, 0},
		{"no failCommands", bson.D{{Key: "errorCode", Value: 91}}, find, nil, 0},
		{"no data", nil, find, nil, 0},
		{"nothing to do", bson.D{{Key: "failCommands", Value: bson.A{"find"}}}, find, nil, 0},
		{"labels alone are nothing to do", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorLabels", Value: bson.A{"a"}}}, find, nil, 0},
		{"a write concern error is not done before", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "writeConcernError", Value: d("code", 91)}}, find, nil, 0},
		{"a code that is none", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: "x"}}, find, nil, 0},
		{"configureFailPoint is exempt", bson.D{{Key: "failCommands", Value: bson.A{"configureFailPoint"}}, {Key: "errorCode", Value: 91}},
			failpoint.Command{Names: []string{"configureFailPoint"}}, nil, 0},
		{"closing", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: true}}, find,
			&failpoint.Failure{CloseConnection: true}, 0},
		{"closing that is false", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: false}}, find, nil, 0},
		{"blocking, then failing", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true},
			{Key: "blockTimeMS", Value: 20}, {Key: "errorCode", Value: 5}}, find,
			&failpoint.Failure{Block: 20 * time.Millisecond, HasCode: true, Code: 5}, 0},
		{"blocking that is false", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: false},
			{Key: "blockTimeMS", Value: 20}}, find, nil, 0},
		{"blocking for no time", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true}}, find,
			&failpoint.Failure{}, 72},
		{"blocking backwards", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true},
			{Key: "blockTimeMS", Value: -1}}, find, &failpoint.Failure{}, 72},
		{"labels", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 5}, {Key: "errorLabels", Value: bson.A{"a", "b"}}}, find,
			&failpoint.Failure{HasCode: true, Code: 5, Labels: []string{"a", "b"}}, 0},
		{"no labels, on purpose", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 5}, {Key: "errorLabels", Value: bson.A{}}}, find,
			&failpoint.Failure{HasCode: true, Code: 5, Labels: []string{}}, 0},
		{"the right application", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 5}, {Key: "appName", Value: "app"}}, find,
			&failpoint.Failure{HasCode: true, Code: 5}, 0},
		{"another application", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 5}, {Key: "appName", Value: "ap"}}, find, nil, 0},
		{"the right namespace", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 5}, {Key: "namespace", Value: "d.c"}}, find,
			&failpoint.Failure{HasCode: true, Code: 5}, 0},
		{"another namespace", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 5}, {Key: "namespace", Value: "d"}}, find, nil, 0},
		{"unknown fields are passed over", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 5},
			{Key: "failInternalCommands", Value: true}, {Key: "noSuch", Value: 1}}, find, &failpoint.Failure{HasCode: true, Code: 5}, 0},
	} {
		r := failpoint.NewRegistry(half)
		if _, err := r.Configure(raw(t, command("failCommand", "alwaysOn", row.data))); err != nil {
			t.Fatal(err)
		}
		got, hit, err := r.Before(row.about)
		var refused *failpoint.Error
		if row.code != 0 {
			if !errors.As(err, &refused) || refused.Code != row.code {
				t.Errorf("%s: %v, want code %d", row.reason, err, row.code)
			}
		} else if err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		if hit != (row.want != nil) || r.Count("failCommand") != map[bool]int32{true: 1}[hit] {
			t.Errorf("%s: hit %v, count %d", row.reason, hit, r.Count("failCommand"))
			continue
		}
		if w := row.want; hit && row.code == 0 && (got.Block != w.Block || got.CloseConnection != w.CloseConnection ||
			got.HasCode != w.HasCode || got.Code != w.Code || !slices.Equal(got.Labels, w.Labels) || (got.Labels == nil) != (w.Labels == nil)) {
			t.Errorf("%s: got %+v, want %+v", row.reason, got, *w)
		}
	}
}

func TestAfter(t *testing.T) {
	concern := d("code", 91)
	for _, row := range []struct {
		reason string
		data   bson.D
		hit    bool
		labels []string
	}{
		{"a write concern error", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "writeConcernError", Value: concern}}, true, nil},
		{"with labels", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "writeConcernError", Value: concern}, {Key: "errorLabels", Value: bson.A{"x"}}}, true, []string{"x"}},
		{"of another command", bson.D{{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "writeConcernError", Value: concern}}, false, nil},
		{"that is no document", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "writeConcernError", Value: 5}}, false, nil},
		{"not asked for", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 5}}, false, nil},
	} {
		r := failpoint.NewRegistry(half)
		if _, err := r.Configure(raw(t, command("failCommand", d("times", 1), row.data))); err != nil {
			t.Fatal(err)
		}
		e, labels, hit := r.After(find)
		if hit != row.hit || !slices.Equal(labels, row.labels) || hit && e.Lookup("code").AsInt64() != 91 {
			t.Errorf("%s: got %v %v %v", row.reason, e, labels, hit)
		}
		if _, _, again := r.After(find); again {
			t.Errorf("%s: struck twice", row.reason)
		}
	}
}

// TestConcurrently sees that {times: n} strikes n times, whoever asks.
func TestConcurrently(t *testing.T) {
	r := failpoint.NewRegistry(rand.Float64)
	if _, err := r.Configure(raw(t, command("failCommand", d("times", 100), nil))); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	hits := make([]int, 8)
	for i := range hits {
		wg.Go(func() {
			for range 1000 {
				if _, hit := r.Strike("failCommand", nil); hit {
					hits[i]++
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range hits {
		total += n
	}
	if total != 100 {
		t.Errorf("%d strikes, want 100", total)
	}
}

// FuzzConfigure configures anything and asks.
func FuzzConfigure(f *testing.F) {
	for _, c := range []bson.D{
		command("failCommand", "alwaysOn", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 5}}),
		command("failCommand", d("times", 3), bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 1e300}}),
		command("failCommand", d("activationProbability", bson.NewDecimal128(1, 1)), nil),
	} {
		f.Add([]byte(raw(f, c)))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if bson.Raw(in).Validate() != nil {
			return
		}
		if _, err := bson.Raw(in).IndexErr(0); err != nil {
			return
		}
		r := failpoint.NewRegistry(half)
		if _, err := r.Configure(in); err != nil {
			return
		}
		if got, hit, _ := r.Before(find); hit && got.Block < 0 {
			t.Errorf("blocks for %v", got.Block)
		}
		r.After(find)
	})
}
