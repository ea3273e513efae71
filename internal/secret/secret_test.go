package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// What is secret by its place is hidden, and nothing else is.
func TestHide(t *testing.T) {
	for _, r := range []struct{ reason, in, want string }{
		{"a user", "mongodb://u:pw@a:1/?w=1", "mongodb://***@a:1/?w=1"},
		{"a password with an at sign", "at mongodb+srv://u:se@cret@a/", "at mongodb+srv://***@a/"},
		{"of a service", "cannot reach http://u:pw@a:1/v1: no", "cannot reach http://***@a:1/v1: no"},
		{"a token", "mongodb://a/?authMechanismProperties=AWS_SESSION_TOKEN:x&w=1", "mongodb://a/?authMechanismProperties=***&w=1"},
		{"the password of a key, in other letters", "--uri-option TLSCertificateKeyFilePassword=x", "--uri-option TLSCertificateKeyFilePassword=***"},
		{"its older name", "mongodb://a/?w=1;sslClientCertificateKeyPassword=x", "mongodb://a/?w=1;sslClientCertificateKeyPassword=***"},
		{"the password of a proxy", "proxyPassword=x", "proxyPassword=***"},
		{"what is hidden", "mongodb://***@a/?proxyPassword=***", "mongodb://***@a/?proxyPassword=***"},
		{"no secret", "mongodb://a:1/?tlsCAFile=x, me@b", "mongodb://a:1/?tlsCAFile=x, me@b"},
	} {
		testkit.Equal(t, r.reason, Hide(r.in), r.want)
	}
}

// A secret of an argument is known wherever it turns up, and in every form in which
// it may be written.
func TestKeeper(t *testing.T) {
	for _, r := range []struct{ reason, argument, text, want string }{
		{"a password", "mongodb://u:p%40ss%20w@h/", "p%40ss%20w p@ss w p%40ss+w u", "*** *** *** u"},
		{"the second of two connection strings", "mongodb://h/ mongodb://u:geheim@h/", "geheim", "***"},
		{"a password of a service", "--orchestration=http://u:geheim@h:1", "geheim", "***"},
		{"an option", "tlsCertificateKeyFilePassword=a b&c", "it is a b&c", "it is ***"},
		{"a value with a space, in its place", "proxyPassword=a b", "--uri-option 'proxyPassword=a b'", "--uri-option 'proxyPassword=***'"},
		{"an option in one word with its flag", "--uri-option=proxyPassword=geheim", "geheim", "***"},
		{"a token", "mongodb://h/?authMechanismProperties=SERVICE_NAME:mongodb,AWS_SESSION_TOKEN:a%2Fb", "a/b of mongodb", "*** of mongodb"},
		{"an option that is not secret", "appName=geheim", "geheim", "geheim"},
	} {
		k := NewKeeper(r.argument)
		testkit.Equal(t, r.reason, k.Hide(r.text), r.want)
		testkit.Equal(t, r.reason+": held", k.Holds([]byte(r.text)), r.want != r.text)
		err := errors.New(r.text)
		testkit.Equal(t, r.reason+": an error", k.Error(err), r.want)
		testkit.Equal(t, r.reason+": an error without a secret is as it was", k.Error(err) == err, r.want == r.text)
	}
}

// Secrets that turn up later are learned, also while others use the keeper.
func TestLearn(t *testing.T) {
	k := NewKeeper("mongodb://ann:first@h/")
	const text = "first abc p@ss w/o%rd p%40ss%20w%2Fo%25rd p%40ss+w%2Fo%25rd p@ss%20w%2Fo%25rd xx"
	testkit.Equal(t, "before", k.Hide(text), strings.Replace(text, "first", "***", 1))
	for _, secret := range []string{"p@ss w/o%rd", "xx", ""} { // xx is part of ordinary words
		k.Learn(secret)
	}
	testkit.Equal(t, "after", k.Hide(text), "*** abc *** *** *** *** xx")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			k.Learn("another")
		}
	}()
	for range 100 {
		if got := k.Hide("first"); got != "***" {
			t.Error(got)
		}
	}
	<-done
	testkit.Equal(t, "all", k.Hide("another p@ss w/o%rd"), "*** ***")
}

func TestTextCannotBePrinted(t *testing.T) {
	for _, value := range []string{"mongodb://user:" + testkit.Secret + "@h/", "http://h/?proxyPassword=" + testkit.Secret, testkit.Secret} {
		c := New(value)
		text, err := json.Marshal(map[string]any{"x": c})
		testkit.Check(t, err)
		b := bytes.NewBuffer(text)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			fmt.Fprintf(b, verb, c)
			fmt.Fprintf(b, verb, []any{&c, map[string]any{"x": c}, struct{ Inside Text }{c}})
		}
		testkit.Says(t, b.String())
		if strings.Contains(b.String(), fmt.Sprintf("%x", testkit.Secret)) {
			t.Errorf("it is there in hex: %s", b)
		}
		testkit.Equal(t, "the value", c.Reveal(), value)
	}
}

func FuzzKeeper(f *testing.F) {
	f.Add("pw", "before ", " after")
	f.Add("p@w:/?", "mongodb://", "@h")
	f.Add("%41", "A", "A")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if secret == "" || strings.ContainsAny(secret, "?*") {
			t.Skip("no password, or one that ends a connection string or looks like our mark")
		}
		// The parts around it may contain the secret, or join with the mark to it.
		overlaps := before != "" && strings.HasPrefix(secret, before[len(before)-1:]) || after != "" && strings.HasSuffix(secret, after[:1])
		if overlaps || strings.Contains(before+"\x00"+after, secret) {
			return
		}
		if got := NewKeeper("mongodb://user:" + secret + "@host/").Hide(before + secret + after); strings.Contains(got, secret) {
			t.Errorf("%q is in %q", secret, got)
		}
	})
}
