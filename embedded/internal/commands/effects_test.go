package commands

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

const effects = "testdata/cases/effects.txt"

// effectBases are commands without options, by the shapes of fields.txt: in the outer document, @ stands for the document
// with the fields of the shape.
var effectBases = map[string][2]string{
	"insert":                     {`@`, `{"insert":"c","documents":[{"_id":1},{"_id":9,"a":1}]}`},
	"update":                     {`@`, `{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"_id":5}}},{"q":{"_id":2},"u":{"$set":{"a":-1}}}]}`},
	"update.updates":             {`{"update":"c","updates":[@]}`, `{"q":{},"u":{"$set":{"z":1}}}`},
	"delete":                     {`@`, `{"delete":"c","deletes":[{"q":{"$expr":{"$eq":[1,{"$divide":[1,"$zero"]}]}},"limit":1},{"q":{"_id":2},"limit":1}]}`},
	"delete.deletes":             {`{"delete":"c","deletes":[@]}`, `{"q":{"s":"b"},"limit":1}`},
	"findAndModify":              {`@`, `{"findAndModify":"c","update":{"$set":{"z":1}}}`},
	"bulkWrite":                  {`@`, `{"bulkWrite":1,"ops":[{"insert":0,"document":{"_id":1}},{"insert":0,"document":{"_id":9,"a":1}}],"nsInfo":[{"ns":"db.c"}]}`},
	"bulkWrite.nsInfo":           {`{"bulkWrite":1,"ops":[{"insert":0,"document":{"_id":9}}],"nsInfo":[@]}`, `{"ns":"db.c"}`},
	"bulkWrite.ops.insert":       {`{"bulkWrite":1,"ops":[@],"nsInfo":[{"ns":"db.c"},{"ns":"db.d"}]}`, `{"insert":0,"document":{"_id":9}}`},
	"bulkWrite.ops.update":       {`{"bulkWrite":1,"ops":[@],"nsInfo":[{"ns":"db.c"},{"ns":"db.d"}]}`, `{"update":0,"filter":{},"updateMods":{"$set":{"z":1}}}`},
	"bulkWrite.ops.delete":       {`{"bulkWrite":1,"ops":[@],"nsInfo":[{"ns":"db.c"},{"ns":"db.d"}]}`, `{"delete":0,"filter":{"s":"b"}}`},
	"find":                       {`@`, `{"find":"c"}`},
	"killCursors":                {`@`, `{"killCursors":"c","cursors":[]}`},
	"getMore":                    {`@`, `{"getMore":{"$numberLong":"5"},"collection":"c"}`},
	"aggregate":                  {`@`, `{"aggregate":"c","pipeline":[{"$out":"valid"}],"cursor":{}}`},
	"cursor":                     {`{"aggregate":"c","pipeline":[],"cursor":@}`, `{}`},
	"explain":                    {`@`, `{"explain":{"find":"c"},"verbosity":"queryPlanner"}`},
	"validate":                   {`@`, `{"validate":"c"}`},
	"count":                      {`@`, `{"count":"c"}`},
	"distinct":                   {`@`, `{"distinct":"c","key":"s"}`},
	"mapReduce":                  {`@`, `{"mapReduce":"c","map":"function() { emit(this.s, 1) }","reduce":"function(k, v) { return 1 }","out":{"inline":1}}`},
	"create":                     {`@`, `{"create":"new"}`},
	"create.timeseries":          {`{"create":"new","timeseries":@}`, `{"timeField":"t"}`},
	"create.indexOptionDefaults": {`{"create":"new","indexOptionDefaults":@}`, `{}`},
	"collStats":                  {`@`, `{"collStats":"c"}`},
	"create.clusteredIndex":      {`{"create":"new","clusteredIndex":@}`, `{"key":{"_id":1},"unique":true}`},
	"collation":                  {`{"find":"c","sort":{"s":1,"_id":1},"collation":@}`, `{"locale":"en"}`},
	"drop":                       {`@`, `{"drop":"c"}`},
	"createIndexes":              {`@`, `{"createIndexes":"c","indexes":[{"key":{"n":1},"name":"n"}]}`},
	"createIndexes.indexes":      {`{"createIndexes":"c","indexes":[@]}`, `{"key":{"n":1},"name":"n"}`},
	"dropIndexes":                {`@`, `{"dropIndexes":"c","index":"a"}`},
	"listIndexes":                {`@`, `{"listIndexes":"c"}`},
	"listCollections":            {`@`, `{"listCollections":1}`},
	"listDatabases":              {`@`, `{"listDatabases":1}`},
	"collMod":                    {`@`, `{"collMod":"c"}`},
	"collMod.index":              {`{"collMod":"c","index":@}`, `{"name":"a","hidden":true}`},
	"renameCollection":           {`@`, `{"renameCollection":"db.c","to":"db.valid"}`},
	"commitTransaction":          {`@`, `{"commitTransaction":1}`},
	"abortTransaction":           {`@`, `{"abortTransaction":1}`},
	"$changeStream":              {`{"aggregate":"c","pipeline":[{"$changeStream":@}],"cursor":{}}`, `{}`},
	"$collStats":                 {`{"aggregate":"c","pipeline":[{"$collStats":@}],"cursor":{}}`, `{}`},
	"checkMetadataConsistency":   {`@`, `{"checkMetadataConsistency":1}`},
	"shardCollection":            {`@`, `{"shardCollection":"db.c","key":{"a":1}}`},
}

// effectData is what the commands of TestEffects find.
var effectData = []string{
	`{"insert":"c","documents":[{"_id":1,"a":1,"s":"B","x":[1,2],"zero":0},{"_id":2,"a":2,"s":"b","x":[3],"zero":0},{"_id":3,"a":3,"s":"a 10","zero":0},{"_id":4,"a":4,"s":"a9"},{"_id":5,"s":"a 9"},{"_id":6,"s":"a-9"},{"_id":7,"s":"côte"},{"_id":8,"s":"coté"}]}`,
	`{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a"},{"key":{"y":1},"name":"y","sparse":true}]}`,
	`{"create":"valid","validator":{"a":{"$lt":3}}}`,
	`{"create":"v","viewOn":"c"}`,
}

// TestEffects shows for each field of fields.txt that it changes the reply or the data, is refused, or has no effect for
// a reason. A case is "shape.field {this and other fields}", or names of fields without an effect, or "tested" and names
// of fields that other tests show.
func TestEffects(t *testing.T) {
	shown := map[string]bool{}
	testkit.PlayCases(t, effects, func(t *testing.T, in string) string {
		fields, given, played := strings.Cut(in, " {")
		for _, name := range strings.Fields(strings.TrimPrefix(fields, "tested ")) {
			shown[name] = true
		}
		switch {
		case strings.HasPrefix(fields, "tested "):
			return "elsewhere"
		case !played:
			return "by this reason"
		}
		shape := fields[:strings.LastIndex(fields, ".")]
		with := ext(t, "{"+given)
		got, e := effectOf(t, shape, with)
		without, _ := effectOf(t, shape, value.Delete(with, fields[len(shape)+1:]))
		switch {
		case e != nil && e.Code == fault.NotImplemented && strings.Contains(e.Message, fields):
			return "refused"
		case got != without && e != nil:
			return fmt.Sprint("error ", e.Code)
		case got != without:
			return "changed"
		}
		t.Errorf("%s has no effect", in)
		return "nothing"
	})
	for name, s := range shapes() {
		for field, f := range s.fields {
			if !f.later && field != name && !shown[name+"."+field] {
				t.Errorf("%s.%s has no case in %s", name, field, effects)
			}
			if !f.later {
				delete(shown, name+"."+field)
			}
		}
	}
	for name := range shown {
		t.Errorf("%s is not an accepted field", name)
	}
}

// volatile are values that differ each time.
var volatile = regexp.MustCompile(`UUID\("[^"]*"\)|Timestamp\([^)]*\)|ObjectId\([^)]*\)|new Date\([^)]*\)|id: \d{6,}|uuid: [^,]*,|Micros: \d+`)

// effectOf runs a command with fields, and returns its reply with the data afterwards.
func effectOf(t *testing.T, shape string, fields bson.D) (string, *fault.Error) {
	base, ok := effectBases[shape]
	if !ok {
		t.Fatalf("no command with %s", shape)
	}
	b := replicaSet(t)
	if strings.HasPrefix(shape, "shardCollection") || shape == "checkMetadataConsistency" {
		b = newBench(t, Options{Sharded: true, ReplicaSet: true})
	}
	for _, s := range effectData {
		b.must(s)
	}
	inner := ext(t, base[1])
	for _, e := range fields {
		inner = value.Set(inner, e.Key, e.Value)
	}
	text, err := bson.MarshalExtJSON(inner, true, false)
	testkit.Check(t, err)
	reply, err := b.do(strings.Replace(base[0], "@", string(text), 1))
	e, _ := err.(*fault.Error)
	all := value.Text(reply) + fmt.Sprint(err)
	if cursor := value.As[bson.D](reply, "cursor"); cursor != nil {
		all += docsOf(reply)
	}
	all += docsOf(b.must(`{"listCollections":1}`))
	for _, name := range []string{"c", "d", "new", "valid"} {
		all += docsOf(b.must(`{"find":"` + name + `"}`))
		if r, err := b.do(`{"listIndexes":"` + name + `"}`); err == nil {
			all += docsOf(r)
		}
	}
	return volatile.ReplaceAllString(all, "…"), e
}
