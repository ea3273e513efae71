package server

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// session reads lsid and the fields of retryable writes and transactions.
func (x *exchange) session() error {
	body, r := x.request.Body, &x.request
	var info bson.D
	for i, name := range sessionFields {
		given, err := body.LookupErr(name)
		if lsid, ok := given.DocumentOK(); err != nil || i == 0 && ok && isLSID(lsid) {
			continue
		}
		v, _ := value.FromRaw(given)
		info = append(info, bson.E{Key: name, Value: v})
	}
	if len(info) > 0 {
		if err := commands.CheckDocument(r, "OperationSessionInfo", info); err != nil {
			return err
		}
	}
	r.LSID, _ = body.Lookup("lsid").DocumentOK()
	number, hasNumber := body.Lookup("txnNumber").Int64OK()
	auto, hasAuto := body.Lookup("autocommit").BooleanOK()
	begin, hasBegin := body.Lookup("startTransaction").BooleanOK()
	switch { // commands that need no user know no sessions
	case !x.row.BeforeAuth:
	case hasAuto:
		return fault.Errorf(fault.OperationNotSupportedInTransaction, "This command is not supported in transactions")
	case hasNumber:
		return fault.Errorf(50889, "It is illegal to provide a txnNumber for this command")
	}
	switch { // a transaction has autocommit: false and a number, and begins with startTransaction: true
	case hasAuto && !hasNumber:
		return fault.Errorf(fault.InvalidOptions, "'autocommit' field requires a transaction number to also be specified")
	case hasAuto && auto:
		return fault.Errorf(fault.InvalidOptions, "Specifying autocommit=true is not allowed.")
	case hasBegin && !hasAuto:
		return fault.Errorf(fault.InvalidOptions, "'startTransaction' field requires 'autocommit' field to also be specified")
	case hasBegin && !begin:
		return fault.Errorf(fault.InvalidOptions, "Specifying startTransaction=false is not allowed.")
	case !hasNumber:
		return nil
	case r.LSID == nil:
		return fault.Errorf(fault.InvalidOptions, "Transaction number requires a session ID to also be specified")
	case x.view.Role == commands.Standalone:
		return fault.Errorf(fault.IllegalOperation, "Transaction numbers are only allowed on a replica set member or mongos")
	case number < 0:
		return fault.Errorf(fault.InvalidOptions, "Transaction number cannot be negative")
	}
	r.TxnNumber, r.InTransaction, r.StartTransaction = &number, hasAuto, hasBegin
	if hasBegin {
		r.TransactionLifetime = time.Duration(x.conn.server.params.number(transactionLifetime)) * time.Second
	}
	return nil
}

var sessionFields = []string{"lsid", "txnNumber", "autocommit", "startTransaction"}

// isLSID reports whether a session id is what clients send: a UUID in the field id.
func isLSID(lsid bson.Raw) bool {
	const head = "\x1e\x00\x00\x00\x05id\x00\x10\x00\x00\x00\x04"
	return len(lsid) == len(head)+16+1 && string(lsid[:len(head)]) == head
}

// transaction rejects what a transaction does not allow.
func (x *exchange) transaction() error {
	r := &x.request
	if !r.InTransaction {
		return nil
	}
	level, _ := r.Body.Lookup("readConcern", "level").StringValueOK()
	single := r.StartTransaction && (level == "linearizable" || level == "available")
	switch concern, _ := r.Body.Lookup("readConcern").DocumentOK(); {
	case x.view.Role == commands.Mongos && single:
		return fault.Errorf(fault.InvalidOptions, "The first command in a transaction cannot specify a readConcern level other than local, majority, or snapshot")
	case x.view.Role == commands.Mongos:
	case single:
		return fault.Errorf(fault.InvalidOptions, "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction")
	case !r.StartTransaction && len(concern) > emptyDocument && x.row.Name != "getMore":
		return fault.Errorf(fault.InvalidOptions, "Only the first command in a transaction may specify a readConcern")
	}
	if concern, _ := r.Body.Lookup("writeConcern").DocumentOK(); len(concern) > emptyDocument && !x.row.EndsTransaction && x.view.Role != commands.Mongos {
		return fault.Errorf(fault.InvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	}
	if r.StartTransaction && x.row.StartTransactionError != "" {
		return fault.Errorf(fault.OperationNotSupportedInTransaction, "%s", x.row.StartTransactionError)
	}
	if x.row.NoTransaction {
		return fault.Errorf(fault.OperationNotSupportedInTransaction, "Cannot run '%s' in a multi-document transaction.", r.Name)
	}
	return nil
}

func (x *exchange) endsTransaction() bool { return x.row != nil && x.row.EndsTransaction }

func (x *exchange) startSession() (bson.D, error) {
	return bson.D{
		{Key: "id", Value: bson.D{{Key: "id", Value: value.NewUUID()}}},
		{Key: "timeoutMinutes", Value: int32(logicalSessionTimeout)},
	}, nil
}

// sessionList executes the commands whose argument is a list of sessions.
func (x *exchange) sessionList() (bson.D, error) {
	var lsids []bson.Raw
	for _, v := range value.Elements(x.request.Body.Index(0).Value()) {
		doc, _ := v.DocumentOK()
		lsids = append(lsids, doc)
	}
	switch backend := x.conn.server.cluster.Backend; x.row.Name {
	case "refreshSessions": // has no effect, because sessions do not expire here
	case "endSessions":
		backend.EndSessions(lsids)
	case "killSessions": // without a session it kills all
		x.killSessions(lsids)
	case "killAllSessionsByPattern": // patterns without a session are ignored: they kill all
		for i, pattern := range lsids {
			lsids[i], _ = pattern.Lookup("lsid").DocumentOK()
		}
		x.killSessions(slices.DeleteFunc(lsids, func(lsid bson.Raw) bool { return lsid == nil }))
	case "killAllSessions": // the sessions of all users, because a list with a user that exists means the same here
		for _, user := range lsids {
			if err := x.knownUser(user); err != nil {
				return nil, err
			}
		}
		x.killSessions(nil)
	}
	return nil, nil
}
