package writes

import "github.com/unified-test-runner/utr/specs/internal/suites"

const label = suites.RetryableWriteError

var policy = suites.Policy{Database: databaseName, Noun: "write", Option: "retryWrites", Label: label,
	Network: "W10", Handshake: "W10", Pool: "W10", Off: "W30"}

// Suites are the suites of retryable writes.
func Suites() suites.Specification {
	var files []*suites.File
	for _, o := range Operations(databaseName) {
		files = append(files, suites.Of(o, retrying, policy.Both(""), append(stories(), oldStories()...),
			"Each error that makes "+o.Title()+" retryable, errors that do not, and retryWrites. Every",
			"attempt has the same transaction number, and what is left behind was written once."))
	}
	for _, build := range []func([]operation) *suites.File{
		noWritesPerformed, unacknowledged, standalone, sessions, transactions, timeouts, handshakeHello, handshakeAuth, sequences,
	} {
		files = append(files, split(Operations(databaseName), build)...)
	}
	files = append(files, split(Others(databaseName), neverRetried)...)
	return suites.Specification{Name: "retryable-writes", Title: "retryable writes", Package: "writes", Database: databaseName,
		Files: append(files, bulk(), secondError(), writeErrors(), notRetryable(), endings(), otherMongos(), otherMongosForEnds(),
			poolCleared(), selectionFails())}
}

// split makes one file of the operations of each schemaVersion, so that those
// of a new one do not keep old runners from the rest.
func split(operations []operation, build func([]operation) *suites.File) []*suites.File {
	var old, recent []operation
	for _, o := range operations {
		if o.Since == "" {
			old = append(old, o)
		} else {
			recent = append(recent, o)
		}
	}
	f := build(recent)
	f.Name, f.Description = f.Name+"-"+recent[0].Name, f.Description+", "+recent[0].Name
	for i, r := range f.Require {
		f.Require[i] = suites.AtLeast(recent[0].Since, r)
	}
	return []*suites.File{build(old), f}
}

// numbered is what an attempt carries with the first transaction number of a
// session that nothing else used.
const numbered = `lsid: { $$exists: true }, txnNumber: { $numberLong: "1" }`

// Servers with retryable writes: all of them, those that obey error labels in
// fail points, those that give none, and those of the fail point
// suites.TransactionalWrite.
var (
	retrying  = suites.Servers("4.2", suites.Retrying)
	labelling = suites.Servers("4.4", suites.Retrying)
	before44  = suites.Before44(suites.Clusters)
	onlySets  = suites.Servers("4.2", suites.Sets)
)

// Errors that are raised, of the network and of write concerns, with the label
// and without.
var (
	raisesNetwork      = suites.WithLabels(suites.RaisedNetwork, label, "")
	raisesNetworkPlain = policy.RaisesOff(suites.RaisedNetwork)
	raisesConcern      = suites.WithLabels("{ isClientError: false }", label, "")
	raisesConcernPlain = policy.RaisesOff("{ isClientError: false }")
)

func raisesPlain(c suites.Code) string { return policy.RaisesOff(suites.RaisedCode(c)) }

func named(title string) operation {
	return suites.Named(Operations(databaseName), "collection."+title)
}

// special is the requirement of an operation that not every server has.
func special(o operation) string {
	if o.Since == "" {
		return ""
	}
	return retrying
}
