package server

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/wire"
)

// maxAppName is the maximum length of an application name, in bytes (specification "MongoDB Handshake", Limitations).
const maxAppName = 128

const logicalSessionTimeout = 30 // minutes

// hello executes hello and isMaster. With a topologyVersion it waits for a change of the topology, and streams if the
// client allows it (specification "Server Discovery and Monitoring", Streaming Protocol).
func (x *exchange) hello() (bson.D, error) {
	k, body := x.conn, x.request.Body
	if err := k.handshake(body); err != nil {
		return nil, err
	}
	speculative, err := x.speculative()
	if err != nil {
		return nil, err
	}
	await, err := x.await()
	if err != nil {
		return nil, err
	}
	if await.requested {
		await.wait(x)
		if x.request.ExhaustAllowed { // each following reply waits for a change since the previous one
			x.request.Stream = func() (bson.D, error) {
				await.wait(x)
				if k.server.draining.Load() {
					x.request.Stream = nil
				}
				return x.description(nil)
			}
		}
	}
	return x.description(speculative)
}

// await contains the topologyVersion and the maxAwaitTimeMS of an awaitable hello.
type await struct {
	requested bool
	processID bson.ObjectID
	counter   int64
	timeout   time.Duration
}

// awaitErrors are the codes for invalid awaitable hellos, which depend on the role.
type awaitErrors struct {
	together, negative, ahead, exhaust int32
	who                                string
}

func (x *exchange) await() (await, error) {
	if !x.has(topologyVersion) {
		return await{}, nil
	}
	codes := awaitErrors{together: 31368, negative: 31373, ahead: 31382, exhaust: 51756, who: "server"}
	switch x.view.Role {
	case command.Standalone:
		codes.ahead = 51764
	case command.Mongos:
		codes = awaitErrors{together: 51760, negative: 51759, ahead: 51761, exhaust: 51763, who: "mongos"}
	}
	version, hasVersion := x.request.Body.Lookup("topologyVersion").DocumentOK()
	timeout, hasTimeout := x.request.Body.Lookup("maxAwaitTimeMS").AsInt64OK()
	switch {
	case hasVersion && !hasTimeout:
		return await{}, command.Errorf(codes.together, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
	case hasTimeout && !hasVersion:
		return await{}, command.Errorf(codes.together, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
	case !hasVersion && x.request.ExhaustAllowed:
		return await{}, command.Errorf(codes.exhaust, "An isMaster request with exhaust must specify 'maxAwaitTimeMS'")
	case !hasVersion:
		return await{}, nil
	case timeout < 0:
		return await{}, command.Errorf(codes.negative, "'maxAwaitTimeMS' must be a non-negative integer")
	}
	a := await{requested: true, timeout: time.Duration(min(timeout, int64(time.Hour/time.Millisecond))) * time.Millisecond}
	var okID, okCounter bool
	a.processID, okID = version.Lookup("processId").ObjectIDOK()
	a.counter, okCounter = version.Lookup("counter").AsInt64OK()
	if !okID || !okCounter || a.counter < 0 {
		return a, command.Errorf(command.CodeBadValue, "'topologyVersion' must contain a processId and a non-negative counter")
	}
	if a.processID == x.view.processID && a.counter > x.view.version {
		return a, command.Errorf(codes.ahead, "Received a topology version with counter: %d which is greater than the "+
			"%s topology version counter: %d", a.counter, codes.who, x.view.version)
	}
	return a, nil
}

// wait waits for a topology change or until the time is over, and keeps the version that the client will get.
func (a *await) wait(x *exchange) {
	if x.view.processID == a.processID && x.view.version == a.counter {
		sleep(x.request.Context, a.timeout, x.view.change)
		x.view = x.conn.server.view()
	}
	a.processID, a.counter = x.view.processID, x.view.version
}

func (k *conn) handshake(body bson.Raw) error {
	balanced, _ := body.Lookup("loadBalanced").BooleanOK()
	if k.balanced && !k.helloDone && !balanced {
		return command.Errorf(command.CodeLoadBalancerSupportMismatch, "The server is being accessed through a load balancer, "+
			"but this driver does not have load balancing enabled")
	}
	if ok, _ := body.Lookup("helloOk").BooleanOK(); ok {
		k.helloOk = true
	}
	if client, ok := body.Lookup("client").DocumentOK(); ok {
		if k.metadata {
			return command.Errorf(command.CodeClientMetadataCannotBeMutated, "The client metadata document may only be sent in the first hello")
		}
		k.metadata = true
		k.appName, _ = client.Lookup("application", "name").StringValueOK()
		if len(k.appName) > maxAppName {
			return command.Errorf(command.CodeClientMetadataAppNameTooLarge,
				"The 'client.application.name' field must be less then or equal to %d "+
					"bytes in length", maxAppName)
		}
		k.logClient(client)
	}
	if offered := command.Strings(body.Lookup("compression")); offered != nil {
		k.compression = slices.DeleteFunc(offered, func(name string) bool { return !wire.Negotiable(name) })
	}
	return nil
}

// description returns the reply to a hello.
func (x *exchange) description(speculative bson.D) (bson.D, error) {
	v := &x.view
	reply := bson.D{}
	when := func(condition bool, key string, value any) { addIf(&reply, condition, key, value) }
	add := func(key string, value any) { addIf(&reply, true, key, value) }
	writable := "ismaster"
	if x.row.Name == "hello" {
		writable = "isWritablePrimary"
	}
	streams := x.has(topologyVersion)
	when(streams && (v.isMember() || v.Role == command.Uninitiated), "topologyVersion", v.topologyVersion())
	switch {
	case v.isMember():
		reply = append(reply, x.inSet(writable)...)
	case v.Role == command.Uninitiated:
		add(writable, false)
		add("secondary", false)
		add("info", "Does not have a valid replica set config")
		add("isreplicaset", true)
	default:
		add(writable, true)
		when(v.Role == command.Mongos, "msg", "isdbgrid")
		when(streams, "topologyVersion", v.topologyVersion())
	}
	add("maxBsonObjectSize", int32(wire.MaxDocument))
	add("maxMessageSizeBytes", int32(wire.MaxMessage))
	add("maxWriteBatchSize", int32(100000))
	add("localTime", bson.NewDateTimeFromTime(time.Now()))
	add("logicalSessionTimeoutMinutes", int32(logicalSessionTimeout))
	add("connectionId", int32(x.conn.id))
	if v.Role == command.Mongos {
		add("maxWireVersion", int32(v.Wire))
		add("minWireVersion", int32(0))
	} else {
		add("minWireVersion", int32(0))
		add("maxWireVersion", int32(v.Wire))
		add("readOnly", false)
	}
	if helloOk, _ := x.request.Body.Lookup("helloOk").BooleanOK(); helloOk {
		when(x.has(offersHello) || x.has(offersHello44), "helloOk", true)
	}
	when(len(x.conn.compression) > 0, "compression", x.conn.compression)
	when(x.conn.balanced && !x.conn.helloDone, "serviceId", x.conn.server.serviceID)
	x.conn.helloDone = true
	mechanisms := x.supportedMechanisms()
	when(len(mechanisms) > 0, "saslSupportedMechs", mechanisms)
	when(speculative != nil, "speculativeAuthenticate", speculative)
	return reply, nil
}

func addIf(doc *bson.D, condition bool, key string, value any) {
	if condition {
		*doc = append(*doc, bson.E{Key: key, Value: value})
	}
}

func (x *exchange) inSet(writable string) bson.D {
	v := &x.view
	out := bson.D{{Key: "hosts", Value: v.layout.hosts}}
	addIf(&out, len(v.layout.passives) > 0, "passives", v.layout.passives)
	addIf(&out, len(v.layout.arbiters) > 0, "arbiters", v.layout.arbiters)
	addIf(&out, true, "setName", v.setName)
	addIf(&out, true, "setVersion", v.layout.version)
	addIf(&out, true, writable, v.Role == command.Primary)
	addIf(&out, true, "secondary", v.Role == command.Secondary && !v.member.ArbiterOnly)
	addIf(&out, v.primary != "", "primary", v.primary)
	addIf(&out, v.member.ArbiterOnly, "arbiterOnly", true)
	addIf(&out, v.member.Priority == 0 && !v.member.ArbiterOnly, "passive", true)
	addIf(&out, v.member.Hidden, "hidden", true)
	addIf(&out, !v.member.BuildIndexes, "buildIndexes", false)
	addIf(&out, v.member.Tags != nil, "tags", v.member.Tags)
	addIf(&out, true, "me", v.Address)
	addIf(&out, v.Role == command.Primary, "electionId", v.ElectionID)
	addIf(&out, true, "lastWrite", x.lastWrite())
	return out
}

// lastWrite returns the field from which clients compute staleness.
func (x *exchange) lastWrite() bson.D {
	now := x.conn.server.now()
	now.T -= uint32(x.view.member.SecondaryDelaySecs)
	at := bson.DateTime(int64(now.T) * 1000)
	opTime := bson.D{{Key: "ts", Value: now}, {Key: "t", Value: x.view.Term}}
	return bson.D{
		{Key: "opTime", Value: opTime},
		{Key: "lastWriteDate", Value: at},
		{Key: "majorityOpTime", Value: opTime},
		{Key: "majorityWriteDate", Value: at},
	}
}
