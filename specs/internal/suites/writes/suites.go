package writes

import (
	"fmt"
	"regexp"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// Suites are the suites of retryable writes.
func Suites() suites.Specification {
	var files []*suites.File
	for _, o := range Operations(databaseName) {
		files = append(files, ofOperation(o))
	}
	for _, build := range []func([]suites.Operation) *suites.File{
		noWritesPerformed, unacknowledged, standalone, sessions, transactions, timeouts, handshakeHello, handshakeAuth, sequences,
	} {
		files = append(files, split(Operations(databaseName), build)...)
	}
	files = append(files, split(Others(databaseName), neverRetried)...)
	files = append(files, bulk(), secondError(), writeErrors(), notRetryable(), endings(), otherMongos(), otherMongosForEnds(), poolCleared(), selectionFails())
	for _, f := range files {
		f.Database = databaseName
	}
	return suites.Specification{Name: "retryable-writes", Package: "writes", Files: files}
}

// split makes one file of the operations of each schemaVersion, so that those
// of a new one do not keep old runners from the rest.
func split(operations []suites.Operation, build func([]suites.Operation) *suites.File) []*suites.File {
	var old, recent []suites.Operation
	for _, o := range operations {
		if o.Least == "" {
			old = append(old, o)
		} else {
			recent = append(recent, o)
		}
	}
	f := build(recent)
	f.Name, f.Description, f.Least = f.Name+"-"+recent[0].Name, f.Description+", "+recent[0].Name, recent[0].Least
	for i, r := range f.Require {
		f.Require[i] = versions.ReplaceAllString(r, fmt.Sprintf("minServerVersion: %q", recent[0].Since))
	}
	return []*suites.File{build(old), f}
}

var versions = regexp.MustCompile(`minServerVersion: "[^"]*"`)

func noRetryClient() suites.Client { return suites.Observed("noRetry", "{ retryWrites: false }") }

func objects(client string, kinds ...string) []string {
	return suites.Objects(databaseName, client, kinds...)
}

// What a command must carry: an attempt with the first transaction number of
// a session that nothing else used, and one without.
const (
	numbered = `lsid: { $$exists: true }, txnNumber: { $numberLong: "1" }`
	unmarked = "txnNumber: { $$exists: false }"
)

// requirement is for what has retryable writes.
func requirement(o suites.Operation) string {
	return fmt.Sprintf("{ minServerVersion: %q, topologies: [ %s ] }", later(o, "4.2"), every)
}

func named(object, name, variant string) suites.Operation {
	for _, o := range Operations(databaseName) {
		if o.Object == object && o.Name == name && o.Variant == variant {
			return o
		}
	}
	return suites.Operation{}
}

func require(r string) []string {
	if r == "" {
		return nil
	}
	return []string{r}
}

// special is the requirement of an operation that not every server has.
func special(o suites.Operation) []string {
	if o.Since == "" {
		return nil
	}
	return []string{requirement(o)}
}

// ofOperation tells all stories of one operation.
func ofOperation(o suites.Operation) *suites.File {
	f := &suites.File{
		Name:        o.File(),
		Description: "retryable writes: " + o.Title(),
		About: []string{"Each error that makes " + o.Title() + " retryable, errors that do not, and retryWrites. Every",
			"attempt has the same transaction number, and what is left behind was written once."},
		Least:    o.Least,
		Require:  []string{requirement(o)},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient(), noRetryClient()},
		Entities: append(objects("client", o.Object), objects("noRetry", o.Object)...),
	}
	for _, s := range stories(o) {
		by, carries := "client", numbered
		if s.noRetry {
			by, carries = "noRetry", unmarked
		}
		t := suites.Test{Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule), Require: require(s.require)}
		if s.point != "" {
			t.Operations = append(t.Operations, s.point)
		}
		t.Operations = append(t.Operations, o.Call(by, "", s.raises))
		t.Events = []suites.Expected{{Client: by, Events: o.Attempts(s.attempts, s.failing, carries)}}
		t.Outcome = o.Outcome(s.raises == "" || s.applied)
		f.Add(t)
	}
	return f
}
