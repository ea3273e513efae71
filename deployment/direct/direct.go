// Package direct is for utr only. It runs commands without a handshake, each on its own connection, and classifies
// server error codes. A client of the driver waits for heartbeats while a server is being set up, and cannot connect
// while a fail point fails the handshake. Servers require a handshake only with authentication.
package direct

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// Run runs a command on the server at host:port, with TLS if secure is not nil. A server error is a
// mongo.CommandError.
func Run(ctx context.Context, address string, secure *tls.Config, database string, command bson.D) (bson.Raw, error) {
	reply, err := exchange(ctx, address, secure, slices.Concat(command, bson.D{{Key: "$db", Value: database}}))
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err != nil {
		return nil, err
	}
	return reply, refusal(reply)
}

func exchange(ctx context.Context, address string, secure *tls.Config, command bson.D) (bson.Raw, error) {
	dial := new(net.Dialer).DialContext
	if secure != nil {
		dial = (&tls.Dialer{Config: secure}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	// Canceling the context interrupts reads and writes.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	body, err := bson.Marshal(command)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(wire.AppendMsg(nil, requestID, 0, 0, body)); err != nil {
		return nil, err
	}
	return read(conn)
}

// Hello is a reply to isMaster. All versions support this command.
type Hello struct {
	Msg       string
	SetName   string `bson:"setName"`
	Writable  bool   `bson:"ismaster"` // a primary, a standalone, or a mongos
	Secondary bool
	Arbiter   bool     `bson:"arbiterOnly"`
	Hosts     []string // of its replica set, as are the following
	Passives  []string
	Arbiters  []string
	Sessions  *int32 `bson:"logicalSessionTimeoutMinutes"` // nil without sessions
}

// ReadHello decodes the result of a command.
func ReadHello(reply bson.Raw, err error) (h Hello, _ error) {
	if err == nil {
		err = bson.Unmarshal(reply, &h)
	}
	return h, err
}

func (h Hello) Mongos() bool { return h.Msg == "isdbgrid" }

const requestID = 1 // each connection has one request

func read(r io.Reader) (bson.Raw, error) {
	var doc bson.Raw
	h, body, err := wire.ReadMessage(r)
	if err == nil {
		doc, err = wire.Response(requestID, h, body)
	}
	if errors.Is(err, wire.ErrLength) || errors.Is(err, wire.ErrMalformed) {
		err = fmt.Errorf("%w: %w", errReply, err)
	}
	return doc, err
}

var errReply = errors.New("the answer is not a message of a MongoDB server")

// refusal returns the error in a reply.
func refusal(reply bson.Raw) error {
	if ok, _ := reply.Lookup("ok").AsInt64OK(); ok == 1 {
		return nil
	}
	var failed struct {
		Code     int32
		CodeName string `bson:"codeName"`
		Errmsg   string
	}
	if err := bson.Unmarshal(reply, &failed); err != nil {
		return fmt.Errorf("the reply cannot be decoded: %w", err)
	}
	if failed.Code == 0 && failed.Errmsg == "" {
		return errors.New("the server's reply has neither ok: 1 nor an error")
	}
	return mongo.CommandError{Code: failed.Code, Name: failed.CodeName, Message: failed.Errmsg, Raw: reply}
}

// passing are the codes of temporary errors: the server is not primary or is shutting down, or a mongos cannot reach
// it (Retryable Reads, "Retryable Error"; Change Streams, "Resumable Error").
var passing = []int32{
	codes.HostUnreachable, codes.HostNotFound, codes.NetworkTimeout, codes.ShutdownInProgress,
	codes.FailedToSatisfyReadPreference, codes.ReadConcernMajorityNotAvailableYet, codes.PrimarySteppedDown,
	codes.ExceededTimeLimit,
	codes.SocketException, codes.NotWritablePrimary, codes.InterruptedAtShutdown, codes.InterruptedDueToReplStateChange,
	codes.NotPrimaryNoSecondaryOk, codes.NotPrimaryOrSecondary,
}

// Transient reports whether to retry an idempotent command: it failed with a network error or a temporary server error,
// possibly while waiting for the write concern.
func Transient(err error) bool {
	return mongo.IsNetworkError(err) || slices.Contains(passing, CodeOf(err))
}

// CodeOf returns the server's code of an error, or of the write concern error if that is the only one, or 0.
func CodeOf(err error) int32 {
	var refused mongo.CommandError
	var written mongo.WriteException
	switch {
	case errors.As(err, &refused):
		return refused.Code
	case errors.As(err, &written) && len(written.WriteErrors) == 0 && written.WriteConcernError != nil:
		return int32(written.WriteConcernError.Code)
	}
	return 0
}

// Refused reports whether an error is a server's answer. It may have no code.
func Refused(err error) bool {
	var refused mongo.CommandError
	return CodeOf(err) != 0 || errors.As(err, &refused) && len(refused.Raw) > 0
}

// Absent reports whether a collection does not exist according to the server's error. Like drivers, it also accepts the
// message without a code.
func Absent(err error) bool {
	var refused mongo.CommandError
	return errors.As(err, &refused) && (refused.Code == codes.NamespaceNotFound || refused.Message == "ns not found")
}
