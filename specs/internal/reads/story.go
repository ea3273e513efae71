package reads

import "fmt"

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

const closes = "closeConnection: true"

func errorCode(c code) string { return fmt.Sprintf("errorCode: %d", c.number) }

// raisedCode expects a server error of that code.
func raisedCode(c code) string {
	return fmt.Sprintf("{ isClientError: false, errorCode: %d }", c.number)
}

const raisedNetwork = "{ isClientError: true }"

// stories are told of every operation.
func stories() []story {
	list := []story{{says: "succeeds at the first attempt", rule: "R6", attempts: 1}}
	list = append(list,
		story{says: "is retried after a network error", rule: "R10", fails: closes, times: 1, attempts: 2},
		story{says: "is not retried again after a second network error", rule: "R35", fails: closes, times: 2, attempts: 2, raises: raisedNetwork},
		story{says: "is not retried after a network error with retryReads false", rule: "R30", fails: closes, times: 1, attempts: 1, raises: raisedNetwork, noRetry: true},
	)
	for _, c := range retryable {
		list = append(list, story{says: "is retried after " + c.name, rule: "R11", fails: errorCode(c), times: 1, attempts: 2})
	}
	// A code that leaves the server known, and one that makes it unknown.
	for _, c := range []code{retryable[0], retryable[3]} {
		list = append(list,
			story{says: "is not retried again after a second " + c.name, rule: "R35", fails: errorCode(c), times: 2, attempts: 2, raises: raisedCode(c)},
			story{says: "is not retried after " + c.name + " with retryReads false", rule: "R30", fails: errorCode(c), times: 1, attempts: 1, raises: raisedCode(c), noRetry: true},
		)
	}
	for _, c := range others {
		list = append(list, story{says: "is not retried after " + c.name, rule: "R34", fails: errorCode(c), times: 1, attempts: 1, raises: raisedCode(c)})
	}
	return list
}
