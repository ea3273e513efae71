package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// failConcern adds a write concern error. Only write concerns that no member could ever satisfy fail here, because all
// members share their data. mongod reports the details in a document; mongos adds them to the message, because it
// copies the message of its shard.
func (x *exchange) failConcern(code int32, message string, concern bson.Raw, w string) {
	var details bson.D
	if x.view.Role == commands.Mongos {
		message += "; Error details: { writeConcern: { w: " + w + ", wtimeout: 0, provenance: \"clientSupplied\" } } at " + ShardName
	} else {
		j, noJ := concern.LookupErr("j")
		timeout, _ := concern.Lookup("wtimeout").AsInt64OK()
		given := value.AddIf(bson.D{{Key: "w", Value: concern.Lookup("w")}}, noJ == nil, "j", j)
		given = append(given,
			bson.E{Key: "wtimeout", Value: int32(timeout)}, bson.E{Key: "provenance", Value: "clientSupplied"})
		details = bson.D{{Key: "errInfo", Value: bson.D{{Key: "writeConcern", Value: given}}}}
	}
	x.concern = code
	x.writeConcernError = slices.Concat(x.codeFields(code), bson.D{{Key: "errmsg", Value: message}}, details)
}

// unknownField returns the first unknown field of a concern, "" if all are known.
func unknownField(concern bson.Raw, known []string) string {
	elements, _ := concern.Elements() // a validated document cannot cause an error
	for _, e := range elements {
		if !slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, e.Key()) }) {
			return e.Key()
		}
	}
	return ""
}

const maxW = 50 // maximum number of members of a replica set

// readWriteConcern checks readConcern and writeConcern, and whether the write concern can be satisfied.
func (x *exchange) readWriteConcern() error {
	if err := x.readConcern(); err != nil {
		return err
	}
	concern, err := x.document("writeConcern")
	if concern == nil || err != nil {
		return err
	}
	if !x.row.WriteConcern && (!x.row.Write || x.row.NoWriteConcern) {
		return fault.Errorf(fault.InvalidOptions, "Command does not support writeConcern")
	}
	if name := unknownField(concern, writeConcernFields); name != "" {
		return fault.Errorf(fault.FailedToParse, "unrecognized write concern field: %s", name)
	}
	w, err := concern.LookupErr("w")
	if err != nil {
		return nil
	}
	if name, ok := w.StringValueOK(); ok {
		return x.namedConcern(concern, name)
	}
	n, ok := w.AsInt64OK()
	if !ok {
		if _, tags := w.DocumentOK(); tags {
			return nil
		}
		return fault.Errorf(fault.FailedToParse, "w has to be a number, string, or object")
	}
	switch {
	case n < 0 || n > maxW:
		return fault.Errorf(fault.FailedToParse, "w has to be a non-negative number and not greater than %d", maxW)
	case n > 1 && x.view.Role == commands.Standalone:
		return fault.Errorf(fault.BadValue, "cannot use 'w' > 1 when a host is not replicated")
	case x.view.isMember() && int(n) > x.view.set.dataBearing(), x.view.Role == commands.Mongos && n > shardMembers:
		x.failConcern(fault.UnsatisfiableWriteConcern, "Not enough data-bearing nodes", concern, fmt.Sprint(n))
	}
	x.unacknowledged = n == 0
	return nil
}

var (
	writeConcernFields = []string{"w", "j", "wtimeout", "fsync", "provenance", "getLastError", "wElectionId", "wOpTime"}
	readConcernFields  = []string{"level", "afterOpTime", "afterClusterTime", "atClusterTime", "provenance",
		"$_allowTransactionTableSnapshot", "$_waitLastStableRecoveryTimestamp"}
)

// readConcern checks the level and afterClusterTime. The backend applies them.
func (x *exchange) readConcern() error {
	concern, ok := x.request.Body.Lookup("readConcern").DocumentOK()
	if !ok {
		return nil
	}
	if name := unknownField(concern, readConcernFields); name != "" {
		return fault.Errorf(fault.InvalidOptions, "Unrecognized option in readConcern: %s", name)
	}
	level, ok := concern.Lookup("level").StringValueOK()
	if ok && !slices.Contains(commands.ReadConcernLevels, level) {
		x.noTimes = x.view.Role == commands.Mongos // it fails before it knows the time
		return fault.Errorf(fault.FailedToParse,
			"readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
	}
	if ok && !slices.Contains(x.readLevels(), level) {
		return fault.Errorf(fault.InvalidOptions, "Command %s does not support { readConcern: { level: \"%s\", "+
			"provenance: \"clientSupplied\" } } :: caused by :: read concern not supported", x.request.Name, level)
	}
	after := concern.Lookup("afterClusterTime")
	if x.row.NoAfterClusterTime && !after.IsZero() {
		return fault.Errorf(fault.InvalidOptions, "afterClusterTime is not allowed for this command")
	}
	t, i, ok := after.TimestampOK()
	wanted, now := bson.Timestamp{T: t, I: i}, x.conn.server.clusterTime(bson.Timestamp{})
	if ok && x.view.Role != commands.Standalone && wanted.After(now) {
		return fault.Errorf(fault.InvalidOptions, "readConcern afterClusterTime value must not be greater than the current clusterTime. "+
			"Requested clusterTime: { ts: Timestamp(%d, %d) }; current clusterTime: { ts: Timestamp(%d, %d) }", wanted.T, wanted.I, now.T, now.I)
	}
	return nil
}

// readLevels returns the levels of readConcern that the command accepts: in a transaction all, except for create and
// createIndexes.
func (x *exchange) readLevels() []string {
	auto, ok := x.request.Body.Lookup("autocommit").BooleanOK()
	switch {
	case ok && !auto && x.row.Name != "create" && x.row.Name != "createIndexes":
		return commands.ReadConcernLevels
	case x.row.ReadConcern != nil:
		return x.row.ReadConcern
	}
	return commands.ReadConcernLevels[:1]
}

// namedConcern checks a write concern mode: majority, or a mode that the replica set's configuration would have to
// define. Configurations here never define modes.
func (x *exchange) namedConcern(concern bson.Raw, name string) error {
	switch {
	case name == "majority":
		return nil
	case x.view.Role == commands.Standalone:
		return fault.Errorf(fault.BadValue, "cannot use non-majority 'w' mode %s when a host is not a member of a replica set", name)
	}
	message := "No write concern mode named '" + name + "' found in replica set configuration"
	x.failConcern(fault.UnknownReplWriteConcern, message, concern, strconv.Quote(name))
	return nil
}
