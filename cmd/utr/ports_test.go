//go:build unix

package main

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// occupy takes a port of this machine, and does with each connection what
// is said.
func occupy(t *testing.T, with func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); close(done) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				if with != nil {
					with(c)
				}
				<-done
			}()
		}
	}()
	return l.Addr().String()
}

// A port that is taken is named, whichever of several it is, and nothing is
// left running on the others.
func TestPortTaken(t *testing.T) {
	taken := occupy(t, nil)
	_, port, _ := strings.Cut(taken, ":")
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		reason string
		args   []string
	}{
		{"the only one", []string{"serve", "--topology", "single", "--port", port}},
		{"the last of three", []string{"serve", "--topology", "replicaset", "--port", strconv.Itoa(n - 2)}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			u := start(t, r.args...)
			if code := u.exit(t); code != 3 {
				t.Errorf("exit code %d", code)
			}
			// Another program may have taken the first ports: then those are named.
			if !strings.Contains(u.said(), "listen tcp 127.0.0.1:") || !strings.Contains(u.said(), "address already in use") {
				t.Errorf("it says %q", u.said())
			}
			if r.reason == "the only one" && !strings.Contains(u.said(), taken) {
				t.Errorf("%s is not named: %q", taken, u.said())
			}
		})
	}
	u := start(t, "serve", "--topology", "single", "--port", "99999")
	if code := u.exit(t); code != 2 {
		t.Errorf("a port that there is not: exit code %d: %s", code, u.said())
	}
}

// Somebody who accepts and never answers, or answers nonsense, or hangs up
// holds nothing up for long, and is named together with what was waited for.
func TestConnectionWithoutAnswer(t *testing.T) {
	for _, r := range []struct {
		reason string
		with   func(net.Conn)
		says   []string
	}{
		{"it never answers", nil, []string{"no answer from HOST within 1s", "does not answer"}},
		{"it answers half a header", func(c net.Conn) { _, _ = c.Write([]byte{1, 2}) }, []string{"no answer from HOST within 1s", "does not answer"}},
		{"it speaks another language", func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, []string{"HOST"}},
		{"it hangs up", func(c net.Conn) { _ = c.Close() }, []string{"HOST", "hung up"}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			host := occupy(t, r.with)
			for _, args := range [][]string{
				{"run", "--uri", "mongodb://" + host + "/?serverSelectionTimeoutMS=1000", suiteFile(t, suiteText)},
				{"clean", "--uri", "mongodb://" + host + "/?serverSelectionTimeoutMS=1000"},
			} {
				begun := time.Now()
				u := start(t, args...)
				if code := u.exit(t); code != 3 {
					t.Errorf("utr %s: exit code %d: %s", args[0], code, u.said())
				}
				if took := time.Since(begun); took > 15*time.Second {
					t.Errorf("utr %s: it took %s", args[0], took)
				}
				for _, part := range r.says {
					if part = strings.ReplaceAll(part, "HOST", host); args[0] == "run" && !strings.Contains(u.said(), part) {
						t.Errorf("%q is missing in %q", part, u.said())
					}
				}
				if !strings.Contains(u.said(), host) {
					t.Errorf("utr %s: %s is not named: %q", args[0], host, u.said())
				}
			}
		})
	}
}
