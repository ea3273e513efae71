package deployment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// left gives the fail points that are on at the member of a connection string.
func left(t *testing.T, text string) []LeftFailPoint {
	t.Helper()
	reply, err := runOn(t, parsed(t, text), lookFor(suiteFailPoints))
	testkit.Check(t, err)
	return on("", reply)
}

// Fail points that an earlier run left on are noticed on each member, whatever
// they break, and are off afterwards.
func TestLeftFailPoints(t *testing.T) {
	mode := func(name string, value any) bson.D { return bson.D{{Key: name, Value: value}} }
	set, sharded := embedded.Options{Topology: embedded.ReplicaSet}, embedded.Options{Topology: embedded.Sharded}
	old, locked := set, set
	old.Version, locked.Users = "4.2", users
	for _, r := range []struct {
		reason   string
		o        embedded.Options
		member   int // that is armed
		mode     any
		commands string
		want     string
	}{
		{"on the primary", set, 0, "alwaysOn", "find", "failCommand was on at HOST (alwaysOn, struck 0 times): "},
		{"on a secondary", set, 2, mode("times", 5), "find", "failCommand was on at HOST (times, struck 0 times)"},
		{"on the second mongos, which the look at the cluster does not meet", sharded, 1, mode("skip", 3), "insert", "failCommand was on at HOST (skip"},
		{"the look itself would fail", embedded.Options{}, 0, "alwaysOn", "buildInfo", "failCommand was on at HOST"},
		{"the look itself would fail on a mongos", sharded, 0, "alwaysOn", "find", "failCommand was on at HOST"},
		{"at random", embedded.Options{}, 0, mode("activationProbability", 0.5), "find", "(random, "},
		{"on a server that does not count", old, 0, "alwaysOn", "find", "failCommand was on at HOST (alwaysOn): "},
		{"with access control", locked, 0, "alwaysOn", "find", "failCommand was on at HOST"},
		{"behind a load balancer", embedded.Options{Topology: embedded.LoadBalanced}, 0, "alwaysOn", "find", "failCommand was on at service "},
		{"another one", set, 0, nil, "", "onPrimaryTransactionalWrite was on at HOST"},
		{"nothing is on", set, 0, "off", "find", ""},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d := serve(t, r.o)
			host := d.Hosts()[r.member]
			if r.mode != nil {
				arm(t, d.DirectURI(host), r.mode, r.commands)
			} else {
				_, err := runOn(t, parsed(t, d.DirectURI(host)), bson.D{
					{Key: "configureFailPoint", Value: "onPrimaryTransactionalWrite"}, {Key: "mode", Value: "alwaysOn"}, {Key: "data", Value: bson.D{}}})
				testkit.Check(t, err)
			}
			var heard notes
			o := ClusterOptions{URI: d.URI(), SingleURI: d.SingleURI(), Lock: &LockOptions{}, Note: heard.add}
			openCluster(t, o)
			testkit.Says(t, heard.String(), strings.ReplaceAll(r.want, "HOST", host))
			if r.want == "" && heard.String() != "" {
				t.Errorf("people hear %q", heard.String())
			}
			if on := left(t, d.DirectURI(host)); len(on) > 0 {
				t.Errorf("still on: %v", on)
			}
		})
	}
}

// A deployment that was not locked is left as it is: it may be in use.
func TestFailPointsOfOthersStay(t *testing.T) {
	d := serve(t, embedded.Options{Topology: embedded.ReplicaSet})
	locked(t, d.URI(), LockOptions{})
	arm(t, d.DirectURI(d.Primary()), "alwaysOn", "find")
	_, err := OpenCluster(testkit.Context(t), ClusterOptions{URI: d.URI(), Lock: &LockOptions{}})
	isHeld(t, err)
	openCluster(t, ClusterOptions{URI: d.URI()})
	testkit.Equal(t, "fail points of the first run", len(left(t, d.DirectURI(d.Primary()))), 1)
}

// A member that is down is reported, and does not keep the others from being
// asked. utr clean asks by ClearFailPoints.
func TestSweepWithoutAMember(t *testing.T) {
	t.Parallel() // it waits for the member until sweepLimit
	d := serve(t, embedded.Options{Topology: embedded.ReplicaSet})
	hosts := d.Hosts()
	arm(t, d.DirectURI(hosts[1]), "alwaysOn", "find")
	testkit.Check(t, d.Kill(hosts[2]))
	swept, err := ClearFailPoints(testkit.Context(t), Target{URI: d.URI()}, "someOther")
	testkit.Check(t, err)
	if len(swept.Off) != 1 || swept.Off[0].Member != hosts[1] || swept.Off[0].Name != "failCommand" {
		t.Errorf("turned off: %v", swept.Off)
	}
	testkit.Equal(t, "members that were not asked", len(swept.Unasked), 1)
	testkit.Fails(t, swept.Unasked[0], hosts[2]+" could not be asked", "within 5s")
	swept, err = ClearFailPoints(testkit.Context(t), Target{URI: d.DirectURI(hosts[0])}) // and the others are not asked
	testkit.Equal(t, "one member alone", []any{len(swept.Unasked), err}, []any{0, nil})
	_, err = ClearFailPoints(testkit.Context(t), Target{URI: "mongodb://u:" + testkit.Secret + "@127.0.0.1:1/?serverSelectionTimeoutMS=50"})
	testkit.Fails(t, err, "nothing listens there")
}

// shut makes a fail point that lets no client in, on every server. api is the
// version of the Stable API that these require, "" for none.
func shut(t *testing.T, d *embedded.Deployment, api string, more ...bson.E) {
	t.Helper()
	data := append(bson.D{{Key: "failCommands", Value: bson.A{"hello", "isMaster"}}, {Key: "closeConnection", Value: true}}, more...)
	for _, host := range d.Hosts() {
		command := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"}, {Key: "data", Value: data}}
		if api != "" {
			command = append(command, bson.E{Key: "apiVersion", Value: api})
		}
		_, err := bare(testkit.Context(t), host, "admin", command)
		testkit.Check(t, err)
	}
}

// A fail point that keeps every client out is turned off without one, and the
// deployment can be used.
func TestUnblock(t *testing.T) {
	declared := bson.D{{Key: "requireApiVersion", Value: true}}
	for _, r := range []struct {
		reason string
		o      embedded.Options
		api    string
		look   bool // what a run does, rather than utr clean
	}{
		{"a replica set that a run looks at", embedded.Options{Topology: embedded.ReplicaSet}, "", true},
		{"a server", embedded.Options{}, "", false},
		{"routers", embedded.Options{Topology: embedded.Sharded}, "", false},
		{"an old server", embedded.Options{Version: "4.2"}, "", false},
		{"one that requires an API version", embedded.Options{Version: "8.0", Parameters: declared}, "1", false},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d := serve(t, r.o)
			shut(t, d, r.api)
			var heard notes
			if !r.look {
				off, err := Unblock(testkit.Context(t), Target{URI: d.URI(), ServerAPI: r.api})
				testkit.Check(t, err)
				tell(heard.add, off)
			}
			// The first look always fails, at the end of its time.
			o := ClusterOptions{URI: d.URI(), ServerAPI: r.api, Timeout: 3 * time.Second, Lock: &LockOptions{}, Note: heard.add}
			openCluster(t, o)
			for _, host := range d.Hosts() {
				testkit.Says(t, heard.String(), "turned off: failCommand was on at "+host)
			}
		})
	}
}

// What another run may need, or what does not concern every client, stays.
func TestUnblockLeavesAlone(t *testing.T) {
	d := serve(t, embedded.Options{Topology: embedded.ReplicaSet})
	l := locked(t, d.URI(), LockOptions{})
	defer func() { // whose client is kept out as well
		off := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}}
		for _, host := range d.Hosts() {
			_, err := bare(context.Background(), host, "admin", off)
			testkit.Check(t, err)
		}
	}()
	shut(t, d, "")
	_, err := Unblock(testkit.Context(t), Target{URI: d.URI()})
	testkit.Equal(t, "the holder", isHeld(t, err).Run, l.me.Run)
	_, err = OpenCluster(testkit.Context(t), ClusterOptions{URI: d.URI(), Timeout: 50 * time.Millisecond, Lock: &LockOptions{}})
	testkit.Equal(t, "the holder", isHeld(t, err).Run, l.me.Run)
	reply, err := bare(testkit.Context(t), d.Hosts()[0], "admin", lookFor([]string{"failCommand"}))
	if err != nil || len(on("", reply)) != 1 {
		t.Errorf("the fail point of the run that goes on: %v %v", reply, err)
	}
	one := serve(t, embedded.Options{})
	shut(t, one, "", bson.E{Key: "appName", Value: "one client"})
	find := serve(t, embedded.Options{})
	arm(t, find.URI(), "alwaysOn", "find")
	for _, r := range []struct{ reason, uri string }{
		{"a fail point for one client", one.URI()},
		{"a fail point for other commands", find.URI()},
		{"a server with access control", serve(t, embedded.Options{Users: users}).URI()},
		{"nothing listens", "mongodb://127.0.0.1:1/"},
		{"TLS", "mongodb://" + one.Hosts()[0] + "/?tls=true"},
		{"a name in DNS", "mongodb+srv://h.example/"},
	} {
		if off, err := Unblock(testkit.Context(t), Target{URI: r.uri}); len(off) > 0 || err != nil {
			t.Errorf("%s: %v %v", r.reason, off, err)
		}
	}
}

// Whoever accepts a connection and does not speak the protocol is not a server.
func TestBareReplies(t *testing.T) {
	for _, r := range []struct {
		reason string
		reply  []byte
		ok     bool
	}{
		{"a reply", bareReply(t, 2013, 0, bson.D{{Key: "ok", Value: 1.0}}), true},
		{"a refusal", bareReply(t, 2013, 0, bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 13}}), false},
		{"nothing", nil, false},
		{"half a header", make([]byte, 7), false},
		{"another protocol", []byte("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"), false},
		{"another opcode", bareReply(t, 1, 0, bson.D{{Key: "ok", Value: 1.0}}), false},
		{"smaller than its header", bareReply(t, 2013, 3, bson.D{{Key: "ok", Value: 1.0}}), false},
		{"larger than any reply", bareReply(t, 2013, 1<<31, bson.D{}), false},
		{"cut off", bareReply(t, 2013, 1000, bson.D{{Key: "ok", Value: 1.0}}), false},
		{"not a document", append(bareReply(t, 2013, bareHeader+4, bson.D{})[:bareHeader], 1, 2, 3, 4), false},
	} {
		if _, err := readBare(bytes.NewReader(r.reply)); (err == nil) != r.ok {
			t.Errorf("%s: %v", r.reason, err)
		}
	}
	silent, called := listening(t)
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	go func() { <-called; cancel(errors.New("enough")) }()
	_, err := bare(ctx, silent, "admin", bson.D{{Key: "ping", Value: 1}})
	testkit.Fails(t, err)
}

// bareReply makes a message with a document, and with another size unless that is 0.
func bareReply(t testing.TB, op, size uint32, doc bson.D) []byte {
	t.Helper()
	body, err := bson.Marshal(doc)
	testkit.Check(t, err)
	message := append(make([]byte, bareHeader), body...)
	if size == 0 {
		size = uint32(len(message))
	}
	binary.LittleEndian.PutUint32(message, size)
	binary.LittleEndian.PutUint32(message[12:], op)
	return message
}

func FuzzReadBare(f *testing.F) {
	f.Add(bareReply(f, 2013, 0, bson.D{{Key: "ok", Value: 1.0}}))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		if len(reply) >= 4 && binary.LittleEndian.Uint32(reply) > 1<<16 {
			return // to be read is to be made room for
		}
		if doc, err := readBare(bytes.NewReader(reply)); err == nil && doc.Validate() != nil {
			t.Errorf("%x is taken for a reply", reply)
		}
	})
}
