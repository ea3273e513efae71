package reference

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	mongo "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	//lint:ignore SA1019 the topology takes no other clock
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/session"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// client is a client entity: a topology, what it gossips, and its log.
type client struct {
	driver   *driver
	settings settings
	api      *options.ServerAPIOptions // the declared version, nil without
	log      *enginekit.EventLog
	messages *messageLog // nil: none are observed
	topology *topology.Topology
	//lint:ignore SA1019 the topology takes no other clock
	clock     session.ClusterClock // the greatest cluster time seen, handshakes included
	sessions  sessionPool
	sockets   *sockets
	tokens    *tokenBucket
	metadata  metadata
	operation atomic.Int64 // the last operationId
	minPool   uint64

	closed sync.Once
}

// newClient opens a client. It returns at once; servers are discovered while
// operations wait for them. Errors are those of the connection string.
func newClient(d *driver, uri string, entity bson.Raw) (*client, error) {
	uriOptions, _ := entity.Lookup("uriOptions").DocumentOK()
	s, o, err := resolve(uri, uriOptions, d.policy)
	if err != nil {
		return nil, err
	}
	s.heartbeat = cmp.Or(s.heartbeat, d.options.Heartbeat)
	c := &client{driver: d, settings: s, tokens: newTokenBucket(d.policy),
		log: enginekit.NewEventLog(d.options.Now), sockets: newSockets(d.options.dial)}
	if c.messages, err = newMessageLog(d.options.Now, entity.Lookup("observeLogMessages")); err != nil {
		return nil, err
	}
	o.SetPoolMonitor(c.poolMonitor()).
		SetServerMonitor(c.serverMonitor()).
		SetDialer(c.sockets)
	c.messages.attach(o, s)
	if o := d.policy.Overload; o != nil {
		c.sockets.backpressure = o.Handshake
	}
	// TLS is made by the dialer, so that sockets see what goes over them.
	c.sockets.tls, o.TLSConfig = o.TLSConfig, nil
	if v := entity.Lookup("serverApi"); v.Type != 0 {
		if c.api, err = enginekit.ServerAPI(v, notValid); err != nil {
			return nil, err
		}
		o.SetServerAPIOptions(c.api)
	}
	if o.MinPoolSize != nil {
		c.minPool = *o.MinPoolSize
	}
	c.sockets.patient = c.minPool > 0 && (o.LoadBalanced == nil || !*o.LoadBalanced) // no one checks a load balancer
	// "auto" would look whether it is a function as a service that we run in.
	c.sockets.polls = s.monitoring == "poll"
	o.SetServerMonitoringMode(options.ServerMonitoringModeStream)
	if c.sockets.polls {
		o.SetServerMonitoringMode(options.ServerMonitoringModePoll)
	}
	authenticator, err := d.authenticators.of(o)
	if err != nil {
		return nil, err
	}
	config, err := topology.NewAuthenticatorConfig(authenticator, topology.WithAuthConfigClientOptions(o),
		topology.WithAuthConfigClock(&c.clock), // for handshakes; monitors do not gossip
		topology.WithAuthConfigDriverInfo(&c.metadata.current))
	if err != nil {
		return nil, err
	}
	if c.minPool > 0 { // or idle pools would be filled every 10 s
		config.ServerOpts = append(config.ServerOpts, topology.WithConnectionPoolMaintainInterval(
			func(time.Duration) time.Duration { return 20 * time.Millisecond }))
	}
	config.ServerOpts = append(config.ServerOpts,
		topology.WithHeartbeatInterval(func(time.Duration) time.Duration { return s.heartbeat }))
	config.ServerOpts = append(config.ServerOpts, topology.WithConnectionOptions(answered(c.sockets.Hold)))
	if c.topology, err = topology.New(config); err != nil {
		return nil, err
	}
	if err := c.topology.Connect(); err != nil {
		return nil, err
	}
	return c, nil
}

// Events implements enginekit.Client.
func (c *client) Events() *enginekit.EventLog { return c.log }

// close ends the server sessions, the pools and the monitoring. It does not
// wait for a heartbeat: the sockets are closed under it.
func (c *client) close() {
	c.closed.Do(func() {
		c.endSessions()
		c.sockets.Shut()
		// Without a deadline connections in use are closed at once.
		c.sockets.Close(2*time.Millisecond, func() { _ = c.topology.Disconnect(context.Background()) })
	})
}

// unknown reports whether a server of the topology is Unknown.
func (c *client) unknown(address string) bool {
	return slices.ContainsFunc(c.topology.Description().Servers, func(d description.Server) bool {
		return d.Addr.String() == address && d.Kind == description.Unknown
	})
}

// state is the topology as OpTopology reports it.
func (c *client) state() (s result.TopologyState) {
	t := c.describe()
	s.Type = string(t.Type)
	for _, v := range t.Servers {
		s.Servers = append(s.Servers, result.ServerState{Address: v.Address, Type: string(v.Type)})
	}
	return s
}

// tokenBucket is what a client has left for retries after overload errors,
// under a policy with a token bucket (Client Backpressure, "Token Bucket").
// All its operations share it.
type tokenBucket struct {
	mu     sync.Mutex
	tokens retry.Tokens
}

func newTokenBucket(p *retry.Policy) *tokenBucket {
	b := &tokenBucket{}
	if bucket := p.Bucket(); bucket != nil {
		b.tokens = bucket.Capacity
	}
	return b
}

// next asks the retry core. No other operation comes between the look into
// the bucket and what the decision leaves in it.
func (b *tokenBucket) next(s retry.State, in retry.Input) (retry.State, retry.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in.Tokens = b.tokens
	s, d := retry.Next(s, in)
	b.tokens = d.Tokens
	return s, d
}

// authenticators are kept for all clients of an engine, so that each does not
// salt the same password again: 15,000 rounds by default (Authentication,
// "SCRAM-SHA-256": clients may cache what they derive). Nothing else of a
// conversation outlives it. The zero value is ready, and may be used
// concurrently.
type authenticators struct {
	mu   sync.Mutex
	kept map[credential]mongo.Authenticator
}

// credential is all that an authenticator by password depends on.
type credential struct{ mechanism, source, user, password string }

// of gives the authenticator of a client, nil if it has no credential. Those
// of mechanisms that know more than a password are the client's own.
func (a *authenticators) of(o *options.ClientOptions) (mongo.Authenticator, error) {
	c := o.Auth
	if c == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := credential{c.AuthMechanism, c.AuthSource, c.Username, c.Password}
	if known := a.kept[key]; known != nil {
		return known, nil
	}
	made, err := auth.CreateAuthenticator(c.AuthMechanism, topology.ConvertCreds(c), o.HTTPClient)
	if err == nil && slices.Contains([]string{"", auth.SCRAMSHA1, auth.SCRAMSHA256}, c.AuthMechanism) {
		if a.kept == nil {
			a.kept = make(map[credential]mongo.Authenticator)
		}
		a.kept[key] = made
	}
	return made, err
}
