package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	_ "github.com/unified-test-runner/utr/internal/wire/godriver" // releases may be of version 4.2
	"github.com/unified-test-runner/utr/internal/wire/replies"
)

// commandLimit bounds one command: a server may accept a connection without answering.
const commandLimit = 10 * time.Second

// run runs a command on the database admin without authentication.
func (s *server) run(ctx context.Context, command bson.D) (bson.Raw, error) {
	ctx, cancel := withLimit(ctx, s.Name, command)
	defer cancel()
	return direct.Run(ctx, s.address(), s.secure, "admin", command)
}

// runAs runs a command with authentication, or without if who is nil.
func (s *server) runAs(ctx context.Context, who *options.Credential, command bson.D) error {
	if who == nil {
		_, err := s.run(ctx, command)
		return err
	}
	o := options.Client().SetHosts([]string{s.address()}).SetDirect(true).SetAuth(*who).SetTLSConfig(s.secure)
	return runBy(ctx, s.Name, o, command)
}

// withLimit bounds one command.
func withLimit(ctx context.Context, on string, command bson.D) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, commandLimit,
		fmt.Errorf("%s did not answer %s within %s", on, command[0].Key, commandLimit))
}

// runBy runs a command with a client of the driver, for authentication and load balancers.
func runBy(ctx context.Context, on string, o *options.ClientOptions, command bson.D) error {
	client, err := mongo.Connect(replies.Own(o.SetAppName("utr")))
	if err != nil {
		return err
	}
	within, cancel := withLimit(ctx, on, command)
	defer cancel()
	defer func() { _ = client.Disconnect(within) }()
	err = client.Database("admin").RunCommand(within, command).Err()
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w (%w)", context.Cause(within), err)
	}
	return err
}

func (s *server) hello(ctx context.Context) (direct.Hello, error) {
	return direct.ReadHello(s.run(ctx, bson.D{{Key: "isMaster", Value: 1}}))
}

var errOtherServer = errors.New("another server answers on its port")

// verify checks that the server on the port is ours. Another process may have the port, while ours has not exited yet.
// verify accepts a server that does not answer getCmdLineOpts, such as a mongod that requires authentication.
func (s *server) verify(ctx context.Context) error {
	reply, err := s.run(ctx, bson.D{{Key: "getCmdLineOpts", Value: 1}})
	var options struct{ Argv []string }
	switch {
	case direct.Refused(err):
		return nil
	case err != nil:
		return err
	case bson.Unmarshal(reply, &options) == nil && differs(options.Argv, s.args):
		return errOtherServer
	}
	return nil
}

// differs reports whether arguments belong to another server.
func differs(theirs, ours []string) bool {
	id := identity(theirs)
	return id != "" && id != identity(ours)
}

// identity returns the value among a server's arguments that no other server has, or "".
func identity(args []string) string {
	for i, arg := range args {
		switch name, value, joined := strings.Cut(arg, "="); {
		case name != "--dbpath" && name != "--configdb":
		case joined:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}

// awaitAnswer waits until a server answers commands.
func (s *server) awaitAnswer(ctx context.Context) error {
	return await(ctx, fmt.Sprintf("%s to answer on %s", s.Name, s.address()), func(ctx context.Context) error {
		now, err := s.hello(ctx)
		switch {
		case err != nil:
			return err
		case s.Role == RoleMongos && !now.Mongos():
			return errOtherServer
		case s.Role == RoleStandalone && !now.Writable:
			return errors.New("it does not accept writes")
		}
		return s.verify(ctx)
	})
}

// permanentCodes are the codes of permanent errors.
var permanentCodes = []int32{codes.BadValue, codes.Unauthorized, codes.AuthenticationFailed, codes.IllegalOperation,
	codes.CommandNotFound, codes.NoReplicationEnabled, codes.InvalidReplicaSetConfig}

// initiation returns the configuration of a replica set (replSetInitiate).
func initiation(set Set, hosts []string) bson.D {
	var members bson.A
	for i, host := range hosts {
		member := bson.D{{Key: "_id", Value: i}, {Key: "host", Value: host}}
		if i >= maxVoters {
			member = append(member, bson.E{Key: "votes", Value: 0}, bson.E{Key: "priority", Value: 0})
		}
		members = append(members, member)
	}
	config := bson.D{{Key: "_id", Value: set.Name}, {Key: "members", Value: members}}
	if set.Role == RoleConfig {
		config = append(config, bson.E{Key: "configsvr", Value: true})
	}
	return config
}

// stepUpPause is the pause between attempts to have a member elected.
const stepUpPause = 200 * time.Millisecond

// initiate initiates a replica set, and waits until it has a primary and all other members are secondaries.
func initiate(ctx context.Context, set Set, members []*server) error {
	command := bson.D{{Key: "replSetInitiate", Value: initiation(set, addresses(members))}}
	err := members[0].ensure(ctx, "replica set "+set.Name+" to be initiated", command, codes.AlreadyInitialized)
	if err != nil {
		return err
	}
	var steppedUp time.Time
	return await(ctx, "replica set "+set.Name+" to have a primary and "+plural.Of(len(members)-1, "secondary"),
		func(ctx context.Context) error {
			replies := make([]direct.Hello, len(members))
			for i, m := range members {
				if replies[i], err = m.hello(ctx); err != nil {
					return fmt.Errorf("%s: %w", m.Name, err)
				}
			}
			elected, missing := lacks(replies)
			// Without replSetStepUp, the first election starts only after the election timeout of 10 s, except in a
			// set of one. It fails until the other members know the configuration; so it is repeated.
			if missing != nil && len(members) > 1 && !elected && time.Since(steppedUp) > stepUpPause {
				_ = members[0].stepUp(ctx)
				steppedUp = time.Now()
			}
			return missing
		})
}

// stepUp sends replSetStepUp. With access control, only the members' internal user __system of the database local is
// authorized. Its password is the key. Errors are not fatal: a member is elected eventually.
func (s *server) stepUp(ctx context.Context) error {
	var system *options.Credential
	if s.key != "" {
		system = &options.Credential{AuthMechanism: "SCRAM-SHA-256", Username: "__system", Password: s.key,
			AuthSource: "local"}
	}
	return s.runAs(ctx, system, bson.D{{Key: "replSetStepUp", Value: 1}})
}

// lacks reports whether a replica set has a primary according to its members' replies, and what it still lacks, or nil.
func lacks(replies []direct.Hello) (elected bool, missing error) {
	primaries, secondaries := 0, 0
	for _, h := range replies {
		switch {
		case h.Writable:
			primaries++
		case h.Secondary:
			secondaries++
		}
	}
	others := len(replies) - primaries - secondaries
	if primaries == 1 && others == 0 {
		return true, nil
	}
	return primaries > 0, fmt.Errorf("it has %s, %s, %s", plural.Of(primaries, "primary"),
		plural.Of(secondaries, "secondary"), plural.Of(others, "other member"))
}

// addShard adds a replica set as a shard. Until the mongos has found its primary, the command fails with various codes.
// No error is therefore treated as permanent.
func (s *server) addShard(ctx context.Context, user *options.Credential, set Set, hosts []string) error {
	command := bson.D{{Key: "addShard", Value: set.Name + "/" + strings.Join(hosts, ",")}, {Key: "name", Value: set.Name}}
	return await(ctx, set.Name+" to be added as a shard",
		func(ctx context.Context) error { return s.runAs(ctx, user, command) })
}

// createUser creates the first user through the localhost exception, with a write concern.
func (s *server) createUser(ctx context.Context, user *options.Credential, w any) error {
	command := bson.D{
		{Key: "createUser", Value: user.Username}, {Key: "pwd", Value: user.Password}, {Key: "roles", Value: bson.A{"root"}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: w}}},
	}
	return s.ensure(ctx, "the user "+user.Username+" to be created on "+s.Name, command, codes.UserAlreadyExists)
}

// ensure runs a command until it succeeds or fails with a permanent error. Other errors, such as an unreachable member,
// may be due to a slow machine. The code done means that an earlier attempt succeeded and its reply was lost.
func (s *server) ensure(ctx context.Context, what string, command bson.D, done int32) error {
	return await(ctx, what, func(ctx context.Context) error {
		_, err := s.run(ctx, command)
		switch code := direct.CodeOf(err); {
		case code == done:
			return nil
		case slices.Contains(permanentCodes, code):
			return permanent{err}
		}
		return err
	})
}

// Pauses between attempts grow from the first to the last, to spare a busy machine.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// await calls try until it succeeds, fails with a permanent error, or the context ends. The error names what it waited
// for and the last error.
func await(ctx context.Context, what string, try func(context.Context) error) error {
	begun := time.Now()
	deadline, bounded := ctx.Deadline()
	var last error
	for pause := firstPause; ; pause = min(lastPause, pause*3/2) {
		err := try(ctx)
		if err == nil {
			return nil
		}
		// Keep the last error before the end of the context. A timeout can be reported before ctx.Err is set.
		late := ctx.Err() != nil || bounded && !time.Now().Before(deadline)
		if last == nil || !late {
			last = err
		}
		if p := (permanent{}); errors.As(err, &p) {
			return fmt.Errorf("%s: %w", what, p.error)
		}
		if ctx.Err() == nil {
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
			}
		}
		return fmt.Errorf("waited %s for %s: %w (last error: %w)", time.Since(begun).Round(time.Millisecond), what,
			context.Cause(ctx), last)
	}
}

// permanent is an error that no retry resolves.
type permanent struct{ error }
