package deployment

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/unified-test-runner/utr/embedded/proxy"
)

// FailPointMode is who executes fail points.
type FailPointMode string

// The modes. FailPointsAuto, the default, is FailPointsServer if the servers have test commands, and FailPointsProxy
// otherwise.
const (
	FailPointsAuto   FailPointMode = "auto"
	FailPointsServer FailPointMode = "server"
	FailPointsProxy  FailPointMode = "proxy"
)

// shares reports whether a number of workers share servers, each behind a proxy of its own: a fail point of a server
// would affect the other workers, too.
func (m FailPointMode) shares(workers int) bool { return workers > 1 && m != FailPointsServer }

// Proxied returns what the proxy for fail points executes, whatever the servers have.
func Proxied() Description { return Description{}.proxied() }

// proxied returns the description of a deployment behind the proxy for fail points.
func (d Description) proxied() Description {
	d.FailPoints, d.LackingFields = proxy.FailPoints(), proxy.LackingFields()
	if d.Parameters != nil { // suites that set this fail point require the parameter
		elements, _ := d.Parameters.Elements()
		parameters := bson.D{{Key: "failCommandSequence", Value: true}}
		for _, e := range elements {
			if e.Key() != parameters[0].Key {
				parameters = append(parameters, bson.E{Key: e.Key(), Value: e.Value()})
			}
		}
		d.Parameters, _ = bson.Marshal(parameters) // values that a server has sent
	}
	return d
}

// needsProxy reports whether tests require the proxy on a running deployment. If its parameters are unknown, needsProxy
// reads whether it has test commands. If the user may not read that, tests use the servers, and their error names the
// missing right.
func (m FailPointMode) needsProxy(ctx context.Context, u uri, d Description) (bool, error) {
	if m == FailPointsServer || m == FailPointsProxy {
		return m == FailPointsProxy, nil
	}
	enabled := d.TestCommands()
	if enabled != nil {
		return !*enabled, nil
	}
	unauthorized := false
	err := u.look(ctx, lookTimeout, func(ctx context.Context, run runFunc) error {
		reply, err := run(ctx, "admin", bson.D{{Key: "getParameter", Value: 1}, {Key: testCommands, Value: 1}})
		enabled, unauthorized = Description{Parameters: reply}.TestCommands(), isUnauthorized(err)
		return err
	})
	switch {
	case unauthorized:
		return false, nil
	case err != nil && ctx.Err() != nil:
		return false, err
	}
	return enabled == nil || !*enabled, nil
}

const testCommands = "enableTestCommands"

// TestCommands returns the server parameter enableTestCommands, which is a boolean or a number; nil if it is unknown.
func (d Description) TestCommands() *bool {
	v, err := d.Parameters.LookupErr(testCommands)
	if err != nil {
		return nil
	}
	enabled, _ := v.BooleanOK()
	if n, ok := v.AsInt64OK(); ok && n != 0 {
		enabled = true
	}
	return &enabled
}

var errX509 = errors.New("the proxy for fail points cannot be used with authMechanism=MONGODB-X509: drivers connect to it without TLS, " +
	"and have no certificate there; use a user with a password, or --fail-points server")

// front starts a proxy in front of each server of a cluster. Tests then use the proxies in place of the servers.
func (c *cluster) front(ctx context.Context) (err error) {
	for _, u := range []*uri{&c.all, &c.single} { // a driver must not find the servers by an SRV name
		if *u, err = u.resolved(ctx); err != nil {
			return u.redact(err)
		}
	}
	if c.all.get("authMechanism") == "MONGODB-X509" {
		return errX509
	}
	secure := c.all.client("utr").TLSConfig
	o := proxy.Options{Balanced: c.description.Topology == LoadBalanced, Inside: c.inside,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			if secure == nil {
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			}
			return (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", address)
		}}
	if c.all.authenticates() {
		questions := &questions{at: c.all.direct, clients: map[string]*mongo.Client{}}
		if o.Balanced {
			questions.at = func(host string) uri { return c.all.at(host) }
		}
		o.Ask = questions.ask
		c.cleanUp = append(c.cleanUp, questions.close)
	}
	var servers []string
	for _, host := range slices.Concat(c.all.hosts, c.single.hosts, c.description.Hosts) {
		servers = append(servers, withPort(host))
	}
	p, err := proxy.Start(o, servers...)
	if err != nil {
		return err
	}
	if c.proxy = p; !c.inside {
		c.description = c.description.proxied()
	}
	c.cleanUp = append(c.cleanUp, func(context.Context) error { p.Close(); return nil })
	return nil
}

// questions sends the proxy's commands to servers with access control, as the user of the connection string. Clients
// are kept, since a new one would delay the reply that waits for the answer.
type questions struct {
	at func(host string) uri

	mu      sync.Mutex
	clients map[string]*mongo.Client // by host
}

func (q *questions) ask(ctx context.Context, host string, command bson.D) (bson.Raw, error) {
	client, err := q.client(host)
	if err != nil {
		return nil, err
	}
	return client.Database("admin").RunCommand(ctx, command, options.RunCmd().SetReadPreference(readpref.Nearest())).Raw()
}

func (q *questions) client(host string) (client *mongo.Client, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if client = q.clients[host]; client == nil {
		if client, err = mongo.Connect(q.at(host).client("utr")); err == nil {
			q.clients[host] = client
		}
	}
	return client, err
}

func (q *questions) close(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for host, client := range q.clients {
		_ = client.Disconnect(ctx) // the server may have ended
		delete(q.clients, host)
	}
	return nil
}

// seen returns a connection string for tests: through the proxy, if there is one.
func (c *cluster) seen(u uri) uri {
	if c.proxy == nil {
		return u
	}
	u = u.at(c.fronts(u.hosts)...).without("compressors", "zlibCompressionLevel")
	for _, o := range u.options {
		if key := strings.ToLower(o.key); strings.HasPrefix(key, "tls") || strings.HasPrefix(key, "ssl") {
			u = u.without(o.key)
		}
	}
	return u
}

// fronts returns the addresses of the proxy in front of servers, or the servers without a proxy.
func (c *cluster) fronts(servers []string) (all []string) {
	if c.proxy == nil {
		return servers
	}
	for _, s := range servers {
		all = append(all, c.proxy.Address(withPort(s)))
	}
	return all
}
