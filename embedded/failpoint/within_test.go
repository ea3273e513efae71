package failpoint_test

import (
	"fmt"
	"testing"

	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// TestWithin is what the fail points do that a command meets while it runs.
func TestWithin(t *testing.T) {
	const getMore, write = failpoint.FailGetMoreAfterCursorCheckout, failpoint.OnPrimaryTransactionalWrite
	more := failpoint.Command{Names: []string{"getMore"}, Namespace: "d.c", AppName: "app"}
	insert := failpoint.Command{Names: []string{"insert"}, Namespace: "d.c", AppName: "app"}
	for _, row := range []struct {
		reason, name, data string
		about              failpoint.Command
		want               string
	}{
		{"a getMore fails", getMore, `"errorCode": 6`, more, "code 6"},
		{"with an internal error if nobody says otherwise", getMore, ``, more, "code 1"},
		{"of another application", getMore, `"appName": "other"`, more, "nothing"},
		{"of another namespace", getMore, `"namespace": "d.e"`, more, "nothing"},
		{"of this one", getMore, `"namespace": "d.c", "appName": "app"`, more, "code 1"},
		{"only getMore checks a cursor out", getMore, ``, insert, "nothing"},
		{"a write loses its connection", write, ``, insert, "closes"},
		{"it keeps it", write, `"closeConnection": false`, insert, ""},
		{"it fails as well", write, `"failBeforeCommitExceptionCode": 5`, insert, "closes, code 5"},
		{"it only fails", write, `"failBeforeCommitExceptionCode": 5, "closeConnection": false`, insert, "code 5"},
		{"errorCode is a field of others", write, `"errorCode": 5`, insert, "closes"},
		{"every client and namespace is meant", write, `"appName": "other", "namespace": "d.e"`, insert, "closes"},
	} {
		r := failpoint.NewRegistry(half)
		if _, err := r.Configure(raw(t, fmt.Sprintf(`{"configureFailPoint": %q, "mode": {"times": 1}, "data": {%s}}`, row.name, row.data))); err != nil {
			t.Fatal(err)
		}
		f, hit := r.Within(row.name, row.about)
		if got := describe(f, hit, nil); got != row.want || r.Count(row.name) == 1 != hit {
			t.Errorf("%s: got %q, count %d, want %q", row.reason, got, r.Count(row.name), row.want)
		}
	}
}
