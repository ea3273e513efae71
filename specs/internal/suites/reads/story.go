package reads

import "github.com/unified-test-runner/utr/specs/internal/suites"

// story is what can happen to an operation: which attempts fail, how, and what
// must be seen of it.
type story struct {
	says     string // what the description says after the operation's name
	rule     string // of reference/retry
	fails    string // data of the fail point beside failCommands; "" for none
	times    int    // attempts that fail
	attempts int
	raises   string // flow YAML of expectError; "" for a success
	noRetry  bool   // by the client with retryReads false
}

// stories are told of every operation.
func stories() []story {
	list := []story{{says: "succeeds at the first attempt", rule: "R6", attempts: 1}}
	list = append(list,
		story{says: "is retried after a network error", rule: "R10", fails: suites.Closes, times: 1, attempts: 2},
		story{says: "is not retried again after a second network error", rule: "R35", fails: suites.Closes, times: 2, attempts: 2, raises: suites.RaisedNetwork},
		story{says: "is not retried after a network error with retryReads false", rule: "R30", fails: suites.Closes, times: 1, attempts: 1, raises: suites.RaisedNetwork, noRetry: true},
	)
	for _, c := range retryable {
		list = append(list, story{says: "is retried after " + c.Name, rule: "R11", fails: suites.ErrorCode(c), times: 1, attempts: 2})
	}
	// A code that leaves the server known, and one that makes it unknown.
	for _, c := range []suites.Code{retryable[0], retryable[3]} {
		list = append(list,
			story{says: "is not retried again after a second " + c.Name, rule: "R35", fails: suites.ErrorCode(c), times: 2, attempts: 2, raises: suites.RaisedCode(c)},
			story{says: "is not retried after " + c.Name + " with retryReads false", rule: "R30", fails: suites.ErrorCode(c), times: 1, attempts: 1, raises: suites.RaisedCode(c), noRetry: true},
		)
	}
	for _, c := range others {
		list = append(list, story{says: "is not retried after " + c.Name, rule: "R34", fails: suites.ErrorCode(c), times: 1, attempts: 1, raises: suites.RaisedCode(c)})
	}
	return list
}
