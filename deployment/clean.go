package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/internal/net/processtime"
	"github.com/unified-test-runner/utr/internal/wire"
)

// Clean removes what a run that has ended left on a deployment: its lock, and the fail points that suites set. It
// reports each removal to done. While another run uses the deployment, it changes nothing. serverAPI is as in
// ClusterOptions. The error contains no credentials and names the members that could not be checked.
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
	if report(done, "turned off: ", off); err != nil {
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
	d, err := u.discover(ctx, lookTimeout)
	if err != nil {
		return err
	}
	off, failed := clearFailPoints(ctx, u, d, nil)
	report(done, "turned off: ", off)
	return errors.Join(failed...)
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

// unblock turns failCommand off on the hosts where it fails the handshake of every client, including ours. It sends
// commands without a handshake: this works unless the server requires authentication. While another run holds the lock,
// it changes nothing and returns a *lock.HeldError. It skips unreachable servers.
func (u uri) unblock(ctx context.Context) (off []leftFailPoint, err error) {
	for _, host := range u.hosts {
		run := u.bare(host)
		found, err := failPointsOn(ctx, run, host, []string{"failCommand"})
		if err != nil || len(found) == 0 || !failsHandshake(found[0].Data) {
			continue
		}
		store := &lock.Document{Clock: "serverStatus",
			Run: func(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
				secondary := bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondaryPreferred"}}}
				return run(ctx, database, append(command, secondary))
			}}
		holder, err := store.Read(ctx)
		switch {
		case err != nil:
			return off, fmt.Errorf("%s, and cannot tell whether another run needs it: %w", found[0], err)
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

// failsHandshake reports whether failCommand with this data fails the handshake of every client.
func failsHandshake(data bson.Raw) bool {
	var fails struct {
		AppName  string   `bson:"appName"`
		Commands []string `bson:"failCommands"`
	}
	_ = bson.Unmarshal(data, &fails)
	return fails.AppName == "" && slices.ContainsFunc(fails.Commands, wire.IsHello)
}

// bareLimit bounds a command without a handshake.
const bareLimit = time.Second

// bare returns a function that runs commands on one host without a handshake.
func (u uri) bare(host string) runFunc {
	secure := u.client("utr").TLSConfig
	return func(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
		if u.api != "" {
			command = append(command, bson.E{Key: "apiVersion", Value: u.api})
		}
		ctx, cancel := processtime.Limit(ctx, bareLimit, fmt.Errorf("%s did not answer within %s", host, bareLimit))
		defer cancel()
		return direct.Run(ctx, withPort(host), secure, database, command)
	}
}
