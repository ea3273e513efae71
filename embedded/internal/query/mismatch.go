package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// reasons is why a field does not match an operator, as errInfo of a validator shows it.
var reasons = map[string]string{
	"$eq": "comparison failed", "$gt": "comparison failed", "$gte": "comparison failed", "$lt": "comparison failed",
	"$lte": "comparison failed",
	"$ne":  "comparison succeeded", "$in": "no matching value found in array", "$nin": "matching value found in array",
	"$type":  "type did not match",
	"$regex": "regular expression did not match", "$size": "array length was not equal to given size",
	"$mod": "$mod did not evaluate to expected remainder",
	"$all": "array did not contain all specified values", "$elemMatch": "array did not satisfy the child predicate",
	"$bitsAllSet": "bitwise operator failed to match", "$bitsAllClear": "bitwise operator failed to match",
	"$bitsAnySet": "bitwise operator failed to match", "$bitsAnyClear": "bitwise operator failed to match",
}

// Mismatch returns why a document does not match: the details of errInfo (MongoDB manual, "Handle Invalid Documents").
func (f *Filter) Mismatch(doc bson.D) bson.D {
	return (&parser{opts: f.opts}).mismatch(f.source, doc)
}

// mismatch returns why a document does not match one of the conditions of a filter, or several.
func (p *parser) mismatch(filter, doc bson.D) bson.D {
	clauses := separate(filter)
	if len(clauses) == 1 {
		return p.why(clauses[0].(bson.D)[0], doc)
	}
	return operator("$and", "clausesNotSatisfied", p.unsatisfied(clauses, doc))
}

// separate returns a filter for each condition, and for each operator on a field.
func separate(filter bson.D) (out bson.A) {
	for _, e := range filter {
		ops, _ := e.Value.(bson.D)
		_, hasOptions := value.Field(ops, "$options")
		if strings.HasPrefix(e.Key, "$") || !IsOperators(ops) || hasOptions {
			out = append(out, bson.D{e})
			continue
		}
		for _, op := range ops {
			out = append(out, value.Doc(e.Key, bson.D{op}))
		}
	}
	return out
}

// unsatisfied returns why a document does not match filters of a list, with their positions.
func (p *parser) unsatisfied(list bson.A, doc bson.D) (out bson.A) {
	for i, item := range list {
		if filter := item.(bson.D); !p.conjunction(filter)(doc, &run{}) {
			out = append(out, value.Doc("index", int32(i), "details", p.mismatch(filter, doc)))
		}
	}
	return out
}

// why returns why a document does not match a condition.
func (p *parser) why(e bson.E, doc bson.D) bson.D {
	list, _ := e.Value.(bson.A)
	switch e.Key {
	case "$jsonSchema":
		s := p.schema(e.Value)
		return value.Append(append(operator(e.Key), s.about...), "schemaRulesNotSatisfied", s.failures(doc))
	case "$and", "$or":
		return operator(e.Key, "clausesNotSatisfied", p.unsatisfied(list, doc))
	case "$expr":
		out := operator(e.Key, "specifiedAs", bson.D{e}, "reason", "expression did not match")
		x, err := expression.Parse(e.Value, p.opts.Options)
		if err != nil {
			return out
		}
		result, err := x.Eval(expression.NewEnv(doc, p.opts.Let))
		return value.AddIf(out, err == nil, "expressionResult", result)
	case "$nor":
		return operator(e.Key, "specifiedAs", bson.D{e})
	}
	return whyField(e, doc)
}

// whyField returns why a document does not match a condition on a field.
func whyField(e bson.E, doc bson.D) bson.D {
	name := "$eq"
	if ops, ok := e.Value.(bson.D); ok && IsOperators(ops) {
		name = ops[0].Key
	} else if _, isRegex := e.Value.(bson.Regex); isRegex {
		name = "$regex"
	}
	var found bson.A
	Along(doc, strings.Split(e.Key, "."), func(v any) { found = append(found, v) })
	if list, ok := value.Get(doc, e.Key).(bson.A); ok { // considered as well, or alone
		if slices.Contains([]string{"$size", "$all", "$elemMatch"}, name) {
			found = nil
		}
		found = append(found, list)
	}
	reason := reasons[name]
	switch {
	case name == "$not":
		reason, found = "child expression matched", nil
	case name == "$exists" && len(found) > 0:
		reason, found = "path does exist", nil
	case name == "$exists":
		reason = "path does not exist"
	case len(found) == 0:
		reason = "field was missing"
	}
	out := operator(name, "specifiedAs", bson.D{e}, "reason", reason)
	switch len(found) {
	case 0:
		return out
	case 1:
		out = value.Append(out, "consideredValue", found[0])
		return value.AddIf(out, name == "$type", "consideredType", value.TypeName(found[0]))
	}
	return value.Append(out, "consideredValues", found)
}
