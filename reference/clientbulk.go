package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// bulkOp is one write of a clientBulkWrite.
type bulkOp struct {
	model
	statement bson.D
	id        any // of an inserted document
}

// clientBulk is a bulkWrite command of a clientBulkWrite.
type clientBulk struct {
	first      int // place of its first write among all
	ops        []bulkOp
	namespaces []string
	bytes      int
	many       bool
}

// readClientBulk reads the models into as many commands as they need (Bulk
// Write, "Building a bulkWrite Command", "Command Batching").
func readClientBulk(models []enginekit.Model, l limits) ([]*clientBulk, *result.Error) {
	b := &clientBulk{}
	all := []*clientBulk{b}
	for i, m := range models {
		op, full, failed := b.take(model(m), l)
		if full {
			b = &clientBulk{first: i}
			all = append(all, b)
			op, _, failed = b.take(model(m), l)
		}
		if failed != nil {
			return nil, failed
		}
		b.ops = append(b.ops, op)
		b.many = b.many || op.multi()
	}
	return all, nil
}

// take makes a write of a model. It is full if the command has no room for it.
func (b *clientBulk) take(m model, l limits) (op bulkOp, full bool, failed *result.Error) {
	op.model = m
	known := len(b.namespaces)
	if failed = b.add(&op); failed != nil {
		return op, false, failed
	}
	raw, err := bson.Marshal(op.statement)
	if err != nil {
		return op, false, argument(err.Error())
	}
	const element = len("\x03100000\x00") // of an array
	bytes := len(raw) + element
	for _, ns := range b.namespaces[known:] {
		bytes += len("....\x02ns\x00....") + len(ns) + 2 + element
	}
	if len(b.ops) > 0 && (len(b.ops) >= l.statements || b.bytes+bytes > l.bytes) {
		b.namespaces = b.namespaces[:known]
		return op, true, nil
	}
	b.bytes += bytes
	return op, false, nil
}

func (b *clientBulk) add(op *bulkOp) *result.Error {
	ns, ok := op.Args.Lookup("namespace").StringValueOK()
	if !ok || !strings.Contains(ns, ".") {
		return argument("a model has no namespace")
	}
	at := slices.Index(b.namespaces, ns)
	if at < 0 {
		at = len(b.namespaces)
		b.namespaces = append(b.namespaces, ns)
	}
	fields, id, err := op.model.statement("clientBulkWrite", map[string]string{"update": "updateMods", "replacement": "updateMods"})
	op.id, op.statement = id, append(bson.D{{Key: op.group(), Value: int32(at)}}, fields...)
	if op.group() != "insert" {
		op.statement = append(op.statement, bson.E{Key: "multi", Value: op.multi()})
	}
	return err
}

func (b *clientBulk) command(c *call, ordered, verbose bool) bson.D {
	ops, ns := bson.A{}, bson.A{}
	for _, o := range b.ops {
		ops = append(ops, o.statement)
	}
	for _, n := range b.namespaces {
		ns = append(ns, bson.D{{Key: "ns", Value: n}})
	}
	d := bson.D{{Key: "bulkWrite", Value: int32(1)}, {Key: "errorsOnly", Value: !verbose}, {Key: "ordered", Value: ordered},
		{Key: "ops", Value: ops}, {Key: "nsInfo", Value: ns}}
	return c.copyArgs(d, "bypassDocumentValidation", "comment", "let", "rawData")
}

// clientBulkWrite sends the models and sums up what the servers' cursors say.
func clientBulkWrite(c *call) (any, *result.Error) {
	models, err := c.Models("models")
	if err != nil {
		return nil, err
	}
	if len(models) == 0 {
		return nil, argument("there is nothing to write")
	}
	bulks, err := readClientBulk(models, c.client.limits())
	if err != nil {
		return nil, err
	}
	t := &clientTally{ordered: c.ordered(), verbose: c.Flag("verboseResults"),
		results: map[string]bson.D{"insert": {}, "update": {}, "delete": {}}}
	for _, b := range bulks {
		r, err := b.send(c, t)
		if err != nil && r.doc == nil {
			t.raise(err)
			break
		}
		if t.silent {
			continue
		}
		// What was to be retried interrupts the rest (Retryable Writes, "Executing
		// Retryable Write Commands").
		if !b.read(c, r, t) || t.failure != nil && (t.ordered && len(t.failure.WriteErrors) > 0 || t.failure.HasLabel(labelWrite)) {
			break
		}
	}
	return t.end()
}

// send performs one command.
func (b *clientBulk) send(c *call, t *clientTally) (reply, *result.Error) {
	name := "bulkWrite"
	if b.many {
		name = "bulkWrite with multi-document writes"
	}
	d := b.command(c, t.ordered, t.verbose)
	var cmd *command
	cmd = c.writing("bulkWrite", name, func(target target) (bson.D, error) {
		if target.wire < wire80 && cmd.silent() { // the server would refuse it, and not say so
			return nil, argument("the server is too old for bulkWrite")
		}
		return d, nil
	})
	if err := c.override(cmd); err != nil {
		return reply{}, err
	}
	t.silent = cmd.silent()
	if t.silent {
		switch {
		case t.verbose:
			return reply{}, argument("Cannot request unacknowledged write concern and verbose results")
		case t.ordered:
			return reply{}, argument("Cannot request unacknowledged write concern and ordered writes")
		}
	}
	cmd.pin = true
	return c.do(cmd)
}

// clientTally is the result of a clientBulkWrite, over all its commands.
type clientTally struct {
	counts
	ordered, verbose, silent bool
	results                  map[string]bson.D // by group
	writes                   int               // that a server has answered
	failure                  *result.Error
}

// read reads a reply and its cursor (Bulk Write, "Handling the bulkWrite
// Server Response"). It is false after an error that ends the whole.
func (b *clientBulk) read(c *call, r reply, t *clientTally) bool {
	if r.write != nil {
		e := *r.write.err
		e.Kind, e.WriteErrors, e.Code, e.HasCode, e.CodeName = "client bulk write", nil, 0, false, ""
		for i, w := range e.WriteConcernErrors {
			e.WriteConcernErrors[i] = described(w)
		}
		if t.failure != nil {
			e = *mergeErrors(t.failure, &e)
		}
		t.failure = &e
	}
	count := func(field string) int64 { n, _ := enginekit.Integer(r.doc.Lookup(field)); return n }
	t.inserted, t.upserted = t.inserted+count("nInserted"), t.upserted+count("nUpserted")
	t.matched, t.modified, t.deleted = t.matched+count("nMatched"), t.modified+count("nModified"), t.deleted+count("nDeleted")
	t.writes += len(b.ops)
	k, err := c.openCursor(r, cursorOptions{})
	var docs []bson.Raw
	if err == nil {
		docs, err = k.all(c.base, &c.trace)
	}
	if err != nil {
		t.raise(err)
		return false
	}
	for _, d := range docs {
		at, ok := enginekit.Integer(d.Lookup("idx"))
		if !ok || at < 0 || int(at) >= len(b.ops) {
			continue
		}
		place := b.first + int(at)
		if !okOf(d) {
			if t.failure == nil {
				t.failure = &result.Error{Kind: "client bulk write", Message: "some writes failed", Server: r.address, Response: r.doc}
			}
			enginekit.AddWriteError(t.failure, place, described(d))
			continue
		}
		if t.verbose {
			op := b.ops[at]
			t.results[op.group()] = append(t.results[op.group()], bson.E{Key: fmt.Sprint(place), Value: op.result(d)})
		}
	}
	return true
}

// raise keeps an error that ends the whole, with the errors that are known of
// its parts.
func (t *clientTally) raise(err *result.Error) {
	if t.failure != nil {
		err = mergeErrors(t.failure, err)
	}
	t.failure = err
}

func (t *clientTally) end() (any, *result.Error) {
	sum := t.document()
	if t.verbose {
		sum = append(sum, bson.E{Key: "insertResults", Value: t.results["insert"]},
			bson.E{Key: "updateResults", Value: t.results["update"]}, bson.E{Key: "deleteResults", Value: t.results["delete"]})
	}
	if t.failure == nil {
		if t.silent {
			return bson.D{}, nil
		}
		return sum, nil
	}
	_, first := t.failure.WriteErrors[0]
	if len(t.failure.WriteErrors) < t.writes && !(t.ordered && first) { // something was written
		return nil, withPartial(t.failure, sum)
	}
	return nil, t.failure
}

// result gives the individual result of a write.
func (o bulkOp) result(d bson.Raw) bson.D {
	n, _ := enginekit.Integer(d.Lookup("n"))
	switch o.group() {
	case "insert":
		return bson.D{{Key: "insertedId", Value: o.id}}
	case "delete":
		return bson.D{{Key: "deletedCount", Value: n}}
	}
	modified, _ := enginekit.Integer(d.Lookup("nModified"))
	out := bson.D{{Key: "matchedCount", Value: n}, {Key: "modifiedCount", Value: modified}}
	if id, err := d.LookupErr("upserted", "_id"); err == nil {
		out = append(out, bson.E{Key: "upsertedId", Value: id})
	}
	return out
}

// described writes an error of the server as the specification names its
// fields: code, message, details.
func described(d bson.Raw) bson.Raw {
	return enginekit.Described(d.Lookup("code"), d.Lookup("errmsg"), d.Lookup("errInfo"))
}
