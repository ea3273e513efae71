package server

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
)

// awaitReplication waits until enough members acknowledge what the command has written, or until wtimeout. All members
// share their data, and acknowledge at once unless the fail point stopReplProducer stops one.
func (x *exchange) awaitReplication() {
	concern, _ := x.request.Body.Lookup("writeConcern").DocumentOK()
	if concern == nil || !x.view.isMember() || x.request.InTransaction && !x.row.EndsTransaction {
		return
	}
	var timeout <-chan time.Time
	if ms, _ := concern.Lookup("wtimeout").AsInt64OK(); ms > 0 {
		timeout = time.After(time.Duration(ms) * time.Millisecond)
	}
	for {
		missing, changed := x.missing(concern.Lookup("w"))
		if missing <= 0 || !x.triedToWrite() {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			x.unsatisfied = &unsatisfied{fault.WriteConcernTimeout, "waiting for replication timed out", concern, true}
			return
		case <-x.request.Context.Done():
			return
		}
	}
}

// missing returns how many acknowledgements are missing for a w, and a channel that is closed when a stopped member
// continues.
func (x *exchange) missing(w bson.RawValue) (n int, changed <-chan struct{}) {
	data := x.view.set.dataBearing()
	needed, isNumber := w.AsInt64OK()
	if name, _ := w.StringValueOK(); name == "majority" {
		needed, isNumber = int64(data/2+1), true
	}
	for _, s := range x.server.cluster.Members() {
		on, next := s.failPoints.On(failpoint.StopReplProducer)
		if on && s.view().Role == commands.Secondary {
			data, changed = data-1, next
		}
	}
	if !isNumber || changed == nil { // all acknowledge, or a custom mode
		return 0, nil
	}
	return int(needed) - data, changed
}
