package reference

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/retry"
)

// TestSettings shows the settings that differ from those of a client without options, and which values of URI options
// are not ignored (URI Options, "List of specified options").
func TestSettings(t *testing.T) {
	settled := func(policies ...string) func(*testing.T, []string) (string, error) {
		return func(t *testing.T, a []string) (text string, err error) {
			for i, name := range policies {
				got, failed := settledUnder(t, name, a)
				if i > 0 && (got != text || fmt.Sprint(failed) != fmt.Sprint(err)) {
					t.Errorf("%q: policy %s: %s, %v", a, name, got, failed)
				}
				text, err = got, failed
			}
			return text, err
		}
	}
	testkit.Commands{
		"client":         settled(""),
		"client-of-2014": settled(pinning.Newest, pinning.First),
		"values": func(t *testing.T, a []string) (string, error) { // of several options: they have the same valid values
			var kept, before []string
			for i, name := range strings.Fields(a[0]) {
				before, kept = kept, nil
				for _, value := range strings.Fields(a[1]) {
					if valid(enginekit.Option{Name: name, Value: strings.Replace(value, "EMPTY", "", 1)}) {
						kept = append(kept, value)
					}
				}
				if i > 0 {
					testkit.Equal(t, name, kept, before)
				}
			}
			return "valid: " + strings.Join(kept, " "), nil
		},
	}.Play(t, "testdata/settings.txt")
}

// settledUnder returns the settings of a client under a policy. a is a connection string and uriOptions. All settings
// are shown for a client without options.
func settledUnder(t *testing.T, policy string, a []string) (string, error) {
	p, err := retry.Named(policy)
	testkit.Check(t, err)
	list := func(uri, uriOptions string) ([]string, error) {
		s, o, err := resolve(uri, raw(t, append(d(), parsed(t, uriOptions)...)), p)
		if err != nil {
			return nil, err
		}
		var out []string
		for _, of := range []struct {
			name  string
			value any
		}{
			{"hosts", o.Hosts}, {"direct", o.Direct}, {"set", o.ReplicaSet}, {"app", o.AppName}, {"TLS", o.TLSConfig != nil},
			{"auth", o.Auth}, {"pool", o.MaxPoolSize}, {"mode", s.preference.Reads()}, {"tags", s.preference.TagSets},
			{"staleness", s.preference.MaxStalenessSeconds}, {"threshold", s.LocalThreshold},
			{"retryReads", s.RetryReads}, {"retryWrites", s.RetryWrites}, {"timeout", s.timeout},
			{"selection", s.ServerSelectionTimeout}, {"heartbeat", s.HeartbeatInterval}, {"queue", s.waitQueueTimeout},
			{"adaptive", s.maxAdaptiveRetries}, {"retargeting", s.EnableOverloadRetargeting},
			{"writeConcern", raw(t, append(d(), s.writeConcern...))}, {"warnings", s.warnings},
		} {
			v := reflect.ValueOf(of.value)
			if v.Kind() == reflect.Pointer && !v.IsNil() {
				of.value = v.Elem().Interface()
			}
			out = append(out, fmt.Sprintf("%s=%v", of.name, of.value))
		}
		return out, nil
	}
	got, err := list(a[0], a[1])
	plain, failed := list("mongodb://a:1/", "")
	testkit.Check(t, failed)
	if a[1] != "" || strings.Contains(a[0], "?") {
		got = slices.DeleteFunc(got, func(text string) bool { return slices.Contains(plain, text) })
	}
	return cmp.Or(strings.Join(got, " "), testkit.Either(err == nil, "as by default", "")), err
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
