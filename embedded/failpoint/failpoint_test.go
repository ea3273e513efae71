package failpoint_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/failpoint"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func raw(t testing.TB, text string) bson.Raw {
	t.Helper()
	var out bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), false, &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

// failCommand is the command that sets it, with a mode and data. Data that names
// no commands applies to find.
func failCommand(t testing.TB, mode, data string) bson.Raw {
	if !strings.Contains(data, `"failCommands"`) {
		data = strings.TrimSuffix(`"failCommands": ["find"], `+data, ", ")
	}
	return raw(t, `{"configureFailPoint": "failCommand", "mode": `+mode+`, "data": {`+data+`}}`)
}

func half() float64 { return 0.5 }

// registry has failCommand set.
func registry(t testing.TB, mode, data string) *failpoint.Registry {
	t.Helper()
	r := failpoint.NewRegistry(half)
	_, err := r.Configure(failCommand(t, mode, data))
	testkit.Check(t, err)
	return r
}

// find is the command that most rows are about.
var find = failpoint.Command{Names: []string{"find"}, Namespace: "d.c", AppName: "app"}

// TestModes asks ten times and compares with what the mode promises.
func TestModes(t *testing.T) {
	for _, row := range []struct{ reason, mode, want string }{
		{"off never strikes", `"off"`, ".........."},
		{"alwaysOn always strikes", `"alwaysOn"`, "xxxxxxxxxx"},
		{"times: 3 strikes thrice", `{"times": 3}`, "xxx......."},
		{"times: 0 strikes once, as on the server", `{"times": 0}`, "x........."},
		{"times may be a double", `{"times": 2.0}`, "xx........"},
		{"times may be a long", `{"times": {"$numberLong": "1"}}`, "x........."},
		{"skip: 4 strikes from the fifth on", `{"skip": 4}`, "....xxxxxx"},
		{"skip: 0 always strikes", `{"skip": 0}`, "xxxxxxxxxx"},
		{"probability 1 always strikes", `{"activationProbability": 1.0}`, "xxxxxxxxxx"},
		{"probability 0 never strikes", `{"activationProbability": 0.0}`, ".........."},
		{"a probability just above the dice strikes", `{"activationProbability": 0.51}`, "xxxxxxxxxx"},
		{"a probability equal to the dice does not", `{"activationProbability": 0.5}`, ".........."},
		{"a probability may be a decimal", `{"activationProbability": {"$numberDecimal": "0.51"}}`, "xxxxxxxxxx"},
	} {
		r := registry(t, row.mode, "")
		got := ""
		for range 10 {
			if _, hit := r.Strike("failCommand", nil); hit {
				got += "x"
			} else {
				got += "."
			}
		}
		// What it skipped does not count.
		if count := strings.Count(row.want, "x"); got != row.want || int(r.Count("failCommand")) != count {
			t.Errorf("%s: got %s and a count of %d, want %s and %d", row.reason, got, r.Count("failCommand"), row.want, count)
		}
	}
}

// TestCounts sees that counts outlive configurations, and that each fail point
// has its own.
func TestCounts(t *testing.T) {
	r := failpoint.NewRegistry(half)
	configure := func(name, mode string, want int32) {
		t.Helper()
		if got, err := r.Configure(raw(t, `{"configureFailPoint": "`+name+`", "mode": `+mode+`}`)); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	configure("failCommand", `{"times": 2}`, 0)
	r.Strike("failCommand", nil)
	r.Strike("failCommand", func(bson.Raw) bool { return false })
	r.Strike("onPrimaryTransactionalWrite", nil)
	configure("failCommand", `"off"`, 1)
	configure("failCommand", `"alwaysOn"`, 1)
	r.Strike("failCommand", nil)
	configure("onPrimaryTransactionalWrite", `"off"`, 0)
	configure("failCommand", `"alwaysOn"`, 2)
	r.Reset()
	if _, hit := r.Strike("failCommand", nil); hit {
		t.Error("a fail point outlived a reset")
	}
	configure("failCommand", `"off"`, 0)
}

// TestRefused compares refusals with the server's words. A real server was
// asked the first eight; failCommandSequence is ours.
func TestRefused(t *testing.T) {
	for _, row := range []struct {
		reason, command string
		code            int32
		message         string
	}{
		{"an unknown name", `"noSuch", "mode": "off"`, 266, "noSuch not found"},
		{"a name that is a number", `5, "mode": "off"`, 266, " not found"},
		{"no mode", `"failCommand"`, 20, "When setting a failpoint, you must supply a 'mode'"},
		{"an unknown mode", `"failCommand", "mode": "sometimes"`, 2, "unknown mode: sometimes"},
		{"negative times", `"failCommand", "mode": {"times": -1}`, 2, "'times' option to 'mode' must be positive"},
		{"times is a string", `"failCommand", "mode": {"times": "x"}`, 14, `Expected field "times" to have numeric type, but found string`},
		{"an unknown document", `"failCommand", "mode": {"nosuch": 1}`, 2,
			"'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or '{activationProbability:p}'"},
		{"a large probability", `"failCommand", "mode": {"activationProbability": 2.0}`, 2,
			"activationProbability must be between 0.0 and 1.0; found 2.0"},
		{"mode is a number", `"failCommand", "mode": 5`, 14, "'mode' must be a string or JSON object"},
		{"negative skip", `"failCommand", "mode": {"skip": -2}`, 2, "'skip' option to 'mode' must be positive"},
		{"more times than 31 bits hold", `"failCommand", "mode": {"times": {"$numberLong": "1099511627776"}}`, 2,
			"'times' option to 'mode' is too large"},
		{"probability is a string", `"failCommand", "mode": {"activationProbability": "x"}`, 14,
			"the value of 'activationProbability' must be a number, found string"},
		{"a sequence does not have a count of its own", `"failCommandSequence", "mode": {"times": 1}, "data": {"sequence": []}`, 2, ""},
		{"a sequence without a mode", `"failCommandSequence", "data": {"sequence": []}`, 2, ""},
		{"a sequence without data", `"failCommandSequence", "mode": "alwaysOn"`, 14, ""},
		{"a sequence that is not an array", `"failCommandSequence", "mode": "alwaysOn", "data": {"sequence": {"a": 1}}`, 14, ""},
		{"an element that is not a document", `"failCommandSequence", "mode": "alwaysOn", "data": {"sequence": [1]}`, 14, ""},
		{"an element that blocks without a time", `"failCommandSequence", "mode": "alwaysOn", "data": {"sequence": [{"blockConnection": true}]}`, 72, ""},
	} {
		r := registry(t, `"alwaysOn"`, "")
		configure := r.Configure
		if strings.HasPrefix(row.command, `"failCommandSequence"`) {
			configure = new(failpoint.Sequence).Configure
		}
		_, err := configure(raw(t, `{"configureFailPoint": `+row.command+"}"))
		var refused *failpoint.Error
		if !errors.As(err, &refused) || refused.Code != row.code || row.message != "" && refused.Message != row.message {
			t.Errorf("%s: got %v, want code %d: %s", row.reason, err, row.code, row.message)
		}
		if _, hit := r.Strike("failCommand", nil); !hit {
			t.Errorf("%s: the fail point is not as it was before", row.reason)
		}
	}
}

// describe says what a failure does.
func describe(f failpoint.Failure, hit bool, err error) string {
	refused := new(failpoint.Error)
	errors.As(err, &refused)
	var does []string
	for _, effect := range []struct {
		text string
		is   bool
	}{
		{"blocks " + f.Block.String(), f.Block != 0}, {"closes", f.CloseConnection}, {fmt.Sprint("code ", f.Code), f.HasCode},
		{fmt.Sprint("labels ", f.Labels), f.Labels != nil}, {"info " + f.ExtraInfo.String(), f.ExtraInfo != nil},
		{fmt.Sprint("refused ", refused.Code), err != nil}, {"nothing", !hit},
	} {
		if effect.is {
			does = append(does, effect.text)
		}
	}
	return strings.Join(does, ", ")
}

// TestFailures asks before and after a command.
func TestFailures(t *testing.T) {
	for _, row := range []struct{ reason, data, want string }{
		{"an error code", `"errorCode": 91`, "code 91"},
		{"a code may be a double", `"errorCode": 91.0`, "code 91"},
		{"another command", `"failCommands": ["insert"], "errorCode": 91`, "nothing"},
		{"an alias of the command", `"failCommands": ["FIND"], "errorCode": 91`, "code 91"},
		{"failCommands is not an array", `"failCommands": "find", "errorCode": 91`, "nothing"},
		{"failCommands with a number", `"failCommands": [1, "find"], "errorCode": 91`, "code 91"},
		{"failCommands is null", `"failCommands": null, "errorCode": 91`, "nothing"},
		{"nothing to do", ``, "nothing"},
		{"labels alone are nothing to do", `"errorLabels": ["a"]`, "nothing"},
		{"a write concern error comes after the command", `"writeConcernError": {"code": 91}`, `then {"code": {"$numberInt":"91"}} []`},
		{"with labels", `"writeConcernError": {"code": 91}, "errorLabels": ["x"]`, `then {"code": {"$numberInt":"91"}} [x]`},
		{"in another namespace", `"writeConcernError": {"code": 91}, "namespace": "x"`, "nothing"},
		{"a write concern error that is not a document", `"writeConcernError": 5`, "nothing"},
		{"a code that is not a number", `"errorCode": "x"`, "nothing"},
		{"configureFailPoint is exempt", `"failCommands": ["find", "configureFailPoint"], "errorCode": 91, "appName": "configures"`, "nothing"},
		{"closing", `"closeConnection": true`, "closes"},
		{"closing is false", `"closeConnection": false`, "nothing"},
		{"blocking, then failing", `"blockConnection": true, "blockTimeMS": 20, "errorCode": 5`, "blocks 20ms, code 5"},
		{"blocking is false", `"blockConnection": false, "blockTimeMS": 20`, "nothing"},
		{"blocking for a day at most", `"blockConnection": true, "blockTimeMS": 1e18`, "blocks 24h0m0s"},
		{"blocking without a time", `"blockConnection": true`, "refused 72"},
		{"blocking for a negative time", `"blockConnection": true, "blockTimeMS": -1`, "refused 72"},
		{"labels", `"errorCode": 5, "errorLabels": ["a", "b"]`, "code 5, labels [a b]"},
		{"no labels, on purpose", `"errorCode": 5, "errorLabels": []`, "code 5, labels []"},
		{"information", `"errorCode": 5, "errorExtraInfo": {"x": "y"}`, `code 5, info {"x": "y"}`},
		{"the right application", `"errorCode": 5, "appName": "app"`, "code 5"},
		{"another application", `"errorCode": 5, "appName": "ap"`, "nothing"},
		{"the right namespace", `"errorCode": 5, "namespace": "d.c"`, "code 5"},
		{"another namespace", `"errorCode": 5, "namespace": "d"`, "nothing"},
		{"unknown fields are ignored", `"errorCode": 5, "failInternalCommands": true, "noSuch": 1`, "code 5"},
	} {
		r := registry(t, `"alwaysOn"`, row.data)
		about := failpoint.Command{Names: []string{"find", "FIND"}, Namespace: "d.c", AppName: "app"}
		if strings.Contains(row.data, `"configures"`) {
			about = failpoint.Command{Names: []string{"configureFailPoint"}, AppName: "configures"}
		}
		f, hit, err := r.Before(about)
		got := describe(f, hit, err)
		if e, labels, later := r.After(about); later {
			got, hit = fmt.Sprint("then ", e, " ", labels), true
		}
		if got != row.want || (r.Count("failCommand") == 1) != hit {
			t.Errorf("%s: got %s, count %d, want %s", row.reason, got, r.Count("failCommand"), row.want)
		}
	}
}

// TestWithin is what the fail points do that a command meets while it runs.
func TestWithin(t *testing.T) {
	const getMore, write = failpoint.FailGetMoreAfterCursorCheckout, failpoint.OnPrimaryTransactionalWrite
	more := failpoint.Command{Names: []string{"getMore"}, Namespace: "d.c", AppName: "app"}
	insert := failpoint.Command{Names: []string{"insert"}, Namespace: "d.c", AppName: "app"}
	for _, row := range []struct {
		reason, name, data string
		about              failpoint.Command
		want               string
	}{
		{"a getMore fails", getMore, `"errorCode": 6`, more, "code 6"},
		{"with an internal error if nobody says otherwise", getMore, ``, more, "code 1"},
		{"of another application", getMore, `"appName": "other"`, more, "nothing"},
		{"of another namespace", getMore, `"namespace": "d.e"`, more, "nothing"},
		{"of this one", getMore, `"namespace": "d.c", "appName": "app"`, more, "code 1"},
		{"only getMore checks a cursor out", getMore, ``, insert, "nothing"},
		{"a write loses its connection", write, ``, insert, "closes"},
		{"it keeps it", write, `"closeConnection": false`, insert, ""},
		{"it fails as well", write, `"failBeforeCommitExceptionCode": 5`, insert, "closes, code 5"},
		{"it only fails", write, `"failBeforeCommitExceptionCode": 5, "closeConnection": false`, insert, "code 5"},
		{"errorCode is a field of others", write, `"errorCode": 5`, insert, "closes"},
		{"every client and namespace is meant", write, `"appName": "other", "namespace": "d.e"`, insert, "closes"},
	} {
		r := failpoint.NewRegistry(half)
		_, err := r.Configure(raw(t, fmt.Sprintf(`{"configureFailPoint": %q, "mode": {"times": 1}, "data": {%s}}`, row.name, row.data)))
		testkit.Check(t, err)
		f, hit := r.Within(row.name, row.about)
		if got := describe(f, hit, nil); got != row.want || r.Count(row.name) == 1 != hit {
			t.Errorf("%s: got %q, count %d, want %q", row.reason, got, r.Count(row.name), row.want)
		}
	}
}

// TestConcurrently sees that {times: n} strikes n times, whoever asks.
func TestConcurrently(t *testing.T) {
	r := registry(t, `{"times": 100}`, "")
	var wg sync.WaitGroup
	var hits atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if _, hit := r.Strike("failCommand", nil); hit {
					hits.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if hits.Load() != 100 {
		t.Errorf("%d strikes, want 100", hits.Load())
	}
}

// TestSequence gives five finds in a row to a sequence, twice, and says what
// each of them gets.
func TestSequence(t *testing.T) {
	for _, row := range []struct {
		reason, elements, fields string
		want                     string // c: code, x: closed, b: blocked, w: write concern error, l: reply lost, .: nothing
		count                    int32  // how often it struck
	}{
		{"one failure, then all is well", `[{"errorCode": 91}]`, "", "c....", 1},
		{"an empty element lets an attempt pass", `[{"errorCode": 91}, {}, {"closeConnection": true}]`, "", "c.x..", 2},
		{"each attempt has its own", `[{"closeConnection": true}, {"errorCode": 6}, {"loseReply": true}, {"writeConcernError": {"code": 91}}]`, "",
			"xclw.", 4},
		{"blocking alone is something", `[{"blockConnection": true, "blockTimeMS": 3}]`, "", "b....", 1},
		{"an empty sequence does nothing", `[]`, "", ".....", 0},
		{"another application uses nothing up", `[{"errorCode": 91}]`, `"appName": "other"`, ".....", 0},
		{"another namespace uses nothing up", `[{"errorCode": 91}]`, `"namespace": "d.e"`, ".....", 0},
	} {
		var s failpoint.Sequence
		for round := range int32(2) { // setting it begins with the first element again
			data := strings.TrimSuffix(`"failCommands": ["find"], "sequence": `+row.elements+`, `+row.fields, ", ")
			_, err := s.Configure(raw(t, `{"configureFailPoint": "failCommandSequence", "mode": "alwaysOn", "data": {`+data+`}}`))
			testkit.Check(t, err)
			if _, hit := s.Next(failpoint.Command{Names: []string{"insert"}}); hit {
				t.Errorf("%s: another command is struck", row.reason)
			}
			got := ""
			for range 5 {
				step, hit := s.Next(find)
				kinds := map[string]bool{"l": step.LoseReply, "w": step.WriteConcernError != nil, "x": step.CloseConnection,
					"c": step.HasCode, "b": step.Block.Milliseconds() == 3, ".": !hit}
				for kind, is := range kinds {
					if is {
						got += kind
					}
				}
			}
			if got != row.want {
				t.Errorf("%s: round %d: got %s, want %s", row.reason, round, got, row.want)
			}
		}
		count, err := s.Configure(raw(t, `{"configureFailPoint": "failCommandSequence", "mode": "off"}`))
		if err != nil || count != 2*row.count {
			t.Errorf("%s: struck %d times, %v, want %d", row.reason, count, err, 2*row.count)
		}
		if _, hit := s.Next(find); hit {
			t.Errorf("%s: it strikes when it is off", row.reason)
		}
	}
}

// FuzzConfigure configures anything and asks.
func FuzzConfigure(f *testing.F) {
	for _, c := range []bson.Raw{
		failCommand(f, `"alwaysOn"`, `"errorCode": 5`), failCommand(f, `{"times": 3}`, `"blockConnection": true, "blockTimeMS": 1e300`),
		failCommand(f, `{"activationProbability": {"$numberDecimal": "0.1"}}`, ""),
	} {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := failpoint.NewRegistry(half)
		if first, err := bson.Raw(in).IndexErr(0); err != nil || first.Validate() != nil || bson.Raw(in).Validate() != nil {
			return
		} else if _, err := r.Configure(in); err != nil {
			return
		}
		if got, hit, _ := r.Before(find); hit && got.Block < 0 {
			t.Errorf("blocks for %v", got.Block)
		}
		r.After(find)
	})
}
