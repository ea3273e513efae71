package reference

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"

	//lint:ignore SA1019 the topology accepts no other clock
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/session"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
)

// client is a client entity.
type client struct {
	driver   *driver
	settings settings
	api      *options.ServerAPIOptions // nil: not declared
	log      *enginekit.EventLog
	messages *messageLog // nil: not observed
	tracing  *tracing    // nil: no spans
	topology *topology.Topology
	//lint:ignore SA1019 the topology accepts no other clock
	clock     session.ClusterClock // the highest seen cluster time, including handshakes
	sessions  sessionPool
	sockets   *sockets
	tokens    *tokenBucket
	metadata  metadata
	operation atomic.Int64 // the last operationId
	minPool   uint64

	closed sync.Once
}

// specifiedHeartbeat is the default of heartbeatFrequencyMS in the specification (Server Monitoring,
// "heartbeatFrequencyMS"). Measurements of round trip times need not be as frequent as our heartbeats.
const specifiedHeartbeat = 10 * time.Second

// newClient opens a client without waiting for servers. Errors are errors of the connection string and the options.
func newClient(d *driver, uri string, entity bson.Raw) (*client, error) {
	uriOptions, _ := entity.Lookup("uriOptions").DocumentOK()
	s, o, err := resolve(uri, uriOptions, d.policy)
	if err != nil {
		return nil, err
	}
	firstRTT := cmp.Or(s.HeartbeatInterval, specifiedHeartbeat) * 4 / 5 // a little before it is due
	s.HeartbeatInterval = cmp.Or(s.HeartbeatInterval, d.options.Heartbeat)
	c := &client{driver: d, settings: s, tokens: newTokenBucket(d.policy),
		log: enginekit.NewEventLog(d.options.Now), sockets: newSockets(d.options.dial)}
	if c.messages, err = newMessageLog(d.options.Now, entity.Lookup("observeLogMessages")); err != nil {
		return nil, err
	}
	for _, text := range s.warnings {
		c.messages.add(componentConnection, "warning", document("message", text), nil)
	}
	if c.tracing, err = d.options.Tracing.newTracing(d.policy.Name, entity.Lookup("observeTracingMessages")); err != nil {
		return nil, err
	}
	o.SetPoolMonitor(c.poolMonitor()).
		SetServerMonitor(c.serverMonitor()).
		SetDialer(c.sockets)
	c.messages.attach(o, s)
	c.sockets.labels = d.policy.Since(retry.ConnectionLabels)
	if o := d.policy.Overload; o != nil {
		c.sockets.backpressure = o.Handshake
	}
	c.sockets.timeout, c.sockets.socketTimeout, c.sockets.firstRTT = s.timeout, s.SocketTimeout, firstRTT
	// The dialer establishes TLS, so that sockets can inspect the messages.
	c.sockets.tls, o.TLSConfig = o.TLSConfig, nil
	if v := entity.Lookup("serverApi"); v.Type != 0 {
		if c.api, err = enginekit.ServerAPI(v, invalidField); err != nil {
			return nil, err
		}
		o.SetServerAPIOptions(c.api)
	}
	if o.MinPoolSize != nil {
		c.minPool = *o.MinPoolSize
	}
	c.sockets.afterCheck = c.minPool > 0 && (o.LoadBalanced == nil || !*o.LoadBalanced) // a load balancer is not monitored
	// The mode "auto" would depend on whether the engine runs in a FaaS environment.
	o.SetServerMonitoringMode(options.ServerMonitoringModeStream)
	if c.sockets.polls = s.ServerMonitoringMode == options.ServerMonitoringModePoll; c.sockets.polls {
		o.SetServerMonitoringMode(options.ServerMonitoringModePoll)
	}
	authenticator, err := d.authenticators.of(o)
	if err != nil {
		return nil, err
	}
	config, err := topology.NewAuthenticatorConfig(authenticator, topology.WithAuthConfigClientOptions(o),
		topology.WithAuthConfigClock(&c.clock), // for handshakes only
		topology.WithAuthConfigDriverInfo(&c.metadata.current))
	if err != nil {
		return nil, err
	}
	if c.minPool > 0 { // the default would fill idle pools every 10 s
		config.ServerOpts = append(config.ServerOpts, topology.WithConnectionPoolMaintainInterval(
			func(time.Duration) time.Duration { return 20 * time.Millisecond }))
	}
	config.ServerOpts = append(config.ServerOpts,
		topology.WithHeartbeatInterval(func(time.Duration) time.Duration { return s.HeartbeatInterval }),
		topology.WithConnectionOptions(func(o ...topology.ConnectionOption) []topology.ConnectionOption {
			return append(o, topology.WithHandshaker(func(h topology.Handshaker) topology.Handshaker {
				return handshaker{h, c.sockets}
			}))
		}))
	if c.topology, err = topology.New(config); err != nil {
		return nil, err
	}
	return c, c.topology.Connect()
}

// Events implements enginekit.Client.
func (c *client) Events() *enginekit.EventLog { return c.log }

// close ends the server sessions, the pools and the monitoring. It closes the sockets to interrupt heartbeats.
func (c *client) close() {
	c.closed.Do(func() {
		c.endSessions()
		c.sockets.Shut()
		// A context without a deadline closes connections in use at once.
		c.sockets.Close(2*time.Millisecond, func() { _ = c.topology.Disconnect(context.Background()) })
	})
}

// unknown reports whether a server is Unknown.
func (c *client) unknown(address string) bool {
	return slices.ContainsFunc(c.topology.Description().Servers, func(d description.Server) bool {
		return d.Addr.String() == address && d.Kind == description.Unknown
	})
}

// tokenBucket holds the tokens of a client for retries after overload errors (Client Backpressure (2026-03-05), "Token
// Bucket").
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

// next calls retry.Next with the tokens and stores the new number, atomically.
func (b *tokenBucket) next(s retry.State, in retry.Input) (retry.State, retry.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in.Tokens = b.tokens
	s, d := retry.Next(s, in)
	b.tokens = d.Tokens
	return s, d
}

// authenticators caches SCRAM authenticators for all clients of an engine, because deriving a key takes 15,000 rounds
// by default (Authentication, "SCRAM-SHA-256": clients may cache derived keys). The zero value is ready to use,
// also concurrently.
type authenticators struct{ byCredential sync.Map }

// of returns the authenticator for a client, nil without a credential. Other mechanisms than SCRAM are not cached.
func (a *authenticators) of(o *options.ClientOptions) (xdriver.Authenticator, error) {
	c := o.Auth
	if c == nil {
		return nil, nil
	}
	key := [...]string{c.AuthMechanism, c.AuthSource, c.Username, c.Password}
	if known, ok := a.byCredential.Load(key); ok {
		return known.(xdriver.Authenticator), nil
	}
	made, err := auth.CreateAuthenticator(c.AuthMechanism, topology.ConvertCreds(c), o.HTTPClient)
	if err == nil && slices.Contains([]string{"", auth.SCRAMSHA1, auth.SCRAMSHA256}, c.AuthMechanism) {
		a.byCredential.Store(key, made)
	}
	return made, err
}
