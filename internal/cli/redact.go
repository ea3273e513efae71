package cli

import (
	"reflect"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/secret"
	"github.com/unified-test-runner/utr/result"
)

// redactor removes the known secrets from notes for reports.
type redactor struct{ *secret.Keeper }

// note removes secrets from everything in a note that engine, server or deployment
// reported. Names of files and tests come from suites and stay.
func (r redactor) note(n result.Note) result.Note {
	switch n := n.(type) {
	case result.DeploymentReady:
		n.Info = r.Hide(n.Info)
		return n
	case result.TestFinished:
		return result.TestFinished{Verdict: r.verdict(n.Verdict)}
	case result.CellFinished:
		n.Broken, n.Summary.Problems = r.Hide(n.Broken), r.texts(n.Summary.Problems)
		return n
	case result.RunFinished:
		n.Summary.Problems = r.texts(n.Summary.Problems)
		return n
	default:
		return n
	}
}

// texts removes secrets from texts.
func (r redactor) texts(all []string) []string {
	all = slices.Clone(all)
	for i := range all {
		all[i] = r.Hide(all[i])
	}
	return all
}

// verdict removes secrets from a verdict and all its attempts.
func (r redactor) verdict(of *result.Verdict) *result.Verdict {
	v := *of
	v.Reason, v.Rerun = r.Hide(v.Reason), r.texts(v.Rerun)
	v.Mismatches = slices.Clone(v.Mismatches)
	for i := range v.Mismatches {
		m := &v.Mismatches[i]
		m.Message, m.Want, m.Got, m.Diff = r.Hide(m.Message), r.Hide(m.Want), r.Hide(m.Got), r.Hide(m.Diff)
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
		v.ServerLog[i].Text = r.Hide(v.ServerLog[i].Text)
	}
	v.Attempts = slices.Clone(v.Attempts)
	for i, a := range v.Attempts {
		v.Attempts[i] = r.verdict(a)
	}
	return &v
}

// value copies a value of plain data with every string and every document redacted.
// Values without secrets are shared.
func (r redactor) value(v reflect.Value) reflect.Value {
	switch x := v.Interface().(type) {
	case string:
		return reflect.ValueOf(r.Hide(x))
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

func (r redactor) document(d bson.Raw) bson.Raw {
	if !r.Holds(d) {
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

func (r redactor) rawValue(v bson.RawValue) bson.RawValue {
	if !r.Holds(v.Value) {
		return v
	}
	wrapped, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	if err != nil {
		return bson.RawValue{}
	}
	return r.document(wrapped).Lookup("v")
}

// plain redacts the strings of a decoded document, names of fields included.
func (r redactor) plain(v any) any {
	switch v := v.(type) {
	case string:
		return r.Hide(v)
	case bson.D:
		out := make(bson.D, len(v))
		for i, e := range v {
			out[i] = bson.E{Key: r.Hide(e.Key), Value: r.plain(e.Value)}
		}
		return out
	case bson.A:
		out := make(bson.A, len(v))
		for i, e := range v {
			out[i] = r.plain(e)
		}
		return out
	case bson.Binary:
		if r.Holds(v.Data) {
			return bson.Binary{Subtype: v.Subtype, Data: []byte(secret.Mark)}
		}
		return v
	default:
		return v
	}
}
