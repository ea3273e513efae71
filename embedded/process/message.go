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

	"github.com/unified-test-runner/utr/internal/relay"
)

// magic begins what processes say to each other. As the length of a message of
// MongoDB's protocol it would be too great, and it begins no TLS handshake: on a
// public port the three can be told apart by four bytes.
const magic = "utr "

// longest is how long a message may be, in bytes.
const longest = 1 << 20

// request is what a process asks of another, on one line.
type request struct {
	Kind  string `json:"kind"`
	Token string `json:"token,omitempty"` // of a host
	// Host is the address of a host, in an invitation.
	Host string `json:"host,omitempty"`
	Set  string `json:"set,omitempty"`
	// Member is the address that clients are told.
	Member string `json:"member,omitempty"`
	Seat   *seat  `json:"seat,omitempty"`
	// Remote is the client whose connection is handed over; Balanced tells that
	// it came through a load balancer.
	Remote   string `json:"remote,omitempty"`
	Balanced bool   `json:"balanced,omitempty"`
}

// The kinds of requests: the first two to the public port of a process, from
// this machine alone; the others to a host.
const (
	askState   = "state"   // who are you?
	askInvite  = "invite"  // join this host as that member
	askJoin    = "join"    // here I am; the connection stays while I live
	askForward = "forward" // what follows is a client
	askGather  = "gather"  // answer when all members have joined
	saysServes = "serves"  // after join: clients are handed over from now on
)

// seat is what a process brings along when it joins a host.
type seat struct {
	Router     bool     `json:"router,omitempty"`
	Access     bool     `json:"access,omitempty"`
	Parameters []byte   `json:"parameters,omitempty"` // BSON
	Inert      []byte   `json:"inert,omitempty"`      // BSON
	Options    []byte   `json:"options,omitempty"`    // BSON
	Arguments  []string `json:"arguments,omitempty"`
	PID        int      `json:"pid"`
	LogPath    string   `json:"logPath,omitempty"`
	Verbosity  int      `json:"verbosity,omitempty"`
	SlowMS     int      `json:"slowMS,omitempty"`
	// StateFile says, while it exists, that the process may come again.
	StateFile string `json:"stateFile,omitempty"`
}

// reply answers a request, and later tells a process what became of it.
type reply struct {
	Error string `json:"error,omitempty"`
	// Of a state.
	ID           string `json:"id,omitempty"` // random, of the process
	State        string `json:"state,omitempty"`
	Set          string `json:"set,omitempty"`
	ConfigServer bool   `json:"configServer,omitempty"`
	Host         string `json:"host,omitempty"`
	Token        string `json:"token,omitempty"`
	// What became of a member: a client wants it to end; it was removed.
	Stop    bool `json:"stop,omitempty"`
	Removed bool `json:"removed,omitempty"`
}

// The states of a process.
const (
	waits      = "uninitiated" // for replSetInitiate, or an invitation
	serves     = "member"      // of a replica set
	standsBy   = "starting"
	standalone = "standalone"
	routes     = "mongos"
)

// write sends one line.
func write(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// errTooLong ends a connection that says more than it may.
var errTooLong = errors.New("a message is too long")

// read takes one line in.
func read(r *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > longest:
			return errTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return err
		}
		return json.Unmarshal(line, v)
	}
}

// refusal is what another process answered.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

// dial connects and asks. The connection stays open for what follows, unless
// there is an error.
func dial(ctx context.Context, address string, q request) (net.Conn, *bufio.Reader, reply, error) {
	var a reply
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, a, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	in := bufio.NewReader(nc)
	if _, err = io.WriteString(nc, magic); err == nil {
		err = write(nc, q)
	}
	if err == nil {
		err = read(in, &a)
	}
	if err == nil && a.Error != "" {
		err = &refusal{a.Error}
	}
	if !stop() && err == nil {
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

// rewound is a connection whose beginning was looked at.
type rewound struct {
	relay.ReadAhead
	// remote is the client at its other end, nil if that is who is connected.
	remote net.Addr
}

func (c *rewound) RemoteAddr() net.Addr {
	if c.remote != nil {
		return c.remote
	}
	return c.Conn.RemoteAddr()
}

// told is an address as another process wrote it.
type told string

func (told) Network() string  { return "tcp" }
func (t told) String() string { return string(t) }
