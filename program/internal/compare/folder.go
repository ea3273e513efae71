package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/text/plural"
)

// folder replaces values that differ between runs by numbers in the order of
// appearance. The zero value is ready to use.
type folder struct {
	sessions, objects []string         // the bytes of logical session ids and ObjectIDs
	names             []string         // UUIDs and addresses in texts
	txn               map[string]int64 // session → its first txnNumber
}

// passing finds the UUIDs and the addresses of a deployment of our own in a text.
var passing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(127\.0\.0\.1|localhost|\[::1\]):\d+`)
})

// number returns the position of a value in the order of appearance, from 1.
func number(seen *[]string, v bson.RawValue) int { return position(seen, string(v.Value)) }

func position(seen *[]string, value string) int {
	i := slices.Index(*seen, value)
	if i < 0 {
		i = len(*seen)
		*seen = append(*seen, value)
	}
	return i + 1
}

// decisive are the command fields that matter to retries, in the order shown. Drivers are free in all others. Suites
// check these.
var decisive = []string{"lsid", "txnNumber", "startTransaction", "autocommit", "writeConcern", "readConcern",
	"recoveryToken",
	"documents", "updates", "deletes", "ops"}

// command lists the decisive fields, each after a comma.
func (f *folder) command(command bson.Raw) (out string) {
	for _, field := range decisive {
		if v, err := command.LookupErr(field); err == nil {
			if text := f.decisive(field, v, command); text != "" {
				out += ", " + text
			}
		}
	}
	return out
}

func (f *folder) decisive(field string, v bson.RawValue, command bson.Raw) string {
	doc, _ := v.DocumentOK()
	switch field {
	case "lsid":
		return fmt.Sprintf("session %d", number(&f.sessions, v))
	case "txnNumber":
		return f.transaction(v, command)
	case "startTransaction":
		return "starts transaction"
	case "autocommit":
		return "in transaction"
	case "writeConcern":
		if w := doc.Lookup("w"); w.Type != 0 {
			return "w " + f.value(w)
		}
		return ""
	case "readConcern":
		level, _ := doc.Lookup("level").StringValueOK()
		return level
	case "recoveryToken":
		return "recovery token"
	}
	list, _ := v.ArrayOK()
	values, err := list.Values()
	if v.Type != bson.TypeArray || err != nil {
		return ""
	}
	return plural.Of(len(values), "statement")
}

// transaction renders a transaction number, relative to the first of its session.
func (f *folder) transaction(v bson.RawValue, command bson.Raw) string {
	n, ok := v.AsInt64OK()
	if !ok {
		return "txnNumber that is not a number"
	}
	session := string(command.Lookup("lsid").Value)
	if f.txn == nil {
		f.txn = map[string]int64{}
	}
	first, seen := f.txn[session]
	if !seen {
		first = n
		f.txn[session] = n
	}
	return fmt.Sprintf("transaction %d", n-first+1)
}

// value renders a value: numbers without their type, documents by sorted keys, ObjectIDs in the order of appearance.
func (f *folder) value(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return fmt.Sprint(v.AsInt64())
	case bson.TypeDouble:
		return fmt.Sprint(v.Double())
	case bson.TypeString:
		return fmt.Sprintf("%q", passing().ReplaceAllStringFunc(v.StringValue(), func(name string) string {
			return fmt.Sprintf("name %d", position(&f.names, name))
		}))
	case bson.TypeObjectID:
		return fmt.Sprintf("ObjectID %d", number(&f.objects, v))
	case bson.TypeDateTime, bson.TypeTimestamp, bson.TypeBinary:
		return v.Type.String()
	case bson.TypeArray:
		return f.list(v.Array(), false)
	case bson.TypeEmbeddedDocument:
		return f.document(v.Document())
	}
	return v.String()
}

// list renders an array, sorted if its order has no meaning.
func (f *folder) list(list bson.RawArray, anyOrder bool) string {
	values, err := list.Values()
	if err != nil {
		return "broken array"
	}
	out, before := make([]string, len(values)), ""
	for i, v := range values {
		out[i] = f.value(v)
	}
	if anyOrder {
		slices.Sort(out)
		before = "in any order "
	}
	return before + "[" + strings.Join(out, ", ") + "]"
}

// volatile are reply fields that depend on time or server, and fields that results may omit ("CRUD", Results).
var volatile = []string{"$clusterTime", "operationTime", "signature", "electionId", "opTime", "localTime",
	"connectionId", "uuid",
	"shards", "acknowledged", "insertedId", "insertedIds", "upsertedIds"}

func (f *folder) document(doc bson.Raw) string {
	elements, err := doc.Elements()
	if err != nil {
		return "broken document"
	}
	slices.SortFunc(elements, func(a, b bson.RawElement) int { return strings.Compare(a.Key(), b.Key()) })
	var out []string
	for _, e := range elements {
		if e.Key() == "_data" { // of a resume token: a time and the id of a collection
			out = append(out, "resume token")
			continue
		}
		// Engines may add zero counts of other operations to a result.
		n, number := e.Value().AsInt64OK()
		if !slices.Contains(volatile, e.Key()) && !(number && n == 0 && strings.HasSuffix(e.Key(), "Count")) {
			out = append(out, e.Key()+": "+f.value(e.Value()))
		}
	}
	return "{" + strings.Join(out, ", ") + "}"
}
