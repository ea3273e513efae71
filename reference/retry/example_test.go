package retry_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/reference/retry"
)

// A read that fails with a network error is retried once. The caller selects the server and sends the command; Next
// decides.
func ExampleNext() {
	policy, err := retry.Named("")
	if err != nil {
		panic(err)
	}
	state := retry.Start(policy, retry.Settings{Operation: retry.Lookup("find"), RetryReads: true})
	server := retry.Chosen{Address: "a:27017", Wire: 25, RetryableWrites: true}
	for _, input := range []retry.Input{
		{Kind: retry.Begin},
		{Kind: retry.Selected, Chosen: server},
		{Kind: retry.Failed, Failure: retry.Failure{Kind: retry.Network, Server: server.Address}},
		{Kind: retry.Selected, Chosen: server},
		{Kind: retry.Succeeded},
	} {
		var d retry.Decision
		state, d = retry.Next(state, input)
		fmt.Println(d.Attempt, d.Action, d.Deprioritized, d.Rules.IDs(), d.Reason)
	}
	// Output:
	// 1 select [] [R1] first attempt
	// 1 send [] [R5] a server is selected
	// 2 select [] [R10 R22 R50] the error is retryable
	// 2 send [] [R5] a server is selected
	// 2 return result [] [R6] the attempt succeeded
}
