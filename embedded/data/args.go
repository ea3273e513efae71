package data

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/expression"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// args are the fields of a command, or of a part of one. A field of the wrong
// type sets err, once.
type args struct {
	of  string // how messages name the command
	doc bson.D
	err error
	old bool  // messages are those of find before 5.0
	in  *args // what this is a part of: its errors are errors of that as well
}

func (a *args) fail(err error) {
	if a.err == nil {
		a.err = err
	}
	if a.in != nil {
		a.in.fail(err)
	}
}

// part are the fields of a field that is a document.
func (a *args) part(key string) *args {
	return &args{of: a.of + "." + key, doc: a.document(key), in: a}
}

// batchSize is that of the field cursor, -1 if it is not there.
func (a *args) batchSize() int64 {
	c := a.part("cursor")
	c.only(" batchSize ")
	return c.number("batchSize", -1)
}

func (a *args) wrong(key string, v any, want string) {
	if a.old {
		a.fail(command.Errorf(command.CodeFailedToParse, "Failed to parse: %s: %s. '%s' field must be of BSON type %s.", key, value.Text(v), key, want))
	}
	a.fail(command.Errorf(command.CodeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type '%s'", a.of, key, value.TypeName(v), want))
}

func (a *args) has(key string) bool { _, ok := value.Field(a.doc, key); return ok }

func (a *args) any(key string) any { v, _ := value.Field(a.doc, key); return v }

// str is a string field, empty if it is not there.
func (a *args) str(key string) string {
	v, ok := value.Field(a.doc, key)
	if !ok || v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		a.wrong(key, v, "string")
	}
	return s
}

// name is the name of the collection that a command names in its first field.
func (a *args) name() string {
	if len(a.doc) == 0 {
		return ""
	}
	s, ok := a.doc[0].Value.(string)
	if !ok {
		a.fail(command.Errorf(command.CodeInvalidNamespace, "collection name has invalid type %s", value.TypeName(a.doc[0].Value)))
	}
	return s
}

// document is a document field, nil if it is not there.
func (a *args) document(key string) bson.D {
	v, ok := value.Field(a.doc, key)
	if !ok || v == nil {
		return nil
	}
	d, ok := v.(bson.D)
	if !ok {
		a.wrong(key, v, "object")
	}
	return d
}

func (a *args) array(key string) bson.A {
	v, ok := value.Field(a.doc, key)
	if !ok || v == nil {
		return nil
	}
	l, ok := v.(bson.A)
	if !ok {
		a.wrong(key, v, "array")
	}
	return l
}

// number is a whole number, other if it is not there.
func (a *args) number(key string, other int64) int64 {
	v, ok := value.Field(a.doc, key)
	if !ok || v == nil {
		return other
	}
	if !value.IsNumber(v) {
		if a.old {
			a.fail(command.Errorf(command.CodeFailedToParse, "Failed to parse: %s. '%s' field must be numeric.", value.Text(a.doc), key))
		}
		a.fail(command.Errorf(command.CodeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected types '[long, int, decimal, double']", a.of, key, value.TypeName(v)))
		return other
	}
	n, ok := value.Whole(v)
	if !ok {
		n = int64(value.Float(v))
	}
	return n
}

// count is a number that must not be negative; what is its name in messages.
func (a *args) count(key, what string) int64 {
	n := a.number(key, 0)
	if n < 0 {
		a.fail(command.Errorf(command.CodeBadValue, "%s value must be non-negative, but received: %d", what, n))
	}
	return n
}

// flag is a boolean; numbers count as such.
func (a *args) flag(key string) bool {
	v, ok := value.Field(a.doc, key)
	if !ok || v == nil {
		return false
	}
	if _, ok := v.(bool); !ok && !value.IsNumber(v) {
		a.fail(command.Errorf(command.CodeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected types '[bool, long, int, decimal, double']", a.of, key, value.TypeName(v)))
	}
	return value.Truthy(v)
}

// let are the variables of a command: expressions without a document.
func (a *args) let(d *Data) bson.D {
	vars := a.document("let")
	if len(vars) == 0 {
		return nil
	}
	out := make(bson.D, 0, len(vars))
	for _, v := range vars {
		x, err := expression.Parse(v.Value)
		if err != nil {
			a.fail(err)
			return nil
		}
		r, err := x.Eval(expression.NewEnv(bson.D{}, out))
		if err != nil {
			a.fail(err)
			return nil
		}
		out = append(out, bson.E{Key: v.Key, Value: r})
	}
	return out
}

func (a *args) collation() *query.Collation {
	c, err := query.ParseCollation(a.document("collation"))
	if err != nil {
		a.fail(err)
	}
	return c
}

// generic are the fields that any command may have.
var generic = map[string]bool{
	"$db": true, "$clusterTime": true, "$readPreference": true, "$configServerState": true, "$audit": true, "$client": true,
	"lsid": true, "txnNumber": true, "autocommit": true, "startTransaction": true, "stmtId": true, "stmtIds": true, "recoveryToken": true,
	"readConcern": true, "writeConcern": true, "maxTimeMS": true, "comment": true, "apiVersion": true, "apiStrict": true,
	"apiDeprecationErrors": true, "maxTimeMSOpOnly": true, "$maxTimeMS": true, "mayBypassWriteBlocking": true, "coordinator": true,
	"rawData": true, "$gossipTime": true, "databaseVersion": true, "shardVersion": true, "$secondaryOk": true, "$queryOptions": true,
}

// unknown refuses fields that a command does not have.
func unknown(of string, doc bson.D, fields string) error {
	for i, e := range doc {
		if i == 0 && !strings.Contains(of, ".") || generic[e.Key] || strings.Contains(fields, " "+e.Key+" ") {
			continue
		}
		return command.Errorf(command.CodeIDLUnknownField, "BSON field '%s.%s' is an unknown field.", of, e.Key)
	}
	return nil
}

// only refuses fields that the command does not have.
func (a *args) only(fields string) { a.fail(unknown(a.of, a.doc, fields)) }

// need refuses a command without a field that it must have.
func (a *args) need(key string) {
	if !a.has(key) {
		a.fail(command.Errorf(command.CodeIDLFailedToParse, "BSON field '%s.%s' is missing but a required field", a.of, key))
	}
}

// checkName refuses a namespace that cannot be.
func (a *args) checkName(db, name string) {
	if err := namespace(db, name); err != nil {
		a.fail(err)
	}
}

// readConcern checks the read concern of a command and gives its level.
func (d *Data) readConcern(a *args) (level string, at *bson.Timestamp, err error) {
	rc := a.document("readConcern")
	if a.err != nil {
		return "", nil, a.err
	}
	v, ok := value.Field(rc, "level")
	if ok {
		level, _ = v.(string)
		switch level {
		case "local", "majority", "linearizable", "available", "snapshot":
		default:
			return "", nil, command.Errorf(command.CodeFailedToParse, "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
		}
	}
	if t, ok := value.Field(rc, "atClusterTime"); ok {
		ts, isTime := t.(bson.Timestamp)
		if !isTime {
			return "", nil, command.Errorf(command.CodeTypeMismatch, "\"atClusterTime\" had the wrong type. Expected timestamp, found %s", value.TypeName(t))
		}
		if level != "snapshot" {
			return "", nil, command.Errorf(command.CodeInvalidOptions, "readConcern.atClusterTime is set, but readConcern.level is not 'snapshot'")
		}
		at = &ts
	}
	if !d.logged() {
		if level == "snapshot" || level == "linearizable" {
			return "", nil, command.Errorf(command.CodeNotAReplicaSet, "node needs to be a replica set member to use readConcern: %s", level)
		}
		if _, ok := value.Field(rc, "afterClusterTime"); ok {
			return "", nil, command.Errorf(command.CodeIllegalOperation, "Cannot specify afterClusterTime readConcern: node is not a replica set member")
		}
	}
	return level, at, nil
}

// nsText is a namespace of a command without collection.
func nsText(db, what string) string { return fmt.Sprintf("%s.$cmd.%s", db, what) }

// handler is a command of this package.
type handler func(s *scope, a *args) (bson.D, error)

// serve wraps a handler: it decodes the command, finds the session's scope,
// and ends the transaction of a command that failed.
func (d *Data) serve(h handler) func(*command.Request) (bson.D, error) {
	return run(d.parse(func(_ *command.Request, a *args) (action, error) {
		return func(s *scope) (bson.D, error) { return h(s, a) }, nil
	}))
}

// action does what a command asks for.
type action func(s *scope) (bson.D, error)

// parse makes the Parse of a row.
func (d *Data) parse(p func(*command.Request, *args) (action, error)) func(*command.Request) (func() (bson.D, error), error) {
	return func(req *command.Request) (func() (bson.D, error), error) {
		doc, err := value.Decode(req.Body)
		if err != nil {
			return nil, command.Errorf(command.CodeInvalidBSON, "%v", err)
		}
		if err := tooNew(req, req.Row.Name, doc); err != nil {
			return nil, err
		}
		do, err := p(req, &args{of: req.Row.Name, doc: doc})
		return func() (bson.D, error) {
			d.seen.note(req, d.opts.Now())
			s, err := d.begin(req)
			if err != nil {
				return routed(req, err)
			}
			defer s.leave()
			reply, err := do(s)
			if s.txn == nil {
				return reply, err
			}
			return d.inTransaction(s, reply, err)
		}, err
	}
}

// routed is how a mongos reports what its shard said about the session of a
// write: as the error of the first statement.
func routed(req *command.Request, err error) (bson.D, error) {
	e, ok := err.(*command.Error)
	if !ok || !mongos(req) || e.Code != command.CodeTransactionTooOld || req.InTransaction {
		return nil, err
	}
	switch req.Row.Name {
	case "insert", "update", "delete":
		t := &tally{req: req}
		t.failed(0, inserting, e)
		return t.reply(), nil
	}
	return nil, err
}

// inTransaction finishes a command of a transaction. If someone else has
// aborted the transaction while it ran, nothing that it found is true.
func (d *Data) inTransaction(s *scope, reply bson.D, err error) (bson.D, error) {
	_, failed := value.Field(reply, "writeErrors")
	touched := false
	d.changing(func() {
		switch {
		case s.txn.state == aborted && err == nil:
			reply, err = nil, s.txn.gone()
		case s.txn.state == running && (failed || err != nil):
			d.abort(s.txn)
		}
		// The shard has to recover an outcome only where something was written.
		if row := s.req.Row; err == nil && row.Write && !row.EndsTransaction {
			s.txn.touched = true
		}
		touched = s.txn.touched
	})
	if !mongos(s.req) {
		return reply, err
	}
	if e, ok := err.(*command.Error); ok {
		if e.Code == command.CodeWriteConflict {
			c := *e
			_, host, _ := strings.Cut(d.opts.ShardHost, "/")
			c.Message = fmt.Sprintf("Encountered error from %s during a transaction :: caused by :: %s", host, e.Message)
			return reply, &c
		}
		return reply, err
	}
	s.req.AfterOK = append(s.req.AfterOK, d.recoveryToken(touched)...)
	return reply, err
}
