package commands

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// args are the fields of a command or of a document in it, whose names and types have been checked. Its methods return
// zero values for missing fields, and note errors in values.
type args struct {
	of  string // the name of the command or document in messages
	doc bson.D
	*fault.First
}

func (a *args) part(key string) *args {
	return &args{of: a.of + "." + key, doc: a.document(key), First: a.First}
}

// batchSize returns cursor.batchSize, or -1 if it is missing.
func (a *args) batchSize() int64 { return a.part("cursor").number("batchSize", -1) }

func (a *args) has(key string) bool        { _, ok := value.Field(a.doc, key); return ok }
func (a *args) any(key string) any         { return value.Get(a.doc, key) }
func (a *args) str(key string) string      { return value.As[string](a.doc, key) }
func (a *args) document(key string) bson.D { return value.As[bson.D](a.doc, key) }
func (a *args) array(key string) bson.A    { return value.As[bson.A](a.doc, key) }
func (a *args) flag(key string) bool       { return value.Truthy(a.any(key)) }

// name returns the collection name, the value of the first field.
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

func (a *args) checkName(db, name string) { a.Note(namespace(db, name)) }

// number returns a number as an integer, or fallback if it is missing.
func (a *args) number(key string, fallback int64) int64 {
	v := a.any(key)
	if v == nil {
		return fallback
	}
	n, ok := value.Int64(v)
	if !ok {
		n = int64(value.Float(v))
	}
	return n
}

// let returns the variables of a command: its field let, and NOW. NOW is constant during the command.
func (a *args) let(req *Request) bson.D {
	out := value.Doc("NOW", bson.NewDateTimeFromTime(time.Now()))
	for _, v := range a.document("let") {
		x, err := expression.Parse(v.Value, expression.Options{Let: out, Wire: wire(req)})
		if err == nil {
			v.Value, err = x.Eval(expression.NewEnv(bson.D{}, out))
		}
		a.Note(err)
		out = append(out, v)
	}
	return out
}

// collation returns the given collation, or the default of a collection. The default of a view cannot be replaced.
func (a *args) collation(s *call, db, name string) value.Collation {
	var otherwise value.Collation
	isView := false
	s.View(func(tx *store.Tx) {
		if c := tx.Collection(db, name); c != nil {
			otherwise, isView = c.Collation, c.IsView()
		}
	})
	if len(a.document("collation")) == 0 {
		return otherwise
	}
	c, err := value.ParseCollation(a.document("collation"))
	a.Note(err)
	a.Refuse(isView && !c.Same(otherwise), fault.OptionNotSupportedOnView,
		"Cannot override a view's default collation %s.%s", db, name)
	return c
}

// filter compiles the filter in a field, or returns nil after an error.
func (a *args) filter(key string, opts query.Options) *query.Filter {
	f, err := query.Compile(a.document(key), opts)
	a.Note(err)
	return f
}

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

// readConcern returns the read concern, which the server has checked.
func (a *args) readConcern(s *call) readConcern {
	rc := a.part("readConcern")
	out := readConcern{level: rc.str("level")}
	out.snapshot = out.level == "snapshot" && !s.InTransaction()
	if ts := value.As[bson.Timestamp](rc.doc, "atClusterTime"); !ts.IsZero() {
		out.at = &ts
	}
	return out
}
