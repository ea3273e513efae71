// Package secret finds secrets in connection strings, URLs and options, and removes them from texts.
package secret

import (
	"cmp"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Mark replaces a secret.
const Mark = "***"

// options are the connection string options with secret values (URI Options; Authentication,
// "Auth Related Options"), in lower case.
var options = []string{"authmechanismproperties", "proxypassword", "sslclientcertificatekeypassword",
	"tlscertificatekeyfilepassword"}

// IsOption reports whether the value of a connection string option is secret.
func IsOption(name string) bool { return slices.Contains(options, strings.ToLower(name)) }

// These match what is secret by its position: values of secret options, and credentials in a URL. Credentials extend to
// the last @, because passwords may contain an unescaped slash or question mark.
var (
	userInfo    = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s"'<>]*@`)
	optionOfURL = regexp.MustCompile(`(?i)\b(` + strings.Join(options, "|") + `)=[^&;]*`)
	optionValue = regexp.MustCompile(`(?i)\b(` + strings.Join(options, "|") + `)=[^&;\s"'<>]*`)
)

// Redact removes what is secret by its position. It needs no Keeper.
func Redact(text string) string {
	return optionValue.ReplaceAllString(userInfo.ReplaceAllString(text, "${1}"+Mark+"@"), "$1="+Mark)
}

// RedactURL removes the secrets of a text that is one connection string or URL, whatever characters they contain.
func RedactURL(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if at := strings.LastIndex(rest, "@"); found && at >= 0 {
		text = scheme + "://" + Mark + rest[at:]
	}
	return optionOfURL.ReplaceAllString(text, "$1="+Mark)
}

// Find returns the secrets in a URL, a connection string, an option NAME=VALUE, or an argument that contains one.
func Find(text string) (found []string) {
	for _, after, more := strings.Cut(text, "://"); more; _, after, more = strings.Cut(after, "://") {
		found = append(found, ofURL(after)...)
	}
	name, value, _ := strings.Cut(strings.TrimPrefix(text, "--uri-option="), "=")
	return append(found, ofOption(name, value)...)
}

// ofURL returns the secrets in a URL without its scheme.
func ofURL(rest string) (found []string) {
	// Any @ may end the password, or be a part of it or of an option. A parser of flags splits at =.
	_, password, _ := strings.Cut(rest, ":")
	for i, c := range password {
		if c == '@' {
			name, _, _ := strings.Cut(password[:i], "=")
			found = append(found, password[:i], name)
		}
	}
	for _, query, more := strings.Cut(rest, "?"); more; _, query, more = strings.Cut(query, "?") {
		for _, option := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' || c == ';' }) {
			name, value, _ := strings.Cut(option, "=")
			found = append(found, ofOption(name, value)...)
		}
	}
	return found
}

// ofOption returns the secrets of an option. authMechanismProperties contain names that are not secret.
func ofOption(name, value string) (found []string) {
	if !IsOption(name) || value == "" || value == Mark {
		return nil
	}
	found = []string{value}
	if plain, err := url.QueryUnescape(value); err == nil {
		for _, property := range strings.Split(plain, ",") {
			if key, v, ok := strings.Cut(property, ":"); ok && strings.EqualFold(key, "AWS_SESSION_TOKEN") {
				found = append(found, v)
			}
		}
	}
	return found
}

// Keeper keeps a list of secrets and removes them from texts. Its methods may be called concurrently.
type Keeper struct {
	mutex sync.RWMutex
	known []string // longest first; replaced, never modified
}

// NewKeeper returns a keeper of the secrets in some texts, such as command line arguments.
func NewKeeper(texts ...string) *Keeper {
	k := &Keeper{}
	k.Read(texts...)
	return k
}

// Read adds the secrets found in some texts.
func (k *Keeper) Read(texts ...string) {
	for _, t := range texts {
		k.learn(Find(t)...)
	}
}

// Learn adds one secret, such as the password of a new cluster.
func (k *Keeper) Learn(secret string) { k.learn(secret) }

func (k *Keeper) learn(secrets ...string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	known := slices.Clone(k.known)
	for _, s := range secrets {
		known = append(known, forms(s)...)
	}
	// Longest first: replacing a part of a longer secret would leave the rest of it.
	slices.SortFunc(known, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	k.known = slices.Compact(known)
}

// forms returns a secret as written, unescaped, and escaped in the ways that other programs may use.
func forms(secret string) (all []string) {
	for _, decode := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
		if plain, err := decode(secret); err == nil {
			all = append(all, plain)
		}
	}
	for _, s := range append(all, secret) {
		all = append(all, s, url.QueryEscape(s), url.PathEscape(s), url.User(s).String())
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

func (k *Keeper) all() []string {
	k.mutex.RLock()
	defer k.mutex.RUnlock()
	return k.known
}

// Redact removes secrets from a text: known ones first, because the expressions could match only a part of one.
func (k *Keeper) Redact(text string) string {
	for _, secret := range k.all() {
		text = replace(text, secret)
	}
	return Redact(text)
}

// A secret of fewer than shortest bytes is removed only by its position. A secret of fewer than long bytes is also
// removed where it stands alone. Otherwise, ordinary words would lose letters.
const shortest, long = 3, 8

func replace(text, secret string) string {
	var out strings.Builder
	for {
		i := index(text, secret)
		if i < 0 {
			return out.String() + text
		}
		out.WriteString(text[:i] + Mark)
		text = text[i+len(secret):]
	}
}

// index returns the first index of a secret in a text, or -1.
func index(text, secret string) int {
	for from := 0; len(secret) >= shortest; {
		i := strings.Index(text[from:], secret)
		if i < 0 {
			break
		}
		at, end := from+i, from+i+len(secret)
		// no escape sequence
		within := at > 0 && isWord(text[at-1]) && isWord(secret[0]) && !(at > 1 && text[at-2] == '\\') ||
			end < len(text) && isWord(text[end]) && isWord(secret[len(secret)-1])
		if !within || len(secret) >= long {
			return at
		}
		from = at + 1
	}
	return -1
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

// Contains reports whether bytes contain a secret.
func (k *Keeper) Contains(b []byte) bool {
	return userInfo.Match(b) || optionValue.Match(b) ||
		slices.ContainsFunc(k.all(), func(s string) bool { return index(string(b), s) >= 0 })
}

// Error removes secrets from an error. It returns an error without secrets unchanged.
func (k *Keeper) Error(err error) error {
	if hidden := k.Redact(err.Error()); hidden != err.Error() {
		return errors.New(hidden)
	}
	return err
}

// Writer returns a writer that removes secrets. Each Write must be a whole message.
func (k *Keeper) Writer(w io.Writer) io.Writer { return &writer{k, w} }

type writer struct {
	k *Keeper
	w io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.k.Redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
