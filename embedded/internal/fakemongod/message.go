package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// magic begins a request. It differs from the beginning of a TLS handshake, and is too large for the length of a
// message of the MongoDB protocol.
const magic = "utr "

const maxMessage = 64 << 10 // maximum length of a message between processes, in bytes

func reader(from io.Reader) *bufio.Reader { return bufio.NewReaderSize(from, maxMessage) }

type request struct {
	Kind   string   `json:"kind"`
	Set    string   `json:"set,omitempty"`
	Host   location `json:"host,omitzero"`    // that invites, or that the process joins
	Member string   `json:"member,omitempty"` // address of the member for clients
	Server *Options `json:"server,omitempty"` // of the process that joins
	// Balanced is set if the client came through a load balancer.
	Balanced bool `json:"balanced,omitempty"`
}

// The kinds of requests, described in the package comment.
const (
	kindState  = "state"
	kindInvite = "invite"
	kindJoin   = "join"
	kindClient = "client"
)

type location struct {
	Address string `json:"address,omitempty"`
	Token   string `json:"token,omitempty"`
}

// reply is the reply to a request.
type reply struct {
	Error string `json:"error,omitempty"`
	// Reply to state.
	ID           string   `json:"id,omitempty"` // random id of the process
	State        string   `json:"state,omitempty"`
	Set          string   `json:"set,omitempty"`
	ConfigServer bool     `json:"configServer,omitempty"`
	Host         location `json:"host,omitzero"`
}

// The states of a process.
const (
	stateWaiting = "uninitiated" // waits for replSetInitiate or an invitation
	stateMember  = "member"      // of a replica set
	stateOther   = "other"       // a standalone, or a mongos
)

func write(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// answer writes a reply, or the error of the request.
func answer(w io.Writer, a reply, err error) error {
	if err != nil {
		a = reply{Error: err.Error()}
	}
	return write(w, a)
}

func read(r *bufio.Reader, v any) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// closeOnDone closes connections when a context ends, unless stop is called before.
func closeOnDone(ctx context.Context, list ...net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		for _, nc := range list {
			_ = nc.Close()
		}
	})
}

// dial connects, sends a request and reads the reply, within requestTimeout. It leaves the connection open.
func dial(ctx context.Context, address string, q request) (net.Conn, *bufio.Reader, reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var a reply
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, a, err
	}
	stop := closeOnDone(ctx, nc)
	in := reader(nc)
	if _, err = io.WriteString(nc, magic); err == nil {
		err = write(nc, q)
	}
	if err == nil {
		err = read(in, &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = nc.Close()
		return nil, nil, a, fmt.Errorf("%s: %w", address, err)
	}
	return nc, in, a, nil
}

// exchange sends a request and reads the reply.
func exchange(ctx context.Context, address string, q request) (reply, error) {
	nc, _, a, err := dial(ctx, address, q)
	if err == nil {
		_ = nc.Close()
	}
	return a, err
}

func readRequest(nc net.Conn, in *bufio.Reader) (request, error) {
	var q request
	_ = nc.SetReadDeadline(time.Now().Add(requestTimeout))
	first := make([]byte, len(magic))
	_, err := io.ReadFull(in, first)
	if err == nil && string(first) != magic {
		err = errors.New("not a utr process")
	}
	if err == nil {
		err = read(in, &q)
	}
	_ = nc.SetReadDeadline(time.Time{})
	return q, err
}

// repeat calls f at an interval until f returns true or ctx ends.
func repeat(ctx context.Context, interval time.Duration, f func() (done bool)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !f() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
