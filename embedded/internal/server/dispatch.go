package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/compose"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// exchange is a command and its reply.
type exchange struct {
	conn           *conn
	server         *Server
	view           view
	request        commands.Request
	row            *command
	start          time.Time
	ns             string                 // "" if not determined yet
	execute        func() (bson.D, error) // the result of Row.Parse, or the row's own function
	readsSecondary bool                   // the read preference allows a secondary
	answered       bson.D                 // the reply, if a check already has it
	ran            bool                   // the checks before the command have passed
	unsatisfied    *unsatisfied           // the write concern, if it cannot be satisfied
	failure        failpoint.Failure      // of a fail point
	lastOp         bson.Timestamp         // lastOp of the connection before the command
	response       commands.Response      // of a command of the backend, or of a stream
	out            compose.Reply
	noTimes        bool // the reply has neither operationTime nor $clusterTime
}

func (k *conn) begin(body bson.Raw, exhaust bool) *exchange {
	x := &exchange{conn: k, server: k.server, view: k.server.view(), start: time.Now()}
	x.request = commands.Request{
		Context: k.client, Name: firstKey(body), Body: body, Server: &x.view.Identity, ExhaustAllowed: exhaust,
		HangUp: k.hangUp, Operations: x.operations,
		FailPoint: func(name string) (failpoint.Failure, bool) { return k.server.failPoints.During(name, x.forFailPoint()) },
	}
	x.inProgress()
	return x
}

// answer runs the command. An error closes the connection.
func (x *exchange) answer() (bson.Raw, error) { return x.finish(x.guard(x.run)) }

func (x *exchange) nextReply() (bson.Raw, error) {
	x.view, x.out.Labels, x.failure, x.start = x.server.view(), nil, failpoint.Failure{}, time.Now()
	x.inProgress()
	if err := x.applyFailPoint(); err != nil {
		return x.finish(nil, err)
	}
	return x.finish(x.guard(func() (bson.D, error) { return x.take(x.response.Stream()) }))
}

// take keeps what a command returns beside its fields.
func (x *exchange) take(r commands.Response, err error) (bson.D, error) {
	x.response = r
	return r.Fields, err
}

// finish makes the reply from the result of a command.
func (x *exchange) finish(fields bson.D, err error) (bson.Raw, error) {
	defer x.conn.current.Store(nil)
	if errors.Is(err, failpoint.ErrClose) || x.failure.LoseReply || x.conn.hungUp.Load() || x.conn.ctx.Err() != nil {
		x.logEnd(nil, true)
		return nil, failpoint.ErrClose
	}
	x.view.version = x.server.view().version // the primary may have changed
	x.out.Fields, x.out.Failure = fields, nil
	if err != nil {
		x.response.Stream = nil
		if !errors.As(err, &x.out.Failure) {
			x.out.Failure = fault.Errorf(fault.InternalError, "%s", err.Error())
		}
	}
	x.awaitConcern()
	x.describe()
	x.out.SetLabels()
	x.logEnd(x.out.Failure, false)
	doc := x.out.Compose()
	x.note(fields, x.out.Failure, len(doc))
	return doc, nil
}

// steps are the checks before a command runs, in the server's order.
var steps = []func(*exchange) error{
	(*exchange).admit,
	(*exchange).database,
	(*exchange).lookUp,
	(*exchange).beforeParsing,
	(*exchange).apiVersion,
	(*exchange).session,
	(*exchange).gossip,
	(*exchange).readPreference,
	(*exchange).metadata,
	(*exchange).parse,
	(*exchange).applyFailPoint,
	(*exchange).databaseName,
	(*exchange).options,
	(*exchange).authorize,
	(*exchange).role,
	(*exchange).transaction,
	(*exchange).readConcern,
	(*exchange).writeConcern,
	(*exchange).deadline,
	(*exchange).routing,
	(*exchange).fields,
}

func (x *exchange) run() (bson.D, error) {
	x.lastOp = x.conn.lastOp
	for _, step := range steps {
		if err := step(x); err != nil || x.answered != nil {
			return x.answered, err
		}
	}
	x.ran = true
	if x.row.Write {
		x.request.Context = x.conn.ctx // a write that has started continues even if its client disconnects
	}
	x.request.LastOp = x.lastOp
	if !x.row.Write || !x.view.isMember() {
		return x.execute()
	}
	before := x.server.now()
	fields, err := x.execute()
	open := x.request.InTransaction && !x.row.EndsTransaction && value.Get(fields, "writeErrors") == nil
	// A command that changes nothing counts as well, unless it fails before it tries, or ends a transaction.
	now, wrote := x.server.now(), !x.row.EndsTransaction && (x.response.TriedToWrite || err == nil)
	if !open && (wrote || before.Before(now)) {
		x.conn.lastOp = now
	}
	return fields, err
}

// parse does the checks that precede fail points.
func (x *exchange) parse() (err error) {
	if x.row.Parse == nil {
		return commands.CheckFields(&x.request, true)
	}
	execute, err := x.row.Parse(&x.request)
	x.execute = func() (bson.D, error) { return x.take(execute()) }
	return err
}

// fields checks the fields of commands of the protocol. Commands of the backend check their own.
func (x *exchange) fields() error {
	if x.row.Parse != nil {
		return nil
	}
	return commands.CheckFields(&x.request, false)
}

// guard converts a panic to an error of the command.
func (x *exchange) guard(run func() (bson.D, error)) (fields bson.D, err error) {
	defer func() {
		if p := recover(); p != nil {
			fields, err = nil, fmt.Errorf("%s panicked: %v", x.request.Name, p)
		}
	}()
	return run()
}

// database reads $db. Before 5.0, a mongod closes the connection if $db is not a string, and every server if the
// message contains no command.
func (x *exchange) database() error {
	given, err := x.request.Body.LookupErr("$db")
	var isText bool
	x.request.DB, isText = given.StringValueOK()
	mongos, answers := x.view.isMongos(), x.view.Has.AnswersNoDatabase
	switch {
	case isText:
		return nil
	case !answers && (len(x.request.Body) <= emptyDocument || !mongos):
		return failpoint.ErrClose
	case err != nil && mongos && answers && len(x.request.Body) > emptyDocument:
		return fault.Errorf(fault.IDLFailedToParse, "BSON field '%s.$db' is missing but a required field", x.request.Name)
	case err != nil:
		return fault.Errorf(fault.NoDatabase, "OP_MSG requests require a $db argument")
	case mongos:
		return wrongType("OP_MSG.$db", given, "string")
	}
	return fault.Errorf(fault.ExtraInfoMissing, "wrong type for field ($db) %s != string", value.RawTypeName(given))
}

func (x *exchange) lookUp() error {
	name := x.request.Name
	row := x.server.cluster.commands[name]
	disabled := name == "configureFailPoint" && !x.server.params.isTrue(testCommands)
	if row != nil && row.Exists(x.view.Wire, x.view.Role) && !disabled {
		x.row, x.request.Row = row, &row.Row
		x.execute = func() (bson.D, error) { return x.row.execute(x) }
		return nil
	}
	missing := fault.Errorf(fault.CommandNotFound, "no such command: '%s'", name)
	if x.view.isMongos() && !x.view.Has.MongosTexts {
		missing.Message = "no such cmd: " + name
	}
	wire := x.view.Wire
	return cmp.Or(fault.Refusal("command", name, wire), fault.Refusal(x.view.process(), name, wire), error(missing))
}

// gossip advances the cluster time to the client's, unless that is more than a year ahead.
func (x *exchange) gossip() error {
	given, err := x.request.Body.LookupErr("$clusterTime")
	if err != nil || x.view.Role == commands.Standalone {
		return nil
	}
	doc, ok := given.DocumentOK()
	if !ok {
		return fault.Errorf(fault.NotAnObject, "invalid parameter: expected an object ($clusterTime)")
	}
	var p fault.First
	t, i, _ := need(&p, doc, "clusterTime", "timestamp").TimestampOK()
	if p.Err == nil && x.row.BeforeAuth && !value.Has(doc, "signature") {
		return nil // a client that has not authenticated has none: its time is ignored
	}
	signature, _ := need(&p, doc, "signature", "object").DocumentOK() // a server without keys accepts every one
	need(&p, signature, "hash", "binData")
	need(&p, signature, "keyId", "number")
	const year = 365 * 24 * 60 * 60
	wall := uint32(time.Now().Unix())
	p.Refuse(t > wall && t-wall > year, fault.ClusterTimeFailsRateLimiter,
		"New cluster time, %d, is too far from this node's wall clock time, %d.", t, wall)
	if p.Err == nil {
		x.server.cluster.Backend.ClusterTime(bson.Timestamp{T: t, I: i})
	}
	return p.Err
}

// applyFailPoint applies failCommand or failCommandSequence before the command runs.
func (x *exchange) applyFailPoint() error {
	f, hit := x.server.failPoints.Before(x.forFailPoint())
	if !hit {
		return nil
	}
	x.failure = f
	if x.view.Has.ErrorLabels {
		x.out.Labels = f.Labels
	}
	x.logHit(f)
	if f.Block > 0 {
		if f.LoseReply {
			x.request.HangUp() // before the command runs
		}
		if err := x.server.cluster.held.Wait(x.request.Context, x.server, x.request.Body, f.Block); err != nil {
			return err
		}
		x.view = x.server.view() // the server may have stepped down
	}
	return f.Error(x.view.Wire)
}

func (x *exchange) forFailPoint() failpoint.Command {
	return failpoint.Command{Name: x.row.Name, Aliases: x.row.Aliases, Namespace: x.namespace(), AppName: x.appName(),
		Connection: x.conn.id, Internal: x.conn.internal}
}

// namespace returns the namespace of the command, as logs and fail points see it.
func (x *exchange) namespace() string {
	if x.ns == "" {
		x.ns = NamespaceOf(x.request.Body)
	}
	return x.ns
}

// appName returns the client's application name. Fail points match the name in the first hello, even if that fails.
func (x *exchange) appName() string {
	if x.conn.about == nil && x.conn.appName == "" && (x.row.Name == "hello" || x.row.Name == "isMaster") {
		x.conn.appName = value.TextAt(x.request.Body, "client", "application", "name")
	}
	return x.conn.appName
}

// sleep waits for a duration or until wake is closed. It returns false if the context ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	select {
	case <-wake:
	case <-time.After(d):
	case <-ctx.Done():
		return false
	}
	return true
}

func (x *exchange) databaseName() error {
	db := x.request.DB
	switch {
	case strings.Contains(db, ".") && x.view.Has.AnswersNoDatabase:
		return fault.Errorf(fault.InvalidNamespace, "'.' is an invalid character in the database name: %s", db)
	case strings.Contains(db, "."):
		return fault.Errorf(fault.InvalidNamespace, "'.' is an invalid character in a database name")
	case db == "", len(db) > 63, strings.ContainsAny(db, "/\\ \"\x00"):
		return fault.Errorf(fault.InvalidNamespace, "Invalid database name: '%s'", db)
	}
	return nil
}

// authorize rejects commands that require authentication or the database admin.
func (x *exchange) authorize() error {
	if x.row.AdminOnly && x.request.DB != "admin" {
		return fault.Errorf(fault.Unauthorized, "%s may only be run against the admin database.", x.row.Name)
	}
	if !x.server.process.AccessControl {
		return nil
	}
	if x.conn.user != nil {
		x.request.Reads = func(db string) bool {
			return slices.ContainsFunc(x.conn.user.roles, func(r role) bool { return x.server.cluster.Users.reads(r, db) })
		}
		return x.permitted()
	}
	localhostException := x.row.LocalhostException && x.request.DB == "admin" &&
		!x.server.cluster.Users.nonEmpty.Load()
	if !x.row.BeforeAuth && !localhostException {
		return fault.Errorf(fault.Unauthorized, "command %s requires authentication", x.row.Name)
	}
	return nil
}

// document returns an optional field of the command. It must be a document.
func (x *exchange) document(name string) (bson.Raw, error) {
	given, err := x.request.Body.LookupErr(name)
	if err != nil {
		return nil, nil
	}
	var p fault.First
	checkType(&p, name, "object", given)
	document, _ := given.DocumentOK()
	return document, p.Err
}

// role rejects writes on a secondary, and reads whose read preference requires the primary.
func (x *exchange) role() error {
	if x.view.Role != commands.Secondary {
		return nil
	}
	level := value.TextAt(x.request.Body, "readConcern", "level")
	switch {
	case x.row.Write, x.request.StartTransaction:
		return x.notPrimary(fault.NotWritablePrimary, "not primary")
	case level == "linearizable" && x.row.ReadConcern != nil:
		return fault.Errorf(fault.NotWritablePrimary, "cannot satisfy linearizable read concern on non-primary node")
	case !x.row.OnSecondary && x.server.member.ArbiterOnly:
		return x.notPrimary(fault.NotPrimaryOrSecondary, "node is not in primary or recovering state")
	case !x.row.OnSecondary && !x.readsSecondary:
		return x.notPrimary(fault.NotPrimaryNoSecondaryOk, "not primary and secondaryOk=false")
	}
	return nil
}

const emptyDocument = 5 // bytes

var oldTerms = strings.NewReplacer("primary", "master", "secondaryOk", "slaveOk") // the terms of older servers

func (x *exchange) notPrimary(code int32, message string) error {
	if !x.view.Has.PrimaryTerms || !x.conn.helloOk {
		message = oldTerms.Replace(message)
	}
	return fault.Errorf(code, "%s", message)
}

// deadline rejects a maxTimeMS that is not an integer of 31 bits, and commands that exceeded it while a fail point
// blocked them.
func (x *exchange) deadline() error {
	given, err := x.request.Body.LookupErr("maxTimeMS")
	if err != nil {
		return nil
	}
	v := value.FromRaw(given)
	limit, isNumber := value.Float(v), value.IsNumber(v)
	switch {
	case !isNumber && x.row.Name == "getMore" && !commands.ChecksEarly(&x.request) && !x.view.isMongos():
		return nil // CheckFields refuses it
	case !isNumber:
		return fault.Errorf(fault.BadValue, "maxTimeMS must be a number")
	case limit < 0 && x.view.Has.NegativeCode:
		return fault.Errorf(fault.ValueTooSmall, "BSON field 'maxTimeMS' value must be >= 0, actual value '%.0f'", limit)
	case limit < 0 || limit > math.MaxInt32:
		return fault.Errorf(fault.BadValue, "%.0f value for maxTimeMS is out of range", limit)
	case limit != math.Trunc(limit):
		return fault.Errorf(fault.BadValue, "maxTimeMS has non-integral value")
	case limit > 0 && x.row.Name != "getMore":
		return commands.Expired(&x.request, time.Since(x.start) > time.Duration(limit)*time.Millisecond)
	}
	return nil
}

// describe sets what the reply depends on, beside the result of the command.
func (x *exchange) describe() {
	v := &x.view
	x.out.Facts = compose.Facts{Wire: v.Wire, Mongos: v.isMongos(), EndsTransaction: x.row != nil && x.row.EndsTransaction,
		ChangeStream: x.response.IsChangeStream,
		// The server cannot know this on a connection without previous writes.
		NoWrites: !x.lastOp.IsZero() && x.lastOp == x.conn.lastOp}
	x.out.Read(x.request.Body)
	x.out.After = x.response.AfterTimes
	x.out.Backoff = func() int64 { return int64(x.server.params.number(baseBackoff)) }
	x.out.Topology = func() any {
		if !v.isMember() {
			return nil
		}
		return v.topologyVersion()
	}
	x.out.Times = x.times
}

// times returns what a reply contains about the time, and for other members about the replication.
func (x *exchange) times() (out bson.D) {
	if x.row != nil && x.answered == nil {
		out = x.replData()
	}
	if x.view.Role == commands.Standalone || x.noTimes {
		return out
	}
	now := x.server.now()
	return value.Append(out, "$clusterTime", value.Doc("clusterTime", x.server.cluster.Backend.ClusterTime(bson.Timestamp{}),
		"signature", value.Doc("hash", bson.Binary{Data: make([]byte, 20)}, "keyId", int64(0))), "operationTime", now)
}
