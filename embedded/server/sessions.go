package server

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// session reads lsid and the fields of retryable writes and transactions.
func (x *exchange) session() error {
	body, r := x.request.Body, &x.request
	if value, err := body.LookupErr("lsid"); err == nil {
		lsid, ok := value.DocumentOK()
		if !ok {
			return wrongType("OperationSessionInfo.lsid", value, "object")
		}
		id, err := lsid.LookupErr("id")
		if err != nil {
			return command.Errorf(command.CodeIDLFailedToParse, "BSON field 'OperationSessionInfo.lsid.id' is missing but a required field")
		}
		subtype, data, ok := id.BinaryOK()
		if !ok {
			return wrongType("OperationSessionInfo.lsid.id", id, "binData")
		}
		if subtype != bson.TypeBinaryUUID || len(data) != 16 {
			return command.Errorf(command.CodeTypeMismatch,
				"BSON field 'OperationSessionInfo.lsid.id' is the wrong binData type, expected type 'UUID'")
		}
		r.LSID = lsid
	}
	value, err := body.LookupErr("txnNumber")
	number, isLong := value.Int64OK()
	hasNumber := err == nil
	auto, hasAuto := body.Lookup("autocommit").BooleanOK()
	begin, hasBegin := body.Lookup("startTransaction").BooleanOK()
	switch { // a transaction has autocommit: false and a number, and begins with startTransaction: true
	case hasNumber && !isLong:
		return wrongType("OperationSessionInfo.txnNumber", value, "long")
	case hasAuto && !hasNumber:
		return command.Errorf(command.CodeInvalidOptions, "'autocommit' field requires a transaction number to also be specified")
	case hasAuto && auto:
		return command.Errorf(command.CodeInvalidOptions, "Specifying autocommit=true is not allowed.")
	case hasBegin && !hasAuto:
		return command.Errorf(command.CodeInvalidOptions, "'startTransaction' field requires 'autocommit' field to also be specified")
	case hasBegin && !begin:
		return command.Errorf(command.CodeInvalidOptions, "Specifying startTransaction=false is not allowed.")
	case !hasNumber:
		return nil
	case r.LSID == nil:
		return command.Errorf(command.CodeInvalidOptions, "Transaction number requires a session ID to also be specified")
	case x.view.Role == command.Standalone:
		return command.Errorf(command.CodeIllegalOperation, "Transaction numbers are only allowed on a replica set member or mongos")
	case number < 0:
		return command.Errorf(command.CodeInvalidOptions, "Transaction number cannot be negative")
	}
	r.TxnNumber, r.InTransaction, r.StartTransaction = &number, hasAuto, hasBegin
	if hasBegin {
		r.TransactionLifetime = time.Duration(x.conn.server.params.number(transactionLifetime)) * time.Second
	}
	return nil
}

// transaction rejects what a transaction does not allow.
func (x *exchange) transaction() error {
	r := &x.request
	if !r.InTransaction {
		return nil
	}
	if _, err := r.Body.LookupErr("writeConcern"); err == nil && !x.row.EndsTransaction && x.view.Role != command.Mongos {
		return command.Errorf(command.CodeInvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	}
	if r.StartTransaction && x.row.StartTransactionError != "" {
		return command.Errorf(command.CodeOperationNotSupportedInTransaction, "%s", x.row.StartTransactionError)
	}
	if x.row.NoTransaction {
		return command.Errorf(command.CodeOperationNotSupportedInTransaction, "Cannot run '%s' in a multi-document transaction.", r.Name)
	}
	return nil
}

func (x *exchange) endsTransaction() bool { return x.row != nil && x.row.EndsTransaction }

func (x *exchange) startSession() (bson.D, error) {
	return bson.D{
		{Key: "id", Value: bson.D{{Key: "id", Value: command.NewUUID()}}},
		{Key: "timeoutMinutes", Value: int32(logicalSessionTimeout)},
	}, nil
}

// lsids returns the session ids of a command.
func (x *exchange) lsids() ([]bson.Raw, error) {
	value := x.request.Body.Index(0).Value()
	if value.Type != bson.TypeArray {
		return nil, wrongType(x.row.Name+"FromClient."+x.row.Name, value, "array")
	}
	var out []bson.Raw
	for _, v := range command.Elements(value) {
		doc, ok := v.DocumentOK()
		if !ok {
			return nil, wrongType(x.row.Name+"FromClient."+x.row.Name, v, "object")
		}
		out = append(out, doc)
	}
	return out, nil
}

// sessionList executes refreshSessions. It only checks the argument, because sessions do not expire here.
func (x *exchange) sessionList() (bson.D, error) {
	_, err := x.lsids()
	return nil, err
}

func (x *exchange) endSessions() (bson.D, error) {
	ids, err := x.lsids()
	if err == nil && len(ids) > 0 {
		x.conn.server.cluster.Backend.EndSessions(ids)
	}
	return nil, err
}

// killSessions executes killSessions, for which an empty list means all sessions, and killAllSessions, whose users are
// ignored.
func (x *exchange) killSessions() (bson.D, error) {
	ids, err := x.lsids()
	if err != nil {
		return nil, err
	}
	if x.row.Name != "killSessions" || len(ids) == 0 {
		ids = nil
	}
	x.conn.server.cluster.Backend.KillSessions(ids)
	return nil, nil
}
