package server_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/server"
)

// TestStories plays testdata/*.txt: what clients send, and what the replies must
// contain. Time is virtual. A story begins with
//
//	== Single 8.0 1: kind, version and number of servers, and what it shows
//	parameters {"name": value}
//	user name password    access control is on
//
// and goes on with
//
//	# the reason of the next steps
//	a@1 {"ping": 1}       connection a, to server 1 (0 if not said), sends this
//	-> {"ok": 1.0}        and gets a reply with these fields, or "closed"
//	a -> {"ok": 1.0}      a gets the reply to what it sent earlier
//	after 2s              time passes
//
// Lines that begin with a tab continue the one before, empty lines part stories.
// A reply may stand on the line of its command. In a reply {"$absent": 1} is a
// field that is not there, and {"$has": "text"} a string with this part.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d stories, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, story := range strings.Split(string(text), "\n\n") {
			title, _, _ := strings.Cut(strings.TrimPrefix(story, "== "), "\n")
			t.Run(title, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { play(t, strings.ReplaceAll(story, "\n\t", " ")) })
			})
		}
	}
}

func play(t *testing.T, story string) {
	var config server.Config
	var set *server.Cluster
	var version, reason, last string
	var n int
	clients := map[string]*client{}
	for text := range strings.Lines(story) {
		text = strings.TrimSpace(text)
		at := reason + "\n\t" + text
		key, rest, _ := strings.Cut(text, " ")
		sent, want, answered := strings.Cut(rest, "-> ")
		switch key {
		case "==":
			var kind string
			if _, err := fmt.Sscanf(rest, "%s %s %d:", &kind, &version, &n); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			config.Kind = map[string]server.Kind{"ReplicaSet": server.ReplicaSet, "Sharded": server.Sharded}[kind]
			continue
		case "parameters":
			config.Parameters = extended(t, at, rest)
			continue
		case "user":
			name, password, _ := strings.Cut(rest, " ")
			config.Users = server.NewUsers()
			if err := config.Users.Add("admin", name, password); err != nil {
				t.Fatal(err)
			}
			continue
		case "#":
			reason = rest
			continue
		}
		if set == nil {
			set = joined(t, version, n, config)
		}
		switch key {
		case "after":
			pause, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			time.Sleep(pause)
		case "->":
			want, answered = rest, true
		default:
			name, number, _ := strings.Cut(key, "@")
			if last = name; clients[name] == nil {
				i, _ := strconv.Atoi(number)
				clients[name] = pipe(t, set.Members()[i])
			}
			if sent != "" {
				clients[name].send(0, extended(t, at, sent))
			}
		}
		if answered {
			reply, _ := clients[last].receive()
			if diff := differences(t, at, reply, want); diff != "" {
				t.Errorf("%s\n\t%s: got %s", at, diff, reply)
			}
		}
		synctest.Wait()
	}
}

func extended(t *testing.T, at, text string) bson.D {
	var out bson.D
	text = strings.ReplaceAll(text, "LSID", `{"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}`)
	if err := bson.UnmarshalExtJSON([]byte(text), false, &out); err != nil {
		t.Fatalf("%s: %v in %s", at, err, text)
	}
	return out
}

// differences says how a reply differs from what a story expects, "" if it does
// not.
func differences(t *testing.T, at string, reply bson.Raw, want string) string {
	if reply == nil || want == "closed" {
		if (reply == nil) != (want == "closed") {
			return "the connection was closed, or not"
		}
		return ""
	}
	return lacks("reply", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: reply},
		bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw(t, extended(t, at, want))})
}

// lacks finds the first part of what is wanted that a value does not have.
// Values are equal if their types are, too.
func lacks(path string, got, want bson.RawValue) string {
	wanted, isDocument := want.DocumentOK()
	if list, ok := want.ArrayOK(); ok {
		wanted = bson.Raw(list)
	}
	if text, ok := wanted.Lookup("$has").StringValueOK(); ok && isDocument {
		if s, ok := got.StringValueOK(); !ok || !strings.Contains(s, text) {
			return fmt.Sprintf("%s does not contain %q", path, text)
		}
		return ""
	}
	if got.Type != want.Type || wanted == nil && !got.Equal(want) {
		return fmt.Sprintf("%s is not %s", path, want)
	}
	elements, _ := wanted.Elements()
	have, _ := bson.Raw(got.Value).Elements()
	if wanted != nil && !isDocument && len(have) != len(elements) {
		return fmt.Sprintf("%s does not have %d elements", path, len(elements))
	}
	diff := ""
	for _, e := range elements {
		name := path + "." + e.Key()
		below, err := bson.Raw(got.Value).LookupErr(e.Key())
		inner, _ := e.Value().DocumentOK()
		switch _, present := inner.LookupErr("$absent"); {
		case present != nil:
			diff = cmp.Or(diff, lacks(name, below, e.Value()))
		case err == nil:
			diff = cmp.Or(diff, name+" is there")
		}
	}
	return diff
}

func TestDifferences(t *testing.T) {
	reply := raw(t, d("n", int32(1), "text", "abc", "list", bson.A{int32(1), d("x", int32(1), "y", int32(2))}))
	for _, row := range []struct {
		reason, want string
		equal        bool
	}{
		{"other fields do not matter", `{"n": 1}`, true},
		{"nor do they in a list", `{"list": [1, {"x": 1}]}`, true},
		{"another value", `{"n": 2}`, false},
		{"another type", `{"n": 1.0}`, false},
		{"a missing field", `{"m": 1}`, false},
		{"a missing document", `{"m": {"x": 1}}`, false},
		{"a missing field that must be absent", `{"m": {"$absent": 1}}`, true},
		{"a field that must be absent", `{"n": {"$absent": 1}}`, false},
		{"a longer list", `{"list": [1]}`, false},
		{"another value in a list", `{"list": [1, {"x": 2}]}`, false},
		{"a later difference", `{"n": 1, "text": "abd", "list": [1, {}]}`, false},
		{"a part of a text", `{"text": {"$has": "bc"}}`, true},
		{"a part that is not there", `{"text": {"$has": "ac"}}`, false},
		{"a part of what is not a text", `{"n": {"$has": ""}}`, false},
		{"a reply in place of the end", `closed`, false},
	} {
		if diff := differences(t, row.reason, reply, row.want); (diff == "") != row.equal {
			t.Errorf("%s: %q", row.reason, diff)
		}
	}
	if differences(t, "", nil, "{}") == "" || differences(t, "", nil, "closed") != "" {
		t.Error("a connection that was closed is not told from a reply")
	}
}
