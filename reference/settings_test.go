package reference

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
)

func TestResolve(t *testing.T) {
	const host = "mongodb://a:1/"
	hosts := func(_ settings, o *options.ClientOptions) any { return o.Hosts }
	for _, row := range []struct {
		reason, uri, options string
		of                   func(settings, *options.ClientOptions) any
		want                 any // a text of the error if of is nil
	}{
		{"retryReads defaults to true", "mongodb://a:1", "",
			func(s settings, _ *options.ClientOptions) any { return s.RetryReads }, true},
		{"retryWrites defaults to true", host, "", func(s settings, _ *options.ClientOptions) any { return s.RetryWrites },
			true},
		{"timeoutMS is not set", host, "", func(s settings, _ *options.ClientOptions) any { return s.timeout == nil }, true},
		{"the default of serverSelectionTimeoutMS", host, "",
			func(s settings, _ *options.ClientOptions) any { return s.ServerSelectionTimeout }, 30 * time.Second},
		{"uriOptions override, ignoring case", host + "?RETRYREADS=true", `{"retryReads":false}`,
			func(s settings, _ *options.ClientOptions) any { return s.RetryReads }, false},
		{"uriOptions override a write concern", host + "?w=1", `{"w":"majority"}`,
			func(s settings, _ *options.ClientOptions) any { return s.writeConcern }, d("w", "majority")},
		{"connection options are kept", "mongodb://u:p%40@a:1,b:2/db?replicaSet=rs", `{"appname":"x y","maxPoolSize":3}`,
			func(_ settings, o *options.ClientOptions) any {
				return []any{o.Hosts, *o.ReplicaSet, *o.AppName, o.Auth.Password}
			},
			[]any{[]string{"a:1", "b:2"}, "rs", "x y", "p@"}},
		{"a direct connection has one host", "mongodb://u:p@a:1,b:2/?replicaSet=rs", `{"directConnection":true}`, hosts,
			[]string{"a:1"}},
		{"a direct connection has no set name", "mongodb://u:p@a:1,b:2/?replicaSet=rs", `{"directConnection":true}`,
			func(_ settings, o *options.ClientOptions) any { return []bool{*o.Direct, o.ReplicaSet == nil} }, []bool{true,
				true}},
		{"tls and ssl are one option", host + "?ssl=true", `{"tls":false}`,
			func(_ settings, o *options.ClientOptions) any { return o.TLSConfig == nil }, true},
		{"tag sets are an array of strings", host, `{"readPreference":"secondary","readPreferenceTags":["dc:ny,rack:1",""]}`,
			func(s settings, _ *options.ClientOptions) any { return s.preference.TagSets }, []map[string]string{{"dc": "ny",
				"rack": "1"}, {}}},
		{"-1 is no maximum", host, `{"readPreference":"secondary","maxStalenessSeconds":-1}`,
			func(s settings, _ *options.ClientOptions) any { return s.preference.MaxStalenessSeconds == nil }, true},
		{"timeoutMS 0 is set", host + "?timeoutMS=0", "",
			func(s settings, _ *options.ClientOptions) any { return *s.timeout }, time.Duration(0)},
		{"a short heartbeat is accepted", host, `{"heartbeatFrequencyMS":50}`,
			func(s settings, _ *options.ClientOptions) any { return s.HeartbeatInterval }, 50 * time.Millisecond},
		{"no overload retries", host, `{"maxAdaptiveRetries":0}`,
			func(s settings, _ *options.ClientOptions) any { return *s.maxAdaptiveRetries }, 0},
		{"more overload retries", host + "?maxAdaptiveRetries=5", "",
			func(s settings, _ *options.ClientOptions) any { return *s.maxAdaptiveRetries }, 5},
		{"retargeting", host + "?enableOverloadRetargeting=true", "",
			func(s settings, _ *options.ClientOptions) any { return s.EnableOverloadRetargeting }, true},
		{"an option that the Go driver does not have", host + "?waitQueueTimeoutMS=5", "",
			func(s settings, _ *options.ClientOptions) any { return s.waitQueueTimeout }, 5 * time.Millisecond},
		{"a negative time is ignored", host + "?wtimeoutMS=-1", "", func(s settings, _ *options.ClientOptions) any {
			return []any{len(s.writeConcern), s.warnings}
		}, []any{0, []string{`Unsupported value for "wtimeoutMS" : "-1"`}}},
		{"half a millisecond is ignored", host, `{"timeoutMS":1.5}`, func(s settings, _ *options.ClientOptions) any {
			return []any{s.timeout == nil, s.warnings}
		}, []any{true, []string{`Unsupported value for "timeoutMS" : "1.5"`}}},
		{"a negative number of retries is ignored", host + "?maxAdaptiveRetries=-1", "",
			func(s settings, _ *options.ClientOptions) any { return s.maxAdaptiveRetries == nil }, true},
		{"an unknown option is ignored", host, `{"retryFinds":true}`, func(s settings, _ *options.ClientOptions) any {
			return s.warnings
		}, []string{"Unsupported option 'retryFinds'."}},
		{"a specified option that the engine does not support", host, `{"proxyHost":"x"}`, nil, "uriOptions.proxyHost"},
		{"an invalid value of one", host, `{"tlsAllowInvalidHostnames":"abc"}`, func(s settings, _ *options.ClientOptions) any {
			return len(s.warnings)
		}, 1},
		{"tags with mode primary", host + "?readPreferenceTags=dc:ny", "", nil, "primary"},
		{"errors do not contain secrets", "mongodb://u:" + testkit.Secret + "@a:1/?readPreferenceTags=dc:ny", "", nil, "primary"},
	} {
		s, o, err := resolve(row.uri, raw(t, append(d(), parsed(t, row.options)...)), &retry.Policy{})
		if row.of == nil {
			testkit.ErrorContains(t, err, row.want.(string))
			continue
		}
		testkit.Check(t, err)
		testkit.Equal(t, row.reason, row.of(s, o), row.want)
	}
}

// TestInvalidValues checks which values of URI options are ignored with a warning (URI Options, "List of specified
// options").
func TestInvalidValues(t *testing.T) {
	for _, row := range []struct{ names, valid, invalid string }{
		{"retryReads RETRYWRITES journal directConnection loadBalanced tls ssl tlsInsecure tlsAllowInvalidCertificates " +
			"serverSelectionTryOnce enableOverloadRetargeting", "true false", "abc 1 0 yes TRUE -1 EMPTY"},
		{"timeoutMS connectTimeoutMS socketTimeoutMS localThresholdMS maxIdleTimeMS waitQueueTimeoutMS wTimeoutMS maxPoolSize " +
			"minPoolSize maxAdaptiveRetries srvMaxHosts serverSelectionTimeoutMS", "0 1 2147483647",
			"-1 -5 abc 1.5 2147483648 EMPTY"},
		{"maxConnecting heartbeatFrequencyMS", "1 500", "0 -1 abc"},
		{"maxStalenessSeconds", "-1 90", "-2 abc"},
		{"zlibCompressionLevel", "-1 9", "-2 10 abc"},
		{"w", "0 1 majority my-tag", "-1 EMPTY"},
		{"serverMonitoringMode", "auto stream poll", "abc Poll EMPTY"},
		{"readPreference", "primary secondaryPreferred", "secondarypreferred abc"},
		{"readPreferenceTags", "EMPTY dc:ny dc:ny,rack:1", "abc dc:ny,abc"},
		{"appname replicaSet readConcernLevel authSource", "abc EMPTY", ""},
	} {
		for name := range strings.FieldsSeq(row.names) {
			for want, values := range map[bool]string{true: row.valid, false: row.invalid} {
				for value := range strings.FieldsSeq(values) {
					value = strings.Replace(value, "EMPTY", "", 1)
					testkit.Equal(t, name+"="+value, valid(enginekit.Option{Name: name, Value: value}), want)
				}
			}
		}
	}
}

// TestSettingsOf2014 checks the URI options under the dated policies of read preferences.
func TestSettingsOf2014(t *testing.T) {
	const host = "mongodb://a:1/?"
	for _, row := range []struct{ reason, uri, options, want string }{
		{"the default is primary", host, "", "primary [] 15ms"},
		{"slaveOk", host + "slaveOk=true", "", "secondaryPreferred [] 15ms"},
		{"slaveOk in uriOptions, in other letters", host, `{"slaveok":true}`, "secondaryPreferred [] 15ms"},
		{"without slaveOk, the default remains", host + "slaveOk=false", "", "primary [] 15ms"},
		{"slaveOk is not a boolean", host + "slaveOk=1", "", `slaveOk: "1" is neither true nor false`},
		{"slaveOk and a mode", host + "slaveOk=true&readPreference=secondary", "",
			"slaveOk is deprecated, use ReadPreference."},
		{"the value of slaveOk does not matter", host + "readPreference=secondary", `{"slaveOk":false}`, pinning.BothSlaveOk},
		{"slaveOk and the same mode", host + "slaveOk=true&readPreference=secondaryPreferred", "", pinning.BothSlaveOk},
		{"slaveOk and tags", host + "slaveOk=true&readPreferenceTags=dc:ny", "", pinning.BothSlaveOk},
		{"primary with tags", host + "readPreference=primary&readPreferenceTags=dc:ny", "", "PRIMARY cannot be combined with tags"},
		{"the default with tags", host + "readPreferenceTags=dc:ny", "", "PRIMARY cannot be combined with tags"},
		{"primary with an empty tag set", host + "readPreference=primary&readPreferenceTags=", "", "primary [map[]] 15ms"},
		{"a mode by the name of its constant", host + "readPreference=PRIMARY_PREFERRED", "", "primaryPreferred [] 15ms"},
		{"a constant in uriOptions", host, `{"readPreference":"NEAREST"}`, "nearest [] 15ms"},
		{"an unknown constant, as the user spelled it", host + "readPreference=PRIMARY_ONLY", "", `"PRIMARY_ONLY"`},
		{"an unknown mode", host + "readPreference=second", "", "second"},
		{"the latency, by the name that it had", host + "secondaryAcceptableLatencyMS=40&readPreference=nearest", "",
			"nearest [] 40ms"},
		{"the latency, by the name of today", host + "localThresholdMS=0&readPreference=nearest", "", "nearest [] 0s"},
	} {
		for _, name := range []string{pinning.Newest, pinning.First} {
			policy, err := retry.Named(name)
			testkit.Check(t, err)
			s, _, err := resolve(row.uri, raw(t, append(d(), parsed(t, row.options)...)), policy)
			if err != nil {
				testkit.WantError(t, row.reason, err, row.want)
				continue
			}
			testkit.Equal(t, row.reason, fmt.Sprintln(s.preference.Reads(), s.preference.TagSets, s.LocalThreshold),
				row.want+"\n")
		}
	}
	s, _, err := resolve(host+"slaveOk=true&secondaryAcceptableLatencyMS=40", nil, &retry.Policy{})
	testkit.Check(t, err)
	testkit.Equal(t, "the current policy ignores unknown options", []any{s.preference.Reads(), s.LocalThreshold},
		[]any{selection.Primary, 15 * time.Millisecond})
}

// TestTransactionsHaveNoTimeout checks that the default options of transactions do not have timeoutMS, which would have
// no effect.
func TestTransactionsHaveNoTimeout(t *testing.T) {
	options := raw(t, parsed(t, `{"sessionOptions":{"defaultTransactionOptions":{"maxCommitTimeMS":5,"timeoutMS":5}}}`))
	_, err := openSession(&client{driver: &driver{policy: &retry.Policy{}}}, engine.Entity{Options: options})
	testkit.ErrorContains(t, err, "timeoutMS is not supported")
}

// TestAuthenticatorsAreShared checks that clients with the same credential share an authenticator.
func TestAuthenticatorsAreShared(t *testing.T) {
	const sha256, plain = "mongodb://u:p@localhost/?authMechanism=SCRAM-SHA-256",
		"mongodb://u:p@localhost/?authMechanism=PLAIN&authSource=$external"
	for _, row := range []struct {
		reason, first, second string
		shared                bool
	}{
		{"the same", sha256, sha256, true},
		{"another unrelated option", sha256, sha256 + "&maxPoolSize=3", true},
		{"another server", sha256, strings.Replace(sha256, "localhost", "localhost:27018", 1), true},
		{"another password", sha256, strings.Replace(sha256, "u:p", "u:q", 1), false},
		{"another user", sha256, strings.Replace(sha256, "u:p", "v:p", 1), false},
		{"another source", sha256, sha256 + "&authSource=other", false},
		{"another mechanism", sha256, strings.Replace(sha256, "256", "1", 1), false},
		{"a negotiated mechanism", "mongodb://u:p@localhost", "mongodb://u:p@localhost", true},
		{"a mechanism other than SCRAM", plain, plain, false},
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
		t.Error("an unknown mechanism is accepted")
	}
}

// someReplies returns a valid reply and malformed replies, by reason.
func someReplies(t testing.TB) map[string][]byte {
	good := wire.AppendMsg(nil, 0, 0, 0, raw(t, d("ok", 1)))
	change := func(at int, b byte) []byte { return slices.Concat(good[:at], []byte{b}, good[at+1:]) }
	return map[string][]byte{"a reply": good, "empty": nil, "no header": good[:10],
		"shorter than its length": good[:len(good)-1],
		"to another request":      change(8, 1), "another opcode": change(12, 1), "an unknown section": change(20, 9),
		"a document that is too long": change(21, 200),
		"compressed, and truncated":   change(12, 0xdc)}
}

func FuzzParse(f *testing.F) {
	for why, wm := range someReplies(f) {
		if doc, err := parse(0, wm); (err == nil) != (why == "a reply") || err != nil &&
			networkFailure(err).err.Kind != "protocol" {
			f.Errorf("%s: %v %v", why, doc, err)
		}
		f.Add(wm)
	}
	f.Fuzz(func(t *testing.T, wm []byte) {
		if doc, err := parse(0, wm); err == nil {
			testkit.Check(t, doc.Validate())
			_, _, _ = replyError(doc), okOf(doc), clusterTimeOf(doc)
		}
	})
}
