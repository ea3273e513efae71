package deployment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/secret"
	_ "github.com/unified-test-runner/utr/internal/wire42" // clusters may be of version 4.2
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// ClusterOptions says which running deployment to use.
type ClusterOptions struct {
	// URI is the connection string with all seeds.
	URI string
	// SingleURI is the connection string of the load balancer that fronts a
	// single mongos. Demanded for load balanced deployments, unused elsewhere
	// (Unified Test Format, "Initializing the Test Runner").
	SingleURI string
	// Serverless tells that the deployment is an Atlas Serverless instance,
	// which it cannot tell of itself.
	Serverless bool
	// ServerAPI is the version of the Stable API that clients of ours declare,
	// for servers with requireApiVersion; "" declares none.
	ServerAPI string
	// Timeout bounds the look at the deployment; 0 means what the connection
	// string has as serverSelectionTimeoutMS, and 10 seconds if it has none.
	Timeout time.Duration
	// Lock, if not nil, keeps other runs away until the source is closed. Then
	// fail points that an earlier run left on are turned off, too.
	Lock *LockOptions
	// FailPoints names fail points beside those that suites are known to set.
	FailPoints []string
	// Note tells people what was found, a line at a time. Nil drops it.
	Note func(string)
}

// lookTimeout is long enough for an election.
const lookTimeout = 10 * time.Second

// CheckURI tells what is wrong with a connection string by itself: nothing is
// looked up or connected to. The error never holds its credentials.
func CheckURI(s string) error {
	u, err := parseURI(s)
	if err != nil || u.scheme == "mongodb+srv" { // the rest stands in the domain name system
		return err
	}
	return redact(context.Background(), options.Client().ApplyURI(s).Validate(), s)
}

// OpenCluster looks at a deployment that somebody else runs, and gives a
// source with that one offer. Tests run on it one at a time. Errors never hold
// the connection string's credentials. With ClusterOptions.Lock the error is a
// *HeldError if another run uses the deployment; ctx alone bounds the wait for
// that one.
func OpenCluster(ctx context.Context, o ClusterOptions) (Source, error) {
	u, err := parseURI(o.URI)
	if err != nil {
		return nil, err
	}
	if u, err = u.reached(ctx); err != nil {
		return nil, fmt.Errorf("cannot use the deployment at %s: %w", strings.Join(u.hosts, ","), redact(ctx, err, o.URI))
	}
	u.api = o.ServerAPI
	if o.Timeout == 0 {
		o.Timeout = lookTimeout
		if ms, err := strconv.ParseUint(u.get("serverSelectionTimeoutMS"), 10, 31); err == nil && ms > 0 {
			o.Timeout = time.Duration(ms) * time.Millisecond
		}
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	s := &clusterSource{turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	if s.cluster, err = s.open(ctx, u, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open looks at a deployment, in the order that leaves other runs alone:
// nothing is changed before the lock is held.
func (s *clusterSource) open(ctx context.Context, u uri, o ClusterOptions) (c *cluster, err error) {
	c = &cluster{uri: u, raw: o.URI}
	hosts := strings.Join(u.hosts, ",")
	within := func(look func(context.Context) error) error {
		ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("no answer from %s within %s", hosts, o.Timeout))
		defer cancel()
		if err := look(ctx); err != nil {
			return fmt.Errorf("cannot use the deployment at %s: %w", hosts, redact(context.WithoutCancel(ctx), unreachable(ctx, err, u), o.URI))
		}
		return nil
	}
	client, err := lookingClient(u)
	if err != nil {
		return nil, fmt.Errorf("cannot use the deployment at %s: %w", hosts, redact(ctx, err, o.URI))
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	meet := func(ctx context.Context) (err error) { c.description, err = greet(ctx, client, u); return err }
	if err := within(meet); err != nil {
		if o.Lock == nil {
			return nil, err
		}
		off, blocked := unblock(ctx, u)
		if held := new(HeldError); errors.As(blocked, &held) {
			return nil, blocked
		}
		if len(off) == 0 {
			return nil, err
		}
		tell(o.Note, off)
		if err := within(meet); err != nil {
			return nil, err
		}
	}
	if o.Lock != nil {
		if err := s.hold(ctx, u, o, within); err != nil {
			return nil, err
		}
		swept := clearFailPoints(ctx, u, c.description, o.FailPoints)
		tell(o.Note, swept.Off)
		for _, err := range swept.Unasked {
			o.Note(err.Error())
		}
	}
	if err := within(func(ctx context.Context) error { return describe(ctx, client, u, &c.description) }); err != nil {
		return nil, err
	}
	c.description.Auth = u.authenticates()
	c.description.Serverless = o.Serverless
	if c.description.Auth {
		c.description.Name += " auth"
	}
	switch {
	case c.description.Topology == LoadBalanced && o.SingleURI == "" && !o.Serverless:
		return nil, errors.New("the deployment is load balanced: name the load balancer in front of a single mongos too (--single-uri)")
	case c.description.Topology == LoadBalanced && !o.Serverless:
		c.single = o.SingleURI
	case c.description.Topology == Sharded && len(c.description.Hosts) > 0:
		c.single = u.at(c.description.Hosts[0]).String()
	default:
		c.single = o.URI
	}
	return c, nil
}

// tell tells people of fail points that were on.
func tell(note func(string), off []LeftFailPoint) {
	for _, left := range off {
		note("left over from an earlier run, and turned off: " + left.String())
	}
}

// hold takes the lock. A user who may not write the lock document runs without
// it.
func (s *clusterSource) hold(ctx context.Context, u uri, o ClusterOptions, within func(func(context.Context) error) error) (err error) {
	lock := *o.Lock
	lock.ServerAPI = o.ServerAPI
	if lock.Note == nil {
		lock.Note = o.Note
	}
	s.lock, err = AcquireLock(ctx, o.URI, lock)
	switch {
	case isUnauthorized(err) && u.authenticates():
		o.Note(fmt.Sprintf("no lock keeps other runs away from the deployment at %s: the user of the connection string may not write %s.%s",
			strings.Join(u.hosts, ","), LockDatabase, LockCollection))
		return nil
	case isUnauthorized(err):
		return within(func(context.Context) error { return err })
	}
	return err
}

// cluster is a deployment that was there before us and stays.
type cluster struct {
	uri         uri
	raw, single string
	description Description
}

func (c *cluster) Description() Description { return c.description }
func (c *cluster) URI() string              { return c.raw }
func (c *cluster) SingleURI() string        { return c.single }
func (c *cluster) Owned() bool              { return false }

// DirectURI aims at one host. A load balancer cannot be passed by: its own
// connection string is the most direct one.
func (c *cluster) DirectURI(address string) string {
	if c.description.Topology == LoadBalanced {
		return c.uri.at(address).String()
	}
	return c.uri.direct(address).String()
}

// clusterSource lends its one cluster to one worker at a time.
type clusterSource struct {
	cluster *cluster
	turn    chan struct{}
	lock    *Lock // nil if there is none
}

func (s *clusterSource) Offers() []Description { return []Description{s.cluster.description} }

func (s *clusterSource) Acquire(ctx context.Context, i int) (Deployment, error) {
	if i != 0 {
		return nil, fmt.Errorf("there is no offer %d: a cluster is the only one", i)
	}
	select {
	case <-s.turn:
		if s.lock != nil {
			s.lock.Renew(ctx) // between tests, where no fail point is on
		}
		return s.cluster, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the cluster to be free: %w", context.Cause(ctx))
	}
}

func (s *clusterSource) Release(Deployment, bool) { s.turn <- struct{}{} }

// Close gives the lock up.
func (s *clusterSource) Close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Release()
}

// probe asks a deployment what it is.
func probe(ctx context.Context, uri string) (d Description, err error) {
	u, err := parseURI(uri)
	if err != nil {
		return d, err
	}
	defer func() { err = redact(context.WithoutCancel(ctx), unreachable(ctx, err, u), uri) }()
	client, err := lookingClient(u)
	if err != nil {
		return d, err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	if d, err = greet(ctx, client, u); err != nil {
		return d, err
	}
	err = describe(ctx, client, u, &d)
	return d, err
}

// lookingClient is a client for a look.
func lookingClient(u uri) (*mongo.Client, error) { return mongo.Connect(u.client("utr")) }

// ask runs a command of a look.
func ask(ctx context.Context, client *mongo.Client, command bson.D) (bson.Raw, error) {
	return client.Database("admin").RunCommand(ctx, command, options.RunCmd().SetReadPreference(readpref.PrimaryPreferred())).Raw()
}

// sayHello asks what a server is.
func sayHello(ctx context.Context, client *mongo.Client) (bson.Raw, error) {
	hello, err := ask(ctx, client, bson.D{{Key: "hello", Value: 1}})
	if isCode(err, codeCommandNotFound) { // before 4.4.2
		hello, err = ask(ctx, client, bson.D{{Key: "isMaster", Value: 1}})
	}
	return hello, err
}

// greet asks for topology and hosts. Only members of a replica set tell of each
// other: a mongos does not even tell its own address.
func greet(ctx context.Context, client *mongo.Client, u uri) (d Description, err error) {
	hello, err := sayHello(ctx, client)
	if err != nil {
		return d, err
	}
	d.Hosts = u.hosts
	switch {
	case strings.EqualFold(u.get("loadBalanced"), "true"):
		d.Topology = LoadBalanced
	case text(hello, "msg") == "isdbgrid":
		d.Topology = Sharded
	case text(hello, "setName") != "":
		d.Topology = ReplicaSet
		d.Hosts = texts(hello, "hosts")
	default:
		d.Topology = Single
	}
	return d, nil
}

// describe asks for the rest of what requirements are judged by.
func describe(ctx context.Context, client *mongo.Client, u uri, d *Description) error {
	build, err := ask(ctx, client, bson.D{{Key: "buildInfo", Value: 1}})
	if err != nil {
		return err
	}
	var info struct {
		VersionArray []int `bson:"versionArray"`
	}
	if err := bson.Unmarshal(build, &info); err != nil || len(info.VersionArray) < 3 {
		return errors.New("buildInfo does not tell a versionArray")
	}
	copy(d.Version[:], info.VersionArray)
	started, _ := ask(ctx, client, bson.D{{Key: "getCmdLineOpts", Value: 1}}) // not everybody may ask
	d.NoScripting = noScripting(build, started)

	// A server that refuses to list its parameters has none that a test could
	// require: the requirement is then not met.
	if d.Parameters, err = ask(ctx, client, bson.D{{Key: "getParameter", Value: "*"}}); err != nil {
		if ctx.Err() != nil || isCode(err, codeUnauthorized) && !u.authenticates() {
			return err
		}
		d.Parameters = nil
	}
	d.AuthMechanisms = texts(d.Parameters, "authenticationMechanisms")

	switch d.Topology {
	case Sharded:
		d.ReplicaSetShards, err = shardsAreReplicaSets(ctx, client)
		if isUnauthorized(err) && u.authenticates() {
			d.ReplicaSetShards, err = true, nil // as all are since 3.6
		}
		if err != nil {
			return fmt.Errorf("cannot read config.shards: %w", err)
		}
	case LoadBalanced: // 5.0 and later, whose shards are replica sets
		d.ReplicaSetShards = true
	}
	d.Name = fmt.Sprintf("%s %d.%d", d.Topology, d.Version[0], d.Version[1])
	return nil
}

// noScripting tells by its answers to buildInfo and getCmdLineOpts that a server
// was built without JavaScript, or started with --noscripting.
func noScripting(build, started bson.Raw) bool {
	enabled, told := started.Lookup("parsed", "security", "javascriptEnabled").BooleanOK()
	return text(build, "javascriptEngine") == "none" || told && !enabled
}

// shardsAreReplicaSets follows "Determining if a Sharded Cluster Uses Replica
// Sets": the host of such a shard is name/host,host.
func shardsAreReplicaSets(ctx context.Context, client *mongo.Client) (bool, error) {
	cursor, err := client.Database("config").Collection("shards").Find(ctx, bson.D{})
	if err != nil {
		return false, err
	}
	var shards []struct {
		Host string `bson:"host"`
	}
	if err := cursor.All(ctx, &shards); err != nil {
		return false, err
	}
	for _, s := range shards {
		if !strings.Contains(s.Host, "/") {
			return false, nil
		}
	}
	return true, nil
}

func text(doc bson.Raw, key string) string {
	s, _ := doc.Lookup(key).StringValueOK()
	return s
}

func texts(doc bson.Raw, key string) []string {
	array, ok := doc.Lookup(key).ArrayOK()
	if !ok {
		return nil
	}
	values, _ := array.Values()
	var out []string
	for _, v := range values {
		if s, ok := v.StringValueOK(); ok {
			out = append(out, s)
		}
	}
	return out
}

// redact keeps credentials out of an error, and says which wait a time-out
// ended.
func redact(ctx context.Context, err error, uri string) error {
	if err == nil {
		return nil
	}
	message := err.Error()
	if ctx.Err() != nil {
		message = context.Cause(ctx).Error() + ": " + message
	}
	return errors.New(secret.NewKeeper(uri).Hide(message))
}
