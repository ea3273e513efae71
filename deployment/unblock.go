package deployment

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// A fail point that fails the handshake itself, and has no appName, keeps every
// client out, ours that would turn it off included. Servers do not insist on a
// handshake, so that it can be turned off without one, unless they want TLS or
// authentication.

// handshake are the commands that a connection begins with.
var handshake = []string{"hello", "isMaster", "ismaster"}

// bareLimit bounds a command without a handshake.
const bareLimit = time.Second

// Unblock turns failCommand off on the servers of a deployment whose
// handshake it fails. It touches nothing while another run holds the lock, which
// the error, a *HeldError, names then.
// Servers that cannot be asked are passed over.
func Unblock(ctx context.Context, t Target) (off []LeftFailPoint, err error) {
	u, err := t.parse()
	if err != nil {
		return nil, err
	}
	return unblock(ctx, u)
}

func unblock(ctx context.Context, u uri) (off []LeftFailPoint, err error) {
	if u.scheme != "mongodb" || strings.EqualFold(u.get("tls"), "true") || strings.EqualFold(u.get("ssl"), "true") {
		return nil, nil
	}
	bare := func(ctx context.Context, host, database string, command bson.D) (bson.Raw, error) {
		if u.api != "" {
			command = append(command, bson.E{Key: "apiVersion", Value: u.api})
		}
		return bare(ctx, host, database, command)
	}
	for _, host := range u.hosts {
		reply, err := bare(ctx, host, "admin", lookFor([]string{"failCommand"}))
		if err != nil {
			continue
		}
		for _, left := range on(host, reply) {
			if !failsHandshake(left.Data) {
				continue
			}
			store := &lockDocument{run: func(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
				secondary := bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondaryPreferred"}}}
				return bare(ctx, host, database, append(command, secondary))
			}}
			holder, err := store.read(ctx)
			switch {
			case err != nil:
				return off, fmt.Errorf("%s, and nobody can tell whether another run needs it: %w", left, err)
			case holder != nil && !holder.over():
				return off, &HeldError{Hosts: u.hosts, Holder: *holder}
			}
			if _, err := bare(ctx, host, "admin", bson.D{{Key: "configureFailPoint", Value: left.Name}, {Key: "mode", Value: "off"}}); err != nil {
				return off, fmt.Errorf("%s, and cannot be turned off: %w", left, err)
			}
			off = append(off, left)
		}
	}
	return off, nil
}

// failsHandshake reports whether the data of failCommand mean the handshake of
// every client.
func failsHandshake(data bson.Raw) bool {
	if text(data, "appName") != "" {
		return false
	}
	return slices.ContainsFunc(texts(data, "failCommands"), func(name string) bool { return slices.Contains(handshake, name) })
}

// bare runs a command through a connection of its own, without a handshake.
func bare(ctx context.Context, host, database string, command bson.D) (bson.Raw, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bareLimit, fmt.Errorf("no answer from %s within %s", host, bareLimit))
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", withPort(host))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: database}))
	if err != nil {
		return nil, err
	}
	start, message := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpMsg)
	message = wiremessage.AppendMsgFlags(message, 0)
	message = wiremessage.AppendMsgSectionType(message, wiremessage.SingleDocument)
	message = append(message, body...)
	if _, err := conn.Write(bsoncore.UpdateLength(message, start, int32(len(message)))); err != nil {
		return nil, err
	}
	return readBare(conn)
}

// The sizes of a reply: header, flags and the kind of its section come first.
const (
	bareHeader = 16 + 4 + 1
	bareMost   = 48 << 20
)

// readBare reads the reply of a command.
func readBare(r io.Reader) (bson.Raw, error) {
	var head [bareHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.LittleEndian.Uint32(head[:]))
	if op := wiremessage.OpCode(binary.LittleEndian.Uint32(head[12:])); op != wiremessage.OpMsg || size < bareHeader || size > bareMost {
		return nil, errors.New("the reply is none of a server")
	}
	body := make(bson.Raw, size-bareHeader)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	if err := body.Validate(); err != nil {
		return nil, fmt.Errorf("the reply is no document: %w", err)
	}
	if ok, _ := body.Lookup("ok").AsInt64OK(); ok != 1 {
		code, _ := body.Lookup("code").AsInt64OK()
		return nil, mongo.CommandError{Code: int32(code), Message: text(body, "errmsg")}
	}
	return body, nil
}
