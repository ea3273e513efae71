package reference

import (
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		why     string
		uri     string
		options bson.D
		rest    string
		check   func(settings) bool
		err     string
	}{
		{"defaults", "mongodb://a:1", nil, "mongodb://a:1/", func(s settings) bool {
			return s.retryReads && s.retryWrites && s.timeout == nil && s.serverSelectionTimeout == 30*time.Second
		}, ""},
		{"uriOptions override, whatever the case", "mongodb://a:1/?RETRYREADS=true&w=1", bson.D{{Key: "retryReads", Value: false}, {Key: "w", Value: "majority"}},
			"mongodb://a:1/", func(s settings) bool {
				return !s.retryReads && len(s.writeConcern) == 1 && s.writeConcern[0].Value == "majority"
			}, ""},
		{"options of the connection stay", "mongodb://u:p%40@a:1,b:2/db?replicaSet=rs", bson.D{{Key: "appname", Value: "x y"}, {Key: "maxPoolSize", Value: 3}},
			"mongodb://u:p%40@a:1,b:2/db?replicaSet=rs&appname=x+y&maxPoolSize=3", nil, ""},
		{"a direct connection has one host and no set", "mongodb://u:p@a:1,b:2/?replicaSet=rs", bson.D{{Key: "directConnection", Value: true}},
			"mongodb://u:p@a:1/?directConnection=true", nil, ""},
		{"tls and ssl are one option", "mongodb://a:1/?ssl=true", bson.D{{Key: "tls", Value: false}}, "mongodb://a:1/?tls=false", nil, ""},
		{"tag sets are an array of strings", "mongodb://a:1/", bson.D{{Key: "readPreference", Value: "secondary"}, {Key: "readPreferenceTags", Value: bson.A{"dc:ny,rack:1", ""}}},
			"mongodb://a:1/", func(s settings) bool {
				sets := s.readPreference.TagSets
				return len(sets) == 2 && sets[0]["rack"] == "1" && len(sets[1]) == 0
			}, ""},
		{"timeoutMS 0 is set", "mongodb://a:1/?timeoutMS=0", nil, "mongodb://a:1/", func(s settings) bool { return s.timeout != nil && *s.timeout == 0 }, ""},
		{"a short heartbeat is taken", "mongodb://a:1/", bson.D{{Key: "heartbeatFrequencyMS", Value: 50}}, "mongodb://a:1/", func(s settings) bool { return s.heartbeat == 50*time.Millisecond }, ""},
		{"no whole number", "mongodb://a:1/", bson.D{{Key: "timeoutMS", Value: 1.5}}, "", nil, "no whole number"},
		{"no overload retries", "mongodb://a:1/", bson.D{{Key: "maxAdaptiveRetries", Value: 0}}, "mongodb://a:1/",
			func(s settings) bool { return s.maxAdaptiveRetries != nil && *s.maxAdaptiveRetries == 0 }, ""},
		{"more overload retries", "mongodb://a:1/?maxAdaptiveRetries=5", nil, "mongodb://a:1/",
			func(s settings) bool { return s.maxAdaptiveRetries != nil && *s.maxAdaptiveRetries == 5 }, ""},
		{"a negative number of retries", "mongodb://a:1/?maxAdaptiveRetries=-1", nil, "", nil, "no number of retries"},
		{"half a retry", "mongodb://a:1/", bson.D{{Key: "maxAdaptiveRetries", Value: 1.5}}, "", nil, "no whole number"},
		{"retries in words", "mongodb://a:1/?maxAdaptiveRetries=two", nil, "", nil, "no number of retries"},
		{"no retries said", "mongodb://a:1/?maxAdaptiveRetries=", nil, "", nil, "no number of retries"},
		{"retargeting", "mongodb://a:1/?enableOverloadRetargeting=true", nil, "mongodb://a:1/", func(s settings) bool { return s.overloadRetargeting }, ""},
		{"booleans are true or false", "mongodb://a:1/?enableOverloadRetargeting=1", nil, "", nil, "neither true nor false"},
		{"negative", "mongodb://a:1/?timeoutMS=-1", nil, "", nil, "timeoutms"},
		{"tags with mode primary", "mongodb://a:1/?readPreferenceTags=dc:ny", nil, "", nil, "primary"},
		{"secrets stay out of errors", "mongodb://u:secret@a:1/?retryReads=maybe", nil, "", nil, "neither true nor false"},
	} {
		var o bson.Raw
		if c.options != nil {
			o = raw(t, c.options)
		}
		s, rest, err := resolve(c.uri, o, defaultSettings(&retry.Policy{}))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: error %v", c.why, err)
			}
			continue
		}
		if err != nil || rest != c.rest || c.check != nil && !c.check(s) {
			t.Errorf("%s: %q %+v %v", c.why, rest, s, err)
		}
	}
}
