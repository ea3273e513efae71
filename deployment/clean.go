package deployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/deployment/wire"
)

// A fail point that fails the handshake itself, and has no appName, keeps every
// client out, ours that would turn it off included. It is turned off without a
// handshake, unless the server requires authentication.

// handshake are the commands that a connection begins with.
var handshake = []string{"hello", "isMaster", "ismaster"}

// bareLimit bounds a command without a handshake.
const bareLimit = time.Second

// Unblock turns failCommand off on the servers of a deployment whose
// handshake it fails. It touches nothing while another run holds the lock, which
// the error, a *lock.HeldError, names then.
// Servers that cannot be asked are passed over.
func Unblock(ctx context.Context, t Target) (off []LeftFailPoint, err error) {
	u, err := parseURI(t.URI)
	if err != nil {
		return nil, err
	}
	u.api = t.ServerAPI
	return unblock(ctx, u)
}

func unblock(ctx context.Context, u uri) (off []LeftFailPoint, err error) {
	if u.scheme != "mongodb" {
		return nil, nil
	}
	for _, host := range u.hosts {
		reply, err := u.bare(ctx, host, "admin", lookFor([]string{"failCommand"}))
		if err != nil {
			continue
		}
		for _, left := range on(host, reply) {
			if !failsHandshake(left.Data) {
				continue
			}
			store := &lock.Document{Run: func(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
				secondary := bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondaryPreferred"}}}
				return u.bare(ctx, host, database, append(command, secondary))
			}}
			holder, err := store.Read(ctx)
			switch {
			case err != nil:
				return off, fmt.Errorf("%s, and nobody can tell whether another run needs it: %w", left, err)
			case holder != nil && !holder.Over():
				return off, &lock.HeldError{Hosts: u.hosts, Holder: *holder}
			}
			if _, err := u.bare(ctx, host, "admin", bson.D{{Key: "configureFailPoint", Value: left.Name}, {Key: "mode", Value: "off"}}); err != nil {
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

// bare runs a command on one host without a handshake.
func (u uri) bare(ctx context.Context, host, database string, command bson.D) (bson.Raw, error) {
	if u.api != "" {
		command = append(command, bson.E{Key: "apiVersion", Value: u.api})
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bareLimit, fmt.Errorf("no answer from %s within %s", host, bareLimit))
	defer cancel()
	return wire.Run(ctx, withPort(host), u.client("utr").TLSConfig, database, command)
}

// ClearLock removes the lock of a deployment if its run has ended: see lock.Clear.
func ClearLock(ctx context.Context, t Target) (holder *lock.Holder, removed bool, err error) {
	u, err := t.resolved(ctx)
	if err == nil {
		err = u.redact(ctx, refused(ctx, u))
	}
	if err != nil {
		return nil, false, err
	}
	store, err := lock.Open(u.client("utr lock"))
	if err != nil {
		return nil, false, u.redact(ctx, err)
	}
	defer store.Close()
	holder, removed, err = lock.Clear(ctx, store)
	return holder, removed, u.plain(ctx, err)
}
