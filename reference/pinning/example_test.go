package pinning_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/selection"
)

// In a request, a thread is pinned to the member that answered its first read.
func ExampleNext() {
	members := []selection.Server{
		{Address: "a:27017", Type: selection.RSPrimary},
		{Address: "b:27017", Type: selection.RSSecondary},
		{Address: "c:27017", Type: selection.RSSecondary},
	}
	thread := pinning.Thread{Rules: pinning.Named(pinning.Newest)}
	secondary := pinning.Preference{Preference: selection.Preference{Mode: selection.Secondary}}
	for _, input := range []pinning.Input{
		{Kind: pinning.StartRequest},
		{Kind: pinning.Read, Preference: secondary, Members: members, Random: 0.9},
		{Kind: pinning.Answered},
		{Kind: pinning.Read, Preference: secondary, Members: members, Random: 0.1},
	} {
		var d pinning.Decision
		thread, d = pinning.Next(thread, input)
		fmt.Printf("%s %q, pinned to %q\n", d.Action, d.Member, thread.Pinned)
	}
	// Output:
	// wait "", pinned to ""
	// send "c:27017", pinned to ""
	// return reply "", pinned to "c:27017"
	// send "c:27017", pinned to "c:27017"
}
