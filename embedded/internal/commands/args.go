package commands

import (
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// args are the fields of a command or of a subdocument. Its methods record errors, such as a wrong type.
type args struct {
	of  string // the name of the command or subdocument in messages
	doc bson.D
	old bool // use the messages of find before 5.0
	*fault.First
}

func (a *args) part(key string) *args {
	return &args{of: a.of + "." + key, doc: a.document(key), First: a.First}
}

// batchSize returns cursor.batchSize, or -1 if it is missing.
func (a *args) batchSize() int64 {
	c := a.part("cursor")
	c.only(" batchSize ")
	return c.number("batchSize", -1)
}

func (a *args) wrong(key string, v any, want string) {
	a.Refuse(a.old, fault.FailedToParse, "Failed to parse: %s: %s. '%s' field must be of BSON type %s.", key, value.Text(v), key, want)
	a.Fail(fault.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type '%s'", a.of, key, value.TypeName(v), want)
}

func (a *args) has(key string) bool { _, ok := value.Field(a.doc, key); return ok }
func (a *args) any(key string) any  { return value.Get(a.doc, key) }

// field returns a field of type T, or the zero value if it is missing. want is the name of the type in messages.
func field[T any](a *args, key, want string) (out T) {
	v := a.any(key)
	if v == nil {
		return out
	}
	out, ok := v.(T)
	if !ok {
		a.wrong(key, v, want)
	}
	return out
}

func (a *args) str(key string) string      { return field[string](a, key, "string") }
func (a *args) document(key string) bson.D { return field[bson.D](a, key, "object") }
func (a *args) array(key string) bson.A    { return field[bson.A](a, key, "array") }

// name returns the collection name, which is the value of the first field.
func (a *args) name() string {
	s, ok := a.doc[0].Value.(string)
	a.Refuse(!ok, fault.InvalidNamespace, "collection name has invalid type %s", value.TypeName(a.doc[0].Value))
	return s
}

// collection returns the name of a collection in a database. It must be valid.
func (a *args) collection(db string) string {
	name := a.name()
	a.checkName(db, name)
	return name
}

// number returns a number as an integer, or fallback if it is missing.
func (a *args) number(key string, fallback int64) int64 {
	v := a.any(key)
	if v == nil {
		return fallback
	}
	if !value.IsNumber(v) {
		a.Refuse(a.old, fault.FailedToParse, "Failed to parse: %s. '%s' field must be numeric.", value.Text(a.doc), key)
		a.Fail(fault.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected types '[long, int, decimal, double']", a.of, key, value.TypeName(v))
		return fallback
	}
	n, ok := value.Int64(v)
	if !ok {
		n = int64(value.Float(v))
	}
	return n
}

// count returns a number that must not be negative. what is its name in messages.
func (a *args) count(key, what string) int64 {
	n := a.number(key, 0)
	a.Refuse(n < 0, fault.BadValue, "%s value must be non-negative, but received: %d", what, n)
	return n
}

// flag returns a boolean or the truth value of a number.
func (a *args) flag(key string) bool {
	v := a.any(key)
	if v == nil {
		return false
	}
	_, ok := v.(bool)
	a.Refuse(!ok && !value.IsNumber(v), fault.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected types '[bool, long, int, decimal, double']", a.of, key, value.TypeName(v))
	return value.Truthy(v)
}

// let returns the variables of a command: those of the field let and NOW, which is constant during the command.
func (a *args) let() bson.D {
	out := bson.D{{Key: "NOW", Value: bson.NewDateTimeFromTime(time.Now())}}
	for _, v := range a.document("let") {
		x, err := expression.Parse(v.Value)
		if err == nil {
			v.Value, err = x.Eval(expression.NewEnv(bson.D{}, out))
		}
		a.Note(err)
		out = append(out, v)
	}
	return out
}

func (a *args) collation() query.Collation {
	c, err := query.ParseCollation(a.document("collation"))
	a.Note(err)
	return c
}

// filter compiles the filter in a field, or returns nil after an error.
func (a *args) filter(key string, opts query.Options) *query.Filter {
	doc := a.document(key)
	if a.Err != nil {
		return nil
	}
	f, err := query.Compile(doc, opts)
	a.Note(err)
	return f
}

// generic contains the fields that every command accepts.
var generic = map[string]bool{
	"$db": true, "$clusterTime": true, "$readPreference": true, "$configServerState": true, "$audit": true, "$client": true,
	"lsid": true, "txnNumber": true, "autocommit": true, "startTransaction": true, "stmtId": true, "stmtIds": true, "recoveryToken": true,
	"readConcern": true, "writeConcern": true, "maxTimeMS": true, "comment": true, "apiVersion": true, "apiStrict": true,
	"apiDeprecationErrors": true, "maxTimeMSOpOnly": true, "$maxTimeMS": true, "mayBypassWriteBlocking": true, "coordinator": true,
	"rawData": true, "$gossipTime": true, "databaseVersion": true, "shardVersion": true, "$secondaryOk": true, "$queryOptions": true,
}

// only checks that all fields are in a list. Those of a command may also be generic; the first one is its name.
func (a *args) only(fields string) {
	isCommand := !strings.ContainsAny(a.of, ".$")
	for i, e := range a.doc {
		if isCommand && (i == 0 || generic[e.Key]) || strings.Contains(fields, " "+e.Key+" ") {
			continue
		}
		a.Refuse(a.old, fault.FailedToParse,
			"Failed to parse: %s. Unrecognized field '%s'.", value.Text(a.doc), e.Key)
		a.Fail(fault.IDLUnknownField, "BSON field '%s.%s' is an unknown field.", a.of, e.Key)
	}
}

func (a *args) need(key string) {
	a.Refuse(!a.has(key), fault.IDLFailedToParse, "BSON field '%s.%s' is missing but a required field", a.of, key)
}

func (a *args) checkName(db, name string) { a.Note(namespace(db, name)) }

// readConcern is the read concern of a command.
type readConcern struct {
	level    string
	snapshot bool            // the level is snapshot, outside of a transaction
	at       *bson.Timestamp // atClusterTime; nil: now
}

// time returns the field atClusterTime of the reply of a snapshot read. now is the time of the read.
func (r readConcern) time(now bson.Timestamp) bson.D {
	if r.at != nil {
		now = *r.at
	}
	return value.AddIf(nil, r.snapshot, "atClusterTime", now)
}

// readConcern returns the read concern, which the server has validated.
func (a *args) readConcern(s *call) readConcern {
	rc := a.part("readConcern")
	level := rc.str("level")
	out := readConcern{level: level, snapshot: level == "snapshot" && !s.InTransaction()}
	if v, ok := value.Field(rc.doc, "atClusterTime"); ok {
		ts, isTime := v.(bson.Timestamp)
		out.at = &ts
		a.Refuse(!isTime, fault.TypeMismatch, "\"atClusterTime\" had the wrong type. Expected timestamp, found %s", value.TypeName(v))
		a.Refuse(level != "snapshot", fault.InvalidOptions, "readConcern.atClusterTime is set, but readConcern.level is not 'snapshot'")
	}
	if s.d.Logged() {
		return out
	}
	a.Refuse(level == "snapshot" || level == "linearizable", fault.NotAReplicaSet, "node needs to be a replica set member to use readConcern: %s", level)
	a.Refuse(rc.has("afterClusterTime"), fault.IllegalOperation, "Cannot specify afterClusterTime readConcern: node is not a replica set member")
	return out
}
