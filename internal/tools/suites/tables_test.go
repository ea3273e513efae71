package main

import (
	"slices"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/retry"
)

// The tables contain every retryable code and operation of the retry core.
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
			t.Errorf("%s: %s is not a retryable read", o.title(), o.Command)
		}
	}
	for _, o := range retry.Operations() {
		if o.RetryableRead && !commands[o.Name] {
			t.Errorf("no suite has a %s", o.Name)
		}
	}
}

// The tables contain exactly the retryable writes of the retry core.
func TestWritesAreComplete(t *testing.T) {
	commands := map[string]bool{}
	for _, o := range writeOperations(writeDatabase) {
		commands[o.Command] = true
		if !retry.Lookup(o.Command).RetryableWrite {
			t.Errorf("%s: %s is not a retryable write", o.title(), o.Command)
		}
		if o.Wrote == nil {
			t.Errorf("%s has no outcome", o.title())
		}
	}
	for _, name := range []string{"commitTransaction", "abortTransaction"} {
		commands[name] = true // in the file transactions-end
	}
	for _, o := range retry.Operations() {
		if o.RetryableWrite && !commands[o.Name] {
			t.Errorf("no suite has a %s", o.Name)
		}
	}
}

// Every test has an outcome, unless it can end before its write is applied.
func TestOutcomesAreChecked(t *testing.T) {
	for _, f := range writeSuites().Files {
		for _, x := range f.Tests {
			if len(x.Outcome) == 0 && f.Name != "timeoutMS" && f.Name != "timeoutMS-clientBulkWrite" {
				t.Errorf("%s: %s has no outcome", f.Name, x.Description)
			}
		}
	}
}

// omitted are the commands without a row, with the reason.
var omitted = map[string]string{
	"abortTransaction":                     "in the file transactions",
	"aggregate with a write stage":         "aggregate with $out and with $merge",
	"bulkWrite with multi-document writes": "clientBulkWrite with updateMany and with deleteMany",
	"collMod":                              "drivers have no helper for it and use runCommand; stories of the reference engine test it",
	"commitTransaction":                    "in the file transactions",
	"createSearchIndexes":                  "only Atlas has search indexes",
	"dropDatabase":                         "the format has no operation for it",
	"dropSearchIndex":                      "only Atlas has search indexes",
	"endSessions":                          "sent when a client is closed, and its errors are ignored",
	"getMore":                              "in its own file",
	"killCursors":                          "in its own file",
	"mapReduce into a collection":          "drivers have no helper for it; stories of the reference engine test it",
	"multi-document delete":                "deleteMany",
	"multi-document update":                "updateMany",
	"renameCollection":                     "drivers have no standard operation for it",
	"runCommand":                           "several commands",
	"unacknowledged write":                 "it has no reply to report an error",
	"updateSearchIndex":                    "only Atlas has search indexes",
}

// The tables contain every command of the retry core that is not omitted.
func TestCommandsAreComplete(t *testing.T) {
	commands := map[string]bool{}
	for _, o := range overloadOperations {
		commands[o.Command] = true
	}
	for _, o := range retry.Operations() {
		if commands[o.Name] == (omitted[o.Name] != "") {
			t.Errorf("%s: in a table: %t; omitted: %q", o.Name, commands[o.Name], omitted[o.Name])
		}
	}
}

// Two files with the same name would overwrite each other.
func TestFilesOfOneName(t *testing.T) {
	f := func() *file {
		f := &file{Name: "twice", Description: "d", Require: []requirement{servers("4.2", 0)}}
		f.Tests = []test{{Description: "t", Operations: []value{failPoint(times(1), closes, "find")}}}
		return f
	}
	if _, err := (specification{Files: []*file{f()}}).render(); err != nil {
		t.Error(err)
	}
	if _, err := (specification{Files: []*file{f(), f()}}).render(); err == nil {
		t.Error("two files with the same name were rendered")
	}
}

func TestInvalidFile(t *testing.T) {
	f := &file{Name: "invalid", Description: "d", Require: []requirement{servers("4.2", 0)}}
	f.Tests = []test{{Description: "t", Operations: []value{doc("nosuch", 1)}}}
	if _, err := (specification{Files: []*file{f}}).render(); err == nil {
		t.Error("an invalid suite was rendered")
	}
}
