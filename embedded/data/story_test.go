package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// shards are the options of data behind a mongos.
var shards = Options{ReplicaSet: true, Sharded: true, ShardName: "s", ShardHost: "s/h:1"}

// TestStories plays testdata/*.txt: commands and what they give, in virtual
// time. A story begins with its topology and what it shows:
//
//	== replica set: what it shows
//
// and goes on with
//
//	# the reason of the next steps
//	{"find": "c"} -> docs { _id: 1 }   the documents of the batch, all of them
//	{"insert": "c"} -> 40414           an error, of the command or its first write
//	{"insert": "c"} -> 11000 text      one whose message or details contain a text
//	{"collMod": "c"} -> is {}          the whole reply
//	{"drop": "c"} -> has n: 1          a part of the reply
//	again -> ok                        the same command succeeds
//	address b:2                        from here on another server is asked,
//	wire 17                            or one of another version
//
// In a command SESSION(1) is lsid, RETRY(1,2) has a txnNumber, too, BEGIN(1,2)
// begins a transaction, IN(1,2) goes on with it, and CURSOR is the latest cursor.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, story := range strings.Split(string(text), "\n\n") {
			title, steps, _ := strings.Cut(strings.TrimPrefix(story, "== "), "\n")
			t.Run(title, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { play(t, title, steps) }) })
		}
	}
}

func play(t *testing.T, title, steps string) {
	topology, _, _ := strings.Cut(title, ":")
	b := newBench(t, map[string]Options{"replica set": {ReplicaSet: true}, "sharded": {Sharded: true}, "mongos": shards}[topology])
	reason, last, cursor := "", "", ""
	for line := range strings.Lines(strings.NewReplacer("\n\t", " ", "\n-> ", " -> ").Replace(steps)) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "# "); ok {
			reason = text
			continue
		}
		if address, ok := strings.CutPrefix(line, "address "); ok {
			b.server.Address = address
			continue
		}
		if wire, ok := strings.CutPrefix(line, "wire "); ok {
			b.server.Wire, _ = strconv.Atoi(wire)
			continue
		}
		text, want, _ := strings.Cut(line, " -> ")
		if text != "again" {
			last = strings.ReplaceAll(inSession(text), "CURSOR", `{"$numberLong":"`+cursor+`"}`)
		}
		reply, err := b.do(last)
		if got := outcome(reply, err, want); got != "" {
			t.Errorf("%s: %s\n\tgave %s", reason, line, got)
		}
		if c, ok := value.Field(reply, "cursor"); ok && err == nil {
			if id, _ := value.Field(c.(bson.D), "id"); id != int64(0) {
				cursor = value.Text(id)
			}
		}
	}
	if len(b.d.locks) != 0 {
		t.Errorf("%d locks are left", len(b.d.locks))
	}
}

var sessionWords = regexp.MustCompile(`(SESSION|RETRY|BEGIN|IN)\((\d)(?:,(\d))?\)`)

// inSession puts the fields of a session in the place of its words.
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

// outcome is "" if a command has ended as a step wants, and else how it ended.
func outcome(reply bson.D, err error, want string) string {
	text, docs := value.Text(reply), ""
	if err == nil {
		docs = docsOf(reply)
	}
	code, details := codeOf(reply, err), text
	if e := (*command.Error)(nil); errors.As(err, &e) {
		details = e.Message + value.Text(e.Extra) + text
	}
	kind, rest, _ := strings.Cut(want, " ")
	number, notNumber := strconv.Atoi(kind)
	fine := false
	switch {
	case notNumber == nil:
		fine = int(code) == number && strings.Contains(details, rest)
	case code != 0 || err != nil:
	case kind == "docs":
		fine = docs == rest
	case kind == "is":
		fine = text == rest
	case kind == "has":
		fine = strings.Contains(text, rest) || strings.Contains(docs, rest)
	default:
		fine = kind == "ok"
	}
	if fine {
		return ""
	}
	return fmt.Sprintf("%s %s, code %d: %s", docs, text, code, details)
}

func TestOutcome(t *testing.T) {
	cursor := func(docs ...bson.Raw) bson.D {
		return bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: docs}}}}
	}
	one := value.Encode(bson.D{{Key: "_id", Value: int32(1)}})
	n := bson.D{{Key: "n", Value: int32(1)}, {Key: "m", Value: int32(2)}}
	failed := bson.D{{Key: "writeErrors", Value: bson.A{bson.D{{Key: "code", Value: int32(11000)}, {Key: "errmsg", Value: "dup"}}}}}
	for _, row := range []struct {
		reason string
		reply  bson.D
		err    error
		want   string
		fine   bool
	}{
		{"success", n, nil, "ok", true},
		{"an error in place of success", nil, command.Errorf(5, "x"), "ok", false},
		{"a write error in place of success", failed, nil, "ok", false},
		{"a step that wants nothing", n, nil, "", false},
		{"the code of an error", nil, command.Errorf(5, "x"), "5", true},
		{"another code", nil, command.Errorf(5, "x"), "6", false},
		{"a code in place of success", n, nil, "5", false},
		{"a write error", failed, nil, "11000 dup", true},
		{"a write error without the text", failed, nil, "11000 dut", false},
		{"a part of the reply", n, nil, "has n: 1", true},
		{"a part that is not there", n, nil, "has n: 2", false},
		{"an error in place of a part", nil, command.Errorf(5, "x"), "has x", false},
		{"the whole reply", n, nil, "is { n: 1, m: 2 }", true},
		{"a part in place of the whole reply", n, nil, "is { n: 1 }", false},
		{"all documents", cursor(one, one), nil, "docs { _id: 1 } { _id: 1 }", true},
		{"a part of the documents", cursor(one, one), nil, "docs { _id: 1 }", false},
		{"no documents", cursor(), nil, "docs", true},
		{"a document in place of none", cursor(one), nil, "docs", false},
		{"no cursor", n, nil, "docs { _id: 1 }", false},
	} {
		if got := outcome(row.reply, row.err, row.want); (got == "") != row.fine {
			t.Errorf("%s: %q", row.reason, got)
		}
	}
}
