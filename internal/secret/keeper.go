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
