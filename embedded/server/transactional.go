package server

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// TransactionalWrite is the fail point onPrimaryTransactionalWrite, which
// strikes when a retryable write is about to commit: the write is kept and the
// connection closed, or with failBeforeCommitExceptionCode the write fails and
// is not kept. closeConnection: false leaves the connection open.
func TransactionalWrite(r *command.Request) error {
	if r.FailPoint == nil {
		return nil
	}
	data, hit := r.FailPoint(failpoint.OnPrimaryTransactionalWrite)
	if !hit {
		return nil
	}
	closes, told := data.Lookup("closeConnection").BooleanOK()
	closes = closes || !told
	code, fails := data.Lookup("failBeforeCommitExceptionCode").AsInt64OK()
	switch {
	case fails && closes:
		return command.ErrClose
	case fails:
		return refuse(int32(code), "Failing write for %s:%d due to failpoint. The write must not be reflected.",
			bson.Raw(r.LSID).String(), *r.TxnNumber)
	case closes:
		r.CloseAfter = true
	}
	return nil
}
