package proxy_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

// A command that kills sessions ends a blocked command of one of them, as on a server with its own fail points, and no
// other.
func TestKilledWhileBlocked(t *testing.T) {
	const uuid = `{"$uuid": "00000000-0000-4000-8000-000000000001"}`
	const session, other = `{"id": ` + uuid + `}`, `{"id": {"$uuid": "00000000-0000-4000-8000-000000000002"}}`
	own := embedded.Options{Topology: embedded.ReplicaSet, Members: 1}
	for _, c := range []struct {
		reason, kill, ms, gist string
		o                      embedded.Options
	}{
		{"the session", `{"killSessions": [` + session + `]}`, "60000", "11601", own},
		{"the session, on a mongos", `{"killSessions": [` + session + `]}`, "60000", "11601",
			embedded.Options{Topology: embedded.Sharded, Mongoses: 1}},
		{"another session", `{"killSessions": [` + other + `]}`, "100", "ok", own},
		{"all sessions", `{"killAllSessions": []}`, "60000", "11601", own},
		{"each pattern", `{"killAllSessionsByPattern": []}`, "60000", "11601", own},
		{"a pattern with another session", `{"killAllSessionsByPattern": [{"lsid": ` + other + `}]}`, "100", "ok", own},
		{"a pattern with the session, but without its user", `{"killAllSessionsByPattern": [{"lsid": ` + session + `}]}`,
			"100", "ok", own},
		{"a pattern with the session and its user",
			`{"killAllSessionsByPattern": [{"lsid": {"id": ` + uuid + `, "uid": {"$binary": {"base64": "` +
				strings.Repeat("A", 43) + `=", "subType": "00"}}}}]}`, "60000", "11601", own},
		{"users in a pattern", `{"killAllSessionsByPattern": [{"users": []}]}`, "60000", "11601", own},
		{"not a list", `{"killAllSessionsByPattern": 1}`, "100", "ok", own},
		{"null", `{"killAllSessions": null}`, "100", "ok", own},
		{"a list of numbers", `{"killSessions": [5]}`, "100", "ok", own},
		{"a session that is not valid", `{"killSessions": [` + session + `, {}]}`, "100", "ok", own},
		{"a user that does not exist", `{"killAllSessions": [{"user": "nobody", "db": "admin"}]}`, "100", "ok", own},
		{"no session", `{"ping": 1}`, "100", "ok", own},
	} {
		t.Run(c.reason, func(t *testing.T) {
			p := newPair(t, c.o)
			for name, address := range map[string]string{"own fail points": p.own, "the proxy": p.proxied} {
				blocked, admin := &client{t: t, address: address, pair: p}, &client{t: t, address: address, pair: p}
				admin.run(testkit.Extended[bson.Raw](t, `{"configureFailPoint": "failCommand", "$db": "admin", "mode": {"times": 1},
					"data": {"failCommands": ["find"], "blockConnection": true, "blockTimeMS": `+c.ms+`}}`))
				reply := make(chan string, 1)
				go func() { reply <- blocked.run(testkit.Extended[bson.Raw](t, `{"find": "c", "lsid": `+session+`}`)) }()
				testkit.Until(t, "the command is blocked", func() bool {
					state := admin.run(testkit.Extended[bson.Raw](t,
						`{"getParameter": 1, "failpoint.failCommand": 1, "$db": "admin"}`))
					return strings.Contains(state, `"timesEntered":1`)
				})
				got := ""
				testkit.Until(t, "the command ends", func() bool { // it may have been counted just before it was blocked
					admin.run(testkit.Extended[bson.Raw](t, c.kill))
					select {
					case got = <-reply:
					default:
					}
					return got != ""
				})
				testkit.Equal(t, name, gist(t, got), c.gist)
				blocked.close()
				admin.close()
			}
		})
	}
}

// A server does not list commands that the proxy blocks, so that a client which asks for the commands in progress is
// answered when they have begun. A command without a session is not waited for: nobody can ask for it.
func TestOperationsWhileBlocked(t *testing.T) {
	const session = `, "lsid": {"id": {"$uuid": "00000000-0000-4000-8000-000000000001"}}`
	const operations = `{"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}, "$db": "admin"}`
	for _, c := range []struct {
		reason, blocked, question string
		waits                     bool
	}{
		{"a command of a session", `{"find": "c"` + session + `}`, operations, true},
		{"a command without a session", `{"find": "c"}`, operations, false},
		{"another question", `{"find": "c"` + session + `}`, `{"aggregate": "c", "pipeline": [{"$match": {}}], "cursor": {}}`,
			false},
		{"another command", `{"find": "c"` + session + `}`, `{"ping": 1, "pipeline": [{"$currentOp": {}}]}`, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			p := newPair(t, embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
			connected := func() *client { return &client{t: t, address: p.proxied, pair: p} }
			blocked, asking, admin := connected(), connected(), connected()
			admin.run(testkit.Extended[bson.Raw](t, `{"configureFailPoint": "failCommand", "$db": "admin", "mode": {"times": 1},
				"data": {"failCommands": ["find"], "blockConnection": true, "blockTimeMS": 600000}}`))
			send := func(from *client, command string) <-chan string {
				reply := make(chan string, 1)
				go func() { reply <- from.run(testkit.Extended[bson.Raw](t, command)) }()
				return reply
			}
			found := send(blocked, c.blocked)
			testkit.Until(t, "the command is counted", func() bool {
				return strings.Contains(admin.run(testkit.Extended[bson.Raw](t,
					`{"getParameter": 1, "failpoint.failCommand": 1, "$db": "admin"}`)), `"timesEntered":1`)
			})
			answer := send(asking, c.question)
			if c.waits {
				testkit.Until(t, "a question waits", func() bool { // the command is blocked soon after it was counted
					select {
					case <-answer:
						answer = send(asking, c.question)
						return false
					case <-time.After(50 * time.Millisecond):
						return true
					}
				})
				admin.run(testkit.Extended[bson.Raw](t, `{"killAllSessions": []}`))
				testkit.Equal(t, "the command", gist(t, testkit.Receive(t, "its reply", found)), "11601")
			}
			testkit.Receive(t, "the answer", answer)
			asking.close()
			admin.close()
		})
	}
}

// A command that a client sends while its first one is blocked does not end that, and runs afterwards.
func TestSentWhileBlocked(t *testing.T) {
	p := newPair(t, embedded.Options{})
	(&clientOf{t: t, address: p.proxied}).configure(`{"configureFailPoint": "failCommand", "$db": "admin", "mode": {"times": 1},
		"data": {"failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 100}}`)
	conn, err := net.Dial("tcp", p.proxied)
	testkit.Check(t, err)
	defer func() { _ = conn.Close() }()
	ping := testkit.Raw(t, testkit.D("ping", 1, "$db", "admin"))
	_, err = conn.Write(wire.AppendMsg(wire.AppendMsg(nil, 1, 0, 0, ping), 2, 0, 0, ping))
	testkit.Check(t, err)
	for id := int32(1); id <= 2; id++ {
		h, body, err := wire.ReadMessage(conn)
		testkit.Check(t, err)
		_, err = wire.Response(id, h, body)
		testkit.Check(t, err)
	}
}

// When the reply to a blocked command is lost, the client notices it before the command runs.
func TestLostReplyOfBlocked(t *testing.T) {
	p := newPair(t, embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
	for name, address := range map[string]string{"own fail points": p.own, "the proxy": p.proxied} {
		writing, admin := &client{t: t, address: address, pair: p}, &client{t: t, address: address, pair: p}
		admin.run(testkit.Extended[bson.Raw](t, `{"configureFailPoint": "failCommandSequence", "$db": "admin", "mode": "alwaysOn",
			"data": {"failCommands": ["insert"], "sequence": [{"blockConnection": true, "blockTimeMS": 1000, "loseReply": true}]}}`))
		found := func() string {
			return admin.run(testkit.Extended[bson.Raw](t, `{"count": "c"}`))
		}
		testkit.Equal(t, name, writing.run(testkit.Extended[bson.Raw](t, `{"insert": "c", "documents": [{}]}`)), "closed")
		if before := found(); !strings.Contains(before, `"n":0`) {
			t.Errorf("%s: the command ran before the client lost its connection: %s", name, before)
		}
		testkit.Until(t, name+": the command runs", func() bool { return strings.Contains(found(), `"n":1`) })
		admin.close()
	}
}

// The client of a blocked command may end its stream, and still gets the reply.
func TestHalfClosedWhileBlocked(t *testing.T) {
	p := newPair(t, embedded.Options{})
	for name, address := range map[string]string{"own fail points": p.own, "the proxy": p.proxied} {
		(&clientOf{t: t, address: address}).configure(`{"configureFailPoint": "failCommand", "$db": "admin", "mode": {"times": 1},
			"data": {"failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 100}}`)
		conn, err := net.Dial("tcp", address)
		testkit.Check(t, err)
		_, err = conn.Write(wire.AppendMsg(nil, 1, 0, 0, testkit.Raw(t, testkit.D("ping", 1, "$db", "admin"))))
		testkit.Check(t, err)
		testkit.Check(t, conn.(*net.TCPConn).CloseWrite())
		h, body, err := wire.ReadMessage(conn)
		if err != nil {
			t.Errorf("%s: %v in place of a reply", name, err)
			continue
		}
		_, err = wire.Response(1, h, body)
		testkit.Check(t, err)
		_ = conn.Close()
	}
}
