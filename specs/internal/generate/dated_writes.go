package main

// writesOf2018 returns the suites of the policy retryable-writes@2018-03-14: codes and messages make an error
// retryable, labels do not; there is one retry, even with timeoutMS; retryWrites defaults to false; reads,
// commits and aborts are not retried.
func writesOf2018() Specification {
	var files []*File
	for _, o := range writeOperations(database2018) {
		stories := storiesOf2018()
		if o.Name == "clientBulkWrite" {
			stories = []Story{
				NotRetried("a network error (W33)", Closes, RaisedNetwork).But("bulkWrite is a supported write"),
				NotRetried("HostUnreachable (W33)", ErrorCode(HostUnreachable), RaisedCode(HostUnreachable)).On(Servers("4.4", Sets)).
					But("bulkWrite is a supported write"),
			}
		}
		f := Of(o, retrying, []Client{Observed("client", "retryWrites: true"), Observed("default", ""),
			Observed("noRetry", "retryWrites: false"), Observed("timed", "retryWrites: true, timeoutMS: 20000")}, stories,
			"If retryWrites is true, "+o.Title()+" is retried once after network errors and",
			"after server errors with listed codes or messages, whatever their labels.")
		files = append(files, f)
	}
	return Specification{Name: "retryable-writes-2018", Dated: true, Files: append(files, readsOf2018(), endsOf2018(), handshakesOf2018())}
}

func storiesOf2018() []Story {
	const labels, byDefault = "the label makes an error retryable", "retryWrites defaults to true"
	concern := func(message string) string {
		return "writeConcernError: { code: 11601, errmsg: \"" + message + "\" }"
	}
	list := []Story{
		{Says: "succeeds on the first attempt (R6)", Attempts: 1},
		{Says: "carries no transaction number by default (R6)", By: "default", Attempts: 1, Carries: Unnumbered, Today: byDefault},
		{Says: "is not retried by default after a network error (W30)", By: "default", Fails: Closes, Attempts: 1, Carries: Unnumbered,
			Raises: raisesNetworkPlain, Today: byDefault},
		NotRetried("a network error if retryWrites is false (W30)", Closes, raisesNetworkPlain).Of("noRetry"),
		Retried("a network error (W11)", Closes),
		Twice("network error, which has no label (W34)", Closes, raisesNetworkPlain).But("it has the label " + writable),
		{Says: "is not retried again after a second network error within timeoutMS (W34)", By: "timed", Fails: Closes,
			Attempts: 2, Raises: raisesNetworkPlain, Today: "it is retried until an attempt succeeds"},
		{Says: "is written once if the reply is lost (W11)", Require: onlySets,
			Points: []string{SetFailPoint(TransactionalWrite, Times(1), "")}, Attempts: 2},
		{Says: "raises the error of the retry regardless of its labels (R20)", Require: Servers("4.4", Sets),
			Points: []string{SetFailPoint(TransactionalWrite, Times(1), "")}, Mode: SkipFirst, Fails: Labelled(PrimarySteppedDown, noWrites),
			Attempts: 2, Raises: RaisedCode(PrimarySteppedDown), Applied: true, Today: "the label " + noWrites + " hides it"},

		NotRetried("Interrupted (R34)", ErrorCode(Interrupted), RaisedCode(Interrupted)),
		NotRetried("Interrupted with the label "+writable+" (R34)", writes.Fails(Interrupted), RaisedCode(Interrupted)).On(labelling).But(labels),
		NotRetried("ExceededTimeLimit with the label "+writable+" (R34)", writes.Fails(ExceededTimeLimit), RaisedCode(ExceededTimeLimit)).
			On(labelling).But(labels),
		NotRetried("ExceededTimeLimit from a server before 4.4 (R34)", ErrorCode(ExceededTimeLimit), RaisedCode(ExceededTimeLimit)).On(before44).
			But("the code is listed"),
		NotRetried("an overload error (R34)", overload, raisesOverload).On(labelling).But("it is retried twice"),

		Retried("the write concern error ShutdownInProgress without a label (W12)", LabelledConcern("")).Concerned().On(labelling).But(labels),
		Retried("the write concern error WriteConcernFailed (W12)", WriteConcernError(WriteConcernFailed)).Concerned().But("the code is not listed"),
		Retried("a write concern error that says \"not master\" (W13)", concern("not master")).Concerned().But("messages do not matter"),
		Retried("a write concern error that says \"node is recovering\" (W13)", concern("node is recovering")).Concerned().
			But("messages do not matter"),
	}
	for _, c := range codesOf2018 {
		list = append(list, Retried(c.Name+" without a label (W12)", Labelled(c)).On(labelling).But(labels))
		old := Retried(c.Name+" from a server before 4.4 (W12)", ErrorCode(c)).On(before44)
		if c == WriteConcernFailed {
			old.Today = "the code is not listed"
		}
		list = append(list, old)
	}
	return list
}

// codesOf2018 are the codes of "Retryable Error".
var codesOf2018 = []Code{
	HostUnreachable, HostNotFound, WriteConcernFailed, NetworkTimeout, ShutdownInProgress, PrimarySteppedDown, SocketException,
	NotWritablePrimary, InterruptedAtShutdown, InterruptedDueToReplStateChange, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary,
}

func readsOf2018() *File {
	f := NewFile("reads", "reads", everywhere, "Reads are not retried yet.")
	f.Objects, f.Bucket = everything, true
	for _, o := range readOperations(database2018) {
		require := ""
		if o.Watches {
			require = readRequirement(o)
		}
		f.Tell(o, NotRetried("a network error (R34)", Closes, RaisedNetwork).On(require).But("it is retried"),
			NotRetried("HostUnreachable (R34)", ErrorCode(HostUnreachable), RaisedCode(HostUnreachable)).On(require).But("it is retried"))
	}
	return f
}

// endsOf2018 commits a second time, because the transaction is still open on the server.
func endsOf2018() *File {
	f := NewFile("transactions-end", "commitTransaction", retrying, "Transactions did not exist yet: commitTransaction is not a supported write.")
	f.Clients = []Client{Watched("client", "retryWrites: true")}
	f.Sessions = true
	insert := Named(writeOperations(database2018), "collection.insertOne")
	commit := ending("commitTransaction", "")
	s := NotRetried("a network error (W33)", Closes, RaisedNetwork).But("it is retried")
	s.Before = Begin(insert, "client")
	s.Seen, s.Then, s.After = insert.Attempts(1, 0, begins), commit.Attempts(1, 0, ""), []string{OnSession("commitTransaction", "client")}
	s.Applied = true
	f.Tell(commit, s)
	return f
}

func handshakesOf2018() *File {
	f := NewFile("handshake-authentication", "handshakes that fail in authentication", "",
		"A handshake is not part of an attempt, so writes are not retried after its errors. No command was sent.")
	f.Clients = []Client{Observed("client", "retryWrites: true, maxIdleTimeMS: 10")}
	f.Require = Authenticated("4.4", Clusters)
	for _, title := range []string{"collection.insertOne", "collection.updateOne", "collection.findOneAndUpdate"} {
		for _, e := range []struct{ says, data string }{{"a network error", Closes},
			{"ShutdownInProgress with the label " + writable, writes.Fails(ShutdownInProgress)}} {
			s := Story{Says: "is not retried after " + e.says + " in saslContinue (R34)", Raises: AnyError, Today: "it is retried"}
			f.Tell(Named(writeOperations(database2018), title), s.Refused(FailPoint("saslContinue", Times(1), e.data), database2018))
		}
	}
	return f
}
