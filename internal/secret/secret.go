// Package secret keeps what must not be shown out of what is shown: it knows what
// is secret in connection strings and URLs, and finds it in any text.
package secret

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Mark stands where a secret was.
const Mark = "***"

// options are the options of connection strings whose values are secrets (URI
// Options; Authentication, "authMechanismProperties"), in lower case.
var options = []string{"authmechanismproperties", "proxypassword", "sslclientcertificatekeypassword", "tlscertificatekeyfilepassword"}

// IsOption reports whether the value of an option of connection strings is secret.
func IsOption(name string) bool { return slices.Contains(options, strings.ToLower(name)) }

// The expressions for what is secret by its place: credentials before the host of
// a URL, which the last @ before the path ends, and the values of options.
var (
	userInfo    = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?\s"'<>]*@`)
	optionValue = regexp.MustCompile(`(?i)\b(` + strings.Join(options, "|") + `)=[^&;\s"'<>]*`)
)

// Hide takes out of a text what is secret by its place, also where nobody has
// announced it.
func Hide(text string) string {
	return optionValue.ReplaceAllString(userInfo.ReplaceAllString(text, "${1}"+Mark+"@"), "$1="+Mark)
}

// Find gives the secrets of a text that is a URL, a connection string, an option
// NAME=VALUE, or an argument that holds one of them.
func Find(text string) (found []string) {
	for rest := text; ; {
		_, after, more := strings.Cut(rest, "://")
		if !more {
			break
		}
		found = append(found, ofURL(after)...)
		rest = after
	}
	name, value, _ := strings.Cut(strings.TrimPrefix(text, "--uri-option="), "=")
	return append(found, ofOption(name, value)...)
}

// ofURL gives the secrets of what follows the scheme.
func ofURL(rest string) (found []string) {
	hosts, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(hosts, "@"); at >= 0 {
		if _, password, with := strings.Cut(hosts[:at], ":"); with {
			found = append(found, password)
		}
	}
	for _, option := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(option, "=")
		found = append(found, ofOption(name, value)...)
	}
	return found
}

// ofOption gives the secrets of an option: of properties, what is not a name of a
// service or mechanism.
func ofOption(name, value string) (found []string) {
	if !IsOption(name) || value == "" || value == Mark {
		return nil
	}
	found = []string{value}
	if plain, err := url.QueryUnescape(value); err == nil {
		for _, property := range strings.Split(plain, ",") {
			if key, v, with := strings.Cut(property, ":"); with && strings.EqualFold(key, "AWS_SESSION_TOKEN") {
				found = append(found, v)
			}
		}
	}
	return found
}

// Keeper knows secrets and takes them out of texts. Its methods may be called
// concurrently.
type Keeper struct {
	mutex sync.RWMutex
	known []string // sorted, and replaced as a whole
}

// NewKeeper knows the secrets of some texts, such as the arguments of a command
// line.
func NewKeeper(texts ...string) *Keeper {
	k := &Keeper{}
	k.Read(texts...)
	return k
}

// Read learns the secrets of some texts.
func (k *Keeper) Read(texts ...string) {
	for _, t := range texts {
		k.learn(Find(t)...)
	}
}

// Learn learns a secret that turns up, such as the password of a cluster that was
// made. A short one stands in ordinary words, and is not learned.
func (k *Keeper) Learn(secret string) {
	if len(secret) >= 3 {
		k.learn(secret)
	}
}

func (k *Keeper) learn(secrets ...string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	known := slices.Clone(k.known)
	for _, s := range secrets {
		known = append(known, forms(s)...)
	}
	// A secret that is part of a longer one must leave nothing of that.
	slices.SortFunc(known, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	k.known = slices.Compact(known)
}

// forms gives a secret as it was written, as it is meant, and as others may write
// it.
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

// all gives what is known so far.
func (k *Keeper) all() []string {
	k.mutex.RLock()
	defer k.mutex.RUnlock()
	return k.known
}

// Hide takes secrets out of a text: those that are known go first, of which an
// expression might see a part.
func (k *Keeper) Hide(text string) string {
	for _, secret := range k.all() {
		text = strings.ReplaceAll(text, secret, Mark)
	}
	return Hide(text)
}

// Holds reports whether bytes hold a secret.
func (k *Keeper) Holds(b []byte) bool {
	return userInfo.Match(b) || optionValue.Match(b) ||
		slices.ContainsFunc(k.all(), func(s string) bool { return bytes.Contains(b, []byte(s)) })
}

// Error takes secrets out of an error, which keeps what it is if it has none.
func (k *Keeper) Error(err error) error {
	if hidden := k.Hide(err.Error()); hidden != err.Error() {
		return errors.New(hidden)
	}
	return err
}

// Writer takes secrets out of what is written. Each Write is a whole message.
func (k *Keeper) Writer(w io.Writer) io.Writer { return &writer{k, w} }

type writer struct {
	k *Keeper
	w io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.k.Hide(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
