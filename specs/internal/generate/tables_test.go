package main

import (
	"slices"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/retry"
)

// The tables hold every code and every operation that the retry core knows.
func TestReadsAreComplete(t *testing.T) {
	policy, err := retry.Named("")
	testkit.Check(t, err)
	var codes []int32
	for _, c := range readCodes {
		codes = append(codes, int32(c.Number))
	}
	testkit.Same(t, "codes of the table", codes, policy.ReadCodes)
	for _, c := range otherCodes {
		if slices.Contains(policy.ReadCodes, int32(c.Number)) {
			t.Errorf("%s is retryable", c.Name)
		}
	}
	commands := map[string]bool{}
	for _, o := range readOperations(readDatabase) {
		commands[o.Command] = true
		if !retry.Lookup(o.Command).RetryableRead {
			t.Errorf("%s: %s is not a retryable read", o.Title(), o.Command)
		}
	}
	for _, o := range retry.Operations() {
		if o.RetryableRead && !commands[o.Name] {
			t.Errorf("no suite has a %s", o.Name)
		}
	}
}

// The tables hold exactly the retryable writes that the retry core knows.
func TestWritesAreComplete(t *testing.T) {
	commands := map[string]bool{}
	for _, o := range writeOperations(writeDatabase) {
		commands[o.Command] = true
		if !retry.Lookup(o.Command).RetryableWrite {
			t.Errorf("%s: %s is not a retryable write", o.Title(), o.Command)
		}
		if o.Wrote == nil {
			t.Errorf("%s leaves nothing behind that could be checked", o.Title())
		}
	}
	for _, name := range []string{"commitTransaction", "abortTransaction"} {
		commands[name] = true // of the file transactions-end
	}
	for _, o := range retry.Operations() {
		if o.RetryableWrite && !commands[o.Name] {
			t.Errorf("no suite has a %s", o.Name)
		}
	}
}

// Every test checks what is left behind, except the ones that end while their
// write may be under way.
func TestOutcomesAreChecked(t *testing.T) {
	for _, f := range writeSuites().Files {
		for _, x := range f.Tests {
			if len(x.Outcome) == 0 && f.Name != "timeoutMS" && f.Name != "timeoutMS-clientBulkWrite" {
				t.Errorf("%s: %s has no outcome", f.Name, x.Description)
			}
		}
	}
}

// unseen are the commands without a row, with the reason.
var unseen = map[string]string{
	"abortTransaction":                     "a command of the file transactions",
	"aggregate with a write stage":         "aggregate with $out and with $merge",
	"bulkWrite with multi-document writes": "clientBulkWrite with updateMany and with deleteMany",
	"commitTransaction":                    "a command of the file transactions",
	"createSearchIndexes":                  "only Atlas has search indexes",
	"delete of many":                       "deleteMany",
	"dropDatabase":                         "the format has no operation for it",
	"dropSearchIndex":                      "only Atlas has search indexes",
	"endSessions":                          "sent when a client is closed, and its errors are ignored",
	"getMore":                              "a file of its own",
	"killCursors":                          "a file of its own",
	"renameCollection":                     "drivers have no standard operation for it",
	"runCommand":                           "several commands",
	"unacknowledged write":                 "it has no reply that could report an error",
	"update of many":                       "updateMany",
	"updateSearchIndex":                    "only Atlas has search indexes",
}

// The tables hold every command that the retry core knows, or say why not.
func TestCommandsAreComplete(t *testing.T) {
	commands := map[string]bool{}
	for _, o := range operations(overloadDatabase) {
		commands[o.Command] = true
	}
	for _, o := range retry.Operations() {
		if commands[o.Name] == (unseen[o.Name] != "") {
			t.Errorf("%s: in a table %t, left out because of %q", o.Name, commands[o.Name], unseen[o.Name])
		}
	}
}

// Merge adds keys to a document in flow style.
func TestMerge(t *testing.T) {
	for _, r := range []struct{ reason, into, add, want string }{
		{"nothing into nothing", "{}", "", "{}"},
		{"a key into nothing", "{}", "a: 1", "{ a: 1 }"},
		{"a key beside an empty document", "{ a: {} }", "b: 2", "{ a: {}, b: 2 }"},
		{"a key beside a document", "{ a: { b: 1 } }", "c: 3", "{ a: { b: 1 }, c: 3 }"},
	} {
		testkit.Equal(t, r.reason, Merge(r.into, r.add), r.want)
	}
}

// Two files of one name would overwrite each other.
func TestFilesOfOneName(t *testing.T) {
	f := func() *File {
		f := &File{Name: "twice", Description: "d", Require: []string{Servers("4.2", "")}}
		f.Tests = []Test{{Description: "t", Operations: []string{FailPoint("find", Times(1), Closes)}}}
		return f
	}
	if _, err := (Specification{Files: []*File{f()}}).Render(); err != nil {
		t.Error(err)
	}
	if _, err := (Specification{Files: []*File{f(), f()}}).Render(); err == nil {
		t.Error("two files of one name were rendered")
	}
}

// A suite that no schemaVersion allows is an error.
func TestInvalidFile(t *testing.T) {
	f := &File{Name: "invalid", Description: "d", Require: []string{Servers("4.2", "")}}
	f.Tests = []Test{{Description: "t", Operations: []string{"{ nosuch: 1 }"}}}
	if _, err := (Specification{Files: []*File{f}}).Render(); err == nil {
		t.Error("an invalid suite was rendered")
	}
}
