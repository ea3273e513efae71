package main

// Databases of the dated suites.
const (
	database2024 = "utr-retryable-reads-2024"
	database2018 = "utr-retryable-writes-2018"
	database2025 = "utr-client-backpressure-2025-12"
)

// readsOf2024 returns the suites of the policy retryable-reads@2024: one retry after the same errors as today,
// and no client backpressure.
func readsOf2024() Specification {
	p := reads
	p.Database = database2024
	list := readOperations(database2024)
	codes := NewFile("errors", "errors of reads", everywhere,
		"Every error after which a read is retried, errors after which it is not, and retryReads, as today.")
	codes.Clients = p.Both("")
	for _, title := range []string{"collection.find", "collection.aggregate", "database.listCollections"} {
		codes.Tell(Named(list, title), readStories()...)
	}
	codes.Objects = []string{"database", "collection"}

	overloads := NewFile("overload", "overload errors", anywhere,
		"The labels of overload errors do not exist yet, so commands are not retried because of them. An error that is",
		"retryable for another reason causes one immediate retry.")
	overloads.Clients, overloads.Objects, overloads.Bucket = []Client{Observed("client", "")}, everything, true
	overloads.Empty = []string{written}
	overloads.Entities = Objects(database2024, "setup", "database")
	for _, o := range operations(database2024) {
		overloads.Tell(o, NotRetried("an overload error (R34)", overload, raisesOverload).On(beyond(o)).But("it is retried"))
	}
	shed, raises := Labelled(HostUnreachable, both), RaisedCode(HostUnreachable)
	for _, o := range list {
		overloads.Tell(o, Twice("HostUnreachable with the labels of an overload error (R35)", shed, raises).On(beyond(o)).
			But("it is retried twice"))
	}
	for _, o := range writeOperations(database2024) {
		overloads.Tell(o, Twice("HostUnreachable with the labels of an overload error and "+writable+" (R35)", Labelled(HostUnreachable, both, writable), raises).
			On(labelling).But("it is retried twice"))
	}
	overloads.Tell(GetMore("find", database2024, twoBatches),
		NotRetried("an overload error (R34)", overload, raisesOverload).But("it is retried"))

	inside := NewFile("transactions", "overload errors in a transaction", labelling,
		"Only the end of a transaction is retried.")
	inside.Sessions = true
	for _, title := range []string{"collection.find", "collection.insertOne"} {
		o := Named(operations(database2024), title)
		inside.TellInTransaction(o, begins, map[bool]string{true: "R31", false: "W31"}[o.Reads],
			NotRetried("an overload error", overload, raisesOverload).But("it is retried"))
	}

	timed, t := p.Timeouts(everywhere)
	for _, o := range []Operation{Named(list, "collection.find"), Named(list, "collection.aggregate")} {
		timed.Tell(o, t.Thrice, t.Off, t.Endless, Story{
			Says:  "is retried until an attempt succeeds within timeoutMS, even if all errors have the labels of an overload error (R36)",
			Fails: shed, Attempts: 4, Require: anywhere, Today: "it is retried at most twice"})
	}
	return Specification{Name: "retryable-reads-2024", Dated: true, Files: []*File{codes, overloads, inside, timed}}
}
