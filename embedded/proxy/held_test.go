package proxy_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
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
		{"the session, on a mongos", `{"killSessions": [` + session + `]}`, "60000", "11601", embedded.Options{Topology: embedded.Sharded, Mongoses: 1}},
		{"another session", `{"killSessions": [` + other + `]}`, "100", "ok", own},
		{"all sessions", `{"killAllSessions": []}`, "60000", "11601", own},
		{"each pattern", `{"killAllSessionsByPattern": []}`, "60000", "11601", own},
		{"a pattern with another session", `{"killAllSessionsByPattern": [{"lsid": ` + other + `}]}`, "100", "ok", own},
		{"a pattern with the session, but without its user", `{"killAllSessionsByPattern": [{"lsid": ` + session + `}]}`, "100", "ok", own},
		{"a pattern with the session and its user", `{"killAllSessionsByPattern": [{"lsid": {"id": ` + uuid + `, "uid": {"$binary": {"base64": "` +
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
					state := admin.run(testkit.Extended[bson.Raw](t, `{"getParameter": 1, "failpoint.failCommand": 1, "$db": "admin"}`))
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
