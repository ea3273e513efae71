package driver

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestWithOptions(t *testing.T) {
	const host = "mongodb://u:p@h:1,h:2/?replicaSet=rs&retryReads=true"
	for _, row := range []struct{ reason, uri, options, want string }{
		{"nothing to add", host, "", host},
		{"in the place of one that is there", host, `{"retryReads": false}`, "mongodb://u:p@h:1,h:2/?replicaSet=rs&retryReads=false"},
		{"whatever the case", host, `{"RETRYreads": false}`, "mongodb://u:p@h:1,h:2/?replicaSet=rs&RETRYreads=false"},
		{"tls and ssl are one", "mongodb://h/?ssl=true", `{"tls": false}`, "mongodb://h/?tls=false"},
		{"a slash before options", "mongodb://h", `{"appName": "a&b"}`, "mongodb://h/?appName=a%26b"},
		{"tag sets stand one after the other", "mongodb://h/", `{"readPreference": "secondary", "readPreferenceTags": [{"dc": "ny"}, {}]}`,
			"mongodb://h/?readPreference=secondary&readPreferenceTags=dc%3Any&readPreferenceTags="},
		{"compressors are a list", "mongodb://h/", `{"compressors": ["zlib", "zstd"]}`, "mongodb://h/?compressors=zlib%2Czstd"},
		{"an option that the driver does not know", "mongodb://h/", `{"waitQueueSize": 1}`, "lacks uriOptions.waitQueueSize"},
		{"one that it reads and forgets", "mongodb://h/", `{"socketTimeoutMS": 1}`, "lacks uriOptions.socketTimeoutMS"},
		{"one that v2 has dropped", "mongodb://h/?wtimeoutMS=5", "", "lacks uriOptions.wtimeoutms"},
		{"a fraction", "mongodb://h", `{"maxPoolSize": 1.5}`, "lacks "},
		{"null", "mongodb://h", `{"appName": null}`, "lacks "},
		{"a word", "mongodb://h", `{"maxPoolSize": "many"}`, "lacks "},
	} {
		var o bson.Raw
		if row.options != "" {
			o = document(t, row.options)
		}
		got, _, err := withOptions(row.uri, o)
		if err != nil {
			got = "lacks " + lacking(err)
		}
		testkit.Equal(t, row.reason, got, row.want)
	}
	_, mode, err := withOptions("mongodb://h", document(t, `{"serverMonitoringMode": "poll"}`))
	testkit.Equal(t, "serverMonitoringMode", []any{mode, err}, []any{"poll", nil})
}
