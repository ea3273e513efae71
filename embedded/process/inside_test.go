package process_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/process"
)

// inside runs a mongod in this process, its host in another. stop gives its exit
// code.
func inside(t *testing.T, args ...string) (address string, stop func() int) {
	t.Helper()
	port := freePorts(t, 1)[0]
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	var out bytes.Buffer
	env := process.Environment{Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }, PID: os.Getpid(), Self: []string{utr(t)}}
	go func() { code <- process.Run(ctx, false, append(args, "--port", strconv.Itoa(port)), env) }()
	stop = func() int {
		cancel()
		select {
		case c := <-code:
			code <- c
			return c
		case <-time.After(patience):
			t.Fatalf("waited %v for the end of %v", patience, args)
			return -1
		}
	}
	t.Cleanup(func() { stop() })
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	eventually(t, "the port to open", func() bool {
		nc, err := net.Dial("tcp", address)
		if err == nil {
			_ = nc.Close()
		}
		return err == nil
	})
	return address, stop
}

// A process leaves nothing behind when it ends, whatever its clients do.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--replSet", "rs"}} {
		address, stop := inside(t, args...)
		c := client(t, "mongodb://"+address+"/?directConnection=true")
		run(t, c, e("ping", 1))
		if args != nil {
			run(t, c, e("replSetInitiate", bson.D{}))
			// The connection is the same, and served by the host now.
			if _, err := c.Database("db").Collection("c").InsertOne(limit(t), bson.D{}); err != nil {
				t.Error(err)
			}
		}
		idle, err := net.Dial("tcp", address) // it says nothing
		if err != nil {
			t.Fatal(err)
		}
		if code := stop(); code != 0 {
			t.Errorf("%v: exit code %d", args, code)
		}
		_ = idle.Close()
	}
}

// say sends bytes and gives what is answered until the connection ends.
func say(t *testing.T, address, bytes string) string {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(nc, bytes); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(nc) // an end of any kind
	return string(answer)
}

// Strangers get nowhere, and do no harm.
func TestStrangers(t *testing.T) {
	t.Parallel()
	address, _ := inside(t, "--replSet", "rs")
	c := client(t, "mongodb://"+address+"/?directConnection=true")
	run(t, c, e("replSetInitiate", bson.D{}))
	var state struct{ State, Host, Token string }
	if err := json.Unmarshal([]byte(say(t, address, `utr {"kind":"state"}`+"\n")), &state); err != nil || state.State != "member" || state.Host == "" {
		t.Fatalf("%+v, %v", state, err)
	}
	for _, row := range []struct{ reason, address, bytes, want string }{
		{"an unknown request", address, `utr {"kind":"sing"}` + "\n", `{"error":"there is no request sing"}`},
		{"an invitation of a member", address, `utr {"kind":"invite","set":"rs"}` + "\n", `{"error":"the process is a member already, or none"}`},
		{"no JSON", address, "utr nonsense\n", ""},
		{"a message without end", address, "utr " + strings.Repeat("x", 2<<20), ""},
		{"a wrong token", state.Host, `utr {"kind":"join","token":"wrong","member":"x"}` + "\n", `{"error":"this is the host of another deployment"}`},
		{"no token", state.Host, `utr {"kind":"gather"}` + "\n", `{"error":"this is the host of another deployment"}`},
		{"a client at the host", state.Host, "\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xd4\x07\x00\x00", ""},
		{"a member that is none", state.Host, `utr {"kind":"join","token":"` + state.Token + `","member":"x:1","seat":{"pid":1}}` + "\n", `{"error":"x:1 is no member of rs"}`},
		{"a member that brings nothing", state.Host, `utr {"kind":"join","token":"` + state.Token + `","member":"x:1"}` + "\n", `{"error":"a process that brings nothing along"}`},
		{"a router where there is no config server", state.Host, `utr {"kind":"join","token":"` + state.Token + `","member":"x:1","seat":{"pid":1,"router":true}}` + "\n",
			`{"error":"this replica set was not started with --configsvr"}`},
		{"a client of a member that is none", state.Host, `utr {"kind":"forward","token":"` + state.Token + `","member":"x:1"}` + "\n", ""},
	} {
		if got := strings.TrimSpace(say(t, row.address, row.bytes)); got != row.want {
			t.Errorf("%s: got %q, not %q", row.reason, got, row.want)
		}
	}
	if _, err := c.Database("db").Collection("c").InsertOne(limit(t), bson.D{}); err != nil {
		t.Errorf("after all: %v", err)
	}
}

// A host ends with its context, and refuses what it can not serve.
func TestHost(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, spec, want string }{
		{"nonsense", "x\n", "a host is started by mongod"},
		{"nothing", "", "a host is started by mongod"},
		{"a version that there is not", `{"version":"3.6"}` + "\n", `server version "3.6"`},
		{"a configuration that is none", `{"version":"8.0","set":"BQAAAAA="}` + "\n", "Missing required string field"},
	} {
		err := process.Host(limit(t), strings.NewReader(row.spec), io.Discard)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v", row.reason, err)
		}
	}
	ctx, cancel := context.WithCancel(limit(t))
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- process.Host(ctx, strings.NewReader(`{"version":"8.0"}`+"\n"), out) }()
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil || !strings.Contains(line, `"host":"127.0.0.1:`) {
		t.Fatalf("%q, %v", line, err)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatalf("waited %v for the end of the host", patience)
	}
}
