package reference

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/result"
)

// write is one write of a bulk write, as sent in its command.
type write struct {
	place     int // index in the bulk write
	command   string
	group     string // insert, update or delete
	multi     bool
	namespace string // of a clientBulkWrite
	statement bson.D
	id        any // of an inserted document
	bytes     int // size of the statement
}

// readWrites reads the models of bulkWrite or clientBulkWrite.
func readWrites(operation string, models []enginekit.Model) ([]*write, *result.Error) {
	if len(models) == 0 {
		return nil, argument("the list of writes is empty")
	}
	ofClient, names := operation == "clientBulkWrite", map[string]string{"filter": "q", "update": "u", "replacement": "u"}
	if ofClient {
		names = map[string]string{"update": "updateMods", "replacement": "updateMods"}
	}
	writes := make([]*write, len(models))
	for i, m := range models {
		kind, many := strings.CutSuffix(m.Kind, "Many")
		w := &write{place: i, group: strings.TrimSuffix(kind, "One"), multi: many}
		if w.group == "replace" {
			w.group = "update"
		}
		if err := w.read(m, modelArgs(operation, m.Kind), names); err != nil {
			return nil, err
		}
		finish := w.ofCollection
		if ofClient {
			finish = w.ofClient
		}
		if err := finish(); err != nil {
			return nil, err
		}
		raw, err := bson.Marshal(w.statement)
		if err != nil {
			return nil, argument(err.Error())
		}
		w.bytes = len(raw)
		writes[i] = w
	}
	return writes, nil
}

// modelArgs lists the arguments of a kind of model, nil if the operation does not accept it.
func modelArgs(operation, kind string) []operations.Argument {
	_, models := operations.Models(operation)
	i := slices.IndexFunc(models, func(m operations.Operation) bool { return m.Name == kind })
	if i < 0 {
		return nil
	}
	return models[i].Arguments
}

// read reads the fields of a model, and renames them by names. It adds a missing _id to an inserted document.
func (w *write) read(m enginekit.Model, known []operations.Argument, names map[string]string) *result.Error {
	if known == nil {
		return unsupported("write model " + m.Kind)
	}
	elements, bad := m.Args.Elements()
	if bad != nil {
		return argument(bad.Error())
	}
	for _, e := range elements {
		if !slices.ContainsFunc(known, func(a operations.Argument) bool { return a.Name == e.Key() }) {
			return unsupported("argument " + e.Key() + " of write model " + m.Kind)
		}
		var value any = e.Value()
		var err *result.Error
		switch e.Key() {
		case "namespace":
			w.namespace, _ = e.Value().StringValueOK()
			continue
		case "document":
			value, w.id, err = withID(e.Value())
		case "update", "replacement":
			err = validateUpdate(e.Key(), e.Value())
		}
		if err != nil {
			return err
		}
		w.statement = append(w.statement, bson.E{Key: cmp.Or(names[e.Key()], e.Key()), Value: value})
	}
	return nil
}

// ofCollection completes the statement for insert, update or delete.
func (w *write) ofCollection() *result.Error {
	w.command = w.group
	switch {
	case w.group == "insert" && w.statement == nil:
		return argument("an insert has no document")
	case w.group == "insert":
		w.statement = w.statement[0].Value.(bson.D)
	case w.group == "delete" && w.multi:
		w.statement = append(w.statement, bson.E{Key: "limit", Value: int32(0)})
	case w.group == "delete":
		w.statement = append(w.statement, bson.E{Key: "limit", Value: int32(1)})
	default:
		w.statement = addIf(w.statement, w.multi, "multi", true)
	}
	return nil
}

// ofClient completes the statement for bulkWrite. The batch sets the first field, the index of its namespace.
func (w *write) ofClient() *result.Error {
	if !strings.Contains(w.namespace, ".") {
		return argument("a model has no namespace")
	}
	w.command = "bulkWrite"
	w.statement = addIf(append(document(w.group, int32(0)), w.statement...), w.group != "insert", "multi", w.multi)
	return nil
}

// withID reads a document and prepends an _id if it has none. It returns both.
func withID(v bson.RawValue) (bson.D, any, *result.Error) {
	var d bson.D
	if err := v.Unmarshal(&d); err != nil {
		return nil, nil, argument("the field document is not a document: " + err.Error())
	}
	if i := slices.IndexFunc(d, func(e bson.E) bool { return e.Key == "_id" }); i >= 0 {
		return d, d[i].Value, nil
	}
	id := bson.NewObjectID()
	return append(document("_id", id), d...), id, nil
}

// validateUpdate checks that an update starts with an operator, and that a replacement does not.
func validateUpdate(name string, v bson.RawValue) *result.Error {
	if name == "update" && v.Type == bson.TypeArray {
		return nil
	}
	doc, ok := v.DocumentOK()
	if !ok {
		return argument(name + " is not a document")
	}
	first, err := doc.IndexErr(0)
	operator := err == nil && strings.HasPrefix(first.Key(), "$")
	switch {
	case name == "update" && !operator:
		return argument("update must consist of operators")
	case name == "replacement" && operator:
		return argument("replacement must not have operators: " + first.Key())
	}
	return nil
}

// batch holds the writes of one command.
type batch struct {
	from    []*write // all that were not sent before
	ordered bool
	fixed   int      // size of the command without its writes
	rest    []*write // of from, for later commands

	writes     []*write
	places     []int // indexes in the bulk write
	namespaces []string
	bytes      int
}

// limits are the limits of one command.
type limits struct {
	statements int // maxWriteBatchSize
	bytes      int // of the command and all statements
}

// limitsOf returns the limits of a server, or the limits of current servers if hello lacks them. 1000 bytes of the
// message are reserved for generic fields (Bulk Write, "Total Message Size").
func limitsOf(s description.Server) limits {
	return limits{statements: cmp.Or(int(s.MaxBatchCount), 100_000),
		bytes: cmp.Or(int(s.MaxMessageSize), wire.MaxMessage) - 1000}
}

// add adds a write and returns true, unless the batch is full. An empty batch accepts any write.
func (b *batch) add(w *write, l limits) bool {
	bytes, namespace := w.bytes, slices.Index(b.namespaces, w.namespace)
	if namespace < 0 && w.namespace != "" {
		bytes += len("....\x02ns\x00....") + len(w.namespace) + 2
	}
	if len(b.writes) > 0 && (len(b.writes) >= l.statements || b.bytes+bytes > l.bytes) {
		return false
	}
	if namespace < 0 {
		namespace = len(b.namespaces)
		b.namespaces = append(b.namespaces, w.namespace)
	}
	if w.namespace != "" {
		w.statement[0].Value = int32(namespace)
	}
	b.writes, b.places, b.bytes = append(b.writes, w), append(b.places, w.place), b.bytes+bytes
	return true
}

func (b *batch) statements() bson.A {
	all := bson.A{}
	for _, w := range b.writes {
		all = append(all, w.statement)
	}
	return all
}

// many reports whether any write may affect several documents.
func (b *batch) many() bool {
	return slices.ContainsFunc(b.writes, func(w *write) bool { return w.multi })
}

// fill chooses the writes of the next command: writes of the same command as the first, up to the limits, and only up
// to another command if they are ordered (Bulk Write, "Command Batching").
func (b *batch) fill(l limits) {
	*b = batch{from: b.from, ordered: b.ordered, fixed: b.fixed, bytes: b.fixed}
	full := false
	for i, w := range b.from {
		same := w.command == b.command()
		switch {
		case same && !full && b.add(w, l):
		case b.ordered:
			b.rest = b.from[i:]
			return
		default:
			full = full || same
			b.rest = append(b.rest, w)
		}
	}
}

func (b *batch) command() string { return b.from[0].command }

// fit gives a command its writes, with build, which returns the fields that fixed lacks: before a server is selected
// those that current servers accept, and, when a connection was checked out, those that its server accepts. A single
// write that is too large for the server is an error (Bulk Write, "Total Message Size").
func (b *batch) fit(cmd *command, fixed bson.D, build func() bson.D) *result.Error {
	raw, err := bson.Marshal(fixed)
	if err != nil {
		return argument(err.Error())
	}
	b.fixed = len(raw)
	cmd.fit = func(l limits) error {
		b.fill(l)
		statements := build()
		cmd.body, cmd.sequences = slices.Insert(slices.Clone(fixed), 1, statements...), nil
		for _, e := range statements {
			cmd.sequences = append(cmd.sequences, e.Key)
		}
		if b.bytes > l.bytes {
			return argument(fmt.Sprintf("a write does not fit into a message of %d bytes", l.bytes))
		}
		return nil
	}
	_ = cmd.fit(limitsOf(description.Server{})) // the limit of the server decides
	return nil
}

// write performs writes in as few commands as their order allows. It merges the errors of the commands. perform also
// reports whether its error interrupts unordered writes, too.
func (c *call) write(writes []*write, ordered bool,
	perform func(*batch) (bool, *result.Error)) (failure *result.Error) {
	for len(writes) > 0 {
		b := &batch{from: writes, ordered: ordered}
		interrupts, err := perform(b)
		if writes = b.rest; err == nil {
			continue
		}
		failure = mergeErrors(failure, err)
		if interrupts || ordered && len(err.WriteErrors) > 0 {
			break
		}
	}
	return failure
}

// mergeErrors merges the errors of two commands of one bulk write. a may be nil. A timeout of either is one of both
// (Client Side Operations Timeout, "Error Transformations").
func mergeErrors(a, b *result.Error) *result.Error {
	if a == nil {
		return b
	}
	merged := *b
	merged.Timeout = a.Timeout || b.Timeout
	merged.WriteErrors = map[int]result.Document{}
	maps.Copy(merged.WriteErrors, a.WriteErrors)
	maps.Copy(merged.WriteErrors, b.WriteErrors)
	merged.WriteConcernErrors = slices.Concat(a.WriteConcernErrors, b.WriteConcernErrors)
	merged.Labels = slices.Concat(a.Labels, without(b.Labels, a.Labels...))
	return &merged
}

// counts are the counts of a bulk write result.
type counts struct{ inserted, matched, modified, deleted, upserted int64 }

func (t counts) document() bson.D {
	return document("insertedCount", t.inserted, "matchedCount", t.matched, "modifiedCount", t.modified,
		"deletedCount", t.deleted, "upsertedCount", t.upserted)
}

func (c *call) ordered() bool { return !c.Has("ordered") || c.Flag("ordered") }

// withPartial adds a partial result to an error.
func withPartial(err *result.Error, sum bson.D) *result.Error {
	out := *err
	if v, bad := enginekit.ValueOf(sum); bad == nil {
		out.Partial = v
	}
	return &out
}
