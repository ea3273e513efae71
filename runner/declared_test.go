package runner

import (
	"testing"

	"github.com/unified-test-runner/utr/source"
)

// The version of the Stable API that a run declares is for clients that declare
// none, and the suite's own values stay as they are.
func TestDeclaredAPI(t *testing.T) {
	for _, r := range []struct{ reason, client, api, want string }{
		{"no version", `{id: c}`, "", ""},
		{"a version", `{id: c}`, "1", "1"},
		{"the client's own goes first", `{id: c, serverApi: {version: "2"}}`, "1", "2"},
	} {
		client, err := source.ParseYAML("f", []byte(r.client))
		if err != nil {
			t.Fatal(err)
		}
		fields := len(client.Fields)
		test := &testRun{run: &run{cfg: Config{ServerAPI: r.api}}}
		got := ""
		if v := test.declared(client).Get("serverApi").Get("version"); v != nil {
			got = v.String
		}
		if got != r.want || len(client.Fields) != fields {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}
