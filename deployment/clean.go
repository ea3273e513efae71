package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/deployment/wire"
)

// Clean frees a deployment of what a run that is gone left there: its lock, and the
// fail points that suites set. It tells what it has done, and touches nothing while
// another run uses the deployment. ServerAPI is what ClusterOptions have of that name.
// The error holds no credentials, and names the members that cannot be asked.
func Clean(ctx context.Context, connectionString, serverAPI string, done func(string)) error {
	u, err := parseURI(connectionString)
	if err != nil {
		return err
	}
	if u, err = u.reached(ctx); err != nil {
		return err
	}
	u.api = serverAPI
	off, err := u.unblock(ctx)
	if tell(done, "turned off: ", off); err != nil {
		return err
	}
	holder, removed, err := u.clearLock(ctx)
	switch {
	case err != nil:
		return err
	case removed:
		done(fmt.Sprintf("removed: the lock of %s", holder))
	case holder != nil:
		return fmt.Errorf("it is in use by %s", holder)
	}
	var d Description
	if err := u.look(ctx, lookTimeout, func(ctx context.Context, run runs) (err error) { d, err = greet(ctx, run, u); return }); err != nil {
		return err
	}
	off, unasked := clearFailPoints(ctx, u, d, nil)
	tell(done, "turned off: ", off)
	return errors.Join(unasked...)
}

// clearLock removes the lock of a deployment if its run has ended: see lock.Clear.
func (u uri) clearLock(ctx context.Context) (holder *lock.Holder, removed bool, err error) {
	store, err := lock.Open(u.client("utr lock"))
	if err != nil {
		return nil, false, u.plain(ctx, err)
	}
	defer store.Close()
	holder, removed, err = lock.Clear(ctx, store)
	return holder, removed, u.plain(ctx, err)
}

// A fail point that fails the handshake itself, and has no appName, keeps every
// client out, ours that would turn it off included. It is turned off without a
// handshake, unless the server requires authentication.

// handshake are the commands that a connection begins with.
var handshake = []string{"hello", "isMaster", "ismaster"}

// unblock turns failCommand off on the servers of a deployment whose handshake it
// fails. It touches nothing while another run holds the lock, which the error, a
// *lock.HeldError, names then. Servers that cannot be asked are passed over.
func (u uri) unblock(ctx context.Context) (off []leftFailPoint, err error) {
	for _, host := range u.hosts {
		run := u.bare(host)
		found, err := failPointsOn(ctx, run, host, []string{"failCommand"})
		if err != nil || len(found) == 0 || !failsHandshake(found[0].Data) {
			continue
		}
		store := &lock.Document{Run: func(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
			secondary := bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondaryPreferred"}}}
			return run(ctx, database, append(command, secondary))
		}}
		holder, err := store.Read(ctx)
		switch {
		case err != nil:
			return off, fmt.Errorf("%s, and nobody can tell whether another run needs it: %w", found[0], err)
		case holder != nil && !holder.Over():
			return off, &lock.HeldError{Hosts: u.hosts, Holder: *holder}
		}
		turned, err := turnOff(ctx, run, found)
		if off = append(off, turned...); err != nil {
			return off, err
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

// bareLimit bounds a command without a handshake.
const bareLimit = time.Second

// bare runs commands on one host without a handshake.
func (u uri) bare(host string) runs {
	secure := u.client("utr").TLSConfig
	return func(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
		if u.api != "" {
			command = append(command, bson.E{Key: "apiVersion", Value: u.api})
		}
		ctx, cancel := context.WithTimeoutCause(ctx, bareLimit, fmt.Errorf("no answer from %s within %s", host, bareLimit))
		defer cancel()
		return wire.Run(ctx, withPort(host), secure, database, command)
	}
}
