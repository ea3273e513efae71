package server

import (
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire"
)

// maxAppName is the maximum length of an application name, in bytes (MongoDB Handshake, "Limitations").
const maxAppName = 128

const logicalSessionTimeout = 30 // minutes

// hello executes hello and isMaster. With a topologyVersion it waits for a change of the topology, and streams if the
// client allows it (Server Monitoring, "Streaming Protocol").
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
	if await != nil {
		await.wait(x)
	}
	if await != nil && x.request.ExhaustAllowed { // each following reply waits for a change since the previous one
		x.response.Stream = func() (commands.Response, error) {
			await.wait(x)
			return commands.Response{Fields: x.description(nil), Stream: x.response.Stream}, nil
		}
	}
	return x.description(speculative), nil
}

// await contains the topologyVersion and the maxAwaitTimeMS of an awaitable hello.
type await struct {
	processID bson.ObjectID
	counter   int64
	timeout   time.Duration
}

// await returns nil if the hello is not awaitable.
func (x *exchange) await() (*await, error) {
	if !x.view.Has.TopologyVersion {
		return nil, nil
	}
	codes := struct{ together, negative, counter, ahead, exhaust int32 }{31368, 31373, 31372, 31382, 51756}
	who := "server"
	switch x.view.Role {
	case commands.Standalone:
		codes.ahead = 51764
	case commands.Mongos:
		codes.together, codes.negative, codes.counter, codes.ahead, codes.exhaust, who = 51760, 51759, 51758, 51761, 51763,
			"mongos"
	}
	version, hasVersion := x.request.Body.Lookup("topologyVersion").DocumentOK()
	timeout, hasTimeout := x.request.Body.Lookup("maxAwaitTimeMS").AsInt64OK()
	var p fault.First
	p.Refuse(hasVersion && !hasTimeout, codes.together,
		"A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
	p.Refuse(hasTimeout && !hasVersion, codes.together,
		"A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
	p.Refuse(!hasVersion && x.request.ExhaustAllowed, codes.exhaust,
		"An isMaster request with exhaust must specify 'maxAwaitTimeMS'")
	if !hasVersion {
		return nil, p.Err
	}
	p.Refuse(timeout < 0 && x.view.Has.IDL, fault.ValueTooSmall,
		"BSON field 'maxAwaitTimeMS' value must be >= 0, actual value '%d'", timeout)
	p.Refuse(timeout < 0, codes.negative, "'maxAwaitTimeMS' must be a non-negative integer")
	a := &await{timeout: time.Duration(min(timeout, int64(time.Hour/time.Millisecond))) * time.Millisecond}
	var okID, okCounter bool
	a.processID, okID = version.Lookup("processId").ObjectIDOK()
	a.counter, okCounter = version.Lookup("counter").AsInt64OK()
	p.Refuse(!okID || !okCounter, fault.BadValue, "'topologyVersion' must contain a processId and a counter")
	p.Refuse(a.counter < 0, codes.counter, "topologyVersion must have a non-negative counter")
	p.Refuse(a.processID == x.view.processID && a.counter > x.view.version, codes.ahead,
		"Received a topology version with counter: %d which is greater than the %s topology version counter: %d",
		a.counter, who, x.view.version)
	return a, p.Err
}

// wait waits for a topology change or until the time is over, and keeps the version that the client will get.
func (a *await) wait(x *exchange) {
	if x.view.processID == a.processID && x.view.version == a.counter {
		sleep(x.request.Context, a.timeout, x.view.change)
		x.view = x.server.viewAfter(a.counter)
	}
	a.processID, a.counter = x.view.processID, x.view.version
}

func (k *conn) handshake(body bson.Raw) error {
	if k.balanced && !k.helloDone && !value.FlagAt(body, "loadBalanced") {
		return fault.Errorf(fault.LoadBalancerSupportMismatch, "The server is being accessed through a load balancer, "+
			"but this driver does not have load balancing enabled")
	}
	k.helloOk = k.helloOk || value.FlagAt(body, "helloOk")
	k.internal = k.internal || value.Has(body, "internalClient")
	if user, ok := body.Lookup("saslSupportedMechs").StringValueOK(); ok && !strings.Contains(user, ".") {
		return fault.Errorf(fault.BadValue, "username must contain a '.' separated database.user pair")
	}
	if given, err := body.LookupErr("client"); err == nil {
		if k.about != nil {
			return fault.Errorf(fault.ClientMetadataCannotBeMutated,
				"The client metadata document may only be sent in the first hello")
		}
		if err := checkMetadata(given, k.server.view().isMongos()); err != nil {
			return err
		}
		client, _ := given.DocumentOK()
		k.about = slices.Clone(client)
		k.appName = value.TextAt(client, "application", "name")
		text := "driver " + oneLine(value.TextAt(client, "driver", "name"))
		if k.appName != "" {
			text += ", application " + oneLine(k.appName)
		}
		k.logEvent(text)
	}
	if offered := value.Strings(body.Lookup("compression")); offered != nil {
		k.compression = slices.DeleteFunc(offered, func(name string) bool { return !wire.Negotiable(name) })
	}
	return nil
}

// metadataFields are the required fields of the documents of a client's metadata.
var metadataFields = map[string][]string{"driver": {"name", "version"}, "os": {"type"}, "application": nil}

// maxMetadata is how many bytes of metadata a mongod and a mongos accept.
var maxMetadata = map[bool]int{false: 1024, true: 512}

// checkMetadata checks the metadata of a client (MongoDB Handshake, "Limitations").
func checkMetadata(given bson.RawValue, mongos bool) error {
	var p fault.First
	client, ok := given.DocumentOK()
	p.Refuse(!ok, fault.TypeMismatch, "The client metadata document must be a document")
	p.Refuse(len(client) > maxMetadata[mongos], fault.ClientMetadataDocumentTooLarge,
		"The client metadata document must be less then or equal to %dbytes", maxMetadata[mongos])
	for _, e := range value.Must(client) {
		required, known := metadataFields[e.Key]
		part, ok := e.Value.(bson.D)
		p.Refuse(known && !ok, fault.TypeMismatch,
			"The '%s' field is required to be a BSON document in the client metadata document", e.Key)
		for _, name := range required {
			p.Refuse(!value.Is[string](value.Get(part, name)), fault.ClientMetadataMissingField,
				"Missing required field '%s.%s' in the client metadata document", e.Key, name)
		}
		if name, given := value.Field(part, "name"); given && e.Key == "application" {
			text, ok := name.(string)
			p.Refuse(!ok, fault.TypeMismatch, "The 'application.name' field must be a string in the client metadata document")
			p.Refuse(len(text) > maxAppName, fault.ClientMetadataAppNameTooLarge,
				"The 'application.name' field must be less then or equal to %d bytes in the client metadata document", maxAppName)
		}
	}
	for _, name := range []string{"driver", "os"} {
		p.Refuse(!value.Has(client, name), fault.ClientMetadataMissingField,
			"Missing required sub-document '%s' in the client metadata document", name)
	}
	return p.Err
}

// description returns the reply to a hello.
func (x *exchange) description(speculative bson.D) bson.D {
	k, v, reply := x.conn, &x.view, bson.D{}
	addIf := func(condition bool, key string, field any) { reply = value.AddIf(reply, condition, key, field) }
	writable := "ismaster"
	if x.row.Name == "hello" {
		writable = "isWritablePrimary"
	}
	streams, mongos := x.view.Has.TopologyVersion, v.isMongos()
	offers := value.Has(x.request.Body, "helloOk") && x.view.Has.HelloOK
	addIf(offers && !mongos, "helloOk", true)
	addIf(streams && v.isMember(), "topologyVersion", v.topologyVersion())
	if v.isMember() {
		reply = append(reply, x.inSet(writable)...)
	} else {
		addIf(true, writable, true)
		addIf(mongos, "msg", "isdbgrid")
		addIf(streams, "topologyVersion", v.topologyVersion())
		addIf(offers && mongos, "helloOk", true)
	}
	reply = value.Append(reply, "maxBsonObjectSize", int32(wire.MaxDocument),
		"maxMessageSizeBytes", int32(wire.MaxMessage), "maxWriteBatchSize", int32(100000),
		"localTime", bson.NewDateTimeFromTime(time.Now()), "logicalSessionTimeoutMinutes", int32(logicalSessionTimeout),
		"connectionId", int32(k.id))
	addIf(mongos, "maxWireVersion", int32(v.Wire))
	lowest := int32(0)
	if !mongos && value.Has(x.request.Body, "internalClient") {
		lowest = int32(v.Wire) // a client that belongs to the deployment must have its version
	}
	addIf(true, "minWireVersion", lowest)
	addIf(!mongos, "maxWireVersion", int32(v.Wire))
	addIf(!mongos, "readOnly", false)
	addIf(len(k.compression) > 0, "compression", k.compression)
	addIf(k.balanced && !k.helloDone, "serviceId", k.server.serviceID)
	k.helloDone = true
	database, name, _ := strings.Cut(value.TextAt(x.request.Body, "saslSupportedMechs"), ".")
	if known := k.server.cluster.Users.find(database, name); known != nil {
		addIf(true, "saslSupportedMechs", known.mechanisms())
	}
	addIf(speculative != nil, "speculativeAuthenticate", speculative)
	return reply
}

// inSet returns the fields of a member of a replica set.
func (x *exchange) inSet(writable string) bson.D {
	v, member := &x.view, x.server.member
	hosts, passives, arbiters := v.set.hosts()
	out := value.Doc("hosts", hosts)
	addIf := func(condition bool, key string, field any) { out = value.AddIf(out, condition, key, field) }
	addIf(len(passives) > 0, "passives", passives)
	addIf(len(arbiters) > 0, "arbiters", arbiters)
	out = value.Append(out, "setName", x.server.cluster.SetName, "setVersion", v.set.Version,
		writable, v.Role == commands.Primary,
		"secondary", v.Role == commands.Secondary && !member.ArbiterOnly && !v.stepping)
	addIf(v.primary != "", "primary", v.primary)
	addIf(member.ArbiterOnly, "arbiterOnly", true)
	addIf(member.Priority == 0 && !member.ArbiterOnly, "passive", true)
	addIf(member.Hidden, "hidden", true)
	addIf(!member.BuildIndexes, "buildIndexes", false)
	addIf(member.Tags != nil, "tags", member.Tags)
	addIf(true, "me", v.Address)
	addIf(v.Role == commands.Primary || v.stepping, "electionId", v.ElectionID)
	return value.Append(out, "lastWrite", x.lastWrite())
}

// lastWrite returns the field from which clients compute staleness.
func (x *exchange) lastWrite() bson.D {
	now := x.server.now()
	now.T -= uint32(x.server.member.SecondaryDelaySecs)
	at := bson.DateTime(int64(now.T) * 1000)
	opTime := value.Doc("ts", now, "t", x.view.Term)
	return value.Doc("opTime", opTime, "lastWriteDate", at, "majorityOpTime", opTime, "majorityWriteDate", at)
}
