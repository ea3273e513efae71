package deployment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
)

// shut makes a fail point that lets no client in, on every server. api is the
// version of the Stable API that these want, "" if they want none.
func shut(t *testing.T, d *embedded.Deployment, api string, more ...bson.E) {
	t.Helper()
	for _, host := range d.Hosts() {
		command := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
			{Key: "data", Value: append(bson.D{{Key: "failCommands", Value: bson.A{"hello", "isMaster"}}, {Key: "closeConnection", Value: true}}, more...)}}
		if api != "" {
			command = append(command, bson.E{Key: "apiVersion", Value: api})
		}
		if _, err := bare(within(t), host, "admin", command); err != nil {
			t.Fatal(err)
		}
	}
}

// A fail point that keeps every client out is turned off without one, and the
// deployment can be used.
func TestUnblock(t *testing.T) {
	for _, r := range []struct {
		reason string
		o      embedded.Options
		api    string
	}{
		{"standalone", embedded.Options{}, ""},
		{"replica set", embedded.Options{Topology: embedded.ReplicaSet}, ""},
		{"sharded", embedded.Options{Topology: embedded.Sharded}, ""},
		{"an old server", embedded.Options{Version: "4.2"}, ""},
		{"one that wants an API version", embedded.Options{Version: "8.0", Parameters: bson.D{{Key: "requireApiVersion", Value: true}}}, "1"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d := serving(t, r.o)
			shut(t, d, r.api)
			var told notes
			s, err := OpenCluster(within(t), ClusterOptions{URI: d.URI(), ServerAPI: r.api, Timeout: time.Second, Lock: &LockOptions{}, Note: told.add})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			for _, host := range d.Hosts() {
				if !strings.Contains(told.String(), "turned off: failCommand was on at "+host) {
					t.Errorf("nobody tells of %s: %q", host, told.String())
				}
			}
		})
	}
}

// What another run may need, or what does not concern every client, stays.
func TestUnblockLeavesAlone(t *testing.T) {
	d := serving(t, embedded.Options{Topology: embedded.ReplicaSet})
	l, err := AcquireLock(within(t), d.URI(), LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { // whose client is kept out as well
		_, _ = Unblock(context.Background(), Target{URI: d.URI()}, func(*Holder) bool { return true })
		release(t, l)
	}()
	shut(t, d, "")
	for _, attempt := range []func() error{
		func() error { _, err := Unblock(within(t), Target{URI: d.URI()}, nil); return err },
		func() error {
			_, err := OpenCluster(within(t), ClusterOptions{URI: d.URI(), Timeout: time.Second, Lock: &LockOptions{}})
			return err
		},
	} {
		var held *HeldError
		if err := attempt(); !errors.As(err, &held) || held.Holder.Run != l.me.Run {
			t.Errorf("it says %v", err)
		}
	}
	reply, err := bare(within(t), d.Hosts()[0], "admin", lookFor([]string{"failCommand"}))
	if err != nil || len(on("", reply)) != 1 {
		t.Errorf("the fail point of the run that goes on: %v %v", reply, err)
	}
	other := serving(t, embedded.Options{})
	shut(t, other, "", bson.E{Key: "appName", Value: "one client"})
	if off, err := Unblock(within(t), Target{URI: other.URI()}, nil); len(off) > 0 || err != nil {
		t.Errorf("a fail point for one client: %v %v", off, err)
	}
	locked := serving(t, embedded.Options{Users: []embedded.User{{Name: "u", Password: "pw"}}})
	if off, err := Unblock(within(t), Target{URI: locked.URI()}, nil); len(off) > 0 || err != nil {
		t.Errorf("a server that wants authentication: %v %v", off, err)
	}
	for _, uri := range []string{"mongodb://127.0.0.1:1/", "mongodb://127.0.0.1:1/?tls=true", "mongodb+srv://h.example/"} {
		if off, err := Unblock(within(t), Target{URI: uri}, nil); len(off) > 0 || err != nil {
			t.Errorf("%s: %v %v", uri, off, err)
		}
	}
}

// Whoever accepts a connection and does not speak the protocol is no server,
// in bounded time.
func TestBareReplies(t *testing.T) {
	message := func(size, op uint32, body []byte) []byte {
		head := make([]byte, bareHeader)
		binary.LittleEndian.PutUint32(head, size)
		binary.LittleEndian.PutUint32(head[12:], op)
		return append(head, body...)
	}
	fine, err := bson.Marshal(bson.D{{Key: "ok", Value: 1.0}})
	if err != nil {
		t.Fatal(err)
	}
	refused, err := bson.Marshal(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 13}, {Key: "errmsg", Value: "no"}})
	if err != nil {
		t.Fatal(err)
	}
	const msg = 2013
	for _, r := range []struct {
		reason string
		reply  []byte
		ok     bool
	}{
		{"a reply", message(uint32(bareHeader+len(fine)), msg, fine), true},
		{"a refusal", message(uint32(bareHeader+len(refused)), msg, refused), false},
		{"nothing", nil, false},
		{"half a header", make([]byte, 7), false},
		{"another protocol", []byte("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"), false},
		{"another opcode", message(uint32(bareHeader+len(fine)), 1, fine), false},
		{"smaller than its header", message(3, msg, fine), false},
		{"larger than any reply", message(1<<31, msg, fine), false},
		{"cut off", message(1000, msg, fine), false},
		{"no document", message(bareHeader+4, msg, []byte{1, 2, 3, 4}), false},
	} {
		if _, err := readBare(bytes.NewReader(r.reply)); (err == nil) != r.ok {
			t.Errorf("%s: %v", r.reason, err)
		}
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	if _, err := bare(within(t), silent.Addr().String(), "admin", bson.D{{Key: "ping", Value: 1}}); err == nil {
		t.Error("nobody answers, and yet it answered")
	}
}

func FuzzReadBare(f *testing.F) {
	fine, _ := bson.Marshal(bson.D{{Key: "ok", Value: 1.0}})
	head := make([]byte, bareHeader)
	binary.LittleEndian.PutUint32(head, uint32(bareHeader+len(fine)))
	binary.LittleEndian.PutUint32(head[12:], 2013)
	f.Add(append(head, fine...))
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
