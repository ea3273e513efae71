package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment/wire"
	_ "github.com/unified-test-runner/utr/internal/wire42" // releases may be of version 4.2
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// User is a user of the whole cluster, with the role root.
type User struct{ Name, Password string }

// commandLimit bounds one command: a server that accepts a connection and
// does not answer is asked again.
const commandLimit = 10 * time.Second

// run runs a command on the database admin, as nobody in particular.
func (s *server) run(ctx context.Context, command bson.D) (bson.Raw, error) {
	ctx, cancel := limited(ctx, s.Name, command)
	defer cancel()
	return wire.Run(ctx, s.address(), s.secure, "admin", command)
}

// runAs runs a command as somebody who signs in.
func (s *server) runAs(ctx context.Context, who options.Credential, command bson.D) error {
	o := options.Client().SetHosts([]string{s.address()}).SetDirect(true).SetAuth(who).SetTLSConfig(s.secure)
	return runBy(ctx, s.Name, o, command)
}

// limited bounds one command.
func limited(ctx context.Context, on string, command bson.D) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, commandLimit, fmt.Errorf("%s gave no answer to %s within %s", on, command[0].Key, commandLimit))
}

// runBy runs a command by a client of the driver, which can authenticate and knows
// load balancers.
func runBy(ctx context.Context, on string, o *options.ClientOptions, command bson.D) error {
	client, err := mongo.Connect(o.SetAppName("utr"))
	if err != nil {
		return err
	}
	within, cancel := limited(ctx, on, command)
	defer cancel()
	defer func() { _ = client.Disconnect(within) }()
	err = client.Database("admin").RunCommand(within, command).Err()
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w (%w)", context.Cause(within), err)
	}
	return err
}

// hello asks a server what it is.
func (s *server) hello(ctx context.Context) (wire.Hello, error) {
	return wire.ReadHello(s.run(ctx, bson.D{{Key: "isMaster", Value: 1}}))
}

// errStranger says that another server has the port.
var errStranger = errors.New("another server answers on its port")

// telling are the arguments by which a server is known: no other server has
// these values.
var telling = []string{"--dbpath", "--configdb"}

// ours checks that a server is the one that we started and not somebody else's
// on the same port, which ours will notice later than we do. One that does not
// tell, such as a mongod that requires authentication, is trusted.
func (s *server) ours(ctx context.Context) error {
	reply, err := s.run(ctx, bson.D{{Key: "getCmdLineOpts", Value: 1}})
	var told struct{ Argv []string }
	switch {
	case wire.CodeOf(err) != 0:
		return nil
	case err != nil:
		return err
	case bson.Unmarshal(reply, &told) == nil && differs(told.Argv, s.args):
		return errStranger
	}
	return nil
}

// differs reports whether the arguments that a server reports are those of
// another one.
func differs(theirs, ours []string) bool {
	return slices.ContainsFunc(telling, func(name string) bool {
		told := valueOf(theirs, name)
		return told != "" && told != valueOf(ours, name)
	})
}

// valueOf gives the value of an option among arguments, "" if it is not there.
func valueOf(args []string, name string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
		if arg == name && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// answering waits until a server answers commands.
func (s *server) answering(ctx context.Context) error {
	return await(ctx, fmt.Sprintf("%s to answer on %s", s.Name, s.address()), func(ctx context.Context) error {
		now, err := s.hello(ctx)
		switch {
		case err != nil:
			return err
		case s.Role == RoleMongos && !now.Mongos():
			return errStranger
		case s.Role == RoleStandalone && !now.Writable:
			return errors.New("it does not take writes")
		}
		return s.ours(ctx)
	})
}

// Codes of the server.
const (
	codeAlreadyInitialized = 23
	codeUserExists         = 51003
)

// hopeless are codes that mean the same the next time: BadValue, Unauthorized,
// AuthenticationFailed, IllegalOperation, CommandNotFound, NoReplicationEnabled,
// InvalidReplicaSetConfig.
var hopeless = []int32{2, 13, 18, 20, 59, 76, 93}

// initiation is the configuration of a replica set (replSetInitiate).
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

// stepUpPause is between two attempts to have a member elected.
const stepUpPause = 200 * time.Millisecond

// initiate makes a replica set of servers that answer, and waits until it has
// a primary and all others are secondaries.
func initiate(ctx context.Context, set Set, members []*server) error {
	config := initiation(set, addresses(members))
	err := await(ctx, fmt.Sprintf("replica set %s to be initiated", set.Name), func(ctx context.Context) error {
		_, err := members[0].run(ctx, bson.D{{Key: "replSetInitiate", Value: config}})
		if wire.CodeOf(err) == codeAlreadyInitialized { // an attempt whose answer was lost
			return nil
		}
		return lasting(err)
	})
	if err != nil {
		return err
	}
	var pushed time.Time
	return await(ctx, fmt.Sprintf("replica set %s to have a primary and %d secondaries", set.Name, len(members)-1), func(ctx context.Context) error {
		said := make([]wire.Hello, len(members))
		for i, m := range members {
			if said[i], err = m.hello(ctx); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
		}
		lacking, elected := lacks(said)
		// A set elects a primary by itself, after its election time-out of 10 s:
		// asked to, a member does not wait. It is refused as long as the others
		// have not heard of the set. A set of one does not wait either.
		if lacking != nil && len(members) > 1 && !elected && time.Since(pushed) > stepUpPause {
			_ = members[0].standForElection(ctx)
			pushed = time.Now()
		}
		return lacking
	})
}

// standForElection asks a member to. Servers with access control let nobody do
// that but one of themselves, who knows their password and signs in as the user
// __system of the database local. An error is no matter in the end: somebody
// will be elected.
func (s *server) standForElection(ctx context.Context) error {
	command := bson.D{{Key: "replSetStepUp", Value: 1}}
	if s.key == "" {
		_, err := s.run(ctx, command)
		return err
	}
	system := options.Credential{AuthMechanism: "SCRAM-SHA-256", Username: "__system", Password: s.key, AuthSource: "local"}
	return s.runAs(ctx, system, command)
}

// lacks says what is missing in a replica set by what its members said, nil if nothing
// is, and whether it has a primary.
func lacks(said []wire.Hello) (missing error, elected bool) {
	primaries, secondaries := 0, 0
	for _, h := range said {
		switch {
		case h.Writable:
			primaries++
		case h.Secondary:
			secondaries++
		}
	}
	others := len(said) - primaries - secondaries
	if primaries == 1 && others == 0 {
		return nil, true
	}
	return fmt.Errorf("%d primaries, %d secondaries, %d that are neither", primaries, secondaries, others), primaries > 0
}

// addShard adds a replica set as a shard, by a user if there is one. The mongos
// may not know its primary yet, and refuses for a moment: with many codes, so
// that none is taken for permanent.
func (s *server) addShard(ctx context.Context, user User, set Set, hosts []string) error {
	command := bson.D{{Key: "addShard", Value: set.Name + "/" + strings.Join(hosts, ",")}, {Key: "name", Value: set.Name}}
	return await(ctx, set.Name+" to be added as a shard", func(ctx context.Context) error {
		if user.Name != "" {
			return s.runAs(ctx, options.Credential{Username: user.Name, Password: user.Password, AuthSource: "admin"}, command)
		}
		_, err := s.run(ctx, command)
		return err
	})
}

// behindBalancer waits until a mongos answers through a load balancer as one
// that is load balanced: clients refuse one that gives no service id.
func behindBalancer(ctx context.Context, uri string) error {
	return await(ctx, "a mongos to answer behind the load balancer", func(ctx context.Context) error {
		return runBy(ctx, "the load balancer", options.Client().ApplyURI(uri), bson.D{{Key: "ping", Value: 1}})
	})
}

// createUser makes the first user, which somebody on the same machine may do
// without saying who it is ("Localhost Exception"). When it returns, members know the
// user: as many as a write concern says.
func (s *server) createUser(ctx context.Context, user User, members any) error {
	command := bson.D{
		{Key: "createUser", Value: user.Name}, {Key: "pwd", Value: user.Password}, {Key: "roles", Value: bson.A{"root"}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: members}}},
	}
	return await(ctx, "the user "+user.Name+" to be made on "+s.Name, func(ctx context.Context) error {
		_, err := s.run(ctx, command)
		if wire.CodeOf(err) == codeUserExists {
			return nil
		}
		return lasting(err)
	})
}

// The pauses of a wait: short at first, since much is there at once, and
// longer as it goes on, so that a busy machine is left in peace.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// await calls ask until it succeeds, fails with a permanent error, or the context
// ends. The error says what was waited for, and why it was not there
// the last time.
func await(ctx context.Context, what string, ask func(context.Context) error) error {
	begun := time.Now()
	deadline, bounded := ctx.Deadline()
	var last error
	for pause := firstPause; ; pause = min(lastPause, pause*3/2) {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		// An error of the end says nothing. It can come before the context has noticed the end.
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
		return fmt.Errorf("waited %s for %s: %w (seen last: %s)", time.Since(begun).Round(time.Millisecond), what, context.Cause(ctx), last)
	}
}

// permanent is an error that does not go away by waiting.
type permanent struct{ error }

// lasting marks the errors that no further attempt mends. Others can be those
// of a machine that is slow: a member that is not reached yet, for example.
func lasting(err error) error {
	if slices.Contains(hopeless, wire.CodeOf(err)) {
		return permanent{err}
	}
	return err
}
