package data

import (
	"errors"
	"testing"

	"github.com/unified-test-runner/utr/embedded/command"
)

// A stage that no server knows fails the whole update, after its statements ran.
// One that an update may not have fails its statement.
func TestStagesOfUpdates(t *testing.T) {
	const set = `{"q":{"_id":1},"u":[{"$set":{"a":2}}]}`
	for _, row := range []struct {
		reason, updates string
		top             int32 // code of the command
	}{
		{"known ones", set, 0},
		{"an unknown one", set + `,{"q":{},"u":[{"$nosuch":1}]}`, 40324},
		{"an unknown one after a known one", set + `,{"q":{},"u":[{"$set":{"a":1}},{"$nosuch":1}]}`, 40324},
		{"one of two fields", set + `,{"q":{},"u":[{"$set":{},"$unset":"a"}]}`, 40323},
		{"one that is not for updates", set + `,{"q":{},"u":[{"$match":{}}]}`, 0},
		{"an operator that is none", set + `,{"q":{},"u":{"$nosuch":{"a":1}}}`, 0},
	} {
		b := newBench(t, Options{})
		b.must(`{"insert":"c","documents":[{"_id":1,"a":1}]}`)
		_, err := b.do(`{"update":"c","updates":[` + row.updates + `]}`)
		var e *command.Error
		if errors.As(err, &e) && e.Code != row.top || err == nil && row.top != 0 {
			t.Errorf("%s: got %v, want code %d", row.reason, err, row.top)
		}
		b.want(row.reason, `{"find":"c"}`, `{ _id: 1, a: 2 }`)
	}
}
