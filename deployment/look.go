package deployment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/unified-test-runner/utr/deployment/wire"
	"github.com/unified-test-runner/utr/internal/secret"
	_ "github.com/unified-test-runner/utr/internal/wire42" // clusters may be of version 4.2
)

// lookTimeout is long enough for an election.
const lookTimeout = 10 * time.Second

// runs runs a command on a database of a server or deployment.
type runs func(ctx context.Context, database string, command bson.D) (bson.Raw, error)

// ask asks for something about the server.
func (run runs) ask(ctx context.Context, name string, value any) (bson.Raw, error) {
	return run(ctx, "admin", bson.D{{Key: name, Value: value}})
}

// look asks a deployment something by a client of ours, over one connection, within a
// limit. The error is in plain words, without credentials.
func (u uri) look(ctx context.Context, limit time.Duration, ask func(context.Context, runs) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer from %s within %s", u.names(), limit))
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

// probe asks a deployment what it is.
func probe(ctx context.Context, text string) (d Description, err error) {
	u, err := parseURI(text)
	if err != nil {
		return d, err
	}
	err = u.look(ctx, lookTimeout, func(ctx context.Context, run runs) error {
		if d, err = greet(ctx, run, u); err != nil {
			return err
		}
		return describe(ctx, run, u, &d)
	})
	return d, err
}

// greet asks for topology and hosts. Only members of a replica set name each
// other: a mongos does not even tell its own address.
func greet(ctx context.Context, run runs, u uri) (d Description, err error) {
	reply, err := run.ask(ctx, "hello", 1)
	if wire.CodeOf(err) == codeCommandNotFound { // before 4.4.2
		reply, err = run.ask(ctx, "isMaster", 1)
	}
	hello, err := wire.ReadHello(reply, err)
	if err != nil {
		return d, err
	}
	d.Hosts = u.hosts
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

// describe asks for the rest of what requirements are judged by.
func describe(ctx context.Context, run runs, u uri, d *Description) error {
	build, err := run.ask(ctx, "buildInfo", 1)
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
	started, _ := run.ask(ctx, "getCmdLineOpts", 1) // not everybody may ask
	d.NoScripting = noScripting(build, started)

	// A server that refuses to list its parameters has none that a test could
	// require: the requirement is then not met.
	if d.Parameters, err = run.ask(ctx, "getParameter", "*"); err != nil {
		if ctx.Err() != nil || isUnauthorized(err) && !u.authenticates() {
			return err
		}
		d.Parameters = nil
	}
	d.AuthMechanisms = texts(d.Parameters, "authenticationMechanisms")

	d.ReplicaSetShards = d.Topology == Sharded || d.Topology == LoadBalanced // as all are since 3.6
	d.Auth = u.authenticates()
	*d = d.named()
	return nil
}

// noScripting concludes from its answers to buildInfo and getCmdLineOpts that a server
// was built without JavaScript, or started with --noscripting.
func noScripting(build, started bson.Raw) bool {
	enabled, told := started.Lookup("parsed", "security", "javascriptEnabled").BooleanOK()
	return text(build, "javascriptEngine") == "none" || told && !enabled
}

func text(doc bson.Raw, key string) string {
	s, _ := doc.Lookup(key).StringValueOK()
	return s
}

func texts(doc bson.Raw, key string) (out []string) {
	_ = doc.Lookup(key).Unmarshal(&out) // nil if it is not a list of texts
	return out
}

// advice says what people can do about an error of a connection, by a part of
// its text: what the operating system, TLS and the server say has no type that
// reaches us. The first row that fits counts.
var advice = []struct{ part, what string }{
	{"connection refused", "nothing listens there: is it running, and is this its port?"},
	{"no such host", "there is no host of that name"},
	{"unknown authority", "the certificate is not trusted: name that of its authority by tlsCAFile"},
	{"certificate is not valid", "the certificate is for another name"},
	{"first record does not look like a TLS handshake", "it does not speak TLS: leave tls=true out"},
	{"connection closed unexpectedly", "it hung up at once: if it requires TLS, add tls=true"},
	{"connection reset by peer", "it hung up at once: if it requires TLS, add tls=true"},
	{"EOF", "it hung up at once: does it speak TLS?"},
	{"i/o timeout", "something listens there and does not answer"},
	{"deadline exceeded", "something listens there and does not answer"},
	{"AuthenticationFailed", "user or password is wrong, or authSource is another database"},
	{"apiVersion parameter is required", "the server runs with requireApiVersion: declare a version with --server-api 1"},
}

// advise adds what can be done to a text about an error.
func advise(text string) string {
	for _, a := range advice {
		if strings.Contains(text, a.part) {
			return text + " (" + a.what + ")"
		}
	}
	return text
}

// reached is resolved, for hosts of which at least one listens.
func (u uri) reached(ctx context.Context) (uri, error) {
	out, err := u.resolved(ctx)
	if err == nil {
		err = refused(ctx, out)
	}
	return out, u.redact(err)
}

// refusedLimit bounds the wait for the first host to answer a connection.
const refusedLimit = time.Second

// refused gives an error if each host refuses a connection at once: what does not
// listen is not waited for. Whatever else there is to say, a client finds out.
func refused(ctx context.Context, u uri) error {
	if u.scheme != "mongodb" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, refusedLimit)
	defer cancel()
	said := make(chan error, len(u.hosts))
	for _, host := range u.hosts {
		go func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", withPort(host))
			if err == nil {
				_ = conn.Close()
				said <- nil
				return
			}
			said <- fmt.Errorf("\n  %s: %w", host, err)
		}()
	}
	why := "no server can be used"
	for range u.hosts {
		err := <-said
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		why += advise(err.Error())
	}
	return errors.New(why)
}

// redact keeps credentials out of an error.
func (u uri) redact(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(secret.NewKeeper(u.String()).Hide(err.Error()))
}

// plain says in a person's words why a look at a deployment failed, without
// credentials. An error that is about something else keeps its words.
func (u uri) plain(ctx context.Context, err error) error {
	var selection topology.ServerSelectionError
	switch {
	case err == nil:
		return nil
	case isUnauthorized(err) && !u.authenticates():
		return u.redact(fmt.Errorf("it requires authentication, and the connection string names no user: %w", err))
	case !errors.As(err, &selection):
		return u.redact(errors.New(advise(err.Error())))
	}
	why := "no server can be used"
	if ctx.Err() != nil {
		why = context.Cause(ctx).Error()
	}
	if name := u.get("replicaSet"); len(selection.Desc.Servers) == 0 && name != "" {
		why += fmt.Sprintf(": no host is a member of a replica set named %q", name)
	}
	for _, s := range selection.Desc.Servers {
		said := "it is of type " + s.Kind.String()
		switch {
		case s.LastError != nil:
			said = advise(s.LastError.Error())
		case s.Kind == description.Unknown:
			said = "it does not answer"
		}
		why += fmt.Sprintf("\n  %s: %s", s.Addr, said)
	}
	return u.redact(errors.New(why))
}

// The error codes that a look at a deployment distinguishes.
const (
	codeUnauthorized    = 13
	codeCommandNotFound = 59
)

// isUnauthorized reports whether the user may not do something.
func isUnauthorized(err error) bool { return wire.CodeOf(err) == codeUnauthorized }
