package backpressure

import (
	"testing"

	"github.com/unified-test-runner/utr/reference/retry"
)

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
func TestTablesAreComplete(t *testing.T) {
	commands := map[string]bool{}
	for _, o := range operations() {
		commands[o.Command] = true
	}
	for _, o := range retry.Operations() {
		if commands[o.Name] == (unseen[o.Name] != "") {
			t.Errorf("%s: in a table %t, left out because of %q", o.Name, commands[o.Name], unseen[o.Name])
		}
	}
}
