package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// wire80 is the wire version of server 8.0, which brought bulkWrite.
const wire80 = 25

func clientBulkRows() []row {
	return []row{
		{operations.Client, "clientBulkWrite", common("models", "ordered", "verboseResults", "bypassDocumentValidation",
			"comment", "let", "rawData", "writeConcern"), clientBulkWrite},
	}
}

// bulkOp is one write of a clientBulkWrite.
type bulkOp struct {
	model
	statement bson.D
	id        any // of an inserted document
}

// clientBulk is a clientBulkWrite as one bulkWrite command.
type clientBulk struct {
	ops        []bulkOp
	namespaces []string
	many       bool
}

// readClientBulk reads the models (Bulk Write, "Building a bulkWrite Command").
func readClientBulk(models []bson.Raw) (*clientBulk, *result.Error) {
	b := &clientBulk{}
	for _, raw := range models {
		e, err := raw.IndexErr(0)
		if err != nil {
			return nil, argument("a model is empty")
		}
		args, ok := e.Value().DocumentOK()
		if !ok {
			return nil, argument("a model is no document")
		}
		op := bulkOp{model: model{e.Key(), args}}
		if failed := b.add(&op); failed != nil {
			return nil, failed
		}
		b.ops = append(b.ops, op)
		b.many = b.many || op.multi()
	}
	return b, nil
}

func (b *clientBulk) add(op *bulkOp) *result.Error {
	known := modelArgs(op.kind)
	if known == nil {
		return unsupported("write model " + op.kind)
	}
	ns, ok := op.args.Lookup("namespace").StringValueOK()
	if !ok || !strings.Contains(ns, ".") {
		return argument("a model has no namespace")
	}
	at := slices.Index(b.namespaces, ns)
	if at < 0 {
		at = len(b.namespaces)
		b.namespaces = append(b.namespaces, ns)
	}
	op.statement = bson.D{{Key: op.group(), Value: int32(at)}}
	elements, err := op.args.Elements()
	if err != nil {
		return argument(err.Error())
	}
	for _, e := range elements {
		key := e.Key()
		if key == "namespace" {
			continue
		}
		if !slices.Contains(known, key) {
			return unsupported("argument " + key + " of write model " + op.kind)
		}
		var value any = e.Value()
		var failed *result.Error
		switch key {
		case "document":
			value, op.id, failed = withID(e.Value())
		case "update":
			key, failed = "updateMods", updates(e.Value())
		case "replacement":
			key, failed = "updateMods", replaces(e.Value())
		}
		if failed != nil {
			return failed
		}
		op.statement = append(op.statement, bson.E{Key: key, Value: value})
	}
	if op.group() != "insert" {
		op.statement = append(op.statement, bson.E{Key: "multi", Value: op.multi()})
	}
	return nil
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

// clientBulkWrite sends the models and sums up what the server's cursor says.
func clientBulkWrite(c *call) (any, *result.Error) {
	models, err := c.documents("models")
	if err != nil {
		return nil, err
	}
	if len(models) == 0 {
		return nil, argument("there is nothing to write")
	}
	b, err := readClientBulk(models)
	if err != nil {
		return nil, err
	}
	ordered := !c.has("ordered") || c.flag("ordered")
	verbose := c.flag("verboseResults")
	name := "bulkWrite"
	if b.many {
		name = "bulkWrite with multi-document writes"
	}
	d := b.command(c, ordered, verbose)
	var cmd *command
	cmd = c.writing("bulkWrite", name, func(t target) (bson.D, error) {
		if t.wire < wire80 && cmd.silent() { // the server would refuse it, and not say so
			return nil, argument("the server is too old for bulkWrite")
		}
		return d, nil
	})
	if err := c.override(cmd); err != nil {
		return nil, err
	}
	if cmd.silent() {
		switch {
		case verbose:
			return nil, argument("Cannot request unacknowledged write concern and verbose results")
		case ordered:
			return nil, argument("Cannot request unacknowledged write concern and ordered writes")
		}
	}
	cmd.pin = true
	r, err := c.do(cmd)
	if err != nil && r.doc == nil {
		return nil, err
	}
	if cmd.silent() {
		return bson.D{}, nil
	}
	return b.outcome(c, r, verbose)
}

// outcome reads the reply and its cursor (Bulk Write, "Handling the bulkWrite
// Server Response").
func (b *clientBulk) outcome(c *call, r reply, verbose bool) (any, *result.Error) {
	var failure *result.Error
	if r.write != nil {
		e := *r.write.err
		e.Kind, e.WriteErrors, e.Code, e.HasCode, e.CodeName = "client bulk write", nil, 0, false, ""
		for i, w := range e.WriteConcernErrors {
			e.WriteConcernErrors[i] = described(w)
		}
		failure = &e
	}
	docs, err := c.iterate(r, cursorOptions{})
	if err != nil {
		failure = err
	}
	results := map[string]bson.D{"insert": {}, "update": {}, "delete": {}}
	for _, d := range docs {
		at, ok := integer(d.Lookup("idx"))
		if !ok || at < 0 || int(at) >= len(b.ops) {
			continue
		}
		if !okOf(d) {
			if failure == nil {
				failure = &result.Error{Kind: "client bulk write", Message: "some writes failed", Server: r.address, Response: r.doc}
			}
			if failure.WriteErrors == nil {
				failure.WriteErrors = map[int]bson.Raw{}
			}
			failure.WriteErrors[int(at)] = described(d)
			continue
		}
		if verbose {
			op := b.ops[at]
			results[op.group()] = append(results[op.group()], bson.E{Key: fmt.Sprint(at), Value: op.result(d)})
		}
	}
	count := func(field string) int64 { n, _ := integer(r.doc.Lookup(field)); return n }
	sum := bson.D{
		{Key: "insertedCount", Value: count("nInserted")}, {Key: "upsertedCount", Value: count("nUpserted")},
		{Key: "matchedCount", Value: count("nMatched")}, {Key: "modifiedCount", Value: count("nModified")},
		{Key: "deletedCount", Value: count("nDeleted")},
	}
	if verbose {
		sum = append(sum, bson.E{Key: "insertResults", Value: results["insert"]},
			bson.E{Key: "updateResults", Value: results["update"]}, bson.E{Key: "deleteResults", Value: results["delete"]})
	}
	if failure == nil {
		return sum, nil
	}
	if len(failure.WriteErrors) < len(b.ops) && !(c.orderedFirst(failure)) {
		if v, err := valueOf(sum); err == nil {
			failure.Partial = v
		}
	}
	return nil, failure
}

// orderedFirst tells that the very first of ordered writes failed: nothing was
// written then.
func (c *call) orderedFirst(e *result.Error) bool {
	_, first := e.WriteErrors[0]
	return first && (!c.has("ordered") || c.flag("ordered"))
}

// result gives the individual result of a write.
func (o bulkOp) result(d bson.Raw) bson.D {
	n, _ := integer(d.Lookup("n"))
	switch o.group() {
	case "insert":
		return bson.D{{Key: "insertedId", Value: o.id}}
	case "delete":
		return bson.D{{Key: "deletedCount", Value: n}}
	}
	modified, _ := integer(d.Lookup("nModified"))
	out := bson.D{{Key: "matchedCount", Value: n}, {Key: "modifiedCount", Value: modified}}
	if id, err := d.LookupErr("upserted", "_id"); err == nil {
		out = append(out, bson.E{Key: "upsertedId", Value: id})
	}
	return out
}

// described writes an error of the server as the specification names its
// fields: code, message, details.
func described(d bson.Raw) bson.Raw {
	out := bson.D{{Key: "code", Value: d.Lookup("code")}, {Key: "message", Value: d.Lookup("errmsg")}}
	if details, err := d.LookupErr("errInfo"); err == nil {
		out = append(out, bson.E{Key: "details", Value: details})
	}
	raw, err := bson.Marshal(out)
	if err != nil {
		return d
	}
	return raw
}
