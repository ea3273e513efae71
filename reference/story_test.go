package reference

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/testkit"
	_ "github.com/unified-test-runner/utr/internal/wire42" // labels by code need a server before 4.4
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A story is what a client does while servers answer as they are told to, and
// what comes of it. All times are those of a synctest bubble. Its lines:
//
//	client WORDS   the kind of deployment (replicaset if there is none), and settings
//	               (ownWords); all others are options of the connection string
//	server COMMAND=STEP,STEP …   for commands that do not simply succeed; 1:find is
//	               that of one member
//	> OPERATION ARGUMENTS   one of those below, or OBJECT.NAME; "@" passes it the
//	               session, "~" leaves it to go on while the next ones begin
//	    what was sent, each command with what it waited for and the fields that
//	    show= names behind slashes, and the error of the operation behind "!"

// known are operations that work, and the command that each of them sends first.
var known = map[string]struct{ object, operation, args, command string }{
	"find":         {"collection", "find", `{"filter":{}}`, "find"},
	"insert":       {"collection", "insertOne", `{"document":{"_id":1}}`, "insert"},
	"insertMany":   {"collection", "insertMany", `{"documents":[{"_id":1}]}`, "insert"},
	"updateMany":   {"collection", "updateMany", `{"filter":{},"update":{"$set":{"a":1}}}`, "update"},
	"create":       {"database", "createCollection", `{"collection":"made"}`, "create"},
	"ping":         {"database", "runCommand", `{"commandName":"ping","command":{"ping":1}}`, "ping"},
	"start":        {"session", "startTransaction", `{}`, ""},
	"commit":       {"session", "commitTransaction", `{}`, "commitTransaction"},
	"abort":        {"session", "abortTransaction", `{}`, "abortTransaction"},
	"cursor":       {"collection", "createFindCursor", `{"filter":{},"batchSize":1}`, "find"},
	"watch":        {"collection", "createChangeStream", `{"pipeline":[]}`, "aggregate"},
	"next":         {"saved", "iterateOnce", `{}`, "getMore"},
	"change":       {"saved", "iterateUntilDocumentOrError", `{}`, "getMore"},
	"close":        {"saved", "close", `{}`, "killCursors"},
	"dropDatabase": {"client", "dropDatabase", `{"database":"other"}`, "dropDatabase"},
	"bulk": {"collection", "bulkWrite", `{"requests":[{"insertOne":{"document":{"_id":1}}},
		{"updateOne":{"filter":{"_id":1},"update":{"$set":{"a":1}}}}]}`, "insert"},
	"clientBulk":      {"client", "clientBulkWrite", `{"models":[{"insertOne":{"namespace":"db.coll","document":{"_id":1}}}]}`, "bulkWrite"},
	"withTransaction": {"session", "withTransaction", `{}`, "insert"},
}

// labels of errors, by the letter that stands for them.
var letters = map[string]string{"o": labelOverloaded, "r": labelRetryable, "w": labelWrite, "n": "NoWritesPerformed",
	"t": labelTransient, "u": labelUnknownCommit, "c": labelResumable}

func labelsOf(word string) (out []string) {
	for _, letter := range word {
		out = append(out, letters[string(letter)])
	}
	return out
}

var stepForm = regexp.MustCompile(`^(?:([\d.]+[a-z]+)\+)?(\w+)(?::([^/*]*))?(?:/(\w+))?(?:\*(\d+))?$`)

// stepsOf reads steps such as 91/w, overload*2, close, concern:91/w, write:11000,
// 50ms+ok (which is answered late), and cursor:7, each with a factor if need be.
func stepsOf(t testing.TB, text string) (out []step) {
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	for word := range strings.SplitSeq(text, ",") {
		m := stepForm.FindStringSubmatch(word)
		if m == nil {
			t.Fatalf("%q is not a step", word)
		}
		s, of := step{close: m[2] == "close"}, m[3]
		s.wait, _ = time.ParseDuration(m[1])
		switch m[2] {
		case "ok", "close":
		case "overload":
			s.reply = fails(462, labelOverloaded, labelRetryable).reply
			if long, is := strings.CutSuffix(of, "L"); is {
				s.reply = append(s.reply, bson.E{Key: "baseBackoffMS", Value: int64(number(long))})
			} else if of != "" {
				s.reply = append(s.reply, bson.E{Key: "baseBackoffMS", Value: int32(number(of))})
			}
		case "concern":
			code, message, _ := strings.Cut(of, ":")
			s.reply = d("ok", 1.0, "n", int32(1), "value", nil, "writeConcernError", d("code", int32(number(code)), "errmsg",
				strings.ReplaceAll(cmp.Or(message, "scripted concern"), "-", " ")))
		case "write": // perhaps with a write concern error beside it
			code, concern, both := strings.Cut(of, "&")
			s.reply = d("ok", 1.0, "n", int32(0), "writeErrors", bson.A{d("index", 0, "code", int32(number(code)), "errmsg", "scripted write")})
			if both {
				s.reply = append(s.reply, bson.E{Key: "writeConcernError", Value: d("code", int32(number(concern)), "errmsg", "scripted concern")})
			}
		case "bulk", "bulkbad": // so many writes are done, and then one is not
			var docs []bson.D
			for i := range number(of) {
				docs = append(docs, d("ok", 1.0, "idx", i, "n", 1))
			}
			if m[2] == "bulkbad" {
				docs = append(docs, d("ok", 0.0, "idx", number(of), "code", 11000, "errmsg", "twice"))
			}
			s.reply = append(d("ok", 1.0, "nInserted", number(of)), cursorOf("firstBatch", 0, "admin.$cmd.bulkWrite", docs...)...)
		case "empty":
			s.reply = append(d("ok", 1.0), cursorOf("firstBatch", int64(number(of)), "db.coll")...)
		case "cursor", "batch":
			s.reply = append(d("ok", 1.0), cursorOf(map[string]string{"cursor": "firstBatch", "batch": "nextBatch"}[m[2]], int64(number(of)),
				"db.coll", d("_id", d("_data", "token"+of)))...)
		default:
			s.reply = fails(int32(number(m[2]))).reply
			if of != "" {
				s.reply[1].Value = strings.ReplaceAll(of, "-", " ")
			}
		}
		if m[4] != "" {
			s.reply = append(s.reply, bson.E{Key: "errorLabels", Value: labelsOf(m[4])})
		}
		out = append(out, slices.Repeat([]step{s}, max(number(m[5]), 1))...)
	}
	return out
}

// errorInWords gives an error as stories have it: its code or kind, and its
// labels in the order in which it has them.
func errorInWords(e *result.Error) string {
	switch {
	case e == nil:
		return ""
	case e.Unsupported != "":
		return " !unsupported"
	}
	word := e.Kind
	if e.HasCode && e.Kind != "timeout" {
		word = fmt.Sprint(e.Code)
	}
	for _, c := range e.WriteConcernErrors {
		word += fmt.Sprintf("+%d", c.Lookup("code").Int32())
	}
	if len(e.Labels) > 0 {
		word += "/"
	}
	for _, l := range e.Labels {
		for letter, label := range letters {
			if l == label {
				word += letter
			}
		}
	}
	if e.Timeout {
		word += "/timeout"
	}
	for _, at := range slices.Sorted(maps.Keys(e.WriteErrors)) {
		word += fmt.Sprintf("[%d]", at)
	}
	return " !" + strings.ReplaceAll(word, " ", "-")
}

// ownWords are the words of a story's set that are not options of the connection
// string.
var ownWords = strings.Fields("single replicaset sharded load-balanced members jitter wire batch policy bucket backoff heartbeat events api user " +
	"untimed message delays rules results show callback inside pass value")

// play tells a story anew.
func play(t *testing.T, text string) (told string) {
	t.Helper()
	var settings, replies string
	var ops []string
	for line := range strings.Lines(text) {
		if op, ok := strings.CutPrefix(line, "> "); ok {
			ops = append(ops, strings.TrimSpace(op))
		} else if words, ok := strings.CutPrefix(line, "client "); ok {
			settings, told = words, told+line
		} else if words, ok := strings.CutPrefix(line, "server "); ok {
			replies, told = words, told+line
		}
	}
	set, kind, entity, userInfo, uri := map[string]string{}, "replicaset", d(), "", []string(nil)
	for word := range strings.FieldsSeq(settings) {
		key, value, _ := strings.Cut(word, "=")
		if !slices.Contains(ownWords, key) {
			uri = append(uri, word)
		} else if set[key] = value; slices.Contains(ownWords[:4], key) {
			kind = key
		}
	}
	has := func(key string) bool { _, ok := set[key]; return ok }
	number := func(key, other string) float64 { n, _ := strconv.ParseFloat(cmp.Or(set[key], other), 64); return n }
	wait := func(key string) time.Duration { d, _ := time.ParseDuration(set[key]); return d }
	if has("api") { // its fields, as JSON without braces
		entity = d("serverApi", parsed(t, "{"+set["api"]+"}"))
	}
	if has("user") {
		userInfo, uri = "user:password@", append(uri, "authMechanism=PLAIN")
	}
	var callback *result.Error
	if code, labels, _ := strings.Cut(set["callback"], "/"); code == "mine" {
		callback = &result.Error{Message: "mine", Kind: "mine"}
	} else if n, _ := strconv.Atoi(code); n > 0 {
		callback = &result.Error{Message: "mine", Kind: "server", Code: int32(n), HasCode: true, Labels: labelsOf(labels)}
	}
	synctest.Test(t, func(t *testing.T) {
		s := script(t, kind, int(number("members", map[string]string{"sharded": "2"}[kind])))
		s.wire, s.batch = int32(number("wire", "25")), int32(number("batch", "100000"))
		for word := range strings.FieldsSeq(replies) {
			command, steps, _ := strings.Cut(word, "=")
			s.on(strings.ReplaceAll(command, ":", " "), stepsOf(t, steps)...)
		}
		e, err := New(Options{Policy: set["policy"], Backoff: Backoff(set["backoff"]), Heartbeat: wait("heartbeat"), dial: s.dial,
			Random: func() float64 { return number("jitter", "1") }})
		testkit.Check(t, err)
		if has("bucket") {
			e.(*driver).policy.Overload.Bucket.Capacity = retry.Tokens(number("bucket", "")) * retry.Token
		}
		b := openOn(t, e, strings.Replace(s.uri(uri...), "//", "//"+userInfo, 1), entity)
		if slices.ContainsFunc(ops, func(op string) bool {
			return op[0] == '@' || strings.HasPrefix(op, "start") || strings.HasPrefix(op, "with")
		}) {
			b.entity("session", "session", d("client", "client"))
		}
		b.callback = func() *result.Error {
			var out result.Outcome
			for op := range strings.SplitSeq(cmp.Or(set["inside"], "@insert"), ",") {
				out = b.perform(op)
			}
			time.Sleep(wait("pass"))
			return cmp.Or(callback, out.Err)
		}
		at, events, marks, concurrent := 0, 0, []int(nil), strings.Contains(text, "> ~")
		var background sync.WaitGroup
		line := func(words string) {
			if words = strings.TrimSpace(words); words != "" {
				told += "    " + words + "\n"
			}
		}
		for _, op := range ops {
			begun := time.Now()
			told += "> " + op + "\n"
			if later, ok := strings.CutPrefix(op, "~"); ok {
				background.Go(func() { b.perform(later) })
				synctest.Wait()
				continue
			}
			out := b.perform(op)
			synctest.Wait() // until what has no answer has come
			came := s.transcript(&at, begun, strings.Split(set["show"], ","), has("untimed")) + errorInWords(out.Err)
			marks = append(marks, len(b.events("client")))
			for word, more := range map[string]func(result.Outcome) string{
				"message": messageOf, "delays": delaysOf, "rules": rulesOf, "results": resultsOf, "value": keysOf} {
				if has(word) {
					came += more(out)
				}
			}
			line(came)
			if !concurrent {
				events = b.verify(events, out, strings.Contains(op, "withTransaction"))
			}
		}
		if concurrent {
			s.cut()
			background.Wait()
		}
		if has("events") {
			testkit.Check(t, b.Close(t.Context(), "client"))
			line("events:" + b.happened(marks))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.first) == 0 {
			t.Error("nobody said hello")
		}
		for _, hello := range s.first {
			testkit.Equal(t, "backpressure in a handshake", hello.Lookup("backpressure"),
				map[string]string{"": `"2"`, "client-backpressure@2025-12": "true"}[set["policy"]])
		}
	})
	return told
}

// perform performs an operation that is written as stories have it.
func (b *bench) perform(text string, more ...bson.E) result.Outcome {
	b.t.Helper()
	name, arguments, _ := strings.Cut(text, " ")
	name, inSession := strings.CutPrefix(name, "@")
	op := known[name]
	if op.object == "" {
		op.object, op.operation, _ = strings.Cut(name, ".")
	}
	if inSession {
		more = append([]bson.E{{Key: "session", Value: "session"}}, more...)
	}
	var args bson.D
	for _, some := range []bson.D{parsed(b.t, op.args), parsed(b.t, arguments), more} {
		for _, e := range some { // the later one counts
			args = append(slices.DeleteFunc(args, func(a bson.E) bool { return a.Key == e.Key }), e)
		}
	}
	return b.do(op.object, op.operation, args)
}

func parsed(t testing.TB, json string) (out bson.D) {
	t.Helper()
	if json == "" {
		return nil
	}
	testkit.Check(t, bson.UnmarshalExtJSON([]byte(json), false, &out))
	return out
}

// transcript gives what was sent since the last time.
func (s *scripted) transcript(at *int, begun time.Time, show []string, untimed bool) (out string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := func(until time.Time) {
		if wait := until.Sub(begun).Round(time.Millisecond); wait > 0 && !untimed {
			out += " " + wait.String()
		}
	}
	for ; *at < len(s.seen); *at++ {
		r := s.seen[*at]
		pause(r.at)
		begun = r.after
		out += " " + strings.TrimSuffix(r.name, "Transaction")
		for _, path := range show {
			if path != "" {
				out += "/" + s.shown(r, path)
			}
		}
	}
	pause(time.Now())
	return out
}

// shown gives a field of a command; of some, the number of the first command that
// had the same.
func (s *scripted) shown(r received, path string) string {
	first := func(same func(received) bool) string { return fmt.Sprint(slices.IndexFunc(s.seen, same)) }
	switch path {
	case "member":
		return fmt.Sprint(r.member)
	case "place":
		return first(func(o received) bool { return o.member == r.member })
	case "session":
		return first(func(o received) bool { return o.body.Lookup("lsid").Equal(r.body.Lookup("lsid")) })
	case "conn":
		return first(func(o received) bool { return o.conn == r.conn })
	case "*": // all fields but the name and those of every command
		var fields bson.D
		_ = bson.Unmarshal(r.body, &fields)
		fields = slices.DeleteFunc(fields[1:], func(e bson.E) bool { return slices.Contains([]string{"$db", "lsid", "$clusterTime"}, e.Key) })
		text, _ := bson.MarshalExtJSON(fields, false, false)
		return string(text[1 : len(text)-1])
	}
	path, asks := strings.CutSuffix(path, "?")
	v, err := r.body.LookupErr(strings.Split(path, ".")...)
	n, number := enginekit.Integer(v)
	switch {
	case err != nil:
		return "-"
	case asks:
		return "yes"
	case number:
		return fmt.Sprint(n)
	case v.Type == bson.TypeArray:
		values, _ := v.Array().Values()
		return fmt.Sprintf("[%d]", len(values))
	}
	return strings.Trim(v.String(), `"`)
}

// happened gives the events of commands, connections, pools, and until the client
// was closed of heartbeats that failed, with a bar after each operation.
func (b *bench) happened(marks []int) (told string) {
	words := map[result.EventType]string{result.PoolReady: "ready", result.PoolCleared: "cleared", result.PoolClosed: "closed",
		result.ConnectionCheckedOut: "out", result.ConnectionCheckedIn: "in", result.ConnectionClosed: "gone", result.ServerHeartbeatFailed: "missed",
		result.CommandStarted: ">", result.CommandSucceeded: "<", result.CommandFailed: "!"}
	for i, e := range b.events("client") {
		word, ok := words[e.Type]
		if e.Command != nil {
			word = e.Command.CommandName + word
		} else if e.Type == result.PoolCleared && e.Pool.InterruptInUseConnections != nil && *e.Pool.InterruptInUseConnections {
			word = "interrupted"
		}
		if slices.Contains(marks, i) {
			told += " |"
		}
		if ok && (i < marks[len(marks)-1] || e.Type != result.ServerHeartbeatFailed) {
			told += " " + word
		}
	}
	return told
}

func messageOf(out result.Outcome) string {
	if out.Err == nil {
		return ""
	}
	return ": " + out.Err.Message
}

// delaysOf gives the delays that were decided, in milliseconds.
func delaysOf(out result.Outcome) string {
	delays := []float64{}
	for _, d := range out.Decisions {
		if d.Action == retry.BackOff.String() {
			delays = append(delays, d.DelayMS)
		}
	}
	return " " + fmt.Sprint(delays)
}

// rulesOf gives each decision with the rules that led to it.
func rulesOf(out result.Outcome) (told string) {
	for _, d := range out.Decisions {
		told += "; " + d.Action + " " + strings.Join(d.Rules, " ")
	}
	return told
}

// keysOf gives the keys of a document.
func keysOf(out result.Outcome) string { return " =" + strings.Join(keys(out.Value.Document()), ",") }

func keys(doc bson.Raw) (out []string) {
	elements, _ := doc.Elements()
	for _, e := range elements {
		out = append(out, e.Key())
	}
	return out
}

// resultsOf gives the places of the writes of a client bulk write that were done.
func resultsOf(out result.Outcome) string {
	value := out.Value
	if out.Err != nil {
		value = out.Err.Partial
	}
	if value.Type == 0 {
		return ""
	}
	all, _ := value.Document().Lookup("insertResults").DocumentOK()
	return " =" + strings.Join(keys(all), ",")
}

// verify looks at the events of an operation that began at a number: each
// attempt has a requestId of its own and ends once; those of one command have
// one operationId, and a number that they share comes with one session. An error
// says which server it comes from. It gives the number of events.
func (b *bench) verify(from int, out result.Outcome, again bool) int {
	b.t.Helper()
	events, open, seen := b.events("client"), map[int64]int64{}, map[int64]bool{}
	numbers, addresses := map[string]*result.CommandEvent{}, map[string]bool{}
	for i, e := range events[from:] {
		check := func(holds bool, what string) {
			if !holds {
				b.t.Errorf("%s: %+v: %+v", what, e, e.Command)
			}
		}
		check(e.Sequence == int64(from+i+1), "another number")
		c := e.Command
		if c == nil {
			continue
		}
		if e.Type != result.CommandStarted {
			operation, begun := open[c.RequestID]
			check(begun && operation == c.OperationID, "it ends, and was not begun")
			if e.Type == result.CommandFailed && (out.Err == nil || c.Failure == nil || c.Failure.Code == out.Err.Code) ||
				out.Err != nil && len(out.Err.WriteConcernErrors)+len(out.Err.WriteErrors) > 0 {
				addresses[e.Address] = true
			}
			delete(open, c.RequestID)
			continue
		}
		check(!seen[c.RequestID], "the requestId of another command")
		open[c.RequestID], seen[c.RequestID] = c.OperationID, true
		number := c.Command.Lookup("txnNumber")
		if number.Type == 0 {
			continue
		}
		n, ok := number.Int64OK()
		check(ok && n > 0, "not the number of a transaction")
		key := c.CommandName + number.String()
		before, known := numbers[key]
		check(!known || (before.OperationID == c.OperationID || again) && before.Command.Lookup("lsid").Equal(c.Command.Lookup("lsid")),
			"attempts of one write differ")
		numbers[key] = c
	}
	if len(open) > 0 {
		b.t.Errorf("%v did not end", open)
	}
	if out.Err != nil && out.Err.Server != "" && len(addresses) > 0 && !addresses[out.Err.Server] {
		b.t.Errorf("the error is said to come from %s, it was %v", out.Err.Server, addresses)
	}
	return len(events)
}
