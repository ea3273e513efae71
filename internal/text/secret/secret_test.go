package secret

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestHide(t *testing.T) {
	testkit.Transcript(t, "testdata/hide.txt", func(_ *testing.T, text string) string { return Redact(text) })
	testkit.Transcript(t, "testdata/keeper.txt", func(t *testing.T, input string) string {
		argument, text, _ := strings.Cut(input, "\n")
		k, err := NewKeeper(argument), errors.New(text)
		hidden := k.Redact(text)
		testkit.Equal(t, "the text contains a secret", k.Contains([]byte(text)), hidden != text)
		testkit.Equal(t, "an error", k.Error(err).Error(), hidden)
		testkit.Equal(t, "an error without a secret is unchanged", k.Error(err) == err, hidden == text)
		return hidden
	})
}

// A connection string of a ledger has no secret, whatever characters the secret has.
func TestRedactURL(t *testing.T) {
	for text, want := range map[string]string{
		"mongodb://u:s' e<cr>/e?t@a:1/x?w=1&proxyPassword=a 'b&x=1": "mongodb://***@a:1/x?w=1&proxyPassword=***&x=1",
		"mongodb://a:1/?w=1": "mongodb://a:1/?w=1",
	} {
		testkit.Equal(t, text, RedactURL(text), want)
	}
}

// A keeper can learn secrets while others use it.
func TestLearn(t *testing.T) {
	k := NewKeeper("mongodb://ann:first@h/")
	const text = "first abc p@ss w/o%rd p%40ss%20w%2Fo%25rd p%40ss+w%2Fo%25rd p@ss%20w%2Fo%25rd xx"
	testkit.Equal(t, "before", k.Redact(text), strings.Replace(text, "first", "***", 1))
	for _, secret := range []string{"p@ss w/o%rd", "xx", ""} { // xx is too short
		k.Learn(secret)
	}
	testkit.Equal(t, "after", k.Redact(text), "*** abc *** *** *** *** xx")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			k.Learn("another")
		}
	}()
	for range 100 {
		if got := k.Redact("first"); got != "***" {
			t.Error(got)
		}
	}
	<-done
	testkit.Equal(t, "all", k.Redact("another p@ss w/o%rd"), "*** ***")
}

// A secret that contains another one is removed as a whole, whichever is known first.
func TestLongestFirst(t *testing.T) {
	for _, secrets := range [][]string{{"sesame-open", "sesame-open-now"}, {"sesame-open-now", "sesame-open"}} {
		k := NewKeeper()
		for _, s := range secrets {
			k.Learn(s)
		}
		testkit.Equal(t, strings.Join(secrets, ", "), k.Redact("sesame-open-now, sesame-open"), "***, ***")
	}
}

// Both separators of options end a secret.
func TestSeparators(t *testing.T) {
	for _, query := range []string{"w=1&proxyPassword=sesame12&x=1", "w=1;proxyPassword=sesame12;x=1"} {
		testkit.Equal(t, query, NewKeeper("mongodb://h/?"+query).Redact("the word is sesame12"), "the word is ***")
	}
}

type failingWriter struct{ io.Writer }

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriter(t *testing.T) {
	k := NewKeeper("mongodb://ann:sesame12@h/")
	var out strings.Builder
	n, err := k.Writer(&out).Write([]byte("sesame12!"))
	testkit.Check(t, err)
	testkit.Equal(t, "what is written", out.String(), "***!")
	testkit.Equal(t, "it has the length of the message", n, len("sesame12!"))
	n, err = k.Writer(failingWriter{}).Write([]byte("sesame12!"))
	testkit.Equal(t, "nothing is written", n, 0)
	testkit.Equal(t, "the error", err, io.ErrShortWrite)
}

func FuzzKeeper(f *testing.F) {
	f.Add("pass", "before ", " after")
	f.Add("p@w:/?", "mongodb://", "@h")
	f.Add("%41", "A", "A")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if len(secret) < shortest || strings.Contains(secret, "*") {
			t.Skip("a short password, or one that looks like the mark")
		}
		if len(secret) < long {
			before, after = before+" ", " "+after
		}
		// The surrounding text may contain the secret, or form it together with the mark.
		overlaps := before != "" && strings.HasPrefix(secret, before[len(before)-1:]) || after != "" &&
			strings.HasSuffix(secret, after[:1])
		if overlaps || strings.Contains(before+"\x00"+after, secret) {
			return
		}
		if got := NewKeeper("mongodb://user:" + secret + "@host/").Redact(before + secret + after); strings.Contains(got,
			secret) {
			t.Errorf("%q contains %q", got, secret)
		}
	})
}
