package writes

import (
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// sequences are attempts that fail in different ways.
func sequences(operations []suites.Operation) *suites.File {
	const none = "NoWritesPerformed"
	f := &suites.File{
		Name:        "sequences",
		Description: "retryable writes: attempts that fail in different ways",
		About: []string{"Of all errors the last one is raised that does not say by the label " + none + " that nothing was written, or the",
			"first if all say so. The last error alone decides whether there is another attempt. Each attempt has a failure of its",
			"own, which needs a fail point of utr's embedded deployment."},
		Least:    "1.9",
		Require:  []string{suites.Sequences(every)},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient(), suites.Observed("timed", "{ timeoutMS: 20000 }")},
		Entities: append(objects("client", "collection"), objects("timed", "collection")...),
	}
	unreachable, notFound, exceeded := coded("HostUnreachable"), coded("HostNotFound"), coded("ExceededTimeLimit")
	data := suites.Labelled
	for _, o := range operations {
		if !slices.Contains([]string{"insertOne", "updateOne", "findOneAndUpdate", "bulkWrite", "clientBulkWrite"}, o.Name) ||
			slices.Contains([]string{"unordered", "with upsert"}, o.Variant) {
			continue // it does not depend on the operation
		}
		for _, s := range []struct {
			says, rule, by string
			fails          []string
			attempts       int
			raises         string
			applied        bool
		}{
			{"raises the error of the retry if the first one has the label " + none, "R20", "client",
				[]string{data(unreachable, label, none), data(notFound, label)}, 2, suites.RaisedLabels(notFound, label, none), false},
			{"raises the first error if the error of the retry has the label " + none, "R21", "client",
				[]string{data(unreachable, label), data(notFound, label, none)}, 2, suites.RaisedLabels(unreachable, label, none), false},
			{"raises the first error if both have the label " + none, "R21", "client",
				[]string{data(unreachable, label, none), data(notFound, label, none)}, 2, suites.RaisedLabels(unreachable, label+", "+none, ""), false},
			{"raises the first error if the error of the retry is not retryable and has the label " + none, "R21", "client",
				[]string{data(unreachable, label), data(interrupted, none)}, 2, suites.RaisedLabels(unreachable, label, none), false},
			{"raises the network error of the retry", "R20", "client",
				[]string{data(unreachable, label), suites.Closes}, 2, raisesNetwork, false},
			{"raises the first of three errors if the others have the label " + none + " within timeoutMS", "R21", "timed",
				[]string{data(unreachable, label), data(notFound, label, none), data(interrupted, none)}, 3, suites.RaisedLabels(unreachable, label, none), false},
			{"raises the second of three errors if the others have the label " + none + " within timeoutMS", "R20", "timed",
				[]string{data(unreachable, label, none), data(notFound, label), data(interrupted, none)}, 3, suites.RaisedLabels(notFound, label, none), false},
			{"raises the last of three errors if the others have the label " + none + " within timeoutMS", "R20", "timed",
				[]string{data(unreachable, label, none), data(notFound, label, none), data(interrupted)}, 3, suites.RaisedLabels(interrupted, "", label+", "+none), false},
			{"is retried after four different errors within timeoutMS", "R36", "timed",
				[]string{data(unreachable, label), suites.Closes, data(exceeded, label, none), data(notFound, label)}, 5, "", true},
			{"is written once if two replies are lost within timeoutMS", "W10", "timed",
				[]string{suites.LostReply, suites.LostReply}, 3, "", true},
			{"is written once if both replies are lost", "R35", "client",
				[]string{suites.LostReply, suites.LostReply}, 2, raisesNetwork, true},
			{"is not retried again after a lost reply and an error that is not retryable", "R34", "timed",
				[]string{suites.LostReply, data(interrupted)}, 2, suites.RaisedLabels(interrupted, "", label), true},
		} {
			failing := s.attempts
			if s.raises == "" {
				failing--
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule),
				Operations:  []string{suites.Sequence(o.Command, s.fails...), o.Call(s.by, "", s.raises)},
				Events:      []suites.Expected{{Client: s.by, Events: o.Attempts(s.attempts, failing, numbered)}},
				Outcome:     o.Outcome(s.applied),
			})
		}
		if o.Name == "bulkWrite" || o.Name == "clientBulkWrite" {
			continue // whose errors of write concerns drivers tell in other ways
		}
		// The prose test of errors with the label beside a write concern error.
		f.Add(suites.Test{
			Description: fmt.Sprintf("%s raises the write concern error if the error of the retry has the label %s (R21)", o.Title(), none),
			Operations: []string{suites.Sequence(o.Command, concern(91, "ShutdownInProgress", label), data(notFound, label, none)),
				o.Call("client", "", "{ isClientError: false, errorLabelsContain: [ "+label+" ], errorLabelsOmit: [ "+none+" ] }")},
			Events: []suites.Expected{{Client: "client", Events: append(o.Attempts(1, 0, numbered),
				suites.StartedEvent(suites.Merge(o.Started, numbered), o.Command, o.Database), suites.FailedEvent(o.Command))}},
			Outcome: o.Outcome(true),
		})
	}
	return f
}
