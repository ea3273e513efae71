package server_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

// TestStories runs stories of requests and expected replies, in virtual time. A story begins with
//
//	== Single 8.0 1: kind, version and number of servers, and a title
//	parameters {"name": value}
//	user name password    enables access control
//	data                  uses a real backend instead of a stub
//
// and continues with
//
//	# the reason for the next steps
//	a@1 {"ping": 1}       connection a, to server 1 (default 0) or @primary, sends a command
//	a+ {"hello": 1}       with exhaustAllowed; a-: with moreToCome
//	-> {"ok": 1.0}        the reply contains these fields, or "closed"
//	+> {"ok": 1.0}        the same, with moreToCome
//	a -> {"ok": 1.0}      the reply to an earlier command of a, or a +> {}
//	after 2s              time passes
//	close a               the client closes the connection
//	kill 2, stepdown
//
// A reply may follow its command on the same line. In a reply {"$absent": 1} is a missing field, and {"$has": "x"} a
// string that contains x. In a command LSID, LSID1 and LSID2 are sessions; TOPOLOGY and CURSOR are the latest
// topologyVersion and cursor of the client.
func TestStories(t *testing.T) {
	testkit.PlaySteps(t, func(t *testing.T, title, steps string) {
		synctest.Test(t, func(t *testing.T) { play(t, title, steps) })
	})
}

func play(t *testing.T, title, steps string) {
	var config server.Config
	var process server.Process
	var set *server.Cluster
	var kind, version, reason, last string
	var n int
	if _, err := fmt.Sscanf(title, "%s %s %d:", &kind, &version, &n); err != nil {
		t.Fatalf("%s: %v", title, err)
	}
	config.Topology = map[string]server.Topology{"ReplicaSet": server.ReplicaSet, "Sharded": server.Sharded}[kind]
	clients := map[string]*client{}
	for text := range strings.Lines(steps) {
		text = strings.TrimSpace(text)
		at := reason + "\n\t" + text
		key, rest, _ := strings.Cut(text, " ")
		switch key {
		case "parameters":
			process.Parameters = extended(t, rest)
			continue
		case "user":
			name, password, _ := strings.Cut(rest, " ")
			config.Users, process.AccessControl = new(server.Users), true
			testkit.Check(t, config.Users.Add("admin", name, password))
			continue
		case "data":
			config.Backend = commands.New(commands.Options{ReplicaSet: config.Topology == server.ReplicaSet,
				Sharded: config.Topology == server.Sharded})
			continue
		case "#", "":
			reason = rest
			continue
		}
		if set == nil {
			set = joined(t, version, n, config, process)
		}
		i, _ := strconv.Atoi(rest)
		switch key {
		case "after":
			pause, err := time.ParseDuration(rest)
			testkit.Check(t, err)
			time.Sleep(pause)
		case "close":
			testkit.Check(t, clients[rest].Close())
		case "kill":
			testkit.Check(t, set.Kill(set.Members()[i]))
		case "stepdown":
			testkit.Check(t, set.StepDown())
		case "->", "+>":
			clients[last].expect(at, rest, key == "+>")
		default:
			name, number, _ := strings.Cut(key, "@")
			flags := wire.Flags(0)
			if plain, ok := strings.CutSuffix(name, "+"); ok {
				name, flags = plain, wire.ExhaustAllowed
			} else if plain, ok := strings.CutSuffix(name, "-"); ok {
				name, flags = plain, wire.MoreToCome
			}
			if last = name; clients[name] == nil {
				to := set.Primary()
				if i, err := strconv.Atoi(cmp.Or(number, "0")); err == nil {
					to = set.Members()[i]
				}
				clients[name] = pipe(t, to)
			}
			sent, want, answered := strings.Cut(rest, "-> ")
			if more, ok := strings.CutPrefix(rest, "+> "); ok {
				clients[name].expect(at, more, true)
				break
			}
			if sent != "" {
				sent = strings.NewReplacer("TOPOLOGY", clients[name].topology, "CURSOR", clients[name].cursor).Replace(sent)
				clients[name].send(flags, extended(t, sent))
			}
			if answered {
				clients[name].expect(at, want, false)
			}
		}
		synctest.Wait()
	}
}

// expect reads a reply, which must respond to the request or to the previous reply.
func (c *client) expect(at, want string, more bool) {
	c.t.Helper()
	before := int32(request)
	if c.more {
		before = c.last.RequestID
	}
	reply, flags := c.receive()
	if diff := differences(c.t, reply, want); diff != "" {
		c.t.Errorf("%s\n\t%s: got %s", at, diff, reply)
	}
	if c.more = flags&wire.MoreToCome != 0; c.more != more || reply != nil && c.last.ResponseTo != before {
		c.t.Errorf("%s\n\tmoreToCome: %v; responseTo: got %d, want %d", at, c.more, c.last.ResponseTo, before)
	}
	if version, err := reply.LookupErr("topologyVersion"); err == nil {
		c.topology = version.String()
	}
	if id, ok := reply.Lookup("cursor", "id").Int64OK(); ok {
		c.cursor = fmt.Sprintf(`{"$numberLong": "%d"}`, id)
	}
}

func extended(t testing.TB, text string) bson.D {
	t.Helper()
	session := func(n string) string {
		return `{"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAA` + n + `A==", "subType": "04"}}}`
	}
	text = strings.NewReplacer("LSID1", session("1"), "LSID2", session("2"), "LSID", session("A")).Replace(text)
	return testkit.Extended[bson.D](t, text)
}

// differences describes how a reply differs from an expected one, "" if it matches.
func differences(t testing.TB, reply bson.Raw, want string) string {
	if reply == nil || want == "closed" {
		if (reply == nil) != (want == "closed") {
			return "closed connections differ"
		}
		return ""
	}
	return lacks("reply", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: reply},
		bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: testkit.Raw(t, extended(t, want))})
}

// lacks describes the first difference between a value and an expected one, "" if it matches. Types must be equal.
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
			diff = cmp.Or(diff, name+" is present")
		}
	}
	return diff
}

func TestDifferences(t *testing.T) {
	reply := testkit.Raw(t, d("n", int32(1), "text", "abc", "list", bson.A{int32(1), d("x", int32(1), "y", int32(2))}))
	for want, equal := range map[string]bool{
		`{"n": 1}`: true, `{"n": 2}`: false, `{"n": 1.0}`: false, `{"m": 1}`: false, `{"m": {"x": 1}}`: false,
		`{"m": {"$absent": 1}}`: true, `{"n": {"$absent": 1}}`: false, `{"n": 1, "text": "abd", "list": [1, {}]}`: false,
		`{"list": [1, {"x": 1}]}`: true, `{"list": [1]}`: false, `{"list": [1, {"x": 2}]}`: false,
		`{"text": {"$has": "bc"}}`: true, `{"text": {"$has": "ac"}}`: false, `{"n": {"$has": ""}}`: false, `closed`: false,
	} {
		if diff := differences(t, reply, want); (diff == "") != equal {
			t.Errorf("%s: %q", want, diff)
		}
	}
	if differences(t, nil, "{}") == "" || differences(t, nil, "closed") != "" {
		t.Error("a closed connection matches a reply")
	}
}
