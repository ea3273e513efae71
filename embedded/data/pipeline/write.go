package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Target is the collection that a stage writes; DB is empty if it is in the database of the pipeline.
type Target struct{ DB, Collection string }

// target reads the namespace that a stage names.
func (p *parser) target(name string, into any) (t Target) {
	switch x := into.(type) {
	case string:
		t.Collection = x
	case bson.D:
		db, _ := value.Field(x, "db")
		coll, _ := value.Field(x, "coll")
		t.DB, _ = db.(string)
		t.Collection, _ = coll.(string)
	}
	switch {
	case t.Collection != "":
	case name == "$out":
		p.Fail(16990, "$out only supports a string or object argument, but found %s", value.TypeName(into))
	default:
		p.Fail(51178, "$merge 'into' field must specify a 'coll' that is not empty, null or undefined")
	}
	return t
}

func out(p *parser, arg any) stage {
	t := p.target("$out", arg)
	return func(h Host, docs []bson.D) ([]bson.D, error) { return nil, h.Out(t, docs) }
}

// merge is $merge, which finds documents by their _id, and changes or refuses those.
func merge(p *parser, arg any) stage {
	into, fail := arg, false
	d, isDoc := arg.(bson.D)
	if isDoc {
		into, _ = value.Field(d, "into")
	}
	t := p.target("$merge", into)
	for _, e := range d {
		switch e.Key {
		case "into":
		case "on":
			if e.Value != "_id" {
				p.Fail(51183, "Cannot find index to verify that join fields will be unique")
			}
		case "whenMatched":
			if fail = e.Value == "fail"; !fail && e.Value != "merge" {
				p.Fail(command.CodeBadValue, "Enumeration value '%v' for field '$merge.whenMatched' is not a valid value.", e.Value)
			}
		default:
			p.Fail(command.CodeIDLUnknownField, "BSON field '$merge.%s' is an unknown field.", e.Key)
		}
	}
	return func(h Host, docs []bson.D) ([]bson.D, error) { return nil, h.Merge(t, fail, docs) }
}
