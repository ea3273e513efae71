package secret

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Keeper knows secrets and removes them from texts. Its methods may be called concurrently.
type Keeper struct {
	mutex sync.RWMutex
	known []string // longest first; replaced, never modified
}

// NewKeeper returns a keeper that knows the secrets in some texts, such as command line arguments.
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

// Learn adds a secret, such as the password of a new cluster. It ignores short ones, which also occur in ordinary
// words.
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
	// Longest first: replacing a part of a longer secret would leave the rest of it.
	slices.SortFunc(known, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	k.known = slices.Compact(known)
}

// forms returns a secret as written, unescaped, and in the ways that others may escape it.
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
		text = strings.ReplaceAll(text, secret, Mark)
	}
	return Redact(text)
}

// Contains reports whether bytes contain a secret.
func (k *Keeper) Contains(b []byte) bool {
	return userInfo.Match(b) || optionValue.Match(b) ||
		slices.ContainsFunc(k.all(), func(s string) bool { return bytes.Contains(b, []byte(s)) })
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
