package cli

import (
	"bytes"
	"cmp"
	"io"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// connectionString is a connection string that can be passed on and not
// printed: every way of formatting it leaves secrets out.
type connectionString struct{ secret string }

// reveal is for the one place that connects.
func (c connectionString) reveal() string { return c.secret }

func (c connectionString) String() string   { return newRedactor(c.secret).text(c.secret) }
func (c connectionString) GoString() string { return c.String() }

// MarshalText keeps secrets out of JSON and its like.
func (c connectionString) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// redacted stands where a secret was.
const redacted = "***"

// userinfo finds credentials in any text, also of a connection string that
// nobody announced. The last @ before the path ends them.
var userinfo = regexp.MustCompile(`(mongodb(?:\+srv)?://)[^/?\s"'<>]*@`)

// secretOptions are URI options whose values are secrets, in lower case.
var secretOptions = []string{"authmechanismproperties", "tlscertificatekeyfilepassword", "sslclientcertificatekeypassword", "proxypassword"}

// redactor knows secrets and takes them out of texts. Its methods may be
// called concurrently.
type redactor struct {
	secrets []string // of the command line and the environment
	later   atomic.Pointer[[]string]
}

// also learns a secret that turned up later, such as the password of a cluster
// that was made.
func (r *redactor) also(secret string) {
	if len(secret) < 3 { // it stands in ordinary words
		return
	}
	for {
		before := r.later.Load()
		known := new(redactor)
		if before != nil {
			known.secrets = slices.Clone(*before)
		}
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), url.User(secret).String()} {
			known.add(form)
		}
		slices.SortFunc(known.secrets, longerFirst)
		known.secrets = slices.Compact(known.secrets)
		if r.later.CompareAndSwap(before, &known.secrets) {
			return
		}
	}
}

// all gives what is known so far.
func (r *redactor) all() []string {
	if later := r.later.Load(); later != nil {
		return append(slices.Clip(r.secrets), *later...)
	}
	return r.secrets
}

// longerFirst sorts secrets so that one that is part of another leaves nothing.
func longerFirst(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// newRedactor learns the secrets of all connection strings in some texts, such
// as the arguments of a command line.
func newRedactor(texts ...string) *redactor {
	r := &redactor{}
	for _, t := range texts {
		for _, scheme := range []string{"mongodb://", "mongodb+srv://"} {
			if _, rest, found := strings.Cut(t, scheme); found {
				r.learn(rest)
			}
		}
	}
	slices.SortFunc(r.secrets, longerFirst)
	r.secrets = slices.Compact(r.secrets)
	return r
}

func (r *redactor) learn(rest string) {
	hosts, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(hosts, "@"); at >= 0 {
		if _, password, found := strings.Cut(hosts[:at], ":"); found {
			r.add(password)
		}
	}
	for _, option := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(option, "=")
		if !slices.Contains(secretOptions, strings.ToLower(name)) {
			continue
		}
		r.add(value)
		if plain, err := url.QueryUnescape(value); err == nil {
			for _, property := range strings.Split(plain, ",") {
				if _, v, found := strings.Cut(property, ":"); found {
					r.add(v)
				}
			}
		}
	}
}

// add learns a secret as it was written, and as it is meant.
func (r *redactor) add(secret string) {
	forms := []string{secret}
	if plain, err := url.PathUnescape(secret); err == nil {
		forms = append(forms, plain)
	}
	for _, f := range forms {
		if f != "" {
			r.secrets = append(r.secrets, f)
		}
	}
}

// text takes secrets out of a text.
func (r *redactor) text(s string) string {
	s = userinfo.ReplaceAllString(s, "${1}"+redacted+"@")
	for _, secret := range r.all() {
		s = strings.ReplaceAll(s, secret, redacted)
	}
	return s
}

// writer takes secrets out of what is written. Each Write is a whole message.
func (r *redactor) writer(w io.Writer) io.Writer { return &redactingWriter{r, w} }

type redactingWriter struct {
	r *redactor
	w io.Writer
}

func (w *redactingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.r.text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// note takes secrets out of everything in a note that engine, server or
// deployment said. Names of files and tests come from suites and stay.
func (r *redactor) note(n result.Note) result.Note {
	switch n := n.(type) {
	case result.DeploymentReady:
		n.Info = r.text(n.Info)
		return n
	case result.TestFinished:
		return result.TestFinished{Verdict: r.verdict(n.Verdict)}
	default:
		return n
	}
}

// verdict takes secrets out of a verdict and of all its attempts.
func (r *redactor) verdict(of *result.Verdict) *result.Verdict {
	v := *of
	v.Reason = r.text(v.Reason)
	v.Mismatches = slices.Clone(v.Mismatches)
	for i := range v.Mismatches {
		m := &v.Mismatches[i]
		m.Message, m.Want, m.Got, m.Diff = r.text(m.Message), r.text(m.Want), r.text(m.Got), r.text(m.Diff)
	}
	v.Operations = slices.Clone(v.Operations)
	for i := range v.Operations {
		v.Operations[i].Outcome = r.value(reflect.ValueOf(v.Operations[i].Outcome)).Interface().(result.Outcome)
	}
	if v.Clients != nil {
		v.Clients = r.value(reflect.ValueOf(v.Clients)).Interface().([]result.ClientLog)
	}
	v.ServerLog = slices.Clone(v.ServerLog)
	for i := range v.ServerLog {
		v.ServerLog[i].Text = r.text(v.ServerLog[i].Text)
	}
	v.Attempts = slices.Clone(v.Attempts)
	for i, a := range v.Attempts {
		v.Attempts[i] = r.verdict(a)
	}
	return &v
}

// value copies a value of plain data with every string and every document
// redacted. Values are shared where they hold no secret.
func (r *redactor) value(v reflect.Value) reflect.Value {
	switch x := v.Interface().(type) {
	case string:
		return reflect.ValueOf(r.text(x))
	case bson.Raw:
		return reflect.ValueOf(r.document(x))
	case bson.RawValue:
		return reflect.ValueOf(r.rawValue(x))
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(r.value(v.Elem()))
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(r.value(v.Field(i)))
			}
		}
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(r.value(v.Index(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			out.SetMapIndex(entries.Key(), r.value(entries.Value()))
		}
		return out
	default:
		return v
	}
}

// hides reports whether bytes hold a secret.
func (r *redactor) hides(b []byte) bool {
	return userinfo.Match(b) || slices.ContainsFunc(r.all(), func(s string) bool { return bytes.Contains(b, []byte(s)) })
}

func (r *redactor) document(d bson.Raw) bson.Raw {
	if !r.hides(d) {
		return d
	}
	var decoded bson.D
	if bson.Unmarshal(d, &decoded) != nil {
		return nil // not a document: nothing that a report could show
	}
	clean, err := bson.Marshal(r.plain(decoded))
	if err != nil {
		return nil
	}
	return clean
}

func (r *redactor) rawValue(v bson.RawValue) bson.RawValue {
	if !r.hides(v.Value) {
		return v
	}
	wrapped, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	if err != nil {
		return bson.RawValue{}
	}
	return r.document(wrapped).Lookup("v")
}

// plain redacts the strings of a decoded document, names of fields included.
func (r *redactor) plain(v any) any {
	switch v := v.(type) {
	case string:
		return r.text(v)
	case bson.D:
		out := make(bson.D, len(v))
		for i, e := range v {
			out[i] = bson.E{Key: r.text(e.Key), Value: r.plain(e.Value)}
		}
		return out
	case bson.A:
		out := make(bson.A, len(v))
		for i, e := range v {
			out[i] = r.plain(e)
		}
		return out
	case bson.Binary:
		if r.hides(v.Data) {
			return bson.Binary{Subtype: v.Subtype, Data: []byte(redacted)}
		}
		return v
	default:
		return v
	}
}
