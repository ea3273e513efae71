package expression

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

func ext(t testing.TB, s string) any {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(`{"v":`+s+`}`), false, &d); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	v, _ := value.Field(value.Must(value.Encode(d)), "v")
	return v
}

const root = `{"a":2,"b":{"c":"x"},"l":[1,2,3],"o":[{"k":1},{"k":2}],"s":"Hello","z":0}`

var expressions = []struct {
	reason, expression, want string
	code                     int32
}{
	{"a field", `"$a"`, `2`, 0},
	{"a path", `"$b.c"`, `"x"`, 0},
	{"a path through an array collects", `"$o.k"`, `[1,2]`, 0},
	{"a variable of the command", `"$$v"`, `7`, 0},
	{"a literal is not looked into", `{"$literal":"$a"}`, `"$a"`, 0},
	{"an object of expressions", `{"x":"$a","y":"$nosuch"}`, `{"x":2}`, 0},
	{"an array of them", `["$a","$nosuch"]`, `[2,null]`, 0},
	{"$add", `{"$add":["$a",1,0.5]}`, `3.5`, 0},
	{"$add of null", `{"$add":["$a",null]}`, `null`, 0},
	{"$add of a string", `{"$add":["$s",1]}`, ``, 14},
	{"$subtract", `{"$subtract":["$a",5]}`, `-3`, 0},
	{"$multiply", `{"$multiply":["$a",3]}`, `6`, 0},
	{"$divide", `{"$divide":["$a",4]}`, `0.5`, 0},
	{"$divide by zero", `{"$divide":["$a","$z"]}`, ``, 2},
	{"$mod", `{"$mod":[7,3]}`, `1`, 0},
	{"$mod of a whole double is a double", `{"$mod":[7.0,3]}`, `1.0`, 0},
	{"$round to even", `{"$round":2.5}`, `2.0`, 0},
	{"$trunc to a place", `{"$trunc":[1.29,1]}`, `1.2`, 0},
	{"$eq across types", `{"$eq":["$a",2.0]}`, `true`, 0},
	{"$lt across types follows their order", `{"$lt":["$a","$s"]}`, `true`, 0},
	{"$cmp", `{"$cmp":[1,2]}`, `-1`, 0},
	{"$and", `{"$and":["$a",0]}`, `false`, 0},
	{"$or", `{"$or":[0,"$a"]}`, `true`, 0},
	{"$not", `{"$not":["$z"]}`, `true`, 0},
	{"$cond", `{"$cond":{"if":"$z","then":1,"else":2}}`, `2`, 0},
	{"$ifNull", `{"$ifNull":["$nosuch","d"]}`, `"d"`, 0},
	{"$switch", `{"$switch":{"branches":[{"case":"$z","then":1},{"case":"$a","then":2}],"default":3}}`, `2`, 0},
	{"$switch without a match", `{"$switch":{"branches":[{"case":"$z","then":1}]}}`, ``, 40066},
	{"$let", `{"$let":{"vars":{"x":"$a"},"in":{"$add":["$$x",1]}}}`, `3`, 0},
	{"$concat", `{"$concat":["$s","!"]}`, `"Hello!"`, 0},
	{"$toUpper", `{"$toUpper":"$s"}`, `"HELLO"`, 0},
	{"$substrCP", `{"$substrCP":["$s",1,3]}`, `"ell"`, 0},
	{"$substrCP counts characters", `{"$substrCP":["äbc",1,1]}`, `"b"`, 0},
	{"$substrBytes counts bytes", `{"$substrBytes":["äbc",2,1]}`, `"b"`, 0},
	{"$split", `{"$split":["a-b","-"]}`, `["a","b"]`, 0},
	{"$trim", `{"$trim":{"input":" x "}}`, `"x"`, 0},
	{"$regexMatch", `{"$regexMatch":{"input":"$s","regex":"^h","options":"i"}}`, `true`, 0},
	{"$size", `{"$size":"$l"}`, `3`, 0},
	{"$size of what is not an array", `{"$size":"$a"}`, ``, 17124},
	{"$arrayElemAt from the end", `{"$arrayElemAt":["$l",-1]}`, `3`, 0},
	{"$slice", `{"$slice":["$l",1,1]}`, `[2]`, 0},
	{"$filter", `{"$filter":{"input":"$l","as":"i","cond":{"$gt":["$$i",1]}}}`, `[2,3]`, 0},
	{"$map", `{"$map":{"input":"$l","in":{"$multiply":["$$this",2]}}}`, `[2,4,6]`, 0},
	{"$reduce", `{"$reduce":{"input":"$l","initialValue":0,"in":{"$add":["$$value","$$this"]}}}`, `6`, 0},
	{"$in", `{"$in":[2,"$l"]}`, `true`, 0},
	{"$range", `{"$range":[0,5,2]}`, `[0,2,4]`, 0},
	{"$range of too many", `{"$range":[{"$numberLong":"-9000000000000000000"},{"$numberLong":"9000000000000000000"}]}`, ``, 146},
	{"$setUnion", `{"$setUnion":["$l",[3,4]]}`, `[1,2,3,4]`, 0},
	{"$setIsSubset", `{"$setIsSubset":[[1],"$l"]}`, `true`, 0},
	{"$mergeObjects", `{"$mergeObjects":["$b",{"d":1}]}`, `{"c":"x","d":1}`, 0},
	{"$setField with a dollar", `{"$setField":{"field":{"$literal":"$f"},"input":"$b","value":1}}`, `{"c":"x","$f":1}`, 0},
	{"$getField", `{"$getField":{"field":"c","input":"$b"}}`, `"x"`, 0},
	{"$objectToArray", `{"$objectToArray":"$b"}`, `[{"k":"c","v":"x"}]`, 0},
	{"$toString", `{"$toString":"$a"}`, `"2"`, 0},
	{"$toInt", `{"$toInt":"12"}`, `12`, 0},
	{"$toInt of what is not a number", `{"$toInt":"x"}`, ``, 241},
	{"$convert with onError", `{"$convert":{"input":"x","to":"int","onError":0}}`, `0`, 0},
	{"$type", `{"$type":"$nosuch"}`, `"missing"`, 0},
	{"$sum of an array", `{"$sum":"$l"}`, `6`, 0},
	{"an unknown operator", `{"$nosuch":1}`, ``, 168},
	{"an unknown variable", `"$$nosuch"`, ``, 17276},
	{"too few arguments", `{"$eq":[1]}`, ``, 16020},
	{"two operators", `{"$add":[1],"$eq":[1,1]}`, ``, 15983},
}

func evaluate(v any, doc any) (any, error) {
	x, err := Parse(v)
	if err != nil {
		return nil, err
	}
	return x(NewEnv(doc, time.Unix(0, 0), bson.D{{Key: "v", Value: int32(7)}}))
}

func TestExpressions(t *testing.T) {
	doc := ext(t, root)
	for _, row := range expressions {
		got, err := evaluate(ext(t, row.expression), doc)
		if row.code != 0 {
			if e, ok := err.(*command.Error); !ok || e.Code != row.code {
				t.Errorf("%s: got %s, %v, want code %d", row.reason, value.Text(got), err, row.code)
			}
			continue
		}
		if want := ext(t, row.want); err != nil || value.Text(got) != value.Text(want) {
			t.Errorf("%s: got %s, %v, want %s", row.reason, value.Text(got), err, row.want)
		}
	}
}

func FuzzExpression(f *testing.F) {
	doc := ext(f, root)
	for _, row := range expressions {
		f.Add([]byte(value.Encode(bson.D{{Key: "v", Value: ext(f, row.expression)}})))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := value.Decode(data)
		if err != nil || len(d) == 0 {
			return
		}
		_, _ = evaluate(d[0].Value, doc)
	})
}
