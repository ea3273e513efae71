package pipeline

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Merge is a parsed $merge.
type Merge struct {
	DB, Collection string
	// WhenMatched is replace, keepExisting, merge or fail, and WhenNotMatched is
	// insert, discard or fail.
	WhenMatched, WhenNotMatched string
}

// target is the namespace that a stage writes.
func target(name string, arg any, o Options) (db, collection string, err error) {
	into := arg
	if d, ok := arg.(bson.D); ok && name == "$merge" {
		into, _ = value.Field(d, "into")
	}
	switch x := into.(type) {
	case string:
		db, collection = o.DB, x
	case bson.D:
		d, _ := value.Field(x, "db")
		c, _ := value.Field(x, "coll")
		db, _ = d.(string)
		collection, _ = c.(string)
		if db == "" {
			db = o.DB
		}
	}
	if collection == "" {
		if name == "$out" {
			return "", "", command.Errorf(16990, "$out only supports a string or object argument, but found %s", value.TypeName(arg))
		}
		return "", "", command.Errorf(51178, "$merge 'into' field must specify a 'coll' that is not empty, null or undefined")
	}
	return db, collection, nil
}

func out(arg any, o Options, _ int) (stage, error) {
	db, coll, err := target("$out", arg, o)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, h Host, docs []bson.D) ([]bson.D, error) {
		return nil, h.Out(ctx, db, coll, docs)
	}, nil
}

func merge(arg any, o Options, _ int) (stage, error) {
	db, coll, err := target("$merge", arg, o)
	if err != nil {
		return nil, err
	}
	m := &Merge{DB: db, Collection: coll, WhenMatched: "merge", WhenNotMatched: "insert"}
	d, _ := arg.(bson.D)
	for _, e := range d {
		switch e.Key {
		case "into":
		case "on":
			if e.Value != "_id" {
				return nil, command.Errorf(51183, "Cannot find index to verify that join fields will be unique")
			}
		case "whenMatched":
			s, _ := e.Value.(string)
			switch s {
			case "replace", "keepExisting", "merge", "fail":
				m.WhenMatched = s
			default:
				return nil, command.Errorf(command.CodeBadValue, "Enumeration value '%s' for field '$merge.whenMatched' is not a valid value.", s)
			}
		case "whenNotMatched":
			s, _ := e.Value.(string)
			switch s {
			case "insert", "discard", "fail":
				m.WhenNotMatched = s
			default:
				return nil, command.Errorf(command.CodeBadValue, "Enumeration value '%s' for field '$merge.whenNotMatched' is not a valid value.", s)
			}
		default:
			return nil, command.Errorf(command.CodeIDLUnknownField, "BSON field '$merge.%s' is an unknown field.", e.Key)
		}
	}
	return func(ctx context.Context, h Host, docs []bson.D) ([]bson.D, error) {
		return nil, h.Merge(ctx, m, docs)
	}, nil
}
