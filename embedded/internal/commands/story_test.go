package commands

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestStories plays commands with their expected results in virtual time. A story begins with its topology and a title:
//
//	== replica set: title
//
// and continues with steps:
//
//	# the reason of the next steps
//	{"find": "c"} -> docs { _id: 1 }   the documents of the batch
//	{"insert": "c"} -> 40414           an error of the command or its first write
//	{"insert": "c"} -> 11000 text      an error whose message or details contain a text
//	{"collMod": "c"} -> is {}          the whole reply
//	{"drop": "c"} -> has n: 1          a part of the reply
//	{"update": "c", …} -> fails 40324  an error of the command, not of a write
//	again -> ok                        the same command succeeds
//	{"drop": "c"} -> error             an error with any code
//	waits {"find": "c"}                starts a command, which must wait
//	ended -> ok                        the result of the waiting command
//	address b:2                        selects another server
//	wire 17                            selects another server version
//	after 1m                           sleeps
//	took 1s                            the duration of the latest command
//	cancel                             disconnects the client of the waiting command
//	strikes 7, strikes 0               makes commits fail with a code, or succeed again
//	hits NAME                          turns another fail point on
//	kill, end                          kills all sessions; ends session 1
//	cursors 2                          the number of open cursors
//	now                                sets TIME to the time of the latest write
//
// In a command, SESSION(1) is an lsid, RETRY(1,2) also has a txnNumber, BEGIN(1,2) starts a transaction, and IN(1,2)
// continues it. CURSOR is the latest cursor, EARLIER the one before it, and TOKEN the _id of the first document of the
// latest batch.
func TestStories(t *testing.T) {
	testkit.PlaySteps(t, func(t *testing.T, title, steps string) {
		synctest.Test(t, func(t *testing.T) { play(t, title, strings.ReplaceAll(steps, "\n-> ", " -> ")) })
	})
}

// ending is the result of a command.
type ending struct {
	reply bson.D
	err   error
	took  time.Duration
}

func play(t *testing.T, title, steps string) {
	topology, _, _ := strings.Cut(title, ":")
	b := newBench(t, map[string]Options{"replica set": {ReplicaSet: true}, "sharded": {Sharded: true},
		"mongos":          {ReplicaSet: true, Sharded: true, ShardName: "s", ShardHost: "s/h:1"},
		"without scripts": {NoScripting: true}}[topology])
	words := map[string]string{}
	var reason, last string
	var latest ending
	waiting := *b
	cancel := context.CancelFunc(func() {})
	defer func() { cancel() }()
	ended := make(chan ending, 1)
	run := func(b *bench, line string) ending {
		began := time.Now()
		reply, err := b.do(line)
		return ending{reply, err, time.Since(began)}
	}
	verbs := map[string]func(at, rest string){
		"":        func(string, string) {},
		"#":       func(_, rest string) { reason = rest },
		"address": func(_, rest string) { b.server.Address = rest },
		"wire":    func(_, rest string) { n, _ := strconv.Atoi(rest); b.reports(n) },
		"after": func(_, rest string) {
			pause, err := time.ParseDuration(rest)
			testkit.Check(t, err)
			time.Sleep(pause)
		},
		"took":   func(at, rest string) { testkit.Equal(t, at, latest.took.String(), rest) },
		"cancel": func(string, string) { cancel() },
		"strikes": func(_, rest string) {
			code, _ := strconv.Atoi(rest)
			b.strikes = func(string) (failpoint.Failure, bool) {
				return failpoint.Failure{HasCode: true, Code: int32(code)}, code != 0
			}
		},
		"hits": func(_, rest string) {
			b.strikes = func(name string) (failpoint.Failure, bool) { return failpoint.Failure{}, name == rest }
		},
		"kill":    func(string, string) { b.d.KillSessions(nil) },
		"cursors": func(at, rest string) { testkit.Equal(t, at, strconv.Itoa(openCursors(b.d)), rest) },
		"now": func(string, string) {
			now := b.d.OperationTime()
			words["TIME"] = fmt.Sprintf(`{"$timestamp":{"t":%d,"i":%d}}`, now.T, now.I)
		},
		"waits": func(at, rest string) {
			waiting.ctx, cancel = context.WithCancel(t.Context())
			go func() { ended <- run(&waiting, inSession(rest)) }()
			if synctest.Wait(); len(ended) != 0 {
				t.Fatalf("%s: it did not wait", at)
			}
		},
	}
	for line := range strings.Lines(steps) {
		line = strings.TrimSpace(line)
		at := reason + ": " + line
		verb, rest, _ := strings.Cut(line, " ")
		for word, value := range words {
			rest = strings.ReplaceAll(rest, word, value)
			line = strings.ReplaceAll(line, word, value)
		}
		if do, ok := verbs[verb]; ok {
			do(at, rest)
			continue
		}
		text, want, _ := strings.Cut(line, " -> ")
		if text == "ended" {
			began := time.Now()
			latest = <-ended
			latest.took = time.Since(began)
		} else {
			if text != "again" {
				last = inSession(text)
			}
			latest = run(b, last)
		}
		if got := outcome(latest.reply, latest.err, want); got != "" {
			t.Errorf("%s\n\tgave %s", at, got)
		}
		if id := cursorID(latest.reply); id != 0 && fmt.Sprintf(`{"$numberLong":"%d"}`, id) != words["CURSOR"] {
			words["EARLIER"], words["CURSOR"] = words["CURSOR"], fmt.Sprintf(`{"$numberLong":"%d"}`, id)
		}
		if docs := value.As[[]bson.Raw](value.As[bson.D](latest.reply, "cursor"), "nextBatch"); len(docs) > 0 {
			words["TOKEN"] = docs[0].Lookup("_id").String()
		}
	}
	if n := reflect.ValueOf(b.d.Store).Elem().FieldByName("locks").Len(); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

var sessionWords = regexp.MustCompile(`(SESSION|RETRY|BEGIN|IN)\((\d)(?:,(\d))?\)`)

// inSession replaces the session words by fields.
func inSession(text string) string {
	return sessionWords.ReplaceAllStringFunc(text, func(word string) string {
		m := sessionWords.FindStringSubmatch(word)
		fields := `"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAA` + m[2] + `Q==","subType":"04"}}}`
		if m[1] == "SESSION" {
			return fields
		}
		fields += `,"txnNumber":{"$numberLong":"` + m[3] + `"}`
		switch m[1] {
		case "IN":
			fields += `,"autocommit":false`
		case "BEGIN":
			fields += `,"autocommit":false,"startTransaction":true`
		}
		return fields
	})
}

// outcome returns "" if the result of a command is the expected one, and else a description of the result.
func outcome(reply bson.D, err error, want string) string {
	text, docs := value.Text(reply), ""
	if err == nil {
		docs = docsOf(reply)
	}
	code, details := codeOf(reply, err), text
	if e := (*fault.Error)(nil); errors.As(err, &e) {
		details = e.Message + value.Text(e.Extra) + text
	}
	kind, rest, _ := strings.Cut(want, " ")
	number, notNumber := strconv.Atoi(kind)
	ok := false
	switch {
	case notNumber == nil:
		ok = int(code) == number && strings.Contains(details, rest)
	case kind == "error":
		ok = code != 0
	case kind == "fails":
		ok = err != nil && rest == fmt.Sprint(code)
	case code != 0 || err != nil:
	case kind == "docs":
		ok = docs == rest
	case kind == "is":
		ok = text == rest
	case kind == "has":
		ok = strings.Contains(text, rest) || strings.Contains(docs, rest)
	default:
		ok = kind == "ok"
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%s %s, code %d: %s", docs, text, code, details)
}

func TestOutcome(t *testing.T) {
	one := value.Encode(bson.D{{Key: "_id", Value: int32(1)}})
	for _, row := range []struct {
		reply     bson.D
		err       error
		good, bad []string
	}{
		{reply: bson.D{{Key: "n", Value: int32(1)}, {Key: "m", Value: int32(2)}},
			good: []string{"ok", "has n: 1", "is { n: 1, m: 2 }"},
			bad:  []string{"error", "", "5", "has n: 2", "is { n: 1 }", "docs { _id: 1 }"}},
		{reply: ext(t, `{"writeErrors": [{"code": 11000, "errmsg": "dup"}]}`), good: []string{"error", "11000 dup"},
			bad: []string{"ok", "11000 dut", "11", "fails 11000"}},
		{reply: bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: []bson.Raw{one, one}}}}},
			good: []string{"docs { _id: 1 } { _id: 1 }"}, bad: []string{"docs { _id: 1 }", "docs"}},
		{err: fault.Errorf(5, "x"), good: []string{"error", "5", "fails 5"}, bad: []string{"ok", "6", "has x", "fails 6"}},
	} {
		for _, want := range slices.Concat(row.good, row.bad) {
			if got := outcome(row.reply, row.err, want); (got == "") != slices.Contains(row.good, want) {
				t.Errorf("%v, %v, %s: %q", row.reply, row.err, want, got)
			}
		}
	}
}
