package server

import (
	"slices"
	"strings"
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
		info = value.Append(info, name, value.FromRaw(given))
	}
	if len(info) > 0 {
		if err := commands.CheckDocument(r, "OperationSessionInfo", info); err != nil {
			return err
		}
	}
	r.LSID = value.DocAt(body, "lsid")
	number, hasNumber := body.Lookup("txnNumber").Int64OK()
	if hasNumber {
		r.TxnNumber = &number
	}
	_, r.InTransaction = body.Lookup("autocommit").BooleanOK()
	_, r.StartTransaction = body.Lookup("startTransaction").BooleanOK()
	if r.StartTransaction {
		r.TransactionLifetime = time.Duration(x.server.params.number(transactionLifetime)) * time.Second
	}
	return x.transactionFields()
}

// transactionFields rejects fields of retryable writes and transactions that contradict each other. A transaction has
// autocommit: false and a number, and begins with startTransaction: true. Commands that need no user know no sessions.
func (x *exchange) transactionFields() error {
	r, numbered := &x.request, x.request.TxnNumber != nil
	var p fault.First
	p.Refuse(x.row.BeforeAuth && r.InTransaction, fault.OperationNotSupportedInTransaction,
		"This command is not supported in transactions")
	p.Refuse(x.row.BeforeAuth && numbered, 50889, "It is illegal to provide a txnNumber for this command")
	p.Refuse(r.InTransaction && !numbered, fault.InvalidOptions,
		"'autocommit' field requires a transaction number to also be specified")
	p.Refuse(value.FlagAt(r.Body, "autocommit"), fault.InvalidOptions, "Specifying autocommit=true is not allowed.")
	p.Refuse(r.StartTransaction && !r.InTransaction, fault.InvalidOptions,
		"'startTransaction' field requires 'autocommit' field to also be specified")
	p.Refuse(r.StartTransaction && !value.FlagAt(r.Body, "startTransaction"), fault.InvalidOptions,
		"Specifying startTransaction=false is not allowed.")
	p.Refuse(numbered && r.LSID == nil, fault.InvalidOptions,
		"Transaction number requires a session ID to also be specified")
	p.Refuse(numbered && x.view.Role == commands.Standalone, fault.IllegalOperation,
		"Transaction numbers are only allowed on a replica set member or mongos")
	p.Refuse(numbered && *r.TxnNumber < 0, fault.InvalidOptions, "Transaction number cannot be negative")
	return p.Err
}

var sessionFields = []string{"lsid", "txnNumber", "autocommit", "startTransaction", "coordinator"}

// isLSID reports whether a session id is what clients send: a UUID in the field id.
func isLSID(lsid bson.Raw) bool {
	const head = "\x1e\x00\x00\x00\x05id\x00\x10\x00\x00\x00\x04"
	return len(lsid) == len(head)+16+1 && string(lsid[:len(head)]) == head
}

// transaction rejects what a transaction or a retryable write does not allow.
func (x *exchange) transaction() error {
	r, row, present := &x.request, x.row, x.view.Has.TransactionErrors
	var p fault.First
	if !r.InTransaction {
		p.Refuse(r.TxnNumber != nil && row.Name != "killSessions" && (!row.Retryable || present && row.EndsTransaction),
			fault.NotARetryableWriteCommand,
			"txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and %s is not a retryable write command.", row.Name)
		return p.Err
	}
	refuse := func(when bool, format string, args ...any) {
		p.Refuse(when, fault.OperationNotSupportedInTransaction, format, args...)
	}
	refuse(row.Name == "count", "Cannot run 'count' in a multi-document transaction. Please see http://dochub.mongodb.org/core/transaction-count for a recommended alternative.")
	refuse(!row.Transactional, "Cannot run '%s' in a multi-document transaction.", r.Name)
	refuse(r.DB == "config" && present, "Cannot run command against the config database in a transaction.")
	refuse(r.DB == "config" || r.DB == "local" || r.DB == "admin" && !row.AdminOnly && !present,
		"Cannot run command against the '%s' database in a transaction.", r.DB)
	refuse(strings.HasSuffix(x.namespace(), ".system.profile"),
		"Cannot run command against the '%s' collection in a transaction.", x.ns)
	refuse(r.StartTransaction && row.StartTransactionError != "", "%s", row.StartTransactionError)
	x.transactionConcerns(&p)
	return p.Err
}

// transactionConcerns rejects what a transaction does not allow in readConcern and writeConcern.
func (x *exchange) transactionConcerns(p *fault.First) {
	r, mongos := &x.request, x.view.isMongos()
	level := value.TextAt(r.Body, "readConcern", "level")
	single := r.StartTransaction && (level == "linearizable" || level == "available")
	p.Refuse(mongos && single, fault.InvalidOptions,
		"The first command in a transaction cannot specify a readConcern level other than local, majority, or snapshot")
	p.Refuse(single, fault.InvalidOptions,
		"The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction")
	p.Refuse(!mongos && !r.StartTransaction && r.HasDocument("readConcern") && x.row.Name != "getMore", fault.InvalidOptions,
		"Only the first command in a transaction may specify a readConcern")
	p.Refuse(!mongos && r.HasDocument("writeConcern") && !x.row.EndsTransaction && x.supportsConcern(), fault.InvalidOptions,
		"writeConcern is not allowed within a multi-statement transaction")
}

func (x *exchange) startSession() (bson.D, error) {
	return value.Doc("id", value.Doc("id", value.NewUUID()), "timeoutMinutes", int32(logicalSessionTimeout)), nil
}

// sessionList executes the commands whose argument is a list of sessions.
func (x *exchange) sessionList() (bson.D, error) {
	lsids := value.Documents(x.request.Body.Index(0).Value())
	switch x.row.Name {
	case "refreshSessions", "endSessions":
		// have no effect: sessions do not expire, and a server keeps those that ended for a while
	case "killSessions": // without a session it kills all
		x.killSessions(lsids)
	case "killAllSessionsByPattern": // patterns without a session are ignored: they kill all
		for i, pattern := range lsids {
			lsids[i] = value.DocAt(pattern, "lsid")
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
