package failpoint_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// failCommand returns a configureFailPoint command. The default of failCommands is find.
func failCommand(t testing.TB, mode, data string) bson.Raw {
	if !strings.Contains(data, `"failCommands"`) {
		data = strings.TrimSuffix(`"failCommands": ["find"], `+data, ", ")
	}
	return testkit.Extended[bson.Raw](t, `{"configureFailPoint": "failCommand", "mode": `+mode+`, "data": {`+data+`}}`)
}

func half() float64 { return 0.5 }

// entered returns the number of hits of a fail point.
func entered(r *failpoint.Registry, name string) int { return int(r.State(name)[2].Value.(int64)) }

func registry(t testing.TB, mode, data string) *failpoint.Registry {
	t.Helper()
	r := failpoint.NewRegistry(half, nil)
	_, err := r.Configure(failCommand(t, mode, data))
	testkit.Check(t, err)
	return r
}

var find = failpoint.Command{Name: "find", Namespace: "d.c", AppName: "app"}

// Each mode, for ten commands. Skipped commands do not count as hits.
func TestModes(t *testing.T) {
	testkit.PlayCases(t, "testdata/modes.txt", func(t *testing.T, in string) string {
		r := registry(t, in, "")
		got := ""
		for range 10 {
			if _, hit := r.During("failCommand", find); hit {
				got += "x"
			} else {
				got += "."
			}
		}
		testkit.Equal(t, "the count", entered(r, "failCommand"), strings.Count(got, "x"))
		return got
	})
}

// Each fail point has its own count, which configurations do not reset.
func TestCounts(t *testing.T) {
	r := failpoint.NewRegistry(half, nil)
	configure := func(name, mode string, want int32) {
		t.Helper()
		if got, err := r.Configure(testkit.Extended[bson.Raw](t,
			`{"configureFailPoint": "`+name+`", "mode": `+mode+`, "data": {"failCommands": ["find"]}}`)); err != nil ||
			got != want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	configure("failCommand", `{"times": 2}`, 0)
	r.During("failCommand", find)
	r.During("failCommand", failpoint.Command{Name: "insert"})
	r.During("onPrimaryTransactionalWrite", find)
	configure("failCommand", `"off"`, 1)
	configure("failCommand", `"alwaysOn"`, 1)
	r.During("failCommand", find)
	configure("onPrimaryTransactionalWrite", `"off"`, 0)
	configure("failCommand", `"alwaysOn"`, 2)
}

// The messages of the first eight errors come from a real server.
func TestRefused(t *testing.T) {
	testkit.PlayCases(t, "testdata/refused.txt", func(t *testing.T, in string) string {
		r := registry(t, `"alwaysOn"`, "")
		_, err := r.Configure(testkit.Extended[bson.Raw](t, in))
		if _, hit := r.During("failCommand", find); !hit {
			t.Error("an invalid configuration changed the fail point")
		}
		refused := new(fault.Error)
		errors.As(err, &refused)
		return fmt.Sprint("error ", refused.Code, " ", refused)
	})
}

func describe(f failpoint.Failure, hit bool) string {
	refused := new(fault.Error)
	errors.As(f.Err, &refused)
	var does []string
	for _, effect := range []struct {
		text string
		is   bool
	}{
		{"blocks " + f.Block.String(), f.Block != 0}, {"closes", f.CloseConnection}, {fmt.Sprint("code ", f.Code), f.HasCode},
		{fmt.Sprint("labels ", f.Labels), f.Labels != nil}, {"info " + f.ExtraInfo.String(), f.ExtraInfo != nil},
		{fmt.Sprint("refused ", refused.Code), f.Err != nil}, {"nothing", !hit},
	} {
		if effect.is {
			does = append(does, effect.text)
		}
	}
	return cmp.Or(strings.Join(does, ", "), "no effect")
}

func TestFailures(t *testing.T) {
	testkit.PlayCases(t, "testdata/failures.txt", func(t *testing.T, in string) string {
		r := registry(t, `"alwaysOn"`, in)
		c := failpoint.Command{Name: "find", Aliases: []string{"FIND"}, Namespace: "d.c", AppName: "app"}
		if strings.Contains(in, `"configures"`) {
			c = failpoint.Command{Name: "configureFailPoint", AppName: "configures"}
		}
		f, hit := r.Before(c)
		got := describe(f, hit)
		if f, later := r.After(c, f); later {
			got, hit = fmt.Sprint("then ", f.WriteConcernError, " ", f.Labels), true
		}
		testkit.Equal(t, "the hit was counted", entered(r, "failCommand") == 1, hit)
		return got
	})
}

// Fail points that are checked while a command runs.
func TestWithin(t *testing.T) {
	testkit.PlayCases(t, "testdata/within.txt", func(t *testing.T, in string) string {
		words := strings.SplitN(in, " ", 3)
		r := failpoint.NewRegistry(half, nil)
		_, err := r.Configure(testkit.Extended[bson.Raw](t,
			fmt.Sprintf(`{"configureFailPoint": %q, "mode": {"times": 1}, "data": %s}`, words[1], words[2])))
		testkit.Check(t, err)
		f, hit := r.During(words[1], failpoint.Command{Name: words[0], Namespace: "d.c", AppName: "app"})
		testkit.Equal(t, "the hit was counted", entered(r, words[1]) == 1, hit)
		return describe(f, hit)
	})
}

// {times: n} hits n times in total, across goroutines.
func TestConcurrently(t *testing.T) {
	r := registry(t, `{"times": 100}`, "")
	var wg sync.WaitGroup
	var hits atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if _, hit := r.During("failCommand", find); hit {
					hits.Add(1)
				}
			}
		})
	}
	wg.Wait()
	testkit.Equal(t, "hits", hits.Load(), 100)
}

// A sequence for five finds, twice: configuring it again restarts it. c is an error code, x a closed connection, b a
// blocked command, w a write concern error, l a lost reply, a dot no effect.
func TestSequence(t *testing.T) {
	testkit.PlayCases(t, "testdata/sequences.txt", func(t *testing.T, in string) string {
		s := failpoint.NewRegistry(half, nil)
		got := ""
		for range 2 {
			_, err := s.Configure(testkit.Extended[bson.Raw](t,
				`{"configureFailPoint": "failCommandSequence", "mode": "alwaysOn",
				"data": {"failCommands": ["find"], "sequence": `+in+`}}`))
			testkit.Check(t, err)
			if _, hit := s.Before(failpoint.Command{Name: "insert"}); hit {
				t.Error("another command is affected")
			}
			for range 5 {
				step, hit := s.Before(find)
				kinds := map[string]bool{"l": step.LoseReply, "w": step.WriteConcernError != nil, "x": step.CloseConnection,
					"c": step.HasCode, "b": step.Block.Milliseconds() == 3, ".": !hit}
				for kind, is := range kinds {
					if is {
						got += kind
					}
				}
			}
			got += " "
		}
		count, err := s.Configure(testkit.Extended[bson.Raw](t,
			`{"configureFailPoint": "failCommandSequence", "mode": "off"}`))
		testkit.Check(t, err)
		if _, hit := s.Before(find); hit {
			t.Error("it is hit when it is off")
		}
		return fmt.Sprint(got, count)
	})
}

// FuzzConfigure configures arbitrary fail points and evaluates them.
func FuzzConfigure(f *testing.F) {
	for _, c := range []bson.Raw{
		failCommand(f, `"alwaysOn"`, `"errorCode": 5`),
		failCommand(f, `{"times": 3}`, `"blockConnection": true, "blockTimeMS": 1e300`),
		failCommand(f, `{"activationProbability": {"$numberDecimal": "0.1"}}`, ""),
	} {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := failpoint.NewRegistry(half, nil)
		if first, err := bson.Raw(in).IndexErr(0); err != nil || first.Validate() != nil || bson.Raw(in).Validate() != nil {
			return
		} else if _, err := r.Configure(in); err != nil {
			return
		}
		if got, hit := r.Before(find); hit && got.Block < 0 {
			t.Errorf("blocks for %v", got.Block)
		}
		r.After(find, failpoint.Failure{})
	})
}
