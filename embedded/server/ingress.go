package server

import (
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// The parameters of the ingress rate limiters, and of the errors that
// overloaded servers give (Client Backpressure, "Terms").
const (
	connectionLimit      = "ingressConnectionEstablishmentRateLimiterEnabled"
	connectionRate       = "ingressConnectionEstablishmentRatePerSec"
	connectionBurst      = "ingressConnectionEstablishmentBurstCapacitySecs"
	connectionQueue      = "ingressConnectionEstablishmentMaxQueueDepth"
	requestLimit         = "ingressRequestRateLimiterEnabled"
	requestRate          = "ingressRequestAdmissionRatePerSec"
	requestBurst         = "ingressRequestAdmissionBurstCapacitySecs"
	requestQueue         = "ingressRequestAdmissionMaxQueueDepth"
	requestAppExemptions = "ingressRequestRateLimiterApplicationExemptions"
	requestRetries       = "ingressRequestRateLimiterAllowRetries"
	baseBackoff          = "externalClientBaseBackoffMS"
)

// ingressParameters are those with their defaults, and the wire version that
// brought them.
func ingressParameters(profile Profile) []tunable {
	list := []tunable{
		{name: connectionLimit, initial: false, wire: overload.since},
		{name: connectionRate, initial: int32(math.MaxInt32), least: 1, wire: overload.since},
		{name: connectionBurst, initial: math.MaxFloat64, least: math.SmallestNonzeroFloat64, wire: overload.since},
		{name: connectionQueue, initial: int32(0), wire: overload.since},
		{name: requestLimit, initial: profile.has(limiterLabels), wire: overload.since},
		{name: requestRate, initial: int32(math.MaxInt32), least: 1, wire: overload.since},
		{name: requestBurst, initial: math.MaxFloat64, least: math.SmallestNonzeroFloat64, wire: overload.since},
		{name: requestAppExemptions, initial: bson.D{{Key: "appNames", Value: bson.A{}}}, wire: overload.since},
		{name: requestQueue, initial: int64(0), wire: limiterLabels.since},
		{name: requestRetries, initial: true, wire: limiterLabels.since},
		{name: baseBackoff, initial: int64(0), wire: limiterLabels.since},
	}
	var out []tunable
	for _, t := range list {
		if t.wire <= profile.Wire {
			out = append(out, t)
		}
	}
	return out
}

// ingress are the rate limiters at a server's front door.
type ingress struct {
	params                *parameters
	connections, requests *limiter
}

func newIngress(p *parameters) *ingress {
	i := &ingress{params: p}
	i.connections = newLimiter(p.number(connectionRate), p.number(connectionBurst), int64(p.number(connectionQueue)))
	i.requests = newLimiter(p.number(requestRate), p.number(requestBurst), int64(p.number(requestQueue)))
	return i
}

// reload takes over what setParameter has changed.
func (i *ingress) reload() {
	p := i.params
	i.connections.configure(p.number(connectionRate), p.number(connectionBurst), int64(p.number(connectionQueue)))
	i.requests.configure(p.number(requestRate), p.number(requestBurst), int64(p.number(requestQueue)))
}

// establish waits until a new connection is admitted. False: it is rejected,
// and is to be closed without a word, before TLS and before hello.
func (k *conn) establish() bool {
	i := k.server.ingress
	return !i.params.isTrue(connectionLimit) || i.connections.acquire(k.ctx) == admitted
}

// admit lets the request rate limiter judge a request before anything of it is
// read. Requests of connections that have not authenticated are exempt, unless
// there is no access control: then no request is exempt, not even hello. Beyond that the
// content of a request does not matter: setParameter and endSessions are
// rejected like any other. The further replies of a stream are not requests.
func (x *exchange) admit() error {
	k := x.conn
	i := k.server.ingress
	if !i.params.isTrue(requestLimit) {
		return nil
	}
	if k.guarded() && k.user == nil || i.exempts(k.appName) {
		i.requests.exempt()
		return nil
	}
	verdict, message := admitted, "Rate limiter 'ingressRequestRateLimiter' rate exceeded"
	depth := int64(i.params.number(requestQueue))
	switch {
	case depth > 0:
		verdict = i.requests.acquire(k.ctx)
		message = "Rate limiter 'ingressRequestRateLimiter' maximum queue depth exceeded"
	case !i.requests.try():
		verdict = queueFull
	}
	switch verdict {
	case admitted:
		return nil
	case interrupted:
		return errDone
	}
	x.extras.labels = []string{"SystemOverloadedError"}
	if !x.has(limiterLabels) || i.params.isTrue(requestRetries) {
		x.extras.labels = append(x.extras.labels, "RetryableError")
	}
	if x.has(limiterLabels) {
		x.extras.labels = append(x.extras.labels, "NoWritesPerformed")
	}
	return command.Errorf(command.CodeIngressRequestRateLimitExceeded, "%s", message)
}

// exempts reports whether an application's name begins with one that is exempt.
func (i *ingress) exempts(app string) bool {
	names, _ := i.params.document(requestAppExemptions).Lookup("appNames").ArrayOK()
	values, err := names.Values()
	if err != nil {
		return false
	}
	for _, v := range values {
		if name, ok := v.StringValueOK(); ok && strings.HasPrefix(app, name) {
			return true
		}
	}
	return false
}

// networkStatus and connectionStatus are parts of serverStatus.
func (i *ingress) networkStatus() bson.D {
	return bson.D{{Key: "ingressRequestRateLimiter", Value: i.requests.doc(i.params.has(requestQueue))}}
}

func (i *ingress) connectionStatus() bson.D {
	c, _ := i.connections.state()
	return bson.D{
		{Key: "queuedForEstablishment", Value: c.queued()},
		{Key: "establishmentRateLimit", Value: bson.D{
			{Key: "rejected", Value: c.rejected},
			{Key: "exempted", Value: c.exempted},
			{Key: "interruptedDueToClientDisconnect", Value: c.interrupted},
		}},
	}
}

func (i *ingress) queueStatus() bson.D {
	return bson.D{{Key: "ingressSessionEstablishment", Value: i.connections.doc(true)}}
}
