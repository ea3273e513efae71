package process

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

// magic begins what processes say to each other. As the length of a message of
// MongoDB's protocol it would be too large, and it does not begin a TLS handshake:
// on a public port four bytes tell the three apart.
const magic = "utr "

// maxMessage is how long a message between processes may be, in bytes.
const maxMessage = 64 << 10

// reader reads messages, or what a client sends.
func reader(from io.Reader) *bufio.Reader { return bufio.NewReaderSize(from, maxMessage) }

// request is what a process asks of another, on one line.
type request struct {
	Kind string `json:"kind"`
	Set  string `json:"set,omitempty"`
	// Host is who invites, or is joined.
	Host whereabouts `json:"host,omitzero"`
	// Member is the address of the member that clients see.
	Member string `json:"member,omitempty"`
	Seat   *seat  `json:"seat,omitempty"`
}

// The kinds of requests: the first two to the public port of a process, from
// this machine alone; the last one to a host.
const (
	askState  = "state"  // who are you?
	askInvite = "invite" // join this host as that member
	askJoin   = "join"   // here I am; the connection stays while I live
)

// whereabouts are how a host is found.
type whereabouts struct {
	Address string `json:"address,omitempty"`
	Token   string `json:"token,omitempty"`
}

// seat is what a process brings along when it joins a host.
type seat struct {
	Router     bool     `json:"router,omitempty"`
	Access     bool     `json:"access,omitempty"`
	Parameters []string `json:"parameters,omitempty"`
	Arguments  []string `json:"arguments,omitempty"`
	PID        int      `json:"pid"`
	// StateFile says, while it exists, that the process may come again.
	StateFile string `json:"stateFile,omitempty"`
}

// reply answers a request, and later tells a process to stop.
type reply struct {
	Error string `json:"error,omitempty"`
	// Of a state.
	ID           string      `json:"id,omitempty"` // random, of the process
	State        string      `json:"state,omitempty"`
	Set          string      `json:"set,omitempty"`
	ConfigServer bool        `json:"configServer,omitempty"`
	Host         whereabouts `json:"host,omitzero"`
	// Clients and Balanced are where a member that has joined hands over its clients,
	// those that came through a load balancer apart.
	Clients  string `json:"clients,omitempty"`
	Balanced string `json:"balanced,omitempty"`
	// Stop is said to a server that a client has shut down.
	Stop bool `json:"stop,omitempty"`
}

// The states of a process.
const (
	stateWaiting = "uninitiated" // for replSetInitiate, or an invitation
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

func read(r *bufio.Reader, v any) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// breaks closes connections when a context ends, until stop is called.
func breaks(ctx context.Context, list ...net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		for _, nc := range list {
			_ = nc.Close()
		}
	})
}

// dial connects and asks, which takes at most the time that answering allows. The
// connection stays open for what follows, unless there is an error.
func dial(ctx context.Context, address string, q request) (net.Conn, *bufio.Reader, reply, error) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	var a reply
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, a, err
	}
	stop := breaks(ctx, nc)
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

// ask asks and hangs up.
func ask(ctx context.Context, address string, q request) (reply, error) {
	nc, _, a, err := dial(ctx, address, q)
	if err == nil {
		_ = nc.Close()
	}
	return a, err
}

// hear reads what a process asks for on a connection that it has just opened.
func hear(nc net.Conn, in *bufio.Reader) (request, error) {
	var q request
	_ = nc.SetReadDeadline(time.Now().Add(answering))
	begin := make([]byte, len(magic))
	_, err := io.ReadFull(in, begin)
	if err == nil && string(begin) != magic {
		err = errors.New("a stranger")
	}
	if err == nil {
		err = read(in, &q)
	}
	_ = nc.SetReadDeadline(time.Time{})
	return q, err
}
