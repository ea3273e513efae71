package compare

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// folder replaces what differs from run to run by numbers in the order of
// appearance. The zero value is ready to use.
type folder struct {
	sessions [][]byte
	txn      map[int]int64 // the first txnNumber of a session
	objects  []bson.ObjectID
}

// A decisive field is one that matters to retries. Drivers may write all others
// as they like; suites judge them.
type decisive struct {
	name string
	show func(f *folder, v bson.RawValue, command bson.Raw) string
}

var decisives = []decisive{
	{"lsid", (*folder).session},
	{"txnNumber", (*folder).transaction},
	{"startTransaction", func(*folder, bson.RawValue, bson.Raw) string { return "starts transaction" }},
	{"autocommit", func(*folder, bson.RawValue, bson.Raw) string { return "in transaction" }},
	{"writeConcern", func(_ *folder, v bson.RawValue, _ bson.Raw) string {
		if w, err := v.Document().LookupErr("w"); err == nil {
			return "w " + (&folder{}).value(w)
		}
		return ""
	}},
	{"readConcern", func(_ *folder, v bson.RawValue, _ bson.Raw) string {
		if level, ok := v.Document().Lookup("level").StringValueOK(); ok {
			return level
		}
		return ""
	}},
	{"recoveryToken", func(*folder, bson.RawValue, bson.Raw) string { return "recovery token" }},
	{"documents", statements}, {"updates", statements}, {"deletes", statements}, {"ops", statements},
}

// command lists the decisive fields, each after a comma.
func (f *folder) command(command bson.Raw) string {
	var out strings.Builder
	for _, d := range decisives {
		v, err := command.LookupErr(d.name)
		if err != nil || v.Type != bson.TypeEmbeddedDocument && (d.name == "writeConcern" || d.name == "readConcern") {
			continue
		}
		if text := d.show(f, v, command); text != "" {
			out.WriteString(", " + text)
		}
	}
	return out.String()
}

func (f *folder) sessionIndex(v bson.RawValue) int {
	i := slices.IndexFunc(f.sessions, func(s []byte) bool { return bytes.Equal(s, v.Value) })
	if i < 0 {
		i = len(f.sessions)
		f.sessions = append(f.sessions, slices.Clone(v.Value))
	}
	return i
}

func (f *folder) session(v bson.RawValue, _ bson.Raw) string {
	return fmt.Sprintf("session %d", f.sessionIndex(v)+1)
}

// transaction counts the transaction numbers of a session from 1.
func (f *folder) transaction(v bson.RawValue, command bson.Raw) string {
	n, ok := v.AsInt64OK()
	if !ok {
		return "txnNumber that is not a number"
	}
	i := f.sessionIndex(command.Lookup("lsid"))
	if f.txn == nil {
		f.txn = map[int]int64{}
	}
	first, seen := f.txn[i]
	if !seen {
		first = n
		f.txn[i] = n
	}
	return fmt.Sprintf("transaction %d", n-first+1)
}

func statements(_ *folder, v bson.RawValue, _ bson.Raw) string {
	list, ok := v.ArrayOK()
	if !ok {
		return ""
	}
	values, err := list.Values()
	if err != nil {
		return ""
	}
	if len(values) == 1 {
		return "1 statement"
	}
	return fmt.Sprintf("%d statements", len(values))
}

// value renders a value: numbers by their value, keys in order of their names,
// generated ids by their order.
func (f *folder) value(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return fmt.Sprint(v.AsInt64())
	case bson.TypeDouble:
		return strings.TrimSuffix(fmt.Sprint(v.Double()), ".0")
	case bson.TypeString:
		return fmt.Sprintf("%q", v.StringValue())
	case bson.TypeBoolean:
		return fmt.Sprint(v.Boolean())
	case bson.TypeNull:
		return "null"
	case bson.TypeObjectID:
		id := v.ObjectID()
		i := slices.Index(f.objects, id)
		if i < 0 {
			i = len(f.objects)
			f.objects = append(f.objects, id)
		}
		return fmt.Sprintf("ObjectID %d", i+1)
	case bson.TypeDateTime, bson.TypeTimestamp, bson.TypeBinary:
		return v.Type.String()
	case bson.TypeArray:
		values, err := v.Array().Values()
		if err != nil {
			return "broken array"
		}
		out := make([]string, len(values))
		for i, e := range values {
			out[i] = f.value(e)
		}
		return "[" + strings.Join(out, ", ") + "]"
	case bson.TypeEmbeddedDocument:
		return f.document(v.Document())
	}
	return v.String()
}

// unordered renders a list whose order has no meaning: names, indexes.
func (f *folder) unordered(list bson.RawArray) string {
	values, err := list.Values()
	if err != nil {
		return "broken array"
	}
	var out []string
	for _, v := range values {
		out = append(out, f.value(v))
	}
	slices.Sort(out)
	return "in any order [" + strings.Join(out, ", ") + "]"
}

// volatile are fields of replies that depend on time and place, and fields that
// results may lack ("CRUD", Results).
var volatile = []string{"$clusterTime", "operationTime", "signature", "electionId", "opTime", "localTime", "connectionId", "uuid", "shards", "acknowledged", "insertedId", "insertedIds", "upsertedIds"}

func (f *folder) document(doc bson.Raw) string {
	elements, err := doc.Elements()
	if err != nil {
		return "broken document"
	}
	slices.SortFunc(elements, func(a, b bson.RawElement) int { return strings.Compare(a.Key(), b.Key()) })
	var out []string
	for _, e := range elements {
		// Engines may add the counts of other operations to a result.
		n, number := e.Value().AsInt64OK()
		if !slices.Contains(volatile, e.Key()) && !(number && n == 0 && strings.HasSuffix(e.Key(), "Count")) {
			out = append(out, e.Key()+": "+f.value(e.Value()))
		}
	}
	return "{" + strings.Join(out, ", ") + "}"
}
