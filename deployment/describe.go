package deployment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/unified-test-runner/utr/deployment/direct"
)

// lookTimeout is long enough for an election.
const lookTimeout = 10 * time.Second

// runFunc runs a command on a server or deployment.
type runFunc func(ctx context.Context, database string, command bson.D) (bson.Raw, error)

// ask runs a command on the database admin.
func (run runFunc) ask(ctx context.Context, name string, value any) (bson.Raw, error) {
	return run(ctx, "admin", bson.D{{Key: name, Value: value}})
}

// look connects a client of ours, with one connection and a time limit, and calls ask. The error is explained and
// contains no credentials.
func (u uri) look(ctx context.Context, limit time.Duration, ask func(context.Context, runFunc) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s did not answer within %s", u.names(), limit))
	defer cancel()
	client, err := mongo.Connect(u.client("utr").SetMinPoolSize(0).SetMaxPoolSize(1))
	if err == nil {
		defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
		o := options.RunCmd().SetReadPreference(readpref.PrimaryPreferred())
		err = ask(ctx, func(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
			return client.Database(database).RunCommand(ctx, command, o).Raw()
		})
	}
	return u.plain(ctx, err)
}

// probe connects to a deployment and describes it.
func probe(ctx context.Context, text string) (d Description, err error) {
	u, err := parseURI(text)
	if err != nil {
		return d, err
	}
	err = u.look(ctx, lookTimeout, func(ctx context.Context, run runFunc) error {
		if d, err = discover(ctx, run, u); err != nil {
			return err
		}
		return describe(ctx, run, u, &d)
	})
	return d, err
}

// discover connects to a deployment and determines its topology and hosts.
func (u uri) discover(ctx context.Context, limit time.Duration) (d Description, err error) {
	err = u.look(ctx, limit, func(ctx context.Context, run runFunc) error { d, err = discover(ctx, run, u); return err })
	return d, err
}

// discover determines topology and hosts. Only members of a replica set report hosts; a mongos does not even report its
// own address.
func discover(ctx context.Context, run runFunc, u uri) (d Description, err error) {
	hello, err := direct.ReadHello(run.ask(ctx, "isMaster", 1))
	if err != nil {
		return d, err
	}
	d.Hosts = u.hosts
	if hello.Sessions == nil { // Driver Sessions, "How to Tell Whether a Connection Supports Sessions"
		d.Lacks = append(d.Lacks, Sessions)
	}
	switch {
	case strings.EqualFold(u.get("loadBalanced"), "true"):
		d.Topology = LoadBalanced
	case hello.Mongos():
		d.Topology = Sharded
	case hello.SetName != "":
		d.Topology = ReplicaSet
		d.Hosts = hello.Hosts
	default:
		d.Topology = Single
	}
	return d, nil
}

// describe determines the rest of the description.
func describe(ctx context.Context, run runFunc, u uri, d *Description) error {
	build, err := run.ask(ctx, "buildInfo", 1)
	if err != nil {
		return err
	}
	var info struct {
		VersionArray []int `bson:"versionArray"`
	}
	if err := bson.Unmarshal(build, &info); err != nil || len(info.VersionArray) < 3 {
		return errors.New("buildInfo has no versionArray")
	}
	copy(d.Version[:], info.VersionArray)
	started, _ := run.ask(ctx, "getCmdLineOpts", 1) // requires a privilege
	listed, _ := run.ask(ctx, "listCommands", 1)
	if noScripting(build, started) || lacksCommand(listed, "mapReduce") {
		d.Lacks = append(d.Lacks, JavaScript)
	}
	if lacksCommand(listed, "commitTransaction") {
		d.Lacks = append(d.Lacks, Transactions)
	}
	// If a server refuses to list its parameters, requirements of parameters are not met.
	parameters, err := run.ask(ctx, "getParameter", "*")
	if err == nil {
		d.setParameters(parameters)
	} else if ctx.Err() != nil || isUnauthorized(err) && !u.authenticates() {
		return err
	}
	d.ReplicaSetShards = d.Topology == Sharded || d.Topology == LoadBalanced // always, since 3.6
	d.Auth = u.authenticates()
	*d = d.named()
	return nil
}

// setParameters sets the server parameters and what follows from them.
func (d *Description) setParameters(parameters bson.Raw) {
	d.Parameters = parameters
	_ = parameters.Lookup("authenticationMechanisms").Unmarshal(&d.AuthMechanisms) // nil if it is not a list of strings
}

// lacksCommand reports whether a reply to listCommands has no such command. A server that does not list its commands is
// assumed to have all.
func lacksCommand(listed bson.Raw, name string) bool {
	all, ok := listed.Lookup("commands").DocumentOK()
	_, err := all.LookupErr(name)
	return ok && err != nil
}

// noScripting reports whether a server was built without JavaScript or started with --noscripting, by its replies to
// buildInfo and getCmdLineOpts.
func noScripting(build, started bson.Raw) bool {
	engine, _ := build.Lookup("javascriptEngine").StringValueOK()
	enabled, set := started.Lookup("parsed", "security", "javascriptEnabled").BooleanOK()
	return engine == "none" || set && !enabled
}
