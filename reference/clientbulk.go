package reference

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

// kindClientBulk is the kind of write errors of clientBulkWrite.
const kindClientBulk = "client bulk write"

// clientBulk is the state of a clientBulkWrite.
type clientBulk struct {
	*call
	counts
	ordered, verbose, silent bool
	results                  map[string]bson.D // by group
	wrote                    bool              // a write succeeded, so there is a partial result
}

func clientBulkWrite(c *call) (any, *result.Error) {
	models, err := c.Models("models")
	if err != nil {
		return nil, err
	}
	writes, err := readWrites("clientBulkWrite", models)
	if err != nil {
		return nil, err
	}
	b := &clientBulk{call: c, ordered: c.ordered(), verbose: c.Flag("verboseResults"),
		results: map[string]bson.D{"insert": {}, "update": {}, "delete": {}}}
	failure := c.write(writes, b.ordered, func(batch *batch) (bool, *result.Error) {
		r, err := b.send(batch)
		if err != nil && r.doc == nil || b.silent {
			return err != nil, err
		}
		return b.read(batch, r, err)
	})
	return b.end(failure)
}

func (b *clientBulk) send(batch *batch) (reply, *result.Error) {
	cmd := b.writing("bulkWrite", nil)
	d := document("bulkWrite", int32(1), "errorsOnly", !b.verbose, "ordered", b.ordered)
	d = b.copyArgs(d, "bypassDocumentValidation", "comment", "let", "rawData")
	err := batch.fit(cmd, d, func() bson.D {
		name := "bulkWrite"
		if batch.many() {
			name = "bulkWrite with multi-document writes"
		}
		namespaces := bson.A{}
		for _, n := range batch.namespaces {
			namespaces = append(namespaces, document("ns", n))
		}
		cmd.op = retry.Lookup(name)
		return document("ops", batch.statements(), "nsInfo", namespaces)
	})
	if err != nil {
		return reply{}, err
	}
	cmd.adapt = func(a *attempt) (bson.D, error) {
		if a.wire < wire80 && a.silent { // the server would not return its error
			return nil, argument("the server is too old for bulkWrite")
		}
		return nil, nil
	}
	if err := b.override(cmd); err != nil {
		return reply{}, err
	}
	b.silent = cmd.silent()
	switch {
	case b.silent && b.verbose:
		return reply{}, argument("Cannot request unacknowledged write concern and verbose results")
	case b.silent && b.ordered:
		return reply{}, argument("Cannot request unacknowledged write concern and ordered writes")
	}
	cmd.pin = true
	return b.client.execute(b.ctx, cmd, &b.trace)
}

// read reads a reply with ok 1, its write concern error if it has one, and its cursor (Bulk Write, "Handling the
// bulkWrite Server Response"). If the cursor fails, that interrupts the bulk write, and the error of the cursor is
// merged with the errors read before ("Top-Level Errors").
func (b *clientBulk) read(batch *batch, r reply, concern *result.Error) (interrupts bool, failure *result.Error) {
	if concern != nil {
		e := *concern
		e.Kind, e.WriteErrors, e.Code, e.CodeName = kindClientBulk, nil, 0, ""
		for i, w := range e.WriteConcernErrors {
			e.WriteConcernErrors[i] = result.Document(described(bson.Raw(w)))
		}
		failure = &e
	}
	for field, sum := range map[string]*int64{"nInserted": &b.inserted, "nUpserted": &b.upserted, "nMatched": &b.matched,
		"nModified": &b.modified, "nDeleted": &b.deleted} {
		n, _ := enginekit.Integer(r.doc.Lookup(field))
		*sum += n
	}
	n, _ := enginekit.Integer(r.doc.Lookup("nErrors"))
	b.wrote = b.wrote || n == 0 || !b.ordered && int(n) < len(batch.writes)
	k, top := b.openCursor(r, cursorOptions{lifetime: true})
	var docs []bson.Raw
	if top == nil {
		docs, top = k.all(b.base, &b.trace)
	}
	for _, d := range docs {
		failure = b.readResult(batch, r, d, failure)
	}
	if top != nil {
		return true, mergeErrors(failure, top)
	}
	return r.interrupts, failure
}

// readResult reads the result of one write, and adds an error to failure. failure may be nil.
func (b *clientBulk) readResult(batch *batch, r reply, d bson.Raw, failure *result.Error) *result.Error {
	at, ok := enginekit.Integer(d.Lookup("idx"))
	if !ok || at < 0 || int(at) >= len(batch.writes) {
		return failure
	}
	w, place := batch.writes[at], batch.places[at]
	if okOf(d) {
		b.wrote = true
		if b.verbose {
			b.results[w.group] = append(b.results[w.group], bson.E{Key: fmt.Sprint(place), Value: w.result(d)})
		}
		return failure
	}
	b.wrote = b.wrote || b.ordered && at > 0
	if failure == nil {
		failure = &result.Error{Kind: kindClientBulk, Message: "some writes failed", Server: r.address,
			Response: result.Document(r.doc)}
	}
	enginekit.AddWriteError(failure, place, described(d))
	failure.Timeout = failure.Timeout || b.timeout && outOfTime(failure)
	return failure
}

// end returns the result, or the error with the partial result.
func (b *clientBulk) end(failure *result.Error) (any, *result.Error) {
	sum := b.counts.document()
	if b.verbose {
		sum = append(sum, document("insertResults", b.results["insert"], "updateResults", b.results["update"],
			"deleteResults", b.results["delete"])...)
	}
	switch {
	case failure == nil && b.silent:
		return bson.D{}, nil
	case failure == nil:
		return sum, nil
	}
	if b.wrote {
		return nil, withPartial(failure, sum)
	}
	return nil, failure
}

// result returns the verbose result of a write.
func (w *write) result(d bson.Raw) bson.D {
	n, _ := enginekit.Integer(d.Lookup("n"))
	switch w.group {
	case "insert":
		return document("insertedId", w.id)
	case "delete":
		return document("deletedCount", n)
	}
	modified, _ := enginekit.Integer(d.Lookup("nModified"))
	id, err := d.LookupErr("upserted", "_id")
	return addIf(document("matchedCount", n, "modifiedCount", modified), err == nil, "upsertedId", id)
}

// described converts a server error to the fields of the specification: code, message, details.
func described(d bson.Raw) bson.Raw {
	details, _ := d.Lookup("errInfo").DocumentOK()
	return enginekit.WriteErrorDocument(d.Lookup("code"), d.Lookup("errmsg"), details)
}
