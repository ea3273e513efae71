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

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

func init() { topology.SupportedWireVersions.Min = 0 } // dated policies check the version

// A story is a sequence of operations with scripted replies and their results, in a synctest bubble. Its lines:
//
//	client WORDS   the kind of deployment (default: replicaset), settings (ownWords), and URI options
//	server COMMAND=STEP,STEP …   replies other than success; 1:find is for one member
//	raw NAME REPLY   a reply in JSON, for the step raw:NAME
//	> OPERATION ARGUMENTS   a name in known, or OBJECT.NAME; "@" passes the session, "~" runs it in the background
//	> open KIND OPTIONS   opens an entity with the name own-KIND
//	    the sent commands, each after the time it waited for and followed by the fields in show=, separated by slashes;
//	    the error of the operation follows "!"

// known are named operations, and the first command of each.
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
	"clientBulk": {"client", "clientBulkWrite",
		`{"models":[{"insertOne":{"namespace":"db.coll","document":{"_id":1}}}]}`, "bulkWrite"},
	"withTransaction": {"session", "withTransaction", `{}`, "insert"},
}

// letters are the error labels by letter.
var letters = map[string]string{"o": codes.SystemOverloadedError, "r": codes.RetryableError, "w": codes.RetryableWriteError,
	"n": codes.NoWritesPerformed,
	"t": codes.TransientTransactionError, "u": codes.UnknownTransactionCommitResult, "c": codes.ResumableChangeStreamError}

func labelsOf(word string) (out []string) {
	for _, letter := range word {
		out = append(out, letters[string(letter)])
	}
	return out
}

var stepForm = regexp.MustCompile(`^(?:([\d.]+[a-z]+)\+)?(\w+)(?::([^/*]*))?(?:/(\w+))?(?:\*(\d+))?$`)

// stepsOf reads steps such as 91/w, overload*2, close, stray, concern:91/w, write:11000, 50ms+ok (a late reply),
// cursor:7. raws are replies by name.
func stepsOf(t testing.TB, text string, raws map[string]bson.D) (out []step) {
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	for word := range strings.SplitSeq(text, ",") {
		m := stepForm.FindStringSubmatch(word)
		if m == nil {
			t.Fatalf("%q is not a step", word)
		}
		s, of := step{close: m[2] == "close", stray: m[2] == "stray"}, m[3]
		s.wait, _ = time.ParseDuration(m[1])
		switch m[2] {
		case "ok", "close", "stray":
		case "raw":
			if s.reply = raws[of]; s.reply == nil {
				t.Fatalf("there is no reply %s", of)
			}
		case "overload":
			s.reply = fails(462, codes.SystemOverloadedError, codes.RetryableError).reply
			if long, is := strings.CutSuffix(of, "L"); is {
				s.reply = append(s.reply, bson.E{Key: "baseBackoffMS", Value: int64(number(long))})
			} else if of != "" {
				s.reply = append(s.reply, bson.E{Key: "baseBackoffMS", Value: int32(number(of))})
			}
		case "concern":
			code, message, _ := strings.Cut(of, ":")
			s.reply = d("ok", 1.0, "n", int32(1), "value", nil, "writeConcernError", d("code", int32(number(code)), "errmsg",
				strings.ReplaceAll(cmp.Or(message, "scripted concern"), "-", " ")))
		case "write": // optionally with a write concern error
			code, concern, both := strings.Cut(of, "&")
			s.reply = d("ok", 1.0, "n", int32(0), "writeErrors",
				bson.A{d("index", 0, "code", int32(number(code)), "errmsg", "scripted write")})
			if both {
				s.reply = append(s.reply, bson.E{Key: "writeConcernError",
					Value: d("code", int32(number(concern)), "errmsg", "scripted concern")})
			}
		case "bulk", "bulkbad": // a number of successful writes, followed by a failed one
			var docs []bson.D
			for i := range number(of) {
				docs = append(docs, d("ok", 1.0, "idx", i, "n", 1))
			}
			if m[2] == "bulkbad" {
				docs = append(docs, d("ok", 0.0, "idx", number(of), "code", 11000, "errmsg", "twice"))
			}
			s.reply = append(d("ok", 1.0, "nInserted", number(of), "nErrors", len(docs)-number(of)),
				cursorOf("firstBatch", 0, "admin.$cmd.bulkWrite", docs...)...)
		case "empty":
			s.reply = append(d("ok", 1.0), cursorOf("firstBatch", int64(number(of)), "db.coll")...)
		case "cursor", "batch":
			s.reply = append(d("ok", 1.0),
				cursorOf(map[string]string{"cursor": "firstBatch", "batch": "nextBatch"}[m[2]], int64(number(of)),
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

// errorInWords formats an error: its code or kind, and its labels in order.
func errorInWords(e *result.Error) string {
	switch {
	case e == nil:
		return ""
	case e.Unsupported != "":
		return " !unsupported"
	}
	word := e.Kind
	if e.Code != 0 && e.Kind != "timeout" {
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

// ownWords are the settings of a story that are not URI options.
var ownWords = strings.Fields("single replicaset sharded load-balanced members jitter wire batch size sessionless policy bucket backoff heartbeat checks events api user " +
	"untimed message delays rules results partial show callback inside pass value session")

// play plays a story, and returns it with the actual results.
func play(t *testing.T, text string) (transcript string) {
	t.Helper()
	var settings, replies string
	var ops []string
	raws := map[string]bson.D{}
	for line := range strings.Lines(text) {
		if op, ok := strings.CutPrefix(line, "> "); ok {
			ops = append(ops, strings.TrimSpace(op))
		} else if words, ok := strings.CutPrefix(line, "client "); ok {
			settings, transcript = words, transcript+line
		} else if words, ok := strings.CutPrefix(line, "server "); ok {
			replies, transcript = words, transcript+line
		} else if words, ok := strings.CutPrefix(line, "raw "); ok {
			name, reply, _ := strings.Cut(words, " ")
			raws[name], transcript = parsed(t, reply), transcript+line
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
		callback = &result.Error{Message: "mine", Kind: "server", Code: int32(n), Labels: labelsOf(labels)}
	}
	synctest.Test(t, func(t *testing.T) {
		s := script(t, kind, int(number("members", map[string]string{"sharded": "2"}[kind])))
		s.sessionless = has("sessionless")
		s.wire, s.batch = int32(number("wire", "25")), int32(number("batch", "100000"))
		s.message = int32(number("size", "48000000"))
		for word := range strings.FieldsSeq(replies) {
			command, steps, _ := strings.Cut(word, "=")
			s.on(strings.ReplaceAll(command, ":", " "), stepsOf(t, steps, raws)...)
		}
		e, err := New(Options{Policy: set["policy"], Backoff: Backoff(set["backoff"]), Heartbeat: wait("heartbeat"),
			dial:   s.dial,
			Random: func() float64 { return number("jitter", "1") }})
		testkit.Check(t, err)
		if has("bucket") {
			e.(*driver).policy.Overload.Bucket.Capacity = retry.Tokens(number("bucket", "")) * retry.Token
		}
		b := openOn(t, e, strings.Replace(s.uri(uri...), "//", "//"+userInfo, 1), entity)
		if kind == "sharded" { // a retry does not wait for discovery
			synctest.Wait()
		}
		if slices.ContainsFunc(ops, func(op string) bool {
			return op[0] == '@' || strings.HasPrefix(op, "start") || strings.HasPrefix(op, "with")
		}) {
			b.entity("session", "session", d("client", "client", "sessionOptions", parsed(t, "{"+set["session"]+"}")))
		}
		b.callback = func() *result.Error {
			var out result.Outcome
			for op := range strings.SplitSeq(cmp.Or(set["inside"], "@insert"), ",") {
				out = b.perform(strings.Replace(op, "{", " {", 1))
			}
			time.Sleep(wait("pass"))
			return cmp.Or(callback, out.Err)
		}
		at, events, marks, concurrent := 0, 0, []int(nil), strings.Contains(text, "> ~")
		var background sync.WaitGroup
		line := func(words string) {
			if words = strings.TrimSpace(words); words != "" {
				transcript += "    " + words + "\n"
			}
		}
		for _, op := range ops {
			begun := time.Now()
			transcript += "> " + op + "\n"
			if later, ok := strings.CutPrefix(op, "~"); ok {
				background.Go(func() { b.perform(later) })
				synctest.Wait()
				continue
			}
			out := b.perform(op)
			synctest.Wait() // for unacknowledged commands
			got := s.transcript(&at, begun, strings.Split(set["show"], ","), has("untimed")) + errorInWords(out.Err)
			marks = append(marks, len(b.events("client")))
			for word, more := range map[string]func(result.Outcome) string{
				"message": messageOf, "delays": delaysOf, "rules": rulesOf, "results": resultsOf, "partial": partialOf,
				"value": keysOf} {
				if has(word) {
					got += more(out)
				}
			}
			line(got)
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
			line("events:" + b.eventWords(marks))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.first) == 0 {
			t.Error("no hello was received")
		}
		if has("checks") {
			line(fmt.Sprintf("about %d checks", len(s.first)/10*10)) // one may coincide with the end
		}
		for _, hello := range s.first {
			testkit.Equal(t, "backpressure in a handshake", hello.Lookup("backpressure").String(),
				map[string]string{"": `"2"`, "client-backpressure@2025-12": "true"}[set["policy"]])
		}
	})
	return transcript
}

// perform performs an operation in the format of stories.
func (b *bench) perform(text string, more ...bson.E) result.Outcome {
	b.t.Helper()
	name, arguments, _ := strings.Cut(text, " ")
	if name == "open" {
		kind, options, _ := strings.Cut(arguments, " ")
		b.entity(kind, "own-"+kind, parsed(b.t, options))
		return result.Outcome{}
	}
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
		for _, e := range some { // the last one is used
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

// transcript returns the commands since the last call.
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

// shown formats a field of a command. For some fields, it is the index of the first command with the same value.
func (s *scripted) shown(r received, path string) string {
	first := func(same func(received) bool) string { return fmt.Sprint(slices.IndexFunc(s.seen, same)) }
	switch path {
	case "member":
		return fmt.Sprint(r.member)
	case "sequences":
		return cmp.Or(r.sequences, "-")
	case "place":
		return first(func(o received) bool { return o.member == r.member })
	case "session":
		return first(func(o received) bool { return o.body.Lookup("lsid").Equal(r.body.Lookup("lsid")) })
	case "conn":
		return first(func(o received) bool { return o.conn == r.conn })
	case "*": // all fields except the name and generic fields
		var fields bson.D
		_ = bson.Unmarshal(r.body, &fields)
		fields = slices.DeleteFunc(fields[1:],
			func(e bson.E) bool { return slices.Contains([]string{"$db", "lsid", "$clusterTime"}, e.Key) })
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

// eventWords lists the events of commands, connections and pools, and failed heartbeats before the client was closed,
// with a bar after each operation.
func (b *bench) eventWords(marks []int) (transcript string) {
	words := map[result.EventType]string{result.PoolReady: "ready", result.PoolCleared: "cleared",
		result.PoolClosed:           "closed",
		result.ConnectionCheckedOut: "out", result.ConnectionCheckedIn: "in", result.ConnectionClosed: "gone",
		result.ServerHeartbeatFailed: "missed",
		result.CommandStarted:        ">", result.CommandSucceeded: "<", result.CommandFailed: "!"}
	for i, e := range b.events("client") {
		word, ok := words[e.Type]
		if e.CommandName != "" {
			word = e.CommandName + word
		} else if e.Type == result.PoolCleared && e.InterruptInUseConnections != nil && *e.InterruptInUseConnections {
			word = "interrupted"
		}
		if slices.Contains(marks, i) {
			transcript += " |"
		}
		if ok && (i < marks[len(marks)-1] || e.Type != result.ServerHeartbeatFailed) {
			transcript += " " + word
		}
	}
	return transcript
}

func messageOf(out result.Outcome) string {
	if out.Err == nil {
		return ""
	}
	return ": " + out.Err.Message
}

// delaysOf lists the backoffs, in milliseconds.
func delaysOf(out result.Outcome) string {
	delays := []float64{}
	for _, d := range out.Decisions {
		if d.Action == retry.BackOff.String() {
			delays = append(delays, d.DelayMS)
		}
	}
	return " " + fmt.Sprint(delays)
}

// rulesOf lists the decisions with their rules.
func rulesOf(out result.Outcome) (transcript string) {
	for _, d := range out.Decisions {
		transcript += "; " + d.Action + " " + strings.Join(d.Rules, " ")
	}
	return transcript
}

func keysOf(out result.Outcome) string { return " =" + strings.Join(keys(out.Value.Document()), ",") }

func keys(doc bson.Raw) (out []string) {
	elements, _ := doc.Elements()
	for _, e := range elements {
		out = append(out, e.Key())
	}
	return out
}

// partialOf returns the intermediary result of a bulk write that failed.
func partialOf(out result.Outcome) string {
	if out.Err == nil || out.Err.Partial.Type == 0 {
		return ""
	}
	return " " + out.Err.Partial.Document().String()
}

// resultsOf lists the indexes of the successful writes of a client bulk write.
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

// verify checks the events of an operation, starting at an index: each attempt has its own requestId and ends once;
// attempts with the same transaction number have the same operationId and session; and the error names its server. It
// returns the number of events.
func (b *bench) verify(from int, out result.Outcome, again bool) int {
	b.t.Helper()
	events, open, seen := b.events("client"), map[int64]int64{}, map[int64]bool{}
	numbers, addresses := map[string]result.Event{}, map[string]bool{}
	for i, e := range events[from:] {
		check := func(holds bool, what string) {
			if !holds {
				b.t.Errorf("%s: %+v", what, e)
			}
		}
		check(e.Sequence == int64(from+i+1), "wrong sequence number")
		if e.CommandName == "" {
			continue
		}
		if e.Type != result.CommandStarted {
			operation, begun := open[e.RequestID]
			check(begun && operation == e.OperationID, "an end without a start")
			if e.Type == result.CommandFailed && (out.Err == nil || e.Failure == nil || e.Failure.Code == out.Err.Code) ||
				out.Err != nil && len(out.Err.WriteConcernErrors)+len(out.Err.WriteErrors) > 0 {
				addresses[e.Address] = true
			}
			delete(open, e.RequestID)
			continue
		}
		check(!seen[e.RequestID], "a duplicate requestId")
		open[e.RequestID], seen[e.RequestID] = e.OperationID, true
		number := e.Body.Lookup("txnNumber")
		if number.Type == 0 {
			continue
		}
		n, ok := number.Int64OK()
		check(ok && n > 0, "invalid transaction number")
		key := e.CommandName + number.String()
		before, known := numbers[key]
		check(!known || (before.OperationID == e.OperationID || again) &&
			before.Body.Lookup("lsid").Equal(e.Body.Lookup("lsid")),
			"attempts of one write differ")
		numbers[key] = e
	}
	if len(open) > 0 {
		b.t.Errorf("%v did not end", open)
	}
	if out.Err != nil && len(addresses) > 0 && !addresses[out.Err.Server] {
		b.t.Errorf("the error names the server %s, want one of %v", out.Err.Server, addresses)
	}
	return len(events)
}
