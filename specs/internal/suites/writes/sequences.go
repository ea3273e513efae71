package writes

import (
	"slices"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// sequences are attempts that fail in different ways.
func sequences(operations []operation) *suites.File {
	const none = suites.NoWritesPerformed
	f := suites.NewFile("sequences", "attempts that fail in different ways", suites.Sequences(suites.Retrying),
		"Of all errors the last one is raised that does not say by the label "+none+" that nothing was written, or the",
		"first if all say so. The last error alone decides whether there is another attempt. Each attempt has a failure of its",
		"own, which needs a fail point of utr's embedded deployment.")
	f.Clients = []suites.Client{suites.Observed("client", ""), suites.Observed("timed", "timeoutMS: 20000")}
	unreachable, notFound, exceeded, interrupted := suites.HostUnreachable, suites.HostNotFound, suites.ExceededTimeLimit, suites.Interrupted
	data, raises, lost := suites.Labelled, suites.RaisedLabels, suites.LostReply
	list := []story{
		{Says: "raises the error of the retry if the first one has the label " + none + " (R20)", Attempts: 2,
			Each: []string{data(unreachable, label, none), data(notFound, label)}, Raises: raises(notFound, label, none)},
		{Says: "raises the first error if the error of the retry has the label " + none + " (R21)", Attempts: 2,
			Each: []string{data(unreachable, label), data(notFound, label, none)}, Raises: raises(unreachable, label, none)},
		{Says: "raises the first error if both have the label " + none + " (R21)", Attempts: 2,
			Each: []string{data(unreachable, label, none), data(notFound, label, none)}, Raises: raises(unreachable, label+", "+none, "")},
		{Says: "raises the first error if the error of the retry is not retryable and has the label " + none + " (R21)", Attempts: 2,
			Each: []string{data(unreachable, label), data(interrupted, none)}, Raises: raises(unreachable, label, none)},
		{Says: "raises the network error of the retry (R20)", Attempts: 2, Each: []string{data(unreachable, label), suites.Closes},
			Raises: raisesNetwork},
		{Says: "raises the first of three errors if the others have the label " + none + " within timeoutMS (R21)", By: "timed", Attempts: 3,
			Each: []string{data(unreachable, label), data(notFound, label, none), data(interrupted, none)}, Raises: raises(unreachable, label, none)},
		{Says: "raises the second of three errors if the others have the label " + none + " within timeoutMS (R20)", By: "timed", Attempts: 3,
			Each: []string{data(unreachable, label, none), data(notFound, label), data(interrupted, none)}, Raises: raises(notFound, label, none)},
		{Says: "raises the last of three errors if the others have the label " + none + " within timeoutMS (R20)", By: "timed", Attempts: 3,
			Each:   []string{data(unreachable, label, none), data(notFound, label, none), data(interrupted)},
			Raises: raises(interrupted, "", label+", "+none)},
		{Says: "is retried after four different errors within timeoutMS (R36)", By: "timed", Attempts: 5,
			Each: []string{data(unreachable, label), suites.Closes, data(exceeded, label, none), data(notFound, label)}},
		{Says: "is written once if two replies are lost within timeoutMS (W10)", By: "timed", Attempts: 3, Each: []string{lost, lost}},
		{Says: "is written once if both replies are lost (R35)", Attempts: 2, Each: []string{lost, lost}, Raises: raisesNetwork, Applied: true},
		{Says: "is not retried again after a lost reply and an error that is not retryable (R34)", By: "timed", Attempts: 2,
			Each: []string{lost, data(interrupted)}, Raises: raisesPlain(interrupted), Applied: true},
	}
	for _, o := range operations {
		if !slices.Contains([]string{"insertOne", "updateOne", "findOneAndUpdate", "bulkWrite", "clientBulkWrite"}, o.Name) ||
			slices.Contains([]string{"unordered", "with upsert"}, o.Variant) {
			continue // it does not depend on the operation
		}
		f.Tell(o, list...)
		if o.Name == "bulkWrite" || o.Name == "clientBulkWrite" {
			continue // drivers report errors of their write concerns in different ways
		}
		// The prose test of errors with the label beside a write concern error.
		f.Tell(o, story{Says: "raises the write concern error if the error of the retry has the label " + none + " (R21)",
			Each:   []string{suites.LabelledConcern(label), data(notFound, label, none)},
			Raises: suites.WithLabels("{ isClientError: false }", label, none), Seen: o.Attempts(1, 0, numbered), Attempts: 1, Applied: true})
	}
	return f
}
