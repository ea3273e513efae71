package reference

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	_ "github.com/unified-test-runner/utr/internal/wire42" // labels by code need a server before 4.4
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// story is what a client does while servers answer as they are told to, and
// what has to come of it. All times are those of a synctest bubble.
type story struct {
	why string
	// set holds words: the kind of deployment (replicaset if there is none), and
	// settings as in settingsOf. All others are options of the connection string.
	set string
	// do names operations of the table below, with more arguments as JSON; "; "
	// is between them. "@" in front passes them the session.
	do string
	// reply is COMMAND=STEP,STEP for each command that does not simply succeed.
	// A command is that of one member if its number is before it: 1:find.
	reply string
	// want is what was sent, each command with what it waited for and the fields
	// that show= names behind slashes, and the error of each operation behind "!".
	want string
}

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
	for _, letter := range strings.Split(word, "") {
		out = append(out, letters[letter])
	}
	return out
}

// stepsOf reads steps such as 91/w, overload*2, close, concern:91/w, write:11000,
// 50ms (which is answered late), ok, and cursor:7, each with a factor if need be.
func stepsOf(t testing.TB, text string) (out []step) {
	for _, word := range strings.Split(text, ",") {
		word, factor, repeated := strings.Cut(word, "*")
		n := 1
		if repeated {
			n, _ = strconv.Atoi(factor)
		}
		var s step
		if wait, rest, waits := strings.Cut(word, "+"); waits {
			s.wait, _ = time.ParseDuration(wait)
			word = rest
		}
		what, more, _ := strings.Cut(word, ":")
		of, labels, labelled := strings.Cut(more, "/")
		if more == "" {
			what, labels, labelled = strings.Cut(what, "/")
		}
		number, _ := strconv.Atoi(of)
		switch what {
		case "ok":
		case "close":
			s.close = true
		case "overload":
			s.reply = fails(462, labelOverloaded, labelRetryable).reply
			if long, is := strings.CutSuffix(of, "L"); is {
				n, _ := strconv.ParseInt(long, 10, 64)
				s.reply = append(s.reply, bson.E{Key: "baseBackoffMS", Value: n})
			} else if more != "" {
				s.reply = append(s.reply, bson.E{Key: "baseBackoffMS", Value: int32(number)})
			}
		case "concern":
			of, message, _ := strings.Cut(of, ":")
			number, _ := strconv.Atoi(of)
			s.reply = d("ok", 1.0, "n", int32(1), "value", nil, "writeConcernError", d("code", int32(number), "errmsg",
				strings.ReplaceAll(cmp.Or(message, "scripted concern"), "-", " ")))
		case "write": // perhaps with a write concern error beside it
			of, concern, both := strings.Cut(of, "&")
			number, _ := strconv.Atoi(of)
			s.reply = d("ok", 1.0, "n", int32(0), "writeErrors", bson.A{d("index", 0, "code", int32(number), "errmsg", "scripted write")})
			if both {
				number, _ := strconv.Atoi(concern)
				s.reply = append(s.reply, bson.E{Key: "writeConcernError", Value: d("code", int32(number), "errmsg", "scripted concern")})
			}
		case "bulk", "bulkbad": // so many writes are done, and then one is not
			var docs []bson.D
			for i := range number {
				docs = append(docs, d("ok", 1.0, "idx", i, "n", 1))
			}
			if what == "bulkbad" {
				docs = append(docs, d("ok", 0.0, "idx", number, "code", 11000, "errmsg", "twice"))
			}
			s.reply = append(d("ok", 1.0, "nInserted", number), cursorOf("firstBatch", 0, "admin.$cmd.bulkWrite", docs...)...)
		case "empty":
			s.reply = append(d("ok", 1.0), cursorOf("firstBatch", int64(number), "db.coll")...)
		case "cursor", "batch":
			s.reply = append(d("ok", 1.0), cursorOf(map[string]string{"cursor": "firstBatch", "batch": "nextBatch"}[what], int64(number), "db.coll",
				d("_id", d("_data", fmt.Sprint("token", number))))...)
		default:
			code, err := strconv.Atoi(what)
			if err != nil {
				t.Fatalf("%q is not a step", word)
			}
			s.reply = fails(int32(code)).reply
			if more != "" {
				s.reply[1].Value = strings.ReplaceAll(of, "-", " ")
			}
		}
		if labelled {
			s.reply = append(s.reply, bson.E{Key: "errorLabels", Value: labelsOf(labels)})
		}
		out = append(out, slices.Repeat([]step{s}, n)...)
	}
	return out
}

// errorInWords gives an error as stories have it: its code or kind, and its
// labels in the order in which it has them.
func errorInWords(e *result.Error) string {
	if e == nil {
		return ""
	}
	if e.Unsupported != "" {
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

// play tells a story. What it returns is to be what the story wants.
func (st story) play(t *testing.T) (told string) {
	t.Helper()
	var o Options
	entity := d()
	kind, policy, show, callback, members := "replicaset", "", []string(nil), (*result.Error)(nil), 0
	var uri []string
	var more func(result.Outcome) string
	jitter, pass, wire, batch, bucket, untimed, happened, inside := 1.0, time.Duration(0), 25, 100000, 0, false, false, "@insert"
	for _, word := range strings.Fields(st.set) {
		key, value, _ := strings.Cut(word, "=")
		number, _ := strconv.Atoi(value)
		switch key {
		case "single", "replicaset", "sharded", "load-balanced":
			kind = key
		case "members":
			members = number
		case "jitter":
			jitter, _ = strconv.ParseFloat(value, 64)
		case "wire":
			wire = number
		case "batch":
			batch = number
		case "policy":
			policy = value
		case "bucket":
			bucket = number
		case "backoff":
			o.Backoff = Backoff(value)
		case "heartbeat":
			o.Heartbeat, _ = time.ParseDuration(value)
		case "events":
			happened = true
		case "api": // its fields, as JSON without braces
			entity = d("serverApi", parsed(t, "{"+value+"}"))
		case "user":
			uri = append(uri, "authMechanism=PLAIN")
		case "untimed":
			untimed = true
		case "message":
			more = func(out result.Outcome) string {
				if out.Err == nil {
					return ""
				}
				return ": " + out.Err.Message
			}
		case "delays":
			more = delaysOf
		case "rules":
			more = rulesOf
		case "results":
			more = resultsOf
		case "show":
			show = strings.Split(value, ",")
		case "callback":
			callback = &result.Error{Message: "mine", Kind: "mine"}
			if code, labels, ok := strings.Cut(value, "/"); ok {
				n, _ := strconv.Atoi(code)
				callback = &result.Error{Message: "mine", Kind: "server", Code: int32(n), HasCode: true, Labels: labelsOf(labels)}
			}
		case "inside": // what the callback of withTransaction does
			inside = value
		case "pass":
			pass, _ = time.ParseDuration(value)
		default:
			uri = append(uri, word)
		}
	}
	if members == 0 {
		members = map[string]int{"sharded": 2}[kind]
	}
	synctest.Test(t, func(t *testing.T) {
		s := script(t, kind, members)
		s.wire, s.batch = int32(wire), int32(batch)
		for _, word := range strings.Fields(st.reply) {
			command, steps, _ := strings.Cut(word, "=")
			s.on(strings.ReplaceAll(command, ":", " "), stepsOf(t, steps)...)
		}
		o.Policy, o.dial, o.Random = policy, s.dial, func() float64 { return jitter }
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if bucket > 0 {
			e.(*driver).policy.Overload.Bucket.Capacity = retry.Tokens(bucket) * retry.Token
		}
		address := s.uri(uri...)
		if slices.Contains(uri, "authMechanism=PLAIN") {
			address = strings.Replace(address, "//", "//user:password@", 1)
		}
		b := openOn(t, e, address, entity)
		if strings.Contains(st.do, "@") || strings.Contains(st.do, "start") || strings.Contains(st.do, "withTransaction") {
			b.entity("session", "session", d("client", "client"))
		}
		b.callback = func() *result.Error {
			var out result.Outcome
			for _, op := range strings.Split(inside, ",") {
				out = b.perform(op)
			}
			if time.Sleep(pass); callback != nil {
				return callback
			}
			return out.Err
		}
		at, events, marks := 0, 0, []int(nil)
		var background sync.WaitGroup
		for _, op := range strings.Split(st.do, "; ") {
			begun := time.Now()
			if later, ok := strings.CutPrefix(op, "~"); ok {
				background.Go(func() { b.perform(later) })
				synctest.Wait()
				continue
			}
			out := b.perform(op)
			told += s.transcript(&at, begun, show, untimed) + errorInWords(out.Err)
			synctest.Wait()
			marks = append(marks, len(b.events("client")))
			if more != nil {
				told += more(out)
			}
			if !strings.Contains(st.do, "~") {
				events = b.verify(events, out, strings.Contains(op, "withTransaction"))
			}
		}
		if strings.Contains(st.do, "~") {
			s.cut()
			background.Wait()
		}
		if happened {
			if err := b.Close(t.Context(), "client"); err != nil {
				t.Error(err)
			}
			told += ":" + b.happened(marks)
		}
		s.mu.Lock()
		first := slices.Clone(s.first)
		s.mu.Unlock()
		if len(first) == 0 {
			t.Error("nobody said hello")
		}
		for _, hello := range first {
			want := map[string]string{"": `"2"`, "client-backpressure@2025-12": "true"}[policy]
			if got := hello.Lookup("backpressure").String(); got != want {
				t.Errorf("a handshake under %q has backpressure %s, want %s", policy, got, want)
			}
		}
	})
	return strings.TrimSpace(told)
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
	if err := bson.UnmarshalExtJSON([]byte(json), false, &out); err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return out
}

// transcript gives what was sent since the last time.
func (s *scripted) transcript(at *int, begun time.Time, show []string, untimed bool) (out string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for *at < len(s.seen) {
		r := s.seen[*at]
		if wait := r.at.Sub(begun).Round(time.Millisecond); wait > 0 && !untimed {
			out += " " + wait.String()
		}
		begun = r.after
		out += " " + strings.TrimSuffix(r.name, "Transaction")
		for _, path := range show {
			value := "-"
			if path == "member" {
				value = fmt.Sprint(r.member)
			} else if path == "place" { // by order of appearance
				value = fmt.Sprint(slices.IndexFunc(s.seen, func(o received) bool { return o.member == r.member }))
			} else if path == "session" {
				value = fmt.Sprint(slices.IndexFunc(s.seen, func(o received) bool { return o.body.Lookup("lsid").Equal(r.body.Lookup("lsid")) }))
			} else if path == "conn" {
				value = fmt.Sprint(slices.IndexFunc(s.seen, func(o received) bool { return o.conn == r.conn }))
			} else if path, asks := strings.CutSuffix(path, "?"); asks {
				if _, err := r.body.LookupErr(strings.Split(path, ".")...); err == nil {
					value = "yes"
				}
			} else if v, err := r.body.LookupErr(strings.Split(path, ".")...); err == nil {
				if n, ok := enginekit.Integer(v); ok {
					value = fmt.Sprint(n)
				} else if a, ok := v.ArrayOK(); ok {
					values, _ := a.Values()
					value = fmt.Sprintf("[%d]", len(values))
				} else {
					value = strings.Trim(v.String(), `"`)
				}
			}
			out += "/" + value
		}
		*at++
	}
	if wait := time.Since(begun).Round(time.Millisecond); wait > 0 && !untimed {
		out += " " + wait.String()
	}
	return out
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

// resultsOf gives the places of the writes of a client bulk write that were done.
func resultsOf(out result.Outcome) string {
	value := out.Value
	if out.Err != nil {
		value = out.Err.Partial
	}
	if value.Type == 0 {
		return ""
	}
	var places []string
	if all, ok := value.Document().Lookup("insertResults").DocumentOK(); ok {
		elements, _ := all.Elements()
		for _, e := range elements {
			places = append(places, e.Key())
		}
	}
	return " =" + strings.Join(places, ",")
}

// verify looks at the events of an operation that began at a number: each
// attempt has a requestId of its own and ends once; those of one command have
// one operationId, and a number that they share comes with one session. An error
// says which server it comes from. It gives the number of events.
func (b *bench) verify(from int, out result.Outcome, again bool) int {
	b.t.Helper()
	events := b.events("client")
	open, seen := map[int64]result.Event{}, map[int64]bool{}
	numbers := map[string]result.Event{}
	addresses := map[string]bool{}
	for i, e := range events[from:] {
		if e.Sequence != int64(from+i+1) {
			b.t.Errorf("event %d has number %d", from+i+1, e.Sequence)
		}
		if e.Command == nil {
			continue
		}
		id := e.Command.RequestID
		if e.Type != result.CommandStarted {
			if open[id].Command == nil || open[id].Command.OperationID != e.Command.OperationID {
				b.t.Errorf("%s ends, and was not begun", e.Command.CommandName)
			}
			if f := e.Command.Failure; e.Type == result.CommandFailed && (out.Err == nil || f == nil || f.Code == out.Err.Code) ||
				out.Err != nil && len(out.Err.WriteConcernErrors)+len(out.Err.WriteErrors) > 0 {
				addresses[e.Address] = true
			}
			delete(open, id)
			continue
		}
		if seen[id] {
			b.t.Errorf("%s has the requestId of another command", e.Command.CommandName)
		}
		open[id], seen[id] = e, true
		number, err := e.Command.Command.LookupErr("txnNumber")
		if err != nil {
			continue
		}
		if number.Type != bson.TypeInt64 || number.Int64() < 1 {
			b.t.Errorf("the number %v", number)
		}
		key := e.Command.CommandName + number.String()
		if before, ok := numbers[key]; ok && (before.Command.OperationID != e.Command.OperationID && !again ||
			!before.Command.Command.Lookup("lsid").Equal(e.Command.Command.Lookup("lsid"))) {
			b.t.Errorf("attempts of one write differ: %v, %v", before, e)
		}
		numbers[key] = e
	}
	if len(open) > 0 {
		b.t.Errorf("%v did not end", slices.Collect(maps.Keys(open)))
	}
	if out.Err != nil && out.Err.Server != "" && len(addresses) > 0 && !addresses[out.Err.Server] {
		b.t.Errorf("the error is said to come from %s, it was %v", out.Err.Server, addresses)
	}
	return len(events)
}
