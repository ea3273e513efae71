package reference

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/retry"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func TestResolve(t *testing.T) {
	const host = "mongodb://a:1/"
	hosts := func(_ settings, o *options.ClientOptions) any { return o.Hosts }
	for _, row := range []struct {
		reason, uri, options string
		of                   func(settings, *options.ClientOptions) any
		want                 any // a text of the error if of is nil
	}{
		{"reads are retried", "mongodb://a:1", "", func(s settings, _ *options.ClientOptions) any { return s.retryReads }, true},
		{"so are writes", host, "", func(s settings, _ *options.ClientOptions) any { return s.retryWrites }, true},
		{"timeoutMS is not set", host, "", func(s settings, _ *options.ClientOptions) any { return s.timeout == nil }, true},
		{"the default of serverSelectionTimeoutMS", host, "", func(s settings, _ *options.ClientOptions) any { return s.serverSelectionTimeout }, 30 * time.Second},
		{"uriOptions override, whatever the case", host + "?RETRYREADS=true", `{"retryReads":false}`,
			func(s settings, _ *options.ClientOptions) any { return s.retryReads }, false},
		{"a write concern, too", host + "?w=1", `{"w":"majority"}`, func(s settings, _ *options.ClientOptions) any { return s.writeConcern }, d("w", "majority")},
		{"options of the connection stay", "mongodb://u:p%40@a:1,b:2/db?replicaSet=rs", `{"appname":"x y","maxPoolSize":3}`,
			func(_ settings, o *options.ClientOptions) any {
				return []any{o.Hosts, *o.ReplicaSet, *o.AppName, o.Auth.Password}
			},
			[]any{[]string{"a:1", "b:2"}, "rs", "x y", "p@"}},
		{"a direct connection has one host", "mongodb://u:p@a:1,b:2/?replicaSet=rs", `{"directConnection":true}`, hosts, []string{"a:1"}},
		{"and no set", "mongodb://u:p@a:1,b:2/?replicaSet=rs", `{"directConnection":true}`,
			func(_ settings, o *options.ClientOptions) any { return []bool{*o.Direct, o.ReplicaSet == nil} }, []bool{true, true}},
		{"tls and ssl are one option", host + "?ssl=true", `{"tls":false}`, func(_ settings, o *options.ClientOptions) any { return o.TLSConfig == nil }, true},
		{"tag sets are an array of strings", host, `{"readPreference":"secondary","readPreferenceTags":["dc:ny,rack:1",""]}`,
			func(s settings, _ *options.ClientOptions) any { return s.preference.TagSets }, []map[string]string{{"dc": "ny", "rack": "1"}, {}}},
		{"-1 is no maximum", host, `{"readPreference":"secondary","maxStalenessSeconds":-1}`,
			func(s settings, _ *options.ClientOptions) any { return s.preference.MaxStalenessSeconds == nil }, true},
		{"timeoutMS 0 is set", host + "?timeoutMS=0", "", func(s settings, _ *options.ClientOptions) any { return *s.timeout }, time.Duration(0)},
		{"a short heartbeat is taken", host, `{"heartbeatFrequencyMS":50}`, func(s settings, _ *options.ClientOptions) any { return s.heartbeat }, 50 * time.Millisecond},
		{"no overload retries", host, `{"maxAdaptiveRetries":0}`, func(s settings, _ *options.ClientOptions) any { return *s.maxAdaptiveRetries }, 0},
		{"more of them", host + "?maxAdaptiveRetries=5", "", func(s settings, _ *options.ClientOptions) any { return *s.maxAdaptiveRetries }, 5},
		{"retargeting", host + "?enableOverloadRetargeting=true", "", func(s settings, _ *options.ClientOptions) any { return s.overloadRetargeting }, true},
		{"what the Go driver does not know", host + "?waitQueueTimeoutMS=5", "", func(s settings, _ *options.ClientOptions) any { return s.waitQueueTimeout }, 5 * time.Millisecond},
		{"a negative time of these", host + "?wtimeoutMS=-1", "", nil, "not a number of milliseconds"},
		{"half a millisecond", host, `{"timeoutMS":1.5}`, nil, "not an integer"},
		{"a negative number of retries", host + "?maxAdaptiveRetries=-1", "", nil, "maxAdaptiveRetries"},
		{"booleans are true or false", host + "?enableOverloadRetargeting=1", "", nil, "enableOverloadRetargeting"},
		{"tags with mode primary", host + "?readPreferenceTags=dc:ny", "", nil, "primary"},
		{"secrets stay out of errors", "mongodb://u:" + testkit.Secret + "@a:1/?retryReads=maybe", "", nil, `"maybe"`},
	} {
		s, o, err := resolve(row.uri, raw(t, append(d(), parsed(t, row.options)...)), &retry.Policy{})
		if row.of == nil {
			testkit.Fails(t, err, row.want.(string))
			continue
		}
		testkit.Check(t, err)
		testkit.Equal(t, row.reason, row.of(s, o), row.want)
	}
}

// Clients share an authenticator if all that it depends on is the same.
func TestAuthenticatorsAreShared(t *testing.T) {
	const sha256, plain = "mongodb://u:p@localhost/?authMechanism=SCRAM-SHA-256", "mongodb://u:p@localhost/?authMechanism=PLAIN&authSource=$external"
	for _, row := range []struct {
		reason, first, second string
		shared                bool
	}{
		{"the same", sha256, sha256, true},
		{"what has nothing to do with it differs", sha256, sha256 + "&maxPoolSize=3", true},
		{"another server may have another salt: it has a place of its own", sha256, strings.Replace(sha256, "localhost", "localhost:27018", 1), true},
		{"another password", sha256, strings.Replace(sha256, "u:p", "u:q", 1), false},
		{"another user", sha256, strings.Replace(sha256, "u:p", "v:p", 1), false},
		{"another source", sha256, sha256 + "&authSource=other", false},
		{"another mechanism", sha256, strings.Replace(sha256, "256", "1", 1), false},
		{"a negotiated mechanism", "mongodb://u:p@localhost", "mongodb://u:p@localhost", true},
		{"more than a password", plain, plain, false},
	} {
		var all authenticators
		a, err := all.of(options.Client().ApplyURI(row.first))
		b, err2 := all.of(options.Client().ApplyURI(row.second))
		if err != nil || err2 != nil || a == nil || b == nil || (a == b) != row.shared {
			t.Errorf("%s: %v, %v; shared %t, want %t", row.reason, err, err2, a == b, row.shared)
		}
	}
	var all authenticators
	if a, err := all.of(options.Client().ApplyURI("mongodb://localhost")); a != nil || err != nil {
		t.Errorf("without a credential: %v, %v", a, err)
	}
	if _, err := all.of(options.Client().SetAuth(options.Credential{AuthMechanism: "NONE"})); err == nil {
		t.Error("an unknown mechanism is taken")
	}
}

// replies are messages, with the reason why all but the first are not replies.
func replies(t testing.TB) map[string][]byte {
	good := message(7, raw(t, d("ok", 1)), 0)
	change := func(at int, b byte) []byte { return slices.Concat(good[:at], []byte{b}, good[at+1:]) }
	return map[string][]byte{"a reply": good, "empty": nil, "no header": good[:10], "shorter than it says": good[:len(good)-1],
		"another opcode": change(12, 1), "an unknown section": change(20, 9), "a document that is too long": change(21, 200),
		"compressed, and truncated": change(12, 0xdc)}
}

func FuzzParse(f *testing.F) {
	for why, wm := range replies(f) {
		if doc, err := parse(wm); (err == nil) != (why == "a reply") || err != nil && !errors.Is(err, errMalformed) {
			f.Errorf("%s: %v %v", why, doc, err)
		}
		f.Add(wm)
	}
	f.Fuzz(func(t *testing.T, wm []byte) {
		if doc, err := parse(wm); err == nil {
			testkit.Check(t, doc.Validate())
			_, _, _ = replyError(doc, "a:1"), okOf(doc), clusterTimeOf(doc)
		}
	})
}
