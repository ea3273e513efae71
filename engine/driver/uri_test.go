package driver

import (
	"errors"
	"testing"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestWithOptions(t *testing.T) {
	const host = "mongodb://u:p@h:1,h:2/?replicaSet=rs&retryReads=true"
	for _, row := range []struct {
		reason  string
		uri     string
		options bson.D
		want    string
		lacks   string
	}{
		{"nothing to add", host, nil, host, ""},
		{"in the place of one that is there", host, bson.D{{Key: "retryReads", Value: false}},
			"mongodb://u:p@h:1,h:2/?replicaSet=rs&retryReads=false", ""},
		{"whatever the case", host, bson.D{{Key: "RETRYreads", Value: false}}, "mongodb://u:p@h:1,h:2/?replicaSet=rs&RETRYreads=false", ""},
		{"tls and ssl are one", "mongodb://h/?ssl=true", bson.D{{Key: "tls", Value: false}}, "mongodb://h/?tls=false", ""},
		{"a slash before options", "mongodb://h", bson.D{{Key: "appName", Value: "a&b"}}, "mongodb://h/?appName=a%26b", ""},
		{"tag sets stand one after the other", "mongodb://h/", bson.D{{Key: "readPreference", Value: "secondary"},
			{Key: "readPreferenceTags", Value: bson.A{bson.D{{Key: "dc", Value: "ny"}}, bson.D{}}}},
			"mongodb://h/?readPreference=secondary&readPreferenceTags=dc%3Any&readPreferenceTags=", ""},
		{"compressors are a list", "mongodb://h/", bson.D{{Key: "compressors", Value: bson.A{"zlib", "zstd"}}}, "mongodb://h/?compressors=zlib%2Czstd", ""},
		{"an option that the driver does not know", "mongodb://h/", bson.D{{Key: "waitQueueSize", Value: 1}}, "", "uriOptions.waitQueueSize"},
		{"one that it reads and forgets", "mongodb://h/", bson.D{{Key: "socketTimeoutMS", Value: 1}}, "", "uriOptions.socketTimeoutMS"},
		{"one that v2 has dropped", "mongodb://h/?wtimeoutMS=5", nil, "", "uriOptions.wtimeoutms"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var o bson.Raw
			if row.options != nil {
				o = raw(t, row.options)
			}
			got, _, err := withOptions(row.uri, o)
			var lack *result.Error
			if errors.As(err, &lack); row.lacks != "" && (lack == nil || lack.Unsupported != row.lacks) || row.lacks == "" && err != nil {
				t.Fatalf("error %v, want %q to be unsupported", err, row.lacks)
			}
			if err == nil && got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
	for _, bad := range []bson.D{{{Key: "maxPoolSize", Value: 1.5}}, {{Key: "appName", Value: nil}}, {{Key: "maxPoolSize", Value: "many"}}} {
		if got, _, err := withOptions("mongodb://h", raw(t, bad)); err == nil {
			t.Errorf("%v gives %s", bad, got)
		}
	}
	if _, mode, err := withOptions("mongodb://h", raw(t, bson.D{{Key: "serverMonitoringMode", Value: "poll"}})); err != nil || mode != "poll" {
		t.Errorf("serverMonitoringMode: got %q, %v", mode, err)
	}
}
